//! The formulas of T. Vande Water, *Delay and Throughput Measurements of the XUNET Datakit Network*,
//! UC Berkeley, 1988, by their numbers.

use super::general;
use super::rounds::windows;
use crate::throughput::{SECOND, Throughput};
use trunkline_core::{Rate, Span};

/// Speed of light as the report takes it, metres per second.
pub const LIGHT: u64 = 300_000_000;
/// Millimetres of a mile.
pub const MILE: u64 = 1_609_344;
/// The part of a T1 line's 1.544 Mbit/s that was usable, "about 7/8" (§2.4).
pub const T1_EFFECTIVE: u64 = 1_344_000;
/// Processing in the local case, for each byte (§2.6).
pub const LOCAL_COST: Span = Span::from_micros(20);
/// Processing in the wide area, both hosts together, for each byte (§2.6).
pub const WIDE_AREA_COST: Span = Span::from_micros(8);

/// Equation 1: propagation delay over `miles` at 2/3 of the speed of light.
pub fn propagation(miles: u64) -> Span {
    general::propagation(miles * MILE, general::fraction_of(LIGHT, 2, 3))
}

/// Equation 2: transmission time of `bytes` at `rate`.
pub fn transmission(bytes: u64, rate: Rate) -> Span {
    Throughput::from(rate).time_for(bytes)
}

/// Equation 3: round trip = 2 × transmission + response. The equation itself is lost in the scan; its
/// form is that of the sentence after it.
pub fn round_trip(transmission: Span, response: Span) -> Span {
    transmission.scaled(2, 1) + response
}

/// Equation 4: round trip with a small window = response + 2 × response × additional whole windows.
///
/// Holds for echoed messages over a long way (response far above the time to send a window); about 6 %
/// above what was measured.
pub fn round_trip_small_window(bytes: u64, window: u64, response: Span) -> Span {
    let rounds = windows(bytes, window);
    general::round_trip(response, rounds, rounds)
}

/// Equation 5: round trip in the local case = bytes × 0.02 ms + response. Holds for Monet, and to
/// Fishonaplatter up to one window of 756 bytes.
pub fn round_trip_local(bytes: u64, response: Span) -> Span {
    LOCAL_COST.scaled(bytes, 1) + response
}

/// Equation 6: round trip of at most one window (756 bytes) over the wide area = response +
/// 2 × bytes × 8 / 1.344 Mbit/s + bytes × 0.008 ms.
pub fn round_trip_one_window(bytes: u64, response: Span) -> Span {
    let rate = Rate::from_bits_per_second(T1_EFFECTIVE);
    response + transmission(2 * bytes, rate) + WIDE_AREA_COST.scaled(bytes, 1)
}

/// Equation 7: measured throughput = size / (time of the large file − time of the empty file).
pub fn measured_throughput(size: u64, large: Span, empty: Span) -> Throughput {
    Throughput::over(size, large.saturating_sub(empty))
}

/// Equation 8: most throughput of one process = window / least round trip.
pub fn maximum_throughput(window: u64, round_trip: Span) -> Throughput {
    Throughput::over(window, round_trip)
}

/// Equation 9, first half: effective window = measured throughput × round trip, in thousandths of a byte.
pub fn effective_window_millibytes(measured: Throughput, round_trip: Span) -> u64 {
    let product = u128::from(measured.millibytes_per_second()) * u128::from(round_trip.as_nanos());
    u64::try_from(product / SECOND).unwrap_or(u64::MAX)
}

/// Equation 9, second half: the correction that each window's round trip needs = window / measured
/// throughput − round trip. Zero if more than window / round trip was measured.
pub fn correction(window: u64, measured: Throughput, round_trip: Span) -> Span {
    measured.time_for(window).saturating_sub(round_trip)
}
