//! What hosts' costs leave of TCP: each cost that the simulator charges counts.

use crate::common::build::*;
use trunkline_core::Span;
use trunkline_model::{Figure, What, predictions};
use trunkline_scenario::{
    Echo, Listed, ProtocolPlace, Scenario, Split, TcpSettings, Transport, Workload,
};
use trunkline_transport::protocol::{Values, named};

/// Bytes per second of a greedy connection that writes `write` bytes at a time.
fn rate(write: u32, change: impl Fn(&mut Scenario)) -> f64 {
    let tcp = TcpSettings { profile: "trunkline".into(), ..TcpSettings::default() };
    rate_over(&Transport::Tcp(tcp), write, change)
}

fn rate_over(transport: &Transport, write: u32, change: impl Fn(&mut Scenario)) -> f64 {
    let second = Span::from_secs(1);
    let (duration, warm_up, interval) = (second.scaled(10, 1), second, second);
    rate_of(Workload::Greedy { write, duration, warm_up, interval }, transport, change)
}

fn rate_of(workload: Workload, transport: &Transport, change: impl Fn(&mut Scenario)) -> f64 {
    let mut net = pair(&link(100_000_000, Span::from_millis(1)));
    net.traffic.push(traffic("one", ("a", "b"), workload, transport));
    change(&mut net);
    let found = predictions(&net).unwrap();
    let rate = found.list.iter().find(|p| p.what == What::Throughput).unwrap().value;
    let Figure::Rate(rate) = rate else { panic!("{rate:?}") };
    rate.bytes_per_second() as f64
}

fn close(ours: f64, by_hand: f64) {
    assert!((ours / by_hand - 1.0).abs() < 0.001, "{ours}, {by_hand} by hand");
}

#[test]
fn handing_requests_over_costs_the_sender() {
    let millisecond = Span::from_millis(1);
    let request = |net: &mut Scenario| net.hosts[0].processor.request.fixed = millisecond;
    close(rate(1448, request), 1448e3);
    close(rate(500, request), 500e3);
    // Three requests for each write.
    let split = |net: &mut Scenario| {
        request(net);
        net.hosts[0].interface.split = vec![Split { below: None, piece: 512 }];
    };
    close(rate(1448, split), 1448e3 / 3.0);
    // An interrupt says of each that it is done, if their number is limited.
    let interrupt = |net: &mut Scenario| {
        request(net);
        net.hosts[0].processor.interrupt.fixed = millisecond;
        net.hosts[0].interface.requests = Some(2);
    };
    close(rate(1448, interrupt), 1448e3 / 2.0);
}

#[test]
fn acknowledgements_cost_both_ends() {
    let millisecond = Span::from_millis(1);
    for host in [0, 1] {
        // An ACK for every second segment.
        let processor = |net: &mut Scenario| net.hosts[host].processor.control = millisecond;
        close(rate(1448, processor), 2.0 * 1448e3);
        let board = |net: &mut Scenario| net.hosts[host].interface.control = millisecond;
        close(rate(1448, board), 2.0 * 1448e3);
    }
    // Programmed I/O moves 52 bytes of ACK and 1500 of each segment.
    let programmed = |net: &mut Scenario| {
        net.hosts[0].interface.programmed = Some(Span::from_micros(2));
    };
    close(rate(1448, programmed), 1448e6 / (1500.0 * 2.0 + 26.0 * 2.0));
}

/// Bytes per second of go-back-n with six frames of 1000 bytes.
fn frames(change: impl Fn(&mut Scenario)) -> f64 {
    let entry = named("go-back-n").unwrap();
    let values = Values::parse(entry.name, entry.keys, "frame=1000,frames=6,timeout=1s").unwrap();
    rate_over(&Transport::Listed(Listed { entry, values }), 1000, change)
}

#[test]
fn requests_of_frames_cost_the_sender() {
    let request = |net: &mut Scenario| net.hosts[0].processor.request.fixed = Span::from_millis(2);
    close(frames(request), 500e3);
}

/// A reader that is behind takes all that is there with one system call.
#[test]
fn reads_gather_what_has_come() {
    let read = |net: &mut Scenario| net.hosts[1].processor.read.fixed = Span::from_millis(2);
    close(rate(1448, read), rate(1448, |_| ()));
    // A window of six frames takes its 2.0813 ms, or 2 ms of reading; of these the answers wait for a half. The simulator has
    // 1.5 MB/s, where each read delays all of them.
    let ours = frames(read);
    assert!(ours > 1.4e6 && ours < 2.0e6, "{ours}");
}

/// What TCP and the listed protocols accept lies in the host's buffers, whatever the interface posts.
#[test]
fn receive_buffers_do_not_cut_segments() {
    let interrupt = |net: &mut Scenario| {
        net.hosts[1].processor.interrupt.fixed = Span::from_millis(2);
    };
    let buffers = |net: &mut Scenario| {
        interrupt(net);
        net.hosts[1].interface.receive_buffer = Some(256);
    };
    close(rate(1448, interrupt), 724e3);
    close(rate(1448, buffers), 724e3);
}

/// An acknowledgement costs a board as much as a control, and nothing of what a block costs.
#[test]
fn acknowledgements_are_no_blocks() {
    let board = |net: &mut Scenario| {
        net.hosts[0].interface.receive_block.fixed = Span::from_millis(2);
    };
    close(rate(1448, board), rate(1448, |_| ()));
    close(frames(board), frames(|_| ()));
}

/// A board answers while its host reads, so the reader takes any number of blocks with one call; if answers wait for the
/// reading, a window of five takes two. The simulator has 547 kB/s then.
#[test]
fn who_answers_decides_how_many_blocks_a_read_takes() {
    let blocks = |change: &dyn Fn(&mut Scenario)| rate_of(bulk(1000), &urp(1000, 5, 0), change);
    let board = |net: &mut Scenario| {
        net.hosts[1].processor.read.fixed = Span::from_millis(2);
        net.hosts[1].processor.interrupt.fixed = Span::from_millis(1);
        net.hosts[1].interface.protocol = ProtocolPlace::Board;
    };
    close(blocks(&board), 1e6);
    let consumed = |net: &mut Scenario| {
        board(net);
        net.hosts[1].interface.echo = Echo::Consumption;
    };
    close(blocks(&consumed), 1e6 / 1.8);
}

/// The round trips of a simulated board whose controls take 2 ms are 5.86 ms, of which the formula knows 2.11.
#[test]
fn messages_that_wait_for_controls_are_told() {
    let told = |control| {
        let mut net = pair(&link(100_000_000, Span::from_millis(1)));
        net.traffic.push(traffic("talk", ("a", "b"), echo(&[700]), &urp(1000, 5, 0)));
        net.hosts[0].interface.control = control;
        let notes = predictions(&net).unwrap().notes;
        notes.iter().any(|note| note.text.contains("up to 4ms longer"))
    };
    assert!(told(Span::from_millis(2)));
    assert!(!told(Span::from_micros(2)));
}
