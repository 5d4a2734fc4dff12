//! The dataplane against a bare forwarder on the same backend, and both against a direct pair.
//!
//! ```text
//!  near ── veth ── middle: emulator or bare forwarder ── veth ── far        processor 1 in the middle,
//!  near ── veth ─────────────────────────────────────────────── far        0 at the ends
//! ```
//!
//! Two figures for each. *Delivered*: frames per second that arrive at the other end under a flood,
//! in which generator and receiver often set the bound. *Ceiling*: with the gate shut a burst gathers
//! in the kernel's ring; then it is opened, the generator rests, and the loop's processor time for each
//! frame is taken over the turns that moved any. All turns are then full, so that a slow loop does
//! not gain by the larger batches that come of falling behind.

use crate::figure::{Figure, show};
use crate::flood::{BATCH, Flood};
use crate::gate::{Gate, Meter};
use crate::loops::{Arrangement, Running, UNLIMITED, settle};
use anyhow::{Context, Result, ensure};
use comfy_table::Table;
use serde::Serialize;
use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::sleep;
use std::time::{Duration, Instant};
use trunkline_dataplane::hosts::{Hosts, device, inner_devices};
use trunkline_netns::{End, Namespace, create_veth};
use trunkline_port::Backend;

/// Frame sizes, without check sequence.
const SIZES: [usize; 2] = [64, 1400];
/// Frames that gather in each ring before the gate opens: half of the smaller backend's ring.
const GATHERED: usize = 2048;
/// Until what has just been sent lies in the ring, and what has just left a loop is booked.
const SETTLE: Duration = Duration::from_millis(1);
/// Longest time that a burst may take on its way through the loop.
const PATIENCE: Duration = Duration::from_millis(60);
/// Until the loop of a flood runs at its pace.
const WARM: Duration = Duration::from_millis(60);
const NEAR_CPU: usize = 0;
const MIDDLE_CPU: usize = 1;
/// What the dataplane should reach of the bare forwarder's ceiling.
const GOAL: f64 = 0.9;

/// How much to measure.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    /// Rounds, in each of which every arrangement has its turn.
    pub rounds: usize,
    /// Length of the flood, and of the bursts, of one turn.
    pub turn: Duration,
}

/// What is asked of an arrangement.
#[derive(Debug, Clone, Copy)]
struct Load {
    bytes: usize,
    directions: usize,
}

/// What one turn gave.
#[derive(Debug, Clone, Copy)]
struct Sample {
    /// Frames per second of processor time.
    ceiling: f64,
    /// Frames per second at the receivers.
    delivered: f64,
}

/// One arrangement under one load.
#[derive(Debug, Serialize)]
pub struct Row {
    backend: String,
    bytes: usize,
    directions: usize,
    arrangement: &'static str,
    /// Ceiling over that of the bare forwarder in the same round.
    ceiling_ratio: Option<Figure>,
    /// Delivered over that of the bare forwarder in the same round.
    delivered_ratio: Option<Figure>,
    /// Delivered over what a direct pair delivered in the same round.
    direct_ratio: Option<Figure>,
    /// Frames per second.
    ceiling: Option<Figure>,
    /// Frames per second.
    delivered: Option<Figure>,
}

/// All rows, with the direct pair's own figures.
#[derive(Debug, Serialize)]
pub struct Throughput {
    rows: Vec<Row>,
    /// Frames per second over a direct pair, in the order of sizes and directions.
    direct: Vec<(usize, usize, Option<Figure>)>,
    /// Backends that this machine does not offer, and why.
    unavailable: Vec<(String, String)>,
}

/// Measures everything.
pub fn measure(effort: Effort) -> Result<Throughput> {
    let mut all = Throughput { rows: Vec::new(), direct: Vec::new(), unavailable: Vec::new() };
    let backends: Vec<Backend> =
        Backend::ALL.into_iter().filter(|&backend| all.offers(backend)).collect();
    for bytes in SIZES {
        for directions in [1, 2] {
            all.compare(&backends, Load { bytes, directions }, effort)?;
        }
    }
    Ok(all)
}

impl Throughput {
    fn offers(&mut self, backend: Backend) -> bool {
        match Rig::build().and_then(|rig| rig.ports(backend).map(drop)) {
            Ok(()) => true,
            Err(error) => {
                self.unavailable.push((backend.to_string(), error.to_string()));
                false
            }
        }
    }

    /// Every arrangement on every backend under one load, in turn, several times.
    fn compare(&mut self, backends: &[Backend], load: Load, effort: Effort) -> Result<()> {
        let mut direct = Vec::new();
        let mut samples = vec![[const { Vec::new() }; Arrangement::ALL.len()]; backends.len()];
        for _ in 0..effort.rounds {
            direct.push(measure_direct(load, effort.turn)?);
            for (backend, samples) in backends.iter().zip(&mut samples) {
                for (arrangement, samples) in Arrangement::ALL.into_iter().zip(samples) {
                    samples.push(measure_loop(*backend, arrangement, load, effort.turn)?);
                }
            }
        }
        for (backend, samples) in backends.iter().zip(&samples) {
            for (arrangement, own) in Arrangement::ALL.into_iter().zip(samples) {
                self.rows.push(row(*backend, load, arrangement, own, &samples[0], &direct));
            }
        }
        self.direct.push((load.bytes, load.directions, Figure::of(direct)));
        Ok(())
    }
}

fn row(
    backend: Backend,
    load: Load,
    arrangement: Arrangement,
    own: &[Sample],
    bare: &[Sample],
    direct: &[f64],
) -> Row {
    let pairs = |value: fn(&Sample) -> f64| own.iter().map(value).zip(bare.iter().map(value));
    let delivered = own.iter().map(|sample| sample.delivered);
    Row {
        backend: backend.to_string(),
        bytes: load.bytes,
        directions: load.directions,
        arrangement: arrangement.name(),
        ceiling_ratio: Figure::of_ratios(pairs(|sample| sample.ceiling)),
        delivered_ratio: Figure::of_ratios(pairs(|sample| sample.delivered)),
        direct_ratio: Figure::of_ratios(delivered.clone().zip(direct.iter().copied())),
        ceiling: Figure::of(own.iter().map(|sample| sample.ceiling).collect()),
        delivered: Figure::of(delivered.collect()),
    }
}

/// Frames per second from one end of a pair to the other.
fn measure_direct(load: Load, turn: Duration) -> Result<f64> {
    let ends = [Namespace::create()?, Namespace::create()?];
    let name = device(0);
    create_veth(&End::new(&ends[0], &name), &End::new(&ends[1], &name), 1500)?;
    for end in &ends {
        end.set_offloads_off(&name)?;
    }
    let [near, far] = &ends;
    deliver([near, far], load, turn)
}

/// One turn of one arrangement: bursts through the gate, then a flood.
fn measure_loop(
    backend: Backend,
    arrangement: Arrangement,
    load: Load,
    turn: Duration,
) -> Result<Sample> {
    let rig = Rig::build()?;
    let meter = Arc::new(Meter::default());
    let ports = Gate::pair(rig.ports(backend)?, &meter);
    let running = Running::start(arrangement, ports, MIDDLE_CPU)?;
    let cost = burst_cost(rig.ends(), &meter, load, turn)?;
    meter.set_open(true);
    let delivered = deliver(rig.ends(), load, turn)?;
    running.finish()?;
    Ok(Sample { ceiling: 1e9 / cost, delivered })
}

/// Median over bursts of the loop's processor time for each frame, in nanoseconds.
fn burst_cost(ends: [&Namespace; 2], meter: &Meter, load: Load, turn: Duration) -> Result<f64> {
    let mut floods = floods(ends, load)?;
    let costs = std::thread::scope(|scope| {
        let bursts = scope.spawn(|| {
            settle(NEAR_CPU);
            let end = Instant::now() + turn;
            let mut costs = Vec::new();
            while Instant::now() < end {
                costs.extend(one_burst(&mut floods, meter));
            }
            costs
        });
        bursts.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    });
    Ok(Figure::of(costs).context("no burst came through the loop")?.median)
}

/// The cost of one burst; `None` if it did not come through in time.
fn one_burst(floods: &mut [Flood], meter: &Meter) -> Option<f64> {
    meter.set_open(false);
    let given: usize = floods.iter_mut().map(|flood| flood.burst(GATHERED)).sum();
    sleep(SETTLE);
    let before = meter.read();
    meter.set_open(true);
    let end = Instant::now() + PATIENCE;
    // The device may have lost a few of them, hence nearly all.
    let enough = before.sent + given as u64 * 9 / 10;
    while meter.read().sent < enough && Instant::now() < end {
        sleep(SETTLE);
    }
    // For the last of them.
    sleep(SETTLE);
    let after = meter.read();
    let (received, sent) = (after.received - before.received, after.sent - before.sent);
    (received == sent && after.sent >= enough)
        .then(|| (after.busy - before.busy) as f64 / sent as f64)
}

fn floods(ends: [&Namespace; 2], load: Load) -> Result<Vec<Flood>> {
    let used = ends.iter().take(load.directions);
    used.map(|end| Flood::new(end, &device(0), load.bytes)).collect()
}

/// Frames per second that arrive under a flood from the first `load.directions` ends.
fn deliver(ends: [&Namespace; 2], load: Load, turn: Duration) -> Result<f64> {
    let mut floods = floods(ends, load)?;
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            settle(NEAR_CPU);
            while !stop.load(Relaxed) {
                for flood in &mut floods {
                    flood.burst(BATCH);
                }
            }
        });
        let rate = count_arrivals(ends, load, turn);
        stop.store(true, Relaxed);
        rate
    })
}

fn count_arrivals(ends: [&Namespace; 2], load: Load, turn: Duration) -> Result<f64> {
    sleep(WARM);
    let arrived = || -> Result<u64> {
        // Those sent by the first end arrive at the second.
        let receivers = ends.iter().rev().take(load.directions);
        receivers.map(|end| received(end)).sum()
    };
    let (before, start) = (arrived()?, Instant::now());
    sleep(turn);
    let (after, took) = (arrived()?, start.elapsed());
    Ok((after - before) as f64 / took.as_secs_f64())
}

/// Frames that the end's device has received, by its own count.
fn received(end: &Namespace) -> Result<u64> {
    // Not /proc/net, which is the main thread's.
    let text = end.run(|| std::fs::read_to_string("/proc/thread-self/net/dev"))??;
    let name = device(0);
    let line = text.lines().find_map(|line| line.trim().strip_prefix(&name)?.strip_prefix(':'));
    let packets = line.and_then(|line| line.split_whitespace().nth(1));
    packets.and_then(|word| word.parse().ok()).context("the device's counters cannot be read")
}

/// Near and far end with two devices between them for a loop to join.
struct Rig(Hosts);

impl Rig {
    fn build() -> Result<Rig> {
        Ok(Rig(Hosts::build(&[1500])?))
    }

    fn ends(&self) -> [&Namespace; 2] {
        [self.0.near(), self.0.far(0)]
    }

    fn ports(&self, backend: Backend) -> Result<[Box<dyn trunkline_port::Port>; 2]> {
        let (near, far) = inner_devices(0);
        let open = |name: &str| self.0.middle().run(|| trunkline_port::open(name, backend));
        let ports = [open(&near)??, open(&far)??];
        ensure!(ports[0].mtu() >= 1400, "the devices of the laboratory are too small");
        Ok(ports)
    }
}

impl Throughput {
    /// The tables, with the verdict on the goal.
    pub fn text(&self) -> String {
        let mut table = Table::new();
        table.load_preset(comfy_table::presets::ASCII_MARKDOWN);
        table.set_header([
            "backend",
            "bytes",
            "ways",
            "in the middle",
            "ceiling / bare",
            "delivered / bare",
            "/ direct",
            "ceiling Mpps",
            "delivered Mpps",
        ]);
        for row in &self.rows {
            table.add_row(row.cells());
        }
        let mut text = format!("{table}\n");
        for (bytes, directions, figure) in &self.direct {
            let rate = show(figure.map(|figure| figure.scaled(1e-6)), 2);
            let _ = writeln!(text, "direct veth, {bytes} bytes, {directions} way(s): {rate} Mpps");
        }
        for (backend, reason) in &self.unavailable {
            let _ = writeln!(text, "backend {backend} was not measured: {reason}");
        }
        text + &self.verdict()
    }

    fn verdict(&self) -> String {
        let unlimited = self.rows.iter().filter(|row| row.arrangement == UNLIMITED.name());
        let ratios: Vec<f64> =
            unlimited.filter_map(|row| row.ceiling_ratio.map(|it| it.median)).collect();
        let met = ratios.iter().filter(|&&ratio| ratio >= GOAL).count();
        let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
        format!(
            "goal: an unlimited path holds at least {GOAL} of the bare forwarder's ceiling: \
             met in {met} of {} cases, least {least:.2}\n",
            ratios.len()
        )
    }
}

impl Row {
    fn cells(&self) -> [String; 9] {
        let millions = |figure: Option<Figure>| show(figure.map(|it| it.scaled(1e-6)), 2);
        [
            self.backend.clone(),
            self.bytes.to_string(),
            self.directions.to_string(),
            self.arrangement.to_string(),
            show(self.ceiling_ratio, 2),
            show(self.delivered_ratio, 2),
            show(self.direct_ratio, 2),
            millions(self.ceiling),
            millions(self.delivered),
        ]
    }
}
