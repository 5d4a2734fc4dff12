//! The nodes of a cluster run in one process, over a network that delivers in random order.

use crate::{Node, Step};
use std::collections::VecDeque;
use std::fmt;
use thiserror::Error;
use trunkline_core::{Probability, Seed, Span, Stream, Time};
use trunkline_transport::cstar::{Destination, Failure, Frame, NodeId};

/// A network among nodes. It keeps the order of frames between any two nodes and nothing else: what happens next is drawn.
///
/// Its time passes by a microsecond with each thing that happens, and jumps to the next deadline when nothing else is left.
/// For tests and examples; the simulator has media, processors and times.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Network {
    /// The seed of what is drawn.
    pub seed: Seed,
    /// The probability that a frame is lost on its way to a node.
    pub loss: Probability,
    /// Happenings after which the run is given up.
    pub most: u64,
}

impl Default for Network {
    fn default() -> Network {
        Network { seed: Seed(1), loss: Probability::NEVER, most: 10_000_000 }
    }
}

/// Why nodes did not come to their end.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Stopped {
    /// A node's message layer failed.
    #[error("{node} failed: {failure}")]
    Failed {
        /// The node.
        node: NodeId,
        /// Its failure.
        failure: Failure,
    },
    /// All nodes wait, no frame is under way, and no deadline is set.
    #[error("the nodes wait for each other: {0}")]
    Deadlocked(String),
    /// There was no end to it.
    #[error("the programs have not ended after {0} steps: {1}")]
    Endless(u64, String),
}

/// A run under way.
struct Run<'a> {
    network: &'a Network,
    nodes: Vec<Node>,
    /// Whether a node's program can go on.
    ready: Vec<bool>,
    /// What each node waits for, for messages.
    waits: Vec<String>,
    /// Frames from one node to another, at `from * P + to`.
    wires: Vec<VecDeque<Frame>>,
    random: Stream,
    now: Time,
}

/// A thing that can happen.
#[derive(Debug, Clone, Copy)]
enum Happening {
    Step(usize),
    Deliver(usize),
}

impl Network {
    /// Runs nodes until all programs have ended, and answers them.
    ///
    /// # Errors
    /// If they do not come to their end.
    pub fn run(&self, nodes: Vec<Node>) -> Result<Vec<Node>, Stopped> {
        let count = nodes.len();
        let mut run = Run {
            network: self,
            nodes,
            ready: vec![true; count],
            waits: vec![String::new(); count],
            wires: vec![VecDeque::new(); count * count],
            random: self.seed.stream("network"),
            now: Time::ZERO,
        };
        for _ in 0..self.most {
            if run.nodes.iter().all(Node::has_ended) {
                return Ok(run.nodes);
            }
            run.happen()?;
        }
        Err(Stopped::Endless(self.most, run.state()))
    }
}

impl Run<'_> {
    fn happen(&mut self) -> Result<(), Stopped> {
        self.now += Span::from_micros(1);
        let steps = (0..self.nodes.len()).filter(|&node| self.ready[node]).map(Happening::Step);
        let wires = (0..self.wires.len()).filter(|&wire| !self.wires[wire].is_empty());
        let possible: Vec<Happening> = steps.chain(wires.map(Happening::Deliver)).collect();
        match possible.len() {
            0 => self.expire()?,
            count => match possible[self.random.below(count as u64) as usize] {
                Happening::Step(node) => self.step(node),
                Happening::Deliver(wire) => self.deliver(wire),
            },
        }
        self.due();
        let failed = |(node, at): (&Node, u16)| Some((NodeId(at), node.failure()?.clone()));
        match self.nodes.iter().zip(0..).find_map(failed) {
            Some((node, failure)) => Err(Stopped::Failed { node, failure }),
            None => Ok(()),
        }
    }

    fn step(&mut self, node: usize) {
        match self.nodes[node].step(self.now) {
            Step::Worked(_) => {}
            Step::Waits(waiting, _) => {
                self.ready[node] = false;
                self.waits[node] = format!("{waiting:?}");
            }
            Step::Ended => self.ready[node] = false,
        }
        self.transmit(node);
    }

    fn deliver(&mut self, wire: usize) {
        let node = wire % self.nodes.len();
        if let Some(frame) = self.wires[wire].pop_front()
            && !self.random.happens(self.network.loss)
        {
            self.nodes[node].arrive(self.now, frame);
            self.heard(node);
        }
    }

    /// Something has come to a node, or was due: it sends its answers, and tries again what it waits for.
    fn heard(&mut self, node: usize) {
        self.ready[node] = !self.nodes[node].has_ended();
        self.transmit(node);
    }

    fn transmit(&mut self, from: usize) {
        let count = self.nodes.len();
        while let Some(frame) = self.nodes[from].transmit(self.now) {
            match frame.to {
                Destination::Node(to) => {
                    self.wires[from * count + usize::from(to.0)].push_back(frame)
                }
                Destination::All => (0..count)
                    .filter(|&to| to != from)
                    .for_each(|to| self.wires[from * count + to].push_back(frame.clone())),
            }
        }
    }

    /// Calls the nodes whose deadline has passed.
    fn due(&mut self) {
        for node in 0..self.nodes.len() {
            if self.nodes[node].deadline().is_some_and(|deadline| deadline <= self.now) {
                self.nodes[node].expire(self.now);
                self.heard(node);
            }
        }
    }

    /// Lets time pass to the next deadline.
    fn expire(&mut self) -> Result<(), Stopped> {
        let next = self.nodes.iter().filter_map(Node::deadline).min();
        let next = next.ok_or_else(|| Stopped::Deadlocked(self.state()))?;
        self.now = self.now.max(next);
        Ok(())
    }

    fn state(&self) -> String {
        let of = |(node, at): (&Node, usize)| match node.has_ended() {
            true => format!("node {at} has ended"),
            false => format!("node {at} waits for {}", self.waits[at]),
        };
        let states: Vec<String> = self.nodes.iter().zip(0..).map(of).collect();
        states.join("; ")
    }
}

impl fmt::Debug for Run<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run").field("now", &self.now).field("nodes", &self.nodes).finish()
    }
}
