//! A run that must not change by accident, and what theory says of it.

use crate::hosts::support::{run, traffic};
use std::fmt::Write;
use trunkline_core::{Cause, Span};
use trunkline_engine::Run;

const SCENARIO: &str = r#"
seed = 7
[[host]]
name = "coma"
processor = "vax"
interface = "kmc"
[[host]]
name = "tempel"
processor = "vax"
interface = "avdk"
[[node]]
name = "n1"
backplane = "8Mbit/s"
[[node]]
name = "n2"
backplane = "8Mbit/s"
[[link]]
between = ["coma", "n1"]
[[link]]
between = ["n1", "n2"]
rate = "1.544Mbit/s"
framing = "t1-lapd"
delay = "12ms"
discipline = { kind = "round-robin", quantum = 64 }
loss = "0.2%"
[[link]]
between = ["n2", "tempel"]
[processor.vax]
write = { fixed = "300us", per_byte = "500ns" }
read = { fixed = "400us", per_byte = "500ns" }
request = "150us"
interrupt = "200us"
send_block = "300us"
receive_block = "300us"
control = "50us"
disturbance = { probability = "5%", mean = "5ms" }
[interface.kmc]
protocol = "board"
requests = 1
split = [{ below = 512, piece = 64 }, { piece = 1024 }]
half_duplex = true
send_block = { fixed = "70us", per_byte = "4us" }
receive_block = { fixed = "70us", per_byte = "4us" }
control = "60us"
receive_buffer = 1024
returns = "message"
echo = "posted"
memory = 8192
[interface.avdk]
programmed = "5us"
[[traffic]]
name = "bulk"
kind = "bulk"
from = "tempel"
to = "coma"
bytes = "20kB"
transport = { kind = "urp", block = 256, outstanding = 7 }
until = "keys"
[[traffic]]
name = "keys"
kind = "interactive"
from = "coma"
to = "tempel"
sizes = [1, 64, 65, 512]
repeat = 3
transport = { kind = "urp", block = 28, outstanding = 3, profile = "kmc" }
start_after = "bulk:5kB"
"#;

/// Connections of TCP in both directions over two trunks, one of which loses, with queues that drop and mark.
const TCP: &str = r#"
seed = 9
sample_backlog = "500ms"
[[host]]
name = "near"
processor = "pc"
[[host]]
name = "far"
processor = "pc"
[[node]]
name = "n1"
[[node]]
name = "n2"
[[link]]
between = ["near", "n1"]
rate = "100Mbit/s"
[[link]]
between = ["n1", "n2"]
rate = "10Mbit/s"
delay = "10ms"
discipline = { kind = "fq-codel", ecn = true }
loss = "0.1%"
[[link]]
between = ["n2", "far"]
rate = "5Mbit/s"
delay = "2ms"
limit = "20kB"
[processor.pc]
write = { fixed = "5us", per_byte = "1ns" }
read = "5us"
interrupt = "2us"
send_block = { fixed = "5us", per_byte = "1ns" }
receive_block = "5us"
control = "2us"
disturbance = { probability = "1%", mean = "1ms" }
[[traffic]]
name = "greedy"
kind = "greedy"
from = "near"
to = "far"
count = 2
stagger = "50ms"
duration = "4s"
warm_up = "1s"
interval = "1s"
transport = { kind = "tcp", profile = "linux", ecn = true }
[[traffic]]
name = "old"
kind = "bulk"
from = "far"
to = "near"
bytes = "300kB"
repeat = 2
transport = { kind = "tcp", profile = "bsd-reno" }
[[traffic]]
name = "paced"
kind = "bulk"
from = "near"
to = "far"
bytes = "100kB"
transport = { kind = "tcp", profile = "trunkline", congestion = "bbr" }
[[traffic]]
name = "keys"
kind = "interactive"
from = "near"
to = "far"
sizes = [1, 5000]
repeat = 3
every = "200ms"
transport = { kind = "tcp", profile = "trunkline", sack = false, timestamps = false }
"#;

/// Everything that a run says, one thing on each line.
fn text(run: &Run) -> String {
    let mut text = String::new();
    for traffic in &run.traffic {
        writeln!(text, "{}: {:?}", traffic.name, traffic.packets).unwrap();
        let (again, timeouts) = (traffic.retransmissions, traffic.timeouts);
        writeln!(text, "  {} bytes, {again} again, {timeouts} time-outs", traffic.delivered_bytes)
            .unwrap();
        writeln!(text, "  rounds {:?}", traffic.rounds).unwrap();
        writeln!(text, "  sender {:?}", traffic.sender).unwrap();
        for it in &traffic.windows {
            let (flow, at, window, round_trip) = (it.flow, it.at, it.window, it.round_trip);
            let threshold = it.threshold;
            writeln!(text, "  window {flow} at {at}: {window}, {threshold:?}, {round_trip}")
                .unwrap();
        }
        for sample in &traffic.samples {
            let steps: Vec<String> = sample
                .steps
                .iter()
                .map(|it| format!("{} {:?} {}", run.places[it.place as usize], it.cause, it.span))
                .collect();
            let (size, index, start) = (sample.size, sample.index, sample.start);
            writeln!(
                text,
                "  {size} #{index} at {start}: {} = {}",
                sample.delay(),
                steps.join(", ")
            )
            .unwrap();
        }
    }
    for link in &run.links {
        writeln!(text, "{}: {:?}, busy {}", link.name, link.counts, link.busy).unwrap();
    }
    let notes: Vec<String> = run.notes.iter().map(ToString::to_string).collect();
    writeln!(text, "ended {}, {notes:?}", run.ended).unwrap();
    text
}

/// To accept a change that is meant: run this test with `TRUNKLINE_GOLDEN=write`, and read the difference.
fn compare(name: &str, found: &str, expected: &str) {
    if std::env::var_os("TRUNKLINE_GOLDEN").is_some_and(|it| it == "write") {
        let file = format!("{}/tests/it/hosts/{name}", env!("CARGO_MANIFEST_DIR"));
        std::fs::write(file, found).unwrap();
    }
    for (found, expected) in std::iter::zip(found.lines(), expected.lines()) {
        assert_eq!(found, expected);
    }
    assert_eq!(found.len(), expected.len());
}

#[test]
fn the_golden_run_does_not_change() {
    compare("golden.txt", &text(&run(SCENARIO)), include_str!("golden.txt"));
}

#[test]
fn the_golden_run_of_tcp_does_not_change() {
    compare("golden-tcp.txt", &text(&run(TCP)), include_str!("golden-tcp.txt"));
}

/// What no run of it may break: each traffic finishes, the slowest line is not exceeded, and each sample takes
/// the distance.
#[test]
fn the_golden_run_of_tcp_is_possible() {
    let run = run(TCP);
    assert!(run.notes.is_empty(), "{:?}", run.notes);
    let numbers = ["greedy", "old", "paced", "keys"].map(|it| traffic(&run, it).samples.len());
    assert_eq!(numbers, [6, 2, 1, 6]);
    let sum: u64 = traffic(&run, "greedy").samples.iter().map(|sample| sample.size).sum();
    assert!((1_000_000..3 * 625_000).contains(&sum), "{sum} bytes in 3 s at 625 kB/s");
    for name in ["old", "keys", "paced"] {
        for sample in &traffic(&run, name).samples {
            assert!(sample.booked(Cause::Propagate) >= Span::from_millis(24), "{sample:?}");
        }
    }
    assert!(traffic(&run, "old").samples.iter().all(|sample| sample.rate() < 625_000.0));
}

/// What no run of it may break: a round trip takes the distance twice and the bits of message, answer and
/// trailers at the rate of the T1, 192 of 193 bits; a message of 65 bytes takes two requests, hence two
/// round trips more of the distance than one of 64; the trunk carries no more than 192 KB/s.
#[test]
fn the_golden_run_is_possible() {
    let run = run(SCENARIO);
    let distance = Span::from_millis(24);
    let line = |bytes: u64| Span::from_nanos(bytes * 8 * 193 * 1_000_000_000 / (192 * 1_544_000));
    let keys = traffic(&run, "keys");
    assert_eq!(keys.samples.len(), 12);
    let least = |size: u64| match size {
        1 | 64 => 1,
        65 => 2,
        _ => size.div_ceil(84),
    };
    for sample in &keys.samples {
        let (delay, size) = (sample.delay(), sample.size);
        let rounds = least(size);
        assert!(delay > distance.scaled(rounds, 1) + line(2 * size + 8), "{size}: {delay}");
        assert!(sample.booked(Cause::Propagate) >= distance, "{size}");
    }
    let bulk = traffic(&run, "bulk");
    for sample in &bulk.samples {
        assert!(sample.rate() < 192_000.0, "{}", sample.rate());
        // A window of 7 blocks of 256 bytes for each round trip.
        assert!(sample.rate() < 7.0 * 256.0 / distance.as_secs_f64(), "{}", sample.rate());
    }
    for link in &run.links {
        assert!(link.busy <= run.ended - trunkline_core::Time::ZERO, "{}", link.name);
    }
}
