//! The degradation under load: the same round trips on an idle and on a busy path.

use serde::Serialize;
use trunkline_core::{Seed, Stream};
use trunkline_measure::{Interval, mean_interval, quantile};

const CONFIDENCE: f64 = 0.95;
const RESAMPLES: usize = 1000;
/// Of longer series every so many-th value is taken: the intervals hardly change, the time does.
const MANY: usize = 20_000;

/// A figure with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Figure {
    /// The figure.
    pub value: f64,
    /// Its interval.
    pub interval: Interval,
}

/// One quantile, idle and under load. Times in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Compared {
    /// The quantile's share: 0.5 for the median.
    pub share: f64,
    /// On the idle path.
    pub idle: f64,
    /// On the loaded path.
    pub loaded: f64,
    /// Loaded less idle: what the load's queue adds.
    pub difference: Figure,
    /// Loaded for each unit of idle. `None` if the idle time is 0.
    pub ratio: Option<Figure>,
}

/// The degradation of a path under load.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Degradation {
    /// Median, 90th and 99th percentile.
    pub quantiles: [Compared; 3],
    /// Round trips that a minute has room for one after the other, by the median: idle, and loaded
    /// ("responsiveness", draft-ietf-ippm-responsiveness, there by a trimmed mean of probes of several
    /// kinds; here of the probe's own round trips).
    pub per_minute: [Figure; 2],
}

impl Degradation {
    /// From response times in milliseconds, each series in the order of time. The intervals are
    /// percentile bootstraps that draw blocks of successive values, as long as the values resemble their
    /// neighbours (circular block bootstrap, Politis and Romano 1992), from both series independently:
    /// under load, delays come in waves, and drawing single values would make too much of them. The same
    /// values and seed give the same figures. `None` if either series is empty.
    pub fn of(idle: &[f64], loaded: &[f64], seed: Seed) -> Option<Degradation> {
        let mut stream = seed.stream("degradation");
        let idle = Series::new(idle)?;
        let loaded = Series::new(loaded)?;
        let draws: Vec<[[f64; 3]; 2]> =
            (0..RESAMPLES).map(|_| [idle.draw(&mut stream), loaded.draw(&mut stream)]).collect();
        let (before, after) = (idle.quantiles(), loaded.quantiles());
        let quantiles = [0, 1, 2].map(|at| compared(at, before[at], after[at], &draws));
        let per_minute = [(0, before[0]), (1, after[0])].map(|(which, median)| {
            let minute = |median: f64| 60_000.0 / median;
            figure(minute(median), draws.iter().map(|draw| minute(draw[which][0])))
        });
        Some(Degradation { quantiles, per_minute })
    }
}

const SHARES: [f64; 3] = [0.5, 0.9, 0.99];

fn compared(at: usize, idle: f64, loaded: f64, draws: &[[[f64; 3]; 2]]) -> Compared {
    let difference = figure(loaded - idle, draws.iter().map(|draw| draw[1][at] - draw[0][at]));
    let ratio = (idle > 0.0)
        .then(|| figure(loaded / idle, draws.iter().map(|draw| draw[1][at] / draw[0][at])));
    Compared { share: SHARES[at], idle, loaded, difference, ratio }
}

fn figure(value: f64, draws: impl Iterator<Item = f64>) -> Figure {
    let draws: Vec<f64> = draws.collect();
    let beyond = (1.0 - CONFIDENCE) / 2.0;
    let (low, high) = (quantile(&draws, beyond), quantile(&draws, 1.0 - beyond));
    Figure { value, interval: Interval { low, high } }
}

/// A series to be drawn from.
struct Series {
    values: Vec<f64>,
    /// Values of a block.
    block: usize,
}

impl Series {
    fn new(values: &[f64]) -> Option<Series> {
        let every = values.len().div_ceil(MANY).max(1);
        let values: Vec<f64> = values.iter().copied().step_by(every).collect();
        let block = mean_interval(&values, CONFIDENCE).map_or(1, |found| found.batch);
        (!values.is_empty()).then_some(Series { values, block })
    }

    fn quantiles(&self) -> [f64; 3] {
        SHARES.map(|share| quantile(&self.values, share))
    }

    /// The quantiles of a series of the same length, put together from blocks drawn by chance.
    fn draw(&self, stream: &mut Stream) -> [f64; 3] {
        let count = self.values.len();
        let mut drawn = Vec::with_capacity(count + self.block);
        while drawn.len() < count {
            let from = stream.below(count as u64) as usize;
            drawn.extend((from..from + self.block).map(|index| self.values[index % count]));
        }
        drawn.truncate(count);
        SHARES.map(|share| quantile(&drawn, share))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn exponential(stream: &mut Stream, least: f64, mean: f64, count: usize) -> Vec<f64> {
        (0..count).map(|_| least - mean * libm::log(1.0 - stream.unit())).collect()
    }

    #[test]
    fn what_the_load_adds_is_found() {
        let mut stream = Seed(3).stream("load");
        let idle = exponential(&mut stream, 20.0, 1.0, 400);
        let loaded = exponential(&mut stream, 50.0, 10.0, 400);
        let found = Degradation::of(&idle, &loaded, Seed(1)).unwrap();
        let right = [0.5f64, 0.1, 0.01].map(|above| 30.0 - 9.0 * libm::log(above));
        for (one, right) in found.quantiles.iter().zip(right) {
            assert!(one.difference.interval.contains(right), "{one:?} {right}");
            assert!(one.difference.interval.low > 20.0);
        }
        let [before, after] = found.per_minute;
        assert!(before.interval.contains(60_000.0 / (20.0 + std::f64::consts::LN_2)));
        assert!(after.interval.high < before.interval.low);
    }

    #[test]
    fn the_same_twice_is_no_worse() {
        let values = exponential(&mut Seed(4).stream("load"), 10.0, 5.0, 300);
        let found = Degradation::of(&values, &values, Seed(1)).unwrap();
        for one in found.quantiles {
            assert_eq!((one.difference.value, one.ratio.unwrap().value), (0.0, 1.0));
            assert!(one.difference.interval.contains(0.0));
        }
        assert_eq!(Degradation::of(&values, &[], Seed(1)), None);
    }

    #[test]
    fn waves_widen_the_interval() {
        let mut stream = Seed(5).stream("load");
        let mut level = 0.0;
        let wave: Vec<f64> = (0..600)
            .map(|_| {
                level = 0.95 * level + stream.normal();
                40.0 + level
            })
            .collect();
        let mut mixed = wave.clone();
        for index in (1..mixed.len()).rev() {
            mixed.swap(index, stream.below(index as u64 + 1) as usize);
        }
        let width = |series: &[f64]| {
            let ends =
                Degradation::of(&[20.0; 9], series, Seed(1)).unwrap().quantiles[0].difference;
            ends.interval.high - ends.interval.low
        };
        assert!(width(&wave) > 2.0 * width(&mixed));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn a_constant_shift_is_a_constant_difference(
            values in prop::collection::vec(1.0..100.0f64, 1..60),
            shift in 0.0..100.0f64,
        ) {
            let moved: Vec<f64> = values.iter().map(|value| value + shift).collect();
            let found = Degradation::of(&values, &moved, Seed(1)).unwrap();
            for one in found.quantiles {
                prop_assert!((one.difference.value - shift).abs() < 1e-9);
                prop_assert!(one.difference.interval.low <= shift + 1e-9);
                prop_assert!(one.difference.interval.high >= shift - 1e-9);
            }
            prop_assert_eq!(Degradation::of(&values, &moved, Seed(1)), Some(found));
        }
    }
}
