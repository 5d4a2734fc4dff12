//! The simulator: processor time for each packet-hop, and memory.
//!
//! A packet-hop is: enqueue, serialise, propagate, deliver at the next element. Figures are processor time of
//! the run, building the network left out, with ledger and counters on. The check values are those of other
//! simulators on the same workloads.

mod constant;
mod datakit;
mod dumbbell;
mod fabric;
mod floor;
mod memory;

use crate::figure::{Figure, show};
use crate::gate::thread_time;
use anyhow::{Context, Result, bail};
use comfy_table::Table;
use constant::{Constant, Sources};
use datakit::{Board, Datakit};
use dumbbell::Dumbbell;
use fabric::Fabric;
use serde::Serialize;
use trunkline_core::Time;
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
    /// Nanoseconds for each packet-hop that are aimed at; `None` if nothing is.
    goal: Option<f64>,
    /// What other simulators deliver and drop, and why it may differ here.
    check: &'static str,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    /// Pairs of hosts, and how long.
    Dumbbell(usize, Time),
    Constant(Constant),
    Fabric(Time),
    Datakit(Board, Time),
}

impl Kind {
    /// The same workload for only so much of the time.
    fn shortened(self, parts: u64) -> Kind {
        let part = |length: Time| Time::from_nanos(length.as_nanos() / parts.max(1));
        match self {
            Kind::Dumbbell(pairs, length) => Kind::Dumbbell(pairs, part(length)),
            Kind::Constant(what) => Kind::Constant(Constant { length: part(what.length), ..what }),
            Kind::Fabric(length) => Kind::Fabric(part(length)),
            Kind::Datakit(board, length) => Kind::Datakit(board, part(length)),
        }
    }
}

const EXACT: &str = "749,241 / 0 in three others";
const ALL_SENT: &str = "all that is sent";
const WORKLOADS: [Workload; 12] = [
    Workload {
        name: "B1, TCP, 2 pairs",
        kind: Kind::Dumbbell(2, dumbbell::LENGTH),
        goal: None,
        check: "–",
    },
    Workload {
        name: "B1, TCP, 100 pairs",
        kind: Kind::Dumbbell(100, dumbbell::LENGTH),
        goal: Some(35.0),
        check: "0.80 to 0.82 M in others",
    },
    Workload {
        name: "B1, TCP, 1000 pairs",
        kind: Kind::Dumbbell(1000, dumbbell::LENGTH),
        goal: Some(40.0),
        check: "–",
    },
    Workload {
        name: "B1, TCP, 10000 pairs",
        kind: Kind::Dumbbell(10_000, dumbbell::LENGTH),
        goal: Some(60.0),
        check: "0.84 to 0.85 M in others, more than the line carries",
    },
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
        kind: Kind::Fabric(fabric::LENGTH),
        goal: Some(60.0),
        check: "1,024,926 / 0 in one other",
    },
    Workload {
        name: "datakit, fifo in hardware",
        kind: Kind::Datakit(Board::Hardware, datakit::LENGTH),
        goal: None,
        check: ALL_SENT,
    },
    Workload {
        name: "datakit, processor, fifo",
        kind: Kind::Datakit(Board::Fifo, datakit::LENGTH),
        goal: None,
        check: ALL_SENT,
    },
    Workload {
        name: "datakit, processor, round robin",
        kind: Kind::Datakit(Board::RoundRobin, datakit::LENGTH),
        goal: None,
        check: ALL_SENT,
    },
];

/// Names under which [`run_one`] knows the workloads, in their order.
const SHORT: [&str; 12] = [
    "b1-2",
    "b1-100",
    "b1-1000",
    "b1-10000",
    "b2-100",
    "b2-1000",
    "b2-10000",
    "b3",
    "b4",
    "datakit",
    "datakit-fifo",
    "datakit-rr",
];
const NOTES: &str = "\
Goals: those of B1 stand beside a floor that took 15, 17 and 23 ns with 100, 1000 and 10000 pairs, so that they \
are 2.3, 2.4\nand 2.6 times as much. The ratio is what can be compared between machines.\n\
B1: packets over the bottleneck. Of 1500 bytes a line of 1 Gbit/s carries 833,333 in the time, so that the other \
simulators'\nlast figure counts something more. NewReno without SACK, an acknowledgement for each packet; two \
connections repair the losses\nof their first slow start, one for each round trip, for most of the time.\n\
B3: ours is what a line that is never idle delivers in the time it has, of 1500 bytes a packet and nothing else. \
The other\nsimulator delivers 0.17 % less; a link header of a few bytes would do that, but it is not known \
to be the cause. CoDel\nnever drops here: 1000 packets are 1.2 ms of this line, below its target, so the limit \
drops.\n\
B4: the description leaves the size of an acknowledgement open; here it is 40 bytes. Its share of the line \
decides how\nmuch data fits: 0.2 % more than in the other simulator.\n\
Datakit: bursts of 65 packets of 16 bytes on eight channels over six lines, one of them a T1 trunk at a load \
of 0.9;\nnothing is lost.\n\
floor: our own throw-away program with packets of 16 bytes and nothing but FIFOs, also for B3; a lower\nbound. It has no such lines, so Datakit stands without.";

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
    for which in [&WORKLOADS[5], &WORKLOADS[8]] {
        costs.push(cost("ledger", which, rounds, |on| Switches { ledger: on, trace: false })?);
        costs.push(cost("full trace", which, rounds, |on| Switches { ledger: true, trace: on })?);
    }
    let growth = FLOWS.into_iter().map(|flows| growth(flows, rounds)).collect::<Result<_>>()?;
    Ok(Simulator { workloads, costs, growth, memory: memory::measure()? })
}

/// Runs the workload called `name` once, for a profiler, for one of so many `parts` of its time. It reads no
/// clock, which valgrind does not survive.
///
/// # Errors
/// If there is none.
pub fn run_one(name: &str, parts: u64) -> Result<()> {
    let (floor, name) = name.strip_prefix("floor-").map_or((false, name), |name| (true, name));
    let Some(index) = SHORT.iter().position(|&short| short == name) else {
        bail!("there is no workload '{name}': use one of {}, or floor-…", SHORT.join(", "));
    };
    let kind = WORKLOADS[index].kind.shortened(parts);
    let run = match floor {
        true => ready_floor(kind).with_context(|| format!("'{name}' has no floor"))?,
        false => ready(kind, Switches::default())?,
    };
    let outcome = run()?;
    println!("{outcome:?}");
    Ok(())
}

fn row(workload: &Workload, rounds: usize) -> Result<Row> {
    let (mut all, mut pairs) = (Vec::new(), Vec::new());
    let mut outcome = Outcome::default();
    for _ in 0..rounds {
        let (found, nanos) = run(workload.kind, Switches::default())?;
        outcome = found;
        all.push(nanos);
        if let Some(floor) = ready_floor(workload.kind) {
            pairs.push((nanos, timed(floor)?.1));
        }
    }
    Ok(Row {
        workload: workload.name,
        outcome,
        check: workload.check,
        nanos: Figure::of(all),
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

/// A workload that has been built and waits to be run.
type Ready = Box<dyn FnOnce() -> Result<Outcome>>;

/// A workload in the simulator.
fn ready(kind: Kind, switches: Switches) -> Result<Ready> {
    Ok(match kind {
        Kind::Dumbbell(pairs, length) => {
            let mut dumbbell = Dumbbell::new(pairs, length, switches)?;
            Box::new(move || dumbbell.run())
        }
        Kind::Constant(what) => {
            let mut sources = Sources::new(what, switches)?;
            Box::new(move || sources.run())
        }
        Kind::Fabric(length) => {
            let mut fabric = Fabric::new(length, switches)?;
            Box::new(move || fabric.run())
        }
        Kind::Datakit(board, length) => {
            let mut path = Datakit::new(board, length, switches)?;
            Box::new(move || path.run())
        }
    })
}

/// The same workload in the bare program, if that can do it.
fn ready_floor(kind: Kind) -> Option<Ready> {
    Some(match kind {
        Kind::Dumbbell(pairs, length) => {
            let mut run = floor::dumbbell(pairs, length);
            Box::new(move || Ok(run()))
        }
        Kind::Constant(what) => {
            let mut run = floor::constant(what);
            Box::new(move || Ok(run()))
        }
        Kind::Fabric(length) => {
            let mut run = floor::fabric(length);
            Box::new(move || Ok(run()))
        }
        Kind::Datakit(..) => return None,
    })
}

/// Runs a workload through the simulator; nanoseconds for each packet-hop.
fn run(kind: Kind, switches: Switches) -> Result<(Outcome, f64)> {
    timed(ready(kind, switches)?)
}

fn timed(run: Ready) -> Result<(Outcome, f64)> {
    let start = thread_time();
    let outcome = run()?;
    Ok((outcome, (thread_time() - start) as f64 / outcome.hops as f64))
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
