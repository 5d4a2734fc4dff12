//! The rules by which measurements become figures, cell by cell.

use crate::report::{Shown, Spot};
use std::collections::BTreeMap;
use trunkline_measure::Key;

/// How each traffic is summarised; [`Shown::default`] where nothing is said. A grid may vary the rule itself, and
/// scenarios that share a page may use a name for different traffic, so a cell's own rule comes first.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Rules {
    everywhere: BTreeMap<String, Shown>,
    /// By scenario, cell and traffic.
    cells: BTreeMap<String, BTreeMap<Key, BTreeMap<String, Shown>>>,
}

impl Rules {
    /// The rule of `traffic` in every cell that has none of its own.
    pub fn insert(&mut self, traffic: &str, shown: Shown) {
        self.everywhere.insert(traffic.into(), shown);
    }

    /// The rule of `traffic` in one cell of a scenario.
    pub fn insert_at(&mut self, scenario: &str, cell: &Key, traffic: &str, shown: Shown) {
        let cells = self.cells.entry(scenario.into()).or_default();
        cells.entry(cell.clone()).or_default().insert(traffic.into(), shown);
    }

    /// Takes over what `other` says.
    pub fn extend(&mut self, other: &Rules) {
        self.everywhere.extend(other.everywhere.iter().map(|(name, shown)| (name.clone(), *shown)));
        for (scenario, cells) in &other.cells {
            for (cell, traffic) in cells {
                traffic.iter().for_each(|(name, shown)| {
                    self.insert_at(scenario, cell, name, *shown);
                });
            }
        }
    }

    /// The rule of `traffic` in a cell.
    pub(crate) fn at(&self, spot: Spot<'_>, traffic: &str) -> Shown {
        let cell = self.cells.get(spot.scenario).and_then(|cells| cells.get(spot.cell));
        let own = cell.and_then(|of| of.get(traffic));
        own.or_else(|| self.everywhere.get(traffic)).copied().unwrap_or_default()
    }
}
