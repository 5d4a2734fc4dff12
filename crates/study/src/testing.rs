//! Runs made up for tests.

use std::collections::BTreeMap;
use trunkline_core::Time;
use trunkline_engine::{EngineName, Pace, Run};
use trunkline_measure::TrafficRun;

/// A run with this traffic and nothing else.
pub(crate) fn run(traffic: Vec<TrafficRun>) -> Run {
    Run {
        engine: EngineName::SIM,
        pace: Pace::Virtual,
        scenario: "test".into(),
        cell: BTreeMap::new(),
        seed: 1,
        traffic,
        links: Vec::new(),
        places: Vec::new(),
        ended: Time::from_nanos(u64::MAX),
        notes: Vec::new(),
        accuracy: None,
        pictures: Vec::new(),
    }
}
