//! What BBR loses before queues that drop early.

use super::connection::Law;
use super::flow::Greedy;
use super::share::{Regime, Share};
use crate::group::line;
use crate::way::Resource;
use trunkline_path::Standing;
use trunkline_scenario::Network;

/// Round trips that a receiver's window holds at most if a segment that is missing can fill it.
const ROUNDS: f64 = 8.0;

/// What is to be said of BBR before a queue that drops what waits for longer than its target: while a segment is missing, the
/// receiver's window fills up. How often that is depends on where start-up and probes meet the queue's intervals.
pub(super) fn dropped(network: &Network<'_>, flow: &Greedy<'_>, share: &Share) -> Option<String> {
    let Regime::Stage(Resource::Line(link, reversed)) = share.regime else { return None };
    let discipline = &line(network, link, reversed).discipline;
    let Standing::Delay(target) = discipline.assumptions().standing else { return None };
    let round = share.rate.millibytes_per_second() as f64 / 1000.0 * flow.round_trip.as_secs_f64();
    let rounds = flow.tcp.window as f64 / round.max(1.0);
    let waits = flow.tcp.law == Law::Bbr && rounds < ROUNDS && flow.round_trip > target;
    waits.then(|| {
        format!(
            "the queue drops what BBR leaves in it for longer than {target}, and a receiver's window of {rounds:.1} round trips fills up while a segment is missing: the throughput is an upper bound (simulated up to a fifth lower)"
        )
    })
}
