//! Ours beside the published values, row by row.

use crate::error::StudyError;
use crate::format::{Experiment, Measure};
use crate::job::Ours;
use crate::result::ExperimentResult;
use crate::source::Source;
use crate::table::agree;
use crate::term::{FormulaTerm, Tables, Term, value};
use trunkline_measure::{Cell, Key, Table, Tolerance, compare, key_text};

/// The rows of one experiment with ours, in the experiment's unit.
pub(crate) fn result(
    source: &Source,
    experiment: &Experiment,
    ours: &[(Key, Result<f64, String>)],
    tables: &Tables,
) -> Result<ExperimentResult, StudyError> {
    let wrong =
        |problem: String| StudyError::wrong(format!("experiment {}", experiment.name), problem);
    let mut tally = Tally::new(experiment);
    match &experiment.published {
        Some(file) => {
            let rows =
                source.published(file).map(|table| table.rows.as_slice()).unwrap_or_default();
            for row in rows.iter().filter(|row| concerns(experiment, row)) {
                let found = our_value(experiment, row, ours, tables);
                tally.published(row, &found).map_err(wrong)?;
            }
        }
        None if experiment.rows_of.is_some() => {
            let rows = experiment.rows_of.as_ref().and_then(|name| tables.get(name));
            let rows = rows.map(|(_, rows)| rows.as_slice()).unwrap_or_default();
            for row in rows.iter().filter(|row| experiment.filter.allows(&row.key)) {
                let found = our_value(experiment, &row.key, ours, tables);
                tally.ours(&row.key, &found).map_err(wrong)?;
            }
        }
        None => ours.iter().try_for_each(|(key, found)| tally.ours(key, found)).map_err(wrong)?,
    }
    tally.result().map_err(wrong)
}

/// Ours for a published row: the formula's value, or the one reading whose key says the same.
fn our_value(
    experiment: &Experiment,
    row: &Key,
    ours: &[(Key, Result<f64, String>)],
    tables: &Tables,
) -> Result<f64, String> {
    if let Measure::Formula { formula, arguments } = &experiment.measure {
        let (formula, arguments) = (formula.clone(), arguments.clone());
        let term = Term::Formula(FormulaTerm { formula, arguments });
        return value(&term, row, tables).map_err(|error| error.to_string());
    }
    let mut matching =
        ours.iter().filter(|(key, _)| agree(key, row) == Some(true) && covers(row, key));
    match (matching.next(), matching.next()) {
        (Some((_, found)), None) => found.clone(),
        (None, _) => Err("no run has a value for it".into()),
        (Some((one, _)), Some((other, _))) => {
            Err(format!("{} and {} both fit: name more keys", key_text(one), key_text(other)))
        }
    }
}

/// Whether the row is one of the experiment's, and has a value.
pub(crate) fn concerns(experiment: &Experiment, row: &Key) -> bool {
    let value = experiment.value.as_ref().and_then(|column| row.get(column));
    let chosen = || experiment.resolved().iter().any(|part| part.filter.allows(row));
    value.is_some_and(|text| !text.is_empty()) && chosen()
}

/// Whether the row has every column of the key.
fn covers(row: &Key, key: &Key) -> bool {
    key.keys().all(|column| row.contains_key(column))
}

/// Both tables of an experiment in the making.
struct Tally<'a> {
    experiment: &'a Experiment,
    published: Table,
    ours: Table,
    problems: Vec<String>,
}

impl<'a> Tally<'a> {
    fn new(experiment: &'a Experiment) -> Tally<'a> {
        let table = || Table::new(&experiment.title, experiment.unit.sign());
        Tally { experiment, published: table(), ours: table(), problems: Vec::new() }
    }

    fn published(&mut self, row: &Key, found: &Result<f64, String>) -> Result<(), String> {
        let key = self.experiment.key_of(row);
        let text = self.experiment.value.as_ref().map_or("", |column| row[column].as_str());
        let value =
            text.parse().map_err(|_| format!("{text:?} at {} is not a number", key_text(&key)))?;
        let suspect =
            self.experiment.spare_suspects && row.get("suspect").is_some_and(|mark| mark == "1");
        let note = row.get("note").cloned().unwrap_or_default();
        let cell = Cell { value, suspect, note };
        self.published.put(key.clone(), Some(cell)).map_err(|error| error.to_string())?;
        self.ours(&key, found)
    }

    fn ours(&mut self, key: &Key, found: &Result<f64, String>) -> Result<(), String> {
        let cell = match found {
            Ok(value) if value.is_finite() => Some(Cell::of(value / self.experiment.unit.scale())),
            Ok(value) => {
                self.problems.push(format!("{}: it came out as {value}", key_text(key)));
                None
            }
            Err(problem) => {
                self.problems.push(format!("{}: {problem}", key_text(key)));
                None
            }
        };
        self.ours.put(key.clone(), cell).map_err(|error| error.to_string())
    }

    fn result(self) -> Result<ExperimentResult, String> {
        let experiment = self.experiment;
        let tolerance = Tolerance::relative(experiment.tolerance.unwrap_or(f64::INFINITY));
        let comparison =
            compare(&self.published, &self.ours, tolerance).map_err(|error| error.to_string())?;
        let unpublished = |key: &&Key| self.published.get(key).is_none();
        let absent = self.ours.empty.iter().filter(unpublished).cloned().collect();
        Ok(ExperimentResult {
            absent,
            name: experiment.name.clone(),
            title: experiment.title.clone(),
            note: experiment.note.clone(),
            unit: experiment.unit,
            tolerance: experiment.tolerance,
            comparison,
            problems: self.problems,
        })
    }
}

/// The readings of one experiment.
pub(crate) fn of_experiment(index: usize, ours: &[Ours]) -> Vec<(Key, Result<f64, String>)> {
    let own = ours.iter().filter(|(experiment, _, _)| *experiment == index);
    own.map(|(_, key, value)| (key.clone(), value.clone())).collect()
}
