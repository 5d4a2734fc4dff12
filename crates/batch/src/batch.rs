//! Cells times engines, run and put into one report.

use crate::axis::idle_axes;
use crate::cost::cost;
use crate::error::BatchError;
use crate::pool::run_all;
use crate::shown::shown;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use trunkline_core::Seed;
use trunkline_engine::{Engine, EngineError, EngineName, Note, Pace, Run, SharedEngine, check};
use trunkline_measure::key_text;
use trunkline_report::{Report, Rules};
use trunkline_scenario::{Network, NetworkError, Scenario};

/// The cells to be run, with the way to run them.
#[derive(Debug, Clone)]
pub struct Batch {
    /// The cells of a grid.
    pub cells: Vec<Scenario>,
    /// The engines; of two with one name the first counts.
    pub engines: Vec<SharedEngine>,
    /// The number of cells run at once, but for those in real time: they have the machine for themselves.
    pub threads: usize,
}

/// The part of a batch that is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// Runs done.
    pub done: usize,
    /// The one that has just been done, or is under way, and how far: engine and cell.
    pub label: String,
}

/// The runs that a batch has made.
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
    cell: &'a Cell<'a>,
    engine: &'a dyn Engine,
}

/// A cell, which is lowered once for all engines, by the first that comes to it.
struct Cell<'a> {
    scenario: &'a Scenario,
    network: OnceLock<Result<Network<'a>, NetworkError>>,
}

impl Cell<'_> {
    fn network(&self) -> Result<&Network<'_>, EngineError> {
        let lowered = self.network.get_or_init(|| Network::of(self.scenario));
        lowered.as_ref().map_err(EngineError::refused)
    }
}

impl Batch {
    /// The number of runs that it takes.
    pub fn runs(&self) -> usize {
        self.cells.len() * self.engines().len()
    }

    /// Runs every cell in every engine, those in real time one by one after all others. What an engine
    /// cannot run is missing from the report, with the reason. `progress` is told of each run that is done,
    /// from the threads that make them, and some times a second how far one under way is.
    ///
    /// # Errors
    /// If somebody ended a run.
    pub fn run(&self, progress: &(dyn Fn(Progress) + Sync)) -> Result<Outcome, BatchError> {
        let new = |scenario| Cell { scenario, network: OnceLock::new() };
        let cells: Vec<Cell<'_>> = self.cells.iter().map(new).collect();
        let jobs = self.jobs(&cells);
        let made = made(&jobs, self.threads, progress)?;
        let broken = |(job, made): (&Job<'_>, &Made)| -> Vec<String> {
            let laws = made.as_ref().map(check).unwrap_or_default();
            laws.iter().map(|law| format!("{}: {law}", job.label())).collect()
        };
        let violations = jobs.iter().zip(&made).flat_map(broken).collect();
        let missing = |(job, made): (&Job<'_>, &Made)| {
            made.as_ref().err().map(|reason| (job.engine.name(), reason.clone()))
        };
        let unavailable = jobs.iter().zip(&made).filter_map(missing).collect();
        let mut runs: Vec<Run> = made.into_iter().filter_map(Result::ok).collect();
        note_idle_axes(&mut runs);
        Ok(Outcome { report: self.report(runs, unavailable), violations })
    }

    /// The engines in the order of their names, each once.
    fn engines(&self) -> Vec<&dyn Engine> {
        let mut engines: Vec<&dyn Engine> = self.engines.iter().map(|engine| &**engine).collect();
        engines.sort_by_key(|engine| engine.name());
        engines.dedup_by_key(|engine| engine.name());
        engines
    }

    fn jobs<'a>(&'a self, cells: &'a [Cell<'a>]) -> Vec<Job<'a>> {
        let engines = self.engines();
        let of = |cell| {
            let job = |&engine| Job { cell, engine };
            engines.iter().map(job).collect::<Vec<_>>()
        };
        cells.iter().flat_map(of).collect()
    }

    fn report(&self, runs: Vec<Run>, unavailable: Vec<(EngineName, String)>) -> Report {
        let first = self.cells.first();
        let mut rules = Rules::default();
        for cell in &self.cells {
            for traffic in &cell.traffic {
                rules.insert_at(&cell.name, &cell.cell, &traffic.name, shown(traffic));
            }
        }
        Report {
            title: first.map(|cell| cell.name.clone()).unwrap_or_default(),
            about: first.map(|cell| cell.about.clone()).unwrap_or_default(),
            runs,
            unavailable,
            shown: rules,
            ..Report::default()
        }
    }
}

/// Tells of axes that change nothing, with the first run in which that shows.
fn note_idle_axes(runs: &mut [Run]) {
    let idle = idle_axes(runs);
    let simulated = runs.iter_mut().find(|run| run.pace == Pace::Virtual);
    simulated.into_iter().for_each(|run| run.notes.extend(idle.iter().cloned()));
}

/// A run, or why an engine cannot make it.
type Made = Result<Run, String>;

/// Makes each job, and returns the outcomes in the jobs' order. Those in real time are done one by one, after all
/// others.
fn made(
    jobs: &[Job<'_>],
    threads: usize,
    progress: &(dyn Fn(Progress) + Sync),
) -> Result<Vec<Made>, BatchError> {
    let (real, others): (Vec<usize>, Vec<usize>) =
        (0..jobs.len()).partition(|&job| jobs[job].engine.pace() == Pace::Real);
    let ended = AtomicUsize::new(0);
    let told = |done, job: &usize| {
        ended.fetch_max(done, Ordering::Relaxed);
        progress(Progress { done, label: jobs[*job].label() });
    };
    let work = |&job: &usize| {
        let label = |what: &str| format!("{}, {what}", jobs[job].label());
        let far = |what: &str| {
            progress(Progress { done: ended.load(Ordering::Relaxed), label: label(what) });
        };
        jobs[job].run(&far)
    };
    let quick = run_all(&others, threads, |&job| jobs[job].cost(), work, told);
    let mut made: Vec<(usize, Result<Made, BatchError>)> = others.into_iter().zip(quick).collect();
    for job in real {
        let done = made.len();
        let label = |what: &str| {
            progress(Progress { done, label: format!("{}, {what}", jobs[job].label()) });
        };
        made.push((job, jobs[job].run(&label)));
        told(done + 1, &job);
    }
    made.sort_by_key(|(job, _)| *job);
    made.into_iter().map(|(_, made)| made).collect()
}

impl Job<'_> {
    /// The run, or why the engine cannot make it.
    fn run(&self, told: &(dyn Fn(&str) + Sync)) -> Result<Made, BatchError> {
        let made = self.cell.network().and_then(|network| made_by(self.engine, network, told));
        match made {
            Ok(run) => Ok(Ok(run)),
            Err(EngineError::Refused(reason)) => Ok(Err(reason)),
            Err(EngineError::BrokenOff) => Err(BatchError::BrokenOff),
        }
    }

    /// Formulas take next to no time.
    fn cost(&self) -> u64 {
        if self.engine.pace() == Pace::Virtual { cost(self.cell.scenario) } else { 0 }
    }

    fn label(&self) -> String {
        format!("{}: {}", self.engine.name(), place(self.cell.scenario))
    }
}

/// Runs one scenario in one engine, and adds what the scenario says of itself to the notes. In real time it wants
/// the machine for itself.
///
/// # Errors
/// Why there is no run.
pub fn make(engine: &dyn Engine, scenario: &Scenario) -> Result<Run, EngineError> {
    made_by(engine, &Network::of(scenario)?, &|_| ())
}

fn made_by(
    engine: &dyn Engine,
    network: &Network<'_>,
    told: &(dyn Fn(&str) + Sync),
) -> Result<Run, EngineError> {
    let mut run = engine.run(network, told)?;
    run.notes.extend(network.scenario().remarks().into_iter().map(Note::from));
    Ok(run)
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
