//! Every cell that the studies ask of the simulator, shortened, so that all of them take seconds.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use trunkline_core::{Size, Span};
use trunkline_engine::{Engine, EngineName, Run};
use trunkline_measure::TrafficRun;
use trunkline_scenario::{MessageProtocol, Network, Scenario, Start, Traffic, Workload};
use trunkline_sim::Simulator;
use trunkline_study::{Measure, Source};

/// Repetitions of each message and bytes of each transfer that are left.
const MESSAGES: u32 = 3;
const BYTES: Size = Size::from_bytes(20_000);
/// Of timed tests.
const DURATION: Span = Span::from_secs(1);
const NODES: u16 = 64;
/// The rows of a grid of so many.
const ROW: u16 = 8;

fn shorter(scenario: &Scenario) -> Scenario {
    let mut scenario = scenario.clone();
    scenario.traffic.iter_mut().for_each(shorten);
    for cluster in &mut scenario.clusters {
        cluster.layout.nodes = cluster.layout.nodes.min(NODES);
        if let MessageProtocol::Careful(settings) = &mut cluster.protocol {
            settings.grid = settings.grid.map(|row| row.min(ROW));
        }
    }
    scenario
}

fn shorten(traffic: &mut Traffic) {
    if let Start::AfterBytes(_, size) = &mut traffic.start {
        *size = (*size).min(BYTES);
    }
    let accompanies = traffic.until.is_some();
    match &mut traffic.workload {
        Workload::Interactive { repeat, .. } => *repeat = (*repeat).min(MESSAGES),
        Workload::Bulk { bytes, repeat, .. } | Workload::Push { bytes, repeat, .. } => {
            *bytes = (*bytes).min(BYTES);
            *repeat = if accompanies { *repeat } else { (*repeat).min(2) };
        }
        Workload::TimedEcho { duration, .. }
        | Workload::TimedTransfer { duration, .. }
        | Workload::Greedy { duration, .. }
        | Workload::Paced { duration, .. } => *duration = (*duration).min(DURATION),
    }
}

/// How much a traffic's workload asks for, before it is shortened: bytes in all, messages of each size, or nanoseconds.
fn asked(traffic: &Traffic) -> u64 {
    match &traffic.workload {
        Workload::Interactive { repeat, .. } => u64::from(*repeat),
        Workload::Bulk { bytes, repeat, .. } | Workload::Push { bytes, repeat, .. } => {
            bytes.bytes() * u64::from(*repeat)
        }
        Workload::TimedEcho { duration, .. }
        | Workload::TimedTransfer { duration, .. }
        | Workload::Greedy { duration, .. }
        | Workload::Paced { duration, .. } => duration.as_nanos(),
    }
}

/// A shortened run of a study's cell: where it stands, and what the simulator says.
pub struct Cell {
    /// Scenario file, variant and the grid's values.
    pub label: String,
    /// What each traffic of the scenario asks for in full.
    asked: BTreeMap<String, u64>,
    /// The run, or why there is none.
    pub run: Result<Run, String>,
}

/// The cells of a study that the simulator is asked for, in their order.
pub fn cells(source: &Source) -> Vec<(String, Scenario)> {
    let experiments = source.study.experiment.iter();
    let run = experiments.filter(|one| !matches!(one.measure, Measure::Formula { .. }));
    let parts = run.flat_map(|one| one.resolved()).filter(|it| it.engine() == EngineName::SIM);
    let files: BTreeSet<_> =
        parts.filter_map(|part| Some((part.scenario?, part.variant))).collect();
    let mut cells = Vec::new();
    for (file, variant) in files {
        let read = source.scenario(&file, variant.as_deref()).expect("it was opened");
        for scenario in &read.cells {
            let variant = variant.iter().map(|name| format!(" ({name})"));
            let pairs = scenario.cell.iter().map(|(key, value)| format!(" {key}={value}"));
            let label = std::iter::once(file.clone()).chain(variant).chain(pairs).collect();
            cells.push((label, scenario.clone()));
        }
    }
    cells
}

impl Cell {
    /// Runs it.
    pub fn of(label: &str, scenario: &Scenario) -> Cell {
        let asked = scenario.traffic.iter().map(|it| (it.name.clone(), asked(it))).collect();
        Cell { label: label.into(), asked, run: run(scenario) }
    }

    /// The figures of each traffic of the run, if there is one.
    pub fn figures(&self) -> Option<BTreeMap<String, Figures>> {
        let of = |traffic: &TrafficRun| {
            let figures = Figures {
                asked: self.asked.get(&traffic.name).copied().unwrap_or(0),
                count: traffic.samples.len() as u64,
                nanos: traffic.samples.iter().map(|sample| sample.delay().as_nanos()).sum(),
                delivered: traffic.delivered_bytes,
                again: traffic.retransmissions,
            };
            (traffic.name.clone(), figures)
        };
        Some(self.run.as_ref().ok()?.traffic.iter().map(of).collect())
    }
}

/// Runs a cell, shortened.
fn run(scenario: &Scenario) -> Result<Run, String> {
    let shorter = shorter(scenario);
    let network = Network::of(&shorter).map_err(|error| error.to_string())?;
    Simulator.run(&network, &|_| {}).map_err(|error| error.to_string())
}

/// Runs all cells of a study, on two threads.
pub fn run_all(source: &Source) -> Vec<Cell> {
    let cells = cells(source);
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some((label, scenario)) = cells.get(next.fetch_add(1, Ordering::Relaxed)) {
            let cell = Cell::of(label, scenario);
            done.lock().expect("no thread panics").push(cell);
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(work);
        scope.spawn(work);
    });
    let mut done = done.into_inner().expect("no thread panics");
    done.sort_by(|one, other| one.label.cmp(&other.label));
    done
}

/// What is kept of a run's traffic: a change of anything that takes time moves it.
#[derive(Debug, Clone, PartialEq)]
pub struct Figures {
    /// What is asked for in full; 0 for what a cluster's programs do.
    pub asked: u64,
    /// Measurements.
    pub count: u64,
    /// The sum of their delays, in nanoseconds.
    pub nanos: u64,
    /// Bytes handed to receivers.
    pub delivered: u64,
    /// Blocks or packets sent again.
    pub again: u64,
}

impl Figures {
    /// Whether these are the same, but for what floating point may make of them on another machine.
    pub fn are(&self, other: &Figures) -> bool {
        let near = self.nanos.abs_diff(other.nanos) as f64 <= 1e-6 * self.nanos as f64;
        let rest = |it: &Figures| (it.asked, it.count, it.delivered, it.again);
        near && rest(self) == rest(other)
    }
}
