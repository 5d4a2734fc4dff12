//! Clusters: what binds their laps is found, and what a step promises is what the change brings.

use crate::bound::{group, is_bound};
use trunkline_explain::{Constraint, Options, explain, explain_with, text};
use trunkline_scenario::Scenario;
use trunkline_sim::Simulator;

/// A cluster of six nodes with these keys.
fn cluster(keys: &str, costs: &str) -> Scenario {
    let text = format!(
        "[[cluster]]\nname = 'c'\nnodes = 6\ncosts = 'c'\nlimit = '100MB'\n{keys}\n[costs.c]\n{costs}\n"
    );
    match Scenario::parse(&text, "clusters.toml") {
        Ok(mut cells) => cells.remove(0),
        Err(error) => panic!("{error}\n{text}"),
    }
}

const SMALL: &str = "test = { kind = 'latency', words = 1, rounds = 30 }";
const COSTS: &str =
    "cycle = '20ns'\nsend = '20us'\ninterrupt = '20us'\nreceive = '20us'\nclean_up = '20us'";

#[test]
fn the_processors_of_nodes_are_found() {
    let fddi = format!("kind = 'fddi'\nrate = '100Mbit/s'\n{SMALL}");
    let tenth = "send = '20ns'\ninterrupt = '20ns'\nreceive = '20ns'\nclean_up = '20ns'";
    is_bound(&cluster(&fddi, COSTS), Constraint::Processor, &cluster(&fddi, tenth));
}

#[test]
fn the_operations_of_the_traditional_layer_are_found() {
    let on = |protocol: &str| {
        let keys = format!("kind = 'fddi'\nrate = '100Mbit/s'\nprotocol = '{protocol}'\n{SMALL}");
        cluster(&keys, "cycle = '20ns'")
    };
    let explanation = explain(&on("traditional"), &Simulator).unwrap();
    let layer = group(&explanation).relaxing(Constraint::Layer).expect("a layer");
    let brings = group(&explain(&on("careful"), &Simulator).unwrap()).figure().seconds;
    assert_eq!(layer.steps[0].to, "careful");
    assert!(layer.saved > 0.3, "{}", text(&explanation));
    assert!((layer.steps[0].figure.seconds / brings - 1.0).abs() < 0.01, "{layer:?}");
}

#[test]
fn the_rate_and_the_turns_of_their_medium_are_found() {
    let large = "test = { kind = 'all-to-all', bytes = 100000, rounds = 8 }";
    let on = |kind: &str, rate: &str| {
        cluster(&format!("kind = {kind}\nrate = '{rate}'\n{large}"), "send = '1us'")
    };
    let fddi = |rate: &str| on("'fddi'", rate);
    is_bound(&fddi("100Mbit/s"), Constraint::MediumRate, &fddi("1Gbit/s"));
    is_bound(
        &on("'half-duplex'\nturnaround = '2ms'", "1Gbit/s"),
        Constraint::Turns,
        &on("'bus'\norder = 'turns'", "1Gbit/s"),
    );
}

#[test]
fn windows_and_losses_are_found() {
    let flood = "test = { kind = 'throughput', words = 200, messages = 400, ahead = 100 }";
    let fabric = "kind = 'leaf-spine'\nrate = '10Gbit/s'\ndelay = '200us'";
    let on = |buffers: u32| {
        cluster(&format!("{fabric}\nbuffers = {buffers}\n{flood}"), "send = '100ns'")
    };
    is_bound(&on(24), Constraint::Window, &on(16 * 24));
    let lossy = |loss: &str| {
        let keys = format!("{fabric}\nprotocol = 'traditional'\nloss = '{loss}'\n{SMALL}");
        cluster(&keys, "send = '100ns'")
    };
    is_bound(&lossy("20%"), Constraint::Loss, &lossy("0%"));
}

#[test]
fn a_long_run_is_not_repeated_unless_it_is_asked_for() {
    let fddi = format!("kind = 'fddi'\nrate = '100Mbit/s'\n{SMALL}");
    let explained = |budget| {
        let options = Options { budget, ..Options::default() };
        explain_with(&cluster(&fddi, COSTS), &Simulator, &options, &mut |_| {}).unwrap()
    };
    let short = explained(3);
    assert_eq!(short.runs, 1);
    assert!(group(&short).relaxed.is_empty() && !group(&short).waterfall.is_empty());
    let told = text(&short);
    assert!(told.contains("too long to be run again") && !told.contains("binds"), "{told}");
    assert_eq!(explained(u64::MAX).runs, 8);
}

#[test]
fn a_cluster_is_explained_by_its_name() {
    let fddi = format!("kind = 'fddi'\nrate = '100Mbit/s'\n{SMALL}");
    let named = |name: &str| {
        let options = Options { traffic: vec![name.into()], ..Options::default() };
        explain_with(&cluster(&fddi, COSTS), &Simulator, &options, &mut |_| {})
    };
    assert_eq!(named("c").unwrap().traffic.len(), 1);
    let complaint = named("d").unwrap_err().to_string();
    assert_eq!(complaint, "there is no traffic or cluster 'd': the scenario has c");
}

#[test]
fn the_buffers_of_switches_are_found() {
    let on = |buffer: &str| {
        let keys = "kind = 'leaf-spine'\nrate = '1Gbit/s'\nflow = 'drop'\nframe = 1000\nprotocol = 'traditional'\n\
                    test = { kind = 'incast', bytes = 20000, rounds = 10 }";
        cluster(&format!("{keys}\nbuffer = '{buffer}'"), "send = '1us'")
    };
    is_bound(&on("4kB"), Constraint::QueueLimit, &on("1GiB"));
}

#[test]
fn a_long_fabric_is_told_as_distance() {
    let on = |delay: &str| {
        let keys = format!("kind = 'leaf-spine'\nrate = '10Gbit/s'\ndelay = '{delay}'\n{SMALL}");
        cluster(&keys, "send = '1us'")
    };
    is_bound(&on("5ms"), Constraint::Distance, &on("5us"));
}

/// Laps before a frame is lost are no measure of a layer that ends with it.
#[test]
fn a_layer_that_does_not_come_to_its_end_is_no_remedy() {
    let layer = |loss: &str| {
        let keys = format!(
            "kind = 'leaf-spine'\nrate = '1Gbit/s'\nprotocol = 'traditional'\nloss = '{loss}'\n{SMALL}"
        );
        let explanation = explain(&cluster(&keys, "cycle = '20ns'"), &Simulator).unwrap();
        group(&explanation).relaxing(Constraint::Layer).is_some()
    };
    assert!(layer("0%") && !layer("0.3%"));
}
