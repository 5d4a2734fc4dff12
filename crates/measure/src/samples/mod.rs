//! Measurements of a traffic: all of them up to a number, beyond it a fair selection and running sums.

mod keep;
mod series;
mod streamed;

pub use keep::{Keep, KeepError};
pub(crate) use streamed::Streamed;

use crate::Sample;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};
use trunkline_core::{Seed, Tight, Time};

/// Measurements that look wrong are kept whatever else is: so many are enough to say what is wrong.
const ODD: usize = 8;
/// For so many there is room beforehand at most: a run may end long before its traffic has sent all.
const ROOM: usize = 100_000;

/// Measurements of one traffic. As a slice it is those that are kept: all of them, or, if there are more
/// than [`Keep`] allows, that many drawn by a hash of seed, flow, size and index, so that the selection depends
/// neither on the order of events nor on how runs are put together. From then on sums, extremes and histograms
/// of all measurements are kept beside it, whose memory does not grow.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Samples {
    kept: Vec<Sample>,
    keep: Keep,
    seed: u64,
    amounts: bool,
    /// The greatest hash of those kept, once a selection has been made.
    highest: Option<u64>,
    sums: Option<Box<Sums>>,
}

/// The sums over all measurements once they are not all kept.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Sums {
    /// By size; under 0 if sizes are amounts.
    groups: BTreeMap<u64, Streamed>,
    /// Those whose steps do not sum to their delay or whose times are not in order, the first few.
    odd: Vec<Sample>,
    /// The last to end.
    latest: Option<Sample>,
    /// One with the highest place that any step names.
    farthest: Option<Sample>,
}

impl Samples {
    /// No measurements yet. `amounts` is [`TrafficRun::amounts`](crate::TrafficRun::amounts).
    pub fn new(keep: Keep, seed: Seed, amounts: bool) -> Samples {
        Samples { keep, seed: seed.0, amounts, ..Samples::default() }
    }

    /// Makes room for so many, so that they need not be moved when they have come: for as many as are kept, and no more
    /// than a hundred thousand.
    pub fn expect(&mut self, count: u64) {
        let most = self.keep.most().min(ROOM);
        self.kept.reserve_exact(usize::try_from(count).map_or(most, |count| count.min(most)));
    }

    /// Adds a measurement; those of one flow in order of time.
    pub fn push(&mut self, sample: Sample) {
        if let Some(sums) = &mut self.sums {
            sums.add(&sample, self.amounts);
            if self.highest.is_some_and(|highest| hash(self.seed, &sample) > highest) {
                return;
            }
        }
        self.kept.push_tight(sample);
        let most = self.keep.most();
        if self.sums.is_none() && self.kept.len() > most {
            self.sum_up();
        }
        // Twice as many before a selection is made makes it cost little for each.
        if self.kept.len() / 2 >= most {
            self.select();
        }
    }

    /// Adds the measurements of another; of a flow that both have, the other's came later.
    pub fn absorb(&mut self, mut other: Samples) {
        let over = self.kept.len() + other.kept.len() > self.keep.most();
        if over || self.sums.is_some() || other.sums.is_some() {
            self.sum_up();
            other.amounts = self.amounts;
            other.sum_up();
        }
        if let (Some(ours), Some(theirs)) = (&mut self.sums, &other.sums) {
            ours.absorb(theirs);
        }
        self.kept.append(&mut other.kept);
        if self.sums.is_some() {
            self.select();
        }
    }

    /// Makes the last selection and puts what is kept in order: flow by flow, by their ends.
    pub fn finish(&mut self) {
        if self.sums.is_some() {
            self.select();
        }
        self.kept.sort_by_key(|sample| (sample.flow, sample.end));
        // Of what was expected some may have been lost.
        self.kept.shrink_to_fit();
    }

    /// The number of measurements.
    pub fn count(&self) -> u64 {
        match &self.sums {
            Some(sums) => sums.groups.values().map(|group| group.count).sum(),
            None => self.kept.len() as u64,
        }
    }

    /// Whether every measurement is kept.
    pub fn is_whole(&self) -> bool {
        self.sums.is_none()
    }

    /// Words for the reader if they are not all kept.
    pub fn selection(&self) -> Option<String> {
        let (kept, count) = (self.kept.len().min(self.keep.most()), self.count());
        self.sums.is_some().then(|| {
            format!(
                "{kept} of {count} samples are kept, drawn evenly; figures are of all, quantiles to 0.1 %"
            )
        })
    }

    /// Counts all instants anew, as `moved` says.
    pub fn rebase(&mut self, moved: impl Fn(Time) -> Time) {
        let groups = self.sums.iter_mut().flat_map(|sums| sums.groups.values_mut());
        for (from, to) in groups.flat_map(|group| group.reach.values_mut()) {
            (*from, *to) = (moved(*from), moved(*to));
        }
        let sums = self.sums.iter_mut();
        let told = sums.flat_map(|sums| sums.told_mut());
        for sample in self.kept.iter_mut().chain(told) {
            for at in [&mut sample.intended, &mut sample.start, &mut sample.end] {
                *at = moved(*at);
            }
        }
    }

    /// The sums over all measurements by size, if they are not all kept.
    pub(crate) fn groups(&self) -> Option<&BTreeMap<u64, Streamed>> {
        self.sums.as_ref().map(|sums| &sums.groups)
    }

    /// Measurements that are looked at when laws are checked: those kept, and those that would break one.
    pub fn told(&self) -> impl Iterator<Item = &Sample> {
        let sums = self.sums.iter();
        self.kept.iter().chain(sums.flat_map(|sums| sums.told()))
    }

    fn sum_up(&mut self) {
        if self.sums.is_none() {
            let mut sums = Sums::default();
            self.kept.iter().for_each(|sample| sums.add(sample, self.amounts));
            self.sums = Some(Box::new(sums));
        }
    }

    /// Keeps as many as may be kept, those with the least hashes.
    fn select(&mut self) {
        let (most, seed) = (self.keep.most(), self.seed);
        if most == 0 {
            self.kept.clear();
            self.highest = Some(0);
        } else if self.kept.len() > most {
            let key =
                |sample: &Sample| (hash(seed, sample), sample.flow, sample.size, sample.index);
            self.kept.select_nth_unstable_by_key(most - 1, key);
            self.kept.truncate(most);
            self.highest = self.kept.iter().map(|sample| hash(seed, sample)).max();
            // Selecting leaves no order; flows keep theirs.
            self.kept.sort_by_key(|sample| (sample.flow, sample.end));
        }
    }
}

impl Sums {
    fn add(&mut self, sample: &Sample, amounts: bool) {
        let size = if amounts { 0 } else { sample.size };
        self.groups.entry(size).or_default().add(sample);
        if sample.is_odd() && self.odd.len() < ODD {
            self.odd.push(sample.clone());
        }
        if self.latest.as_ref().is_none_or(|latest| latest.end < sample.end) {
            self.latest = Some(sample.clone());
        }
        if self.farthest.as_ref().is_none_or(|known| known.farthest() < sample.farthest()) {
            self.farthest = Some(sample.clone());
        }
    }

    fn absorb(&mut self, other: &Sums) {
        for (size, group) in &other.groups {
            self.groups.entry(*size).or_default().absorb(group);
        }
        self.odd.extend(other.odd.iter().cloned());
        self.odd.truncate(ODD);
        if let Some(sample) = &other.latest
            && self.latest.as_ref().is_none_or(|latest| latest.end < sample.end)
        {
            self.latest = Some(sample.clone());
        }
        if let Some(sample) = &other.farthest
            && self.farthest.as_ref().is_none_or(|known| known.farthest() < sample.farthest())
        {
            self.farthest = Some(sample.clone());
        }
    }

    fn told(&self) -> impl Iterator<Item = &Sample> {
        self.odd.iter().chain(&self.latest).chain(&self.farthest)
    }

    fn told_mut(&mut self) -> impl Iterator<Item = &mut Sample> {
        self.odd.iter_mut().chain(&mut self.latest).chain(&mut self.farthest)
    }
}

impl Sample {
    /// Whether its steps do not sum to its delay, or its times are not in order.
    fn is_odd(&self) -> bool {
        let booked = self.steps.iter().map(|step| step.span).sum();
        self.delay() != booked || self.intended > self.start || self.start > self.end
    }

    fn farthest(&self) -> Option<u32> {
        self.steps.iter().map(|step| step.place).max()
    }
}

/// A number that looks drawn by chance, from what a measurement is called.
fn hash(seed: u64, sample: &Sample) -> u64 {
    let name = u64::from(sample.flow) << 32 | u64::from(sample.index);
    mixed(mixed(mixed(seed) ^ name) ^ sample.size)
}

/// Mixes 64 bits so that each depends on all (the finaliser of SplitMix64: Steele, Lea and Flood 2014).
fn mixed(bits: u64) -> u64 {
    let bits = bits.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

impl Deref for Samples {
    type Target = [Sample];
    fn deref(&self) -> &[Sample] {
        &self.kept
    }
}

impl DerefMut for Samples {
    fn deref_mut(&mut self) -> &mut [Sample] {
        &mut self.kept
    }
}

impl<'a> IntoIterator for &'a Samples {
    type Item = &'a Sample;
    type IntoIter = std::slice::Iter<'a, Sample>;
    fn into_iter(self) -> Self::IntoIter {
        self.kept.iter()
    }
}

impl FromIterator<Sample> for Samples {
    fn from_iter<I: IntoIterator<Item = Sample>>(samples: I) -> Samples {
        let mut found = Samples::default();
        samples.into_iter().for_each(|sample| found.push(sample));
        found
    }
}

impl From<Vec<Sample>> for Samples {
    fn from(samples: Vec<Sample>) -> Samples {
        samples.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Estimator, Quantity, Step, Steps, TrafficRun};
    use proptest::prelude::*;
    use trunkline_core::{Cause, Span};

    /// A measurement of `micros`, the `index`th of its flow, that waited a third of its time.
    fn sample(flow: u32, index: u32, size: u64, micros: u64) -> Sample {
        let start = Time::from_nanos(1_000_000_000 * u64::from(index));
        let span = Span::from_micros(micros);
        let wait = span.scaled(1, 3);
        let steps = [
            Step { place: 1, cause: Cause::Queue, span: wait },
            Step { place: 0, cause: Cause::Propagate, span: span - wait },
        ];
        let steps = steps.into_iter().collect();
        Sample { flow, index, size, intended: start, start, end: start + span, steps }
    }

    /// Flows of delays between 1 us and 1 s, with a transient at the start.
    fn flows() -> impl Strategy<Value = Vec<Vec<u64>>> {
        let delay = prop_oneof![8 => 4_000..4_500u64, 3 => 1..1_000_000u64];
        prop::collection::vec(prop::collection::vec(delay, 25..400), 1..4)
    }

    fn of(flows: &[Vec<u64>], keep: Keep) -> TrafficRun {
        let mut samples = Samples::new(keep, Seed(3), false);
        let longest = flows.iter().map(Vec::len).max().unwrap_or(0);
        // As they come in a run: one of each flow in turn.
        for index in 0..longest {
            for (flow, delays) in flows.iter().enumerate() {
                if let Some(&micros) = delays.get(index) {
                    samples.push(sample(flow as u32, index as u32, 64, micros));
                }
            }
        }
        samples.finish();
        TrafficRun { samples, ..TrafficRun::default() }
    }

    fn within(found: f64, right: f64, share: f64) -> bool {
        (found - right).abs() <= share * right.abs() + 1e-12
    }

    #[test]
    fn expected_measurements_are_not_moved_and_no_more_are_expected_than_kept() {
        let mut samples = Samples::new(Keep::All, Seed(3), false);
        samples.expect(1000);
        let place = samples.kept.as_ptr();
        (0..1000).for_each(|index| samples.push(sample(0, index, 64, 5)));
        assert_eq!((samples.kept.as_ptr(), samples.kept.capacity()), (place, 1000));
        let mut few = Samples::new(Keep::AtMost(10), Seed(3), false);
        few.expect(u64::MAX);
        assert_eq!(few.kept.capacity(), 10);
        let mut all = Samples::new(Keep::All, Seed(3), false);
        all.expect(u64::MAX);
        assert_eq!(all.kept.capacity(), ROOM);
    }

    proptest! {
        #[test]
        fn sums_give_the_figures_of_all(flows in flows(), most in 0u32..30) {
            let (whole, summed) = (of(&flows, Keep::All), of(&flows, Keep::AtMost(most)));
            prop_assert!(whole.samples.is_whole());
            prop_assert_eq!(summed.samples.is_whole(), whole.samples.len() <= most as usize);
            prop_assert_eq!(summed.samples.len(), whole.samples.len().min(most as usize));
            prop_assert_eq!(summed.samples.count(), whole.samples.count());
            prop_assert_eq!(summed.sizes(), whole.sizes());
            prop_assert_eq!((summed.count(64), summed.flows(64)), (whole.count(64), whole.flows(64)));
            for cause in Cause::ALL {
                prop_assert_eq!(summed.booked(64, cause), whole.booked(64, cause));
            }
            for name in ["mean", "drop-first-last", "minimum"] {
                let rule: Estimator = name.parse().unwrap();
                for quantity in [Quantity::Delay, Quantity::Response, Quantity::Rate] {
                    let (a, b) = (whole.estimate(64, quantity, rule), summed.estimate(64, quantity, rule));
                    let (a, b) = (a.unwrap(), b.unwrap());
                    prop_assert!(within(b.value, a.value, 1e-9), "{name} {a:?} {b:?}");
                    prop_assert!(within(b.deviation, a.deviation, 1e-6), "{name} {a:?} {b:?}");
                    prop_assert_eq!((a.good, a.bad), (b.good, b.bad));
                }
                let (a, b) = (whole.throughput(64, rule).unwrap(), summed.throughput(64, rule).unwrap());
                prop_assert!(within(b.sum, a.sum, 1e-9) && a.conversations == b.conversations);
            }
        }

        #[test]
        fn quantiles_are_those_of_all_to_three_digits(flows in flows(), share in 0u16..=10_000) {
            let (whole, summed) = (of(&flows, Keep::All), of(&flows, Keep::AtMost(10)));
            let mut delays: Vec<f64> = whole.samples.iter().map(|it| it.delay().as_millis_f64()).collect();
            delays.sort_by(f64::total_cmp);
            let rule = Estimator::Percentile(share);
            let all = whole.estimate(64, Quantity::Delay, rule).unwrap();
            let found = summed.estimate(64, Quantity::Delay, rule).unwrap();
            prop_assert!(within(found.value, all.value, 0.001), "{} {}", found.value, all.value);
            let spread = summed.spread(64).unwrap();
            prop_assert!(within(spread.min, delays[0] * 1e6, 1e-12));
            prop_assert!(within(spread.max, delays[delays.len() - 1] * 1e6, 1e-12));
        }

        #[test]
        fn hawleys_rules_hold_on_the_histogram(flows in flows()) {
            let (whole, summed) = (of(&flows, Keep::All), of(&flows, Keep::AtMost(0)));
            for rule in [Estimator::HawleyAverage, Estimator::HawleyMinimum] {
                let a = whole.estimate(64, Quantity::Delay, rule).unwrap();
                let b = summed.estimate(64, Quantity::Delay, rule).unwrap();
                prop_assert_eq!(a.good + a.bad, b.good + b.bad);
                // A value may lie so near to the threshold that its bin falls on the other side.
                if a.good == b.good {
                    prop_assert!(within(b.value, a.value, 0.001), "{a:?} {b:?}");
                }
            }
        }

        #[test]
        fn neither_order_nor_parts_decide_what_is_kept(flows in flows(), most in 1u32..40) {
            let whole = of(&flows, Keep::AtMost(most));
            let mut joined = Samples::new(Keep::AtMost(most), Seed(3), false);
            for (flow, delays) in flows.iter().enumerate() {
                let mut part = Samples::new(Keep::AtMost(most), Seed(3), false);
                for (index, &micros) in delays.iter().enumerate() {
                    part.push(sample(flow as u32, index as u32, 64, micros));
                }
                joined.absorb(part);
            }
            joined.finish();
            let joined = TrafficRun { samples: joined, ..TrafficRun::default() };
            prop_assert_eq!(&joined.samples[..], &whole.samples[..]);
            let mean = |run: &TrafficRun| run.estimate(64, Quantity::Delay, Estimator::Mean).unwrap();
            prop_assert!(within(mean(&joined).value, mean(&whole).value, 1e-9));
        }
    }

    #[test]
    fn a_selection_is_fair() {
        let mut samples = Samples::new(Keep::AtMost(2_000), Seed(1), false);
        (0..40_000).for_each(|index| samples.push(sample(0, index, 64, 100)));
        samples.finish();
        assert_eq!((samples.len(), samples.count(), samples.is_whole()), (2_000, 40_000, false));
        let mut tenths = [0; 10];
        samples.iter().for_each(|sample| tenths[sample.index as usize / 4_000] += 1);
        // 200 each, with a deviation of 13.
        assert!(tenths.iter().all(|count| (140..=260).contains(count)), "{tenths:?}");
    }

    #[test]
    fn what_breaks_a_law_is_told_though_it_is_not_kept() {
        let mut samples = Samples::new(Keep::AtMost(0), Seed(1), false);
        (0..100).for_each(|index| samples.push(sample(0, index, 64, 100)));
        let mut odd = sample(0, 100, 64, 100);
        odd.steps = odd.steps.iter().take(1).collect();
        samples.push(odd.clone());
        assert!(samples.is_empty() && samples.told().any(|told| *told == odd));
        assert_eq!(samples.told().map(|told| told.end).max(), Some(odd.end), "and what ended last");
    }

    #[test]
    fn amounts_are_one_group() {
        let mut samples = Samples::new(Keep::AtMost(5), Seed(1), true);
        (0..50).for_each(|index| samples.push(sample(0, index, u64::from(index), 100)));
        let run = TrafficRun { samples, amounts: true, ..TrafficRun::default() };
        assert_eq!((run.sizes(), run.count(0)), (vec![0], 50));
    }

    #[test]
    fn what_is_not_all_kept_says_so() {
        let all = of(&[vec![100; 30]], Keep::All);
        assert_eq!(all.samples.selection(), None);
        let some = of(&[vec![100; 30]], Keep::AtMost(10));
        let note = some.samples.selection().unwrap();
        assert!(note.starts_with("10 of 30 samples are kept"), "{note}");
    }

    #[test]
    fn measurements_that_do_not_say_where_their_time_went_are_counted() {
        let untold = |index| Sample { steps: Steps::default(), ..sample(0, index, 64, 100) };
        for keep in [Keep::All, Keep::AtMost(1)] {
            let run = of(&[vec![100; 30]], keep);
            assert!(!run.any_untold(64) && !run.any_untold(65));
            let mut parts = [run.samples, Samples::new(keep, Seed(3), false)];
            parts[0].push(untold(30));
            (31..33).for_each(|index| parts[1].push(untold(index)));
            let [mut joined, later] = parts;
            joined.absorb(later);
            let groups = joined.groups().map(|groups| groups[&64].untold);
            assert_eq!(groups, (keep != Keep::All).then_some(3));
            let run = TrafficRun { samples: joined, ..TrafficRun::default() };
            assert!(run.any_untold(64));
        }
    }

    #[test]
    fn the_interval_of_a_quantile_lies_about_it() {
        let run = of(&[(1000..2000).collect()], Keep::AtMost(0));
        let found = run.estimate(64, Quantity::Delay, Estimator::Percentile(5000)).unwrap();
        let (low, high) = (found.low.unwrap(), found.high.unwrap());
        // Half of 1000 lies within 31 ranks of the middle with 95 %: 1.96 x sqrt(1000 / 4).
        assert!((1.466..1.472).contains(&low) && (1.528..1.534).contains(&high), "{low} {high}");
        assert!((1.498..1.502).contains(&found.value), "{}", found.value);
    }
}
