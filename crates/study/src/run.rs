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
use trunkline_batch::run_all;
use trunkline_measure::{Engine, Run};
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

/// Makes a run of a scenario in an engine.
pub type Engines<'a, E> = dyn Fn(Engine, &Scenario) -> Result<Run, E> + Sync + 'a;

/// Measures a scenario's one path from outside (`trunkline_verify::measure`).
pub type Verifier<'a, E> = dyn Fn(&Scenario) -> Result<Row, E> + Sync + 'a;

/// Who makes what studies ask for.
pub struct Makers<'a, E> {
    /// Runs.
    pub run: &'a Engines<'a, E>,
    /// Measurements of a path from outside.
    pub verify: &'a Verifier<'a, E>,
}

impl<E: std::fmt::Display> Makers<'_, E> {
    fn outcome(&self, job: &Job, experiments: &[Experiment]) -> Outcome {
        let line = |error: E| one_line(&error.to_string());
        match job.verify {
            true => job.verified(experiments, (self.verify)(job.scenario()).map_err(line)),
            false => job.outcome(experiments, (self.run)(job.engine, job.scenario()).map_err(line)),
        }
    }
}

/// Runs studies together on `threads` threads; after all else, one cell at a time, what is emulated, and then
/// what is verified. `makers` turn a scenario into a run, `progress` is told of every cell that is done, from those threads.
/// Except for what is emulated the result does not depend on the number of threads. Cells of an engine that is
/// not `wanted` have no value.
///
/// # Errors
/// Where a study cannot be opened, or its tables do not fit together. A run that fails is no error: it is
/// named in [`StudyResult::failures`].
pub fn run<E: std::fmt::Display>(
    names: &[&str],
    makers: &Makers<'_, E>,
    wanted: &[Engine],
    threads: usize,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<Vec<StudyResult>, StudyError> {
    let sources = names.iter().map(|name| Source::open(name)).collect::<Result<Vec<_>, _>>()?;
    run_sources(&sources, makers, wanted, threads, progress)
}

/// Runs studies that have been opened already; see [`run`].
///
/// # Errors
/// Where the tables of a study do not fit together.
pub fn run_sources<E: std::fmt::Display>(
    sources: &[Source],
    makers: &Makers<'_, E>,
    wanted: &[Engine],
    threads: usize,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<Vec<StudyResult>, StudyError> {
    let of = |(index, source)| jobs(source).into_iter().map(move |job| (index, job));
    let all: Vec<(usize, Job)> = sources.iter().enumerate().flat_map(of).collect();
    let total = all.len();
    // What is emulated wants the machine for itself.
    let (real, virtual_): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|(_, job)| job.engine == Engine::Emu);
    let work = |(index, job): &(usize, Job)| {
        let experiments = &sources[*index].study.experiment;
        if !wanted.contains(&job.engine) {
            return job.not_run(experiments, "this engine was not asked for");
        }
        makers.outcome(job, experiments)
    };
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
