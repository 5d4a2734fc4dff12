//! URP and datagrams, and what becomes of their records.

use super::support::{Hosts, MTU, check_sums, run, urp};
use std::time::Duration;
use trunkline_core::{Cause, Rate, Size, Span};
use trunkline_endpoint::{EndpointError, Flow, HostThreads, clock};
use trunkline_scenario::{Echo, Reply, Split, Transport, UrpSettings, Workload};

fn echo(sizes: &[u32]) -> Workload {
    let (sizes, every) = (sizes.to_vec(), Span::ZERO);
    Workload::Interactive { sizes, repeat: 3, reply: Reply::Echo, every }
}

#[test]
fn blocks_packets_and_rounds_are_counted() {
    let Some(hosts) = Hosts::build(MTU) else { return };
    let settings = UrpSettings { block: 252, outstanding: 3, ..UrpSettings::default() };
    let plan = hosts.plan(echo(&[1024]), &Transport::Urp(settings));
    let run = run(&[plan], Duration::from_secs(20)).remove(0);
    // Five blocks each way, three times; a block of 252 with its trailer is 16 packets, one of 16 octets two.
    assert_eq!(run.block_count, 2 * 3 * 5);
    let data = 2 * 3 * (4 * 16 + 2);
    assert!(run.packets_sent >= data + 30 && run.packets_sent == run.packets_received, "{run:?}");
    // Vande Water 1988 §3.7.2: what three blocks hold, then the rest. Answers may come between two packets.
    assert_eq!(run.rounds[&1024].iter().sum::<u32>(), 1024);
    assert!(run.rounds[&1024][0] >= 756, "{:?}", run.rounds);
    assert_eq!(run.retransmissions, 0);
}

#[test]
fn a_packet_larger_than_the_device_takes_counts_whole() {
    let Some(hosts) = Hosts::build(MTU) else { return };
    let settings = UrpSettings { block: 4096, outstanding: 7, packet: 0, ..UrpSettings::default() };
    let plan = hosts.plan(echo(&[4096, 20_000]), &Transport::Urp(settings));
    let run = run(&[plan], Duration::from_secs(20)).remove(0);
    check_sums(&run);
    assert_eq!(run.delivered_bytes, 2 * 3 * (4096 + 20_000));
    assert!(
        run.notes.iter().any(|note| note.text.contains("the path counts all")),
        "{:?}",
        run.notes
    );
}

#[test]
fn an_interfaces_habits_are_kept() {
    let Some(hosts) = Hosts::build(MTU) else { return };
    for echo_when in [Echo::Arrival, Echo::Posted, Echo::Consumption] {
        let mut plan = hosts.plan(echo(&[500, 2000]), &urp());
        for end in [&mut plan.source, &mut plan.destination] {
            let small = Split { below: Some(512), piece: 64 };
            end.interface.split = vec![small, Split { below: None, piece: 1024 }];
            end.interface.requests = Some(1);
            end.interface.echo = echo_when;
        }
        let run = run(&[plan], Duration::from_secs(20)).remove(0);
        check_sums(&run);
        // 500 bytes are eight blocks, 2000 are two.
        assert_eq!(run.block_count, 2 * 3 * (8 + 2));
        let waited: Span = run.samples.iter().map(|sample| sample.booked(Cause::Window)).sum();
        assert!(!waited.is_zero(), "one request waits for the one before");
    }
}

#[test]
fn datagrams_larger_than_the_device_takes_count_whole() {
    let Some(hosts) = Hosts::build(MTU) else { return };
    let workload = Workload::Paced {
        size: 9000,
        rate: Rate::from_bits_per_second(7_200_000),
        duration: Span::from_millis(50),
    };
    let run = run(&[hosts.plan(workload, &Transport::Udp)], Duration::from_secs(20)).remove(0);
    check_sums(&run);
    assert_eq!((run.samples.len(), run.delivered_bytes), (5, 45_000));
    assert!(run.notes.iter().any(|note| note.text.contains("1200 bytes")), "{:?}", run.notes);
}

#[test]
fn what_cannot_be_is_refused_in_one_line() {
    let Some(hosts) = Hosts::build(MTU) else { return };
    let mut mixed = hosts.plan(echo(&[1]), &Transport::Udp);
    mixed.destination.transport = urp();
    let mut narrow = hosts.plan(echo(&[1]), &Transport::Udp);
    narrow.mtu = 200;
    for (plan, word) in [(mixed, "urp"), (narrow, "MTU")] {
        let refused: EndpointError = Flow::prepare(&HostThreads::new(), &plan).unwrap_err();
        let text = refused.to_string();
        assert!(text.contains(word) && !text.contains('\n'), "{text}");
    }
}

#[test]
fn a_flow_that_is_stopped_gives_what_it_has() {
    let Some(hosts) = Hosts::build(MTU) else { return };
    let workload =
        Workload::Bulk { bytes: Size::from_bytes(1 << 40), repeat: 1, write: 1024, confirm: true };
    let threads = HostThreads::new();
    let flow = Flow::prepare(&threads, &hosts.plan(workload, &urp())).unwrap();
    assert!(!flow.ended());
    flow.start(clock::now());
    let limit = clock::now() + Span::from_secs(20);
    while flow.delivered() < 10_000 && clock::now() < limit {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(!flow.ended());
    let run = flow.join();
    assert!(run.delivered_bytes >= 10_000 && run.samples.is_empty() && run.ended.is_none());
    assert!(!run.sender.is_empty());
}

#[test]
fn a_flow_that_never_starts_has_nothing() {
    let Some(hosts) = Hosts::build(MTU) else { return };
    let flow = Flow::prepare(&HostThreads::new(), &hosts.plan(echo(&[1]), &urp())).unwrap();
    let threads = HostThreads::new();
    let other = Flow::prepare(&threads, &hosts.plan(echo(&[1]), &Transport::Udp)).unwrap();
    drop(flow);
    let run = other.join();
    assert!(run.samples.is_empty() && run.packets_sent == 0, "{run:?}");
}

#[test]
fn hundreds_of_flows_run_at_once() {
    let Some(hosts) = Hosts::build(MTU) else { return };
    let plan = hosts.plan(echo(&[64, 300]), &urp());
    let plans: Vec<_> =
        (0..250).map(|flow| trunkline_endpoint::FlowPlan { flow, ..plan.clone() }).collect();
    for run in run(&plans, Duration::from_secs(60)) {
        check_sums(&run);
        assert_eq!((run.samples.len(), run.delivered_bytes), (6, 2 * 3 * 364), "{run:?}");
    }
}

/// A sender has ended when its last write has returned; what still waits for the window is read after that.
#[test]
fn a_flow_ends_when_what_was_sent_has_been_read() {
    let Some(hosts) = Hosts::build(MTU) else { return };
    let bytes = Size::from_bytes(20_000);
    let workload = Workload::Bulk { bytes, repeat: 1, write: 1024, confirm: false };
    let slow = UrpSettings { block: 64, outstanding: 1, ..UrpSettings::default() };
    let threads = HostThreads::new();
    let flow = Flow::prepare(&threads, &hosts.plan(workload, &Transport::Urp(slow))).unwrap();
    flow.start(clock::now());
    let limit = clock::now() + Span::from_secs(60);
    while !flow.ended() && clock::now() < limit {
        std::thread::yield_now();
    }
    assert_eq!(flow.join().delivered_bytes, 20_000);
}
