//! The trust that a figure deserves: bootstrap intervals, batch means, repetitions needed.

use crate::stats::{
    lag_one_correlation, mean, normal_quantile, place_of, quantile_of, sample_deviation,
    student_quantile,
};
use serde::Serialize;
use trunkline_core::Stream;

/// The confidence that [`Estimator`](crate::Estimator)s quote.
pub(crate) const CONFIDENCE: f64 = 0.95;
/// Resamples of a bootstrap: enough for the ends of a 95 % interval, of which 25 lie beyond each.
const RESAMPLES: usize = 1000;
/// More values than this are not resampled for a quantile.
pub(crate) const MANY: usize = 5_000;
/// Fewest batches: with fewer the t quantile and the test of correlation grow too coarse.
const BATCHES: usize = 20;

/// A confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Interval {
    /// Whether it covers `value`.
    pub fn contains(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }
}

/// The bootstrap interval of the [`quantile`](crate::quantile) of `share`. Near the ends it is no wider
/// than the values seen: of `p99` little can be known from fewer than some hundreds. `None` without values.
///
/// A thousand times as many values are drawn with replacement, and the interval spans the middle `confidence` of
/// the quantiles found (the percentile bootstrap, Efron 1979). The values count as independent.
///
/// Of more than five thousand values it is taken without resampling, as what the resampling tends to:
/// how many of a resample lie below a value is binomially distributed, so that the ends are the quantiles
/// of `share -+ z sqrt(share (1 - share) / n)`.
pub fn bootstrap_quantile(
    values: &[f64],
    share: f64,
    confidence: f64,
    stream: &mut Stream,
) -> Option<Interval> {
    if values.is_empty() {
        return None;
    }
    if values.len() > MANY {
        return Some(binomial_quantile(values, share, confidence));
    }
    let mut resample = Resample::of(values);
    let mut found: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            resample.draw(stream);
            resample.quantile(share)
        })
        .collect();
    let beyond = (1.0 - confidence) / 2.0;
    let low = quantile_of(&mut found, beyond);
    Some(Interval { low, high: quantile_of(&mut found, 1.0 - beyond) })
}

/// Values drawn with replacement, kept as how often each was drawn: they are in order without being sorted.
struct Resample {
    /// All values, ascending.
    sorted: Vec<f64>,
    /// The place there of each value as given.
    rank: Vec<u16>,
    /// The number of times that each was drawn, by its place there.
    drawn: Vec<u16>,
}

impl Resample {
    /// An empty resample of at most [`MANY`] values.
    fn of(values: &[f64]) -> Resample {
        let mut order: Vec<usize> = (0..values.len()).collect();
        order.sort_by(|&one, &other| values[one].total_cmp(&values[other]));
        let mut rank = vec![0; values.len()];
        order.iter().enumerate().for_each(|(place, &index)| rank[index] = place as u16);
        let sorted = order.into_iter().map(|index| values[index]).collect();
        Resample { sorted, rank, drawn: vec![0; values.len()] }
    }

    /// Draws as many values as there are.
    fn draw(&mut self, stream: &mut Stream) {
        self.drawn.fill(0);
        let bound = self.rank.len() as u64;
        for _ in 0..bound {
            let rank = self.rank[stream.below(bound) as usize];
            self.drawn[usize::from(rank)] += 1;
        }
    }

    /// The quantile of what was drawn, as [`quantile`](crate::quantile) defines it.
    fn quantile(&self, share: f64) -> f64 {
        let (index, fraction) = place_of(self.drawn.len(), share);
        let mut counts = self.drawn.iter();
        let (mut passed, mut place) = (0, 0);
        for (at, &count) in counts.by_ref().enumerate() {
            passed += usize::from(count);
            place = at;
            if passed > index {
                break;
            }
        }
        let lower = self.sorted[place];
        if fraction == 0.0 {
            return lower;
        }
        let behind = if passed > index + 1 { None } else { counts.position(|&count| count > 0) };
        let upper = behind.map_or(lower, |behind| self.sorted[place + 1 + behind]);
        lower + (upper - lower) * fraction
    }
}

pub(crate) fn binomial_quantile(values: &[f64], share: f64, confidence: f64) -> Interval {
    let half = binomial_half(values.len() as u64, share, confidence);
    let mut values = values.to_vec();
    let low = quantile_of(&mut values, share - half);
    Interval { low, high: quantile_of(&mut values, share + half) }
}

/// Half the width, as a share, between the quantiles that a quantile's interval spans.
pub(crate) fn binomial_half(count: u64, share: f64, confidence: f64) -> f64 {
    normal_quantile((1.0 + confidence) / 2.0) * (share * (1.0 - share) / count as f64).sqrt()
}

/// A mean with the confidence interval that correlated values allow.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct MeanInterval {
    /// The mean of all values.
    pub mean: f64,
    /// Its interval.
    pub ends: Interval,
    /// Values in each batch.
    pub batch: usize,
    /// Batches.
    pub batches: usize,
    /// Correlation of each batch's mean with the next one's.
    pub correlation: f64,
    /// Whether that correlation is small enough for the interval to be trusted. If it is not, the series is
    /// too short for how slowly it changes, and the interval too narrow.
    pub trusted: bool,
}

/// The mean's interval by batch means, with the batches doubled until the means of neighbouring batches
/// are no longer correlated (Fishman 1978): `mean +- t(m - 1) s / sqrt(m)` over `m` batch means. With
/// fewer than forty values each is its own batch. `None` for fewer than two values.
///
/// The values left over when the batches are cut are left out at the start: a transient would be there.
pub fn mean_interval(values: &[f64], confidence: f64) -> Option<MeanInterval> {
    if values.len() < 2 {
        return None;
    }
    let mut batch = 1;
    while values.len() / (batch * 2) >= BATCHES && correlated(&batch_means(values, batch)) {
        batch *= 2;
    }
    let means = batch_means(values, batch);
    let t = student_quantile((1.0 + confidence) / 2.0, means.len() as u64 - 1);
    let half = t * sample_deviation(&means) / (means.len() as f64).sqrt();
    let center = mean(values);
    Some(MeanInterval {
        mean: center,
        ends: Interval { low: center - half, high: center + half },
        batch,
        batches: means.len(),
        correlation: lag_one_correlation(&means),
        trusted: !correlated(&means),
    })
}

fn batch_means(values: &[f64], batch: usize) -> Vec<f64> {
    values[values.len() % batch..].chunks_exact(batch).map(mean).collect()
}

/// Whether the correlation of neighbours is more than chance would bring in one of twenty uncorrelated series.
/// Its deviation is about `1 / sqrt(m)`.
fn correlated(means: &[f64]) -> bool {
    lag_one_correlation(means) > normal_quantile(0.95) / (means.len() as f64).sqrt()
}

/// The number of measurements such as these that bring the mean's interval within `precision` (0.01 for one
/// percent) of the mean on either side: the least `n` with `t(n - 1) s / sqrt(n) <= precision |mean|`
/// (Law, *Simulation Modeling and Analysis*, section 9.4.1). `s` is that of the batch means, scaled to
/// one value by the root of their size, so that correlation is paid for. `None` for fewer than two
/// values, or if the mean or the precision is zero.
pub fn repetitions(values: &[f64], precision: f64, confidence: f64) -> Option<u64> {
    let found = mean_interval(values, confidence)?;
    let allowed = precision * found.mean.abs();
    if allowed.is_nan() || allowed <= 0.0 {
        return None;
    }
    let spread = sample_deviation(&batch_means(values, found.batch)) * (found.batch as f64).sqrt();
    let enough = |n: u64| {
        student_quantile((1.0 + confidence) / 2.0, n - 1) * spread <= allowed * (n as f64).sqrt()
    };
    if spread == 0.0 {
        return Some(2);
    }
    let high = (1..63).map(|power| 1u64 << power).find(|&n| enough(n))?;
    Some(least(high / 2, high, enough))
}

/// The least number above `low` and up to `high` that is enough, if `high` is.
fn least(low: u64, high: u64, enough: impl Fn(u64) -> bool) -> u64 {
    let (mut low, mut high) = (low, high);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if middle > 1 && enough(middle) { high = middle } else { low = middle }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use trunkline_core::Seed;

    /// Exponentially distributed, mean 1, median ln 2.
    fn skewed(stream: &mut Stream, count: usize) -> Vec<f64> {
        (0..count).map(|_| -libm::log(1.0 - stream.unit())).collect()
    }

    /// A series in which each value keeps `memory` of the one before; mean 100, deviation 1.
    fn slow(stream: &mut Stream, memory: f64, count: usize) -> Vec<f64> {
        let fresh = (1.0 - memory * memory).sqrt();
        let mut state = stream.normal();
        (0..count)
            .map(|_| {
                state = memory * state + fresh * stream.normal();
                100.0 + state
            })
            .collect()
    }

    /// In how many of 300 sets the interval covers the truth.
    fn covered(truth: f64, mut interval: impl FnMut(&mut Stream) -> Interval) -> u32 {
        let mut stream = Seed(5).stream("coverage");
        (0..300).map(|_| u32::from(interval(&mut stream).contains(truth))).sum()
    }

    #[test]
    fn the_bootstrap_covers_the_median_about_as_often_as_it_says() {
        let count = covered(std::f64::consts::LN_2, |stream| {
            let values = skewed(stream, 60);
            bootstrap_quantile(&values, 0.5, 0.95, stream).unwrap()
        });
        // 285 expected; the binomial deviation is 3.8.
        assert!((270..=297).contains(&count), "{count} of 300");
    }

    #[test]
    fn resampling_tends_to_what_replaces_it() {
        let mut stream = Seed(5).stream("many");
        let values = skewed(&mut stream, MANY);
        for share in [0.5, 0.9] {
            let drawn = bootstrap_quantile(&values, share, 0.95, &mut stream).unwrap();
            let taken = binomial_quantile(&values, share, 0.95);
            let width = taken.high - taken.low;
            assert!((drawn.low - taken.low).abs() < 0.2 * width, "{drawn:?} {taken:?}");
            assert!((drawn.high - taken.high).abs() < 0.2 * width, "{drawn:?} {taken:?}");
        }
    }

    #[test]
    fn batch_means_cover_the_mean_of_a_correlated_series() {
        let batched =
            covered(100.0, |stream| mean_interval(&slow(stream, 0.8, 2000), 0.95).unwrap().ends);
        assert!((264..=297).contains(&batched), "{batched} of 300");
        // What each value for itself would claim is far too narrow.
        let naive = covered(100.0, |stream| {
            let values = slow(stream, 0.8, 2000);
            let half = 1.96 * sample_deviation(&values) / (values.len() as f64).sqrt();
            Interval { low: mean(&values) - half, high: mean(&values) + half }
        });
        assert!(naive < 220, "{naive} of 300");
    }

    #[test]
    fn a_series_too_short_for_its_memory_is_not_trusted() {
        let mut stream = Seed(5).stream("short");
        let drift: Vec<f64> = (0..60).map(f64::from).collect();
        assert!(!mean_interval(&drift, 0.95).unwrap().trusted);
        let found = mean_interval(&slow(&mut stream, 0.0, 400), 0.95).unwrap();
        assert!(found.trusted && found.batch <= 2);
        assert_eq!(mean_interval(&[1.0], 0.95), None);
    }

    #[test]
    fn repetitions_follow_spread_and_precision() {
        let values: Vec<f64> = (0..40).map(|i| if i % 2 == 0 { 90.0 } else { 110.0 }).collect();
        // s = 10.13: (1.96 * 10.13 / 1)^2 = 394, and a little more for t.
        let one_percent = repetitions(&values, 0.01, 0.95).unwrap();
        assert!((394..=400).contains(&one_percent), "{one_percent}");
        assert_eq!(repetitions(&[5.0; 9], 0.01, 0.95), Some(2));
        assert_eq!(repetitions(&[-1.0, 1.0], 0.01, 0.95), None);
        assert_eq!(repetitions(&values, 0.0, 0.95), None);
    }

    proptest! {
        #[test]
        fn repetitions_are_enough_and_no_fewer_are(
            values in prop::collection::vec(1.0..10.0f64, 2..30),
            precision in 0.005..0.5f64,
        ) {
            let n = repetitions(&values, precision, 0.95).unwrap();
            let half = |n: u64| {
                student_quantile(0.975, n - 1) * sample_deviation(&values) / (n as f64).sqrt()
            };
            let allowed = precision * mean(&values);
            prop_assert!(half(n) <= allowed * (1.0 + 1e-9));
            prop_assert!(n == 2 || half(n - 1) > allowed * (1.0 - 1e-9));
        }

        #[test]
        fn counting_a_resample_is_sorting_it(
            values in prop::collection::vec(prop_oneof![-2.0..2.0f64, Just(1.0)], 1..40),
            share in prop_oneof![0.0..=1.0f64, Just(0.0), Just(0.5), Just(1.0)],
            seed: u64,
        ) {
            let stream = || Seed(seed).stream("test");
            let (mut ours, mut plain) = (stream(), stream());
            let mut resample = Resample::of(&values);
            for _ in 0..3 {
                resample.draw(&mut ours);
                let draw = |_| values[plain.below(values.len() as u64) as usize];
                let drawn: Vec<f64> = (0..values.len()).map(draw).collect();
                let expected = crate::quantile(&drawn, share);
                prop_assert_eq!(resample.quantile(share).to_bits(), expected.to_bits());
            }
        }

        #[test]
        fn a_bootstrap_stays_among_the_values_and_repeats(
            values in prop::collection::vec(-1e3..1e3f64, 1..30),
            seed: u64,
        ) {
            let interval = || {
                bootstrap_quantile(&values, 0.5, 0.9, &mut Seed(seed).stream("test")).unwrap()
            };
            let found = interval();
            let (least, most) = (crate::quantile(&values, 0.0), crate::quantile(&values, 1.0));
            prop_assert!(least <= found.low && found.low <= found.high && found.high <= most);
            prop_assert_eq!(interval(), found);
        }
    }
}
