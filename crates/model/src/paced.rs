//! Datagrams at a constant rate.

use crate::flow::{Flow, alongside};
use crate::formula::general::{batch_wait, paced_wait, utilisation_ppm};
use crate::group::stage_name;
use crate::medium;
use crate::message::{Terms, one_way};
use crate::prediction::{Figure, Prediction, Term, What};
use crate::throughput::Throughput;
use crate::way::Resource;
use std::collections::BTreeSet;
use trunkline_core::{Cause, Rate, Span};
use trunkline_engine::Note;
use trunkline_scenario::{Network, Traffic};

const DD1: (&str, &str) =
    ("utilisation = flows × service time / interval", "D/D/1: constant arrivals, constant service");

/// The delay of datagrams of `size` bytes at `rate`, and how busy they keep the way.
///
/// # Errors
/// Why no formula covers them.
pub(crate) fn predict(
    network: &Network<'_>,
    index: usize,
    (size, rate, duration): (u32, Rate, Span),
    list: &mut Vec<Prediction>,
    notes: &mut Vec<Note>,
) -> Result<(), String> {
    let traffic = &network.scenario().traffic[index];
    let flows = Flow::all(network, index)?;
    for flow in &flows {
        flow.uncovered(network).map_or(Ok(()), Err)?;
    }
    let interval = Throughput::from(rate).time_for(u64::from(size));
    if let Some(channel) = flows[0].channel() {
        let paced = medium::Paced { network, index, size, interval, duration };
        return medium::paced(paced, &flows, channel, list, notes);
    }
    let (service, resource) = busiest(&flows[0], size);
    let count = flows.len() as u64;
    let busy = utilisation_ppm(service.scaled(count, 1), interval);
    let make = |what, value, terms| Prediction {
        traffic: traffic.name.clone(),
        size: u64::from(size),
        what,
        value,
        terms,
    };
    let place = stage_name(network, resource);
    let term = Term {
        name: "the busiest stage".into(),
        place: place.clone(),
        cause: None,
        formula: DD1.0,
        numbers: format!("{count} × {service} / {interval}"),
        value: Figure::Share(busy),
        source: DD1.1,
    };
    list.push(make(What::Utilisation, Figure::Share(busy), vec![term]));
    accompanied(network, index, &flows)?;
    if paced_wait(service.scaled(count, 1), interval).is_none() {
        return Err(format!("overload: {place} is asked for more than it can carry"));
    }
    window_suffices(&flows[0], size, interval)?;
    let wait = collisions(traffic, count, service, interval)?
        + in_pieces(&flows[0], size, (count, service, resource), traffic);
    let mut terms = Terms::default();
    one_way(&mut terms, &flows[0].there, size);
    let numbers = format!("({count} − 1)/2 × {service}, or longer in pieces");
    let name = ("behind datagrams of the same instant", "(n − 1)/2 × service time", DD1.1);
    terms.add(name, &place, Cause::Queue, wait, numbers);
    list.push(make(What::Delay, Figure::Time(terms.total()), terms.0));
    Ok(())
}

/// The longest service on the way.
fn busiest(flow: &Flow<'_>, size: u32) -> (Span, Resource) {
    let demands = flow.there.demands_alone(size);
    let longest = demands.into_iter().max_by_key(|&(_, span)| span);
    longest.map_or((Span::ZERO, flow.there.way.stages[0].resource), |(r, span)| (span, r))
}

/// Fails if anything else is on the same stages.
fn accompanied(network: &Network<'_>, index: usize, flows: &[Flow<'_>]) -> Result<(), String> {
    let stages = |flow: &Flow<'_>| -> BTreeSet<Resource> {
        flow.there.way.stages.iter().map(|stage| stage.resource).collect()
    };
    let own: BTreeSet<Resource> = flows.iter().flat_map(stages).collect();
    for other in alongside(network, index) {
        let meets = |flow: &Flow<'_>| stages(flow).intersection(&own).next().is_some();
        if Flow::all(network, other)?.iter().any(meets) {
            return Err(format!(
                "other traffic on the same lines ({})",
                network.scenario().traffic[other].name
            ));
        }
    }
    Ok(())
}

/// Whether, with a window, answers come soon enough to keep the pace.
fn window_suffices(flow: &Flow<'_>, size: u32, interval: Span) -> Result<(), String> {
    let talk = &flow.there;
    let Some(outstanding) = talk.speech.outstanding else { return Ok(()) };
    let sizes = talk.speech.requests(size, &talk.from.0.interface.split);
    let answers: Span = sizes.iter().flatten().map(|&data| talk.block(data).answered).sum();
    let sustained = answers.scaled(1, u64::from(outstanding)) <= interval;
    sustained.then_some(()).ok_or_else(|| "a window too small for the pace".to_string())
}

/// What datagrams of the same instant wait besides if a line sends them in turn piece by piece: each waits for all pieces of
/// the others but the last ones, of which it waits for half in the mean.
fn in_pieces(
    flow: &Flow<'_>,
    size: u32,
    (count, service, resource): (u64, Span, Resource),
    traffic: &Traffic,
) -> Span {
    let stage = flow.there.way.stages.iter().find(|stage| stage.resource == resource);
    let bytes = flow.there.speech.packets(size).iter().map(|packet| packet.bytes).sum::<u32>();
    let cut = stage.and_then(|stage| stage.cut).filter(|&cut| cut < bytes);
    match cut {
        Some(cut) if traffic.stagger.is_zero() => {
            let last = (bytes - 1) % cut.max(1) + 1;
            let before = service.scaled(u64::from(bytes - last), u64::from(bytes));
            before.scaled(count - 1, 2)
        }
        _ => Span::ZERO,
    }
}

/// The mean wait of one flow's datagrams behind those of the others.
fn collisions(
    traffic: &Traffic,
    count: u64,
    service: Span,
    interval: Span,
) -> Result<Span, String> {
    let apart = traffic.stagger;
    let clear = apart.scaled(count - 1, 1) + service <= interval;
    match count {
        1 => Ok(Span::ZERO),
        _ if apart.is_zero() => Ok(batch_wait(count, service)),
        _ if apart >= service && clear => Ok(Span::ZERO),
        _ => Err(format!("the phases of {count} paced flows {apart} apart")),
    }
}
