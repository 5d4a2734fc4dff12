//! The effect of a single boundary on delay: the size from which a message needs one more packet, and the way on which
//! a window makes the sender wait.

use crate::known::Waits;
use crate::level::{Level, levels};
use serde::Serialize;
use std::ops::RangeInclusive;

/// Standard errors by which a jump stands out.
const CLEAR: f64 = 4.0;
/// A way that has more than this part of a jump has all of it.
const ALL: f64 = 0.75;

/// A boundary that was suspected, and what the delay does there.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Boundary {
    /// The largest size before it, in bytes.
    pub size: u32,
    /// By how much delay is higher with one byte more, beyond that byte's own time, in milliseconds.
    pub jump: f64,
    /// The standard error of that.
    pub error: f64,
    /// Whether it stands out from noise, at this byte and not at the one before.
    pub seen: bool,
}

impl Boundary {
    /// Between `size` bytes and one more, of `(bytes, milliseconds)` in any order; `None` if one of the
    /// two was not measured. `slope` are a byte's milliseconds.
    pub fn at(samples: &[(u32, f64)], size: u32, slope: f64) -> Option<Boundary> {
        let levels = levels(samples);
        let find = |size: u32| levels.iter().find(|one| one.size == size);
        let (before, behind) = (find(size)?, find(size + 1)?);
        let jump = behind.millis - before.millis - slope;
        let error = behind.error.hypot(before.error);
        let earlier = find(size - 1).is_some_and(|one| clear(one, before, slope, jump));
        Some(Boundary { size, jump, error, seen: jump > CLEAR * error && !earlier })
    }
}

/// Whether a step between two neighbours is as much as half a jump, and no chance.
fn clear(one: &Level, next: &Level, slope: f64, jump: f64) -> bool {
    let off = next.millis - one.millis - slope;
    off > jump / 2.0 && off > CLEAR * one.error.hypot(next.error)
}

/// The ways on which the sender waits for a window of so many bytes, from one-way times of both ways; their
/// clocks' difference does not matter. `turn` is the distance before and behind the window in which levels count. All
/// ways if that cannot be told.
pub fn waits(out: &[(u32, f64)], back: &[(u32, f64)], window: u32, turn: u32) -> Waits {
    let jump = |samples: &[(u32, f64)]| {
        let before = around(samples, window.saturating_sub(turn)..=window)?;
        Some((around(samples, window + 1..=window + turn)? - before).max(0.0))
    };
    let Some((out, back)) = jump(out).zip(jump(back)) else { return Waits::AllWays };
    match out / (out + back) {
        share if share > ALL => Waits::Out,
        share if share < 1.0 - ALL => Waits::Back,
        _ => Waits::AllWays,
    }
}

/// The level next to the window.
fn around(samples: &[(u32, f64)], sizes: RangeInclusive<u32>) -> Option<f64> {
    let near: Vec<_> = samples.iter().copied().filter(|(size, _)| sizes.contains(size)).collect();
    let levels = levels(&near);
    let middle = levels.iter().map(|one| one.millis).sum::<f64>() / levels.len() as f64;
    (!levels.is_empty()).then_some(middle)
}

#[cfg(test)]
mod tests {
    use super::*;
    use trunkline_core::Seed;

    fn measured(height: f64, at: u32, sizes: &[u32]) -> Vec<(u32, f64)> {
        let mut noise = Seed(3).stream("boundary");
        let exact = |size: u32| 20.0 + 0.002 * f64::from(size) + height * f64::from(size > at);
        let all = sizes.iter().flat_map(|&size| [size; 40]);
        all.map(|size| (size, exact(size) - 0.02 * libm::log(1.0 - noise.unit()))).collect()
    }

    #[test]
    fn a_boundary_is_seen_where_it_is_and_nowhere_else() {
        let sizes = [1, 1447, 1448, 1449, 1450];
        let seen = |height, at| Boundary::at(&measured(height, at, &sizes), 1448, 0.002).unwrap();
        assert!(seen(0.3, 1448).seen && (seen(0.3, 1448).jump - 0.3).abs() < 0.03);
        assert!(!seen(0.0, 1448).seen && !seen(0.3, 1447).seen && !seen(0.001, 1448).seen);
        assert_eq!(Boundary::at(&measured(0.3, 1448, &sizes), 1460, 0.002), None);
    }

    #[test]
    fn the_way_that_waits_is_told() {
        let sizes = [8000, 8688, 8689, 9000];
        let (jumps, none) = (measured(15.0, 8688, &sizes), measured(0.0, 8688, &sizes));
        assert_eq!(waits(&jumps, &none, 8688, 1448), Waits::Out);
        assert_eq!(waits(&none, &jumps, 8688, 1448), Waits::Back);
        assert_eq!(waits(&jumps, &jumps, 8688, 1448), Waits::AllWays);
        assert_eq!(waits(&[], &jumps, 8688, 1448), Waits::AllWays);
    }
}
