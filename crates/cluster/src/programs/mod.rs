//! The tests of a cluster, each a program with settings.

mod flood;
mod jacobi;
mod latency;
mod payload;
mod settings;
mod throughput;

pub use flood::Flood;
pub use jacobi::Jacobi;
pub use latency::Latency;
pub use throughput::Throughput;

use crate::{InRounds, Program};
use std::fmt;
use trunkline_transport::cstar::NodeId;
use trunkline_transport::protocol::{ProtocolKey, Values};

/// The longest message of a test, in bytes: a choice, so that lengths fit in 32 bits.
const MOST_MESSAGE: u64 = 64_000_000;

/// A test of a cluster: what its nodes do, with the settings.
///
/// Node 0 takes the laps, which are the test's figures.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Test {
    /// One message round the ring of all nodes.
    Latency(Latency),
    /// A stream of messages through all nodes.
    Throughput(Throughput),
    /// Broadcasts of all, received late.
    Flood(Flood),
    /// Laplace's equation on a square.
    Jacobi(Jacobi),
}

/// A kind of test, as scenario files and the command line know it.
#[derive(Debug, Clone, Copy)]
pub struct TestKind {
    /// Its name.
    pub name: &'static str,
    /// What the nodes do, in a line.
    pub help: &'static str,
    /// The keys of its settings.
    pub keys: &'static [ProtocolKey],
    build: fn(&Values) -> Test,
}

/// All kinds of tests: the four of TR 94-14, then those of today's clusters.
pub const TESTS: &[&TestKind] = &[
    &TestKind {
        name: "latency",
        help: "One message goes round the ring of all nodes; a hop takes lap / P (TR 94-14, Table 1)",
        keys: Latency::KEYS,
        build: |values| Test::Latency(Latency::of(values)),
    },
    &TestKind {
        name: "throughput",
        help: "A stream of messages goes from the first node through all others (TR 94-14, Table 2)",
        keys: Throughput::KEYS,
        build: |values| Test::Throughput(Throughput::of(values)),
    },
    &TestKind {
        name: "flood",
        help: "All nodes broadcast messages, and receive only after they have sent some (TR 94-14, Table 3)",
        keys: Flood::KEYS,
        build: |values| Test::Flood(Flood::of(values)),
    },
    &TestKind {
        name: "jacobi",
        help: "Laplace's equation on a square whose rows the nodes share (TR 94-14, Table 4)",
        keys: Jacobi::KEYS,
        build: |values| Test::Jacobi(Jacobi::of(values)),
    },
];

impl Test {
    /// A test of a kind, by name, with its settings.
    ///
    /// # Errors
    /// If there is no such kind.
    pub fn of(kind: &str, values: &Values) -> Result<Test, String> {
        kind_named(kind).map(|kind| (kind.build)(values))
    }

    /// A test from its text: the kind, and behind a colon the settings that are not left out, as
    /// `latency:words=1000,processing=true`.
    ///
    /// # Errors
    /// What is wrong, with what may stand in its place.
    pub fn parse(text: &str) -> Result<Test, String> {
        let (name, settings) = text.split_once(':').unwrap_or((text, ""));
        let kind = kind_named(name)?;
        let mut values = Values::defaults(kind.keys);
        for setting in settings.split(',').filter(|it| !it.is_empty()) {
            let (name, value) = setting
                .split_once('=')
                .ok_or_else(|| format!("{setting:?} is no setting: write KEY=VALUE"))?;
            let key = kind.keys.iter().find(|key| key.name == name).ok_or_else(|| {
                let keys: Vec<&str> = kind.keys.iter().map(|key| key.name).collect();
                format!("the test {} has no key {name:?}: it has {}", kind.name, keys.join(", "))
            })?;
            let value = key.takes.read(value).ok_or_else(|| {
                format!(
                    "{name} = {value:?} is not among what it takes, {:?}: {}",
                    key.takes, key.help
                )
            })?;
            values.set(key.name, value);
        }
        Ok((kind.build)(&values))
    }

    /// The name of its kind.
    pub fn name(&self) -> &'static str {
        match self {
            Test::Latency(_) => "latency",
            Test::Throughput(_) => "throughput",
            Test::Flood(_) => "flood",
            Test::Jacobi(_) => "jacobi",
        }
    }

    /// Checks that a cluster of so many nodes, whose frames hold `frame` bytes of payload, can run it.
    ///
    /// # Errors
    /// Why not.
    pub fn check(&self, nodes: u16, frame: u32) -> Result<(), String> {
        let least = if matches!(self, Test::Jacobi(_)) { 1 } else { 2 };
        if nodes < least {
            return Err(format!("{} needs at least {least} nodes", self.name()));
        }
        match self {
            Test::Flood(flood) => flood.check(frame)?,
            Test::Jacobi(jacobi) => jacobi.check(nodes)?,
            _ => {}
        }
        if self.events(nodes) >= u64::from(u32::MAX) {
            return Err(format!("{} takes more than 2^32 events: give fewer rounds", self.name()));
        }
        Ok(())
    }

    /// Events that it takes, but for the closing one.
    fn events(&self, _nodes: u16) -> u64 {
        match self {
            Test::Latency(it) => it.events(),
            Test::Throughput(it) => it.events(),
            Test::Flood(it) => u64::from(it.events),
            Test::Jacobi(it) => it.events(),
        }
    }

    /// Laps that node 0 takes.
    pub fn laps(&self) -> u64 {
        match self {
            Test::Latency(it) => u64::from(it.rounds),
            Test::Throughput(it) => u64::from(it.messages),
            Test::Flood(it) => u64::from(it.events),
            Test::Jacobi(it) => u64::from(it.iterations),
        }
    }

    /// Equal parts of a lap that are the figure: the hops of a round of `latency`, else 1.
    pub fn parts(&self, nodes: u16) -> u64 {
        match self {
            Test::Latency(_) => u64::from(nodes),
            _ => 1,
        }
    }

    /// The program of a node of a cluster that passes [`check`](Test::check). `frame` is the most payload of a frame in
    /// bytes; longer messages are cut.
    pub fn program(&self, me: NodeId, nodes: u16, frame: u32) -> Box<dyn Program> {
        match *self {
            Test::Latency(it) => {
                Box::new(InRounds::new(latency::Ring::new(it, me, nodes), nodes, frame))
            }
            Test::Throughput(it) => {
                Box::new(InRounds::new(throughput::Chain::new(it, me, nodes), nodes, frame))
            }
            Test::Flood(it) => {
                Box::new(InRounds::new(flood::Flooder::new(it, me, nodes), nodes, frame))
            }
            Test::Jacobi(it) => {
                Box::new(InRounds::new(jacobi::Solver::new(it, me, nodes), nodes, frame))
            }
        }
    }
}

fn kind_named(name: &str) -> Result<&'static TestKind, String> {
    TESTS.iter().copied().find(|kind| kind.name == name).ok_or_else(|| {
        let names: Vec<&str> = TESTS.iter().map(|kind| kind.name).collect();
        format!("there is no test {name:?}: there are {}", names.join(", "))
    })
}

/// Its name; [`Test::name`].
impl fmt::Display for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
