//! The elementary statistics of a list of numbers, and the two distributions that intervals need.

/// Arithmetic mean; not a number if there are no values. It is computed from the first value on, so that
/// equal values have exactly that mean, and no deviation: the remainder that rounding leaves of one is nothing to
/// divide by.
pub fn mean(values: &[f64]) -> f64 {
    let Some(&first) = values.first() else { return f64::NAN };
    first + values.iter().map(|value| value - first).sum::<f64>() / values.len() as f64
}

/// Standard deviation with divisor `n`: `sqrt(sum((x - mean)^2) / n)`.
///
/// It is the one in the reports' tables. Hawley 1989 does not say so, but one row of his averages, as
/// they have been restored from the scan, decides it if its digits are right (no other row does):
/// `software_fifo`, 1024 x 3, 60 bytes of `average_delay_loaded.csv` has 279 of 280 points kept, mean
/// 63.444, deviation 13.568 and threshold `x1 + 8 s1` = 187.326, which is 9.1305 +- 0.0004 deviations
/// above the mean. The eliminated point lies above the threshold that it has itself raised; that takes
/// at least 9.1296 deviations with divisor n and 9.1344 with n - 1.
pub fn deviation(values: &[f64]) -> f64 {
    let center = mean(values);
    let squares: f64 = values.iter().map(|value| (value - center) * (value - center)).sum();
    (squares / values.len() as f64).sqrt()
}

/// Standard deviation with divisor `n - 1`, for intervals; zero for one value.
pub(crate) fn sample_deviation(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    if n < 2.0 { 0.0 } else { deviation(values) * (n / (n - 1.0)).sqrt() }
}

/// The value that `share` (0 to 1) of all do not exceed, interpolated between the two nearest: with
/// `h = (n - 1) share`, `x[h]` of the sorted values (Hyndman and Fan 1996, definition 7), so that the
/// median of an even number is halfway between the middle two. Not a number if there are no values.
pub fn quantile(values: &[f64], share: f64) -> f64 {
    quantile_of(&mut values.to_vec(), share)
}

/// The same, putting the values into another order on the way.
pub(crate) fn quantile_of(values: &mut [f64], share: f64) -> f64 {
    if values.is_empty() {
        return f64::NAN;
    }
    let (index, fraction) = place_of(values.len(), share);
    let (_, &mut lower, above) = values.select_nth_unstable_by(index, f64::total_cmp);
    let upper = above.iter().copied().min_by(f64::total_cmp).unwrap_or(lower);
    if fraction == 0.0 { lower } else { lower + (upper - lower) * fraction }
}

/// The place of the quantile of `share` among so many sorted values: behind which, and how far on the way to the next.
pub(crate) fn place_of(count: usize, share: f64) -> (usize, f64) {
    let position = (count - 1) as f64 * share.clamp(0.0, 1.0);
    (position as usize, position - position.trunc())
}

/// Correlation of each value with the next: `sum((x[i] - m)(x[i+1] - m)) / sum((x[i] - m)^2)`; zero
/// if all are equal.
pub(crate) fn lag_one_correlation(values: &[f64]) -> f64 {
    let center = mean(values);
    let off = |value: &f64| value - center;
    let squares: f64 = values.iter().map(|value| off(value) * off(value)).sum();
    let products: f64 = values.windows(2).map(|two| off(&two[0]) * off(&two[1])).sum();
    if squares == 0.0 { 0.0 } else { products / squares }
}

/// The standard normal quantile of `p` in 0 to 1, by bisection of `erfc(-z / sqrt 2) / 2`.
pub(crate) fn normal_quantile(p: f64) -> f64 {
    let (mut low, mut high) = (-40.0f64, 40.0f64);
    for _ in 0..64 {
        let middle = (low + high) / 2.0;
        let below = libm::erfc(-middle / std::f64::consts::SQRT_2) / 2.0;
        if below < p { low = middle } else { high = middle }
    }
    (low + high) / 2.0
}

/// Student's t quantile of `p` with `freedom` degrees of freedom: exact for one and two, and for more by
/// the expansion of Abramowitz and Stegun 26.7.5, good to 0.2 % from three on at 95 % confidence.
pub(crate) fn student_quantile(p: f64, freedom: u64) -> f64 {
    match freedom {
        0 => f64::INFINITY,
        1 => libm::tan(std::f64::consts::PI * (p - 0.5)),
        2 => (2.0 * p - 1.0) / (2.0 * p * (1.0 - p)).sqrt(),
        _ => student_expansion(normal_quantile(p), freedom as f64),
    }
}

fn student_expansion(z: f64, freedom: f64) -> f64 {
    let s = z * z;
    let terms = [
        (s + 1.0) / 4.0,
        ((5.0 * s + 16.0) * s + 3.0) / 96.0,
        (((3.0 * s + 19.0) * s + 17.0) * s - 15.0) / 384.0,
        ((((79.0 * s + 776.0) * s + 1482.0) * s - 1920.0) * s - 945.0) / 92_160.0,
    ];
    let sum = terms.iter().rev().fold(0.0, |sum, term| (sum + term) / freedom);
    z * (1.0 + sum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn equal_values_have_no_deviation(value in -1e6..1e6f64, count in 1usize..400) {
            let values = vec![value; count];
            prop_assert_eq!((mean(&values), deviation(&values)), (value, 0.0));
        }
    }

    /// `k` bad points above `x1 + 8 s1`: how many deviations of the good ones above their mean the
    /// threshold must at least be, by search. `sample` is the divisor n - 1.
    fn least_threshold(n: usize, sample: bool) -> f64 {
        let spread = |values: &[f64]| {
            if sample { sample_deviation(values) } else { deviation(values) }
        };
        let mut values: Vec<f64> =
            (0..n - 1).map(|i| if i % 2 == 0 { 1.0 } else { -1.0 }).collect();
        let (center, unit) = (mean(&values), spread(&values));
        values.push(0.0);
        let (mut low, mut high) = (0.0, 1000.0);
        for _ in 0..60 {
            let bad = (low + high) / 2.0;
            *values.last_mut().unwrap() = bad;
            if bad > mean(&values) + 8.0 * spread(&values) { high = bad } else { low = bad }
        }
        (high - center) / unit
    }

    #[test]
    fn one_printed_row_decides_the_divisor() {
        let (mean, deviation, threshold) = (63.444, 13.568, 187.326);
        let printed = (threshold - mean) / deviation;
        let rounding = 0.0005 * (2.0 + printed) / deviation;
        assert!(printed + rounding > least_threshold(280, false));
        assert!(printed + rounding < least_threshold(280, true));
    }

    #[test]
    fn known_quantiles_of_the_distributions() {
        let near = |found: f64, right: f64, share: f64| {
            assert!((found - right).abs() <= right.abs() * share, "{found} for {right}");
        };
        near(normal_quantile(0.975), 1.959_963_985, 1e-9);
        near(normal_quantile(0.05), -1.644_853_627, 1e-9);
        assert!(normal_quantile(0.5).abs() < 1e-9);
        let table = [(1, 12.7062), (2, 4.302_65), (3, 3.182_45), (5, 2.570_58), (7, 2.364_62)];
        for (freedom, right) in table.into_iter().chain([(19, 2.093_02), (120, 1.979_93)]) {
            near(student_quantile(0.975, freedom), right, 0.002);
        }
    }

    #[test]
    fn correlation_of_what_alternates_and_what_drifts() {
        let alternating: Vec<f64> = (0..100).map(|i| f64::from(i % 2)).collect();
        let drifting: Vec<f64> = (0..100).map(f64::from).collect();
        assert!(lag_one_correlation(&alternating) < -0.9);
        assert!(lag_one_correlation(&drifting) > 0.9);
        assert_eq!(lag_one_correlation(&[3.0; 9]), 0.0);
    }

    proptest! {
        #[test]
        fn quantiles_are_those_of_the_sorted_list(
            values in prop::collection::vec(-1e6..1e6f64, 1..60),
            share in 0.0..=1.0f64,
        ) {
            let mut sorted = values.clone();
            sorted.sort_by(f64::total_cmp);
            let position = (sorted.len() - 1) as f64 * share;
            let (low, high) = (position.floor(), position.ceil());
            let (below, above) = (sorted[low as usize], sorted[high as usize]);
            let naive = below + (above - below) * (position - low);
            prop_assert!((quantile(&values, share) - naive).abs() < 1e-6);
        }

        #[test]
        fn deviations_are_those_of_the_moments(values in prop::collection::vec(-1e3..1e3f64, 2..60)) {
            let n = values.len() as f64;
            let moment: f64 = values.iter().map(|value| value * value).sum::<f64>() / n;
            let naive = (moment - mean(&values) * mean(&values)).max(0.0).sqrt();
            prop_assert!((deviation(&values) - naive).abs() < 1e-3);
            prop_assert!(sample_deviation(&values) >= deviation(&values));
        }
    }

    #[test]
    fn the_expansion_has_the_published_polynomials() {
        // Abramowitz and Stegun 26.7.5 at z = 1: the terms are 1/2, 1/4, 24/384 and -528/92160.
        for freedom in [1.0, 2.0, 5.0] {
            let right =
                1.0 + 0.5 / freedom + 0.25 / f64::powi(freedom, 2) + 0.0625 / f64::powi(freedom, 3)
                    - 528.0 / 92_160.0 / f64::powi(freedom, 4);
            assert!((student_expansion(1.0, freedom) - right).abs() < 1e-14, "{freedom}");
        }
    }
}
