//! Measurements that do not belong to the rest.

use serde::Serialize;
use std::collections::BTreeSet;
use trunkline_measure::{Estimator, quantile};

/// A rule for outliers. A rule says which values *stand out*; whether they are left out is another
/// question, and a tail of real queueing delay is not to be cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum OutlierRule {
    /// Farther from the median than 3.5 times the median distance from it, scaled to the standard
    /// deviation of a normal distribution by 1.4826 (Iglewicz and Hoaglin, How to Detect and Handle
    /// Outliers, 1993). Half the values may be wild before it fails.
    MedianDistance,
    /// Hawley 1989: the first and last ten, and what lies more than eight standard deviations above the
    /// mean of the rest.
    HawleyAverage,
    /// Hawley 1989, for the lowest peak: the first and last ten, and what lies more than one standard
    /// deviation above the mean of the rest, twice over.
    HawleyMinimum,
}

/// Scale and threshold of [`OutlierRule::MedianDistance`].
const SCALE: f64 = 1.4826;
const FAR: f64 = 3.5;
/// Hawley's ends.
const ENDS: usize = 10;

/// Indices of the values that stand out by `rule`, ascending. Empty if there are too few values for
/// the rule.
pub fn outliers(values: &[f64], rule: OutlierRule) -> Vec<usize> {
    match rule {
        OutlierRule::MedianDistance => far_from_median(values),
        OutlierRule::HawleyAverage => above_threshold(values, Estimator::HawleyAverage),
        OutlierRule::HawleyMinimum => above_threshold(values, Estimator::HawleyMinimum),
    }
}

fn far_from_median(values: &[f64]) -> Vec<usize> {
    let (center, scale) = (quantile(values, 0.5), spread(values));
    let far = |value: f64| (value - center).abs() > FAR * scale && scale > 0.0;
    (0..values.len()).filter(|&index| far(values[index])).collect()
}

/// The standard deviation of a normal distribution with the same median distance from the median; 0
/// for no values.
pub(crate) fn spread(values: &[f64]) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    let center = quantile(values, 0.5);
    let off: Vec<f64> = values.iter().map(|value| (value - center).abs()).collect();
    SCALE * quantile(&off, 0.5)
}

fn above_threshold(values: &[f64], estimator: Estimator) -> Vec<usize> {
    let Some(threshold) = estimator.estimate(values).and_then(|found| found.threshold) else {
        return Vec::new();
    };
    let ends = (0..ENDS).chain(values.len() - ENDS..values.len());
    let above = (0..values.len()).filter(|&index| values[index] > threshold);
    ends.chain(above).collect::<BTreeSet<usize>>().into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const RULES: [OutlierRule; 3] =
        [OutlierRule::MedianDistance, OutlierRule::HawleyAverage, OutlierRule::HawleyMinimum];

    fn with_one_wild() -> Vec<f64> {
        let mut values: Vec<f64> = (0..200).map(|index| 10.0 + f64::from(index % 7)).collect();
        values[100] = 500.0;
        values
    }

    #[test]
    fn each_rule_sees_the_wild_value() {
        for rule in RULES {
            assert!(outliers(&with_one_wild(), rule).contains(&100), "{rule:?}");
        }
        assert_eq!(outliers(&with_one_wild(), OutlierRule::MedianDistance), [100]);
        assert_eq!(outliers(&with_one_wild(), OutlierRule::HawleyAverage).len(), 21);
    }

    #[test]
    fn few_or_equal_values_have_no_outliers() {
        for rule in RULES {
            assert!(outliers(&[], rule).is_empty() && outliers(&[1.0, 9.0], rule).is_empty());
        }
        assert!(outliers(&[4.0; 30], OutlierRule::MedianDistance).is_empty());
    }

    proptest! {
        #[test]
        fn what_is_kept_is_what_the_estimator_kept(
            values in prop::collection::vec(prop_oneof![9 => 1.0..2.0f64, 1 => 10.0..99.0f64], 30..120),
        ) {
            for (rule, estimator) in [
                (OutlierRule::HawleyAverage, Estimator::HawleyAverage),
                (OutlierRule::HawleyMinimum, Estimator::HawleyMinimum),
            ] {
                let good = estimator.estimate(&values).unwrap().good;
                prop_assert_eq!(values.len() - outliers(&values, rule).len(), good);
            }
        }
    }
}
