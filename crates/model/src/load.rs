//! The delay that transfers on the same lines add to a message.

use crate::flow::Flow;
use crate::formula::general::bit_time;
use crate::group::{Group, line, stage_name};
use crate::way::{Resource, Turns, Way};
use std::collections::BTreeSet;
use trunkline_core::{Channel, Span};
use trunkline_path::{Framer, LinkSpec, Piece, Sharing};
use trunkline_scenario::Network;

/// A flow as it finds the lines.
#[derive(Debug)]
pub(crate) enum Loaded<'a> {
    /// It shares nothing with the transfers.
    Free,
    /// Behind standing queues of known length.
    Queued(Flow<'a>),
    /// Behind at most so much.
    AtMost(Flow<'a>),
}

/// `flow` beside the transfers of `group`.
///
/// # Errors
/// Why no formula covers it.
pub(crate) fn beside<'a>(
    network: &Network<'_>,
    flow: &Flow<'a>,
    group: &Group<'_>,
) -> Result<Loaded<'a>, String> {
    let shared = shared_stages(flow, group);
    if shared.is_empty() {
        return Ok(Loaded::Free);
    }
    let name = |resource: &Resource| stage_name(network, *resource);
    if let Some(host) = shared.iter().find(|r| is_host(**r)) {
        return Err(format!("waiting for transfers at {}", name(host)));
    }
    let mut loaded = flow.clone();
    let (mut queued, mut bounded) = (false, false);
    for &resource in &shared {
        let Resource::Line(link, reversed) = resource else { continue };
        let spec = line(network, link, reversed);
        match in_turns(spec, group, resource) {
            Some((buffer, turns)) => {
                bounded = true;
                delay(&mut loaded, resource, buffer, Some(turns));
            }
            None => queued |= fifo(network, group, resource, &mut loaded)?,
        }
    }
    match (queued, bounded) {
        (_, true) => Ok(Loaded::AtMost(loaded)),
        (true, false) => Ok(Loaded::Queued(loaded)),
        (false, false) => Err(unsaturated(network, &shared, group)),
    }
}

/// The stages of both directions of which the transfers ask something.
fn shared_stages(flow: &Flow<'_>, group: &Group<'_>) -> BTreeSet<Resource> {
    let hosts = [flow.there.from.1, flow.there.to.1].map(Resource::Processor);
    let boards = [flow.there.from.1, flow.there.to.1].map(Resource::Board);
    let ways = flow.there.way.stages.iter().chain(&flow.back.way.stages);
    let own = flow.there.demands(1).into_keys().chain(flow.back.demands(1).into_keys());
    let all = ways.map(|stage| stage.resource).chain(hosts).chain(boards);
    let busy: BTreeSet<Resource> = own.collect();
    all.filter(|resource| busy.contains(resource) && group.uses(*resource)).collect()
}

fn is_host(resource: Resource) -> bool {
    matches!(resource, Resource::Processor(_) | Resource::Board(_) | Resource::BoardIn(_))
}

/// Adds the standing queue of a full FIFO. Says whether there is one.
fn fifo(
    network: &Network<'_>,
    group: &Group<'_>,
    resource: Resource,
    loaded: &mut Flow<'_>,
) -> Result<bool, String> {
    let Resource::Line(link, reversed) = resource else { return Ok(false) };
    let full = (0..group.flows.len()).find(|&index| group.full_line(index) == Some(resource));
    let Some(_) = full else { return Ok(false) };
    if !line(network, link, reversed).discipline.is_fifo() {
        return Err(format!("the discipline of the full line {}", stage_name(network, resource)));
    }
    let standing = group.standing(network, resource).filter(|standing| standing.queued > 0);
    let Some(standing) = standing else { return Ok(false) };
    delay(loaded, resource, standing.time, None);
    Ok(true)
}

/// Under round robin: the trunk board's fifos, taken as full, and the turns of the transfers' channels.
fn in_turns(spec: &LinkSpec, group: &Group<'_>, resource: Resource) -> Option<(Span, Turns)> {
    let Sharing::Rounds { quantum } = spec.discipline.assumptions().sharing else { return None };
    let rate = spec.rate?;
    let others = group.across(resource).len() as u64;
    if others == 0 {
        return None;
    }
    let bits = |bytes: u32| {
        let piece = Piece { channel: Channel(0), bytes, controls: 0, last: true };
        Framer::new(spec.framing).line_bits(piece, false)
    };
    let time = bit_time(bits(quantum), rate, spec.framing);
    let buffer = time.scaled(spec.output_buffer.bytes(), u64::from(quantum.max(1)));
    // Hawley's bound (§2.2) counts a full input fifo before it as well.
    let input = spec.processor.map_or(Span::ZERO, |board| {
        let picos = board.input_fifo.bytes().saturating_mul(board.input_per_byte.as_picos());
        Span::from_nanos(picos / 1_000)
    });
    Some((buffer + input, Turns { others, quantum, time }))
}

/// Puts a wait on a stage, wherever the flow meets it.
fn delay(flow: &mut Flow<'_>, resource: Resource, queue: Span, turns: Option<Turns>) {
    let ways: [&mut Way; 4] =
        [&mut flow.there.way, &mut flow.there.back, &mut flow.back.way, &mut flow.back.back];
    for stage in ways.into_iter().flat_map(|way| &mut way.stages) {
        if stage.resource == resource {
            (stage.queue, stage.turns) = (queue, turns);
        }
    }
}

fn unsaturated(network: &Network<'_>, shared: &BTreeSet<Resource>, group: &Group<'_>) -> String {
    let fullest = shared.iter().map(|r| (group.busy(*r), *r)).max();
    let (busy, stage) = fullest.unwrap_or((0, Resource::Backplane(0)));
    format!(
        "waiting behind bursts of transfers that leave no standing queue ({} is {}.{} % busy)",
        stage_name(network, stage),
        busy / 10_000,
        busy % 10_000 / 1_000
    )
}
