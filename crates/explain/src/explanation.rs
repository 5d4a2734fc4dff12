//! What an explanation says, as data.

use crate::constraint::Constraint;
use crate::figure::{Figure, Measure};
use crate::rounds::Rounds;
use crate::waterfall::{Bar, StateShare};
use serde::Serialize;
use std::collections::BTreeMap;
use trunkline_engine::Note;

/// Why a scenario comes out as it does.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Explanation {
    /// The scenario's name.
    pub scenario: String,
    /// The grid's coordinates of this cell.
    pub cell: BTreeMap<String, String>,
    /// The seed of all runs.
    pub seed: u64,
    /// How many runs stand behind it.
    pub runs: usize,
    /// One for each traffic.
    pub traffic: Vec<TrafficExplanation>,
    /// What a reader has to know.
    pub notes: Vec<Note>,
}

/// Why one traffic comes out as it does.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TrafficExplanation {
    /// Its name.
    pub name: String,
    /// What is compared.
    pub measure: Measure,
    /// Does it run for as long as another traffic does?
    pub background: bool,
    /// What the senders waited for, longest first; for transfers.
    pub sender: Vec<StateShare>,
    /// Where a block's time goes, longest first; for transfers.
    pub blocks: Vec<Bar>,
    /// Sizes that behave alike, by size.
    pub groups: Vec<Group>,
    /// Where a byte or two more make a difference.
    pub jumps: Vec<Jump>,
}

/// Sizes that behave alike: the same constraint binds, and they go in as many rounds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Group {
    /// Each size with its figure, ascending.
    pub sizes: Vec<(u64, Figure)>,
    /// The size for which everything else is told: the largest.
    pub size: u64,
    /// Where a message's time goes, in order of time.
    pub waterfall: Vec<Bar>,
    /// In how many rounds a write goes.
    pub rounds: Option<Rounds>,
    /// What binds.
    pub binds: Binding,
    /// What each relaxation buys, the most first.
    pub relaxed: Vec<Relaxed>,
    /// Pairs that buy much more than either alone, the best first.
    pub pairs: Vec<PairRelaxed>,
    /// The same in sentences.
    pub words: Vec<String>,
}

/// What binds a traffic.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Binding {
    /// One constraint.
    One(Constraint),
    /// Two, of which one alone buys nothing.
    Two(Constraint, Constraint),
    /// None of those that can be relaxed: the application's own pace.
    Nothing,
}

/// A constraint and what its steps buy.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Relaxed {
    /// The constraint.
    pub constraint: Constraint,
    /// Where, if there are several such places.
    pub place: String,
    /// As it is.
    pub now: String,
    /// Steps from the next one to be had to where the constraint is gone.
    pub steps: Vec<Bought>,
    /// The largest share of the time that one of the steps saves: 1 if nothing arrives without it.
    pub saved: f64,
    /// Is that more than chance may have made of it?
    pub certain: bool,
}

/// What a step buys.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Bought {
    /// What is changed: `756 B`, `round robin`.
    pub to: String,
    /// The figure with it.
    pub figure: Figure,
    /// The share of the time that it saves: 1 if nothing arrives without it, negative if it costs some, and infinite, `null` as JSON,
    /// if nothing arrives with it.
    pub saved: f64,
}

/// What two relaxations buy together.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PairRelaxed {
    /// The one, with its place.
    pub first: (Constraint, String),
    /// The other, with its place.
    pub second: (Constraint, String),
    /// The figure with both.
    pub figure: Figure,
    /// The share of the time that they save.
    pub saved: f64,
}

/// A step of the delay between two sizes that hardly differ.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Jump {
    /// The smaller size.
    pub from: u64,
    /// The larger one.
    pub to: u64,
    /// Their figures.
    pub figures: [Figure; 2],
    /// The constraint without which the step is smallest, and the share of the step that goes with it; `None`
    /// where none makes it much smaller.
    pub cause: Option<(Constraint, f64)>,
    /// In how many rounds either goes.
    pub rounds: [Option<Rounds>; 2],
    /// The same in a sentence.
    pub words: String,
}

impl Explanation {
    /// The traffic called `name`.
    pub fn traffic(&self, name: &str) -> Option<&TrafficExplanation> {
        self.traffic.iter().find(|traffic| traffic.name == name)
    }
}

impl TrafficExplanation {
    /// The group that holds `size`.
    pub fn group(&self, size: u64) -> Option<&Group> {
        self.groups.iter().find(|group| group.sizes.iter().any(|&(other, _)| other == size))
    }
}

impl Relaxed {
    /// The highest rate that one of the steps brings, in bytes each second.
    pub(crate) fn most(&self) -> f64 {
        self.steps.iter().map(|step| step.figure.bytes_per_second).fold(0.0, f64::max)
    }
}

impl Group {
    /// The figure of its representative size.
    pub fn figure(&self) -> &Figure {
        // A group is made from at least one size.
        &self.sizes[self.sizes.len() - 1].1
    }

    /// What relaxing `constraint` buys, at its best place.
    pub fn relaxing(&self, constraint: Constraint) -> Option<&Relaxed> {
        self.relaxed.iter().find(|relaxed| relaxed.constraint == constraint)
    }
}
