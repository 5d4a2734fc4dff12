//! Which cells of which scenarios have to be run, each once however many experiments read it.

use crate::coordinate::coordinate;
use crate::extract::extract;
use crate::format::{Experiment, Measure, Part};
use crate::source::{ScenarioFile, Source};
use crate::verified::{self, Unread};
use std::collections::BTreeMap;
use std::sync::Arc;
use trunkline_engine::{EngineName, Note, Run, check};
use trunkline_measure::Key;
use trunkline_scenario::Scenario;
use trunkline_verify::report::Row;

/// One cell to be run, and who reads it.
#[derive(Debug)]
pub(crate) struct Job {
    /// Scenario file, variant, and the cell's place in its grid.
    pub file: String,
    pub variant: Option<String>,
    pub cell: usize,
    /// Who runs it.
    pub engine: EngineName,
    /// Is the path measured from outside, instead of its traffic?
    pub verify: bool,
    read: Arc<ScenarioFile>,
    /// Index of each experiment that reads it, with the part.
    uses: Vec<(usize, Part)>,
}

/// One value of ours: whose, under which key, in base units or why there is none.
pub(crate) type Ours = (usize, Key, Result<f64, String>);

/// What the reason begins with where the machine has spoilt a value.
const INVALID: &str = "INVALID: ";

/// What a job has found.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Outcome {
    pub values: Vec<Ours>,
    pub failures: Vec<String>,
    /// Why the cell must not be used, where the machine has spoilt it.
    pub invalid: Vec<String>,
    pub notes: Vec<String>,
}

/// The jobs of a study, in the order in which experiments first name them.
pub(crate) fn jobs(source: &Source) -> Vec<Job> {
    let mut jobs: Vec<Job> = Vec::new();
    let mut places: BTreeMap<Place, usize> = BTreeMap::new();
    for (index, experiment) in source.study.experiment.iter().enumerate() {
        if matches!(experiment.measure, Measure::Formula { .. }) {
            continue;
        }
        for part in experiment.resolved() {
            let verify = matches!(experiment.measure, Measure::Verify { .. });
            for (place, job) in cells(source, &part, verify) {
                let at = *places.entry(place).or_insert_with(|| {
                    jobs.push(job);
                    jobs.len() - 1
                });
                jobs[at].uses.push((index, part.clone()));
            }
        }
    }
    jobs
}

/// The engine, whether it verifies, the file, its variant, the cell.
type Place = (EngineName, bool, String, Option<String>, usize);

fn cells(source: &Source, part: &Part, verify: bool) -> Vec<(Place, Job)> {
    let Some(file) = &part.scenario else { return Vec::new() };
    let Some(read) = source.scenario(file, part.variant.as_deref()) else { return Vec::new() };
    let chosen = read.cells.iter().enumerate().filter(|(_, cell)| part.cell.allows(&cell.cell));
    let job = |(cell, _): (usize, &Scenario)| {
        let (file, variant, read) = (file.clone(), part.variant.clone(), Arc::clone(read));
        let engine = part.engine();
        let place = (engine, verify, file.clone(), variant.clone(), cell);
        (place, Job { file, variant, cell, engine, verify, read, uses: Vec::new() })
    };
    chosen.map(job).collect()
}

impl Job {
    /// The scenario.
    pub fn scenario(&self) -> &Scenario {
        &self.read.cells[self.cell]
    }

    /// How complaints and progress call it.
    pub fn label(&self) -> String {
        let pairs = self.scenario().cell.iter().map(|(key, value)| format!(" {key}={value}"));
        let variant = self.variant.iter().map(|name| format!(" ({name})"));
        let engine = match (self.verify, self.engine) {
            (true, _) => Some(" (verified)".to_string()),
            (false, EngineName::SIM) => None,
            (false, engine) => Some(format!(" ({engine})")),
        };
        std::iter::once(self.file.clone()).chain(engine).chain(variant).chain(pairs).collect()
    }

    /// Rough measure of how long it takes: the longest come first, and what is verified last.
    pub fn cost(&self) -> u64 {
        if self.verify { 0 } else { trunkline_batch::cost(self.scenario()) }
    }

    /// What every reader finds in the run, or that it failed.
    pub fn outcome(&self, experiments: &[Experiment], run: Result<Run, String>) -> Outcome {
        match run {
            Err(problem) => self.failed(experiments, &problem),
            Ok(run) if run.invalid().next().is_some() => {
                let why: Vec<String> = run.invalid().collect();
                self.spoilt(experiments, &why.join("; "))
            }
            Ok(run) if !run.is_valid() => self.failed(experiments, &run.doubts().join("; ")),
            Ok(run) => Outcome {
                values: self
                    .uses
                    .iter()
                    .flat_map(|reader| self.values(experiments, reader, &run))
                    .collect(),
                failures: check(&run)
                    .iter()
                    .map(|found| format!("{}: {found}", self.label()))
                    .collect(),
                invalid: Vec::new(),
                notes: run.notes.iter().map(Note::to_string).collect(),
            },
        }
    }

    /// What every reader finds in a measurement from outside.
    pub fn verified(&self, experiments: &[Experiment], row: Result<Row, String>) -> Outcome {
        let row = match row {
            Err(problem) => return self.failed(experiments, &problem),
            Ok(row) => row,
        };
        let value = |(index, part): &(usize, Part)| {
            let experiment = &experiments[*index];
            let Measure::Verify { quantity } = experiment.measure else { return None };
            Some((*index, self.key(experiment, part, None), verified::quantity(&row, quantity)))
        };
        let problems = row.problems.iter().map(|problem| format!("{}: {problem}", self.label()));
        let values: Vec<(usize, Key, Result<f64, Unread>)> =
            self.uses.iter().filter_map(value).collect();
        let spoilt = values.iter().find_map(|(_, _, value)| match value {
            Err(Unread::Spoilt(why)) => Some(format!("{}: {why}", self.label())),
            _ => None,
        });
        let told = |why| match why {
            Unread::Spoilt(why) => format!("{INVALID}{why}"),
            Unread::TooFew(why) => why,
        };
        Outcome {
            failures: Vec::new(),
            invalid: spoilt.into_iter().collect(),
            notes: problems.collect(),
            values: (values.into_iter())
                .map(|(index, key, value)| (index, key, value.map_err(told)))
                .collect(),
        }
    }

    /// What its readers have where the machine has spoilt it.
    fn spoilt(&self, experiments: &[Experiment], why: &str) -> Outcome {
        let invalid = vec![format!("{}: {why}", self.label())];
        Outcome { invalid, ..self.not_run(experiments, &format!("{INVALID}{why}")) }
    }

    /// What its readers have where nobody ran it.
    pub fn not_run(&self, experiments: &[Experiment], why: &str) -> Outcome {
        let failed = self.failed(experiments, why);
        Outcome { failures: Vec::new(), ..failed }
    }

    fn failed(&self, experiments: &[Experiment], problem: &str) -> Outcome {
        let none = |(index, part): &(usize, Part)| {
            let key = self.key(&experiments[*index], part, None);
            (*index, key, Err(format!("not run: {problem}")))
        };
        Outcome {
            values: self.uses.iter().map(none).collect(),
            failures: vec![format!("{}: {problem}", self.label())],
            invalid: Vec::new(),
            notes: Vec::new(),
        }
    }

    fn values(&self, experiments: &[Experiment], reader: &(usize, Part), run: &Run) -> Vec<Ours> {
        let (index, part) = reader;
        let experiment = &experiments[*index];
        let traffic = part.traffic.as_deref().unwrap_or_default();
        match extract(run, traffic, &experiment.measure, experiment.by_size()) {
            Err(problem) => vec![(*index, self.key(experiment, part, None), Err(problem))],
            Ok(readings) => readings
                .into_iter()
                .map(|(size, value)| (*index, self.key(experiment, part, size), value))
                .collect(),
        }
    }

    /// The key of a value: its columns as the published table writes them, and what the filters hold constant.
    fn key(&self, experiment: &Experiment, part: &Part, size: Option<u64>) -> Key {
        let cell = &self.scenario().cell;
        let mut key: Key = part.filter.constants();
        for (column, source) in &experiment.keys {
            let found = match source.is_of_reading() {
                true => size.map(|size| size.to_string()),
                false => coordinate(cell, &self.read.values, &source.from),
            };
            let Some(found) = found else { continue };
            let published = source.values.iter().find(|(_, ours)| ours.allows(&found));
            key.insert(column.clone(), published.map_or(found, |(published, _)| published.clone()));
        }
        key
    }
}
