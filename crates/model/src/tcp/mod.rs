//! What closed formulas say of TCP on a scenario's paths: greedy connections and their shares, transfers,
//! messages and their answers.

mod beginning;
mod bulk;
mod connection;
mod crowd;
mod first;
mod flow;
mod message;
mod share;
mod times;

pub(crate) use beginning::Joins;
pub(crate) use connection::Connection;

use crate::engine::Found;
use crate::flow::{Flow, alongside, is_bulk};
use crate::medium;
use crate::way::Resource;
use flow::Greedy;
use share::{Regime, Share, shares};
use std::collections::BTreeSet;
use trunkline_core::Span;
use trunkline_engine::{Note, NoteKind};
use trunkline_scenario::{Network, Reply, Transport, Workload};

/// The predictions of traffic number `index`, which speaks TCP.
///
/// # Errors
/// Why no formula covers it.
pub(crate) fn predict(
    network: &Network<'_>,
    (index, joins): (usize, Joins),
    found: &mut Found,
    notes: &mut Vec<Note>,
) -> Result<(), String> {
    let list = &mut found.list;
    let traffic = &network.scenario().traffic[index];
    match &traffic.workload {
        Workload::Interactive { sizes, reply, .. } => {
            let answer = |size: u32| match reply {
                Reply::Echo => size,
                Reply::Bytes(bytes) => *bytes,
            };
            message::predict(network, index, sizes, answer, list, notes)
        }
        Workload::TimedEcho { sizes, .. } => {
            message::predict(network, index, sizes, |size| size, list, notes)
        }
        Workload::Paced { .. } => Err("datagrams over TCP".into()),
        _ => transfers(network, (index, joins), found, notes),
    }
}

fn transfers(
    network: &Network<'_>,
    (index, joins): (usize, Joins),
    found: &mut Found,
    notes: &mut Vec<Note>,
) -> Result<(), String> {
    let mut list = Vec::new();
    for write in flow::writes_of(&network.scenario().traffic[index].workload) {
        let flows = greedy(network, index, Some(write))?;
        if list.is_empty() {
            strangers(network, index, &flows, notes)?;
            let windows: Vec<medium::Window<'_>> = flows.iter().map(Greedy::under_way).collect();
            let told = |text| {
                Note::of_traffic(&network.scenario().traffic[index].name, NoteKind::Assumed, text)
            };
            notes.extend(medium::unequal(network, &windows).map(told));
        }
        let shares = shares(network, &flows)?;
        bulk::predict(network, (index, joins), &flows, &shares, &mut list, notes);
        found.fills = fills(index, &flows, &shares);
    }
    found.list.append(&mut list);
    Ok(())
}

/// Round trips of slow start (a choice: it doubles a window with each).
const GROWN: u64 = 10;

/// After how long the connections of traffic number `index` have filled the queue that they keep. Slow start does it, but if
/// HyStart ends that before: then the window's growth, which has half of a saw-tooth behind it when the queue is as long as in
/// the mean.
fn fills(index: usize, flows: &[Greedy<'_>], shares: &[Share]) -> Option<Span> {
    let (flow, share) = flows.iter().zip(shares).find(|(flow, _)| flow.flow.traffic == index)?;
    let slow_start = flow.round_trip.scaled(GROWN, 1);
    match share.regime {
        Regime::Window | Regime::Stage(_) => None,
        Regime::Overflow(..) if flow.tcp.has_hystart() => {
            share.saw.map(|saw| saw.lasts.scaled(1, 2).max(slow_start))
        }
        Regime::Standing(_) | Regime::Loss | Regime::Overflow(..) => Some(slow_start),
    }
}

/// The greedy connections under way together with traffic number `index`, its own included; that writes `write`
/// bytes at a time, if it is given.
fn greedy<'a>(
    network: &'a Network<'a>,
    index: usize,
    write: Option<u64>,
) -> Result<Vec<Greedy<'a>>, String> {
    let mut together = alongside(network, index);
    together.push(index);
    together.sort_by_key(|&traffic| network.traffic().rank(traffic));
    let speaks = |other: &usize| {
        let traffic = &network.scenario().traffic[*other];
        is_bulk(traffic) && matches!(*traffic.transport, Transport::Tcp(_))
    };
    let mut flows = Vec::new();
    for traffic in together.into_iter().filter(speaks) {
        let write = write.filter(|_| traffic == index);
        for number in 0..network.scenario().traffic[traffic].count.max(1) {
            flows.push(Greedy::new(network, traffic, number, write)?);
        }
    }
    let windows: Vec<medium::Window<'_>> = flows.iter().map(Greedy::under_way).collect();
    medium::fits(network, &windows)?;
    Ok(flows)
}

/// Traffic that is not greedy TCP on the same stages: a small share is left out, a large one has no formula.
fn strangers(
    network: &Network<'_>,
    index: usize,
    flows: &[Greedy<'_>],
    notes: &mut Vec<Note>,
) -> Result<(), String> {
    let used: BTreeSet<Resource> =
        flows.iter().flat_map(|flow| flow.demands.keys().copied()).collect();
    let mut light = Vec::new();
    for other in alongside(network, index) {
        let traffic = &network.scenario().traffic[other];
        let tcp = matches!(*traffic.transport, Transport::Tcp(_));
        if (is_bulk(traffic) && tcp) || !meets(network, other, &used)? {
            continue;
        }
        if is_bulk(traffic) || matches!(traffic.workload, Workload::Paced { .. }) {
            return Err(format!("TCP beside {}", traffic.name));
        }
        light.push(traffic.name.as_str());
    }
    if !light.is_empty() {
        let own = &network.scenario().traffic[index].name;
        notes.push(Note::of_traffic(
            own,
            NoteKind::Assumed,
            format!("the share of {} is left out", light.join(", ")),
        ));
    }
    Ok(())
}

fn meets(network: &Network<'_>, traffic: usize, used: &BTreeSet<Resource>) -> Result<bool, String> {
    let flows = Flow::all(network, traffic)?;
    let stages = flows.iter().flat_map(|flow| flow.there.way.stages.iter());
    Ok(stages.into_iter().any(|stage| used.contains(&stage.resource)))
}
