//! Kernel TCP through the emulator, by iperf3: as a ratio to a direct pair, and to what the path allows.

use crate::figure::{Figure, show};
use crate::loops::path;
use anyhow::{Context, Result, bail, ensure};
use comfy_table::Table;
use serde::Serialize;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use trunkline_dataplane::hosts::{Hosts, addresses, device, inner_devices};
use trunkline_dataplane::{Plan, Session, SessionOptions, accuracy};
use trunkline_netns::{End, IpNet, Namespace, SpawnOptions, create_veth, spawn};

/// Payload of a full TCP segment with time stamps, of the 1500 bytes that the line is charged for.
const SHARE: f64 = 1448.0 / 1500.0;
/// What a path with a rate should reach of that.
const GOAL: f64 = 0.95;
const RATE: f64 = 1e9;
/// How long iperf3 may take beyond the times that it was given.
const PATIENCE: Duration = Duration::from_secs(10);

/// A way between two hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// A pair of devices, its offloads switched off as the emulator's hosts have them.
    Direct,
    /// As the kernel makes it, with segmentation left to a device that never does it.
    DirectOffloads,
    /// The emulator.
    Emulator(&'static [&'static str]),
}

const UNLIMITED: Way = Way::Emulator(&["rate=unlimited"]);
const LIMITED: Way = Way::Emulator(&["rate=1gbit", "delay=10ms"]);
const WAYS: [(&str, Way); 4] = [
    ("direct veth, offloads off", Way::Direct),
    ("emulator, unlimited", UNLIMITED),
    ("emulator, 1 Gbit/s 10 ms", LIMITED),
    ("direct veth, offloads on", Way::DirectOffloads),
];

/// How long each transfer is: seconds left out at its beginning, and seconds that count.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    /// Rounds, in each of which every way has its turn.
    pub rounds: usize,
    /// Seconds that count.
    pub seconds: u32,
}

/// One way's figures.
#[derive(Debug, Serialize)]
pub struct Row {
    way: &'static str,
    /// Goodput at the receiver, in bits per second.
    goodput: Option<Figure>,
    /// Over the direct pair with offloads off, round by round.
    direct_ratio: Option<Figure>,
    /// Over what the path's rate allows, if it has one.
    achievable_ratio: Option<Figure>,
    /// Frames that the emulator itself lost, all rounds together.
    emulator_drops: u64,
}

/// What one transfer gave.
#[derive(Debug, Clone, Copy)]
struct Sample {
    goodput: f64,
    drops: u64,
}

/// Measures all ways in turn.
pub fn measure(effort: Effort) -> Result<Vec<Row>> {
    let mut samples = [const { Vec::new() }; WAYS.len()];
    for _ in 0..effort.rounds {
        for ((_, way), samples) in WAYS.into_iter().zip(&mut samples) {
            samples.push(transfer(way, effort.seconds)?);
        }
    }
    let rows = WAYS.into_iter().zip(&samples);
    Ok(rows.map(|((name, way), own)| row(name, way, own, &samples[0])).collect())
}

fn row(name: &'static str, way: Way, own: &[Sample], direct: &[Sample]) -> Row {
    let goodput = |samples: &[Sample]| samples.iter().map(|it| it.goodput).collect::<Vec<_>>();
    let achievable = Figure::of(goodput(own)).map(|figure| figure.scaled(1.0 / (RATE * SHARE)));
    Row {
        way: name,
        goodput: Figure::of(goodput(own)),
        direct_ratio: Figure::of_ratios(goodput(own).into_iter().zip(goodput(direct))),
        achievable_ratio: achievable.filter(|_| way == LIMITED),
        emulator_drops: own.iter().map(|it| it.drops).sum(),
    }
}

fn transfer(way: Way, seconds: u32) -> Result<Sample> {
    // The window opens over some round trips first.
    let warm = if way == LIMITED { 2 } else { 1 };
    match way {
        Way::Direct => direct(false, warm, seconds),
        Way::DirectOffloads => direct(true, warm, seconds),
        Way::Emulator(settings) => emulated(settings, warm, seconds),
    }
}

fn direct(offloads: bool, warm: u32, seconds: u32) -> Result<Sample> {
    let (near, far) = (Namespace::create()?, Namespace::create()?);
    let name = device(0);
    create_veth(&End::new(&near, &name), &End::new(&far, &name), 1500)?;
    for (end, address) in [(&near, addresses(0).near), (&far, addresses(0).far)] {
        let net = IpNet::new(address, 24).context("24 is a prefix length")?;
        end.add_address(&name, net)?;
        if !offloads {
            end.set_offloads_off(&name)?;
        }
    }
    Ok(Sample { goodput: iperf(&near, &far, warm, seconds)?, drops: 0 })
}

fn emulated(settings: &[&str], warm: u32, seconds: u32) -> Result<Sample> {
    let hosts = Hosts::build(&[1500])?;
    let (near, far) = inner_devices(0);
    let path = path(settings)?;
    let plan = Plan { name: String::new(), path, namespace: hosts.middle(), near, far };
    let options = SessionOptions { bound: accuracy::DEFAULT_BOUND, ..SessionOptions::default() };
    let (session, thread) = Session::start(vec![plan], options)?;
    let goodput = iperf(hosts.near(), hosts.far(0), warm, seconds);
    session.stop();
    let ended = thread.join();
    ended.result?;
    Ok(Sample { goodput: goodput?, drops: ended.snapshot.dropped_by_emulator() })
}

/// One flow from near to far; returns bits per second at the receiver.
fn iperf(near: &Namespace, far: &Namespace, warm: u32, seconds: u32) -> Result<f64> {
    let mut server = Command::new("iperf3");
    server.args(["-s", "-1"]).stdout(Stdio::null()).stderr(Stdio::null());
    let hint = "iperf3 cannot be started: install it (apt-get install iperf3)";
    let mut server = Owned(spawn(far, server, SpawnOptions::default()).context(hint)?);
    let peer = addresses(0).far.to_string();
    let end = Instant::now() + Duration::from_secs(u64::from(warm + seconds)) + PATIENCE;
    loop {
        let mut client = Command::new("iperf3");
        client.args(["-c", &peer, "-J", "-O", &warm.to_string(), "-t", &seconds.to_string()]);
        client.stdout(Stdio::piped()).stderr(Stdio::null());
        let output = spawn(near, client, SpawnOptions::default())?.wait_with_output()?;
        let report: serde_json::Value = serde_json::from_slice(&output.stdout)?;
        let refused = report["error"].as_str().is_some_and(|error| error.contains("refused"));
        if refused && Instant::now() < end {
            // The server does not listen yet.
            std::thread::sleep(Duration::from_millis(20));
            continue;
        }
        if let Some(error) = report["error"].as_str() {
            bail!("iperf3: {error}");
        }
        server.0.wait()?;
        let rate = report["end"]["sum_received"]["bits_per_second"].as_f64();
        ensure!(rate.is_some_and(|rate| rate > 0.0), "iperf3 told no rate");
        return rate.context("iperf3 told no rate");
    }
}

/// A process that ends with its owner.
struct Owned(Child);

impl Drop for Owned {
    fn drop(&mut self) {
        // Both fail only if it has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The table, with the verdict on the goal.
pub fn text(rows: &[Row]) -> String {
    let mut table = Table::new();
    table.load_preset(comfy_table::presets::ASCII_MARKDOWN);
    table.set_header(["way", "/ direct", "/ achievable", "Gbit/s", "lost by emulator"]);
    for row in rows {
        table.add_row([
            row.way.to_string(),
            show(row.direct_ratio, 2),
            show(row.achievable_ratio, 3),
            show(row.goodput.map(|figure| figure.scaled(1e-9)), 2),
            row.emulator_drops.to_string(),
        ]);
    }
    format!("{table}\n{}\n", verdict(rows))
}

fn verdict(rows: &[Row]) -> String {
    let limited = rows.iter().find_map(|row| row.achievable_ratio.map(|it| (it.median, row)));
    let (ratio, lost) = limited.map_or((0.0, 0), |(ratio, row)| (ratio, row.emulator_drops));
    let word = if ratio >= GOAL && lost == 0 { "met" } else { "missed" };
    format!("goal: at least {GOAL} of what 1 Gbit/s allows, nothing lost by the emulator: {word}")
}
