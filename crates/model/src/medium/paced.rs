//! Datagrams at a constant rate over a shared channel.

use super::course::datagram;
use super::{Channel, name};
use crate::flow::Flow;
use crate::formula::general::utilisation_ppm;
use crate::group::stage_name;
use crate::prediction::{Figure, Prediction, Term, What};
use crate::throughput::Throughput;
use crate::way::Resource;
use trunkline_core::{Span, Time};
use trunkline_engine::{Note, NoteKind};
use trunkline_path::medium::Ask;
use trunkline_scenario::{Network, Traffic};

/// Datagrams of one size of a traffic, one in each interval.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paced<'a> {
    pub traffic: &'a Traffic,
    pub size: u32,
    pub interval: Span,
    /// For how long.
    pub duration: Span,
}

/// The figures of datagrams that have a shared channel to themselves.
///
/// # Errors
/// Why no formula covers them.
pub(crate) fn predict(
    network: &Network<'_>,
    flow: &Flow<'_>,
    (resource, channel): (Resource, Channel),
    paced: Paced<'_>,
    list: &mut Vec<Prediction>,
    notes: &mut Vec<Note>,
) -> Result<(), String> {
    let Paced { traffic, size, interval, .. } = paced;
    let packet = flow.there.speech.packets(size)[0];
    let ask = channel.ask(Time::ZERO, packet);
    let saturated = channel.alone.saturated(&[ask])?;
    let service = Span::from_nanos(
        (saturated.cycle.as_nanos() as f64 / saturated.frames[0].max(1e-9)) as u64,
    );
    let demands = flow.there.demands_alone(size).into_iter().filter(|&(r, _)| r != resource);
    let (busiest, longest) = demands
        .chain([(resource, service)])
        .max_by_key(|&(_, span)| span)
        .unwrap_or((resource, service));
    let busy = utilisation_ppm(longest, interval);
    let place = stage_name(network, busiest);
    let (formula, source) = match busiest == resource {
        true => (saturated.formula, saturated.source),
        false => {
            ("utilisation = service time / interval", "D/D/1: constant arrivals, constant service")
        }
    };
    let term = Term {
        name: "the busiest stage".into(),
        place: place.clone(),
        cause: None,
        formula,
        numbers: format!("{longest} for a datagram / {interval}"),
        value: Figure::Share(busy),
        source,
    };
    let make = |what, value, terms| Prediction {
        traffic: traffic.name.clone(),
        size: u64::from(size),
        what,
        value,
        terms,
    };
    list.push(make(What::Utilisation, Figure::Share(busy), vec![term]));
    if longest > interval {
        let rate = Throughput::over(size.into(), longest);
        let term = Term {
            name: "the busiest stage".into(),
            place: place.clone(),
            cause: None,
            formula,
            numbers: format!("{size} bytes / {longest}"),
            value: Figure::Rate(rate),
            source,
        };
        list.push(make(What::Throughput, Figure::Rate(rate), vec![term]));
        let text = saturated.estimate.filter(|_| busiest == resource);
        notes.extend(text.map(|text| Note::of_traffic(&traffic.name, NoteKind::Assumed, text)));
        return Err(format!("the delay in overload: {place} is asked for more than it can carry"));
    }
    let clear = channel.alone.clear(ask);
    let terms = datagram(&flow.there, size)?;
    let total = terms.total();
    if clear > interval {
        let name = name_of(network, resource);
        return Err(format!(
            "the wait on {name} for frames {interval} apart, of which not each finds it idle ({clear})"
        ));
    }
    list.push(make(What::Delay, Figure::Time(total), terms.0));
    notes.extend(regular(&channel, ask, paced, total));
    Ok(())
}

fn name_of(network: &Network<'_>, resource: Resource) -> String {
    match resource {
        Resource::Medium(number) => name(network, number),
        _ => stage_name(network, resource),
    }
}

/// The share of a delay from which on a range is told.
const TOLD: u64 = 200;

/// A note if the regular instants of the datagrams may leave their mean wait for turns away from the mean over all phases.
fn regular(channel: &Channel, ask: Ask, paced: Paced<'_>, total: Span) -> Option<Note> {
    let phase = channel.alone.phase();
    let rule = channel.alone.rule()?;
    let spread = spread(channel, ask, paced)?;
    (spread > total.scaled(1, TOLD)).then(|| {
        let (least, most) = (total.saturating_sub(spread), total + spread);
        let text = format!(
            "datagrams at regular intervals meet only some phases of the medium: of the wait {}, 0 to {phase}, half is counted; the mean delay is between {least} and {most}",
            rule.name
        );
        Note::of_traffic(&paced.traffic.name, NoteKind::Assumed, text)
    })
}

/// How far the mean of the waits may be from half a phase. Each wait is by a constant step, modulo the phase, longer than the
/// one before. If q steps come near p phases, without a common divisor, q waits in turn lie about evenly.
fn spread(channel: &Channel, ask: Ask, paced: Paced<'_>) -> Option<Span> {
    let phase = channel.alone.phase().as_nanos() as f64;
    if phase == 0.0 {
        return Some(Span::ZERO);
    }
    let first = channel.alone.turn(None, ask).ok()?;
    let next = Ask { ready: ask.ready + paced.interval, ..ask };
    let second = channel.alone.turn(Some(first), next).ok()?;
    let later = second.start.since(next.ready).as_nanos() as f64;
    let step = (later - first.start.since(ask.ready).as_nanos() as f64).rem_euclid(phase);
    let count = (paced.duration.as_secs_f64() / paced.interval.as_secs_f64()).ceil().max(1.0);
    let most = count.min(10_000.0) as u64;
    let of = |q: u64| {
        let turns = (q as f64 * step / phase).round();
        let apart = (q as f64 * step - turns * phase).abs();
        let lowest = gcd(q, turns as u64) == 1;
        lowest.then_some(phase / q as f64 + apart + q as f64 * phase / (2.0 * count))
    };
    let least = (1..=most).filter_map(of).fold(phase / 2.0, f64::min);
    Some(Span::from_nanos(least as u64))
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
