//! The tests by name, and what the file of each says of it.

use crate::Program;
use crate::all_reduce::AllReduce;
use crate::all_to_all::AllToAll;
use crate::flood::Flood;
use crate::halo::Halo;
use crate::incast::Incast;
use crate::jacobi::Jacobi;
use crate::latency::Latency;
use crate::script::CLOSING_EVENTS;
use crate::throughput::Throughput;
use std::fmt;
use trunkline_transport::cstar::NodeId;
use trunkline_transport::protocol::{ProtocolKey, Takes, Values};

/// What a test's file says of it.
pub(crate) trait Description: Sized {
    /// Its name.
    const NAME: &'static str;
    /// A description in one sentence, with its source.
    const HELP: &'static str;
    /// Its keys.
    const KEYS: &'static [ProtocolKey];
    /// A small run of it, as `key=value,…`, with which programs are tried.
    const TRIAL: &'static str = "rounds=5";
    /// What its figure is, in a few words.
    const FIGURE: &'static str = "time of a round";
    /// Whether the figure is the bytes of laps over their time, not the time.
    const IS_RATE: bool = false;
    /// The fewest nodes that can run it.
    const LEAST_NODES: u16 = 2;

    /// The test with these values for its keys.
    fn read(values: &Values) -> Self;

    /// Checks what ranges alone do not say, for so many nodes with frames of so much payload.
    ///
    /// # Errors
    /// What is wrong, with the remedy.
    fn check(&self, _nodes: u16, _frame: u32) -> Result<(), String> {
        Ok(())
    }

    /// The events that it takes, but for those at its end.
    fn events(&self, nodes: u16) -> u64;

    /// The laps that node 0 takes.
    fn laps(&self) -> u32;

    /// The equal parts of a lap that are the figure.
    fn parts(&self, _nodes: u16) -> u64 {
        1
    }

    /// The program of node `me`.
    fn program(&self, me: NodeId, nodes: u16, frame: u32) -> Box<dyn Program>;
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
    /// A small run of it, as `key=value,…`, with which programs are tried.
    pub trial: &'static str,
    read: fn(&Values) -> Test,
}

/// Makes everything of one line for each test: the type, the registry, and what is asked of any of them.
macro_rules! tests {
    ($($(#[$doc:meta])* $Test:ident,)+) => {
        /// A test, which all nodes of a cluster run.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Test {
            $($(#[$doc])* $Test($Test),)+
        }

        /// Every test.
        pub const TESTS: &[TestKind] = &[$(TestKind {
            name: $Test::NAME,
            help: $Test::HELP,
            keys: $Test::KEYS,
            trial: $Test::TRIAL,
            read: |values| Test::$Test($Test::read(values)),
        }),+];

        impl Test {
            /// Its name.
            pub fn name(&self) -> &'static str {
                match self { $(Test::$Test(_) => $Test::NAME,)+ }
            }

            /// What its figure is, in a few words.
            pub fn figure(&self) -> &'static str {
                match self { $(Test::$Test(_) => $Test::FIGURE,)+ }
            }

            /// Whether the figure is the bytes of laps over their time, not the time.
            pub fn is_rate(&self) -> bool {
                match self { $(Test::$Test(_) => $Test::IS_RATE,)+ }
            }

            /// The laps that node 0 takes.
            pub fn laps(&self) -> u64 {
                u64::from(match self { $(Test::$Test(it) => it.laps(),)+ })
            }

            /// The equal parts of a lap that are the figure: the hops of a round, the messages of a flood; else the lap
            /// itself.
            pub fn parts(&self, nodes: u16) -> u64 {
                match self { $(Test::$Test(it) => it.parts(nodes),)+ }
            }

            /// The program of node `me` of `nodes`, whose frames have `frame` bytes of payload at most. Behind the last lap
            /// up to 64 nodes end with two events of empty messages, as [`in_rounds`](crate::in_rounds) tells.
            pub fn program(&self, me: NodeId, nodes: u16, frame: u32) -> Box<dyn Program> {
                match self { $(Test::$Test(it) => it.program(me, nodes, frame),)+ }
            }

            fn least_nodes(&self) -> u16 {
                match self { $(Test::$Test(_) => $Test::LEAST_NODES,)+ }
            }

            /// The events that it takes, but for those at its end.
            fn events(&self, nodes: u16) -> u64 {
                match self { $(Test::$Test(it) => it.events(nodes),)+ }
            }

            fn check_own(&self, nodes: u16, frame: u32) -> Result<(), String> {
                match self { $(Test::$Test(it) => it.check(nodes, frame),)+ }
            }
        }
    };
}

// A test is its file, its `mod` and `pub use` in `lib.rs`, and its line here.
tests! {
    /// A message goes round the ring.
    Latency,
    /// Messages go down the chain.
    Throughput,
    /// All flood all others.
    Flood,
    /// Jacobi's iteration.
    Jacobi,
    /// Every node sends to every other.
    AllToAll,
    /// The values of all are added up for all.
    AllReduce,
    /// All send to one.
    Incast,
    /// Neighbours in a grid of nodes exchange messages.
    Halo,
}

/// The most that a key of rounds, messages and the like takes.
const MOST_COUNT: u64 = 1 << 31;

/// A key that takes a number, at least so large.
pub(crate) const fn count(
    name: &'static str,
    least: u64,
    default: &'static str,
    help: &'static str,
) -> ProtocolKey {
    ProtocolKey { name, takes: Takes::Count(least, MOST_COUNT), default: Some(default), help }
}

pub(crate) const WORDS: ProtocolKey = ProtocolKey {
    name: "words",
    takes: Takes::Count(1, 15_000),
    default: Some("1"),
    help: "Payload of a message, in words of 4 bytes",
};
pub(crate) const BYTES: ProtocolKey = ProtocolKey {
    name: "bytes",
    takes: Takes::Bytes(0, 1 << 26),
    default: Some("4000"),
    help: "Bytes of a message",
};
pub(crate) const ROUNDS: ProtocolKey = count("rounds", 1, "100", "Rounds, each a lap");
pub(crate) const PROCESSING: ProtocolKey = ProtocolKey {
    name: "processing",
    takes: Takes::Flag,
    default: Some("false"),
    help: "Whether each word is written before it is sent, and read when it has come",
};

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
        Test::values(text).and_then(|(name, values)| Test::of(name, &values))
    }

    /// The name in such a text, and the values of all its keys.
    ///
    /// # Errors
    /// As [`Test::parse`].
    pub fn values(text: &str) -> Result<(&str, Values), String> {
        let (name, pairs) = Values::named(text)?;
        Ok((name, Values::parse(name, kind(name)?.keys, pairs)?))
    }

    /// Checks that it can be run by so many nodes, with frames of so much payload.
    ///
    /// # Errors
    /// What is wrong, with the remedy.
    pub fn check(&self, nodes: u16, frame: u32) -> Result<(), String> {
        let (name, least) = (self.name(), self.least_nodes());
        if nodes < least {
            return Err(format!("{name} needs {least} nodes: give more"));
        }
        if self.events(nodes) + u64::from(CLOSING_EVENTS) > u64::from(u32::MAX) {
            return Err(format!(
                "{name} takes more than 2^32 events: give less of {}",
                self.counts()
            ));
        }
        self.check_own(nodes, frame)
    }

    /// Its keys that may be as large as its events.
    fn counts(&self) -> String {
        let keys = TESTS.iter().filter(|it| it.name == self.name()).flat_map(|it| it.keys);
        let counts = keys.filter(|it| matches!(it.takes, Takes::Count(_, MOST_COUNT)));
        counts.map(|it| it.name).collect::<Vec<_>>().join(", ")
    }
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

    /// The largest flood plans a message at a time, and larger ones are refused.
    #[test]
    fn a_flood_plans_no_more_than_a_message_and_stays_within_what_layers_keep() {
        for (text, says) in [
            ("flood:ahead=100000000,events=1", "1 to 4096"),
            ("flood:fragments=100000000", "1 to 65536"),
        ] {
            let error = Test::parse(text).unwrap_err();
            assert!(error.contains(says), "{text}: {error}");
        }
        let largest = Test::parse("flood:ahead=4096,fragments=4,events=1").unwrap();
        let mut program = largest.program(NodeId(0), 10_000, 200);
        let begins = (0..20).map(|_| program.next(crate::Outcome::Done)).collect::<Vec<_>>();
        assert!(matches!(begins[0], crate::Op::Begin) && matches!(begins[19], crate::Op::Send(_)));
        assert!(format!("{program:?}").len() < 100_000, "all is planned at once");
    }

    #[test]
    fn too_many_events_are_refused_with_keys_of_the_test() {
        let most = 1_u64 << 31;
        for (text, says) in [
            (format!("throughput:messages={most},ahead={most}"), "give less of messages, ahead"),
            (format!("latency:rounds={most},warm_up={most}"), "give less of rounds, warm_up"),
        ] {
            let error = Test::parse(&text).unwrap().check(2, 1000).unwrap_err();
            assert!(error.contains(says), "{text}: {error}");
        }
    }

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
            ("latency:words=1,rounds=2,words=1", "words is given twice"),
            ("latency:", "leave the colon out"),
            ("latency:words=1,,rounds=2", "no key=value"),
            ("latency:,", "no key=value"),
        ] {
            let error = Test::parse(text).unwrap_err();
            assert!(error.contains(says), "{text}: {error}");
        }
        for kind in TESTS {
            assert_eq!(Test::parse(kind.name).unwrap().name(), kind.name);
        }
    }
}
