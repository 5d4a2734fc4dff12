//! Virtual time: a scenario is run packet by packet, to the nanosecond and reproducibly.
//!
//! [`run`] takes a scenario to its end. Underneath, [`Network`] moves packets over links; hosts,
//! interfaces and end points stand on it.

mod error;
mod hosts;
mod network;

pub use error::SimError;
pub use network::{
    Event, HopShare, HopSums, LinkId, Network, Parcel, RECORD_BYTES, RecordKind, RouteId, TraceId,
};

use trunkline_measure::Run;
use trunkline_scenario::Scenario;

/// Runs one cell of a scenario in virtual time. The same scenario and seed give the same [`Run`] to the
/// last bit.
///
/// # Errors
/// Where a traffic has no way, or a transport's settings are out of range.
pub fn run(scenario: &Scenario) -> Result<Run, SimError> {
    let mut world = hosts::World::new(scenario)?;
    world.run();
    Ok(world.into_run())
}
