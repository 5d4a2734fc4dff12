//! What a message costs between two processes of this host: both message layers of a cluster, bare datagrams as the limit,
//! and the layers that others use.

pub mod bare;
mod count;
mod ours;
mod peers;

use crate::figure::{Figure, show};
use anyhow::Result;
use bare::Task;
use comfy_table::Table;
use ours::{Carrying, Pair};
use peers::{Peer, Told};
use serde::Serialize;
use std::process::{Command, Stdio};

/// How often, and how much.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    /// Rounds, in each of which every layer has its turn.
    pub rounds: usize,
    /// Round trips of a turn; a stream has four times as many messages.
    pub count: u32,
    /// Round trips in the shorter of two runs whose instructions are subtracted.
    pub few: u32,
}

/// Payloads, in bytes.
const SIZES: [u32; 4] = [4, 800, 4000, 8000];
/// Instructions of the careful layer over those of bare datagrams should not exceed this.
const GOAL: f64 = 1.05;
const PEERS: [Peer; 4] =
    [Peer::Fabric("udp;ofi_rxd"), Peer::Fabric("tcp;ofi_rxm"), Peer::Ucx, Peer::Mpi];
const OURS: [(Carrying, &str); 3] = [
    (Carrying::Bare, "bare UDP (the limit)"),
    (Carrying::Layer("careful"), "careful"),
    (Carrying::Layer("traditional"), "traditional"),
];

/// A layer's figures for messages of one size.
#[derive(Debug, Serialize)]
pub struct Row {
    layer: String,
    bytes: u32,
    /// Half a round trip in microseconds, both ends looking for messages without sleeping: the median, or the mean where the
    /// program tells no median.
    latency: Option<Figure>,
    /// The same over that of bare UDP, round by round.
    ratio: Option<Figure>,
    /// Of a hundred messages no more than one takes longer, in microseconds.
    p99: Option<Figure>,
    /// Half a round trip with ends that sleep.
    asleep: Option<Figure>,
    /// Payload one way in bits per second.
    rate: Option<Figure>,
    /// Instructions of one end, its libraries included and the kernel not, for a message sent and one received.
    instructions: Option<f64>,
    /// Whether those contain what an end looked in vain.
    spins: bool,
}

/// What one round gives.
#[derive(Debug, Clone, Copy, Default)]
struct Sample {
    told: Told,
    asleep: Option<f64>,
}

/// Measures all layers in turn, size by size. Those whose programs are not there have no rows.
pub fn measure(effort: Effort) -> Result<Vec<Row>> {
    let place = tempfile::tempdir()?;
    let peers: Vec<Peer> = PEERS.into_iter().filter(|peer| is_there(peer.program())).collect();
    let mut rows = Vec::new();
    for bytes in SIZES {
        let mut samples = vec![Vec::new(); OURS.len() + peers.len()];
        for _ in 0..effort.rounds {
            for (index, samples) in samples.iter_mut().enumerate() {
                samples.push(match OURS.get(index) {
                    Some(&(carrying, _)) => sample(carrying, bytes, effort.count)?,
                    None => {
                        let told = peers[index - OURS.len()].measure(bytes, effort.count)?;
                        Sample { told, asleep: None }
                    }
                });
            }
        }
        let file = place.path().join("count");
        for (index, own) in samples.iter().enumerate() {
            let mut row = row(bytes, own, &samples[0]);
            match OURS.get(index) {
                Some(&(carrying, name)) => {
                    let pair =
                        |count| Pair { carrying, task: Task::PingPong, bytes, count, polls: false };
                    row.layer = name.into();
                    row.instructions = Some(count::per_message(effort.few, |count| {
                        pair(count).run(Some(&file))?;
                        count::counted(&file)
                    })?);
                }
                None => {
                    let peer = peers[index - OURS.len()];
                    (row.layer, row.spins) = (peer.name(), !peer.sleeps());
                    row.instructions = Some(peer.instructions(bytes, effort.few, place.path())?);
                }
            }
            rows.push(row);
        }
    }
    Ok(rows)
}

fn is_there(program: &str) -> bool {
    let mut command = Command::new(program);
    command.arg("-h").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

fn sample(carrying: Carrying, bytes: u32, count: u32) -> Result<Sample> {
    let pair = |task, count, polls| Pair { carrying, task, bytes, count, polls };
    let at = |sorted: &[f64], share: f64| {
        sorted[((share * sorted.len() as f64) as usize).min(sorted.len() - 1)]
    };
    let polled = pair(Task::PingPong, count, true).latencies()?;
    let asleep = pair(Task::PingPong, count, false).latencies()?;
    let rate = pair(Task::Stream, 4 * count, true).rate()?;
    let told = Told { latency: at(&polled, 0.5), p99: Some(at(&polled, 0.99)), rate: Some(rate) };
    Ok(Sample { told, asleep: Some(at(&asleep, 0.5)) })
}

fn row(bytes: u32, own: &[Sample], bare: &[Sample]) -> Row {
    let figure =
        |of: &dyn Fn(&Sample) -> Option<f64>| Figure::of(own.iter().filter_map(of).collect());
    let pairs = own.iter().zip(bare).map(|(own, bare)| (own.told.latency, bare.told.latency));
    Row {
        layer: String::new(),
        bytes,
        latency: figure(&|it| Some(it.told.latency)),
        ratio: Figure::of_ratios(pairs),
        p99: figure(&|it| it.told.p99),
        asleep: figure(&|it| it.asleep),
        rate: figure(&|it| it.told.rate),
        instructions: None,
        spins: false,
    }
}

/// The table, with the verdicts.
pub fn text(rows: &[Row]) -> String {
    let mut table = Table::new();
    table.load_preset(comfy_table::presets::ASCII_MARKDOWN);
    table.set_header([
        "bytes",
        "layer",
        "/ bare",
        "half a round trip, us",
        "p99, us",
        "asleep, us",
        "Mbit/s one way",
        "instructions",
    ]);
    for row in rows {
        let mark = if row.spins { " *" } else { "" };
        table.add_row([
            row.bytes.to_string(),
            row.layer.clone(),
            show(row.ratio, 2),
            show(row.latency, 1),
            show(row.p99, 1),
            show(row.asleep, 1),
            show(row.rate.map(|figure| figure.scaled(1e-6)), 0),
            row.instructions.map_or_else(|| "–".into(), |it| format!("{it:.0}{mark}")),
        ]);
    }
    let verdicts: Vec<String> =
        SIZES.into_iter().filter_map(|bytes| verdict(rows, bytes)).collect();
    format!(
        "{table}\n* those of looking in vain included: it cannot sleep\n{}\n",
        verdicts.join("\n")
    )
}

/// Whether the careful layer is near the limit, and ahead of all others, at a size.
fn verdict(rows: &[Row], bytes: u32) -> Option<String> {
    let own = rows.iter().filter(|row| row.bytes == bytes).collect::<Vec<_>>();
    let (bare, careful, others) = (own.first()?, own.get(1)?, own.get(2..)?);
    let instructions = careful.instructions? / bare.instructions?;
    let latency = careful.latency?.median;
    let ahead = |row: &&&Row| row.latency.is_some_and(|it| it.median > latency);
    let faster = others.iter().filter(ahead).count();
    let cheaper = others.iter().filter(|row| row.instructions > careful.instructions).count();
    let word = if instructions <= GOAL { "met" } else { "missed" };
    let all = others.len();
    Some(format!(
        "{bytes} bytes: careful takes {instructions:.2} times the instructions of bare UDP (goal {GOAL}: {word}); it is ahead of \
         {faster} of {all} in latency, of {cheaper} of {all} in instructions"
    ))
}
