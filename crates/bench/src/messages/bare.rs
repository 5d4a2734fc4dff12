//! The limit: datagrams over the same socket and by the same calls as a node's frames, without a message layer.

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use std::io::BufRead;
use std::time::{Duration, Instant};
use trunkline_nodes::{Carrier, Outcome, Peers, Place, Said};
use trunkline_transport::cstar::{Frame, NodeId};

/// One of two ends that exchange datagrams.
#[derive(Debug, Clone, clap::Args)]
pub struct Args {
    /// Which end
    pub me: u16,
    /// Where it listens
    pub bind: Place,
    /// What they do
    pub task: Task,
    /// Octets of payload; a header's stand before them
    pub bytes: u32,
    /// Round trips, or datagrams of a stream
    pub count: u32,
    /// Microseconds for which an end looks for a datagram before it sleeps
    pub poll: u64,
}

/// What two ends do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Task {
    /// A datagram there and back
    PingPong,
    /// Datagrams one way, of which every so many are answered so that none is dropped
    Stream,
}

/// Datagrams of a stream that are under way at most, and after how many an answer goes back.
const WINDOW: u32 = 64;
const EVERY: u32 = 32;
/// How long an end waits for what must come.
const PATIENCE: Duration = Duration::from_secs(10);

/// Runs an end. It says and hears what a node of a cluster does.
pub fn run(args: &Args) -> Result<()> {
    let mut carrier = Carrier::bind(&args.bind, 128, args.bytes)?;
    say(&Said::Listens(carrier.address()?))?;
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line)?;
    let peers: Peers = serde_json::from_str(&line)?;
    carrier.meet(NodeId(args.me), peers.peers)?;
    let mut end = End {
        carrier,
        other: NodeId(1 - args.me),
        octets: vec![0; (args.bytes + Frame::HEADER) as usize],
        poll: Duration::from_micros(args.poll),
    };
    let laps = match (args.task, args.me) {
        (Task::PingPong, 0) => end.asks(args.count)?,
        (Task::PingPong, _) => end.answers(args.count)?,
        (Task::Stream, 0) => end.streams(args.count, args.bytes)?,
        (Task::Stream, _) => end.drains(args.count)?,
    };
    say(&Said::Ended(Box::new(Outcome { node: args.me, laps, ..Outcome::default() })))?;
    // Whoever started it ends its input.
    std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink())?;
    Ok(())
}

fn say(what: &Said) -> Result<()> {
    println!("{}", serde_json::to_string(what)?);
    Ok(())
}

struct End {
    carrier: Carrier,
    other: NodeId,
    octets: Vec<u8>,
    poll: Duration,
}

type Laps = Vec<(u64, u64)>;

impl End {
    fn send(&mut self) -> Result<()> {
        Ok(self.carrier.send_to(self.other, &self.octets)?)
    }

    /// The next datagram, looked for without sleeping at first.
    fn receive(&mut self) -> Result<Bytes> {
        if let Some(octets) = self.carrier.receive(Duration::ZERO)? {
            return Ok(octets);
        }
        let begin = Instant::now();
        while begin.elapsed() < self.poll {
            if let Some(octets) = self.carrier.receive(Duration::ZERO)? {
                return Ok(octets);
            }
        }
        while begin.elapsed() < PATIENCE {
            if let Some(octets) = self.carrier.receive(PATIENCE)? {
                return Ok(octets);
            }
        }
        bail!("no datagram has come for {} s", PATIENCE.as_secs())
    }

    fn asks(&mut self, count: u32) -> Result<Laps> {
        let mut laps = Laps::with_capacity(count as usize);
        for _ in 0..count {
            let begin = Instant::now();
            self.send()?;
            let length = self.receive()?.len() as u64;
            laps.push((begin.elapsed().as_nanos() as u64, length));
        }
        Ok(laps)
    }

    fn answers(&mut self, count: u32) -> Result<Laps> {
        for _ in 0..count {
            self.receive()?;
            self.send()?;
        }
        Ok(Laps::new())
    }

    fn streams(&mut self, count: u32, bytes: u32) -> Result<Laps> {
        let (begin, mut answered) = (Instant::now(), 0);
        for sent in 0..count {
            while sent - answered >= WINDOW {
                self.receive()?;
                answered += EVERY;
            }
            self.send()?;
        }
        while answered + EVERY <= count {
            self.receive()?;
            answered += EVERY;
        }
        let nanos = begin.elapsed().as_nanos() as u64;
        Ok(vec![(nanos, u64::from(count) * u64::from(bytes))])
    }

    fn drains(&mut self, count: u32) -> Result<Laps> {
        for received in 1..=count {
            self.receive()?;
            if received.is_multiple_of(EVERY) {
                let answer = self.octets.get(..Frame::HEADER as usize).context("no header")?;
                self.carrier.send_to(self.other, answer)?;
            }
        }
        Ok(Laps::new())
    }
}
