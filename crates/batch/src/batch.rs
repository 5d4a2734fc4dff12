//! Cells times engines, run and put into one report.

use crate::cost::cost;
use crate::error::BatchError;
use crate::pool::run_all;
use crate::shown::shown;
use std::collections::BTreeSet;
use trunkline_core::Seed;
use trunkline_measure::{Engine, Run, check, key_text};
use trunkline_report::Report;
use trunkline_scenario::Scenario;

/// Why the emulator has no column yet.
const NO_EMULATOR: &str = "the emulator is not joined to scenario files yet: use `trunkline shell` or `trunkline bridge` for real packets";

/// What is to be run.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch {
    /// The cells of a grid.
    pub cells: Vec<Scenario>,
    /// The engines; each counts once.
    pub engines: Vec<Engine>,
    /// How many cells are run at once.
    pub threads: usize,
}

/// How far a batch has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// Runs done.
    pub done: usize,
    /// The one that has just been done: engine and cell.
    pub label: String,
}

/// What a batch has found.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The runs, cell by cell and engine by engine, with what is known about them.
    pub report: Report,
    /// Laws that a run broke: ledgers that do not sum to their delay, packets that do not add up. None
    /// in a sound result.
    pub violations: Vec<String>,
}

/// One run to be made.
struct Job<'a> {
    scenario: &'a Scenario,
    engine: Engine,
}

impl Batch {
    /// How many runs it takes.
    pub fn runs(&self) -> usize {
        self.jobs().len()
    }

    /// Runs every cell in every engine that there is, and says why the others are missing. `progress` is
    /// told of each run that is done, from the threads that make them.
    ///
    /// # Errors
    /// Of the first cell, in the grid's order, that an engine cannot run.
    pub fn run(&self, progress: &(dyn Fn(Progress) + Sync)) -> Result<Outcome, BatchError> {
        let jobs = self.jobs();
        let done = |done, job: &Job<'_>| progress(Progress { done, label: job.label() });
        let runs = run_all(&jobs, self.threads, Job::cost, Job::run, done);
        let runs = runs.into_iter().collect::<Result<Vec<Run>, BatchError>>()?;
        let broken = |(job, run): (&Job<'_>, &Run)| -> Vec<String> {
            check(run).iter().map(|law| format!("{}: {law}", job.label())).collect()
        };
        let violations = jobs.iter().zip(&runs).flat_map(broken).collect();
        Ok(Outcome { report: self.report(runs), violations })
    }

    fn engines(&self) -> BTreeSet<Engine> {
        self.engines.iter().copied().collect()
    }

    fn jobs(&self) -> Vec<Job<'_>> {
        let engines: Vec<Engine> =
            self.engines().into_iter().filter(|engine| is_there(*engine)).collect();
        let of = |scenario| {
            engines.iter().map(move |&engine| Job { scenario, engine }).collect::<Vec<_>>()
        };
        self.cells.iter().flat_map(of).collect()
    }

    fn report(&self, runs: Vec<Run>) -> Report {
        let first = self.cells.first();
        let absent = self.engines().into_iter().filter(|engine| !is_there(*engine));
        let traffic = self.cells.iter().flat_map(|cell| &cell.traffic);
        Report {
            title: first.map(|cell| cell.name.clone()).unwrap_or_default(),
            about: first.map(|cell| cell.about.clone()).unwrap_or_default(),
            runs,
            unavailable: absent.map(|engine| (engine, NO_EMULATOR.to_string())).collect(),
            shown: traffic.map(|traffic| (traffic.name.clone(), shown(traffic))).collect(),
            ..Report::default()
        }
    }
}

/// The engines that run scenarios.
fn is_there(engine: Engine) -> bool {
    matches!(engine, Engine::Model | Engine::Sim)
}

impl Job<'_> {
    fn run(&self) -> Result<Run, BatchError> {
        match self.engine {
            Engine::Sim => trunkline_sim::run(self.scenario)
                .map_err(|cause| BatchError::Sim { cell: place(self.scenario), cause }),
            _ => Ok(trunkline_model::predict(self.scenario)),
        }
    }

    /// Formulas take next to no time.
    fn cost(&self) -> u64 {
        if self.engine == Engine::Sim { cost(self.scenario) } else { 0 }
    }

    fn label(&self) -> String {
        let engine = if self.engine == Engine::Sim { "sim" } else { "model" };
        format!("{engine}: {}", place(self.scenario))
    }
}

/// A cell's name with its coordinates.
fn place(scenario: &Scenario) -> String {
    match scenario.cell.is_empty() {
        true => scenario.name.clone(),
        false => format!("{}, {}", scenario.name, key_text(&scenario.cell)),
    }
}

/// Gives every cell another seed.
///
/// # Errors
/// Where the seed is an axis of the grid: its cells would then be the same.
pub fn reseed(cells: &mut [Scenario], seed: u64) -> Result<(), BatchError> {
    if cells.iter().any(|cell| cell.cell.contains_key("seed")) {
        return Err(BatchError::SeedVaries { seed });
    }
    cells.iter_mut().for_each(|cell| cell.seed = Seed(seed));
    Ok(())
}
