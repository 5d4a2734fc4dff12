//! Clusters in virtual time: nodes, each with a processor, and the medium that joins them.
//!
//! A frame's way: the program's step at the sender's processor → the medium → the interrupt at the receiver's processor →
//! the program's step there. What a node waited for is told along [the path](path) of the messages that it waited for.

mod collect;
mod machine;
mod passing;
mod path;
mod standstill;
#[cfg(test)]
mod tests;
mod unfinished;
mod world;

use crate::SimError;
use trunkline_core::Time;
use trunkline_engine::Run;
use trunkline_scenario::{Cluster as Spec, Scenario};
use trunkline_transport::cstar::NodeId;
use world::Cluster;

/// Runs a cluster to its end, and adds what was measured to `run`.
///
/// # Errors
/// If its nodes cannot be set up as described.
pub(crate) fn run(
    scenario: &Scenario,
    spec: &Spec,
    run: &mut Run,
    told: &(dyn Fn(&str) + Sync),
) -> Result<(), SimError> {
    let refused = |error: trunkline_transport::cstar::ClusterError| SimError::Cluster {
        cluster: spec.name.clone(),
        reason: error.to_string(),
    };
    let nodes = (0..spec.layout.nodes).map(|node| spec.node(NodeId(node)).map_err(refused));
    let place = run.places.len() as u32;
    let mut cluster = Cluster::new(scenario, spec, nodes.collect::<Result<_, _>>()?, place);
    cluster.run(Time::ZERO + scenario.stop_after, told);
    cluster.tell(run);
    Ok(())
}
