//! Two ends that exchange messages by calls of their own: over a message layer, or over bare datagrams as the limit. The
//! program is the same, and so is what it checks.

use super::bare::Datagrams;
use super::layered;
use anyhow::{Result, ensure};
use bytes::Bytes;
use std::io::BufRead;
use std::time::{Duration, Instant};
use trunkline_nodes::{Carrier, Outcome, Peers, Place, Said};
use trunkline_transport::cstar::NodeId;

/// One of two ends.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Which end
    pub me: u16,
    /// Where it listens
    pub bind: Place,
    /// What carries the messages
    pub over: Over,
    /// What they do
    pub task: Task,
    /// Bytes of a message
    pub bytes: u32,
    /// Round trips, or messages of a stream
    pub count: u32,
    /// Microseconds for which an end looks for a message before it sleeps
    pub poll: u64,
    /// Microseconds for which the first end rests before each message
    pub pause: u64,
}

/// What carries messages between two ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Over {
    /// Datagrams over the same socket and by the same calls as a node's frames, with as many octets
    Bare,
    /// The careful message layer
    Careful,
    /// The traditional message layer
    Traditional,
}

impl Over {
    /// For a command.
    pub fn word(self) -> &'static str {
        match self {
            Over::Bare => "bare",
            Over::Careful => "careful",
            Over::Traditional => "traditional",
        }
    }
}

/// What two ends do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Task {
    /// A message there and back
    PingPong,
    /// Messages one way, and a last one back
    Stream,
}

/// Receive buffers of an end, of a frame each.
pub const BUFFERS: u32 = 128;

/// What carries an end's messages to the other and back.
pub trait Way {
    /// Sends a message.
    fn send(&mut self, number: u32) -> Result<()>;

    /// The octets of the next message that comes: of this number.
    fn receive(&mut self, number: u32) -> Result<Bytes>;

    /// Sends so many messages, and hears that all have come.
    fn stream(&mut self, count: u32) -> Result<()>;

    /// Receives so many messages, which `check` sees, and tells that the last has come.
    fn drain(&mut self, count: u32, check: &dyn Fn(&[u8]) -> Result<()>) -> Result<()>;
}

/// Runs an end. It says and hears what a node of a cluster does.
pub fn run(args: &Args) -> Result<()> {
    let mut carrier = Carrier::bind(&args.bind, BUFFERS, args.bytes.max(1))?;
    say(&Said::Listens(carrier.address()?))?;
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line)?;
    let peers: Peers = serde_json::from_str(&line)?;
    carrier.meet(NodeId(args.me), peers.peers)?;
    say(&Said::Begins)?;
    let data = Bytes::from(vec![0x5a; args.bytes as usize]);
    let laps = match args.over {
        Over::Bare => exchange(args, &data, Datagrams::new(args, carrier, &data)),
        Over::Careful => {
            layered::careful(args, carrier, |way| exchange(args, &data, way), data.clone())
        }
        Over::Traditional => {
            layered::traditional(args, carrier, |way| exchange(args, &data, way), data.clone())
        }
    }?;
    say(&Said::Ended(Box::new(Outcome { node: args.me, laps, ..Outcome::default() })))?;
    // Whoever started it ends its input.
    std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink())?;
    Ok(())
}

fn say(what: &Said) -> Result<()> {
    println!("{}", serde_json::to_string(what)?);
    Ok(())
}

type Laps = Vec<(u64, u64)>;

/// The name of [`exchange`], within which callgrind counts.
pub const COUNTED: &str = "*messages::ends::exchange*";

/// An end's part, by whatever way.
#[inline(never)]
fn exchange(args: &Args, data: &[u8], mut way: impl Way) -> Result<Laps> {
    let check = |octets: &[u8]| {
        ensure!(octets == data, "{} octets have come that were not sent so", octets.len());
        Ok(())
    };
    let count = args.count;
    match (args.task, args.me) {
        (Task::PingPong, 0) => return asks(args, &mut way, check),
        (Task::PingPong, _) => {
            for number in 0..count {
                check(&way.receive(number)?)?;
                way.send(number)?;
            }
        }
        (Task::Stream, 0) => {
            let begin = Instant::now();
            way.stream(count)?;
            let nanos = begin.elapsed().as_nanos() as u64;
            return Ok(vec![(nanos, u64::from(count) * u64::from(args.bytes))]);
        }
        (Task::Stream, _) => way.drain(count, &check)?,
    }
    Ok(Laps::new())
}

fn asks(args: &Args, way: &mut impl Way, check: impl Fn(&[u8]) -> Result<()>) -> Result<Laps> {
    let (count, pause) = (args.count, Duration::from_micros(args.pause));
    let mut laps = Laps::with_capacity(count as usize);
    for number in 0..count {
        if !pause.is_zero() {
            std::thread::sleep(pause);
        }
        let begin = Instant::now();
        way.send(number)?;
        let octets = way.receive(number)?;
        check(&octets)?;
        laps.push((begin.elapsed().as_nanos() as u64, octets.len() as u64));
    }
    Ok(laps)
}

/// How long an end looks for a message before it sleeps.
pub fn poll(args: &Args) -> Duration {
    Duration::from_micros(args.poll)
}
