//! Cells times engines, run and put into one report.

use crate::axis::idle_axes;
use crate::cost::cost;
use crate::error::BatchError;
use crate::kept::Kept;
use crate::pool::run_all;
use crate::shown::shown;
use std::collections::BTreeSet;
use std::sync::Arc;
use trunkline_core::Seed;
use trunkline_measure::{Engine, Run, check, key_text};
use trunkline_report::Report;
use trunkline_scenario::Scenario;
use trunkline_testbed::{Console, Options, TestbedError};

/// What is to be run.
#[derive(Debug, Clone)]
pub struct Batch {
    /// The cells of a grid.
    pub cells: Vec<Scenario>,
    /// The engines; each counts once.
    pub engines: Vec<Engine>,
    /// How many cells are run at once, but for those in real time: they have the machine for themselves.
    pub threads: usize,
    /// How often a cell in real time is measured at most, until a result is valid; `None` for the testbed's own.
    pub attempts: Option<u32>,
    /// Where cells in real time are shown, set and captured.
    pub console: Option<Arc<Console>>,
}

/// How far a batch has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// Runs done.
    pub done: usize,
    /// The one that has just been done, or is being done and takes real time: engine and cell.
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
    attempts: Option<u32>,
    console: Option<&'a Console>,
    kept: Option<&'a Kept>,
}

impl Batch {
    /// How many runs it takes.
    pub fn runs(&self) -> usize {
        self.jobs(None).len()
    }

    /// Runs every cell in every engine, those in real time one by one after all others. What an engine
    /// cannot run is missing from the report, with the reason. `progress` is told of each run that is done,
    /// from the threads that make them, and some times a second how far one in real time is.
    ///
    /// # Errors
    /// If it was [broken off](trunkline_testbed::break_off).
    pub fn run(&self, progress: &(dyn Fn(Progress) + Sync)) -> Result<Outcome, BatchError> {
        self.run_kept(progress, None)
    }

    /// The same; what is `kept` already is not run again, and what is run is kept.
    ///
    /// # Errors
    /// As [`run`](Batch::run).
    pub fn run_kept(
        &self,
        progress: &(dyn Fn(Progress) + Sync),
        kept: Option<&Kept>,
    ) -> Result<Outcome, BatchError> {
        let jobs = self.jobs(kept);
        let made = made(&jobs, self.threads, progress)?;
        let broken = |(job, made): (&Job<'_>, &Made)| -> Vec<String> {
            let laws = made.as_ref().map(check).unwrap_or_default();
            laws.iter().map(|law| format!("{}: {law}", job.label())).collect()
        };
        let violations = jobs.iter().zip(&made).flat_map(broken).collect();
        let missing = |(job, made): (&Job<'_>, &Made)| {
            made.as_ref().err().map(|reason| (job.engine, reason.clone()))
        };
        let unavailable = jobs.iter().zip(&made).filter_map(missing).collect();
        let mut runs: Vec<Run> = made.into_iter().filter_map(Result::ok).collect();
        note_idle_axes(&mut runs);
        Ok(Outcome { report: self.report(runs, unavailable), violations })
    }

    fn engines(&self) -> BTreeSet<Engine> {
        self.engines.iter().copied().collect()
    }

    fn jobs<'a>(&'a self, kept: Option<&'a Kept>) -> Vec<Job<'a>> {
        let engines = self.engines();
        let of = |scenario| {
            let (attempts, console) = (self.attempts, self.console.as_deref());
            let job = move |&engine: &Engine| Job { scenario, engine, attempts, console, kept };
            engines.iter().map(job).collect::<Vec<_>>()
        };
        self.cells.iter().flat_map(of).collect()
    }

    fn report(&self, runs: Vec<Run>, unavailable: Vec<(Engine, String)>) -> Report {
        let first = self.cells.first();
        let traffic = self.cells.iter().flat_map(|cell| &cell.traffic);
        Report {
            title: first.map(|cell| cell.name.clone()).unwrap_or_default(),
            about: first.map(|cell| cell.about.clone()).unwrap_or_default(),
            runs,
            unavailable,
            shown: traffic.map(|traffic| (traffic.name.clone(), shown(traffic))).collect(),
            ..Report::default()
        }
    }
}

/// Tells of axes that change nothing, with the first run in which that shows.
fn note_idle_axes(runs: &mut [Run]) {
    let idle = idle_axes(runs);
    let simulated = runs.iter_mut().find(|run| run.engine == Engine::Sim);
    simulated.into_iter().for_each(|run| run.notes.extend(idle.iter().cloned()));
}

/// A run, or why an engine cannot make it.
type Made = Result<Run, String>;

/// What comes of each job, in their order. Those in real time are done one by one, after all others.
fn made(
    jobs: &[Job<'_>],
    threads: usize,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<Vec<Made>, BatchError> {
    let (real, others): (Vec<usize>, Vec<usize>) =
        (0..jobs.len()).partition(|&job| jobs[job].engine == Engine::Emu);
    let told = |done, job: &usize| progress(Progress { done, label: jobs[*job].label() });
    let work = |&job: &usize| jobs[job].run(&|_| ());
    let quick = run_all(&others, threads, |&job| jobs[job].cost(), work, told);
    let mut made: Vec<(usize, Result<Made, BatchError>)> = others.into_iter().zip(quick).collect();
    for job in real {
        let done = made.len();
        let label = |what: &str| {
            progress(Progress { done, label: format!("{}{what}", jobs[job].label()) });
        };
        made.push((job, jobs[job].run(&label)));
        told(done + 1, &job);
    }
    made.sort_by_key(|(job, _)| *job);
    made.into_iter().map(|(_, made)| made).collect()
}

impl Job<'_> {
    /// The run that is kept, or a new one. `told` hears how far a run in real time is.
    fn run(&self, told: &(dyn Fn(&str) + Sync)) -> Result<Made, BatchError> {
        let Some(kept) = self.kept else { return self.made(told) };
        // Broken off is no outcome of the run, and an engine that cannot run a cell is soon asked again.
        let made = kept.run(self.engine, self.scenario, || match self.made(told) {
            Ok(Ok(run)) => Ok(run),
            Ok(Err(reason)) => Err(Ok(reason)),
            Err(broken) => Err(Err(broken)),
        });
        match made {
            Ok(run) => Ok(Ok(run)),
            Err(other) => other.map(Err),
        }
    }

    fn made(&self, told: &(dyn Fn(&str) + Sync)) -> Result<Made, BatchError> {
        let mut made = match self.engine {
            Engine::Sim => trunkline_sim::run(self.scenario).map_err(|error| error.to_string()),
            Engine::Emu => self.emulate(told)?,
            _ => Ok(trunkline_model::predict(self.scenario)),
        };
        if let Ok(run) = &mut made {
            run.notes.extend(self.scenario.remarks());
        }
        Ok(made)
    }

    fn emulate(&self, told: &(dyn Fn(&str) + Sync)) -> Result<Made, BatchError> {
        let progress = |now: &trunkline_testbed::Progress| told(&so_far(now));
        let own = Options::default();
        let attempts = self.attempts.unwrap_or(own.attempts);
        let console = self.console;
        let options = Options { progress: Some(&progress), attempts, console, ..own };
        match trunkline_testbed::run(self.scenario, &options) {
            Err(TestbedError::Cancelled) => Err(BatchError::BrokenOff),
            made => Ok(made.map_err(|error| error.to_string())),
        }
    }

    /// Formulas take next to no time.
    fn cost(&self) -> u64 {
        if self.engine == Engine::Sim { cost(self.scenario) } else { 0 }
    }

    fn label(&self) -> String {
        let engine = match self.engine {
            Engine::Sim => "sim",
            Engine::Emu => "emu",
            _ => "model",
        };
        format!("{engine}: {}", place(self.scenario))
    }
}

/// Runs one scenario in one engine. In real time it wants the machine for itself.
///
/// # Errors
/// Why the engine cannot run it.
pub fn make(engine: Engine, scenario: &Scenario) -> Result<Run, String> {
    let made = Job { scenario, engine, attempts: None, console: None, kept: None }.run(&|_| ());
    made.map_err(|error| error.to_string()).and_then(|made| made)
}

/// How far a run in real time is.
fn so_far(now: &trunkline_testbed::Progress) -> String {
    if now.waiting {
        return ", waits until another testbed on this machine has ended".into();
    }
    let seconds = |span: trunkline_core::Span| span.as_nanos() / 1_000_000_000;
    let again = if now.attempt > 1 { ", once more" } else { "" };
    format!("{again}, {} of at most {} s", seconds(now.elapsed), seconds(now.most))
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
/// If the seed is an axis of the grid: its cells would then be the same.
pub fn reseed(cells: &mut [Scenario], seed: u64) -> Result<(), BatchError> {
    if cells.iter().any(|cell| cell.cell.contains_key("seed")) {
        return Err(BatchError::SeedVaries { seed });
    }
    cells.iter_mut().for_each(|cell| cell.seed = Seed(seed));
    Ok(())
}
