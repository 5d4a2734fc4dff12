//! Every test runs to a right end on nodes joined in one process, whatever their number, its sizes and the order of events.

use proptest::prelude::*;
use trunkline_cluster::together::{Network, Stopped};
use trunkline_cluster::{Flood, Jacobi, Node, TESTS, Test};
use trunkline_core::{Probability, Seed, Span};
use trunkline_transport::cstar::{
    Careful, CarefulSettings, Cluster, Layer, NodeId, Traditional, TraditionalSettings,
};
use trunkline_transport::protocol::Takes;

/// Bytes of a frame: small, so that messages are cut.
const FRAME: u32 = 200;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Protocol {
    Traditional,
    Careful,
    /// Careful, with the nodes in a single row.
    Row,
    /// Careful, with windows of 3 and a pool of buffers beside them.
    Pool(Pool),
}

/// What becomes of the buffers beside the windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Pool {
    /// Buffers for each node, those of its window included.
    each: u32,
    /// Microseconds for which they are lent, which may be over while a message is on its way; not lent if `None`.
    lease: Option<u64>,
    /// Messages of so many fragments or more have room reserved; none if `None`.
    reserve: Option<u32>,
}

const LENT: Pool = Pool { each: 6, lease: Some(50), reserve: None };
const RESERVED: Pool = Pool { each: 6, lease: None, reserve: Some(2) };
const BOTH: Pool = Pool { each: 6, lease: Some(50), reserve: Some(2) };

fn layer(protocol: Protocol, me: NodeId, nodes: u16) -> Box<dyn Layer> {
    let each = if let Protocol::Pool(pool) = protocol { pool.each } else { 16 };
    let buffers = each * u32::from(nodes);
    let cluster = Cluster { nodes, receive_buffers: buffers, send_buffers: 1024, frame: FRAME };
    match protocol {
        Protocol::Traditional => {
            Box::new(Traditional::new(me, &cluster, &TraditionalSettings::default()).unwrap())
        }
        _ => Box::new(Careful::new(me, &cluster, &settings(protocol, nodes)).unwrap()),
    }
}

fn settings(protocol: Protocol, nodes: u16) -> CarefulSettings {
    let plain = CarefulSettings::default();
    match protocol {
        Protocol::Row => CarefulSettings { grid: Some(nodes), ..plain },
        Protocol::Pool(Pool { lease, reserve, .. }) => {
            CarefulSettings { lease: lease.map(Span::from_micros), reserve, ..plain }
        }
        _ => plain,
    }
}

fn nodes(test: &Test, protocol: Protocol, count: u16) -> Vec<Node> {
    test.check(count, FRAME).unwrap();
    let node = |me| {
        let me = NodeId(me);
        Node::new(test.program(me, count, FRAME), layer(protocol, me, count))
    };
    (0..count).map(node).collect()
}

/// Runs a test; node 0 takes all laps, and every verdict is good.
fn runs(test: Test, protocol: Protocol, count: u16, network: Network) -> Result<(), String> {
    repeats(test, protocol, count, network).map(|_| ())
}

/// As [`runs`]; answers the fragments that were sent again.
fn repeats(test: Test, protocol: Protocol, count: u16, network: Network) -> Result<u64, String> {
    let mut again = 0;
    let ended = network.run(nodes(&test, protocol, count)).map_err(|it: Stopped| it.to_string())?;
    for (mut node, at) in ended.into_iter().zip(0_u16..) {
        node.verdict().map_err(|wrong| format!("node {at}: {wrong}"))?;
        again += node.counters().again;
        let laps = node.take_laps().count() as u64;
        if at == 0 && laps != test.laps() {
            return Err(format!("{laps} laps instead of {}", test.laps()));
        }
    }
    Ok(again)
}

/// Any test, with little of what its keys count, but for one of them at most.
fn tests() -> impl Strategy<Value = Test> {
    let which = any::<[prop::sample::Index; 2]>();
    (which, any::<bool>(), any::<[u16; 8]>()).prop_map(|([test, much], has_much, drawn)| {
        let kind = test.get(TESTS);
        assert!(kind.keys.len() <= drawn.len(), "draw a number for each key of {}", kind.name);
        let much = has_much.then(|| much.get(kind.keys).name);
        let keys = kind.keys.iter().zip(drawn.map(u64::from)).map(|(key, drawn)| {
            let few = if much == Some(key.name) { 40 } else { 8 };
            let value = match key.takes {
                Takes::Count(least, most) => (least + drawn % few).min(most).to_string(),
                Takes::Bytes(least, most) => (least + drawn % 900).min(most).to_string(),
                Takes::Flag => (drawn % 2 == 1).to_string(),
                other => panic!("{}: say how to draw {} ({other:?})", kind.name, key.name),
            };
            format!("{}={value}", key.name)
        });
        let keys: Vec<String> = keys.collect();
        Test::parse(&format!("{}:{}", kind.name, keys.join(","))).unwrap()
    })
}

fn pools() -> impl Strategy<Value = Pool> {
    let lease = prop::option::of(5..1000_u64);
    (3..12_u32, lease, prop::option::of(2..6_u32)).prop_map(|(each, lease, reserve)| Pool {
        each,
        lease,
        reserve,
    })
}

fn seeded(seed: u64) -> Network {
    Network { seed: Seed(seed), ..Network::default() }
}

/// Clusters of few and small buffers, and careful layers with any settings that go together.
fn any_careful() -> impl Strategy<Value = (Cluster, CarefulSettings)> {
    let cluster =
        (2..=9_u16, 3..10_u32, 0..10_u32, 8..300_u32).prop_map(|(nodes, each, more, frame)| {
            let receive_buffers = each * u32::from(nodes) + more;
            Cluster { nodes, receive_buffers, send_buffers: 1024, frame }
        });
    let memory = prop_oneof![Just(PLENTY), 0..3000_u64];
    let micros = || prop::option::of((1..2000_u64).prop_map(Span::from_micros));
    let schemes = prop_oneof![
        (micros(), prop::option::of(2..8_u32)).prop_map(|(lease, reserve)| (lease, reserve, None)),
        (1..=9_u16).prop_map(|columns| (None, None, Some(columns))),
    ];
    let settings = (any::<[bool; 2]>(), memory, micros(), schemes).prop_map(
        |([piggyback, at_half], memory, audit, (lease, reserve, grid))| CarefulSettings {
            piggyback,
            literal: false,
            at_half,
            memory,
            audit,
            lease,
            reserve,
            grid,
        },
    );
    (cluster, settings)
}

/// Memory that no test here fills.
const PLENTY: u64 = 1 << 28;

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_test_ends_well_over_the_careful_protocol(
        test in tests(), nodes in 2..=9_u16, pool in pools(), seed in any::<u64>(),
    ) {
        prop_assume!(test.check(nodes, FRAME).is_ok());
        prop_assert_eq!(runs(test, Protocol::Careful, nodes, seeded(seed)), Ok(()));
        for protocol in [Protocol::Row, Protocol::Pool(pool)] {
            prop_assert_eq!(runs(test, protocol, nodes, seeded(seed)), Ok(()));
        }
    }

    /// Whatever the settings, the size of buffers and what is lost: a test ends well, or a node says why not. Nodes wait for each other
    /// only if a frame was lost and nobody asks for it. Memory that is too small is said too.
    #[test]
    fn careful_nodes_end_well_or_say_why_whatever_their_settings(
        test in tests(), (cluster, settings) in any_careful(), loss in prop_oneof![Just(0.0), 0.0..0.1], seed in any::<u64>(),
    ) {
        let layer = |me| Careful::new(NodeId(me), &cluster, &settings);
        let layers: Result<Vec<Careful>, _> = (0..cluster.nodes).map(layer).collect();
        let fits = test.check(cluster.nodes, cluster.frame).is_ok();
        if let Some(layers) = layers.ok().filter(|_| fits) {
            let program = |me| test.program(NodeId(me), cluster.nodes, cluster.frame);
            let nodes = layers.into_iter().zip(0..).map(|(layer, me)| Node::new(program(me), Box::new(layer)));
            let network = Network { loss: Probability::new(loss).unwrap(), most: 400_000, ..seeded(seed) };
            match network.run(nodes.collect()) {
                Ok(ended) => for node in ended {
                    prop_assert_eq!(node.verdict(), Ok(()));
                },
                Err(Stopped::Failed { failure, .. }) => {
                    prop_assert!(loss > 0.0 || settings.memory < PLENTY, "{}", failure);
                }
                Err(Stopped::Deadlocked(state)) => {
                    prop_assert!(loss > 0.0 && settings.audit.is_none(), "{}", state);
                }
                Err(endless) => prop_assert!(false, "{}", endless),
            }
        }
    }

    #[test]
    fn every_test_ends_well_over_the_traditional_protocol(
        test in tests(), nodes in 2..=9_u16, seed in any::<u64>(),
    ) {
        prop_assume!(test.check(nodes, FRAME).is_ok());
        prop_assert_eq!(runs(test, Protocol::Traditional, nodes, seeded(seed)), Ok(()));
    }
}

/// The traditional protocol repairs what is lost, the closing event included.
#[test]
fn the_traditional_protocol_repairs_losses() {
    let mut again = 0;
    for (kind, seed) in TESTS.iter().zip(0..) {
        let loss = Probability::new(0.01).unwrap();
        let test = Test::parse(&format!("{}:{}", kind.name, kind.trial)).unwrap();
        let network = Network { loss, ..seeded(seed) };
        let ended = repeats(test, Protocol::Traditional, 4, network);
        again += ended.unwrap_or_else(|wrong| panic!("{}: {wrong}", kind.name));
    }
    assert!(again > 0, "nothing was lost");
}

/// Messages of many more fragments than there are buffers, sent before any is received, come to their end: a window whose
/// frames were copied out opens again, whether their buffers are the sender's or the pool's.
#[test]
fn large_messages_end_well_out_of_a_small_pool() {
    let test = Test::parse("halo:bytes=9400,rounds=3").unwrap();
    for pool in [RESERVED, BOTH] {
        for seed in 40..72 {
            let ended = runs(test, Protocol::Pool(pool), 6, seeded(seed));
            assert_eq!(ended, Ok(()), "{pool:?} {seed}");
        }
    }
}

/// A window that became smaller than it was when its frames came, since a loan ended, opens again.
#[test]
fn what_is_lent_and_taken_back_leaves_no_window_closed() {
    let (words, fragments, ahead, events) = (1, 5, 5, 20);
    let test = Test::Flood(Flood { words, fragments, ahead, events, processing: false });
    for pool in [LENT, BOTH] {
        for seed in 0..150 {
            let ended = runs(test, Protocol::Pool(pool), 7, seeded(seed));
            assert_eq!(ended, Ok(()), "{pool:?} {seed}");
        }
    }
}

#[test]
fn one_node_solves_the_square_alone() {
    let test = Test::Jacobi(Jacobi { side: 7, iterations: 20 });
    assert_eq!(runs(test, Protocol::Careful, 1, seeded(1)), Ok(()));
}

/// A careful layer tells of a lost frame, or its nodes are left waiting; it never passes for success.
#[test]
fn a_loss_does_not_pass_for_success_with_the_careful_protocol() {
    let test = Test::parse("throughput:words=100").unwrap();
    for seed in 0..20 {
        let network = Network { loss: Probability::new(0.01).unwrap(), ..seeded(seed) };
        let stopped = network.run(nodes(&test, Protocol::Careful, 3)).unwrap_err();
        assert!(!matches!(stopped, Stopped::Endless(..)), "seed {seed}: {stopped}");
    }
}
