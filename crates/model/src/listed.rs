//! Transfers by protocols of the list: each brings its textbook formula, this room the path's figures for it.

use crate::engine::short_test;
use crate::flow::{Flow, alongside, is_bulk};
use crate::group::{self, stage_name, writes};
use crate::message::{Terms, one_way};
use crate::prediction::{Figure, Prediction, Term, What};
use crate::speech::Packet;
use crate::talk::{TOGETHER, Talk, window_place};
use crate::throughput::{SECOND, Throughput};
use crate::way::{Resource, line, line_name};
use std::collections::{BTreeMap, BTreeSet};
use trunkline_core::{Cause, Span};
use trunkline_engine::{Note, NoteKind};
use trunkline_path::Standing;
use trunkline_path::impairment::LossModel;
use trunkline_scenario::{Crossing, Listed, Network, Traffic, Workload};
use trunkline_transport::WAITING;
use trunkline_transport::protocol::{Circumstances, Formula, Shape};

/// User bytes by which the receiver confirms a transfer.
const CONFIRMATION: u32 = 4;

/// The greatest rate over the least from which on it is told that waits for slots decide.
const TOLD: f64 = 1.01;

/// The figures of traffic number `index`, which speaks `listed`.
///
/// # Errors
/// Why no formula covers it.
pub(crate) fn predict(
    network: &Network<'_>,
    index: usize,
    listed: &Listed,
    list: &mut Vec<Prediction>,
    notes: &mut Vec<Note>,
) -> Result<(), String> {
    let traffic = &network.scenario().traffic[index];
    let name = listed.entry.name;
    covered(traffic, name)?;
    let shape = (listed.entry.shape)(&listed.values);
    fills_units(&traffic.workload, shape, name)?;
    let flow = Flow::new(network, index, 0)?;
    flow.uncovered_but_loss(network).map_or(Ok(()), Err)?;
    if flow.there.from.0.interface.requests.is_some() {
        return Err(format!("{name} behind an interface with a limit on requests"));
    }
    alone(network, index, &flow)?;
    let path = circumstances(network, &flow, &traffic.workload, shape);
    let path = read_together(listed, &flow, path)?;
    let formula = (listed.entry.formula)(&listed.values, &path)?;
    notes.extend(
        slots(listed, &flow, &path)
            .map(|text| Note::of_traffic(&traffic.name, NoteKind::Assumed, text)),
    );
    crowded(network, &flow, shape, formula.together).map_or(Ok(()), Err)?;
    let assumed =
        formula.assumes.map(|text| Note::of_traffic(&traffic.name, NoteKind::Assumed, text));
    notes.extend(assumed);
    let millibytes = f64::from(shape.unit) * 1e12 / formula.interval.max(1e-9);
    let rate = Throughput::from_millibytes_per_second(millibytes as u64);
    let mut add = |size, what, value, terms| {
        list.push(Prediction { traffic: traffic.name.clone(), size, what, value, terms });
    };
    let term = throughput_term(network, &flow, shape, &formula, rate);
    add(size_of(traffic, shape), What::Throughput, Figure::Rate(rate), vec![term]);
    let times = match &traffic.workload {
        Workload::Bulk { bytes, .. } if listed.entry.connects_for_each => {
            vec![opened(&flow, bytes.bytes(), shape, &formula)]
        }
        Workload::Bulk { bytes, .. } => vec![confirmed(&flow, bytes.bytes(), shape, &formula)],
        workload => times(workload, &flow, &formula, rate),
    };
    for (size, what, terms) in times {
        add(size, what, Figure::Time(terms.total()), terms.0);
    }
    if let Workload::TimedTransfer { sizes, .. } = &traffic.workload {
        let size = sizes.first().copied().unwrap_or(shape.unit).into();
        let held = WAITING + u64::from(shape.unit);
        notes.extend(short_test(traffic, held, size, rate.time_for(size)));
    }
    Ok(())
}

/// Transfers of one connection that are confirmed: the formulas know no others.
fn covered(traffic: &Traffic, name: &str) -> Result<(), String> {
    if !is_bulk(traffic) {
        return Err(format!("messages over {name}"));
    }
    if traffic.count > 1 {
        return Err(format!("several connections of {name}"));
    }
    match traffic.workload {
        Workload::Bulk { confirm: false, .. } => {
            Err("transfers that end when the last write returns (confirm = false)".into())
        }
        _ => Ok(()),
    }
}

/// Writes that fill their units: the formulas know units of one size.
fn fills_units(workload: &Workload, shape: Shape, name: &str) -> Result<(), String> {
    let writes = match workload {
        Workload::Greedy { write, .. } => vec![*write],
        other => writes(other).0,
    };
    match writes.into_iter().find(|write| write % shape.unit != 0) {
        None => Ok(()),
        Some(write) => Err(format!(
            "writes of {write} bytes, which do not fill the {} bytes that {name} sends at once",
            shape.unit
        )),
    }
}

/// Whether nothing else is on the way at the time.
fn alone(network: &Network<'_>, index: usize, flow: &Flow<'_>) -> Result<(), String> {
    let stages = |flow: &Flow<'_>| -> BTreeSet<Resource> {
        let stages = flow.there.way.stages.iter().chain(&flow.back.way.stages);
        stages.map(|stage| stage.resource).collect()
    };
    let own = stages(flow);
    for other in alongside(network, index) {
        let meets = |flow: &Flow<'_>| !stages(flow).is_disjoint(&own);
        if Flow::all(network, other)?.iter().any(meets) {
            return Err(format!(
                "other traffic on its way ({})",
                network.scenario().traffic[other].name
            ));
        }
    }
    Ok(())
}

fn circumstances(
    network: &Network<'_>,
    flow: &Flow<'_>,
    workload: &Workload,
    shape: Shape,
) -> Circumstances {
    let (talk, unit) = (&flow.there, shape.unit);
    let mut demands = demands(flow, shape, TOGETHER);
    let write = match workload {
        Workload::Greedy { write, .. } => *write,
        other => writes(other).0.first().copied().unwrap_or(1),
    };
    let writing = talk.writing(write).scaled(u64::from(unit) * TOGETHER, u64::from(write.max(1)));
    *demands.entry(Resource::Processor(talk.from.1)).or_default() += writing;
    let answered = talk.host_send(unit)
        + talk.board_send(unit)
        + talk.way.latency(&talk.speech.packets(unit))
        + talk.host_receive(unit)
        + talk.acknowledging()
        + flow.back.way.latency(&[answer(shape)])
        + to_slots(flow);
    let slowest = demands.into_values().max().unwrap_or_default();
    Circumstances {
        spacing: slowest.as_nanos() as f64 / TOGETHER as f64,
        answered,
        loss: loss(network, &flow.route.there),
        answer_loss: loss(network, &flow.route.back),
        units: match workload {
            Workload::Bulk { bytes, .. } | Workload::Push { bytes, .. } => {
                bytes.bytes().div_ceil(u64::from(unit))
            }
            _ => u64::MAX,
        },
    }
}

/// `path` with the system calls of a reader that takes together what may be under way, as many units as the formula
/// without them has at once.
///
/// # Errors
/// Why no formula covers it.
fn read_together(
    listed: &Listed,
    flow: &Flow<'_>,
    path: Circumstances,
) -> Result<Circumstances, String> {
    let talk = &flow.there;
    if talk.to.0.processor.read.fixed.is_zero() {
        return Ok(path);
    }
    let unit = (listed.entry.shape)(&listed.values).unit;
    let together = (listed.entry.formula)(&listed.values, &path)?.together;
    let answered = path.answered + talk.behind_reads(unit, together, path.answered);
    let busy = talk.taking(unit) - talk.to.0.processor.read.fixed + talk.calls(together);
    let spacing = path.spacing.max(busy.as_nanos() as f64);
    Ok(Circumstances { answered, spacing, ..path })
}

/// What a unit and its answer wait for slots in the mean.
fn to_slots(flow: &Flow<'_>) -> Span {
    flow.there.way.to_slots() + flow.back.way.to_slots()
}

/// A note if it counts how the slots lie: units that go round in step find each the same wait, none or a whole slot.
fn slots(listed: &Listed, flow: &Flow<'_>, path: &Circumstances) -> Option<String> {
    let (mean, unit) = (to_slots(flow), f64::from((listed.entry.shape)(&listed.values).unit));
    let of = |answered: Span| {
        let found = (listed.entry.formula)(&listed.values, &Circumstances { answered, ..*path });
        found.ok().map(|formula| unit * 1e9 / formula.interval.max(1e-9))
    };
    let most = of(path.answered.saturating_sub(mean))?;
    let range = match of(path.answered + mean) {
        Some(least) if most / least < TOLD => return None,
        Some(least) => format!("between {least:.0} and {most:.0} bytes per second"),
        None => format!("between 0 and {most:.0} bytes per second"),
    };
    Some(format!(
        "waits for slots of the lines, which depend on how these lie, are taken as half a slot each: the rate is {range}"
    ))
}

/// What `units` units and their answers ask of each stage.
fn demands(flow: &Flow<'_>, shape: Shape, units: u64) -> BTreeMap<Resource, Span> {
    flow.there.demands_with(shape.unit, units, shape.answers_each.then_some(answer(shape)))
}

fn answer(shape: Shape) -> Packet {
    Packet::acknowledgement(shape.answer)
}

/// What becomes of units that are `together` in front of the lines that are slower than all stages before, and of their
/// answers, if they do not find room or are dropped early.
fn crowded(network: &Network<'_>, flow: &Flow<'_>, shape: Shape, together: u64) -> Option<String> {
    let waiting = together.saturating_sub(1);
    let talk = &flow.there;
    let unit = Packet::plain(shape.unit + shape.header);
    let back = shape.answers_each.then_some((&flow.back.way, answer(shape)));
    let mut slowest =
        talk.host_send(shape.unit).max(talk.board_send(shape.unit)).scaled(TOGETHER, 1);
    let ways = std::iter::once((&talk.way, unit)).chain(back);
    for (stage, packet) in
        ways.flat_map(|(way, packet)| way.stages.iter().map(move |it| (it, packet)))
    {
        let busy = stage.busy_for(&[packet], TOGETHER);
        if waiting > 0 && busy > slowest {
            let drains = busy.scaled(waiting, TOGETHER);
            let why = no_room(network, stage.resource, (waiting, packet.bytes), drains);
            if why.is_some() {
                return why;
            }
        }
        slowest = slowest.max(busy);
    }
    None
}

/// The reason why not all of so many waiting packets of one size stay in the queue of a line, which takes `drains` to
/// send them.
fn no_room(
    network: &Network<'_>,
    resource: Resource,
    (waiting, size): (u64, u32),
    drains: Span,
) -> Option<String> {
    let Resource::Line(link, reversed) = resource else { return None };
    let (spec, name) = (group::line(network, link, reversed), line_name(network, link, reversed));
    let limit = spec.discipline.limit();
    if waiting.saturating_mul(limit.weight(size)) > limit.amount() {
        return Some(format!(
            "loss: {waiting} packets of {size} bytes that wait overflow the queue of {name} ({limit})"
        ));
    }
    let assumed = spec.discipline.assumptions();
    let bears = match assumed.standing {
        Standing::Delay(target) => drains <= target,
        Standing::Bytes(bytes) => waiting.saturating_mul(size.into()) <= bytes,
        Standing::Limit | Standing::Unknown => false,
    };
    let early = assumed.early.filter(|_| !bears)?;
    Some(format!("{early} at {name}, where {waiting} packets of {size} bytes wait"))
}

/// A way loses with 1 − Π(1 − p).
fn loss(network: &Network<'_>, way: &[Crossing]) -> f64 {
    let lines = way.iter().filter_map(|hop| line(network, hop));
    let arrives = lines.map(|line| match &line.spec.impairments.loss {
        LossModel::Bernoulli(chance) => 1.0 - chance.as_f64(),
        _ => 1.0,
    });
    1.0 - arrives.product::<f64>()
}

fn size_of(traffic: &Traffic, shape: Shape) -> u64 {
    match &traffic.workload {
        Workload::Bulk { bytes, .. } | Workload::Push { bytes, .. } => bytes.bytes(),
        Workload::TimedTransfer { sizes, .. } => sizes.first().map_or(0, |&size| u64::from(size)),
        _ => u64::from(shape.unit),
    }
}

/// The formula, and the share of the slowest stage that it comes to.
fn throughput_term(
    network: &Network<'_>,
    flow: &Flow<'_>,
    shape: Shape,
    formula: &Formula,
    rate: Throughput,
) -> Term {
    let slowest = demands(flow, shape, 1).into_iter().max_by_key(|&(_, span)| span);
    let busy = slowest.map(|(resource, span)| {
        let share = 100.0 * span.as_nanos() as f64 / formula.interval;
        format!("; {} is busy {share:.2} %", stage_name(network, resource))
    });
    Term {
        name: format!("{} bytes in each interval", shape.unit),
        place: String::new(),
        cause: None,
        formula: formula.text,
        numbers: format!("{}{}", formula.numbers, busy.unwrap_or_default()),
        value: Figure::Rate(rate),
        source: formula.source,
    }
}

/// The time of a transfer that is confirmed by the answer to an empty message behind it, which is a unit of its own.
fn confirmed(flow: &Flow<'_>, bytes: u64, shape: Shape, formula: &Formula) -> (u64, What, Terms) {
    let units = bytes.div_ceil(u64::from(shape.unit));
    let mut terms = before(flow, formula, until(units, formula));
    one_way(&mut terms, &flow.there, 0);
    one_way(&mut terms, &flow.back, CONFIRMATION);
    (bytes, What::Transfer, terms)
}

/// The time of a transfer that opens a connection, and is answered over another one.
fn opened(flow: &Flow<'_>, bytes: u64, shape: Shape, formula: &Formula) -> (u64, What, Terms) {
    let ahead = bytes.div_ceil(u64::from(shape.unit)).saturating_sub(1);
    let mut terms = Terms::default();
    opening(&mut terms, &flow.there, &flow.back, shape);
    terms.0.extend(before(flow, formula, until(ahead, formula)).0);
    one_way(&mut terms, &flow.there, (bytes - ahead * u64::from(shape.unit)) as u32);
    opening(&mut terms, &flow.back, &flow.there, shape);
    one_way(&mut terms, &flow.back, CONFIRMATION);
    (bytes, What::Transfer, terms)
}

/// The packet that opens a connection goes there, its answer comes back.
fn opening(terms: &mut Terms, there: &Talk<'_>, back: &Talk<'_>, shape: Shape) {
    let packet = Packet::plain(shape.header);
    let hosts = |talk: &Talk<'_>| talk.host_send(0) + talk.board_send(0) + talk.host_receive(0);
    let [forth, answer] = [there, back].map(|it| it.way.latency(&[packet]) + hosts(it));
    let name = ("opening", "OPEN there + RESPONSE back", "RFC 998, §5.1");
    let numbers = format!("{forth} + {answer}");
    terms.add(name, &window_place(there.from.0), Cause::Window, forth + answer, numbers);
}

/// The time until so many units have been sent.
fn until(units: u64, formula: &Formula) -> Span {
    let (bursts, rest) = (units / formula.burst, units % formula.burst);
    let pause = (bursts * formula.burst) as f64 * formula.interval;
    Span::from_nanos((pause + rest as f64 * formula.within) as u64)
}

/// The time until the last unit is sent.
fn before(flow: &Flow<'_>, formula: &Formula, span: Span) -> Terms {
    let mut terms = Terms::default();
    let place = window_place(flow.there.from.0);
    let name = ("units, one in each interval", formula.text, formula.source);
    terms.add(name, &place, Cause::Window, span, formula.numbers.clone());
    terms
}

/// The times that the workload would measure.
fn times(
    workload: &Workload,
    flow: &Flow<'_>,
    formula: &Formula,
    rate: Throughput,
) -> Vec<(u64, What, Terms)> {
    let waiting = |span: Span| before(flow, formula, span);
    match workload {
        Workload::TimedTransfer { sizes, .. } => {
            let interval = |&size: &u32| {
                (u64::from(size), What::Interval, waiting(rate.time_for(size.into())))
            };
            sizes.iter().map(interval).collect()
        }
        Workload::Greedy { interval, .. } => {
            let bytes = u128::from(rate.millibytes_per_second()) * u128::from(interval.as_nanos())
                / (1_000 * SECOND);
            vec![(u64::try_from(bytes).unwrap_or(u64::MAX), What::Amount, waiting(*interval))]
        }
        _ => Vec::new(),
    }
}
