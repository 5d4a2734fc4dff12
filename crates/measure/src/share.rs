//! Intervals that need no assumption on how values are distributed: for a share, and for a quantile by
//! the order of the values.

use crate::confidence::Interval;
use crate::stats::{normal_quantile, quantile_of};

/// The interval for the probability behind `hits` of `trials` (Wilson, "Probable Inference, the Law of
/// Succession, and Statistical Inference", 1927): unlike `p -+ z sqrt(p (1 - p) / n)` it is right for
/// few or no hits too. `None` without trials.
pub fn share_interval(hits: u64, trials: u64, confidence: f64) -> Option<Interval> {
    if trials == 0 {
        return None;
    }
    let (n, z) = (trials as f64, normal_quantile((1.0 + confidence) / 2.0));
    let p = hits.min(trials) as f64 / n;
    let squared = z * z / n;
    let center = (p + squared / 2.0) / (1.0 + squared);
    let half = (squared * (p * (1.0 - p) + squared / 4.0)).sqrt() / (1.0 + squared);
    let low = if hits == 0 { 0.0 } else { (center - half).max(0.0) };
    let high = if hits >= trials { 1.0 } else { (center + half).min(1.0) };
    Some(Interval { low, high })
}

/// The interval of the quantile of `share` from the order of the values: the chance that fewer than `k`
/// of `n` values lie below the quantile is binomial whatever their distribution (David and Nagaraja,
/// Order Statistics, §7.1). The ends are values, chosen so that no more than half of what `confidence`
/// leaves lies beyond each.
///
/// If values resemble their neighbours, `memory` of them count as one (see
/// [`MeanInterval::batch`](crate::MeanInterval)). `None` if there are too few values for the confidence:
/// a median at 95 % needs six.
pub fn order_interval(
    values: &[f64],
    share: f64,
    confidence: f64,
    memory: usize,
) -> Option<Interval> {
    let count = values.len() / memory.max(1);
    let beyond = (1.0 - confidence) / 2.0;
    let below = ranks_below(count, share, beyond)?;
    let above = ranks_below(count, 1.0 - share, beyond)?;
    let mut values = values.to_vec();
    // Ranks of `count` values, spread over all of them.
    let place = |rank: usize| rank as f64 / (count - 1).max(1) as f64;
    let low = quantile_of(&mut values, place(below));
    Some(Interval { low, high: quantile_of(&mut values, place(count - 1 - above)) })
}

/// The greatest rank, counted from 0, for which the chance that no more than so many of `count` values
/// lie below the quantile of `share` is at most `beyond`; `None` if not even rank 0 is that safe.
fn ranks_below(count: usize, share: f64, beyond: f64) -> Option<usize> {
    let (n, odds) = (count as f64, libm::log(share) - libm::log(1.0 - share));
    let mut term = n * libm::log(1.0 - share);
    let mut sum = libm::exp(term);
    if count == 0 || sum > beyond {
        return None;
    }
    let mut rank = 0;
    while rank + 1 < count {
        let next = (rank + 1) as f64;
        term += libm::log((n - next + 1.0) / next) + odds;
        sum += libm::exp(term);
        if sum > beyond {
            break;
        }
        rank += 1;
    }
    Some(rank)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use trunkline_core::Seed;

    #[test]
    fn wilsons_interval_as_printed_elsewhere() {
        // Newcombe, "Two-sided confidence intervals for the single proportion", 1998, table I.
        let near = |hits, trials, low: f64, high: f64| {
            let found = share_interval(hits, trials, 0.95).unwrap();
            assert!((found.low - low).abs() < 5e-5, "{found:?}");
            assert!((found.high - high).abs() < 5e-5, "{found:?}");
        };
        near(81, 263, 0.2553, 0.3662);
        near(15, 148, 0.0624, 0.1605);
        near(0, 20, 0.0, 0.1611);
        near(1, 29, 0.0061, 0.1718);
        assert_eq!(share_interval(0, 0, 0.95), None);
    }

    #[test]
    fn a_median_needs_six_values_for_95_percent() {
        let values: Vec<f64> = (0..100).map(f64::from).collect();
        assert_eq!(order_interval(&values[..5], 0.5, 0.95, 1), None);
        let six = order_interval(&values[..6], 0.5, 0.95, 1).unwrap();
        assert_eq!((six.low, six.high), (0.0, 5.0));
        // The table of Conover, Practical Nonparametric Statistics: the 40th and the 61st of 100.
        let hundred = order_interval(&values, 0.5, 0.95, 1).unwrap();
        assert_eq!((hundred.low, hundred.high), (39.0, 60.0));
        assert_eq!(order_interval(&[], 0.5, 0.95, 1), None);
    }

    #[test]
    fn the_order_covers_a_quantile_as_often_as_it_says() {
        let mut stream = Seed(8).stream("order");
        for share in [0.1, 0.5, 0.9] {
            let covered: u32 = (0..400)
                .map(|_| {
                    let values: Vec<f64> = (0..80).map(|_| stream.unit()).collect();
                    let found = order_interval(&values, share, 0.95, 1).unwrap();
                    u32::from(found.contains(share))
                })
                .sum();
            assert!(covered >= 372, "{covered} of 400 for {share}");
        }
    }

    proptest! {
        #[test]
        fn more_memory_never_narrows(
            values in prop::collection::vec(0.0..1.0f64, 40..120),
            memory in 1usize..4,
        ) {
            let free = order_interval(&values, 0.5, 0.95, 1).unwrap();
            let bound = order_interval(&values, 0.5, 0.95, memory).unwrap();
            prop_assert!(bound.low <= free.low + 0.1 && bound.high >= free.high - 0.1);
            prop_assert!(bound.low <= bound.high);
        }

        #[test]
        fn a_share_is_in_its_own_interval(trials in 1u64..10_000, hits in 0u64..10_000) {
            let hits = hits.min(trials);
            let found = share_interval(hits, trials, 0.95).unwrap();
            prop_assert!(found.contains(hits as f64 / trials as f64));
            prop_assert!(found.low >= 0.0 && found.high <= 1.0);
        }
    }
}
