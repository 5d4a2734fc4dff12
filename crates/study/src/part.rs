//! The parts of an experiment with what they take from the experiment itself.

use crate::format::{Experiment, Key as Column, Part};
use std::collections::BTreeSet;
use trunkline_engine::EngineName;
use trunkline_measure::Key;

impl Part {
    /// The engine that runs it: the simulator unless it says another.
    pub fn engine(&self) -> EngineName {
        self.engine.unwrap_or(EngineName::SIM)
    }
}

impl Column {
    /// Whether a reading tells its value, which stands for one size of messages or one range of times.
    pub fn is_of_reading(&self) -> bool {
        [SIZE, RANGE].contains(&self.from.as_str())
    }
}

impl Experiment {
    /// Its parts, complete; one if it names none.
    pub fn resolved(&self) -> Vec<Part> {
        let complete = |part: &Part| Part {
            filter: self.filter.and(&part.filter),
            scenario: part.scenario.clone().or_else(|| self.scenario.clone()),
            variant: part.variant.clone().or_else(|| self.variant.clone()),
            traffic: part.traffic.clone().or_else(|| self.traffic.clone()),
            engine: part.engine.or(self.engine),
            cell: self.cell.and(&part.cell),
        };
        match self.part.is_empty() {
            true => vec![complete(&Part::default())],
            false => self.part.iter().map(complete).collect(),
        }
    }

    /// The columns that name a row: the keys, and what the filters hold constant.
    pub fn columns(&self) -> BTreeSet<String> {
        let constant =
            self.resolved().into_iter().flat_map(|part| part.filter.constants().into_keys());
        self.keys.keys().cloned().chain(constant).collect()
    }

    /// Whether there is a value for each message size.
    pub fn by_size(&self) -> bool {
        self.keys.values().any(|key| key.from == SIZE)
    }

    /// The columns named in a row of a published table, as a key.
    pub fn key_of(&self, row: &Key) -> Key {
        let columns = self.columns().into_iter();
        columns.filter_map(|column| Some((column.clone(), row.get(&column)?.clone()))).collect()
    }
}

/// What a key column is called that stands for the message size.
pub const SIZE: &str = "size";

/// What a key column is called that stands for the lower end of a range of times.
pub const RANGE: &str = "range";
