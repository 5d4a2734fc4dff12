//! The numbers that have come: once, twice, late, and how regularly.

use std::collections::BTreeMap;
use trunkline_core::Time;

/// More ranges than these are not kept apart: the memory of a flow is bounded, and so is its report.
const MOST_RANGES: usize = 50_000;

/// Notes the numbers of what arrives.
#[derive(Debug, Clone, Default)]
pub struct Tracker {
    /// First and last number of each range, both included.
    ranges: BTreeMap<u32, u32>,
    truncated: bool,
    received: u64,
    duplicates: u64,
    reordered: u64,
    highest: Option<u32>,
    jitter: Jitter,
}

/// Interarrival jitter as RFC 3550 §6.4.1 and A.8 have it, in sixteenths of a nanosecond.
#[derive(Debug, Clone, Copy, Default)]
struct Jitter {
    transit: Option<i64>,
    sixteenths: u64,
}

impl Jitter {
    fn note(&mut self, transit: i64) {
        if let Some(before) = self.transit.replace(transit) {
            let change = transit.abs_diff(before);
            self.sixteenths = (self.sixteenths + change).saturating_sub((self.sixteenths + 8) >> 4);
        }
    }
}

impl Tracker {
    /// Notes a number and tells whether it is a new one.
    pub fn note(&mut self, number: u32) -> bool {
        let before = self.ranges.range(..=number).next_back().map(|(&first, &last)| (first, last));
        if before.is_some_and(|(_, last)| number <= last) {
            self.duplicates += 1;
            return false;
        }
        self.received += 1;
        if self.highest.is_some_and(|highest| number < highest) {
            self.reordered += 1;
        }
        self.highest = self.highest.max(Some(number));
        let first = match before {
            Some((first, last)) if last + 1 == number => first,
            _ => number,
        };
        let after = number.checked_add(1).and_then(|next| self.ranges.remove(&next));
        self.ranges.insert(first, after.unwrap_or(number));
        self.bound();
        true
    }

    /// Notes how long a message that was sent at `stamp` by the sender's clock was under way.
    pub fn note_transit(&mut self, stamp: u64, arrived: Time) {
        self.jitter.note((arrived.as_nanos() as i64).wrapping_sub(stamp as i64));
    }

    /// Joins the two lowest ranges if there are too many, and so forgets what is missing between.
    fn bound(&mut self) {
        if self.ranges.len() > MOST_RANGES
            && let (Some((first, _)), Some((_, last))) =
                (self.ranges.pop_first(), self.ranges.pop_first())
        {
            self.truncated = true;
            self.ranges.insert(first, last);
        }
    }

    /// Numbers that came, each once.
    pub fn received(&self) -> u64 {
        self.received
    }
    /// Further copies.
    pub fn duplicates(&self) -> u64 {
        self.duplicates
    }
    /// Numbers that came after a higher one (RFC 4737 §3.3).
    pub fn reordered(&self) -> u64 {
        self.reordered
    }
    /// The highest number.
    pub fn highest(&self) -> Option<u32> {
        self.highest
    }
    /// The ranges, ascending.
    pub fn ranges(&self) -> Vec<(u32, u32)> {
        self.ranges.iter().map(|(&first, &last)| (first, last)).collect()
    }
    /// Whether there were too many to keep apart.
    pub fn truncated(&self) -> bool {
        self.truncated
    }
    /// Jitter in nanoseconds; `None` before the second arrival.
    pub fn jitter(&self) -> Option<u64> {
        (self.received > 1).then_some(self.jitter.sixteenths >> 4)
    }
}

/// Whether `number` is in one of the ranges.
pub fn covers(ranges: &[(u32, u32)], number: u32) -> bool {
    let after = ranges.partition_point(|&(first, _)| first <= number);
    after > 0 && number <= ranges[after - 1].1
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn it_knows_what_came(numbers in prop::collection::vec(0u32..60, 0..120)) {
            let (mut tracker, mut seen) = (Tracker::default(), BTreeSet::new());
            let (mut copies, mut late) = (0, 0);
            for &number in &numbers {
                late += u64::from(!seen.contains(&number) && seen.last() > Some(&number));
                let new = seen.insert(number);
                copies += u64::from(!new);
                prop_assert_eq!(tracker.note(number), new);
            }
            prop_assert_eq!(tracker.received(), seen.len() as u64);
            prop_assert_eq!((tracker.duplicates(), tracker.reordered()), (copies, late));
            let ranges = tracker.ranges();
            for number in 0..61 {
                prop_assert_eq!(covers(&ranges, number), seen.contains(&number));
            }
            // No two ranges touch.
            prop_assert!(ranges.windows(2).all(|two| two[0].1 + 1 < two[1].0));
        }
    }

    #[test]
    fn the_highest_numbers_are_numbers_too() {
        let mut tracker = Tracker::default();
        assert!(tracker.note(u32::MAX) && tracker.note(u32::MAX - 1) && !tracker.note(u32::MAX));
        assert_eq!(tracker.ranges(), [(u32::MAX - 1, u32::MAX)]);
    }

    #[test]
    fn memory_is_bounded() {
        let mut tracker = Tracker::default();
        (0..120_000).for_each(|number| assert!(tracker.note(number * 2)));
        assert_eq!(tracker.ranges().len(), MOST_RANGES);
        assert!(tracker.truncated() && tracker.received() == 120_000);
    }

    #[test]
    fn jitter_tends_to_the_mean_change() {
        let mut tracker = Tracker::default();
        assert_eq!(tracker.jitter(), None);
        for number in 0..400u32 {
            tracker.note(number);
            let late = u64::from(number % 2) * 1000;
            tracker.note_transit(
                u64::from(number) * 5000,
                Time::from_nanos(u64::from(number) * 5000 + late),
            );
        }
        let jitter = tracker.jitter().unwrap();
        assert!((990..=1010).contains(&jitter), "{jitter}");
    }
}
