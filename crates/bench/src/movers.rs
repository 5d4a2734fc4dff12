//! What moving data costs: processor seconds of both ends for each gigabyte, over loopback, by `trunkline send`, by a small
//! mover on a QUIC stack, and by kernel TCP.

use crate::figure::{Figure, show};
use crate::process::{finish, ours, start};
use anyhow::{Result, ensure};
use comfy_table::Table;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use serde::Serialize;
use std::fs::{self, File, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};
use trunkline_netns::{Namespace, listening};

/// How long a receiver may take to listen.
const PATIENCE: Duration = Duration::from_secs(10);
/// What ours should need of QUIC's processor time.
const GOAL: f64 = 1.0;
/// Ports at which receivers wait that choose none for themselves.
const PORTS: [&str; 2] = ["47818", "47819"];

/// How much is moved, and how often.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    /// Rounds, in each of which every mover has its turn.
    pub rounds: usize,
    /// Octets that each moves.
    pub bytes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mover {
    Send,
    Quic,
    Clear,
    Tcp,
}

const MOVERS: [(Mover, &str); 4] = [
    (Mover::Send, "trunkline send: file to file, hashed twice, AES-GCM if the processor has it"),
    (Mover::Quic, "QUIC (quinn): file to file, AES-GCM"),
    (Mover::Clear, "trunkline send --plaintext: file to file, hashed twice"),
    (Mover::Tcp, "TCP (iperf3): memory to memory, nothing encrypted"),
];

/// One mover's figures.
#[derive(Debug, Serialize)]
pub struct Row {
    mover: &'static str,
    /// Processor seconds of both ends, user and system, for each 10⁹ octets.
    cost: Option<Figure>,
    /// The same over QUIC's, round by round.
    quic_ratio: Option<Figure>,
    /// Octets per second from the start of the sender to its end.
    goodput: Option<Figure>,
}

/// What one transfer took.
#[derive(Debug, Clone, Copy)]
struct Sample {
    cost: f64,
    goodput: f64,
}

/// Measures all movers in turn.
pub fn measure(effort: Effort) -> Result<Vec<Row>> {
    let place = tempfile::tempdir()?;
    let file = place.path().join("file");
    fill(&file, effort.bytes)?;
    let mut samples = [const { Vec::new() }; MOVERS.len()];
    for _ in 0..effort.rounds {
        for ((mover, _), samples) in MOVERS.into_iter().zip(&mut samples) {
            samples.push(transfer(mover, &file, effort.bytes)?);
        }
    }
    let row = |((_, mover), own): ((Mover, &'static str), &Vec<Sample>)| Row {
        mover,
        cost: Figure::of(own.iter().map(|it| it.cost).collect()),
        quic_ratio: Figure::of_ratios(own.iter().zip(&samples[1]).map(|(a, b)| (a.cost, b.cost))),
        goodput: Figure::of(own.iter().map(|it| it.goodput).collect()),
    };
    Ok(MOVERS.into_iter().zip(&samples).map(row).collect())
}

/// Writes a file of so many octets of which no block is like another.
fn fill(file: &Path, bytes: u64) -> Result<()> {
    let (mut file, mut state, mut left) = (File::create(file)?, 1u64, bytes as usize);
    while left > 0 {
        let piece: Vec<u8> = std::iter::repeat_with(|| {
            // Knuth's multiplier (MMIX): any octets do that a file system does not take for holes.
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state.to_be_bytes()
        })
        .take(left.min(1 << 20).div_ceil(8))
        .flatten()
        .take(left)
        .collect();
        left -= piece.len();
        file.write_all(&piece)?;
    }
    Ok(())
}

fn transfer(mover: Mover, file: &Path, bytes: u64) -> Result<Sample> {
    let place = tempfile::tempdir()?;
    let before = used()?;
    let far = start(receiver(mover, place.path())?)?;
    wait_for(mover, place.path())?;
    let began = Instant::now();
    finish(start(sender(mover, place.path(), file, bytes)?)?, "the sender")?;
    let took = began.elapsed();
    finish(far, "the receiver")?;
    let moved = match mover {
        Mover::Send | Mover::Clear => fs::metadata(place.path().join("inbox/file"))?.len(),
        Mover::Quic => fs::metadata(place.path().join("received"))?.len(),
        Mover::Tcp => bytes,
    };
    ensure!(moved == bytes, "{moved} of {bytes} octets came");
    let cost = (used()? - before) / (bytes as f64 / 1e9);
    Ok(Sample { cost, goodput: bytes as f64 / took.as_secs_f64() })
}

fn receiver(mover: Mover, place: &Path) -> Result<Command> {
    Ok(match mover {
        Mover::Send | Mover::Clear => {
            let key = place.join("key");
            // As it is, and not stretched.
            fs::write(&key, "0123456789abcdef".repeat(4))?;
            fs::set_permissions(&key, Permissions::from_mode(0o600))?;
            let mut command = Command::new(ours()?);
            command.arg("receive").arg(place.join("inbox"));
            command.args(["--port", PORTS[0], "--key-file"]).arg(key);
            command.args((mover == Mover::Clear).then_some("--plaintext"));
            command
        }
        Mover::Quic => {
            let mut command = Command::new(std::env::current_exe()?);
            command.arg("quic-receive").arg(place);
            command
        }
        Mover::Tcp => {
            let mut command = Command::new("iperf3");
            command.args(["-s", "-1", "-p", PORTS[1]]);
            command
        }
    })
}

fn sender(mover: Mover, place: &Path, file: &Path, bytes: u64) -> Result<Command> {
    Ok(match mover {
        Mover::Send | Mover::Clear => {
            let mut command = Command::new(ours()?);
            command.arg("send").args((mover == Mover::Clear).then_some("--plaintext"));
            command.arg(file).arg(format!("127.0.0.1:{}", PORTS[0]));
            command.arg("--key-file").arg(place.join("key"));
            command
        }
        Mover::Quic => {
            let mut command = Command::new(std::env::current_exe()?);
            command.arg("quic-send").arg(place).arg(file);
            command
        }
        Mover::Tcp => {
            let mut command = Command::new("iperf3");
            command.args(["-c", "127.0.0.1", "-p", PORTS[1], "-n", &bytes.to_string()]);
            command
        }
    })
}

/// Waits until the receiver listens: a sender that asks in vain would cost processor time.
fn wait_for(mover: Mover, place: &Path) -> Result<()> {
    let end = Instant::now() + PATIENCE;
    let here = Namespace::current()?;
    let listens = |port: &str| -> Result<bool> { Ok(listening(&here)?.contains(&port.parse()?)) };
    loop {
        let is_there = match mover {
            Mover::Send | Mover::Clear => listens(PORTS[0])?,
            Mover::Quic => place.join("port").exists(),
            Mover::Tcp => listens(PORTS[1])?,
        };
        if is_there {
            return Ok(());
        }
        ensure!(Instant::now() < end, "the receiver does not listen");
        sleep(Duration::from_millis(10));
    }
}

/// Processor seconds of all children that have ended.
fn used() -> Result<f64> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let seconds = |time: TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    Ok(seconds(usage.user_time()) + seconds(usage.system_time()))
}

/// The table, with the verdict on the goal.
pub fn text(rows: &[Row]) -> String {
    let mut table = Table::new();
    table.load_preset(comfy_table::presets::ASCII_MARKDOWN);
    table.set_header(["mover", "/ QUIC", "processor s/GB", "Gbit/s"]);
    for row in rows {
        table.add_row([
            row.mover.to_string(),
            show(row.quic_ratio, 2),
            show(row.cost, 2),
            show(row.goodput.map(|figure| figure.scaled(8e-9)), 2),
        ]);
    }
    let ratio = rows.first().and_then(|row| row.quic_ratio).map_or(f64::MAX, |it| it.median);
    let word = if ratio < GOAL { "met" } else { "missed" };
    format!("{table}\ngoal: less processor time than QUIC for each gigabyte: {word}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_its_length_and_no_equal_blocks() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("file");
        fill(&file, (2 << 20) + 13).unwrap();
        let octets = fs::read(file).unwrap();
        assert_eq!(octets.len(), (2 << 20) + 13);
        let blocks: std::collections::HashSet<&[u8]> = octets.chunks(4096).collect();
        assert_eq!(blocks.len(), 513);
    }
}
