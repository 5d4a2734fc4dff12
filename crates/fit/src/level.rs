//! One level for each message size, from repeated round trips.

use crate::outlier::spread;
use std::collections::BTreeMap;
use trunkline_measure::mean;

/// How far the mean of the lower half of `n` values scatters, in standard deviations over `sqrt(n)`:
/// 1.15 for normally distributed values, a little more for skewed ones.
const EFFICIENCY: f64 = 1.3;
/// Nothing is known better than this: a system's clock readings and scheduler, in milliseconds.
const FLOOR: f64 = 0.0005;
/// Nor better than this part of itself: the clock that paces an emulated line.
const FLOOR_SHARE: f64 = 2e-5;
/// The standard error of a level where nothing was repeated, as a part of the least level.
const UNREPEATED: f64 = 0.01;

/// What is known of one size.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Level {
    /// User bytes.
    pub size: u32,
    /// Milliseconds.
    pub millis: f64,
    /// Standard error of `millis`.
    pub error: f64,
    /// The values behind it.
    pub values: Vec<f64>,
}

/// The level of some values: the mean of their lower half. Waiting only ever lengthens a round trip, so
/// that the upper half says little about the path; the mean of the lower half scatters less than the
/// minimum (which Vande Water 1988 §2.5 used), and half the values may be disturbed at will.
pub(crate) fn level(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    mean(&values[..values.len().div_ceil(2)])
}

/// Levels by size, ascending, of `(size, milliseconds)` in any order.
pub(crate) fn levels(samples: &[(u32, f64)]) -> Vec<Level> {
    let mut sizes: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for &(size, millis) in samples.iter().filter(|(_, millis)| millis.is_finite()) {
        sizes.entry(size).or_default().push(millis);
    }
    let deviation = common_deviation(&sizes);
    let error = |millis: f64, count: usize| {
        let noise = EFFICIENCY * deviation / (count as f64).sqrt();
        noise.hypot(FLOOR + FLOOR_SHARE * millis.abs())
    };
    let one = |(size, mut values): (u32, Vec<f64>)| {
        let millis = level(&mut values);
        Level { size, millis, error: error(millis, values.len()), values }
    };
    sizes.into_iter().map(one).collect()
}

/// The standard deviation of single values about their size's level, outliers aside. Where nothing was
/// repeated it is taken as one percent of the least value.
fn common_deviation(sizes: &BTreeMap<u32, Vec<f64>>) -> f64 {
    let repeated: Vec<f64> =
        sizes.values().filter(|values| values.len() >= 4).map(|values| spread(values)).collect();
    if repeated.is_empty() {
        let least = sizes.values().flatten().copied().fold(f64::INFINITY, f64::min);
        return if least.is_finite() { UNREPEATED * least } else { 0.0 };
    }
    mean(&repeated)
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
