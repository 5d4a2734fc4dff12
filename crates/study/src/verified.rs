//! Figures of a path that was measured from outside (LDS report §3.9).

use crate::format::Quantity;
use crate::job::INVALID;
use trunkline_verify::report::Row;

/// The figure, in base units. What was lost and overtaken counts in any case; times say nothing of the path
/// where the machine has stalled.
pub(crate) fn quantity(row: &Row, quantity: Quantity) -> Result<f64, String> {
    let stalls = &row.stalls;
    let trips = |value: f64| match row.rtt_with.count.min(row.rtt_without.count) {
        _ if stalls.any() => Err(format!(
            "{INVALID}the machine stalled {} times, up to {}",
            stalls.emulator + stalls.generator,
            stalls.emulator_longest.max(stalls.generator_longest).rounded()
        )),
        0 | 1 => Err("fewer than two round trips were measured".to_string()),
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
    }
}
