//! A processor does one thing at a time: what that costs windows, by hand and as the simulator has it.

use crate::common::build::*;
use trunkline_core::{Size, Span};
use trunkline_model::{Figure, Predictions, What, predictions};
use trunkline_scenario::{Echo, Listed, ProtocolPlace, Scenario, TcpSettings, Transport, Workload};
use trunkline_transport::protocol::{Values, named};

/// 10 Mbit/s and 1 ms each way.
fn found(workload: Workload, transport: &Transport, change: impl Fn(&mut Scenario)) -> Predictions {
    let mut net = pair(&link(10_000_000, Span::from_millis(1)));
    net.traffic.push(traffic("one", ("a", "b"), workload, transport));
    change(&mut net);
    predictions(&net).unwrap()
}

fn span(found: &Predictions, what: What) -> Span {
    found.list.iter().find(|p| p.what == what).unwrap().value.time().unwrap()
}

fn told(found: &Predictions, words: &str) -> bool {
    found.notes.iter().any(|note| note.text.contains(words))
}

fn timed(size: u32) -> Workload {
    Workload::TimedTransfer { sizes: vec![size], duration: Span::from_secs(1000) }
}

pub fn listed(name: &str, settings: &str) -> Transport {
    let entry = named(name).unwrap();
    let values = Values::parse(entry.name, entry.keys, settings).unwrap();
    Transport::Listed(Listed { entry, values })
}

fn near(ours: Span, by_hand: f64) {
    assert!((ours.as_secs_f64() / by_hand - 1.0).abs() < 0.01, "{ours}, {by_hand} s by hand");
}

/// A processor that needs 10 us for a write and 10 for a segment, and 1 us for each byte in a segment on the line but for
/// headers of 52: x bytes in each segment with x × 10 us + 10 us = (52 + x) × 0.8 us.
#[test]
fn segments_of_small_writes_keep_processor_and_line_busy() {
    let tcp = TcpSettings { profile: "trunkline".into(), ..TcpSettings::default() };
    let costs = |net: &mut Scenario| {
        net.hosts[0].processor.write.fixed = Span::from_micros(10);
        net.hosts[0].processor.send_block.fixed = Span::from_micros(10);
    };
    let found = found(timed(1), &Transport::Tcp(tcp), costs);
    let bytes = (52.0 * 0.8 - 10.0) / (10.0 - 0.8);
    let rate = found.list.iter().find(|p| p.what == What::Throughput).unwrap().value;
    let Figure::Rate(rate) = rate else { panic!("{rate:?}") };
    near(rate.time_for(1), (52.0 + bytes) * 0.8e-6 / bytes);
    // 10 Mbit/s over 53 bytes.
    assert!(told(&found, "between 23584.9"), "{:?}", found.notes);
}

/// Without a cost a writer has always more than a segment ready; but not if the send buffer holds no more than the window, as 4.4BSD's
/// 64 KiB, once that is full.
#[test]
fn writes_that_cost_nothing_fill_their_segments() {
    let tcp = TcpSettings { profile: "trunkline".into(), ..TcpSettings::default() };
    let small = TcpSettings { window: Some(Size::from_bytes(1 << 20)), ..tcp.clone() };
    let small = found(timed(100), &Transport::Tcp(small), |_| ());
    assert!(!told(&small, "gathers"), "{:?}", small.notes);
    assert!(!told(&found(timed(100), &Transport::Tcp(tcp), |_| ()), "gathers"));
    let old = TcpSettings { profile: "bsd-reno".into(), ..TcpSettings::default() };
    let whole = found(timed(100), &Transport::Tcp(old), |_| ());
    assert!(told(&whole, "gathers"), "{:?}", whole.notes);
}

/// ECHOs leave before the host is told of the data.
#[test]
fn interrupts_do_not_delay_answers() {
    for place in [ProtocolPlace::Host, ProtocolPlace::Board] {
        let interrupt = |net: &mut Scenario| {
            net.hosts[1].processor.interrupt.fixed = Span::from_millis(1);
            net.hosts[1].interface.protocol = place;
        };
        let found = found(timed(1000), &urp(1000, 1, 0), interrupt);
        near(span(&found, What::Interval), 1004.0 * 0.8e-6 + 2e-3 + 0.8e-6);
    }
}

/// The next write begins when a block has gone out. The answer to that waits for the write's end, answers to other blocks
/// for nothing: of three blocks one takes 5 ms and two 2.804. The simulator has 10.61 ms.
#[test]
fn a_single_block_waits_for_the_next_write() {
    let write = |net: &mut Scenario| {
        net.hosts[0].processor.write.fixed = Span::from_millis(5);
    };
    let answered = 1004.0 * 0.8e-6 + 2e-3 + 0.8e-6;
    near(span(&found(timed(3000), &urp(1000, 1, 0), write), What::Interval), 5e-3 + 2.0 * answered);
    let stop = listed("stop-and-wait", "frame=1000,timeout=1s");
    let answered = 1008.0 * 0.8e-6 + 2e-3 + 8.0 * 0.8e-6;
    let found = found(timed(3000), &stop, write);
    near(span(&found, What::Interval), 5e-3 + 2.0 * answered);
}

/// 50 writes of 1000 bytes in blocks of 256 take 1.52 s in the simulator: a window of three blocks is less
/// than what is stored at once, so that storing and its answers take turns.
#[test]
fn storing_that_holds_answers_up_is_told() {
    let push = |outstanding| {
        let (bytes, store) = (Size::from_bytes(50_000), Span::from_millis(20));
        let push = Workload::Push { bytes, repeat: 1, write: 1000, store };
        found(push, &urp(256, outstanding, 0), |net| {
            for link in &mut net.links {
                (link.forward.delay, link.backward.delay) =
                    (Span::from_millis(5), Span::from_millis(5));
            }
        })
    };
    let found = push(3);
    let note = found.notes.iter().find(|note| note.text.contains("one thing at a time"));
    let note = &note.unwrap_or_else(|| panic!("{:?}", found.notes)).text;
    assert!(note.contains("between 1"), "{note}");
}

#[test]
fn hosts_without_costs_hold_nothing_up() {
    let found = found(bulk(1000), &urp(256, 3, 0), |_| ());
    assert!(!told(&found, "one thing at a time"), "{:?}", found.notes);
}

/// A window of five blocks is read with two calls, the first block by itself and the others together: the simulator has
/// 546.9 kB/s of 100 Mbit/s.
#[test]
fn blocks_that_wait_for_the_reading_are_read_together() {
    let slow = |net: &mut Scenario| {
        net.hosts[1].processor.read.fixed = Span::from_millis(2);
        net.hosts[1].processor.interrupt.fixed = Span::from_millis(1);
        net.hosts[1].interface.protocol = ProtocolPlace::Board;
        net.hosts[1].interface.echo = Echo::Consumption;
    };
    let found = found(bulk(1000), &urp(1000, 5, 0), slow);
    near(span(&found, What::Transfer), 1.0 + 0.8);
}

/// Each write is a transfer with a connection of its own: OPEN and its answer, the data, and OK.
#[test]
fn netblt_opens_a_connection_for_each_write() {
    let netblt = listed("netblt", "frame=100,packets=16,outstanding=1,interval=5ms,burst=20");
    let bits = |bytes: f64| bytes * 0.8e-6;
    let found = found(timed(100), &netblt, |_| ());
    let ours = span(&found, What::Interval).as_secs_f64();
    let by_hand = 4e-3 + bits(124.0);
    assert!(ours > by_hand && ours < by_hand + bits(300.0), "{ours}, {by_hand} by hand");
}
