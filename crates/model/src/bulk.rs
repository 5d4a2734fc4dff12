//! The figures of transfers over windows: what each takes in the long run and as a whole, the queue that they leave standing,
//! and what is told with them.

use crate::engine::prediction;
use crate::flow::{alongside, is_bulk};
use crate::group::{Group, writes};
use crate::known::Known;
use crate::medium;
use crate::prediction::{Figure, Prediction, Term, What};
use crate::serial;
use crate::share::{Grant, Limit};
use crate::slots;
use crate::throughput::Throughput;
use crate::transfer::{interval_terms, limit_terms, own_work, whole, whole_terms};
use crate::way::{Resource, line_name};
use trunkline_core::Span;
use trunkline_engine::{Note, NoteKind};
use trunkline_scenario::{Network, Traffic, Workload};
use trunkline_transport::WAITING;

/// The figures of a traffic's transfers, for each size of its writes.
///
/// # Errors
/// Why no formula covers them.
pub(crate) fn predict(
    known: &Known<'_>,
    index: usize,
    list: &mut Vec<Prediction>,
    notes: &mut Vec<Note>,
) -> Result<(), String> {
    let network = known.network;
    let traffic = &network.scenario().traffic[index];
    let others = alongside(network, index);
    paced_beside(network, &others)?;
    let light = others.iter().filter(|&&other| !is_bulk(&network.scenario().traffic[other]));
    let light: Vec<&str> = light.map(|&o| network.scenario().traffic[o].name.as_str()).collect();
    if !light.is_empty() {
        notes.push(Note::of_traffic(
            &traffic.name,
            NoteKind::Assumed,
            format!("the share of {} is left out", light.join(", ")),
        ));
    }
    for write in writes(&traffic.workload).0 {
        let group = known.group_writing(index, write);
        transfer(network, index, group.as_ref().as_ref().map_err(String::clone)?, list, notes);
    }
    Ok(())
}

fn paced_beside(network: &Network<'_>, others: &[usize]) -> Result<(), String> {
    let paced = |index: &&usize| {
        matches!(network.scenario().traffic[**index].workload, Workload::Paced { .. })
    };
    match others.iter().find(paced) {
        Some(&other) => Err(format!("transfers beside {}", network.scenario().traffic[other].name)),
        None => Ok(()),
    }
}

/// The figures of one traffic's transfers with writes of one size.
fn transfer(
    network: &Network<'_>,
    index: usize,
    group: &Group<'_>,
    list: &mut Vec<Prediction>,
    notes: &mut Vec<Note>,
) {
    let traffic = &network.scenario().traffic[index];
    let Some(first) = group.flows.iter().position(|flow| flow.traffic == index) else { return };
    let (flow, cycle, grant) = (&group.flows[first], &group.cycles[first], group.grants[first]);
    if grant.cycle.is_zero() {
        notes.push(Note::of_traffic(
            &traffic.name,
            NoteKind::NotCovered,
            "nothing in the scenario limits its rate",
        ));
        return;
    }
    let (own, served) = match serial::unheard(traffic, &flow.there) {
        true => group.without(first, Resource::Processor(flow.there.to.1)),
        false => (cycle.clone(), grant),
    };
    // What a greedy flow has is what comes, read or not.
    let greedy = traffic.workload.is_greedy();
    let (cycle, grant) = if greedy { (&own, served) } else { (cycle, grant) };
    let rate = Throughput::over(cycle.claim.bytes, grant.cycle);
    let (what, size, terms) = match (whole(&traffic.workload), &traffic.workload) {
        (Some(whole), _) => {
            let (slowest, _) = own_work(&flow.there, cycle, grant);
            let others = in_step(traffic, index, group, slowest);
            let terms = whole_terms((&flow.there, &flow.back), cycle, grant, (&whole, others));
            (What::Transfer, whole.bytes, terms)
        }
        (None, Workload::Greedy { interval, .. }) => {
            let terms = interval_terms(&flow.there, cycle, grant).lasting(*interval);
            (What::Amount, rate.bytes_in(*interval), terms)
        }
        _ => (What::Interval, cycle.claim.bytes, interval_terms(&flow.there, &own, served)),
    };
    let total = terms.total();
    list.push(prediction(traffic, size, what, Figure::Time(total), terms.0));
    let limits = limit_terms(&flow.there, cycle);
    list.push(prediction(traffic, size, What::Throughput, Figure::Rate(rate), limits));
    notes.extend(unconfirmed(traffic));
    if total > network.scenario().stop_after {
        notes.push(Note::of_traffic(
            &traffic.name,
            NoteKind::Unfinished,
            format!("{total} exceed the scenario's latest end, {}", network.scenario().stop_after),
        ));
    }
    notes.extend(crowding(network, group, first));
    notes.extend(medium::ends_note(traffic, flow, (cycle.block, flow.there.speech.answer), total));
    let held = WAITING + group.under_way(first).unwrap_or(0);
    notes.extend(short_test(traffic, held, cycle.claim.bytes, served.cycle));
    notes.extend(serial::note(network, group, first, (&own, served, total)));
    notes.extend(slots::of_transfer(traffic, flow, (cycle, grant, total)));
    standing(network, index, group, grant, list, notes);
}

/// The other flows of a traffic that begin with its first one and meet it at a stage.
fn in_step(traffic: &Traffic, index: usize, group: &Group<'_>, stage: Resource) -> u64 {
    if !traffic.stagger.is_zero() {
        return 0;
    }
    let both = group.flows.iter().zip(&group.cycles);
    let meet = both
        .filter(|(flow, cycle)| flow.traffic == index && cycle.claim.demands.contains_key(&stage));
    (meet.count() as u64).saturating_sub(1)
}

/// A note if a transfer is timed to its last write's return, which the formulas do not know.
pub(crate) fn unconfirmed(traffic: &Traffic) -> Option<Note> {
    let text = "ends with its last byte; the last write returns sooner by what the host holds back";
    let timed = matches!(traffic.workload, Workload::Bulk { confirm: false, .. });
    timed.then(|| Note::of_traffic(&traffic.name, NoteKind::Assumed, text))
}

/// Notes on what windows of several flows do to answers and queues on their way.
fn crowding(network: &Network<'_>, group: &Group<'_>, first: usize) -> Vec<Note> {
    let (flow, cycle) = (&group.flows[first], &group.cycles[first]);
    let queue = match group.grants[first].limit {
        Limit::Stage(resource, flows) if flows > 1 => group.standing(network, resource),
        _ => None,
    };
    let queue = queue.map_or(Span::ZERO, |standing| standing.time);
    let early = flow.there.asks_early(cycle.block, queue, "the throughput is an upper bound");
    let traffic = &network.scenario().traffic[flow.traffic].name;
    let texts = early.into_iter().chain(group.left_out(network, first));
    texts.map(|text| Note::of_traffic(traffic, NoteKind::Assumed, text)).collect()
}

/// The share by which a test may be too short for the long run without a word.
const SHORT: f64 = 0.02;

/// Writes return before the far end has them: in a test of a stated time the host takes `held` bytes more than the long
/// run says.
pub(crate) fn short_test(traffic: &Traffic, held: u64, write: u64, cycle: Span) -> Option<Note> {
    let Workload::TimedTransfer { duration, .. } = traffic.workload else { return None };
    let writes = duration.as_secs_f64() / cycle.as_secs_f64();
    let early = held as f64 / write.max(1) as f64;
    let share = early / (writes + early);
    let text = format!(
        "the test is short: up to {:.0} % of its writes return sooner, for the host still holds {held} bytes at its end",
        100.0 * share
    );
    (share > SHORT).then(|| Note::of_traffic(&traffic.name, NoteKind::Assumed, text))
}

/// The queue before the line that limits a transfer.
fn standing(
    network: &Network<'_>,
    index: usize,
    group: &Group<'_>,
    grant: Grant,
    list: &mut Vec<Prediction>,
    notes: &mut Vec<Note>,
) {
    let traffic = &network.scenario().traffic[index];
    let Limit::Stage(resource, flows) = grant.limit else { return };
    let Some(standing) = group.standing(network, resource) else { return };
    let Resource::Line(link, reversed) = resource else { return };
    let place = line_name(network, link, reversed);
    if flows > 1 {
        notes.push(Note::of_traffic(&traffic.name, NoteKind::Assumed, format!("{flows} flows share {place} equally; each block, or quantum, is taken to have trunk frames of its own")));
    }
    let term = Term {
        name: "standing queue".into(),
        place,
        cause: None,
        formula: "(Σ windows − rate × answer time without queue and line) / rate",
        numbers: format!(
            "{} bytes = {} − {} × {}, at {}",
            standing.queued, standing.windows, standing.drain, standing.answered, standing.drain
        ),
        value: Figure::Time(standing.time),
        source: "Hawley 1989 §4.3.2.1",
    };
    let value = Figure::Time(standing.time);
    list.push(prediction(traffic, standing.windows, What::StandingQueue, value, vec![term]));
}
