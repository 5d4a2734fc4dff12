//! Figures of a path that was measured from outside (LDS report §3.9).

use crate::format::Quantity;
use trunkline_verify::report::Row;

/// Why a figure could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Unread {
    /// The machine has spoilt it.
    Spoilt(String),
    /// There are not enough measurements.
    TooFew(String),
}

/// The figure, in base units. What was lost and overtaken counts in any case; times say nothing of the path
/// where the machine has stalled.
pub(crate) fn quantity(row: &Row, quantity: Quantity) -> Result<f64, Unread> {
    let stalls = &row.stalls;
    let trips = |value: f64| match row.rtt_with.count.min(row.rtt_without.count) {
        _ if stalls.any() => Err(Unread::Spoilt(format!(
            "the machine stalled {} times, up to {}",
            stalls.emulator + stalls.generator,
            stalls.emulator_longest.max(stalls.generator_longest).rounded()
        ))),
        0 | 1 => Err(Unread::TooFew("fewer than two round trips were measured".into())),
        _ => Ok(value),
    };
    match quantity {
        Quantity::Dropped => Ok((row.lost.emulator + row.lost.receiver) as f64),
        Quantity::Reordered => Ok(row.reordered as f64),
        Quantity::Duplicated => Ok(row.duplicated as f64),
        Quantity::Sent => Ok(row.sent as f64),
        Quantity::Delay => trips(row.round_trip_added_ns() as f64 / 2e9),
        Quantity::DeviationWith => trips(row.rtt_with.deviation.as_secs_f64()),
        Quantity::DeviationWithout => trips(row.rtt_without.deviation.as_secs_f64()),
        Quantity::DelayError => trips(row.delay_error.p99.as_secs_f64()),
    }
}
