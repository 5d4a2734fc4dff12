//! What hosts' costs leave of TCP: each cost that the simulator charges counts.

use crate::common::build::*;
use trunkline_core::Span;
use trunkline_model::{Figure, What, predictions};
use trunkline_scenario::{Scenario, Split, TcpSettings, Transport, Workload};

/// Bytes per second of a greedy connection that writes `write` bytes at a time.
fn rate(write: u32, change: impl Fn(&mut Scenario)) -> f64 {
    let mut net = pair(&link(100_000_000, Span::from_millis(1)));
    let second = Span::from_secs(1);
    let (duration, warm_up, interval) = (second.scaled(10, 1), second, second);
    let greedy = Workload::Greedy { write, duration, warm_up, interval };
    let tcp = TcpSettings { profile: "trunkline".into(), ..TcpSettings::default() };
    net.traffic.push(traffic("greedy", ("a", "b"), greedy, &Transport::Tcp(tcp)));
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
