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
    /// The same of a byte up and down, if they are not alike: `byte` is their mean.
    pub ways: Option<[Fitted; 2]>,
}

/// Part of an interval's draws that lie below it, and above.
const BEYOND: f64 = 0.025;
/// Two ways are alike if they differ by less than this part: hosts too take longer for longer datagrams.
const ALIKE: f64 = 0.1;
/// The time of a byte at the highest rate that a scenario takes, in milliseconds: noise may say less than nothing.
const LEAST_BYTE: f64 = 8e-10;

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
        (byte.interval.low > 0.0 && trip.value > 0.0).then_some(Line { byte, trip, ways: None })
    }

    /// The same line with the time of a byte each way, if it is clearly not alike. `up` and `down` are
    /// `(user bytes, milliseconds)` of the datagrams and of their echoes, each off by the clocks' difference,
    /// which is the same for all sizes.
    #[must_use]
    pub fn with_ways(self, up: &[(u32, f64)], down: &[(u32, f64)], seed: Seed) -> Line {
        let ways = slope(up, seed).zip(slope(down, seed));
        let slower =
            |one: &Fitted, other: &Fitted| one.interval.low > (1.0 + ALIKE) * other.interval.high;
        let ways = ways.filter(|(up, down)| slower(up, down) || slower(down, up));
        Line { ways: ways.map(|(up, down)| [up, down]), ..self }
    }

    /// Bits a second, of one rate for both ways.
    pub fn rate(&self) -> Fitted {
        rate(self.byte)
    }

    /// Bits a second up and down, if they are not alike.
    pub fn rates(&self) -> Option<[Fitted; 2]> {
        self.ways.map(|ways| ways.map(rate))
    }
}

/// Milliseconds that a byte takes one way.
fn slope(samples: &[(u32, f64)], seed: Seed) -> Option<Fitted> {
    let levels = levels(samples);
    let (curve, shape) = settle(&levels, &Shape { packets: Packets::UNKNOWN, teeth: Vec::new() })?;
    let draws = redrawn(&levels, &shape, &mut seed.stream("way"));
    let Interval { low, high } = interval(&draws, |curve| curve.slope);
    let [value, low, high] = [curve.slope, low, high].map(|byte| byte.max(LEAST_BYTE));
    Some(Fitted { value, interval: Interval { low, high } })
}

/// Bits a second of milliseconds for a byte.
fn rate(byte: Fitted) -> Fitted {
    let rate = |byte: f64| 8_000.0 / byte;
    let Interval { low, high } = byte.interval;
    Fitted { value: rate(byte.value), interval: Interval { low: rate(high), high: rate(low) } }
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

    /// A line of 1 Mbit/s up and `times` as much down, between hosts whose clocks differ.
    fn two_ways(times: f64, clock: f64) -> Line {
        let mut stream = Seed(7).stream("late");
        let mut way = |rate: f64, base: f64| -> Vec<(u32, f64)> {
            let sizes = (0..15).flat_map(|_| [1, 700, 1432]);
            let mut late = || 0.02 - 0.01 * libm::log(1.0 - stream.unit());
            sizes
                .map(|size| (size, base + f64::from(size + 68) * 8_000.0 / rate + late()))
                .collect()
        };
        let (up, down) = (way(1e6, 20.0 + clock), way(times * 1e6, 5.0 - clock));
        let trips: Vec<_> = up.iter().zip(&down).map(|(up, down)| (up.0, up.1 + down.1)).collect();
        Line::of(&trips, 68, 0.01, Seed(1)).unwrap().with_ways(&up, &down, Seed(1))
    }

    #[test]
    fn a_line_that_is_slower_one_way_is_told_by_its_ways() {
        for (times, clock) in [(4.0, 0.0), (4.0, -1e3), (0.25, 1e6), (1.5, 3.0), (20.0, -7.0)] {
            let [up, down] = two_ways(times, clock).rates().expect("not alike");
            assert!((up.value / 1e6 - 1.0).abs() < 0.05, "{times} {clock}: {up:?}");
            assert!((down.value / times / 1e6 - 1.0).abs() < 0.2, "{times} {clock}: {down:?}");
        }
        // A way that takes no time is as fast as a rate can be.
        let [_, down] = two_ways(1e6, 0.0).rates().expect("not alike");
        assert!(down.interval.low > 100e6 && down.interval.high <= 1.001e13, "{down:?}");
        assert_eq!(two_ways(1.0, 5.0).rates(), None);
    }

    #[test]
    fn what_takes_no_longer_tells_nothing() {
        let flat: Vec<(u32, f64)> = (0..40).map(|at| (1 + at % 2 * 1000, 5.0)).collect();
        assert_eq!(Line::of(&flat, 68, 0.01, Seed(1)), None);
        assert_eq!(Line::of(&[(1, 5.0); 9], 68, 0.01, Seed(1)), None);
    }
}
