//! What a report is made of.

use crate::ReportError;
use crate::charts::Charts;
use crate::each_once;
use crate::figure::Figure;
use crate::names::coordinate;
use crate::rules::Rules;
use crate::section::Section;
use serde::Serialize;
use std::collections::BTreeSet;
use std::fmt;
use trunkline_core::Span;
use trunkline_engine::{EngineName, Note, NoteKind, Run};
use trunkline_measure::{Accuracy, Comparison, Estimator, Key, Quantity, key_text};

/// Everything that is shown and written. Engines are columns: none is treated otherwise than another.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Report {
    /// The heading.
    pub title: String,
    /// One or more sentences below it.
    pub about: String,
    /// Sentences that answer the report's question, where its maker knows them; else they are made from the runs.
    pub answer: Vec<String>,
    /// The version of the program that made the runs.
    pub version: String,
    /// The scenario's text, as read.
    pub scenario: String,
    /// Whatever else is worth keeping, in order: command line, machine, kernel. On the page and in
    /// `run.json` only, so that the CSV files depend on scenario and seed alone.
    pub facts: Vec<(String, String)>,
    /// The runs: one for each engine, scenario and cell.
    pub runs: Vec<Run>,
    /// Engines that were asked for and could not run, with the reason.
    pub unavailable: Vec<(EngineName, String)>,
    /// How each traffic is summarised.
    pub shown: Rules,
    /// The engine against which differences are given; the first where not chosen.
    pub reference: Option<EngineName>,
    /// Traffics that have charts of their own.
    pub charts: Charts,
    /// Figures asked for; they come before those that every report has.
    pub figures: Vec<Figure>,
    /// Tables held against published ones.
    pub comparisons: Vec<Comparison>,
    /// Tables of text, shown before the comparisons.
    pub sections: Vec<Section>,
}

/// How a traffic is summarised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shown {
    /// What is read off each sample.
    pub quantity: Quantity,
    /// By which rule many samples become one figure.
    pub estimator: Estimator,
}

impl Default for Shown {
    fn default() -> Shown {
        Shown { quantity: Quantity::Delay, estimator: Estimator::MEDIAN }
    }
}

/// Whether `quantity` is a throughput.
pub(crate) fn is_rate(quantity: Quantity) -> bool {
    matches!(quantity, Quantity::Rate | Quantity::TotalRate)
}

/// Which cell of which scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Spot<'a> {
    pub(crate) scenario: &'a str,
    pub(crate) cell: &'a Key,
}

impl<'a> Spot<'a> {
    pub(crate) fn of(run: &'a Run) -> Spot<'a> {
        Spot { scenario: &run.scenario, cell: &run.cell }
    }
}

/// What stands beside each value of a run that must not be used.
pub(crate) const INVALID: &str = "INVALID";

/// A run's engine in legends and titles, marked where the run is not to be used.
pub(crate) fn run_name(run: &Run) -> String {
    match run.is_valid() {
        true => run.engine.to_string(),
        false => format!("{} {INVALID}", run.engine),
    }
}

impl Report {
    /// All engines that ran or were asked for, in a fixed order.
    pub fn engines(&self) -> Vec<EngineName> {
        let ran = self.runs.iter().map(|run| run.engine);
        let asked = self.unavailable.iter().map(|(engine, _)| *engine);
        ran.chain(asked).collect::<BTreeSet<EngineName>>().into_iter().collect()
    }

    /// The engine against which differences are given: the one chosen if it ran, else the first that did.
    pub(crate) fn against(&self) -> Option<EngineName> {
        let ran = |engine: &EngineName| self.runs.iter().any(|run| run.engine == *engine);
        self.reference.filter(ran).or_else(|| self.engines().into_iter().find(ran))
    }

    /// Why `engine` did not run, where it did not.
    pub(crate) fn reason(&self, engine: EngineName) -> Option<&str> {
        let found = self.unavailable.iter().find(|(one, _)| *one == engine);
        found.map(|(_, reason)| reason.as_str())
    }

    /// Every cell, in the order of the runs.
    pub(crate) fn spots(&self) -> Vec<Spot<'_>> {
        let mut known = BTreeSet::new();
        self.runs.iter().map(Spot::of).filter(|spot| known.insert(*spot)).collect()
    }

    /// The run of `engine` at `spot`.
    pub(crate) fn run(&self, engine: EngineName, spot: Spot<'_>) -> Option<&Run> {
        self.runs.iter().find(|run| run.engine == engine && Spot::of(run) == spot)
    }

    /// The names of all traffics, in the order of the runs.
    pub(crate) fn traffics(&self) -> Vec<&str> {
        let mut known = BTreeSet::new();
        let names = self.runs.iter().flat_map(|run| &run.traffic).map(|it| it.name.as_str());
        names.filter(|name| known.insert(*name)).collect()
    }

    /// Which traffics have no charts, in a sentence; `None` if all have.
    pub fn undrawn(&self) -> Option<String> {
        let all = self.traffics().len();
        let drawn = self.charts.of(all);
        let which = match drawn {
            _ if drawn == all => return None,
            0 => format!("none of the {all} traffics"),
            1 => format!("the first of {all} traffics"),
            _ => format!("the first {drawn} of {all} traffics"),
        };
        Some(format!("charts show {which}, tables and CSV files hold all"))
    }

    /// The runs at `spot` in the engines' order.
    pub(crate) fn runs_at(&self, spot: Spot<'_>) -> Vec<&Run> {
        self.engines().into_iter().filter_map(|engine| self.run(engine, spot)).collect()
    }

    /// The grid's keys, of all runs together.
    pub(crate) fn keys(&self) -> Vec<&str> {
        let keys = self.runs.iter().flat_map(|run| run.cell.keys());
        keys.map(String::as_str).collect::<BTreeSet<&str>>().into_iter().collect()
    }

    /// The seeds, each once.
    pub(crate) fn seeds(&self) -> Vec<u64> {
        self.runs.iter().map(|run| run.seed).collect::<BTreeSet<u64>>().into_iter().collect()
    }

    /// The keys and, where there are several, the scenario whose values tell the cells apart.
    pub(crate) fn varying(&self) -> (bool, Vec<&str>) {
        let scenarios: BTreeSet<&str> = self.runs.iter().map(|run| run.scenario.as_str()).collect();
        let differs = |key: &&str| {
            let values: BTreeSet<Option<&String>> =
                self.runs.iter().map(|run| run.cell.get(*key)).collect();
            values.len() > 1
        };
        (scenarios.len() > 1, self.keys().into_iter().filter(differs).collect())
    }

    /// A cell's name by what tells it apart from the others; empty where there is only one.
    pub(crate) fn label(&self, spot: Spot<'_>) -> String {
        self.label_without(spot, None)
    }

    /// The same, one coordinate left out.
    pub(crate) fn label_without(&self, spot: Spot<'_>, without: Option<&str>) -> String {
        let (scenarios, keys) = self.varying();
        let keys = keys.into_iter().filter(|key| Some(*key) != without);
        let scenario = scenarios.then(|| spot.scenario.to_string());
        let value =
            |key: &str| spot.cell.get(key).map(|value| format!("{} = {value}", coordinate(key)));
        let parts: Vec<String> = scenario.into_iter().chain(keys.filter_map(value)).collect();
        parts.join(", ")
    }

    /// What a reader has to know, each once: reasons, the runs' own notes with their engine, and counts
    /// of packets that do not add up.
    pub fn notes(&self) -> Vec<ReportNote> {
        let told = |((engine, note), cells)| ReportNote { engine, note, cells };
        each_once(self.all_notes()).into_iter().map(told).collect()
    }

    fn all_notes(&self) -> Vec<(EngineName, Note)> {
        let reason = |(engine, reason): &(EngineName, String)| {
            (*engine, Note::new(NoteKind::Unavailable, format!("unavailable: {reason}")))
        };
        let of_runs = self.runs.iter().flat_map(|run| {
            let (spoilt, others): (Vec<&Note>, Vec<&Note>) =
                run.notes.iter().partition(|note| note.kind == NoteKind::Invalid);
            let own = spoilt.into_iter().chain(others).cloned();
            own.chain(broken(run)).map(|note| (run.engine, note))
        });
        self.unavailable.iter().map(reason).chain(of_runs).chain(accuracy(&self.runs)).collect()
    }

    /// Refuses two runs of one engine in one cell: a table has one place for them.
    pub(crate) fn check(&self) -> Result<(), ReportError> {
        let mut known = BTreeSet::new();
        let twice = self.runs.iter().find(|run| !known.insert((run.engine, Spot::of(run))));
        twice.map_or(Ok(()), |run| {
            Err(ReportError::Twice {
                engine: run.engine,
                scenario: run.scenario.clone(),
                cell: key_text(&run.cell),
            })
        })
    }
}

/// What a reader of a report has to know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReportNote {
    /// The engine that it is of.
    pub engine: EngineName,
    /// The note.
    #[serde(flatten)]
    pub note: Note,
    /// In how many cells it was told.
    pub cells: usize,
}

/// A line for people.
impl fmt::Display for ReportNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.engine, self.note)?;
        match self.cells {
            1 => Ok(()),
            cells => write!(f, " ({cells} cells)"),
        }
    }
}

/// The traffics whose packets do not add up.
fn broken(run: &Run) -> impl Iterator<Item = Note> + '_ {
    let broken = run.traffic.iter().filter(|traffic| !traffic.packets.holds());
    broken.map(|traffic| {
        Note::of_traffic(&traffic.name, NoteKind::Broken, "the packets do not add up")
    })
}

/// How exactly the runs in real time were carried out, all of them together and the worst of each figure.
fn accuracy(runs: &[Run]) -> Option<(EngineName, Note)> {
    let engine = runs.iter().find(|run| run.accuracy.is_some())?.engine;
    let all: Vec<&Accuracy> = runs.iter().filter_map(|run| run.accuracy.as_ref()).collect();
    let worst = |of: fn(&Accuracy) -> Span| all.iter().map(|one| of(one)).max();
    let sum = |of: fn(&Accuracy) -> u64| all.iter().map(|one| of(one)).sum::<u64>();
    let (p99, max) = (worst(|one| one.lateness.p99)?, worst(|one| one.lateness.max)?);
    let (frames, lost, stalls) =
        (sum(|one| one.frames_out), sum(|one| one.dropped_by_emulator), sum(|one| one.stalls));
    let (p99, max) = (p99.rounded(), max.rounded());
    let late = format!("; 99 in 100 left within {p99} of their time, the latest {max} late");
    let late = if frames > 0 { late } else { String::new() };
    let text = format!(
        "{frames} frames sent on{late}; {lost} lost by the emulator; {stalls} stalls of the machine"
    );
    Some((engine, Note::new(NoteKind::Accuracy, text)))
}
