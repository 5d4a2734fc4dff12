//! The records of what has come and is not accepted yet: data behind a gap, or such as nobody has taken.

use super::flying::Flying;
use std::collections::VecDeque;
use trunkline_core::Tight;

/// The records of a segment that has come, until its data are accepted.
#[derive(Debug)]
pub(crate) struct Early {
    /// The place of its first octet; of a listed protocol, the number of its unit.
    pub place: u64,
    /// The place behind its last octet.
    pub end: u64,
    pub flying: Box<Flying>,
}

/// For so many there is room while nothing is missing.
const FEW: usize = 8;

/// All of them in order of place, each place once. Most come in order, and are taken out in order.
#[derive(Debug, Default)]
pub(crate) struct EarlyRecords(VecDeque<Early>);

impl EarlyRecords {
    /// No records.
    pub const NONE: EarlyRecords = EarlyRecords(VecDeque::new());

    /// Keeps records, or gives them back if there are some of this place.
    pub fn insert(&mut self, early: Early) -> Option<Box<Flying>> {
        if self.0.back().is_none_or(|last| last.place < early.place) {
            self.0.push_tight(early);
            return None;
        }
        match self.find(early.place) {
            Ok(_) => Some(early.flying),
            Err(at) => {
                self.0.insert(at, early);
                None
            }
        }
    }

    /// Those of `place`.
    pub fn remove(&mut self, place: u64) -> Option<Early> {
        self.find(place).ok().and_then(|at| self.0.remove(at))
    }

    /// The first, if it ends at `place` or before it.
    pub fn pop_up_to(&mut self, place: u64) -> Option<Early> {
        self.0.front().filter(|first| first.end <= place)?;
        let first = self.0.pop_front();
        // A gap has come and gone: what waited behind it does not come again soon.
        if self.0.is_empty() && self.0.capacity() > FEW {
            self.0 = VecDeque::new();
        }
        first
    }

    /// Those that begin before `place`, the last first.
    pub fn before(&mut self, place: u64) -> impl Iterator<Item = &mut Early> {
        let count = self.find(place).unwrap_or_else(|at| at);
        self.0.range_mut(..count).rev()
    }

    fn find(&self, place: u64) -> Result<usize, usize> {
        self.0.binary_search_by_key(&place, |early| early.place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hosts::flying::Departure;
    use trunkline_core::Time;

    #[test]
    fn records_are_kept_in_order_of_place_each_once() {
        let mut early = EarlyRecords::default();
        let new = |place, length| {
            let [since, first, ready, left] = [Time::ZERO; 4];
            let flying = Flying::new(Departure { since, first, ready, left }, None);
            Early { place, end: place + length, flying: Box::new(flying) }
        };
        let kept: Vec<bool> = [(20, 10), (50, 10), (0, 20), (30, 10), (20, 5)]
            .map(|(place, length)| early.insert(new(place, length)).is_none())
            .into();
        assert_eq!(kept, [true, true, true, true, false]);
        assert_eq!(early.before(30).map(|it| it.place).collect::<Vec<_>>(), [20, 0]);
        assert_eq!(early.before(31).map(|it| it.place).collect::<Vec<_>>(), [30, 20, 0]);
        assert_eq!(early.remove(20).map(|it| it.end), Some(30), "the first of a place stays");
        assert!(early.remove(20).is_none() && early.pop_up_to(19).is_none());
        let taken: Vec<u64> =
            std::iter::from_fn(|| early.pop_up_to(40)).map(|it| it.place).collect();
        assert_eq!(taken, [0, 30]);
    }
}
