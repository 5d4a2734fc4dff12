//! All nodes of a cluster as threads of one process.

use crate::{Carrier, Endpoint, NodesError, Place, Plan};
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{panicking, scope};
use trunkline_transport::cstar::{Cluster, ClusterError, Layer, NodeId};

/// Runs a program on every node of a cluster, each a thread of this process at a UDP port of its own on loopback, and returns
/// what they come to, by their numbers. Nodes whose program has ended answer the others until all have.
///
/// # Errors
/// If the system refuses something, the cluster is none, or a node cannot go on: then the reason of the one that found it.
pub fn in_threads<L: Layer, T: Send>(
    cluster: &Cluster,
    layer: impl Fn(NodeId) -> Result<L, ClusterError>,
    program: impl Fn(NodeId, &mut Endpoint<'_, L>) -> Result<T, NodesError> + Sync,
) -> Result<Vec<T>, NodesError> {
    let ended = each_in_threads(cluster, Plan::new, layer, program)?;
    let is_told = |it: &NodesError| matches!(it, NodesError::Gone { .. } | NodesError::Died { .. });
    let (mut came, mut first) = (Vec::new(), None);
    for result in ended {
        match result {
            Ok(one) => came.push(one),
            Err(error) if first.as_ref().is_none_or(is_told) => first = Some(error),
            Err(_) => {}
        }
    }
    first.map_or(Ok(came), Err)
}

/// As [`in_threads`], with a plan for each node; tells of each how it ended.
pub(crate) fn each_in_threads<L: Layer, T: Send>(
    cluster: &Cluster,
    plan: impl Fn(NodeId) -> Plan,
    layer: impl Fn(NodeId) -> Result<L, ClusterError>,
    program: impl Fn(NodeId, &mut Endpoint<'_, L>) -> Result<T, NodesError> + Sync,
) -> Result<Vec<Result<T, NodesError>>, NodesError> {
    let ids = || (0..cluster.nodes).map(NodeId);
    let layers = ids().map(layer).collect::<Result<Vec<_>, _>>()?;
    let carriers = carriers(cluster)?;
    let (stop, left) = (AtomicBool::new(false), AtomicUsize::new(carriers.len()));
    let run = |plan: Plan, layer, carrier| {
        let _others = Stops(&stop);
        let mut end = Endpoint::meet(&plan, layer, carrier, &stop)?;
        let came = program(plan.me, &mut end).map_err(|error| end.parts(Some(error)))?;
        if left.fetch_sub(1, Ordering::Relaxed) == 1 {
            stop.store(true, Ordering::Relaxed);
        }
        end.answer().map(|()| came)
    };
    let nodes = ids().map(plan).zip(layers).zip(carriers);
    Ok(scope(|scope| {
        let threads: Vec<_> = nodes
            .map(|((plan, layer), carrier)| {
                let run = &run;
                scope.spawn(move || run(plan, layer, carrier))
            })
            .collect();
        threads.into_iter().map(|it| it.join().expect("no node panics")).collect()
    }))
}

/// A carrier for each node, which know each other.
fn carriers(cluster: &Cluster) -> Result<Vec<Carrier>, NodesError> {
    let place = Place::Udp((Ipv4Addr::LOCALHOST, 0).into());
    let bind = |_| Carrier::bind(&place, cluster.receive_buffers, cluster.frame);
    let mut carriers = (0..cluster.nodes).map(bind).collect::<Result<Vec<_>, _>>()?;
    let all = carriers.iter().map(Carrier::address).collect::<Result<Vec<_>, _>>()?;
    for (me, carrier) in (0..).map(NodeId).zip(&mut carriers) {
        carrier.meet(me, all.clone())?;
    }
    Ok(carriers)
}

/// Stops the others if its thread panics: they would wait for it.
struct Stops<'a>(&'a AtomicBool);

impl Drop for Stops<'_> {
    fn drop(&mut self) {
        if panicking() {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Mutex;
    use trunkline_transport::cstar::{Careful, CarefulSettings, EventId, Source};

    const CLUSTER: Cluster =
        Cluster { nodes: 3, receive_buffers: 16, send_buffers: 16, frame: 1000 };

    fn layer(me: NodeId) -> Result<Careful, ClusterError> {
        Careful::new(me, &CLUSTER, &CarefulSettings::default())
    }

    #[test]
    fn results_come_by_the_numbers_of_nodes() {
        let came = in_threads(&CLUSTER, layer, |NodeId(me), _| Ok(10 * me)).unwrap();
        assert_eq!(came, [0, 10, 20]);
    }

    /// A node that gives up tells the others, which wait for it; whoever runs them hears its own reason.
    #[test]
    fn the_reason_is_that_of_the_node_that_found_it() {
        let ended: Result<Vec<()>, NodesError> = in_threads(&CLUSTER, layer, |me, end| {
            if me == NodeId(2) {
                return Err(end.give_up("the disk is full"));
            }
            end.receive_message(NodeId(2), EventId(1)).map(drop)
        });
        let why = ended.unwrap_err().to_string();
        assert_eq!(why, "the disk is full");
    }

    #[test]
    fn others_do_not_wait_for_one_that_panics() {
        let ended = Mutex::new(Vec::new());
        let run = || {
            in_threads(&CLUSTER, layer, |me, end| {
                if me == NodeId(1) {
                    // When both are there.
                    (0..2)
                        .try_for_each(|_| end.receive_message(Source::Any, EventId(1)).map(drop))?;
                    panic!("of its own");
                }
                end.send_in_crowd(NodeId(1), EventId(1), "here")?;
                let came = end.receive_message(NodeId(1), EventId(0)).map(drop);
                ended.lock().unwrap().push(came.as_ref().unwrap_err().to_string());
                came
            })
        };
        catch_unwind(AssertUnwindSafe(run)).unwrap_err();
        // One may hear of the other's end first.
        let ended = ended.into_inner().unwrap();
        let told = |it: &String| it.ends_with("stopped") || it.ends_with("panicked");
        assert!(ended.len() == 2 && ended.iter().all(told), "{ended:?}");
    }
}
