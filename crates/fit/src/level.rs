//! One level for each message size, from repeated round trips.

use std::collections::BTreeMap;
use trunkline_measure::{mean, quantile};

/// The scatter of the level of `n` values, in standard deviations over `sqrt(n)`: that is what the lower
/// quartile of normally distributed values does (1.36), and the mean about it a little less.
const EFFICIENCY: f64 = 1.3;
/// The part of the values below a level's own, and the part below their upper end.
const PART: (f64, f64) = (0.125, 0.375);
/// The distance of the two ends, in standard deviations of normally distributed values.
const PART_WIDTH: f64 = 0.8317;
/// Sizes on each side whose scatter is looked at too: a few values tell little of it.
const NEIGHBOURS: usize = 2;
/// Nothing is known better than this: a system's clock readings and scheduler, in milliseconds.
const FLOOR: f64 = 0.0005;
/// Nor better than this part of itself: the clock that paces an emulated line.
const FLOOR_SHARE: f64 = 2e-5;
/// The standard error of a level if nothing was repeated, as a part of the least level.
const UNREPEATED: f64 = 0.01;

/// The level of one size.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Level {
    /// User bytes.
    pub size: u32,
    /// Milliseconds.
    pub millis: f64,
    /// Standard error of `millis`.
    pub error: f64,
    /// Its distance from any curve beyond that, in milliseconds, as far as is known.
    pub misfit: f64,
    /// The values behind it.
    pub values: Vec<f64>,
}

/// The level of some values: the mean of those about their lower quartile. Waiting only ever lengthens a
/// round trip, so that the upper values say little about the path. The least ones are left out as well
/// (Vande Water 1988 §2.5 used the minimum): a sender that is held up between an answer's acknowledgement
/// and its next message finds the line empty, which is not what happens otherwise.
pub(crate) fn level(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    let count = values.len() as f64;
    let from = (count * PART.0) as usize;
    let to = (libm::ceil(count * PART.1) as usize).max(from + 1);
    mean(&values[from..to.min(values.len())])
}

/// Levels by size, ascending, of `(size, milliseconds)` in any order.
pub(crate) fn levels(samples: &[(u32, f64)]) -> Vec<Level> {
    let mut sizes: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for &(size, millis) in samples.iter().filter(|(_, millis)| millis.is_finite()) {
        sizes.entry(size).or_default().push(millis);
    }
    let deviations = deviations(&sizes);
    let error = |millis: f64, count: usize, deviation: f64| {
        let noise = EFFICIENCY * deviation / (count as f64).sqrt();
        noise.hypot(FLOOR + FLOOR_SHARE * millis.abs())
    };
    let one = |((size, mut values), deviation): ((u32, Vec<f64>), f64)| {
        let millis = level(&mut values);
        let error = error(millis, values.len(), deviation);
        Level { size, millis, error, misfit: 0.0, values }
    };
    sizes.into_iter().zip(deviations).map(one).collect()
}

/// The standard deviation that the quicker values of each size have, as far as it and its neighbours tell:
/// messages that take several turns of the window are held up in each of them and scatter more. If
/// nothing was repeated it is taken as one percent of the least value.
fn deviations(sizes: &BTreeMap<u32, Vec<f64>>) -> Vec<f64> {
    let own: Vec<Option<f64>> = sizes.values().map(|values| scatter(values)).collect();
    let known: Vec<f64> = own.iter().copied().flatten().collect();
    if known.is_empty() {
        let least = sizes.values().flatten().copied().fold(f64::INFINITY, f64::min);
        let unknown = if least.is_finite() { UNREPEATED * least } else { 0.0 };
        return vec![unknown; sizes.len()];
    }
    let common = quantile(&known, 0.5);
    let about = |at: usize| {
        let near = at.saturating_sub(NEIGHBOURS)..(at + NEIGHBOURS + 1).min(own.len());
        let near: Vec<f64> = own[near].iter().copied().flatten().collect();
        let around = if near.is_empty() { common } else { quantile(&near, 0.5) };
        own[at].map_or(around, |own| own.max(around))
    };
    (0..own.len()).map(about).collect()
}

/// The standard deviation of normally distributed values whose lower ones scatter as these.
fn scatter(values: &[f64]) -> Option<f64> {
    let (low, high) = PART;
    (values.len() >= 3).then(|| (quantile(values, high) - quantile(values, low)) / PART_WIDTH)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use trunkline_core::Seed;

    #[test]
    fn outliers_upwards_do_not_move_a_level() {
        let mut stream = Seed(1).stream("level");
        let samples = |wild: f64, stream: &mut trunkline_core::Stream| -> Vec<(u32, f64)> {
            (0..2000u32)
                .map(|index| {
                    (8, 5.0 + 0.03 * stream.normal() + if index % 10 == 0 { wild } else { 0.0 })
                })
                .collect()
        };
        let calm = levels(&samples(0.0, &mut stream))[0].millis;
        let wild = levels(&samples(40.0, &mut stream))[0].millis;
        assert!((calm - wild).abs() < 0.004, "{calm} {wild}");
    }

    #[test]
    fn the_standard_error_is_about_right() {
        let mut stream = Seed(2).stream("level");
        let found: Vec<Level> = (0..400)
            .map(|_| {
                let samples: Vec<(u32, f64)> =
                    (0..20).map(|_| (1, 1.0 + 0.05 * stream.normal())).collect();
                levels(&samples).remove(0)
            })
            .collect();
        let scatter =
            trunkline_measure::deviation(&found.iter().map(|one| one.millis).collect::<Vec<_>>());
        let said = mean(&found.iter().map(|one| one.error).collect::<Vec<_>>());
        assert!((0.8..1.3).contains(&(said / scatter)), "{said} for {scatter}");
    }

    proptest! {
        #[test]
        fn sizes_ascend_and_levels_are_among_the_values(
            samples in prop::collection::vec((0u32..20, 0.1..100.0f64), 0..80),
        ) {
            let found = levels(&samples);
            prop_assert!(found.windows(2).all(|two| two[0].size < two[1].size));
            prop_assert_eq!(found.iter().map(|one| one.values.len()).sum::<usize>(), samples.len());
            for one in found {
                prop_assert!(one.millis >= one.values[0] && one.error > 0.0);
            }
        }
    }
}
