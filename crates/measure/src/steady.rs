//! The end of the transient at the start of a series.

use crate::stats::mean;

/// Values in a batch.
const BATCH: usize = 5;

/// The number of values at the start that belong to the transient, by MSER-5 (White 1997; White, Cobb and Spratt
/// 2000): of the means `y` of batches of five, the first `d` are dropped for which
/// `sum((y[i] - m)^2) / (k - d)^2` over the `k - d` that remain, `m` being their mean, is least. That
/// weighs the bias that a transient brings against the precision that dropping values costs.
///
/// `None` if the series never settles: the best `d` is in the second half, or there are fewer
/// than two batches.
pub fn steady_from(values: &[f64]) -> Option<usize> {
    let batches: Vec<f64> = values.chunks_exact(BATCH).map(mean).collect();
    if batches.len() < 2 {
        return None;
    }
    // The last few would look perfectly steady for being so few: they are not asked.
    let last = batches.len().saturating_sub(BATCH).max(batches.len() / 2);
    let errors = standard_errors(&batches);
    let best =
        (0..=last.min(batches.len() - 1)).min_by(|&a, &b| errors[a].total_cmp(&errors[b]))?;
    (best <= batches.len() / 2).then_some(best * BATCH)
}

/// For each `d` the squared standard error of the mean of `batches[d..]`, in one pass from the end
/// (Welford's recurrence).
fn standard_errors(batches: &[f64]) -> Vec<f64> {
    let (mut count, mut center, mut squares) = (0.0, 0.0, 0.0);
    let mut errors: Vec<f64> = batches
        .iter()
        .rev()
        .map(|value| {
            count += 1.0;
            let off = value - center;
            center += off / count;
            squares += off * (value - center);
            squares / (count * count)
        })
        .collect();
    errors.reverse();
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use trunkline_core::Seed;

    fn noise(count: usize) -> Vec<f64> {
        let mut stream = Seed(3).stream("noise");
        (0..count).map(|_| 10.0 + stream.normal()).collect()
    }

    #[test]
    fn a_slow_start_is_found() {
        let mut values = noise(500);
        for (index, value) in values.iter_mut().take(60).enumerate() {
            *value += 60.0 - index as f64;
        }
        let from = steady_from(&values).unwrap();
        assert!((45..=75).contains(&from), "{from}");
    }

    #[test]
    fn a_steady_series_loses_little() {
        let from = steady_from(&noise(500)).unwrap();
        assert!(from <= 100, "{from}");
        assert_eq!(steady_from(&[4.0; 100]), Some(0));
    }

    #[test]
    fn what_never_settles_is_said_so() {
        let drift: Vec<f64> = (0..300).map(f64::from).collect();
        assert_eq!(steady_from(&drift), None);
        assert_eq!(steady_from(&[1.0; 9]), None);
        assert_eq!(steady_from(&[]), None);
    }

    proptest! {
        #[test]
        fn the_recurrence_is_the_formula(batches in prop::collection::vec(0.0..100.0f64, 1..60)) {
            for (d, found) in standard_errors(&batches).into_iter().enumerate() {
                let rest = &batches[d..];
                let (m, k) = (mean(rest), rest.len() as f64);
                let naive = rest.iter().map(|y| (y - m) * (y - m)).sum::<f64>() / (k * k);
                prop_assert!((found - naive).abs() < 1e-6);
            }
        }
    }
}
