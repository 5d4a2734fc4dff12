//! What datagrams that come faster than a line carries leave in its queue: it is still there when they have ended.

use crate::engine::Found;
use crate::flow::Flow;
use crate::group::{line, stage_name};
use crate::throughput::Throughput;
use crate::way::{Resource, Stage};
use trunkline_core::Span;
use trunkline_engine::{Note, NoteKind};
use trunkline_path::{Sharing, Standing};
use trunkline_scenario::{Network, Workload};

/// Tells the other traffics of a line what is left out of their figures.
pub(super) fn told(network: &Network<'_>, found: &mut [Found]) {
    for index in 0..found.len() {
        let Ok(flow) = Flow::new(network, index, 0) else { continue };
        for stage in &flow.there.way.stages {
            let Some(waits) = left(network, &flow, stage) else { continue };
            for (other, others) in found.iter_mut().enumerate().filter(|(other, _)| *other != index)
            {
                if !others.list.is_empty() && crosses(network, other, stage.resource) {
                    others.notes.push(note(network, (index, other), stage.resource, waits));
                }
            }
        }
    }
}

fn note(
    network: &Network<'_>,
    (index, other): (usize, usize),
    resource: Resource,
    waits: Span,
) -> Note {
    let name = |of: usize| &network.scenario().traffic[of].name;
    let text = format!(
        "{} comes faster than {} carries: what it leaves in the queue there, a wait of up to {} at its end, is left out",
        name(index),
        stage_name(network, resource),
        waits.rounded()
    );
    Note::of_traffic(name(other), NoteKind::Assumed, text)
}

/// How long the queue is that a flow's traffic leaves at a line that treats all alike; `None` if it leaves none.
fn left(network: &Network<'_>, flow: &Flow<'_>, stage: &Stage) -> Option<Span> {
    let traffic = &network.scenario().traffic[flow.traffic];
    let Workload::Paced { size, rate, duration } = traffic.workload else { return None };
    let Resource::Line(link, reversed) = stage.resource else { return None };
    let spec = line(network, link, reversed);
    let assumed = spec.discipline.assumptions();
    if assumed.sharing != Sharing::Arrival || matches!(assumed.standing, Standing::Delay(_)) {
        return None;
    }
    let packets = flow.there.speech.packets(size);
    let (busy, bytes) = (stage.busy(&packets), packets.iter().map(|it| u64::from(it.bytes)).sum());
    let apart = Throughput::from(rate).time_for(size.into()).scaled(1, traffic.count.max(1).into());
    let duration = duration.min(network.scenario().stop_after);
    let carrying = duration.scaled(busy.as_nanos(), apart.as_nanos().max(1));
    let most = spec.discipline.limit().most_bytes(packets.first()?.bytes);
    let room = busy.scaled(most, u64::max(bytes, 1));
    let waits = carrying.saturating_sub(duration).min(room);
    (waits > busy).then_some(waits)
}

/// Whether a traffic, or its answers, pass a line.
fn crosses(network: &Network<'_>, traffic: usize, resource: Resource) -> bool {
    let ways = |flow: Flow<'_>| {
        let both = flow.there.way.stages.iter().chain(&flow.back.way.stages);
        both.into_iter().any(|stage| stage.resource == resource)
    };
    Flow::new(network, traffic, 0).is_ok_and(ways)
}
