//! Every transport carries every size there and back.

use crate::support::{connect, options};
use trunkline_core::{Rate, Span};
use trunkline_probe::Pace;
use trunkline_probe::client::Ended;
use trunkline_probe::client::rtt::{Measured, RttPlan, measure};
use trunkline_probe::server::{Options, Server};
use trunkline_probe::stamp::calibrate;
use trunkline_probe::wire::message::Transport;

fn run(options: Options, plan: &RttPlan) -> Measured {
    let server = Server::start(options).unwrap();
    let connection = connect(&server);
    measure(&connection, plan, calibrate(), &mut |_| {}).unwrap()
}

#[test]
fn every_transport_one_outstanding() {
    for transport in Transport::ALL {
        let plan = RttPlan { sizes: vec![1, 64, 1024, 3000], count: 8, ..RttPlan::new(transport) };
        let done = run(options(), &plan);
        assert!(done.failure.is_none(), "{transport}: {:?}", done.failure);
        let result = &done.result;
        assert_eq!(
            (result.ended, result.sent, result.answered),
            (Ended::Count, 32, 32),
            "{transport}"
        );
        let far = result.far_counts.as_ref().unwrap();
        assert_eq!((far.received, far.duplicates), (32, 0), "{transport}");
        // A datagram for each answer. URP has its own, and a connection none.
        assert!(transport != Transport::Udp || far.sent == 32, "{far:?}");
        assert_eq!(result.sizes.len(), 4);
        assert!(result.sizes.iter().all(|size| size.figures.response_ms.unwrap().count == 8));
        assert_eq!(result.clock.is_some(), transport != Transport::Urp);
        assert_eq!(result.timing_error.kernel_stamps, transport != Transport::Tcp);
        assert!(done.observed.exchanges.iter().all(|one| one.reply == one.size));
        assert!(result.hosts.near.len() >= 2 && result.hosts.far.len() >= 2);
    }
}

#[test]
fn every_transport_paced() {
    for transport in Transport::ALL {
        let pace = Pace::Every(Span::from_millis(1));
        let plan = RttPlan { sizes: vec![10, 500], pace, count: 50, ..RttPlan::new(transport) };
        let done = run(options(), &plan);
        assert_eq!((done.result.sent, done.result.answered), (100, 100), "{transport}");
        let late = done.result.all.send_late_ms.unwrap();
        assert!(late.min >= 0.0 && late.count == 100);
    }
}

#[test]
fn one_host_has_one_clock() {
    let pace = Pace::Poisson(Span::from_millis(1));
    let plan = RttPlan { sizes: vec![10], pace, count: 200, ..RttPlan::new(Transport::Udp) };
    let done = run(options(), &plan);
    let clock = done.result.clock.unwrap();
    let found = &clock.stretches[0];
    // The two ends are one host: the offset that is found is wrong by less than it says.
    assert!((found.offset as f64).abs() <= found.uncertainty, "{found:?}");
    assert_eq!(clock.steps(), 0);
}

#[test]
fn sizes_are_chosen_where_none_are_given() {
    let plan = RttPlan { count: 1, ..RttPlan::new(Transport::Urp) };
    let sizes = run(options(), &plan).result.sizes;
    let sizes: Vec<u32> = sizes.iter().map(|size| size.size_octets).collect();
    // Both sides of a block of 1024 octets.
    assert!(sizes.contains(&1024) && sizes.contains(&1025), "{sizes:?}");
}

#[test]
fn what_comes_too_fast_is_dropped_and_counted() {
    let rate = Some(Rate::from_bits_per_second(100_000));
    let pace = Pace::Every(Span::from_micros(500));
    let plan = RttPlan {
        sizes: vec![1000],
        pace,
        count: 100,
        timeout: Span::from_millis(200),
        ..RttPlan::new(Transport::Udp)
    };
    let done = run(Options { max_rate: rate, ..options() }, &plan);
    let far = done.result.far_counts.unwrap();
    assert!(far.over_rate > 50 && far.received + far.over_rate == 100, "{far:?}");
    assert_eq!(done.result.answered, far.received);
    assert_eq!(done.result.all.loss.out.least, far.over_rate);
}

#[test]
fn a_window_that_the_client_leaves_open_is_the_servers() {
    let options = || Options { window: (200, 3), ..options() };
    let plan = RttPlan { sizes: vec![1, 900], count: 3, ..RttPlan::new(Transport::Urp) };
    let done = run(options(), &plan);
    assert_eq!((done.known.block, done.result.answered), (Some(200), 6));
    let own = run(options(), &RttPlan { window: Some((50, 1)), ..plan });
    assert_eq!((own.known.block, own.result.answered), (Some(50), 6));
}

#[test]
fn who_cannot_keep_the_pace_says_so() {
    let plan = RttPlan {
        sizes: vec![64],
        pace: Pace::Every(Span::from_nanos(1)),
        count: 2_000_000,
        duration: Span::from_millis(300),
        timeout: Span::from_millis(200),
        ..RttPlan::new(Transport::Udp)
    };
    let done = run(options(), &plan);
    assert_eq!(done.result.ended, Ended::Duration);
    assert!(done.result.answered > 0);
    let warnings = done.result.hosts.warnings.join("\n");
    assert!(warnings.contains("pace") && warnings.contains("may be its own"), "{warnings}");
}
