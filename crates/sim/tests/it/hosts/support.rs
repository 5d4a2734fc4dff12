//! Scenarios as text, and what their runs say.

use trunkline_core::{Span, Time};
use trunkline_engine::{Run, check};
use trunkline_measure::{Sample, SenderState, TrafficRun};
use trunkline_scenario::Scenario;

/// The one scenario that `text` describes.
pub fn scenario(text: &str) -> Scenario {
    let cells =
        Scenario::parse(text, "test.toml").unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(cells.len(), 1, "a test's scenario has no grid");
    cells.into_iter().next().unwrap()
}

/// Runs what `text` describes; the laws of the house hold.
pub fn run(text: &str) -> Run {
    let run = trunkline_sim::run(&scenario(text)).unwrap();
    assert_eq!(check(&run), []);
    run
}

/// Two hosts, `a` and `b`, and a link of 1 Mbit/s and 5 ms: 8 us for each envelope.
pub fn pair(rest: &str) -> String {
    format!(
        "[[host]]\nname = \"a\"\nprocessor = \"cpu\"\ninterface = \"board\"\n\
         [[host]]\nname = \"b\"\nprocessor = \"cpu\"\ninterface = \"board\"\n\
         [[link]]\nbetween = [\"a\", \"b\"]\nrate = \"1Mbit/s\"\ndelay = \"5ms\"\n{rest}"
    )
}

/// A host whose every operation costs something, on its processor and on its board.
pub const COSTS: &str = r#"
[processor.cpu]
write = { fixed = "100us", per_byte = "1us" }
read = { fixed = "200us", per_byte = "2us" }
request = "50us"
interrupt = "70us"
send_block = { fixed = "30us", per_byte = "1us" }
receive_block = { fixed = "40us", per_byte = "1us" }
control = "10us"
[interface.board]
send_block = { fixed = "5us", per_byte = "100ns" }
receive_block = { fixed = "7us", per_byte = "200ns" }
control = "3us"
"#;

/// Hosts that cost nothing.
pub const FREE: &str = "[processor.cpu]\n[interface.board]\n";

/// One message of 100 bytes and its echo, each block in one packet.
pub const MESSAGE: &str = r#"
[[traffic]]
name = "message"
kind = "interactive"
from = "a"
to = "b"
sizes = [100]
transport = { kind = "urp", block = 256, packet = 0 }
"#;

/// The traffic called `name`.
pub fn traffic<'a>(run: &'a Run, name: &str) -> &'a TrafficRun {
    run.traffic.iter().find(|traffic| traffic.name == name).unwrap()
}

/// The delay of the only sample.
pub fn only(run: &Run) -> Span {
    let [Sample { start, end, .. }] = run.traffic[0].samples[..] else {
        panic!("one sample: {:?}", run.traffic[0].samples)
    };
    end - start
}

/// Tenths of a microsecond.
pub fn tenths(tenths: u64) -> Span {
    Span::from_nanos(tenths * 100)
}

/// An instant.
pub fn at(span: Span) -> Time {
    Time::ZERO + span
}

/// What the sender of a flow spent in all states together.
pub fn life(traffic: &TrafficRun, flow: usize) -> Span {
    traffic.sender[flow].values().copied().sum()
}

/// What it spent in one.
pub fn spent(traffic: &TrafficRun, flow: usize, state: SenderState) -> Span {
    traffic.sender[flow].get(&state).copied().unwrap_or(Span::ZERO)
}
