//! The result that every engine returns, from which everything that shows or compares results starts.

use crate::{EngineName, Note, NoteKind, Pace, Picture};
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
    /// The names to which [`Step::place`](trunkline_measure::Step::place) refers.
    pub places: Vec<String>,
    /// When the run ended, since its start.
    pub ended: Time,
    /// What a reader has to know: why the result must not be used, an assumption made, a limit met, a part that no
    /// formula covers.
    pub notes: Vec<Note>,
    /// The accuracy with which a real-time run was carried out; `None` for the other engines.
    pub accuracy: Option<Accuracy>,
    /// What it has drawn of itself, as the scenario asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pictures: Vec<Picture>,
}

impl Run {
    /// Whether its figures may be used: not if the machine has spoilt the run, nor if something failed in it.
    pub fn is_valid(&self) -> bool {
        self.notes.iter().all(|note| note.doubt().is_none())
    }

    /// Why its figures must not be used, first what the machine did to it; empty if they may.
    pub fn doubts(&self) -> Vec<String> {
        self.invalid().chain(self.failures()).collect()
    }

    /// What the machine did to it: not the run, but the measurement is of no use.
    pub fn invalid(&self) -> impl Iterator<Item = String> + '_ {
        self.doubts_of(NoteKind::Invalid)
    }

    /// What failed in it: outside programs, flows that gave up, data that came out other than they went in, each with
    /// the name of its traffic.
    pub fn failures(&self) -> impl Iterator<Item = String> + '_ {
        self.doubts_of(NoteKind::Failed)
    }

    fn doubts_of(&self, kind: NoteKind) -> impl Iterator<Item = String> + '_ {
        self.notes.iter().filter(move |note| note.kind == kind).filter_map(Note::doubt)
    }

    /// The traffic of this name.
    pub fn traffic(&self, name: &str) -> Option<&TrafficRun> {
        self.traffic.iter().find(|traffic| traffic.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(notes: &[Note]) -> Run {
        Run {
            engine: EngineName::EMU,
            pace: Pace::Real,
            scenario: "test".into(),
            cell: BTreeMap::new(),
            seed: 1,
            traffic: Vec::new(),
            links: Vec::new(),
            places: Vec::new(),
            ended: Time::ZERO,
            notes: notes.into(),
            accuracy: None,
            pictures: Vec::new(),
        }
    }

    #[test]
    fn what_failed_or_was_spoilt_is_not_valid() {
        let remark = Note::of_traffic("bulk", NoteKind::Assumed, "an error: of no account");
        let spoilt = Note::new(NoteKind::Invalid, "too busy");
        let failed = Note::of_traffic("bulk", NoteKind::Failed, "no answer");
        let why = ["too busy", "traffic 'bulk' failed: no answer"].map(String::from);
        let fine = run(std::slice::from_ref(&remark));
        assert!(fine.is_valid() && fine.doubts().is_empty());
        assert_eq!(run(&[failed.clone(), remark, spoilt.clone()]).doubts(), why);
        assert_eq!(run(&[spoilt]).doubts(), why[..1]);
        let failed = run(&[failed]);
        assert_eq!((failed.is_valid(), failed.doubts()), (false, vec![why[1].clone()]));
    }

    /// A program that was stopped has not failed, whatever stands in its command.
    #[test]
    fn the_words_of_a_note_decide_nothing() {
        let text = "'grep \": error: \" log' was still running and was stopped";
        let stopped = run(&[Note::of_traffic("t", NoteKind::Program, text)]);
        assert!(stopped.is_valid(), "{:?}", stopped.doubts());
    }
}
