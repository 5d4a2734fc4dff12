//! Virtual time: a scenario is run packet by packet, to the nanosecond and reproducibly.
//!
//! [`run`] takes a scenario to its end; [`Simulator`] is the engine that does so. Underneath, [`Network`] moves packets
//! over links; hosts, interfaces and end points stand on it.

mod cluster;
mod error;
mod hosts;
mod network;

pub use error::SimError;
pub use network::{
    Event, HopShare, HopSums, LinkId, MediumId, Network, Parcel, RECORD_BYTES, RecordKind, RouteId,
    TraceId,
};

use trunkline_core::{Span, Time};
use trunkline_engine::{Engine, EngineError, EngineName, Pace, Run};
use trunkline_scenario::{Network as Lowered, Scenario};

/// Events between two words on how far a run is: some tens of milliseconds' work (a choice).
const EVENTS: u32 = 1 << 17;

/// The engine of virtual time.
#[derive(Debug, Clone, Copy, Default)]
pub struct Simulator;

impl Engine for Simulator {
    fn name(&self) -> EngineName {
        EngineName::SIM
    }

    fn pace(&self) -> Pace {
        Pace::Virtual
    }

    fn run(&self, network: &Lowered<'_>, told: &(dyn Fn(&str) + Sync)) -> Result<Run, EngineError> {
        simulate(network, told).map_err(|error| EngineError::refused(&error))
    }
}

/// Runs one cell of a scenario in virtual time. The same scenario and seed give the same [`Run`] to the
/// last bit.
///
/// # Errors
/// If a traffic has no way, or a transport's settings are out of range.
pub fn run(scenario: &Scenario) -> Result<Run, SimError> {
    simulate(&Lowered::of(scenario)?, &|_| ())
}

fn simulate(network: &Lowered<'_>, told: &(dyn Fn(&str) + Sync)) -> Result<Run, SimError> {
    let mut world = hosts::World::new(network)?;
    world.run(told);
    let mut run = world.into_run();
    let scenario = network.scenario();
    scenario.clusters.iter().try_for_each(|spec| cluster::run(scenario, spec, &mut run, told))?;
    Ok(run)
}

/// How far a run is, in words.
fn so_far(now: Time) -> String {
    let micros = now.as_nanos() / 1_000;
    format!("{} of virtual time", Span::from_micros(micros))
}
