//! The number of recordings of each value that a histogram tells apart, in no more memory than their kind takes.

use hdrhistogram::{Counter, Histogram};
use trunkline_core::Tight;

/// The number of recordings of each value up to `LONGEST`, told apart to `DIGITS` significant decimal digits; greater
/// values count as `LONGEST`. Up to `FEW` different values are counted one by one, in the histogram's own classes, so
/// that every figure is the same however they are counted.
#[derive(Debug, Clone)]
pub(crate) enum Spread<const DIGITS: u8, const LONGEST: u64, const FEW: usize> {
    /// In ascending order, each value as the greatest of those that the histogram does not tell apart.
    Few(Vec<(u64, u64)>),
    /// Fewer than 2^32 recordings, in half the memory.
    Narrow(Histogram<u32>),
    Many(Histogram<u64>),
}

/// The number of recordings of each value that a histogram tells apart.
fn counted<C: Counter>(histogram: &Histogram<C>) -> Vec<(u64, u64)> {
    let each = histogram.iter_recorded();
    each.map(|it| (it.value_iterated_to(), it.count_at_value().as_u64())).collect()
}

/// How many binary digits below its highest a value may lose and stay in its class: a histogram tells the first
/// 2 * 10^`digits` whole numbers apart, rounded up to a power of two, and as many from each doubling on.
fn lost(value: u64, digits: u8) -> u32 {
    let apart = (2 * 10u64.pow(digits.into())).next_power_of_two();
    (value | (apart - 1)).ilog2() + 1 - apart.ilog2()
}

impl<const DIGITS: u8, const LONGEST: u64, const FEW: usize> Spread<DIGITS, LONGEST, FEW> {
    /// No recordings, in a histogram that has room for all: recording allocates nothing.
    pub fn whole() -> Self {
        Spread::Many(Self::reaching(LONGEST))
    }

    /// No recordings, in memory that grows with the number of different values.
    pub fn small() -> Self {
        Spread::Few(Vec::new())
    }

    /// The least value of the class that `value` is in.
    pub fn lowest(value: u64) -> u64 {
        let lost = lost(value, DIGITS);
        value >> lost << lost
    }

    /// The greatest value of the class that `value` is in. As in a histogram, the last class there is ends one before its
    /// last value.
    pub fn highest(value: u64) -> u64 {
        Self::lowest(value).saturating_add(1 << lost(value, DIGITS)) - 1
    }

    /// The value in the middle of the class that `value` is in.
    pub fn median(value: u64) -> u64 {
        Self::lowest(value) + ((1 << lost(value, DIGITS)) >> 1)
    }

    /// A histogram of values up to `value` and less than twice that.
    fn reaching<C: Counter>(value: u64) -> Histogram<C> {
        let longest = (u64::MAX >> value.max(2).leading_zeros()).min(LONGEST);
        Histogram::new_with_bounds(1, longest, DIGITS).expect("the histogram accepts these bounds")
    }

    /// Records in a histogram, which becomes one that reaches farther if it has to.
    fn record_in<C: Counter>(histogram: &mut Histogram<C>, value: u64, count: C) {
        if value > histogram.high() && histogram.high() < LONGEST {
            let mut farther = Self::reaching(value);
            farther.add(&*histogram).expect("it reaches farther");
            *histogram = farther;
        }
        histogram.saturating_record_n(value, count);
    }

    /// The same recordings, with room for as many as there may be.
    fn widened(histogram: &Histogram<u32>) -> Histogram<u64> {
        let mut many = Self::reaching(histogram.high());
        let all = counted(histogram);
        all.iter().for_each(|&(value, count)| many.saturating_record_n(value, count));
        many
    }

    /// Records a value so often.
    pub fn record(&mut self, value: u64, count: u64) {
        if count == 0 {
            return;
        }
        let few = match self {
            Spread::Many(histogram) => return Self::record_in(histogram, value, count),
            Spread::Narrow(histogram) => {
                let fits = u32::try_from(histogram.len().saturating_add(count)).is_ok();
                if fits {
                    return Self::record_in(histogram, value, count as u32);
                }
                *self = Spread::Many(Self::widened(histogram));
                return self.record(value, count);
            }
            Spread::Few(few) => few,
        };
        let highest = Self::highest(value);
        match few.binary_search_by_key(&highest, |&(known, _)| known) {
            Ok(place) => few[place].1 = few[place].1.saturating_add(count),
            Err(place) if few.len() < FEW && value <= LONGEST => {
                few.push_tight((highest, count));
                few[place..].rotate_right(1);
            }
            Err(_) => {
                let farthest = few.last().map_or(value, |&(known, _)| known.max(value));
                let few = std::mem::take(few);
                *self = Spread::Narrow(Self::reaching(farthest));
                few.iter().for_each(|&(known, count)| self.record(known, count));
                self.record(value, count);
            }
        }
    }

    /// Adds all that `other` recorded.
    pub fn add(&mut self, other: &Self) {
        match (self, other) {
            (Spread::Many(ours), Spread::Many(theirs)) if ours.high() >= theirs.high() => {
                ours.add(theirs).expect("it reaches as far");
            }
            (ours, theirs) => {
                theirs.recorded().iter().for_each(|&(value, count)| ours.record(value, count));
            }
        }
    }

    /// The number of recordings of each value that is told apart.
    pub fn recorded(&self) -> Vec<(u64, u64)> {
        match self {
            Spread::Few(few) => few.clone(),
            Spread::Narrow(histogram) => counted(histogram),
            Spread::Many(histogram) => counted(histogram),
        }
    }

    /// The number of recordings.
    pub fn count(&self) -> u64 {
        match self {
            Spread::Few(few) => few.iter().fold(0, |sum, &(_, count)| sum.saturating_add(count)),
            Spread::Narrow(histogram) => histogram.len(),
            Spread::Many(histogram) => histogram.len(),
        }
    }

    /// The value that `share` of all (0 to 1) do not exceed: the nearest rank, as the histogram has it.
    pub fn quantile(&self, share: f64) -> u64 {
        let few = match self {
            Spread::Few(few) => few,
            Spread::Narrow(histogram) => return histogram.value_at_quantile(share),
            Spread::Many(histogram) => return histogram.value_at_quantile(share),
        };
        let rank = ((share.min(1.0) * self.count() as f64).ceil() as u64).max(1);
        let mut passed: u64 = 0;
        for &(value, count) in few {
            passed = passed.saturating_add(count);
            if passed >= rank {
                return if share == 0.0 { Self::lowest(value) } else { value };
            }
        }
        0
    }

    /// The number of values that were no greater than `value`.
    pub fn up_to(&self, value: u64) -> u64 {
        match self {
            Spread::Few(few) => {
                let bound = Self::highest(value);
                let below = few.iter().filter(|&&(known, _)| known <= bound);
                below.map(|&(_, count)| count).sum()
            }
            Spread::Narrow(histogram) => histogram.count_between(0, value),
            Spread::Many(histogram) => histogram.count_between(0, value),
        }
    }
}

impl<const DIGITS: u8, const LONGEST: u64, const FEW: usize> PartialEq
    for Spread<DIGITS, LONGEST, FEW>
{
    fn eq(&self, other: &Self) -> bool {
        self.recorded() == other.recorded()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_last_class_is_told_as_by_a_histogram() {
        let mut whole = Histogram::<u64>::new(3).unwrap();
        let mut ours = Spread::<3, { u64::MAX }, 4>::small();
        for value in [u64::MAX, u64::MAX - 1, u64::MAX - (1 << 52), u64::MAX << 53] {
            whole.record(value).unwrap();
            ours.record(value, 1);
        }
        assert_eq!(ours.recorded(), counted(&whole));
        assert_eq!(ours.quantile(1.0), whole.value_at_quantile(1.0));
    }

    proptest! {
        /// Classes are the histogram's.
        #[test]
        fn values_are_told_apart_as_by_a_histogram(value: u64, shift in 0..64u32) {
            let value = value >> shift;
            let whole = Histogram::<u64>::new(3).unwrap();
            type Fine = Spread<3, { u64::MAX }, 4>;
            prop_assert_eq!(Fine::lowest(value), whole.lowest_equivalent(value));
            prop_assert_eq!(Fine::highest(value), whole.highest_equivalent(value));
            prop_assert_eq!(Fine::median(value), whole.median_equivalent(value));
            let whole = Histogram::<u64>::new_with_max(1 << 40, 2).unwrap();
            type Rough = Spread<2, { 1 << 40 }, 4>;
            prop_assert_eq!(Rough::lowest(value), whole.lowest_equivalent(value));
            prop_assert_eq!(Rough::highest(value), whole.highest_equivalent(value));
        }

        /// However values are counted, all figures are those of a histogram that holds all.
        #[test]
        fn few_and_many_tell_what_a_histogram_does(
            values in prop::collection::vec((any::<u64>(), 0..64u32), 0..100), kinds in 1..60usize,
        ) {
            let mut whole = Histogram::<u64>::new(3).unwrap();
            let mut ours = Spread::<3, { u64::MAX }, 20>::small();
            for index in 0..values.len() {
                let (value, shift) = values[index % kinds];
                let value = value >> shift;
                whole.record(value).unwrap();
                ours.record(value, 1);
                ours.record(value, 0);
            }
            prop_assert_eq!(ours.recorded(), counted(&whole));
            for share in [0.0, 0.01, 0.3, 0.5, 0.77, 0.999, 1.0] {
                prop_assert_eq!(ours.quantile(share), whole.value_at_quantile(share));
            }
            let mut twice = ours.clone();
            twice.add(&ours);
            whole.add(whole.clone()).unwrap();
            prop_assert_eq!(twice.recorded(), counted(&whole));
        }
    }
}
