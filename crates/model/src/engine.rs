//! From a scenario to predictions, and from predictions to a run.

use crate::answered::by_unit;
use crate::bucket;
use crate::flow::{Flow, alongside, is_bulk};
use crate::group::{Group, bursts_of, writes};
use crate::known::Known;
use crate::load::{Loaded, beside};
use crate::medium::{self, conversation, phase_note};
use crate::message::{asks_early, left_open, most, rounds_of};
use crate::prediction::{Figure, Prediction, Predictions, Term, What};
use crate::speech::Packet;
use crate::tcp::Joins;
use crate::when::heeded;
use crate::{bulk, lap, listed, paced, run, tcp};
use trunkline_core::Span;
use trunkline_engine::{Engine, EngineError, EngineName, Note, NoteKind, Pace, Run};
use trunkline_scenario::{Network, NetworkError, Reply, Scenario, Traffic, Transport, Workload};

/// The engine of closed formulas.
#[derive(Debug, Clone, Copy, Default)]
pub struct Formulas;

impl Engine for Formulas {
    fn name(&self) -> EngineName {
        EngineName::MODEL
    }

    fn pace(&self) -> Pace {
        Pace::Formulas
    }

    fn run(&self, network: &Network<'_>, _: &(dyn Fn(&str) + Sync)) -> Result<Run, EngineError> {
        Ok(run_of(network))
    }
}

/// Everything that closed formulas say of `scenario`.
///
/// What they do not cover is named in the notes, traffic by traffic, and has no figure.
///
/// # Errors
/// If a traffic has no way.
pub fn predictions(scenario: &Scenario) -> Result<Predictions, NetworkError> {
    Ok(predictions_of(&Network::of(scenario)?))
}

/// The scenario by closed formulas: one sample for each flow and size that a formula covers, with
/// the steps of its terms, and notes on the rest. Formulas count no packets: the counters of traffics
/// and links stay zero.
///
/// # Errors
/// If a traffic has no way.
pub fn predict(scenario: &Scenario) -> Result<Run, NetworkError> {
    Ok(run_of(&Network::of(scenario)?))
}

fn run_of(network: &Network<'_>) -> Run {
    run::build(network, &predictions_of(network))
}

/// What is found of one traffic.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Found {
    pub list: Vec<Prediction>,
    /// Assumptions made, and what no formula covers.
    pub notes: Vec<Note>,
    /// After how long its connections have filled the queue of a line that they fill.
    pub fills: Option<Span>,
}

/// The same of a lowered scenario. Notes come in the order of names.
fn predictions_of(network: &Network<'_>) -> Predictions {
    let known = Known::new(network);
    let together =
        (0..network.scenario().traffic.len()).map(|index| found(&known, index, Joins::Together));
    let mut each = heeded(network, together.collect());
    let mut all = Predictions::default();
    for index in network.traffic().indices() {
        all.notes.append(&mut each[index].notes);
    }
    for cluster in &network.scenario().clusters {
        let text = "no formula covers clusters";
        all.notes.push(Note::of_traffic(&cluster.name, NoteKind::NotCovered, text));
    }
    all.list = each.into_iter().flat_map(|found| found.list).collect();
    all
}

/// What is found of traffic number `index`, if all traffic is there from first to last, and its connections join it so.
pub(crate) fn found(known: &Known<'_>, index: usize, joins: Joins) -> Found {
    let network = known.network;
    let mut found = Found::default();
    let mut notes: Vec<Note> = first_of_several(network, index).into_iter().collect();
    let result = match &*network.scenario().traffic[index].transport {
        Transport::Tcp(_) => tcp::predict(known, (index, joins), &mut found, &mut notes),
        _ => predict_traffic(known, index, &mut found.list, &mut notes),
    };
    // What holds for writes of several sizes is said once.
    for note in notes {
        if !found.notes.contains(&note) {
            found.notes.push(note);
        }
    }
    if let Err(why) = result {
        let name = &network.scenario().traffic[index].name;
        let text = format!("no formula covers {why}");
        found.notes.push(Note::of_traffic(name, NoteKind::NotCovered, text));
    }
    found
}

fn predict_traffic(
    known: &Known<'_>,
    index: usize,
    list: &mut Vec<Prediction>,
    notes: &mut Vec<Note>,
) -> Result<(), String> {
    let network = known.network;
    let traffic = &network.scenario().traffic[index];
    let messages_only =
        matches!(traffic.workload, Workload::Interactive { .. } | Workload::TimedEcho { .. });
    if let (Transport::Listed(protocol), false) = (&*traffic.transport, messages_only)
        && !by_unit(known, index, protocol)
    {
        return listed::predict(network, index, protocol, list, notes);
    }
    match &traffic.workload {
        Workload::Interactive { sizes, reply, .. } => {
            let answer = |size: u32| match reply {
                Reply::Echo => size,
                Reply::Bytes(bytes) => *bytes,
            };
            messages(network, index, sizes, answer, list, notes)
        }
        Workload::TimedEcho { sizes, .. } => {
            messages(network, index, sizes, |size| size, list, notes)
        }
        Workload::Bulk { .. }
        | Workload::TimedTransfer { .. }
        | Workload::Push { .. }
        | Workload::Greedy { .. } => bulk::predict(known, index, list, notes),
        Workload::Paced { size, rate, duration } => {
            paced::predict(network, index, (*size, *rate, *duration), list, notes)
        }
    }
}

/// A note if the flows of a traffic have ways of different length, rate or cost: but for `paced` the first one stands for all.
fn first_of_several(network: &Network<'_>, index: usize) -> Option<Note> {
    let traffic = &network.scenario().traffic[index];
    if traffic.from_each.len() < 2 || matches!(traffic.workload, Workload::Paced { .. }) {
        return None;
    }
    let takes = |flow: &Flow<'_>| {
        [1, 1_000].map(|bytes| {
            let packet = [Packet::plain(bytes)];
            let ways = flow.there.way.latency(&packet) + flow.back.way.latency(&packet);
            ways + flow.there.writing(bytes) + flow.there.host_send(bytes)
        })
    };
    let flows = Flow::all(network, index).ok()?;
    let first = flows.first()?;
    let differs = flows.iter().any(|flow| takes(flow) != takes(first));
    differs.then(|| {
        let text = format!(
            "its flows have ways of their own: times are those of the first one, from {}, and those of the others differ",
            first.there.from.0.name
        );
        Note::of_traffic(&traffic.name, NoteKind::Assumed, text)
    })
}

fn messages(
    network: &Network<'_>,
    index: usize,
    sizes: &[u32],
    answer: impl Fn(u32) -> u32,
    list: &mut Vec<Prediction>,
    notes: &mut Vec<Note>,
) -> Result<(), String> {
    let traffic = &network.scenario().traffic[index];
    let flow = flow_of_messages(network, index, most(sizes, &answer))?;
    let at_once = at_once(traffic);
    let mut add = |what, flow: &Flow<'_>, notes: &mut Vec<Note>| -> Result<Option<Span>, String> {
        let mut least: Option<Span> = None;
        for &size in sizes {
            let lap = (size, answer(size));
            let mut terms = conversation(flow, lap, (at_once, true))?;
            let follows = at_once || overtaken(traffic, terms.total());
            if follows && !at_once && flow.channel().is_none() {
                terms = conversation(flow, lap, (true, true))?;
            }
            let lap = lap::Lap::of_urp(flow, lap, follows, terms.total());
            notes.extend(lap::waits(network, index, flow, lap, &mut terms)?);
            let total = terms.total();
            medium::in_time(traffic, flow, total)?;
            least = Some(least.map_or(total, |least| least.min(total)));
            list.push(prediction(traffic, u64::from(size), what, Figure::Time(total), terms.0));
        }
        Ok(least)
    };
    let others = alongside(network, index);
    let alone = others.is_empty() && traffic.count <= 1;
    let least = add(if alone { What::RoundTrip } else { What::UnloadedRoundTrip }, &flow, notes)?;
    notes.extend(left_open(traffic, &flow, (sizes, &answer), least));
    notes.extend(bursts(network, traffic, &flow, sizes, &answer));
    notes.extend(phase_note(traffic, &flow, least).filter(|_| !at_once));
    if alone {
        notes.extend(asks_early(traffic, &flow, sizes, (answer, at_once)));
        return Ok(());
    }
    let assumed = |text: &str| Note::of_traffic(&traffic.name, NoteKind::Assumed, text);
    let (what, flow) = match loaded(network, index, &flow, &others)? {
        Loaded::Free => (What::RoundTrip, flow),
        Loaded::Queued(flow) => {
            notes.push(assumed("waits only for the standing queues of full lines; other waits for the transfers are left out"));
            (What::RoundTrip, flow)
        }
        Loaded::AtMost(flow) => {
            notes.push(assumed("the estimate of the maximum (Hawley 1989 §2.2), with fifos full and every channel served before each quantum"));
            (What::RoundTripAtMost, flow)
        }
    };
    add(what, &flow, notes)?;
    notes.extend(asks_early(traffic, &flow, sizes, (answer, at_once)));
    Ok(())
}

/// The flow of messages of which the largest, there and back, have so many bytes.
fn flow_of_messages<'a>(
    network: &'a Network<'a>,
    index: usize,
    most: [u32; 2],
) -> Result<Flow<'a>, String> {
    let flow = bucket::opened(network, Flow::new(network, index, 0)?.answered(network, most)?);
    flow.uncovered_but_buckets(network).map_or(Ok(()), Err)?;
    let (bytes, packet) = (most[0].into(), most[0]);
    medium::fits(network, &[medium::Window { flow: &flow, bytes, packet, heeds_marks: false }])?;
    Ok(flow)
}

/// Whether a message goes out as soon as the answer to the one before has come.
pub(crate) fn at_once(traffic: &Traffic) -> bool {
    match traffic.workload {
        Workload::Interactive { repeat, every, .. } => repeat > 1 && every.is_zero(),
        _ => true,
    }
}

/// Whether messages at intervals come to follow each other at once, for an answer takes longer: `total`.
pub(crate) fn overtaken(traffic: &Traffic, total: Span) -> bool {
    match traffic.workload {
        Workload::Interactive { repeat, every, .. } => repeat > 1 && every < total,
        _ => false,
    }
}

/// Notes on the largest message and the largest answer, if they may not all find room.
pub(crate) fn bursts(
    network: &Network<'_>,
    traffic: &Traffic,
    flow: &Flow<'_>,
    sizes: &[u32],
    answer: impl Fn(u32) -> u32,
) -> Vec<Note> {
    let [largest, back] = most(sizes, answer);
    let both = [(&flow.there, largest), (&flow.back, back)];
    let found = both.into_iter().flat_map(|(talk, bytes)| bursts_of(network, talk, bytes));
    found.map(|text| Note::of_traffic(&traffic.name, NoteKind::Assumed, text)).collect()
}

/// The flow beside the scenario's other traffic.
fn loaded<'a>(
    network: &Network<'_>,
    index: usize,
    flow: &Flow<'a>,
    others: &[usize],
) -> Result<Loaded<'a>, String> {
    if network.scenario().traffic[index].count > 1 {
        return Err("conversations that wait for each other".into());
    }
    for &other in others.iter().filter(|&&other| !is_bulk(&network.scenario().traffic[other])) {
        let own = flow.waits_at();
        let meets = Flow::all(network, other)?.iter().any(|it| !it.waits_at().is_disjoint(&own));
        if meets {
            return Err(format!("waiting for {}", network.scenario().traffic[other].name));
        }
    }
    let group = Group::new(network, others, None)?;
    beside(network, flow, &group)
}

pub(crate) fn prediction(
    traffic: &Traffic,
    size: u64,
    what: What,
    value: Figure,
    terms: Vec<Term>,
) -> Prediction {
    Prediction { traffic: traffic.name.clone(), size, what, value, terms }
}

/// The rounds of each message size of a traffic, or of a transfer's write.
pub(crate) fn rounds(network: &Network<'_>, index: usize) -> Vec<(u32, Vec<u32>)> {
    let workload = &network.scenario().traffic[index].workload;
    let sizes = match workload {
        Workload::Interactive { sizes, .. } | Workload::TimedEcho { sizes, .. } => sizes.clone(),
        // Their amounts are no messages.
        Workload::Greedy { .. } => Vec::new(),
        other => writes(other).0,
    };
    let Ok(flow) = Flow::new(network, index, 0) else { return Vec::new() };
    sizes.into_iter().map(|size| (size, rounds_of(&flow.there, size))).collect()
}
