//! The variation of delay from one packet to the next.

/// Differences between the delays of successive packets: the IP packet delay variation of RFC 3393 with
/// the selection function "next packet sent" (§2.5, §4.5). In the unit of `delays`, which are in the
/// order of sending; a lost packet breaks the pair on both its sides, so pass `None` for it.
pub fn delay_variation(delays: &[Option<f64>]) -> Vec<f64> {
    delays.windows(2).filter_map(|pair| Some(pair[1]? - pair[0]?)).collect()
}

/// The interarrival jitter of RFC 3550 §6.4.1: of the differences `D` between the transit times of
/// packets in the order of arrival, `J += (|D| - J) / 16`. In the unit of `transits`, 0 for fewer
/// than two. A constant offset between the two clocks does not matter.
pub fn interarrival_jitter(transits: &[f64]) -> f64 {
    transits.windows(2).fold(0.0, |jitter, two| jitter + ((two[1] - two[0]).abs() - jitter) / 16.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_lost_packet_has_no_variation() {
        let delays = [Some(10.0), Some(12.0), None, Some(9.0), Some(8.0)];
        assert_eq!(delay_variation(&delays), [2.0, -1.0]);
        assert!(delay_variation(&[Some(3.0)]).is_empty());
    }

    #[test]
    fn jitter_tends_to_the_mean_difference() {
        let swinging: Vec<f64> = (0..400).map(|index| f64::from(index % 2) * 3.0).collect();
        assert!((interarrival_jitter(&swinging) - 3.0).abs() < 1e-6);
        assert_eq!(interarrival_jitter(&[0.0, 16.0]), 1.0);
        assert_eq!(interarrival_jitter(&[7.0]), 0.0);
    }

    proptest! {
        #[test]
        fn neither_knows_the_offset_between_the_clocks(
            delays in prop::collection::vec(0.0..100.0f64, 0..40),
            offset in -1e4..1e4f64,
        ) {
            let moved: Vec<f64> = delays.iter().map(|delay| delay + offset).collect();
            prop_assert!((interarrival_jitter(&delays) - interarrival_jitter(&moved)).abs() < 1e-6);
            let some = |list: &[f64]| list.iter().copied().map(Some).collect::<Vec<_>>();
            let (one, other) = (delay_variation(&some(&delays)), delay_variation(&some(&moved)));
            prop_assert_eq!(one.len(), delays.len().saturating_sub(1));
            prop_assert!(one.iter().zip(&other).all(|(a, b)| (a - b).abs() < 1e-6));
            let total: f64 = one.iter().sum();
            let ends = delays.last().copied().unwrap_or(0.0) - delays.first().copied().unwrap_or(0.0);
            prop_assert!((total - ends).abs() < 1e-6, "they telescope");
        }
    }
}
