//! A table of those who wait: few, and nobody crowds the others out.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv6Addr};

/// Those who count as one: an address of IPv4, or a network of IPv6, within which one host has any number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Origin(IpAddr);

impl Origin {
    /// Of this address.
    pub fn of(address: IpAddr) -> Origin {
        match address {
            IpAddr::V6(v6) => {
                Origin(IpAddr::V6(Ipv6Addr::from(u128::from(v6) & !u128::from(u64::MAX))))
            }
            v4 => Origin(v4),
        }
    }
}

/// A table with a fixed number of places. If it is full, the oldest of those goes who have the most.
#[derive(Debug)]
pub struct Waiting<T> {
    most: usize,
    /// By number, which grows with time.
    places: BTreeMap<u64, (Origin, T)>,
    origins: BTreeMap<Origin, BTreeSet<u64>>,
}

impl<T> Waiting<T> {
    /// An empty table.
    pub fn new(most: usize) -> Waiting<T> {
        Waiting { most: most.max(1), places: BTreeMap::new(), origins: BTreeMap::new() }
    }

    /// Takes one in under a number higher than any before it, and gives who has to go for it.
    pub fn enter(&mut self, number: u64, origin: Origin, one: T) -> Option<(u64, T)> {
        let gone = match self.places.len() < self.most {
            true => None,
            false => self.crowd(),
        };
        self.origins.entry(origin).or_default().insert(number);
        self.places.insert(number, (origin, one));
        gone
    }

    fn crowd(&mut self) -> Option<(u64, T)> {
        let rank =
            |numbers: &&BTreeSet<u64>| (numbers.len(), std::cmp::Reverse(numbers.first().copied()));
        let number = *self.origins.values().max_by_key(rank)?.first()?;
        self.leave(number).map(|one| (number, one))
    }

    /// The one who waits under this number.
    pub fn get(&mut self, number: u64) -> Option<&mut T> {
        self.places.get_mut(&number).map(|(_, one)| one)
    }

    /// Takes one out.
    pub fn leave(&mut self, number: u64) -> Option<T> {
        let (origin, one) = self.places.remove(&number)?;
        if let Some(numbers) = self.origins.get_mut(&origin) {
            numbers.remove(&number);
            if numbers.is_empty() {
                self.origins.remove(&origin);
            }
        }
        Some(one)
    }

    /// The oldest.
    pub fn oldest(&self) -> Option<(u64, &T)> {
        self.places.first_key_value().map(|(&number, (_, one))| (number, one))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(last: u8) -> Origin {
        Origin::of([10, 0, 0, last].into())
    }

    #[test]
    fn who_crowds_goes_and_who_does_not_stays() {
        let mut table = Waiting::new(10);
        assert!(table.enter(0, origin(1), "alone").is_none());
        let gone: Vec<u64> = (1..100)
            .filter_map(|number| table.enter(number, origin(2), "crowd"))
            .map(|(n, _)| n)
            .collect();
        assert_eq!(gone, (1..=90).collect::<Vec<u64>>());
        assert_eq!(table.get(0), Some(&mut "alone"));
        assert_eq!(table.oldest(), Some((0, &"alone")));
        // From so many addresses that nobody has two, the oldest goes.
        let mut table = Waiting::new(3);
        assert!((0..3).all(|number| table.enter(number, origin(number as u8), ()).is_none()));
        assert_eq!(table.enter(3, origin(3), ()), Some((0, ())));
        assert_eq!((table.leave(3), table.leave(3), table.leave(1)), (Some(()), None, Some(())));
        assert!(table.enter(4, origin(3), ()).is_none());
    }

    #[test]
    fn a_network_of_ipv6_counts_as_one() {
        let of = |text: &str| Origin::of(text.parse().unwrap());
        assert_eq!(of("fd00::1"), of("fd00::ffff:1"));
        assert_ne!(of("fd00::1"), of("fd00:0:0:1::1"));
        assert_ne!(of("10.0.0.1"), of("10.0.0.2"));
    }
}
