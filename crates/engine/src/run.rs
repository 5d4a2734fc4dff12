//! What every engine returns, and what everything that shows or compares results starts from.

use crate::{EngineName, Pace};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use trunkline_core::Time;
use trunkline_measure::{Accuracy, LinkRun, TrafficRun};

/// The result of one cell of a scenario's grid in one engine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The name of the engine that made it.
    pub engine: EngineName,
    /// In which time it passed.
    pub pace: Pace,
    /// The scenario's name.
    pub scenario: String,
    /// The grid's coordinates of this cell, as `key = value` texts; empty where there is no grid.
    pub cell: BTreeMap<String, String>,
    /// The seed of all randomness.
    pub seed: u64,
    /// One entry for each traffic of the scenario, in its order.
    pub traffic: Vec<TrafficRun>,
    /// One entry for each direction of each link, in the scenario's order.
    pub links: Vec<LinkRun>,
    /// The names to which [`Step::place`] refers.
    pub places: Vec<String>,
    /// When the run ended, since its start.
    pub ended: Time,
    /// What a reader has to know: an assumption made, a limit met, a part that no formula covers.
    pub notes: Vec<String>,
    /// Why the result must not be used: the machine was too busy, a clock was set. Empty for a valid run.
    pub invalid: Vec<String>,
    /// How exactly a real-time run was carried out; `None` for the other engines.
    pub accuracy: Option<Accuracy>,
}

impl Run {
    /// May its figures be used? Not where the machine has spoilt the run, nor where something failed in it.
    pub fn is_valid(&self) -> bool {
        self.invalid.is_empty() && self.failures().next().is_none()
    }

    /// Why its figures must not be used; empty where they may.
    pub fn doubts(&self) -> Vec<String> {
        self.invalid.iter().cloned().chain(self.failures()).collect()
    }

    /// What failed in it, from its notes: outside programs, flows that gave up, data that came out other than they
    /// went in, each with the name of its traffic.
    pub fn failures(&self) -> impl Iterator<Item = String> + '_ {
        self.notes.iter().filter_map(|note| {
            let (traffic, what) = note.split_once(": error: ")?;
            Some(format!("traffic '{traffic}' failed: {what}"))
        })
    }

    /// The traffic of this name.
    pub fn traffic(&self, name: &str) -> Option<&TrafficRun> {
        self.traffic.iter().find(|traffic| traffic.name == name)
    }
}

/// The complaint about data that came out other than they went in, the same in every engine.
pub fn wrong_blocks(blocks: u64) -> String {
    format!(
        "{blocks} blocks accepted were not the next of the stream, so that the receiver has wrong data: losses and copies can deceive a protocol that knows a block by its number alone"
    )
}
