//! The simulator: processor time for each packet-hop, and memory.
//!
//! A packet-hop is: enqueue, serialise, propagate, deliver at the next element. Figures are processor time of
//! the run, building the network left out, with ledger and counters on. The check values are those of other
//! simulators on the same workloads.

mod constant;
mod fabric;
mod floor;
mod memory;

use crate::figure::{Figure, show};
use crate::gate::thread_time;
use anyhow::{Result, bail};
use comfy_table::Table;
use constant::{Constant, Sources};
use fabric::Fabric;
use serde::Serialize;
use trunkline_sim::Network;

/// What came of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Outcome {
    /// Data packets that came to the end of their routes.
    pub delivered: u64,
    /// Packets lost.
    pub dropped: u64,
    /// Packet-hops, those of acknowledgements included.
    pub hops: u64,
}

/// What a run does beside carrying packets.
#[derive(Debug, Clone, Copy)]
struct Switches {
    ledger: bool,
    trace: bool,
}

impl Default for Switches {
    fn default() -> Switches {
        Switches { ledger: true, trace: false }
    }
}

impl Switches {
    /// A full trace goes to a file that has no name.
    fn apply(self, network: &mut Network) -> Result<()> {
        network.keep_ledger(self.ledger);
        if self.trace {
            network.record_to(Box::new(tempfile::tempfile()?))?;
        }
        Ok(())
    }
}

/// One of the fixed workloads.
#[derive(Debug, Clone, Copy)]
struct Workload {
    name: &'static str,
    kind: Kind,
    /// Nanoseconds for each packet-hop that are aimed at; `None` where nothing is.
    goal: Option<f64>,
    /// What other simulators deliver and drop, and why it may differ here.
    check: &'static str,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Constant(Constant),
    Fabric,
}

const EXACT: &str = "749,241 / 0 in three others";
const WORKLOADS: [Workload; 5] = [
    Workload {
        name: "B2, 100 sources, FIFO",
        kind: Kind::Constant(Constant::fifo(100)),
        goal: None,
        check: EXACT,
    },
    Workload {
        name: "B2, 1000 sources, FIFO",
        kind: Kind::Constant(Constant::fifo(1000)),
        goal: Some(45.0),
        check: EXACT,
    },
    Workload {
        name: "B2, 10000 sources, FIFO",
        kind: Kind::Constant(Constant::fifo(10_000)),
        goal: Some(60.0),
        check: EXACT,
    },
    Workload {
        name: "B3, 100 sources, FQ-CoDel",
        kind: Kind::Constant(Constant::fq_codel(100)),
        goal: Some(70.0),
        check: "831,105 / 167,057 in one other",
    },
    Workload {
        name: "B4, fat-tree, 128 hosts",
        kind: Kind::Fabric,
        goal: Some(60.0),
        check: "1,024,926 / 0 in one other",
    },
];

/// Names under which [`run_one`] knows the workloads, in their order.
const SHORT: [&str; 5] = ["b2-100", "b2-1000", "b2-10000", "b3", "b4"];
const NOTES: &str = "\
B3: a line that is never idle delivers 832,490 in the time it has; the other simulator's link header of 2 bytes \
costs it 0.13 %.
B4: the description leaves the size of an acknowledgement open; here it is 40 bytes. Its share of the line \
decides how much data fits.
floor: our own throw-away program with packets of 16 bytes and nothing but FIFOs, also for B3; a lower bound.";

/// One workload's figures.
#[derive(Debug, Serialize)]
struct Row {
    workload: &'static str,
    outcome: Outcome,
    check: &'static str,
    /// Nanoseconds of processor time for each packet-hop.
    nanos: Option<Figure>,
    floor: Option<Figure>,
    /// The one over the other, pair by pair.
    ratio: Option<Figure>,
    goal: Option<f64>,
}

/// What something costs: time with it over time without, pair by pair.
#[derive(Debug, Serialize)]
struct Cost {
    what: &'static str,
    workload: &'static str,
    ratio: Option<Figure>,
}

/// The cost of a hop among so many flows.
#[derive(Debug, Serialize)]
struct Growth {
    flows: usize,
    nanos: Option<Figure>,
}

/// All that was measured.
#[derive(Debug, Serialize)]
pub struct Simulator {
    workloads: Vec<Row>,
    costs: Vec<Cost>,
    growth: Vec<Growth>,
    memory: memory::Memory,
}

/// Flows between which the cost of a hop is compared.
const FLOWS: [usize; 5] = [10, 100, 1000, 10_000, 100_000];

/// Measures everything, each figure from so many `rounds`.
pub fn measure(rounds: usize) -> Result<Simulator> {
    let workloads = WORKLOADS.iter().map(|it| row(it, rounds)).collect::<Result<_>>()?;
    let mut costs = Vec::new();
    for which in [&WORKLOADS[1], &WORKLOADS[4]] {
        costs.push(cost("ledger", which, rounds, |on| Switches { ledger: on, trace: false })?);
        costs.push(cost("full trace", which, rounds, |on| Switches { ledger: true, trace: on })?);
    }
    let growth = FLOWS.into_iter().map(|flows| growth(flows, rounds)).collect::<Result<_>>()?;
    Ok(Simulator { workloads, costs, growth, memory: memory::measure()? })
}

/// Runs the workload called `name` once, for a profiler.
///
/// # Errors
/// Where there is none.
pub fn run_one(name: &str) -> Result<()> {
    let (floor, name) = name.strip_prefix("floor-").map_or((false, name), |name| (true, name));
    let Some(index) = SHORT.iter().position(|&short| short == name) else {
        bail!("there is no workload '{name}': use one of {}, or floor-…", SHORT.join(", "));
    };
    let kind = WORKLOADS[index].kind;
    let (outcome, nanos) = if floor { run_floor(kind) } else { run(kind, Switches::default())? };
    println!("{outcome:?}: {nanos:.1} ns for each packet-hop");
    Ok(())
}

fn row(workload: &Workload, rounds: usize) -> Result<Row> {
    let mut pairs = Vec::new();
    let mut outcome = Outcome::default();
    for _ in 0..rounds {
        let (found, nanos) = run(workload.kind, Switches::default())?;
        outcome = found;
        pairs.push((nanos, run_floor(workload.kind).1));
    }
    Ok(Row {
        workload: workload.name,
        outcome,
        check: workload.check,
        nanos: Figure::of(pairs.iter().map(|pair| pair.0).collect()),
        floor: Figure::of(pairs.iter().map(|pair| pair.1).collect()),
        ratio: Figure::of_ratios(pairs.into_iter()),
        goal: workload.goal,
    })
}

fn cost(
    what: &'static str,
    workload: &Workload,
    rounds: usize,
    switches: impl Fn(bool) -> Switches,
) -> Result<Cost> {
    let mut pairs = Vec::new();
    for _ in 0..rounds {
        let with = run(workload.kind, switches(true))?.1;
        pairs.push((with, run(workload.kind, switches(false))?.1));
    }
    Ok(Cost { what, workload: workload.name, ratio: Figure::of_ratios(pairs.into_iter()) })
}

fn growth(flows: usize, rounds: usize) -> Result<Growth> {
    let kind = Kind::Constant(Constant::fifo(flows));
    let nanos = (0..rounds).map(|_| Ok(run(kind, Switches::default())?.1));
    Ok(Growth { flows, nanos: Figure::of(nanos.collect::<Result<_>>()?) })
}

/// Runs a workload through the simulator; nanoseconds for each packet-hop.
fn run(kind: Kind, switches: Switches) -> Result<(Outcome, f64)> {
    match kind {
        Kind::Constant(what) => {
            let mut sources = Sources::new(what, switches)?;
            timed(|| sources.run())
        }
        Kind::Fabric => {
            let mut fabric = Fabric::new(switches)?;
            timed(|| fabric.run())
        }
    }
}

fn run_floor(kind: Kind) -> (Outcome, f64) {
    let timed = |mut run: Box<dyn FnMut() -> Outcome>| {
        let start = thread_time();
        let outcome = run();
        (outcome, per_hop(start, outcome))
    };
    match kind {
        Kind::Constant(what) => timed(Box::new(floor::constant(what))),
        Kind::Fabric => timed(Box::new(floor::fabric())),
    }
}

fn timed(run: impl FnOnce() -> Result<Outcome>) -> Result<(Outcome, f64)> {
    let start = thread_time();
    let outcome = run()?;
    Ok((outcome, per_hop(start, outcome)))
}

fn per_hop(start: u64, outcome: Outcome) -> f64 {
    (thread_time() - start) as f64 / outcome.hops as f64
}

impl Simulator {
    /// The tables.
    pub fn text(&self) -> String {
        format!(
            "{}\n{NOTES}\n\n{}\n\n{}\n\n{}",
            self.workload_table(),
            self.cost_table(),
            self.growth_table(),
            self.memory.text()
        )
    }

    fn workload_table(&self) -> Table {
        let mut table = table(&[
            "workload",
            "delivered / dropped",
            "others",
            "million hops",
            "ns a hop",
            "goal",
            "floor",
            "ratio",
        ]);
        for row in &self.workloads {
            let Outcome { delivered, dropped, hops } = row.outcome;
            table.add_row([
                row.workload.to_string(),
                format!("{delivered} / {dropped}"),
                row.check.to_string(),
                format!("{:.2}", hops as f64 / 1e6),
                show(row.nanos, 1),
                row.goal.map_or("–".into(), |goal| format!("{goal:.0}")),
                show(row.floor, 1),
                show(row.ratio, 2),
            ]);
        }
        table
    }

    fn cost_table(&self) -> Table {
        let mut table = table(&["with over without", "workload", "ratio", "goal"]);
        for Cost { what, workload, ratio } in &self.costs {
            let goal = if *what == "full trace" { "1.3" } else { "–" };
            table.add_row([*what, *workload, &show(*ratio, 2), goal]);
        }
        table
    }

    fn growth_table(&self) -> Table {
        let mut table = table(&["flows", "ns a hop"]);
        for Growth { flows, nanos } in &self.growth {
            table.add_row([flows.to_string(), show(*nanos, 1)]);
        }
        table
    }
}

fn table(heads: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_preset(comfy_table::presets::ASCII_MARKDOWN);
    table.set_header(heads.iter().copied());
    table
}
