//! What closed formulas say of TCP on a scenario's paths: greedy connections and their shares, transfers,
//! messages and their answers.

mod beginning;
mod bulk;
mod cautions;
mod company;
mod connection;
mod crowd;
mod early;
mod first;
mod flow;
mod growing;
mod message;
mod meter;
mod rivals;
mod share;
mod times;

pub(crate) use beginning::Joins;
pub(crate) use connection::Connection;
pub(crate) use flow::writes_of;
pub(crate) use rivals::Rivals;

use crate::engine::Found;
use crate::flow::Flow;
use crate::known::Known;
use crate::way::Resource;
use flow::Greedy;
use share::{Regime, Share};
use std::collections::BTreeSet;
use trunkline_core::Span;
use trunkline_engine::{Note, NoteKind};
use trunkline_scenario::{Network, Reply, Workload};

/// The predictions of traffic number `index`, which speaks TCP.
///
/// # Errors
/// Why no formula covers it.
pub(crate) fn predict(
    known: &Known<'_>,
    (index, joins): (usize, Joins),
    found: &mut Found,
    notes: &mut Vec<Note>,
) -> Result<(), String> {
    let list = &mut found.list;
    let traffic = &known.network.scenario().traffic[index];
    match &traffic.workload {
        Workload::Interactive { sizes, reply, .. } => {
            let answer = |size: u32| match reply {
                Reply::Echo => size,
                Reply::Bytes(bytes) => *bytes,
            };
            message::predict(known, index, sizes, answer, list, notes)
        }
        Workload::TimedEcho { sizes, .. } => {
            message::predict(known, index, sizes, |size| size, list, notes)
        }
        Workload::Paced { .. } => Err("datagrams over TCP".into()),
        _ => transfers(known, (index, joins), found, notes),
    }
}

fn transfers(
    known: &Known<'_>,
    (index, joins): (usize, Joins),
    found: &mut Found,
    notes: &mut Vec<Note>,
) -> Result<(), String> {
    let network = known.network;
    let name = &network.scenario().traffic[index].name;
    let assumed = |text| Note::of_traffic(name, NoteKind::Assumed, text);
    let mut list = Vec::new();
    for write in writes_of(&network.scenario().traffic[index].workload) {
        let rivals = known.rivals_writing(index, write);
        let rivals = rivals.as_ref().as_ref().map_err(String::clone)?;
        if list.is_empty() {
            let light = rivals.strangers.clone()?;
            let left_out = (!light.is_empty()).then(|| light.join(", "));
            notes.extend(left_out.map(|it| assumed(format!("the share of {it} is left out"))));
            notes.extend(rivals.unequal.clone().map(assumed));
        }
        let shares = rivals.shares.as_ref().map_err(String::clone)?;
        let Some(first) = rivals.flows.first_of(index) else { continue };
        let own = bulk::Own { index, first, joins };
        bulk::predict(network, own, (&rivals.flows, shares), &mut list, notes);
        found.fills = fills(&rivals.flows[first], &shares[first]);
    }
    found.list.append(&mut list);
    Ok(())
}

/// Round trips of slow start (a choice: it doubles a window with each).
const GROWN: u64 = 10;

/// After how long a connection and those like it have filled the queue that they keep. Slow start does it, but if
/// HyStart ends that before: then the window's growth, which has half of a saw-tooth behind it when the queue is as long as in
/// the mean.
fn fills(flow: &Greedy<'_>, share: &Share) -> Option<Span> {
    let slow_start = flow.round_trip.scaled(GROWN, 1);
    match share.regime {
        Regime::Window | Regime::Stage(_) => None,
        Regime::Overflow(..) if flow.tcp.has_hystart() => {
            share.saw.map(|saw| saw.lasts.scaled(1, 2).max(slow_start))
        }
        Regime::Standing(_) | Regime::Loss | Regime::Overflow(..) => Some(slow_start),
    }
}

fn meets(network: &Network<'_>, traffic: usize, used: &BTreeSet<Resource>) -> Result<bool, String> {
    let flows = Flow::all(network, traffic)?;
    let stages = flows.iter().flat_map(|flow| flow.there.way.stages.iter());
    Ok(stages.into_iter().any(|stage| !stage.is_free() && used.contains(&stage.resource)))
}
