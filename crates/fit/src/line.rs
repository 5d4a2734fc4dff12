//! Inferences about the line alone from datagrams: they wait for no window.

use crate::curve::{Curve, Packets, Shape, redrawn};
use crate::known::Fitted;
use crate::level::levels;
use crate::steps::settle;
use serde::Serialize;
use trunkline_core::Seed;
use trunkline_measure::{Interval, quantile};

/// A line, from round trips of datagrams up to the path's largest packet that were echoed whole.
///
/// A window's steps tell rate and propagation too, but a small window on a fast line holds less time than
/// the noise, and its jumps contain what both hosts need to answer a block and to send the next one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Line {
    /// Milliseconds that a byte takes, one way.
    pub byte: Fitted,
    /// Both propagations together, in milliseconds.
    pub trip: Fitted,
}

/// Part of an interval's draws that lie below it, and above.
const BEYOND: f64 = 0.025;

impl Line {
    /// From `(user bytes, milliseconds on the path)` with `headers` bytes on the line for each datagram
    /// besides. `late` is the time that a host spends from its sending to the arrival's stamp if there is no
    /// path, in milliseconds: that is left out, and up to twice that is thought possible. `None` if
    /// the samples have fewer than two sizes, or larger datagrams take no longer.
    pub fn of(samples: &[(u32, f64)], headers: u32, late: f64, seed: Seed) -> Option<Line> {
        let levels = levels(samples);
        let (curve, shape) =
            settle(&levels, &Shape { packets: Packets::UNKNOWN, teeth: Vec::new() })?;
        let draws = redrawn(&levels, &shape, &mut seed.stream("line"));
        let trip = |curve: &Curve| curve.base - f64::from(headers) * curve.slope;
        let byte = interval(&draws, |curve| curve.slope / 2.0);
        let around = interval(&draws, trip);
        let trip = Fitted {
            value: trip(&curve) - 2.0 * late,
            interval: Interval { low: around.low - 4.0 * late, high: around.high },
        };
        let byte = Fitted { value: curve.slope / 2.0, interval: byte };
        (byte.interval.low > 0.0 && trip.value > 0.0).then_some(Line { byte, trip })
    }

    /// Bits a second.
    pub fn rate(&self) -> Fitted {
        let rate = |byte: f64| 8_000.0 / byte;
        let Interval { low, high } = self.byte.interval;
        Fitted {
            value: rate(self.byte.value),
            interval: Interval { low: rate(high), high: rate(low) },
        }
    }
}

fn interval(draws: &[Curve], of: impl Fn(&Curve) -> f64) -> Interval {
    let all: Vec<f64> = draws.iter().map(of).collect();
    Interval { low: quantile(&all, BEYOND), high: quantile(&all, 1.0 - BEYOND) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn rate_and_distance_are_found_among_late_arrivals(
            rate in 200e3..20e6f64, delay in 2.0..100.0f64, seed: u64,
        ) {
            let mut stream = Seed(seed).stream("late");
            let byte = 8_000.0 / rate;
            let mut one = |size: u32| {
                let late = 0.02 - 0.03 * libm::log(1.0 - stream.unit());
                (size, 2.0 * (delay + f64::from(size + 68) * byte) + late)
            };
            let samples: Vec<(u32, f64)> =
                (0..15).flat_map(|_| [1, 700, 1432]).map(&mut one).collect();
            let line = Line::of(&samples, 68, 0.01, Seed(1)).unwrap();
            prop_assert!((line.rate().value / rate - 1.0).abs() < 0.05, "{line:?}");
            prop_assert!((line.trip.value / 2.0 / delay - 1.0).abs() < 0.02, "{line:?}");
            prop_assert!(line.trip.interval.low <= line.trip.value);
        }
    }

    #[test]
    fn what_takes_no_longer_tells_nothing() {
        let flat: Vec<(u32, f64)> = (0..40).map(|at| (1 + at % 2 * 1000, 5.0)).collect();
        assert_eq!(Line::of(&flat, 68, 0.01, Seed(1)), None);
        assert_eq!(Line::of(&[(1, 5.0); 9], 68, 0.01, Seed(1)), None);
    }
}
