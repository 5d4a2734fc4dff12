//! Measurements that are not all kept: sums, extremes and histograms, group by group.

use super::series::{Moments, Series, batch_means};
use crate::confidence::{CONFIDENCE, mean_interval};
use crate::spread;
use crate::stats::place_of;
use crate::times::{OTHERWISE, TOO_MANY, total};
use crate::{Estimate, Estimator, Interval, Quantity, Sample, Step};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;
use trunkline_core::{Cause, Span, Time};

/// Significant decimal digits of the histograms: a value read from one is at most 0.1 % off.
const DIGITS: u8 = 3;
/// A histogram counts whole nanoseconds and thousandths of a byte per second.
const FINE: [f64; QUANTITIES] = [1e6, 1e6, 1e3];
const QUANTITIES: usize = 3;

/// The place of a quantity's sums. The total rate is made of the flows' rates.
fn place(quantity: Quantity) -> usize {
    match quantity {
        Quantity::Delay => 0,
        Quantity::Response => 1,
        Quantity::Rate | Quantity::TotalRate => 2,
    }
}

/// The measurements of one size, or of all if sizes are amounts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Streamed {
    /// The number of measurements.
    pub count: u64,
    /// The time booked in all, by place and cause, in the order in which they first occurred.
    pub steps: Vec<Step>,
    /// The number that did not say what their time was spent on but for one step at a host.
    pub untold: u64,
    /// User bytes of all.
    pub bytes: u64,
    /// Of each flow the first start and the last end.
    pub reach: BTreeMap<u32, (Time, Time)>,
    flows: BTreeMap<u32, [Series; QUANTITIES]>,
    #[serde(serialize_with = "counted", deserialize_with = "recounted")]
    spread: Spread,
}

/// Different values up to which they are counted one by one: 16 KB at most. A histogram of more takes some hundred.
const FEW: usize = 1024;

/// The number of recordings of each value of a quantity.
type Values = spread::Spread<DIGITS, { u64::MAX }, FEW>;

/// Those of each quantity.
type Spread = [Values; QUANTITIES];

/// Writes how often each value was recorded that the histograms tell apart.
fn counted<S: Serializer>(spread: &Spread, serializer: S) -> Result<S::Ok, S::Error> {
    spread.each_ref().map(Values::recorded).serialize(serializer)
}

/// Reads them again.
fn recounted<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Spread, D::Error> {
    let counts = <[Vec<(u64, u64)>; QUANTITIES]>::deserialize(deserializer)?;
    let mut spread = Streamed::default().spread;
    for (histogram, counts) in std::iter::zip(&mut spread, counts) {
        total(&counts).ok_or(TOO_MANY).map_err(serde::de::Error::custom)?;
        for &(value, count) in &counts {
            histogram.record(value, count);
        }
        if histogram.recorded() != counts {
            return Err(serde::de::Error::custom(OTHERWISE));
        }
    }
    Ok(spread)
}

impl Default for Streamed {
    fn default() -> Streamed {
        Streamed {
            count: 0,
            steps: Vec::new(),
            untold: 0,
            bytes: 0,
            reach: BTreeMap::new(),
            flows: BTreeMap::new(),
            spread: [(); QUANTITIES].map(|()| Values::small()),
        }
    }
}

impl Streamed {
    /// Adds a measurement; those of one flow in order of time.
    pub(crate) fn add(&mut self, sample: &Sample) {
        self.count += 1;
        self.untold += u64::from(sample.is_untold());
        self.bytes += sample.size;
        self.extend(sample.flow, (sample.start, sample.end));
        sample.steps.iter().for_each(|step| self.book(step));
        let series = self.flows.entry(sample.flow).or_default();
        for quantity in [Quantity::Delay, Quantity::Response, Quantity::Rate] {
            let (at, value) = (place(quantity), quantity.of(sample));
            series[at].push(value);
            self.spread[at].record((value * FINE[at]).round() as u64, 1);
        }
    }

    fn extend(&mut self, flow: u32, (from, to): (Time, Time)) {
        let known = self.reach.entry(flow).or_insert((from, to));
        *known = (known.0.min(from), known.1.max(to));
    }

    fn book(&mut self, step: Step) {
        match self.steps.iter_mut().find(|sum| (sum.place, sum.cause) == (step.place, step.cause)) {
            Some(sum) => sum.span += step.span,
            None if step.span > Span::ZERO => self.steps.push(step),
            None => {}
        }
    }

    /// Adds the measurements of another; of a flow that both have, the other's came later.
    pub(crate) fn absorb(&mut self, other: &Streamed) {
        self.count += other.count;
        self.untold += other.untold;
        self.bytes += other.bytes;
        other.reach.iter().for_each(|(&flow, &times)| self.extend(flow, times));
        other.steps.iter().for_each(|step| self.book(*step));
        for (flow, theirs) in &other.flows {
            let ours = self.flows.entry(*flow).or_default();
            std::iter::zip(ours, theirs).for_each(|(our, their)| our.absorb(their));
        }
        for (our, their) in std::iter::zip(&mut self.spread, &other.spread) {
            our.add(their);
        }
    }

    /// The number of flows.
    pub(crate) fn flows(&self) -> usize {
        self.flows.len()
    }

    /// The time booked under `cause`.
    pub(crate) fn booked(&self, cause: Cause) -> Span {
        self.steps.iter().filter(|step| step.cause == cause).map(|step| step.span).sum()
    }

    /// The figure of all flows together, as [`Estimator::estimate_flows`].
    pub(crate) fn estimate(&self, quantity: Quantity, rule: Estimator) -> Option<Estimate> {
        let moments = self.moments(quantity, rule.ends())?;
        if moments.count == 0 {
            return None;
        }
        Some(match rule {
            Estimator::Mean | Estimator::DropFirstLast => {
                plain(moments, moments.mean, self.around(quantity, moments.mean))
            }
            Estimator::Minimum => plain(moments, self.extremes(quantity).0, None),
            Estimator::Percentile(share) => {
                let share = f64::from(share) / 1e4;
                let interval = self.quantile_interval(quantity, share);
                plain(moments, self.quantile(quantity, share), Some(interval))
            }
            Estimator::HawleyMinimum | Estimator::HawleyAverage => self.trimmed(quantity, rule)?,
        })
    }

    /// Each flow's own figure, in ascending order of flows. Percentiles of one flow are not known: `None`.
    pub(crate) fn of_flows(&self, quantity: Quantity, rule: Estimator) -> Option<Vec<f64>> {
        let one = |flow: &[Series; QUANTITIES]| {
            let series = &flow[place(quantity)];
            let moments = series.without_ends(rule.ends())?;
            match rule {
                _ if moments.count == 0 => None,
                Estimator::Mean | Estimator::DropFirstLast => Some(moments.mean),
                Estimator::Minimum => Some(series.min()),
                _ => None,
            }
        };
        self.flows.values().map(one).collect()
    }

    /// How far the interval of each flow's own mean reaches below and above it. Of other rules it is not known: `None`.
    pub(crate) fn halves_of_flows(
        &self,
        quantity: Quantity,
        rule: Estimator,
    ) -> Option<Vec<(f64, f64)>> {
        if !matches!(rule, Estimator::Mean | Estimator::DropFirstLast) {
            return None;
        }
        let half = |flow: &Series| {
            let found = mean_interval(&batch_means(std::iter::once(flow)), CONFIDENCE)?;
            Some((found.ends.high - found.mean, found.ends.high - found.mean))
        };
        self.series(quantity).map(half).collect()
    }

    /// Least and greatest.
    pub(crate) fn extremes(&self, quantity: Quantity) -> (f64, f64) {
        let all = || self.series(quantity);
        let least = all().map(Series::min).fold(f64::INFINITY, f64::min);
        (least, all().map(Series::max).fold(f64::NEG_INFINITY, f64::max))
    }

    /// The value that `share` of all do not exceed, interpolated as by [`crate::quantile`], to [`DIGITS`] digits; the
    /// extremes exactly.
    pub(crate) fn quantile(&self, quantity: Quantity, share: f64) -> f64 {
        let (least, most) = self.extremes(quantity);
        match share {
            share if share <= 0.0 => least,
            share if share >= 1.0 => most,
            share => {
                let (index, fraction) = place_of(self.count as usize, share);
                let lower = self.ranked(quantity, index);
                let upper = if fraction > 0.0 { self.ranked(quantity, index + 1) } else { lower };
                (lower + (upper - lower) * fraction).clamp(least, most)
            }
        }
    }

    /// The value at `index` of all in ascending order, to [`DIGITS`] digits.
    fn ranked(&self, quantity: Quantity, index: usize) -> f64 {
        let at = place(quantity);
        // Half a rank below the one meant: rounding cannot make it the next.
        let share = (index as f64 + 0.5) / self.count as f64;
        Values::median(self.spread[at].quantile(share)) as f64 / FINE[at]
    }

    fn series(&self, quantity: Quantity) -> impl Iterator<Item = &Series> + Clone {
        self.flows.values().map(move |flow| &flow[place(quantity)])
    }

    fn moments(&self, quantity: Quantity, ends: usize) -> Option<Moments> {
        let mut flows = self.series(quantity).map(|flow| flow.without_ends(ends));
        flows.try_fold(Moments::default(), |sum, flow| Some(sum.joined(flow?)))
    }

    /// The interval of the mean by batch means; what is dropped at ends stays in the batches.
    fn around(&self, quantity: Quantity, mean: f64) -> Option<Interval> {
        let found = mean_interval(&batch_means(self.series(quantity)), CONFIDENCE)?;
        let half = found.ends.high - found.mean;
        Some(Interval { low: mean - half, high: mean + half })
    }

    fn quantile_interval(&self, quantity: Quantity, share: f64) -> Interval {
        let half = crate::confidence::binomial_half(self.count, share, CONFIDENCE);
        Interval {
            low: self.quantile(quantity, share - half),
            high: self.quantile(quantity, share + half),
        }
    }

    /// The rules that leave out what lies above a threshold, on the histogram.
    fn trimmed(&self, quantity: Quantity, rule: Estimator) -> Option<Estimate> {
        let all = self.weighted(quantity, rule.ends())?;
        let (kept, limit) = match rule {
            Estimator::HawleyMinimum => {
                let once = all.up_to(all.threshold(1.0));
                let limit = once.threshold(1.0);
                (once.up_to(limit), limit)
            }
            _ => {
                let limit = all.threshold(8.0);
                (all.up_to(limit), limit)
            }
        };
        let moments = kept.moments();
        let around = || self.around(quantity, moments.0);
        let ends = if rule == Estimator::HawleyAverage { around() } else { None };
        let (low, high) = ends.map(|ends| (ends.low, ends.high)).unzip();
        Some(Estimate {
            value: moments.0,
            deviation: moments.1,
            good: kept.count() as usize,
            bad: (all.count() - kept.count()) as usize,
            threshold: Some(limit),
            low,
            high,
        })
    }

    /// The histogram without what is dropped at the ends of flows.
    fn weighted(&self, quantity: Quantity, ends: usize) -> Option<Weighted> {
        let (at, spread) = (place(quantity), &self.spread[place(quantity)]);
        let counts = spread.recorded().into_iter();
        let mut counts: BTreeMap<u64, u64> =
            counts.map(|(value, count)| (Values::median(value), count)).collect();
        for flow in self.series(quantity) {
            for value in flow.ends(ends)? {
                let bin = Values::median((value * FINE[at]).round() as u64);
                counts.entry(bin).and_modify(|count| *count -= 1);
            }
        }
        counts.retain(|_, count| *count > 0);
        let bins = counts.into_iter().map(|(bin, count)| (bin as f64 / FINE[at], count));
        Some(Weighted(bins.collect()))
    }
}

fn plain(moments: Moments, value: f64, ends: Option<Interval>) -> Estimate {
    let (low, high) = ends.map(|ends| (ends.low, ends.high)).unzip();
    let good = moments.count as usize;
    Estimate { value, deviation: moments.deviation(), good, bad: 0, threshold: None, low, high }
}

/// Values with how often each occurs, ascending.
struct Weighted(Vec<(f64, u64)>);

impl Weighted {
    fn count(&self) -> u64 {
        self.0.iter().map(|(_, count)| count).sum()
    }

    /// Mean and deviation.
    fn moments(&self) -> (f64, f64) {
        let n = self.count() as f64;
        let mean = self.0.iter().map(|&(value, count)| value * count as f64).sum::<f64>() / n;
        let square = |&(value, count): &(f64, u64)| (value - mean) * (value - mean) * count as f64;
        (mean, (self.0.iter().map(square).sum::<f64>() / n).sqrt())
    }

    /// So many deviations above the mean, but never below the least.
    fn threshold(&self, deviations: f64) -> f64 {
        let (mean, deviation) = self.moments();
        (mean + deviations * deviation).max(self.0[0].0)
    }

    fn up_to(&self, threshold: f64) -> Weighted {
        Weighted(self.0.iter().copied().filter(|&(value, _)| value <= threshold).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Steps;

    /// Of very many traffics with few measurements each, none makes a histogram.
    #[test]
    fn few_measurements_take_little() {
        let mut streamed = Streamed::default();
        for index in 0..300 {
            let start = Time::from_nanos(1_000_000 * u64::from(index));
            let end = start + Span::from_nanos(1_000_000 + 7_919 * u64::from(index));
            let (intended, steps) = (start, Steps::default());
            streamed.add(&Sample { flow: 0, index, size: 1500, intended, start, end, steps });
        }
        for values in &streamed.spread {
            let spread::Spread::Few(few) = values else { panic!("{values:?}") };
            let bytes = few.capacity() * size_of_val(&few[0]);
            assert!(bytes <= 300 * 20, "{bytes} bytes for {} values", few.len());
        }
    }

    #[test]
    fn weighted_values_count_as_often_as_they_occur() {
        let weighted = Weighted(vec![(1.0, 2), (4.0, 1), (11.0, 1)]);
        // Mean 17 / 4, squares (2 x 3.25^2 + 0.25^2 + 6.75^2) / 4.
        let (mean, deviation) = weighted.moments();
        assert_eq!((weighted.count(), mean), (4, 4.25));
        assert!((deviation - (66.75_f64 / 4.0).sqrt()).abs() < 1e-12, "{deviation}");
        assert_eq!(weighted.up_to(4.0).0, [(1.0, 2), (4.0, 1)]);
        assert_eq!(weighted.threshold(-9.0), 1.0);
    }
}
