//! Runs made up for tests.

use std::collections::BTreeMap;
use trunkline_core::Time;
use trunkline_measure::{Engine, Run, TrafficRun};

/// A run with this traffic and nothing else.
pub(crate) fn run(traffic: Vec<TrafficRun>) -> Run {
    Run {
        engine: Engine::Sim,
        scenario: "test".into(),
        cell: BTreeMap::new(),
        seed: 1,
        traffic,
        links: Vec::new(),
        places: Vec::new(),
        ended: Time::from_nanos(u64::MAX),
        notes: Vec::new(),
        invalid: Vec::new(),
        accuracy: None,
    }
}
