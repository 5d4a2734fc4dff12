//! Every test runs to a right end on nodes joined in one process, whatever their number, its sizes and the order of events.

use proptest::prelude::*;
use trunkline_cluster::together::{Network, Stopped};
use trunkline_cluster::{Flood, Jacobi, Latency, Node, Test, Throughput};
use trunkline_core::{Probability, Seed};
use trunkline_transport::cstar::{Careful, CarefulSettings, Cluster, Layer, NodeId};

/// Bytes of a frame: small, so that messages are cut.
const FRAME: u32 = 200;

fn careful(me: NodeId, nodes: u16) -> Box<dyn Layer> {
    let buffers = 16 * u32::from(nodes);
    let cluster = Cluster { nodes, receive_buffers: buffers, send_buffers: 128, frame: FRAME };
    Box::new(Careful::new(me, &cluster, &CarefulSettings::default()).unwrap())
}

fn nodes(test: &Test, count: u16) -> Vec<Node> {
    test.check(count, FRAME).unwrap();
    let node = |me| Node::new(test.program(NodeId(me), count, FRAME), careful(NodeId(me), count));
    (0..count).map(node).collect()
}

/// Runs a test; node 0 takes all laps, the others none, and every verdict is good.
fn runs(test: Test, count: u16, seed: u64) -> Result<(), String> {
    let network = Network { seed: Seed(seed), ..Network::default() };
    let ended = network.run(nodes(&test, count)).map_err(|it: Stopped| it.to_string())?;
    for (mut node, at) in ended.into_iter().zip(0_u16..) {
        node.verdict().map_err(|wrong| format!("node {at}: {wrong}"))?;
        let laps = node.take_laps().count() as u64;
        let want = if at == 0 { test.laps() } else { 0 };
        if laps != want {
            return Err(format!("node {at} took {laps} laps instead of {want}"));
        }
    }
    Ok(())
}

fn tests() -> impl Strategy<Value = Test> {
    let latency = (1..300_u32, 1..8_u32, 0..3_u32, any::<bool>()).prop_map(
        |(words, rounds, warm_up, processing)| {
            Test::Latency(Latency { words, rounds, warm_up, processing })
        },
    );
    let throughput = (1..200_u32, 1..30_u32, 1..10_u32, any::<bool>()).prop_map(
        |(words, messages, ahead, processing)| {
            Test::Throughput(Throughput { words, messages, ahead, processing })
        },
    );
    let flood = (1..50_u32, 1..6_u32, 1..8_u32, 1..12_u32, any::<bool>()).prop_map(
        |(words, fragments, ahead, events, processing)| {
            Test::Flood(Flood { words, fragments, ahead, events, processing })
        },
    );
    let jacobi = (9..40_u32, 1..12_u32)
        .prop_map(|(side, iterations)| Test::Jacobi(Jacobi { side, iterations }));
    prop_oneof![latency, throughput, flood, jacobi]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_test_ends_well(test in tests(), nodes in 2..=9_u16, seed in any::<u64>()) {
        prop_assert_eq!(runs(test, nodes, seed), Ok(()));
    }
}

#[test]
fn one_node_solves_the_square_alone() {
    assert_eq!(runs(Test::Jacobi(Jacobi { side: 7, iterations: 20 }), 1, 1), Ok(()));
}

/// A lost frame is told by the layer or leaves the nodes waiting; it never passes for success.
#[test]
fn a_loss_does_not_pass_for_success() {
    let test = Test::Throughput(Throughput::default());
    for seed in 0..20 {
        let network = Network {
            seed: Seed(seed),
            loss: Probability::new(0.01).unwrap(),
            ..Network::default()
        };
        assert!(network.run(nodes(&test, 3)).is_err(), "seed {seed}");
    }
}
