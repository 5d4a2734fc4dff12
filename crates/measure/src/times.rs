//! A histogram of times that costs the same however many are recorded.

use crate::spread;
use serde::{Deserialize, Serialize};
use std::fmt;
use trunkline_core::Span;

/// Significant decimal digits that the histogram keeps.
const DIGITS: u8 = 2;
/// Longest time that is told apart; longer ones count as this long.
const LONGEST: u64 = 3_600_000_000_000;

/// A histogram of times from 1 ns to one hour, to two significant digits; mean and extremes are kept
/// in full. Recording allocates nothing, unless it was made [small](Times::small).
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(into = "Counted", try_from = "Counted")]
pub struct Times {
    spread: Spread,
    sum: u128,
    longest: Span,
    shortest: Span,
}

/// A [`Times`] as it is written: the number of recordings of each time that the histogram tells apart.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Counted {
    /// The sum of all in full, in two halves.
    sum: [u64; 2],
    longest: u64,
    shortest: u64,
    counts: Vec<(u64, u64)>,
}

impl From<Times> for Counted {
    fn from(times: Times) -> Counted {
        let counts = times.spread.recorded();
        let Times { sum, longest, shortest, .. } = times;
        let [longest, shortest] = [longest, shortest].map(Span::as_nanos);
        Counted { sum: [(sum >> 64) as u64, sum as u64], longest, shortest, counts }
    }
}

impl TryFrom<Counted> for Times {
    type Error = &'static str;

    fn try_from(counted: Counted) -> Result<Times, &'static str> {
        let Counted { sum: [high, low], longest, shortest, ref counts } = counted;
        let count = total(counts).ok_or(TOO_MANY)?;
        let sum = u128::from(high) << 64 | u128::from(low);
        let [longest, shortest] = [longest, shortest].map(Span::from_nanos);
        let mut times = Times { sum, longest, shortest, ..Times::default() };
        for &(value, count) in counts {
            times.spread.record(value, count);
        }
        let ordered = count == 0 || shortest <= longest;
        let as_written = ordered && Counted::from(times.clone()) == counted;
        as_written.then_some(times).ok_or(OTHERWISE)
    }
}

/// The fault of a histogram whose counts no number of 64 bits holds.
pub(crate) const TOO_MANY: &str = "a histogram of more than 2^64 values";

/// The fault of a histogram that no recording could have made.
pub(crate) const OTHERWISE: &str = "a histogram that is not as histograms are written";

/// The number of values that these counts tell of, if 64 bits hold it.
pub(crate) fn total(counts: &[(u64, u64)]) -> Option<u64> {
    counts.iter().try_fold(0u64, |sum, &(_, count)| sum.checked_add(count))
}

/// The figures that a [`Times`] is quoted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Percentiles {
    /// The number of times recorded.
    pub count: u64,
    /// Arithmetic mean.
    pub mean: Span,
    /// Shortest.
    pub min: Span,
    /// Median.
    pub p50: Span,
    /// 99 in 100 are no longer.
    pub p99: Span,
    /// 999 in 1000 are no longer.
    pub p999: Span,
    /// Longest.
    pub max: Span,
}

/// Times of one range of a [`Times`]: longer than the range before, and no longer than this.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimeRange {
    /// Its upper end: 1, 2 or 5 times a power of ten nanoseconds.
    pub up_to: Span,
    /// The number of times recorded in it.
    pub count: u64,
}

/// The upper end of the range that a time lies in.
fn range_of(nanos: u64) -> u64 {
    let power = 10u64.pow(nanos.max(1).ilog10());
    [1, 2, 5, 10]
        .into_iter()
        .map(|step: u64| step.saturating_mul(power))
        .find(|&end| nanos <= end)
        .unwrap_or(u64::MAX)
}

impl Default for Times {
    fn default() -> Times {
        Times::of(Spread::whole())
    }
}

impl PartialEq for Times {
    fn eq(&self, other: &Times) -> bool {
        let sums = |times: &Times| (times.sum, times.longest, times.shortest);
        sums(self) == sums(other) && self.spread == other.spread
    }
}

/// Different times up to which they are counted one by one: a kilobyte at most.
const FEW: usize = 64;

/// The number of recordings of each time. Whole, it takes 36 KB; else, of many different times, a kilobyte for each
/// doubling from 128 ns on, or half of one.
type Spread = spread::Spread<DIGITS, LONGEST, FEW>;

impl Times {
    fn of(spread: Spread) -> Times {
        Times { spread, sum: 0, longest: Span::ZERO, shortest: Span::MAX }
    }

    /// A histogram that grows with the number of different times recorded: for many histograms of which most see few.
    pub fn small() -> Times {
        Times::of(Spread::small())
    }

    /// Records one time.
    pub fn record(&mut self, span: Span) {
        self.record_many(span, 1);
    }

    /// Records one time so often.
    pub fn record_many(&mut self, span: Span, count: u64) {
        if count == 0 {
            return;
        }
        self.spread.record(span.as_nanos(), count);
        self.sum += u128::from(span.as_nanos()) * u128::from(count);
        self.longest = self.longest.max(span);
        self.shortest = self.shortest.min(span);
    }

    /// Adds all that `other` recorded.
    pub fn add(&mut self, other: &Times) {
        self.spread.add(&other.spread);
        self.sum += other.sum;
        self.longest = self.longest.max(other.longest);
        self.shortest = self.shortest.min(other.shortest);
    }

    /// How many times lie in which range, to the two digits that are kept: the ranges that occur, shortest first.
    pub fn ranges(&self) -> Vec<TimeRange> {
        let mut ranges: Vec<TimeRange> = Vec::new();
        for (time, count) in self.spread.recorded() {
            let up_to = Span::from_nanos(range_of(Spread::lowest(time)));
            match ranges.last_mut().filter(|last| last.up_to == up_to) {
                Some(last) => last.count += count,
                None => ranges.push(TimeRange { up_to, count }),
            }
        }
        ranges
    }

    /// The number recorded.
    pub fn count(&self) -> u64 {
        self.spread.count()
    }

    /// The number that were longer than `bound`, to the two digits that are kept.
    pub fn longer_than(&self, bound: Span) -> u64 {
        self.count() - self.spread.up_to(bound.as_nanos().max(1))
    }

    /// The time that `share` of all (0 to 1) do not exceed: the nearest rank, never above the longest.
    pub fn quantile(&self, share: f64) -> Span {
        Span::from_nanos(self.spread.quantile(share)).min(self.longest)
    }

    /// The usual figures.
    pub fn percentiles(&self) -> Percentiles {
        if self.count() == 0 {
            return Percentiles::default();
        }
        Percentiles {
            count: self.count(),
            mean: Span::from_nanos((self.sum / u128::from(self.count())) as u64),
            min: self.shortest,
            p50: self.quantile(0.5),
            p99: self.quantile(0.99),
            p999: self.quantile(0.999),
            max: self.longest,
        }
    }
}

impl fmt::Display for Percentiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "mean {}, p50 {}, p99 {}, p99.9 {}, max {}",
            self.mean.rounded(),
            self.p50.rounded(),
            self.p99.rounded(),
            self.p999.rounded(),
            self.max.rounded()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn percentiles_of_known_times() {
        let mut times = Times::default();
        for micros in 1..=1000 {
            times.record(Span::from_micros(micros));
        }
        let figures = times.percentiles();
        assert_eq!(figures.count, 1000);
        assert_eq!(figures.mean, Span::from_nanos(500_500));
        assert_eq!((figures.min, figures.max), (Span::from_micros(1), Span::from_micros(1000)));
        let close = |span: Span, micros: u64| {
            span.abs_diff(Span::from_micros(micros)) < Span::from_micros(micros / 50)
        };
        assert!(close(figures.p50, 500) && close(figures.p99, 990) && close(figures.p999, 999));
        assert!((495..=505).contains(&times.longer_than(Span::from_micros(500))));
    }

    #[test]
    fn ranges_end_at_one_two_and_five_times_a_power_of_ten() {
        let mut times = Times::small();
        for nanos in [0, 1, 2, 3, 5, 6, 20, 21, 1000, 1100, 40_000] {
            times.record(Span::from_nanos(nanos));
        }
        let found: Vec<_> =
            times.ranges().iter().map(|range| (range.up_to.as_nanos(), range.count)).collect();
        let expected =
            [(1, 2), (2, 1), (5, 2), (10, 1), (20, 1), (50, 1), (1000, 1), (2000, 1), (50_000, 1)];
        assert_eq!(found, expected);
    }

    proptest! {
        #[test]
        fn every_time_is_in_one_range(nanos in prop::collection::vec(0..=LONGEST, 0..200)) {
            let mut times = Times::default();
            nanos.iter().for_each(|&nanos| times.record(Span::from_nanos(nanos)));
            let ranges = times.ranges();
            prop_assert_eq!(ranges.iter().map(|range| range.count).sum::<u64>(), nanos.len() as u64);
            prop_assert!(ranges.windows(2).all(|pair| pair[0].up_to < pair[1].up_to));
        }

        /// However times are counted, all figures are the same.
        #[test]
        fn a_small_one_tells_the_same(
            nanos in prop::collection::vec((0..u64::MAX, 0..64u32), 0..200), kinds in 1..120usize,
        ) {
            let (mut small, mut whole) = (Times::small(), Times::default());
            for index in 0..nanos.len() {
                let (value, shift) = nanos[index % kinds];
                small.record(Span::from_nanos(value >> shift));
                whole.record(Span::from_nanos(value >> shift));
            }
            prop_assert_eq!(&small, &whole);
            prop_assert_eq!(small.percentiles(), whole.percentiles());
            for share in [0.0, 0.01, 0.3, 0.5, 0.77, 0.999, 1.0] {
                prop_assert_eq!(small.quantile(share), whole.quantile(share));
            }
            for &(value, shift) in &nanos {
                let bound = Span::from_nanos(value >> shift);
                prop_assert_eq!(small.longer_than(bound), whole.longer_than(bound));
            }
            let (written, other) = (Counted::from(small.clone()), Counted::from(whole.clone()));
            prop_assert_eq!(&written, &other);
            let (mut sum, mut other) = (small.clone(), whole.clone());
            sum.add(&whole);
            other.add(&small);
            prop_assert_eq!(sum, other);
        }
    }

    #[test]
    fn a_small_one_reaches_no_farther_than_its_times() {
        let mut times = Times::small();
        (0..1000).for_each(|micros| times.record(Span::from_micros(micros)));
        let Spread::Narrow(histogram) = &times.spread else { panic!("they are many") };
        assert_eq!(histogram.high(), (1 << 20) - 1);
        times.record(Span::from_nanos(u64::MAX));
        let Spread::Narrow(histogram) = &times.spread else { panic!("they are many") };
        assert_eq!(histogram.high(), LONGEST);
    }

    #[test]
    fn more_recordings_than_32_bits_count_are_all_counted() {
        let (mut small, mut whole) = (Times::small(), Times::default());
        for micros in 0..100 {
            for times in [&mut small, &mut whole] {
                times.record_many(Span::from_micros(micros), 100_000_000);
            }
        }
        assert_eq!((small.count(), &small), (10_000_000_000, &whole));
        assert_eq!(small.percentiles(), whole.percentiles());
        assert_eq!(Counted::from(small), Counted::from(whole));
    }

    #[test]
    fn what_is_written_is_read_again() {
        let mut times = Times::default();
        for nanos in [0, 1, 2, 255, 256, 1_000_003, 7_777_777_777, LONGEST, u64::MAX / 2] {
            times.record(Span::from_nanos(nanos));
            times.record(Span::from_nanos(nanos));
        }
        let again = Times::try_from(Counted::from(times.clone())).unwrap();
        assert_eq!(again, times);
        assert_eq!(again.percentiles(), times.percentiles());
        let none = Times::try_from(Counted::from(Times::default())).unwrap();
        assert_eq!(none, Times::default());
    }

    #[test]
    fn nothing_recorded_is_all_zero() {
        assert_eq!(Times::default().percentiles(), Percentiles::default());
    }

    #[test]
    fn counts_beyond_a_number_are_refused() {
        let read = |count| {
            let counts = vec![(4, 1), (5, count)];
            Times::try_from(Counted { sum: [0, 9], longest: 5, shortest: 4, counts })
        };
        assert!(read(7).is_ok());
        assert_eq!(read(u64::MAX), Err(TOO_MANY));
    }

    #[test]
    fn what_nothing_recorded_became_is_refused() {
        let read = |[longest, shortest]: [u64; 2], counts: &[(u64, u64)]| {
            Times::try_from(Counted { sum: [0, 9], longest, shortest, counts: counts.to_vec() })
        };
        assert!(read([5, 4], &[(4, 1), (5, 1)]).is_ok());
        assert_eq!(read([5, 4], &[(4, 1), (5, 1), (7, 0)]), Err(OTHERWISE), "an empty bucket");
        assert_eq!(read([5, 4], &[(5, 1), (4, 1)]), Err(OTHERWISE), "out of order");
        assert_eq!(read([4, 5], &[(4, 1), (5, 1)]), Err(OTHERWISE), "extremes exchanged");
    }
}
