//! The cubic function in integers.
//!
//! Time is counted in 2⁻²⁰ s (0.95 µs), so that the cube of a time needs a shift and no division.

use trunkline_core::Span;

/// Steps of time in a second, as a power of two.
const STEPS: u32 = 20;
/// The longest time that the curve knows, 2048 s: a window of a gigabyte is reached long before, from any
/// plateau.
const LONGEST: u64 = 1 << (STEPS + 11);

/// A span in steps of 2⁻²⁰ s, rounded down, at most [`LONGEST`].
pub(crate) fn steps(span: Span) -> u64 {
    let nanos = span.as_nanos().min(2_048_000_000_000);
    ((nanos << STEPS) / 1_000_000_000).min(LONGEST)
}

/// C·t³ in bytes, C = 0.4 segments/s³ (RFC 9438 §4.1.1 and §5.1).
fn cube(time: u64, mss: u64) -> u64 {
    let time = u128::from(time.min(LONGEST));
    let wide = (time * time * time * u128::from(4 * mss)) >> (3 * STEPS);
    u64::try_from(wide).unwrap_or(u64::MAX) / 10
}

/// W_cubic(t) = C·(t − K)³ + W_max in bytes (RFC 9438 figure 1); times in steps.
pub(crate) fn window(time: u64, k: u64, plateau: u64, mss: u64) -> u64 {
    match time.checked_sub(k) {
        Some(after) => plateau.saturating_add(cube(after, mss)),
        None => plateau.saturating_sub(cube(k - time, mss)),
    }
}

/// K = ∛((W_max − cwnd_epoch) / C) in steps (RFC 9438 figure 2); the difference in bytes.
pub(crate) fn time_to_plateau(difference: u64, mss: u64) -> u64 {
    let cubed = (u128::from(difference) * 10) << (3 * STEPS);
    cube_root(cubed / u128::from(4 * mss)).min(LONGEST)
}

/// The largest whole number whose cube is not above `number`, bit by bit.
fn cube_root(number: u128) -> u64 {
    let mut root = 0u128;
    for bit in (0..=42).rev() {
        let larger = root | 1 << bit;
        if larger * larger * larger <= number {
            root = larger;
        }
    }
    root as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MSS: u64 = 1448;

    /// The same in floating point, in segments and seconds.
    fn reference(t: f64, k: f64, plateau: f64) -> f64 {
        0.4 * (t - k).powi(3) + plateau
    }

    #[test]
    fn k_of_a_window_of_a_hundred_segments() {
        let k = time_to_plateau(30 * MSS, MSS);
        let seconds = k as f64 / f64::from(1 << STEPS);
        assert!((seconds - 75f64.cbrt()).abs() < 2e-6, "{seconds}");
        assert_eq!(time_to_plateau(0, MSS), 0);
    }

    proptest! {
        #[test]
        fn roots_are_exact(number in 0u128..1 << 120) {
            let root = u128::from(cube_root(number));
            prop_assert!(root.pow(3) <= number && (root + 1).pow(3) > number);
        }

        #[test]
        fn the_curve_is_the_published_one_within_a_segment(
            plateau in 2u64..100_000, nanos in 0u64..120_000_000_000,
        ) {
            let drop = plateau * 3 / 10;
            let k = time_to_plateau(drop * MSS, MSS);
            let ours = window(steps(Span::from_nanos(nanos)), k, plateau * MSS, MSS);
            let k = (drop as f64 / 0.4).cbrt();
            let published = reference(nanos as f64 / 1e9, k, plateau as f64);
            prop_assert!((ours as f64 / MSS as f64 - published).abs() < 1.0, "{published}");
        }

        #[test]
        fn the_curve_never_falls_and_never_overflows(
            t in any::<u64>(), more in any::<u64>(), k in 0..LONGEST,
            plateau in 0u64..1 << 30, mss in 1u64..1 << 32,
        ) {
            let later = t.saturating_add(more);
            prop_assert!(window(later, k, plateau, mss) >= window(t, k, plateau, mss));
        }
    }
}
