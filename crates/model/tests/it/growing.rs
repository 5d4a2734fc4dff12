//! Greedy flows that are measured while their windows grow, and while few of their packets are lost: against the simulator.

use crate::common::build::*;
use trunkline_core::{Probability, Span};
use trunkline_model::{What, predictions};
use trunkline_path::LinkSpec;
use trunkline_path::impairment::LossModel;
use trunkline_scenario::{Scenario, TcpSettings, Transport, Workload};

/// A flow of `profile` over a line of so many bits per second and milliseconds, measured in intervals of half a second from
/// `warm_up` to `duration`, in seconds.
fn flow(line: &LinkSpec, profile: &str, (warm_up, duration): (u64, u64)) -> Scenario {
    let mut net = pair(line);
    let (warm_up, duration) = (Span::from_secs(warm_up), Span::from_secs(duration));
    let interval = Span::from_millis(500);
    let greedy = Workload::Greedy { duration, warm_up, interval, write: 65_536 };
    let tcp = TcpSettings { profile: profile.into(), ..TcpSettings::default() };
    net.traffic.push(traffic("flow", ("a", "b"), greedy, &Transport::Tcp(tcp)));
    net
}

/// Bytes in an interval, in the mean: predicted, and simulated.
fn amounts(net: &Scenario) -> (f64, f64) {
    let found = predictions(net).unwrap();
    let ours = found.list.iter().find(|it| it.what == What::Amount).unwrap();
    assert_eq!(ours.value.time(), Some(Span::from_millis(500)), "its terms sum to the interval");
    let run = trunkline_sim::run(net).unwrap();
    let samples = &run.traffic[0].samples;
    let bytes: u64 = samples.iter().map(|it| it.size).sum();
    (ours.size as f64, bytes as f64 / samples.len() as f64)
}

fn notes(net: &Scenario) -> String {
    let texts = predictions(net).unwrap().notes.into_iter().map(|note| note.text);
    texts.collect::<Vec<_>>().join("\n")
}

#[test]
fn what_is_measured_while_the_window_grows_is_less() {
    for (bits, delay, profile, times) in [
        (6_400_000, 300, "linux", (1, 5)),
        (6_400_000, 300, "linux", (0, 20)),
        (20_000_000, 50, "linux", (0, 3)),
        (6_400_000, 300, "bsd-reno", (1, 20)),
        (6_400_000, 100, "bsd-reno", (0, 4)),
        (50_000_000, 150, "trunkline", (1, 6)),
    ] {
        let net = flow(&link(bits, Span::from_millis(delay)), profile, times);
        let (ours, simulated) = amounts(&net);
        let ratio = ours / simulated;
        assert!((ratio - 1.0).abs() < 0.02, "{bits} {delay} {profile} {times:?}: {ratio}");
        assert!(notes(&net).contains("still grows"), "{}", notes(&net));
    }
}

#[test]
fn a_window_that_has_grown_in_the_warm_up_is_measured_as_it_is() {
    let net = flow(&link(6_400_000, Span::from_millis(300)), "linux", (10, 20));
    let (ours, simulated) = amounts(&net);
    assert!((ours / simulated - 1.0).abs() < 0.01, "{ours} for {simulated}");
    assert!(!notes(&net).contains("still grows"));
}

/// In three seconds a window of a dozen segments loses none or one of them: where chance ends slow start decides.
#[test]
fn a_test_of_few_losses_says_so() {
    let mut line = link(10_000_000, Span::from_millis(100));
    line.impairments.loss = LossModel::Bernoulli(Probability::new(0.01).unwrap());
    for (duration, told) in [(3, true), (600, false)] {
        let notes = notes(&flow(&line, "linux", (1, duration)));
        assert_eq!(notes.contains("packets are lost in"), told, "{notes}");
        assert!(!notes.contains("one overflow in each"), "losses end its windows: {notes}");
    }
}
