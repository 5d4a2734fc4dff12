//! Transfers by protocols of the list: each brings its textbook formula, this room the path's figures for it.

use crate::bucket;
use crate::bulk::short_test;
use crate::flow::{Flow, alongside, is_bulk};
use crate::group::{self, stage_name, writes};
use crate::losses;
use crate::medium;
use crate::message::{HOSTS, Terms, behind_answers, one_way};
use crate::prediction::{Figure, Prediction, Term, What};
use crate::shaper;
use crate::slots;
use crate::speech::Packet;
use crate::talk::{TOGETHER, Talk, processor_place, window_place};
use crate::throughput::Throughput;
use crate::transfer::{CONFIRMATION, beside, filling};
use crate::units::{Course, answered};
use crate::way::{Resource, Way, burst, line, line_name};
use std::collections::BTreeMap;
use trunkline_core::{Cause, Span};
use trunkline_engine::{Note, NoteKind};
use trunkline_path::Standing;
use trunkline_path::impairment::LossModel;
use trunkline_scenario::{Crossing, Host, Listed, Network, ProtocolPlace, Traffic, Workload};
use trunkline_transport::WAITING;
use trunkline_transport::protocol::{Formula, Shape};

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
    if !gathers(listed, &traffic.workload) {
        fills_units(&traffic.workload, shape, name)?;
    }
    let flow = Flow::new(network, index, 0)?.of_transfer(network, (shape.unit, u64::MAX))?;
    let flow = bucket::sustained(network, flow);
    let taken = shaper::of_windows(network, listed, &flow, &traffic.workload)?;
    let told = |text| Note::of_traffic(&traffic.name, NoteKind::Assumed, text);
    notes.extend(taken.into_iter().map(told));
    if flow.there.from.0.interface.requests.is_some() {
        return Err(format!("{name} behind an interface with a limit on requests"));
    }
    alone(network, index, &flow)?;
    for write in writes(&traffic.workload).0 {
        let (figures, mut told) = of_write(network, traffic, (listed, &flow), write)?;
        list.extend(figures);
        told.retain(|note| !notes.contains(note));
        notes.extend(told);
    }
    Ok(())
}

/// The figures of writes of one size, and what is to be said of them.
fn of_write(
    network: &Network<'_>,
    traffic: &Traffic,
    (listed, flow): (&Listed, &Flow<'_>),
    write: u32,
) -> Result<(Vec<Prediction>, Vec<Note>), String> {
    let shape = (listed.entry.shape)(&listed.values);
    let course = Course::new(network, listed, flow, (&traffic.workload, write))?;
    let formula = &course.formula;
    let by_unit = flow.there.writing(write).scaled(shape.unit.into(), u64::from(write.max(1)));
    if by_unit.as_nanos() as f64 > WRITES_BEHIND * formula.interval {
        fills_units(&traffic.workload, shape, listed.entry.name)?;
    }
    crowded(network, flow, shape, formula.together).map_or(Ok(()), Err)?;
    let unit = shape.unit + shape.header;
    let bytes = formula.together.saturating_mul(unit.into());
    medium::fits(network, &[medium::Window { flow, bytes, packet: unit, heeds_marks: false }])?;
    let millibytes = f64::from(shape.unit) * 1e12 / formula.interval.max(1e-9);
    let rate = Throughput::from_millibytes_per_second(millibytes as u64);
    let made = |size, what, value, terms| {
        let traffic = traffic.name.clone();
        Prediction { traffic, size, what, value, terms }
    };
    let term = throughput_term(network, flow, shape, formula, rate);
    let size = size_of(&traffic.workload, shape, write);
    let mut figures = vec![made(size, What::Throughput, Figure::Rate(rate), vec![term])];
    let (size, what, terms) = match &traffic.workload {
        Workload::Bulk { bytes, .. } | Workload::Push { bytes, .. }
            if listed.entry.connects_for_each =>
        {
            opened(flow, bytes.bytes(), shape, formula)
        }
        Workload::Bulk { bytes, .. } | Workload::Push { bytes, .. } => {
            confirmed(flow, bytes.bytes(), shape, formula)
        }
        Workload::Greedy { interval, .. } => amount(flow, formula, rate, *interval),
        _ => {
            let span = rate.time_for(write.into());
            (write.into(), What::Interval, before(flow, formula, span))
        }
    };
    let total = terms.total();
    figures.push(made(size, what, Figure::Time(total), terms.0));
    let told = |text: String| Note::of_traffic(&traffic.name, NoteKind::Assumed, text);
    let mut notes = Vec::from_iter(slots::of_units(listed, flow, &course.path).map(told));
    notes.extend(formula.assumes.map(|text| told(text.into())));
    let in_buffers = listed.entry.connects_for_each.then(|| {
        // A buffer is confirmed as a whole.
        let buffer = listed.values.number("packets").max(1) * u64::from(shape.unit);
        buffers_note(flow, size.div_ceil(buffer), total)
    });
    notes.extend(in_buffers.flatten().map(told));
    notes.extend(losses::last_again(&traffic.workload, formula, total).map(told));
    notes.extend(losses::vary(listed, &course, (what, total)).map(told));
    notes.extend(medium::ends_note(traffic, flow, (shape.unit, Some(answer(shape))), total));
    notes.extend(course.range(network, traffic, (listed, flow), total));
    let held = WAITING + formula.ahead.saturating_mul(shape.unit.into());
    notes.extend(short_test(traffic, held, write.into(), rate.time_for(write.into())));
    Ok((figures, notes))
}

/// Whether writes of any size are gathered: one that opens a connection for each message fills its buffers with a transfer's.
fn gathers(listed: &Listed, workload: &Workload) -> bool {
    listed.entry.connects_for_each
        && matches!(workload, Workload::Bulk { .. } | Workload::Push { .. })
}

/// The share of a unit's time in which the host must have written one: else what is sent waits for writes.
const WRITES_BEHIND: f64 = 0.9;

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
    match writes(workload).0.into_iter().find(|write| write % shape.unit != 0) {
        None => Ok(()),
        Some(write) => Err(format!(
            "writes of {write} bytes, which do not fill the {} bytes that {name} sends at once",
            shape.unit
        )),
    }
}

/// Whether nothing else is on the way at the time.
fn alone(network: &Network<'_>, index: usize, flow: &Flow<'_>) -> Result<(), String> {
    let own = flow.waits_at();
    for other in alongside(network, index) {
        let meets = |flow: &Flow<'_>| !flow.waits_at().is_disjoint(&own);
        if Flow::all(network, other)?.iter().any(meets) {
            return Err(format!(
                "other traffic on its way ({})",
                network.scenario().traffic[other].name
            ));
        }
    }
    Ok(())
}

/// What `units` units and their answers ask of each stage.
pub(crate) fn demands(flow: &Flow<'_>, shape: Shape, units: u64) -> BTreeMap<Resource, Span> {
    flow.there.demands_with(shape.unit, units, shape.window.map(|_| answer(shape)))
}

pub(crate) fn answer(shape: Shape) -> Packet {
    Packet::acknowledgement(shape.answer)
}

/// What becomes of units that are `together` in front of the lines that are slower than all stages before, and of their
/// answers, if they do not find room or are dropped early.
fn crowded(network: &Network<'_>, flow: &Flow<'_>, shape: Shape, together: u64) -> Option<String> {
    let waiting = together.saturating_sub(1);
    let talk = &flow.there;
    let unit = Packet::plain(shape.unit + shape.header);
    let back = shape.window.map(|_| (&flow.back.way, answer(shape)));
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
pub(crate) fn no_room(
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
    // What a policer drops is a matter of its tokens, not of what waits.
    let early = assumed.early.filter(|_| !bears && assumed.cap.is_none())?;
    Some(format!("{early} at {name}, where {waiting} packets of {size} bytes wait"))
}

/// A way loses with 1 − Π(1 − p).
pub(crate) fn loss(network: &Network<'_>, way: &[Crossing]) -> f64 {
    let lines = way.iter().filter_map(|hop| line(network, hop));
    let arrives = lines.map(|line| match &line.spec.impairments.loss {
        LossModel::Bernoulli(chance) => 1.0 - chance.as_f64(),
        _ => 1.0,
    });
    1.0 - arrives.product::<f64>()
}

fn size_of(workload: &Workload, shape: Shape, write: u32) -> u64 {
    match workload {
        Workload::Bulk { bytes, .. } | Workload::Push { bytes, .. } => bytes.bytes(),
        Workload::TimedTransfer { .. } => u64::from(write),
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
    let (wait, answers) = behind_last(flow, shape, (units, formula));
    filling(&mut terms, &window_place(flow.there.from.0), wait, shape.unit);
    one_way(&mut terms, &flow.there, 0);
    at_host(&mut terms, flow, &answers);
    let ends = (&flow.there, &flow.back);
    behind_answers(&mut terms, ends, (answer(shape), &answers), (0, CONFIRMATION));
    one_way(&mut terms, &flow.back, CONFIRMATION);
    (bytes, What::Transfer, terms)
}

/// What the receiver's processor and board take to answer the empty message, before they come to the confirmation.
/// The answer to the last unit, which comes so `early`, may keep them from that.
fn at_host(terms: &mut Terms, flow: &Flow<'_>, early: &[Span]) {
    let (talk, back) = (&flow.there, &flow.back);
    let host = talk.to.0;
    let meanwhile = talk.interrupts(0)
        + talk.read(0)
        + host.processor.write.of(u64::from(CONFIRMATION))
        + back.request(CONFIRMATION)
        + back.host_send(CONFIRMATION);
    let (processor, board) = (on_processor(host), host.interface.control);
    let kept = early.iter().filter(|early| !early.is_zero());
    let kept = kept.map(|&early| processor.max(board).saturating_sub(early));
    let wait = kept.sum::<Span>() + processor + board.saturating_sub(meanwhile);
    let name = ("answer to the empty message", "control, less what goes on beside it", HOSTS);
    terms.add(name, &processor_place(host), Cause::Host, wait, wait.to_string());
}

/// What the empty message waits for the last unit on the lines, and how much sooner than it what is answered before the
/// confirmation comes, the empty message itself last. Of a window that is waited for the last unit has been answered.
fn behind_last(
    flow: &Flow<'_>,
    shape: Shape,
    (units, formula): (u64, &Formula),
) -> (Span, Vec<Span>) {
    let waited = match formula.burst {
        1 => formula.interval >= answered(flow, shape).as_nanos() as f64,
        burst => units.is_multiple_of(burst),
    };
    let slowest = demands(flow, shape, 1).into_iter().max_by_key(|&(_, span)| span);
    let Some((full, busy)) = slowest.filter(|_| !waited) else {
        return (Span::ZERO, vec![Span::ZERO]);
    };
    let (there, within) = (&flow.there, Span::from_nanos(formula.within as u64));
    let on = |way: &Way| way.stages.iter().any(|stage| stage.resource == full);
    let sender = [Resource::Processor, Resource::Board].map(|of| of(there.from.1));
    // The empty message follows as the rate, a line or the host lets it; of other stages the last unit alone counts.
    let apart = if within > busy || on(&there.way) && !on(&flow.back.way) {
        within
    } else if sender.contains(&full) {
        there.host_send(0) + there.board_send(0)
    } else {
        let span = beside(there, shape.unit, full).saturating_sub(beside(there, 0, full));
        return (span, vec![Span::ZERO]);
    };
    let [unit, empty] = [shape.unit, 0].map(|data| burst(&there.speech.packets(data)));
    let last = |packets: &[_]| there.way.arrivals(packets).last().copied().unwrap_or_default();
    let (before, alone) = (last(&unit), apart + last(&empty));
    let empty = empty.into_iter().map(|(at, packet, ends)| (at + apart, packet, ends));
    let after = last(&unit.into_iter().chain(empty).collect::<Vec<_>>());
    (after.saturating_sub(alone), vec![after.saturating_sub(before), Span::ZERO])
}

/// The time of a transfer that opens a connection, and is answered over another one.
fn opened(flow: &Flow<'_>, bytes: u64, shape: Shape, formula: &Formula) -> (u64, What, Terms) {
    let ahead = bytes.div_ceil(u64::from(shape.unit)).saturating_sub(1);
    let mut terms = Terms::default();
    opening(&mut terms, (&flow.there, None), &flow.back, shape);
    controls(&mut terms, &flow.there);
    terms.0.extend(before(flow, formula, until(ahead, formula)).0);
    one_way(&mut terms, &flow.there, (bytes - ahead * u64::from(shape.unit)) as u32);
    opening(&mut terms, (&flow.back, Some(answer(shape))), &flow.there, shape);
    one_way(&mut terms, &flow.back, CONFIRMATION);
    (bytes, What::Transfer, terms)
}

/// What controls wait for each other: GO comes with the answer to OPEN, and OK goes before what the application says.
fn controls(terms: &mut Terms, talk: &Talk<'_>) {
    let wait = behind_controls(talk, (3, [2, 1]));
    let name = (
        "controls behind each other",
        "3 × (board + processor), and 2 × what the sender's processor takes longer than its board",
        "RFC 998, §5.1",
    );
    terms.add(name, &processor_place(talk.from.0), Cause::Host, wait, wait.to_string());
}

/// So many controls at boards and processors, and more at the processor of the sender, or of the receiver at the same time, if
/// it takes longer than the board, which hands over the next one meanwhile.
pub(crate) fn behind_controls(talk: &Talk<'_>, (each, more): (u64, [u64; 2])) -> Span {
    let costs = [talk.from.0, talk.to.0].map(|host| (on_processor(host), host.interface.control));
    let longest = |of: fn(&(Span, Span)) -> Span| costs.iter().map(of).max().unwrap_or_default();
    let both = longest(|it| it.0) + longest(|it| it.1);
    let queued = costs.iter().zip(more).map(|(cost, more)| {
        let (processor, board) = *cost;
        processor.saturating_sub(board).scaled(more, 1)
    });
    both.scaled(each, 1) + queued.max().unwrap_or_default()
}

/// A control's time on the processor, if the protocol runs there.
fn on_processor(host: &Host) -> Span {
    match host.interface.protocol {
        ProtocolPlace::Host => host.processor.control,
        ProtocolPlace::Board => Span::ZERO,
    }
}

/// A note if the controls of a transfer's buffers, about seven for each at a processor and two at a board, may be much of it.
fn buffers_note(flow: &Flow<'_>, buffers: u64, total: Span) -> Option<String> {
    let hosts = [flow.there.from.0, flow.there.to.0];
    let each = |host: &Host| on_processor(host).scaled(7, 1) + host.interface.control.scaled(2, 1);
    let most = hosts.into_iter().map(each).max()?.scaled(buffers.saturating_sub(1), 1);
    (most > total.scaled(1, 20)).then(|| {
        format!("the controls of {buffers} buffers keep the hosts from other packets: the transfer may take up to {most} longer")
    })
}

/// The packet that opens a connection goes there, maybe behind another one; its answer comes back, and what lets data go.
fn opening(
    terms: &mut Terms,
    (there, behind): (&Talk<'_>, Option<Packet>),
    back: &Talk<'_>,
    shape: Shape,
) {
    let (forth, answer) = openings((there, behind), back, shape);
    let text = match behind {
        None => "OPEN there + RESPONSE and GO back",
        Some(_) => "OK and OPEN there + RESPONSE and GO back",
    };
    let numbers = format!("{forth} + {answer}");
    let name = ("opening", text, "RFC 998, §5.1");
    terms.add(name, &window_place(there.from.0), Cause::Window, forth + answer, numbers);
}

/// The times of the packet that opens a connection, which may be behind another one, and of its answer.
pub(crate) fn openings(
    (there, behind): (&Talk<'_>, Option<Packet>),
    back: &Talk<'_>,
    shape: Shape,
) -> (Span, Span) {
    let [opening, go] = shape.opening.map(Packet::acknowledgement);
    let of = |talk: &Talk<'_>, packets: &[Packet]| talk.way.latency(packets) + talk.acknowledging();
    let forth: Vec<Packet> = behind.into_iter().chain([opening]).collect();
    (of(there, &forth), of(back, &[opening, go]))
}

/// The time until so many units have been sent.
pub(crate) fn until(units: u64, formula: &Formula) -> Span {
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

/// A stated interval, and the bytes that come in it.
fn amount(
    flow: &Flow<'_>,
    formula: &Formula,
    rate: Throughput,
    interval: Span,
) -> (u64, What, Terms) {
    (rate.bytes_in(interval), What::Amount, before(flow, formula, interval))
}
