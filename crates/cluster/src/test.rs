//! The tests by name: their keys, and the programs that they are.

use crate::Program;
use crate::all_reduce::{AllReduce, Reduction};
use crate::all_to_all::{AllToAll, Exchange};
use crate::flood::{Flood, Torrent};
use crate::halo::{Halo, Torus};
use crate::incast::{Funnel, Incast};
use crate::jacobi::{Iteration, Jacobi};
use crate::latency::{Latency, Round};
use crate::message::Cut;
use crate::rounds::in_rounds;
use crate::script::{Script, Scripted};
use crate::throughput::{Chain, Throughput};
use std::fmt;
use trunkline_transport::cstar::NodeId;
use trunkline_transport::protocol::{ProtocolKey, Takes, Values};

/// A test, which all nodes of a cluster run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Test {
    /// A message goes round the ring.
    Latency(Latency),
    /// Messages go down the chain.
    Throughput(Throughput),
    /// All flood all others.
    Flood(Flood),
    /// Jacobi's iteration.
    Jacobi(Jacobi),
    /// Every node sends to every other.
    AllToAll(AllToAll),
    /// The values of all nodes are added up, for all.
    AllReduce(AllReduce),
    /// All others send to one node at once.
    Incast(Incast),
    /// Neighbours in a grid exchange messages.
    Halo(Halo),
}

/// A test's name, its keys, and how it is read.
#[derive(Debug)]
pub struct TestKind {
    /// Its name.
    pub name: &'static str,
    /// A description in one sentence, with its source.
    pub help: &'static str,
    /// Its keys.
    pub keys: &'static [ProtocolKey],
    /// The test with values for the keys.
    read: fn(&Values) -> Test,
}

const fn count(
    name: &'static str,
    least: u64,
    default: &'static str,
    help: &'static str,
) -> ProtocolKey {
    ProtocolKey { name, takes: Takes::Count(least, 1 << 31), default: Some(default), help }
}

const WORDS: ProtocolKey = ProtocolKey {
    name: "words",
    takes: Takes::Count(1, 15_000),
    default: Some("1"),
    help: "Payload of a message, in words of 4 bytes",
};
const BYTES: ProtocolKey = ProtocolKey {
    name: "bytes",
    takes: Takes::Bytes(0, 1 << 26),
    default: Some("4000"),
    help: "Bytes of a message",
};
const ROUNDS: ProtocolKey = count("rounds", 1, "100", "Rounds, each a lap");
const PROCESSING: ProtocolKey = ProtocolKey {
    name: "processing",
    takes: Takes::Flag,
    default: Some("false"),
    help: "Is each word written before it is sent, and read when it has come?",
};

/// Every test.
pub const TESTS: &[TestKind] = &[
    TestKind {
        name: "latency",
        help: "A message goes round the ring of nodes; the figure is the time of a hop (TR 94-14, Table 1).",
        keys: &[
            WORDS,
            count("rounds", 1, "100", "Rounds that are measured"),
            count("warm_up", 0, "10", "Rounds before"),
            PROCESSING,
        ],
        read: |values| {
            Test::Latency(Latency {
                words: values.number("words") as u32,
                rounds: values.number("rounds") as u32,
                warm_up: values.number("warm_up") as u32,
                processing: values.flag("processing"),
            })
        },
    },
    TestKind {
        name: "throughput",
        help: "Messages go down the chain of nodes; the figure is the payload of all senders (TR 94-14, Table 2).",
        keys: &[
            WORDS,
            count("messages", 1, "1000", "Messages of the first node"),
            count("ahead", 0, "2", "Messages that it sends before it receives the answer to one"),
            PROCESSING,
        ],
        read: |values| {
            Test::Throughput(Throughput {
                words: values.number("words") as u32,
                messages: values.number("messages") as u32,
                ahead: values.number("ahead") as u32,
                processing: values.flag("processing"),
            })
        },
    },
    TestKind {
        name: "flood",
        help: "Each node broadcasts messages before it receives any; the figure is the time of one (TR 94-14, Table 3).",
        keys: &[
            ProtocolKey { help: "Payload of a fragment, in words of 4 bytes", ..WORDS },
            count("fragments", 1, "4", "Fragments of a message"),
            count("ahead", 1, "10", "Messages that are sent before any is received"),
            count("events", 1, "100", "Messages of each node"),
            PROCESSING,
        ],
        read: |values| {
            Test::Flood(Flood {
                words: values.number("words") as u32,
                fragments: values.number("fragments") as u32,
                ahead: values.number("ahead") as u32,
                events: values.number("events") as u32,
                processing: values.flag("processing"),
            })
        },
    },
    TestKind {
        name: "jacobi",
        help: "Jacobi's iteration for the Laplace equation on a square; the figure is its time (TR 94-14, Table 4).",
        keys: &[
            ProtocolKey {
                name: "side",
                takes: Takes::Count(1, 8192),
                default: Some("64"),
                help: "Points of a side of the grid",
            },
            count("iterations", 1, "1000", "Iterations"),
        ],
        read: |values| {
            Test::Jacobi(Jacobi {
                side: values.number("side") as u32,
                iterations: values.number("iterations") as u32,
            })
        },
    },
    TestKind {
        name: "all-to-all",
        help: "Every node sends a message to every other; the figure is the time of a round.",
        keys: &[BYTES, ROUNDS],
        read: |values| Test::AllToAll(AllToAll { bytes: bytes(values), rounds: rounds(values) }),
    },
    TestKind {
        name: "all-reduce",
        help: "The values of all nodes are added up, and each gets the sums; the figure is the time of a round.",
        keys: &[
            ProtocolKey {
                name: "values",
                takes: Takes::Count(1, 1 << 22),
                default: Some("1000"),
                help: "Values of 8 bytes on each node",
            },
            ProtocolKey {
                name: "tree",
                takes: Takes::Flag,
                default: Some("false"),
                help: "Up and down a binomial tree, not round a ring in parts?",
            },
            ROUNDS,
        ],
        read: |values| {
            Test::AllReduce(AllReduce {
                values: values.number("values") as u32,
                tree: values.flag("tree"),
                rounds: rounds(values),
            })
        },
    },
    TestKind {
        name: "incast",
        help: "All nodes send a message to node 0 as soon as it tells them to; the figure is the time of a round.",
        keys: &[BYTES, ROUNDS],
        read: |values| Test::Incast(Incast { bytes: bytes(values), rounds: rounds(values) }),
    },
    TestKind {
        name: "halo",
        help: "Each node of a grid that is closed at its sides exchanges messages with its four neighbours; the figure is \
               the time of a round.",
        keys: &[BYTES, ROUNDS],
        read: |values| Test::Halo(Halo { bytes: bytes(values), rounds: rounds(values) }),
    },
];

fn bytes(values: &Values) -> u32 {
    values.number("bytes") as u32
}

fn rounds(values: &Values) -> u32 {
    values.number("rounds") as u32
}

/// The test called `name`.
///
/// # Errors
/// What there is.
pub fn kind(name: &str) -> Result<&'static TestKind, String> {
    TESTS.iter().find(|kind| kind.name == name).ok_or_else(|| {
        let names: Vec<&str> = TESTS.iter().map(|kind| kind.name).collect();
        format!("'{name}' is no test: use one of {}", names.join(", "))
    })
}

impl Test {
    /// The test called `name` with these values.
    ///
    /// # Errors
    /// If there is none of this name.
    pub fn of(name: &str, values: &Values) -> Result<Test, String> {
        Ok((kind(name)?.read)(values))
    }

    /// Reads `NAME` or `NAME:key=value,…`.
    ///
    /// # Errors
    /// What was found, and what there is.
    pub fn parse(text: &str) -> Result<Test, String> {
        let (name, pairs) = text.split_once(':').unwrap_or((text, ""));
        let kind = kind(name)?;
        let values = Values::parse(name, kind.keys, pairs)?;
        Test::of(name, &values)
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        match self {
            Test::Latency(_) => "latency",
            Test::Throughput(_) => "throughput",
            Test::Flood(_) => "flood",
            Test::Jacobi(_) => "jacobi",
            Test::AllToAll(_) => "all-to-all",
            Test::AllReduce(_) => "all-reduce",
            Test::Incast(_) => "incast",
            Test::Halo(_) => "halo",
        }
    }

    /// Checks that it can be run by so many nodes, with frames of so much payload.
    ///
    /// # Errors
    /// What is wrong, with the remedy.
    pub fn check(&self, nodes: u16, frame: u32) -> Result<(), String> {
        if !matches!(self, Test::Jacobi(_)) && nodes < 2 {
            return Err(format!("{} needs two nodes", self.name()));
        }
        if self.events(nodes) > u64::from(u32::MAX) {
            return Err(format!("{} takes more than 2^32 events: give fewer rounds", self.name()));
        }
        match self {
            Test::Jacobi(Jacobi { side, .. }) if u32::from(nodes) > *side => Err(format!(
                "{nodes} nodes are more than the grid's {side} rows: give a larger side"
            )),
            Test::Jacobi(_) if frame < 8 => {
                Err("a frame has no room for a value of 8 bytes: give larger frames".into())
            }
            Test::Flood(Flood { words, .. }) if 4 * words > frame => Err(format!(
                "a fragment of {words} words is longer than a frame of {frame} bytes: give at most {}",
                frame / 4
            )),
            Test::Flood(Flood { words, fragments, .. })
                if u64::from(*words) * u64::from(*fragments) >= 1 << 30 =>
            {
                Err(format!("{fragments} fragments of {words} words are 4 GiB or more: give fewer"))
            }
            _ => Ok(()),
        }
    }

    /// The events that it takes, the closing one among them.
    fn events(&self, nodes: u16) -> u64 {
        let events = match self {
            Test::Latency(it) => u64::from(it.rounds) + u64::from(it.warm_up),
            Test::Throughput(it) => u64::from(it.messages) + u64::from(it.ahead),
            Test::Flood(it) => u64::from(it.events).next_multiple_of(u64::from(it.ahead.max(1))),
            Test::Jacobi(it) => 2 * u64::from(it.iterations),
            Test::AllToAll(it) => u64::from(it.rounds),
            Test::AllReduce(it) => u64::from(it.rounds) * u64::from(it.steps(nodes)),
            Test::Incast(it) => 2 * u64::from(it.rounds),
            Test::Halo(it) => 4 * u64::from(it.rounds),
        };
        events + 1
    }

    /// The laps that node 0 takes.
    pub fn laps(&self) -> u64 {
        u64::from(match self {
            Test::Latency(it) => it.rounds,
            Test::Throughput(_) | Test::Jacobi(_) => 1,
            Test::Flood(it) => it.events.div_ceil(it.ahead.max(1)),
            Test::AllToAll(it) => it.rounds,
            Test::AllReduce(it) => it.rounds,
            Test::Incast(it) => it.rounds,
            Test::Halo(it) => it.rounds,
        })
    }

    /// The equal parts of a lap that are the figure: the hops of a round, the messages of a flood; else the lap itself.
    pub fn parts(&self, nodes: u16) -> u64 {
        match self {
            Test::Latency(_) => u64::from(nodes),
            Test::Flood(Flood { ahead, .. }) => u64::from(*ahead),
            _ => 1,
        }
    }

    /// What its figure is, in a few words.
    pub fn figure(&self) -> &'static str {
        match self {
            Test::Latency(_) => "time of a hop",
            Test::Throughput(_) => "payload of all senders",
            Test::Flood(_) => "time of a message of each node",
            Test::Jacobi(_) => "time of the computation",
            Test::AllToAll(_) | Test::AllReduce(_) | Test::Incast(_) | Test::Halo(_) => {
                "time of a round"
            }
        }
    }

    /// Whether the figure is the bytes of laps over their time, not the time.
    pub fn is_rate(&self) -> bool {
        matches!(self, Test::Throughput(_))
    }

    /// The program of node `me` of `nodes`, whose frames have `frame` bytes of payload at most. Behind the last lap it ends
    /// with a crowd event of empty messages.
    pub fn program(&self, me: NodeId, nodes: u16, frame: u32) -> Box<dyn Program> {
        let cut = |bytes: u32| Cut { bytes, frame };
        match *self {
            Test::Latency(test) => {
                let cut = cut(4 * test.words);
                scripted(Round { test, me, nodes, cut, round: 0 }, nodes)
            }
            Test::Throughput(test) => {
                let cut = cut(4 * test.words);
                scripted(Chain { test, me, nodes, cut, message: 0 }, nodes)
            }
            Test::Flood(test) => {
                let (frame, bytes) = (4 * test.words, 4 * test.words * test.fragments);
                let cut = Cut { bytes, frame };
                scripted(Torrent { test, me, nodes, cut, event: 0 }, nodes)
            }
            Test::Jacobi(test) => scripted(Iteration::new(test, me, nodes, frame), nodes),
            Test::AllToAll(test) => {
                let cut = cut(test.bytes);
                scripted(Exchange { test, me, nodes, cut, round: 0 }, nodes)
            }
            Test::AllReduce(test) => in_rounds(Reduction::new(test, me, nodes), nodes, frame),
            Test::Incast(test) => {
                let cut = cut(test.bytes);
                scripted(Funnel { test, me, nodes, cut, round: 0 }, nodes)
            }
            Test::Halo(test) => scripted(Torus::new(test, me, nodes, cut(test.bytes)), nodes),
        }
    }
}

fn scripted(script: impl Script + 'static, nodes: u16) -> Box<dyn Program> {
    Box::new(Scripted::new(script, nodes))
}

/// As [`Test::parse`] reads it, without the keys.
impl fmt::Display for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_is_read_with_its_keys_and_complaints_name_what_there_is() {
        let test = Test::parse("latency:words=1000,processing=true").unwrap();
        let expected = Latency { words: 1000, rounds: 100, warm_up: 10, processing: true };
        assert_eq!(test, Test::Latency(expected));
        for (text, says) in [
            ("ring", "use one of latency"),
            ("flood:size=1", "use words"),
            ("flood:words", "no key=value"),
            ("latency:words=0", "1 to 15000"),
        ] {
            let error = Test::parse(text).unwrap_err();
            assert!(error.contains(says), "{text}: {error}");
        }
        for kind in TESTS {
            assert_eq!(Test::parse(kind.name).unwrap().name(), kind.name);
        }
    }
}
