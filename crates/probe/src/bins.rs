//! Octets counted by intervals.

use trunkline_core::{Span, Time};

/// More intervals than these are not kept: the last one takes the rest.
pub const MOST_BINS: usize = 36_000;

/// Octets received in each interval after a beginning.
#[derive(Debug, Clone, Default)]
pub struct Bins {
    began: Option<Time>,
    last: Option<Time>,
    interval: Span,
    octets: Vec<u64>,
    total: u64,
}

impl Bins {
    /// Intervals of this length, counted from the first octets on; at least a millisecond.
    pub fn new(interval: Span) -> Bins {
        Bins { interval: interval.max(Span::from_millis(1)), ..Bins::default() }
    }

    /// Intervals counted from `began` on.
    pub fn from(began: Time, interval: Span) -> Bins {
        Bins { began: Some(began), ..Bins::new(interval) }
    }

    /// Counts octets that came at `now`.
    pub fn add(&mut self, now: Time, octets: u64) {
        let began = *self.began.get_or_insert(now);
        let index = now.since(began).as_nanos() / self.interval.as_nanos();
        let index = (index as usize).min(MOST_BINS - 1);
        if self.octets.len() <= index {
            self.octets.resize(index + 1, 0);
        }
        self.octets[index] += octets;
        self.last = self.last.max(Some(now));
        self.total += octets;
    }

    /// Octets of each interval.
    pub fn octets(&self) -> &[u64] {
        &self.octets
    }
    /// All octets.
    pub fn total(&self) -> u64 {
        self.total
    }
    /// When the first octets came.
    pub fn began(&self) -> Option<Time> {
        self.began
    }
    /// When the last octets came.
    pub fn last(&self) -> Option<Time> {
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn octets_fall_into_their_intervals() {
        let at = |millis| Time::ZERO + Span::from_millis(millis);
        let mut bins = Bins::new(Span::from_millis(10));
        for (millis, octets) in [(100, 1), (109, 2), (110, 4), (145, 8)] {
            bins.add(at(millis), octets);
        }
        assert_eq!((bins.octets(), bins.total()), (&[3, 4, 0, 0, 8][..], 15));
        assert_eq!((bins.began(), bins.last()), (Some(at(100)), Some(at(145))));
        bins.add(at(1 << 30), 16);
        assert_eq!((bins.octets().len(), bins.total()), (MOST_BINS, 31));
        assert_eq!(Bins::from(at(90), Span::ZERO).began(), Some(at(90)));
    }
}
