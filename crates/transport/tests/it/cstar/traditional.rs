//! Laws of the traditional protocol.

use super::net::{Faults, NONE, Net, Plan, plan};
use proptest::prelude::*;
use trunkline_core::Probability;
use trunkline_transport::cstar::{Cluster, Traditional, TraditionalSettings};

/// Buffers for all that can be outstanding: what three events and the one that is sent can bring.
fn net(plan: &Plan, send_buffers: u32, faults: Faults) -> Net {
    let nodes = u32::from(plan.nodes);
    let receive_buffers = nodes + 1 + 4 * 4 * nodes;
    let cluster = Cluster { nodes: plan.nodes, receive_buffers, send_buffers, frame: 64 };
    Net::new(plan, faults, receive_buffers, |me| {
        let settings = TraditionalSettings::default();
        Box::new(Traditional::new(me, &cluster, &settings).expect("enough buffers"))
    })
}

fn share(most: f64) -> impl Strategy<Value = Probability> {
    (0.0..most).prop_map(|p| Probability::new(p).expect("below 1"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 250, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_good_network_delivers_all_once(plan in plan(6, 10, 3), send_buffers in 4_u32..40) {
        prop_assert_eq!(net(&plan, send_buffers, NONE).run(), Ok(()));
    }

    /// Whatever part of the frames is lost, comes twice or overtakes others: each fragment is delivered once in the end.
    #[test]
    fn a_bad_network_delivers_all_once(
        plan in plan(5, 8, 3), send_buffers in 4_u32..40,
        loss in share(0.6), duplication in share(0.4), disorder: bool,
    ) {
        let faults = Faults { loss, duplication, disorder, one: None };
        prop_assert_eq!(net(&plan, send_buffers, faults).run(), Ok(()));
    }
}
