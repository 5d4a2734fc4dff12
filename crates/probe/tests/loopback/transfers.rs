//! Bulk transfers by every transport in every direction, alone and beside messages.

use crate::support::{KEY, connect, options, target};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use trunkline_core::{Rate, Seed, Span};
use trunkline_probe::Pace;
use trunkline_probe::client::Connection;
use trunkline_probe::client::bulk::{self, BulkPlan, Repeat};
use trunkline_probe::client::load::{self, LoadPlan, Phase};
use trunkline_probe::client::transfer::{Transfer, Ways};
use trunkline_probe::server::{Options, Server};
use trunkline_probe::stamp::calibrate;
use trunkline_probe::wire::message::Transport;

fn transfer(transport: Transport) -> Transfer {
    let megabits = Rate::from_bits_per_second(8_000_000);
    Transfer {
        transport,
        streams: if transport == Transport::Tcp { 3 } else { 1 },
        size: None,
        rate: (transport != Transport::Urp).then_some(megabits),
        duration: Span::from_millis(600),
        interval: Span::from_millis(100),
        congestion: None,
        window: (1024, 7),
    }
}

fn plan(transport: Transport) -> BulkPlan {
    BulkPlan {
        transfer: transfer(transport),
        ways: Ways::Both,
        warmup: Span::from_millis(200),
        repeat: Repeat::Times(1),
    }
}

#[test]
fn every_transport_both_ways() {
    for transport in Transport::ALL {
        let server = Server::start(options()).unwrap();
        let connection = connect(&server);
        let mut heard = 0;
        let done = bulk::measure(&connection, &plan(transport), &mut |_| heard += 1).unwrap();
        assert!(done.failure.is_none() && done.result.whole, "{transport}: {:?}", done.failure);
        assert_eq!((heard, done.result.goodput.len()), (1, 2));
        for found in &done.result.runs[0].directions {
            // Of eight intervals two are the warm-up's.
            assert_eq!((found.intervals.len(), found.counted_s), (8, 0.6000000000000001));
            assert!(found.octets > 10_000, "{transport} {found:?}");
            let above = found.goodput_bit_per_s.unwrap() > 12e6;
            assert!(transport == Transport::Urp || !above, "{transport} {found:?}");
            match transport {
                Transport::Tcp => assert!(found.tcp.len() == 3 && found.congestion.is_some()),
                Transport::Udp => assert!(found.datagrams.unwrap().counts.received > 100),
                Transport::Urp => assert!(found.urp_receiver.unwrap().accepted > 10),
            }
        }
    }
}

/// What comes down is the stream: the answer that opens it is none of it, and not lost either.
#[test]
fn every_datagram_of_a_stream_is_counted_once() {
    let server = Server::start(options()).unwrap();
    let slow = Some(Rate::from_bits_per_second(200_000));
    let plan = BulkPlan {
        transfer: Transfer { rate: slow, ..transfer(Transport::Udp) },
        ..plan(Transport::Udp)
    };
    let done = bulk::measure(&connect(&server), &plan, &mut |_| {}).unwrap();
    for found in &done.result.runs[0].directions {
        let counts = found.datagrams.unwrap().counts;
        assert!(counts.received > 5, "{found:?}");
        assert_eq!((counts.sent, found.datagrams.unwrap().lost), (counts.received, 0), "{found:?}");
    }
}

#[test]
fn the_servers_rate_holds_for_connections_too() {
    let max_rate = Some(Rate::from_bits_per_second(4_000_000));
    let server = Server::start(Options { max_rate, ..options() }).unwrap();
    let connection = connect(&server);
    let free = Transfer { rate: None, ..transfer(Transport::Tcp) };
    let plan = BulkPlan { transfer: free, ..plan(Transport::Tcp) };
    let done = bulk::measure(&connection, &plan, &mut |_| {}).unwrap();
    let each = done.result.runs[0].directions.iter();
    let total: f64 = each.map(|one| one.goodput_bit_per_s.unwrap()).sum();
    // A burst of some tens of milliseconds comes on top.
    assert!(total < 8e6, "{total}");
}

/// What URP sends down waits for the rate, and is not lost for it.
#[test]
fn the_servers_rate_holds_for_urp_down_too() {
    let max_rate = Some(Rate::from_bits_per_second(4_000_000));
    let server = Server::start(Options { max_rate, ..options() }).unwrap();
    let transfer = Transfer { window: (4096, 7), ..transfer(Transport::Urp) };
    let plan = BulkPlan { transfer, ways: Ways::Down, ..plan(Transport::Urp) };
    let done = bulk::measure(&connect(&server), &plan, &mut |_| {}).unwrap();
    let found = &done.result.runs[0].directions[0];
    // It took nothing in the end when its answers were dropped for the rate.
    assert!((1e6..8e6).contains(&found.goodput_bit_per_s.unwrap()), "{found:?}");
}

#[test]
fn messages_before_beside_and_after() {
    let server = Server::start(options()).unwrap();
    let connection = connect(&server);
    let plan = LoadPlan {
        transport: Transport::Udp,
        size: 64,
        pace: Pace::Every(Span::from_millis(5)),
        idle: Span::from_millis(300),
        warmup: Span::from_millis(200),
        transfer: transfer(Transport::Tcp),
        ways: Ways::Both,
        seed: Seed(3),
    };
    let mut phases = Vec::new();
    let mut tell = |phase: Phase, _| {
        if phases.last() != Some(&phase) {
            phases.push(phase);
        }
    };
    let done = load::measure(&connection, &plan, calibrate(), &mut tell).unwrap();
    assert_eq!(phases, Phase::ALL);
    assert!(done.failure.is_none() && done.result.whole);
    assert_eq!((done.result.phases.len(), done.result.transfers.len()), (3, 2));
    let sent: Vec<u64> = done.result.phases.iter().map(|part| part.sent).collect();
    assert_eq!(sent, [60, 120, 60]);
    assert!(done.result.worse.is_some());
}

/// A transfer that would last long and is ended after half a second: no interval is told that has not gone by.
fn ended(transport: Transport, ways: Ways, end: impl FnOnce() + Send, at: &Connection) {
    let transfer = Transfer { duration: Span::from_secs(20), ..transfer(transport) };
    let plan = BulkPlan { transfer, ways, ..plan(transport) };
    let began = Instant::now();
    let done = thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(500));
            end();
        });
        bulk::measure(at, &plan, &mut |_| {}).unwrap()
    });
    let passed = began.elapsed().as_secs_f64();
    assert!(!done.result.whole);
    for found in &done.result.runs[0].directions {
        assert!(!found.whole);
        let told = found.intervals.len() as f64 * 0.1;
        assert!(told <= passed, "{transport} {}: {told} of {passed} s", found.direction);
    }
}

#[test]
fn intervals_after_the_users_stop_do_not_count() {
    for transport in Transport::ALL {
        let server = Server::start(options()).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let connection = Connection::open(&target(&server, Some(KEY)), &stop).unwrap();
        ended(transport, Ways::Both, || stop.store(true, Ordering::Relaxed), &connection);
    }
}

#[test]
fn intervals_after_the_servers_end_do_not_count() {
    for transport in Transport::ALL {
        let server = Server::start(options()).unwrap();
        let connection = connect(&server);
        ended(transport, Ways::Down, || drop(server), &connection);
    }
}

/// The warm-up is part of what a session's time has to hold.
#[test]
fn a_transfer_that_is_too_long_for_the_session_tells_its_warm_up() {
    let max_duration = Span::from_secs(5);
    let server = Server::start(Options { max_duration, ..options() }).unwrap();
    let mut plan = plan(Transport::Tcp);
    (plan.transfer.duration, plan.warmup) = (Span::from_secs(4), Span::from_secs(2));
    let refused = bulk::measure(&connect(&server), &plan, &mut |_| {}).unwrap_err().to_string();
    assert!(refused.contains("6s in all, 2s of it warm-up"), "{refused}");
    assert!(refused.contains("--max-duration") && !refused.contains('\n'), "{refused}");
}
