//! What a run of a study has found.

use crate::format::Provenance;
use crate::unit::Unit;
use trunkline_measure::{Comparison, Key};
use trunkline_report::Figure;

/// What a run of a study has found.
#[derive(Debug, Clone, PartialEq)]
pub struct StudyResult {
    /// The study's name.
    pub name: String,
    /// Its title.
    pub title: String,
    /// The report that it redoes.
    pub report: String,
    /// A paragraph about it.
    pub about: String,
    /// How many cells were run.
    pub runs: usize,
    /// One for each experiment, in the study's order.
    pub experiments: Vec<ExperimentResult>,
    /// Values quoted in running text.
    pub quotes: Vec<QuoteResult>,
    /// Charts, published and ours in one.
    pub figures: Vec<Figure>,
    /// What counts as success.
    pub goals: Vec<GoalResult>,
    /// The sources of the parameters.
    pub parameters: Vec<ParameterNote>,
    /// What went wrong: a run that failed, or that broke a law of conservation. None in a sound result.
    pub failures: Vec<String>,
    /// Cells that must not be used, because the machine has spoilt them: they have no value.
    pub invalid: Vec<String>,
    /// What a reader has to know: remarks of the engine, each once.
    pub notes: Vec<String>,
}

impl StudyResult {
    /// Parameters that no section states.
    pub fn inferred(&self) -> usize {
        self.parameters
            .iter()
            .filter(|parameter| parameter.provenance == Provenance::Inferred)
            .count()
    }

    /// Whether all goals have been met, nothing has failed, and nothing was spoilt.
    pub fn holds(&self) -> bool {
        self.failures.is_empty()
            && self.invalid.is_empty()
            && self.goals.iter().all(|goal| goal.met)
    }

    /// The experiment of this name.
    pub fn experiment(&self, name: &str) -> Option<&ExperimentResult> {
        self.experiments.iter().find(|experiment| experiment.name == name)
    }
}

/// A table of an experiment: published and ours.
#[derive(Debug, Clone, PartialEq)]
pub struct ExperimentResult {
    /// The experiment's name.
    pub name: String,
    /// Heading of its table.
    pub title: String,
    /// A remark; empty for none.
    pub note: String,
    /// The unit of its values.
    pub unit: Unit,
    /// Relative error up to which a cell counts as agreeing; none if it is only shown.
    pub tolerance: Option<f64>,
    /// Every cell, with its relative error.
    pub comparison: Comparison,
    /// The cells without a value of ours or of the report's, which are not in the comparison: one that failed, if
    /// nothing is published.
    pub absent: Vec<Key>,
    /// Why cells have no value of ours.
    pub problems: Vec<String>,
}

/// A value quoted in running text, and ours.
#[derive(Debug, Clone, PartialEq)]
pub struct QuoteResult {
    /// The table that lists it.
    pub file: String,
    /// Its row there.
    pub row: Key,
    /// What it is about.
    pub title: String,
    /// The section that says it.
    pub section: String,
    /// As the report says it.
    pub published: String,
    /// The unit of ours; that of the published value if it is a number.
    pub unit: Unit,
    /// Ours, if there is something to hold it against.
    pub ours: Option<f64>,
    /// Relative error, if both are numbers.
    pub error: Option<f64>,
    /// Whether ours rests on a run. What follows from other figures of the report by arithmetic alone agrees whatever the
    /// engines do.
    pub measured: bool,
    /// Whether ours agrees. None if nothing is judged.
    pub agrees: Option<bool>,
    /// The values with which it agrees: a range, or a tolerance; empty if nothing is judged.
    pub allowed: String,
    /// Why there is nothing of ours, or what went wrong.
    pub remark: String,
}

/// A goal and whether it was met.
#[derive(Debug, Clone, PartialEq)]
pub struct GoalResult {
    /// The goal in one sentence.
    pub title: String,
    /// Whether it was met.
    pub met: bool,
    /// What was found, in one sentence.
    pub found: String,
    /// The cells that are outside, each with its figures.
    pub outside: Vec<String>,
}

/// The source of a parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParameterNote {
    /// The file it stands in.
    pub file: String,
    /// Its path there.
    pub key: String,
    /// Its value there.
    pub value: String,
    /// The source of its value.
    pub provenance: Provenance,
    /// The section that states it, or why it is thought to be so.
    pub source: String,
}
