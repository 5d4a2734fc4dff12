//! Running studies: all cells on all processors, then tables, quotes, figures and goals.

use crate::error::{StudyError, one_line};
use crate::format::{Experiment, Parameter, Provenance};
use crate::goal;
use crate::job::{Job, Ours, Outcome, jobs};
use crate::keypath;
use crate::result::{ParameterNote, StudyResult};
use crate::source::Source;
use crate::term::Tables;
use crate::{figure, join, quote};
use std::collections::BTreeSet;
use trunkline_batch::{make, run_all};
use trunkline_engine::{Engine, EngineName, Pace, SharedEngine};
use trunkline_scenario::Scenario;
use trunkline_verify::report::Row;

/// How far a run has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// Cells done.
    pub done: usize,
    /// Cells in all.
    pub total: usize,
    /// The study and the cell that has just been done.
    pub label: String,
}

/// Measures a scenario's one path from outside (`trunkline_verify::measure`); the error is one line.
pub type Verifier<'a> = dyn Fn(&Scenario) -> Result<Row, String> + Sync + 'a;

/// Who makes what studies ask for.
pub struct Makers<'a> {
    /// Runs. Cells of an engine that is not among these have no value.
    pub engines: &'a [SharedEngine],
    /// Measurements of a path from outside.
    pub verify: &'a Verifier<'a>,
}

impl Makers<'_> {
    /// The engine of this name, if there is one.
    fn engine(&self, name: EngineName) -> Option<&dyn Engine> {
        self.engines.iter().find(|engine| engine.name() == name).map(|engine| &**engine)
    }

    /// Whether a job wants the machine for itself.
    fn is_real(&self, job: &Job) -> bool {
        self.engine(job.engine).is_some_and(|engine| engine.pace() == Pace::Real)
    }

    fn outcome(&self, job: &Job, experiments: &[Experiment]) -> Outcome {
        let Some(engine) = self.engine(job.engine) else {
            return job.not_run(experiments, "this engine was not asked for");
        };
        let line = |error: String| one_line(&error);
        match job.verify {
            true => job.verified(experiments, (self.verify)(job.scenario()).map_err(line)),
            false => {
                let made = make(engine, job.scenario()).map_err(|error| line(error.to_string()));
                job.outcome(experiments, made)
            }
        }
    }
}

/// Runs studies together on `threads` threads; after all else, one cell at a time, what runs in real time, and then
/// what is verified. `makers` turn a scenario into a run, `progress` is told of every cell that is done, from those
/// threads. Except for what runs in real time the result does not depend on the number of threads.
///
/// # Errors
/// If a study cannot be opened, or its tables do not fit together. A run that fails is no error: it is
/// named in [`StudyResult::failures`].
pub fn run(
    names: &[&str],
    makers: &Makers<'_>,
    threads: usize,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<Vec<StudyResult>, StudyError> {
    let sources = names.iter().map(|name| Source::open(name)).collect::<Result<Vec<_>, _>>()?;
    run_sources(&sources, makers, threads, progress)
}

/// Runs studies that have been opened already; see [`run`].
///
/// # Errors
/// If the tables of a study do not fit together.
pub fn run_sources(
    sources: &[Source],
    makers: &Makers<'_>,
    threads: usize,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<Vec<StudyResult>, StudyError> {
    let of = |(index, source)| jobs(source).into_iter().map(move |job| (index, job));
    let all: Vec<(usize, Job)> = sources.iter().enumerate().flat_map(of).collect();
    let total = all.len();
    let (real, virtual_): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|(_, job)| makers.is_real(job));
    let work = |(index, job): &(usize, Job)| makers.outcome(job, &sources[*index].study.experiment);
    let mut studies: Vec<Vec<Outcome>> = sources.iter().map(|_| Vec::new()).collect();
    for (before, jobs, threads) in [(0, &virtual_, threads), (virtual_.len(), &real, 1)] {
        let done = |count, (index, job): &(usize, Job)| {
            let label = format!("{}: {}", sources[*index].study.name, job.label());
            progress(Progress { done: before + count, total, label });
        };
        let outcomes = run_all(jobs, threads, |(_, job)| job.cost(), work, done);
        for ((index, _), outcome) in jobs.iter().zip(outcomes) {
            studies[*index].push(outcome);
        }
    }
    sources.iter().zip(studies).map(|(source, outcomes)| summary(source, outcomes)).collect()
}

fn summary(source: &Source, outcomes: Vec<Outcome>) -> Result<StudyResult, StudyError> {
    let study = &source.study;
    let mut result = StudyResult {
        name: study.name.clone(),
        title: study.title.clone(),
        report: study.report.clone(),
        about: study.about.clone(),
        runs: outcomes.len(),
        experiments: Vec::new(),
        quotes: Vec::new(),
        figures: Vec::new(),
        goals: Vec::new(),
        parameters: study
            .parameter
            .iter()
            .map(|one| note(source, one))
            .collect::<Result<_, _>>()?,
        failures: Vec::new(),
        invalid: Vec::new(),
        notes: Vec::new(),
    };
    let values = gather(outcomes, &mut result);
    let mut tables = Tables::new();
    for (index, experiment) in study.experiment.iter().enumerate() {
        let found =
            join::result(source, experiment, &join::of_experiment(index, &values), &tables)?;
        tables.insert(found.name.clone(), (found.unit, found.comparison.rows.clone()));
        result.experiments.push(found);
    }
    result.quotes = study.quote.iter().map(|one| quote::result(source, one, &tables)).collect();
    result.figures = study.figure.iter().map(|one| figure::of(one, &result.experiments)).collect();
    result.goals = study.goal.iter().map(|one| goal::judge(one, &result.experiments)).collect();
    Ok(result)
}

/// All values; failures in order, and each note once.
fn gather(outcomes: Vec<Outcome>, result: &mut StudyResult) -> Vec<Ours> {
    let mut seen = BTreeSet::new();
    let mut values = Vec::new();
    for outcome in outcomes {
        values.extend(outcome.values);
        result.failures.extend(outcome.failures);
        result.invalid.extend(outcome.invalid);
        let new = outcome.notes.into_iter().filter(|note| seen.insert(note.clone()));
        result.notes.extend(new);
    }
    values
}

fn note(source: &Source, parameter: &Parameter) -> Result<ParameterNote, StudyError> {
    let values = source.values(&parameter.file)?;
    let value = keypath::get(&values, &parameter.key).map(ToString::to_string).unwrap_or_default();
    let (provenance, source_text) = parameter.provenance().unwrap_or((Provenance::Inferred, ""));
    Ok(ParameterNote {
        file: parameter.file.clone(),
        key: parameter.key.clone(),
        value: one_line(&value),
        provenance,
        source: source_text.to_string(),
    })
}
