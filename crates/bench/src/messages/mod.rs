//! What a message costs between two processes of this host: both message layers of a cluster, bare datagrams as the limit,
//! and the layers that others use.

mod aeron;
mod bare;
mod count;
pub mod counted;
pub mod ends;
mod layered;
mod ours;
mod path;
mod peers;
mod phases;

use crate::figure::{Figure, show};
use anyhow::Result;
use comfy_table::Table;
use ends::{Over, Task};
use ours::{Carrying, Pair};
use path::Path;
use peers::{Peer, Told};
use serde::Serialize;
use std::path::PathBuf;
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
/// Who is measured, with the name for a table. The first is the limit, the second what the goal is of.
const ALL: [Contender; 10] = [
    Contender::Ours(Carrying::End(Over::Bare), "bare UDP (the limit)"),
    Contender::Ours(Carrying::End(Over::Careful), "careful"),
    Contender::Ours(Carrying::End(Over::Traditional), "traditional"),
    Contender::Ours(Carrying::Node("careful"), "careful, a program of operations"),
    Contender::Ours(Carrying::Node("traditional"), "traditional, a program of operations"),
    Contender::Peer(Peer::Fabric("udp;ofi_rxd")),
    Contender::Peer(Peer::Fabric("tcp;ofi_rxm")),
    Contender::Peer(Peer::Ucx),
    Contender::Peer(Peer::Mpi),
    Contender::Peer(Peer::Aeron),
];

/// Ends of this laboratory, or of another message layer.
#[derive(Debug, Clone, Copy)]
enum Contender {
    Ours(Carrying, &'static str),
    Peer(Peer),
}

/// All that was timed.
#[derive(Debug, Serialize)]
pub struct Messages {
    path: &'static str,
    rows: Vec<Row>,
    /// Programs that are not there, so that their layers have no rows.
    missing: Vec<String>,
}

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
}

/// What one round gives.
#[derive(Debug, Clone, Copy, Default)]
struct Sample {
    told: Told,
    asleep: Option<f64>,
}

/// Those whose programs are there, and the programs of the others.
fn contenders() -> (Vec<Contender>, Vec<String>) {
    let (there, not): (Vec<Contender>, Vec<Contender>) =
        ALL.into_iter().partition(Contender::is_there);
    let programs = not.into_iter().filter_map(Contender::program);
    let mut missing: Vec<_> = programs.map(|it| it.display().to_string()).collect();
    missing.dedup();
    (there, missing)
}

/// Measures all layers in turn, size by size. Those whose programs are not there have no rows.
pub fn measure(effort: Effort) -> Result<Messages> {
    let path = Path::new()?;
    let (there, missing) = contenders();
    let mut rows = Vec::new();
    for bytes in SIZES {
        let mut samples = vec![Vec::new(); there.len()];
        for _ in 0..effort.rounds {
            for (contender, samples) in there.iter().zip(&mut samples) {
                samples.push(contender.sample(&path, bytes, effort.count)?);
            }
        }
        let own = there.iter().zip(&samples);
        rows.extend(own.map(|(contender, own)| row(contender, bytes, own, &samples[0])));
    }
    Ok(Messages { path: path.name(), rows, missing })
}

impl Contender {
    fn name(self) -> String {
        match self {
            Contender::Ours(_, name) => name.into(),
            Contender::Peer(peer) => peer.name(),
        }
    }

    /// The program that has to be there.
    fn program(self) -> Option<PathBuf> {
        match self {
            Contender::Ours(..) => None,
            Contender::Peer(peer) => Some(peer.program()),
        }
    }

    fn is_there(&self) -> bool {
        let Some(program) = self.program() else { return true };
        let mut command = Command::new(program);
        command.arg("-h").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
    }

    fn sample(self, path: &Path, bytes: u32, count: u32) -> Result<Sample> {
        match self {
            Contender::Ours(carrying, _) => sample(path, carrying, bytes, count),
            Contender::Peer(peer) => {
                Ok(Sample { told: peer.measure(path, bytes, count)?, asleep: None })
            }
        }
    }
}

fn sample(path: &Path, carrying: Carrying, bytes: u32, count: u32) -> Result<Sample> {
    let pair = |task, count, polls| Pair { path, carrying, task, bytes, count, polls, pause: 0 };
    let at = |sorted: &[f64], share: f64| {
        sorted[((share * sorted.len() as f64) as usize).min(sorted.len() - 1)]
    };
    let polled = pair(Task::PingPong, count, true).latencies()?;
    let asleep = pair(Task::PingPong, count, false).latencies()?;
    let rate = pair(Task::Stream, 4 * count, true).rate()?;
    let told = Told { latency: at(&polled, 0.5), p99: Some(at(&polled, 0.99)), rate: Some(rate) };
    Ok(Sample { told, asleep: Some(at(&asleep, 0.5)) })
}

fn row(contender: &Contender, bytes: u32, own: &[Sample], bare: &[Sample]) -> Row {
    let figure =
        |of: &dyn Fn(&Sample) -> Option<f64>| Figure::of(own.iter().filter_map(of).collect());
    let pairs = own.iter().zip(bare).map(|(own, bare)| (own.told.latency, bare.told.latency));
    Row {
        layer: contender.name(),
        bytes,
        latency: figure(&|it| Some(it.told.latency)),
        ratio: Figure::of_ratios(pairs),
        p99: figure(&|it| it.told.p99),
        asleep: figure(&|it| it.asleep),
        rate: figure(&|it| it.told.rate),
    }
}

/// The table, with the verdicts.
pub fn text(messages: &Messages) -> String {
    let rows = &messages.rows;
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
    ]);
    for row in rows {
        table.add_row([
            row.bytes.to_string(),
            row.layer.clone(),
            show(row.ratio, 2),
            show(row.latency, 1),
            show(row.p99, 1),
            show(row.asleep, 1),
            show(row.rate.map(|figure| figure.scaled(1e-6)), 0),
        ]);
    }
    let verdicts: Vec<String> =
        SIZES.into_iter().filter_map(|bytes| verdict(rows, bytes)).collect();
    format!(
        "over {}; libfabric and Open MPI tell means\n{table}\n{}{}\n",
        messages.path,
        not_there(&messages.missing),
        verdicts.join("\n"),
    )
}

/// A line that names the programs that are missing.
fn not_there(missing: &[String]) -> String {
    match missing.join(", ") {
        none if none.is_empty() => none,
        some => format!("not there, and not measured: {some} (make clusters installs them)\n"),
    }
}

/// Whether the careful layer is ahead of all others at a size.
fn verdict(rows: &[Row], bytes: u32) -> Option<String> {
    let own = rows.iter().filter(|row| row.bytes == bytes).collect::<Vec<_>>();
    let (careful, others) = (own.get(1)?, own.get(2..)?);
    let latency = careful.latency?.median;
    let ahead = |row: &&&Row| row.latency.is_some_and(|it| it.median > latency);
    let (faster, all) = (others.iter().filter(ahead).count(), others.len());
    Some(format!("{bytes} bytes: careful is ahead of {faster} of {all} in latency"))
}
