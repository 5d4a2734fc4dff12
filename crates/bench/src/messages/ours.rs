//! Two nodes of a cluster, or two ends, as processes on this host.

use super::ends::{Over, Task};
use super::path::Path;
use crate::process::ours;
use anyhow::{Context, Result, bail};
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use trunkline_nodes::{Joined, Launch, Outcome, Place};
use trunkline_transport::cstar::NodeId;

/// Who carries the messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carrying {
    /// What the calls of an end go to.
    End(Over),
    /// A message layer of this name, under a node that carries out a program's operations.
    Node(&'static str),
}

/// Two ends that exchange messages.
#[derive(Debug, Clone, Copy)]
pub struct Pair<'a> {
    /// Between which they are.
    pub path: &'a Path,
    pub carrying: Carrying,
    pub task: Task,
    /// Payload of a message.
    pub bytes: u32,
    /// Round trips, or messages of a stream.
    pub count: u32,
    /// Whether ends look for a datagram without sleeping.
    pub polls: bool,
    /// How long the first end rests before each message, in microseconds: longer than the other needs to go to sleep, also
    /// under callgrind, so that it does the same for each. A program of operations does not rest.
    pub pause: u64,
}

/// Longest time for two ends.
const MOST: Duration = Duration::from_secs(120);
/// How long an end that polls does so before it sleeps, in microseconds.
const POLL: u64 = 10_000;
/// Round trips that are not counted.
const WARM_UP: u32 = 200;

impl Pair<'_> {
    /// What both ends say of a run. Callgrind counts the instructions of the one that answers, which times nothing, into a
    /// file, if one is given: all or those within functions of a name.
    pub fn run(&self, counted: Option<(&std::path::Path, Option<&str>)>) -> Result<Vec<Outcome>> {
        let (bench, product) = (std::env::current_exe()?, ours()?);
        let command = |node: NodeId, _: Place| {
            let end = usize::from(node.0);
            let at = Place::Udp((self.path.address(end), 0).into());
            let (program, words) = match self.carrying {
                Carrying::End(over) => (&bench, self.end(over, node, &at)),
                Carrying::Node(layer) => (&product, self.node(layer, node, &at)),
            };
            let mut command = match counted.filter(|_| node == NodeId(1)) {
                Some((file, within)) => super::count::counting(program, file, within),
                None => Command::new(program),
            };
            command.args(words);
            let mut command = self.path.at(end, &command);
            command.stderr(Stdio::null());
            command
        };
        let stop = AtomicBool::new(false);
        let launched = Launch::start(Joined::Loopback, 2, &stop, &command)?;
        let outcomes = launched.run(MOST, &stop, &mut |_| {})?;
        if let Some(why) = outcomes.iter().find_map(|it| it.failure.as_ref().or(it.wrong.as_ref()))
        {
            bail!("{:?} {:?}: {why}", self.carrying, self.task);
        }
        Ok(outcomes)
    }

    fn end(&self, over: Over, node: NodeId, at: &Place) -> Vec<String> {
        let task = match self.task {
            Task::PingPong => "ping-pong",
            Task::Stream => "stream",
        };
        let poll = if self.polls { POLL } else { 0 };
        let warm_up = if self.task == Task::PingPong { WARM_UP } else { 0 };
        let count = u64::from(self.count + warm_up);
        let numbers = [u64::from(self.bytes), count, poll, self.pause];
        let mut words = vec!["end".into(), node.0.to_string(), at.to_string()];
        words.extend([over.word(), task].map(String::from));
        words.extend(numbers.map(|it| it.to_string()));
        words
    }

    fn node(&self, layer: &str, node: NodeId, at: &Place) -> Vec<String> {
        let Pair { count, .. } = *self;
        let words = self.bytes / 4;
        let test = match self.task {
            Task::PingPong => format!("latency:words={words},rounds={count},warm_up={WARM_UP}"),
            Task::Stream => format!("throughput:words={words},messages={count},ahead=32"),
        };
        let poll = format!("{}us", if self.polls { POLL } else { 0 });
        let words = ["cluster", "node", "--id", &node.0.to_string(), "--bind", &at.to_string()];
        let rest = ["--nodes", "2", "--protocol", layer, "--poll", &poll, "--test", &test];
        words.into_iter().chain(rest).map(String::from).collect()
    }

    /// Half the time of each round trip, in microseconds, in order.
    pub fn latencies(&self) -> Result<Vec<f64>> {
        let outcomes = self.run(None)?;
        let first =
            outcomes.iter().find(|it| it.node == 0).context("the first end said nothing")?;
        let behind = first.laps.len().saturating_sub(self.count as usize);
        let mut halves: Vec<f64> =
            first.laps[behind..].iter().map(|&(nanos, _)| nanos as f64 / 2e3).collect();
        halves.sort_unstable_by(f64::total_cmp);
        Ok(halves)
    }

    /// Payload in bits per second.
    pub fn rate(&self) -> Result<f64> {
        let outcomes = self.run(None)?;
        let first =
            outcomes.iter().find(|it| it.node == 0).context("the first end said nothing")?;
        let &(nanos, bytes) = first.laps.first().context("nothing was measured")?;
        Ok(bytes as f64 * 8e9 / nanos as f64)
    }
}
