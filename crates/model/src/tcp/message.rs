//! Messages and their answers over TCP.

use super::connection::{Connection, Law};
use super::flow::{acknowledgement, unmarked};
use super::meets;
use crate::bucket;
use crate::engine::{at_once, bursts, overtaken};
use crate::flow::{Flow, alongside, is_bulk};
use crate::group::line;
use crate::known::Known;
use crate::lap::{self, Lap};
use crate::medium::{self, conversation, phase_note};
use crate::message::{Terms, behind_answers};
use crate::prediction::{Figure, Prediction, What};
use crate::talk::Talk;
use crate::tcp::share::{Flows, Regime, Share};
use crate::way::{Resource, Way, bands_differ, burst};
use std::collections::BTreeSet;
use trunkline_core::{Cause, Span};
use trunkline_engine::{Note, NoteKind};
use trunkline_path::Sharing;
use trunkline_scenario::{HostPlace, Network, Transport};

/// Round trips of messages of `sizes`, with `answer` to each.
///
/// # Errors
/// Why no formula covers them.
pub(crate) fn predict(
    known: &Known<'_>,
    index: usize,
    sizes: &[u32],
    answer: impl Fn(u32) -> u32,
    list: &mut Vec<Prediction>,
    notes: &mut Vec<Note>,
) -> Result<(), String> {
    let network = known.network;
    let traffic = &network.scenario().traffic[index];
    let flow = Flow::new(network, index, 0)?;
    flow.uncovered_but_buckets(network).map_or(Ok(()), Err)?;
    if traffic.count > 1 {
        return Err("conversations that wait for each other".into());
    }
    let largest = sizes.iter().copied().max().unwrap_or(0);
    let window =
        medium::Window { flow: &flow, bytes: largest.into(), packet: largest, heeds_marks: false };
    medium::fits(network, &[window])?;
    let loaded = bucket::opened(network, beside(known, index, &flow, notes)?);
    let flow = bucket::opened(network, flow);
    notes.extend(bursts(network, traffic, &flow, sizes, &answer));
    let mut least: Option<Span> = None;
    for &size in sizes {
        let ends = in_bursts(network, index, &flow, (size, answer(size)));
        let (ours, theirs) = match ends {
            Ok(ends) => ends,
            Err(why) => {
                let text = format!("no formula covers {why}");
                notes.push(Note::of_traffic(&traffic.name, NoteKind::NotCovered, text));
                continue;
            }
        };
        let (bytes, ends) = ((size, answer(size)), (&ours, &theirs));
        let mut terms = terms_of(&loaded, bytes, ends, at_once(traffic))?;
        let follows = at_once(traffic) || overtaken(traffic, terms.total());
        if follows && !at_once(traffic) && loaded.channel().is_none() {
            terms = terms_of(&loaded, bytes, ends, true)?;
        }
        let lap = lap_of(ends, bytes, follows, terms.total());
        notes.extend(lap::waits(network, index, &loaded, lap, &mut terms)?);
        medium::in_time(traffic, &loaded, terms.total())?;
        least = least.min(Some(terms.total())).or(Some(terms.total()));
        list.push(Prediction {
            traffic: traffic.name.clone(),
            size: u64::from(size),
            what: What::RoundTrip,
            value: Figure::Time(terms.total()),
            terms: terms.0,
        });
    }
    notes.extend(phase_note(traffic, &flow, least).filter(|_| !at_once(traffic)));
    notes.push(Note::of_traffic(
        &traffic.name,
        NoteKind::Assumed,
        "on a connection that is established; an answer carries the acknowledgement of its message, or of what the receiver has not acknowledged sooner",
    ));
    Ok(())
}

/// The terms of a message and its answer, which the next message may follow at once.
fn terms_of(
    flow: &Flow<'_>,
    (size, answer): (u32, u32),
    (ours, theirs): (&Connection, &Connection),
    at_once: bool,
) -> Result<Terms, String> {
    let mut terms = conversation(flow, (size, answer), (at_once, false))?;
    let (there, back) = ((&flow.there, &flow.back), (&flow.back, &flow.there));
    pacing(&mut terms, there, ours, size);
    acknowledged(&mut terms, there, ours, (size, answer));
    pacing(&mut terms, back, theirs, answer);
    if at_once {
        acknowledged(&mut terms, back, theirs, (answer, size));
    }
    Ok(terms)
}

/// A message and its answer that take `own`.
fn lap_of(
    (ours, theirs): (&Connection, &Connection),
    (message, answer): (u32, u32),
    follows: bool,
    own: Span,
) -> Lap {
    let larger = if ours.header > theirs.header { ours } else { theirs };
    let apart = ours.acked.min(theirs.acked) == 1;
    let patience = ours.timeout(own).min(theirs.timeout(own)).saturating_sub(own);
    let acknowledgement = Some(acknowledgement(larger));
    Lap { message, answer, acknowledgement, apart, follows, patience }
}

/// The two ends of messages of so many bytes and of their answers, if both go out at once.
fn in_bursts(
    network: &Network<'_>,
    index: usize,
    flow: &Flow<'_>,
    (size, answer): (u32, u32),
) -> Result<(Connection, Connection), String> {
    let (traffic, mtu) = (&network.scenario().traffic[index], network.scenario().mtu);
    let (own, other) = (&*traffic.transport, &*traffic.reply_transport);
    let ours = in_one_burst((own, other), mtu, size)?;
    if size > ours.payload {
        unmarked(network, flow, &ours)?;
    }
    Ok((ours, in_one_burst((other, own), mtu, answer)?))
}

/// Does a message go out at once? It does within the first window: Nagle's algorithm (RFC 896) is off.
fn in_one_burst(
    ends: (&Transport, &Transport),
    mtu: u32,
    bytes: u32,
) -> Result<Connection, String> {
    let (Transport::Tcp(ours), Transport::Tcp(theirs)) = ends else {
        return Err("answers over another transport than TCP".into());
    };
    let tcp = Connection::between(ours, theirs, mtu)?;
    let first = u64::from(tcp.first) * u64::from(tcp.payload);
    if u64::from(bytes) > first.min(tcp.window) {
        return Err(format!("messages of {bytes} bytes, more than the first window of {first}"));
    }
    Ok(tcp)
}

/// The gain of BBR's start-up, in thousandths.
const START_UP_GAIN: u64 = 2_885;

/// What BBR leaves between the segments of a message, beyond what one takes on the slowest stage, and the round trip that it is
/// reckoned by. Messages that fit into the first window never fill the path, so a connection stays in its start-up, and paces by
/// the rate with which that began.
fn gap(there: &Talk<'_>, back: &Talk<'_>, tcp: &Connection) -> (Span, Span) {
    let ways = [&there.way, &back.way].map(|way| way.latency(&[acknowledgement(tcp)]));
    let round_trip: Span = ways.into_iter().sum();
    let paced = match tcp.law {
        Law::Bbr => round_trip.scaled(1_000, START_UP_GAIN * u64::from(tcp.first)),
        _ => Span::ZERO,
    };
    (paced.saturating_sub(there.block(tcp.payload).spacing), round_trip)
}

/// What these gaps add to a message.
fn pacing(terms: &mut Terms, (there, back): (&Talk<'_>, &Talk<'_>), tcp: &Connection, bytes: u32) {
    let behind = u64::from(bytes.div_ceil(tcp.payload.max(1)).saturating_sub(1));
    let (gap, round_trip) = gap(there, back, tcp);
    let stage = there.block(tcp.payload).spacing;
    let numbers = format!("{behind} segments x ({round_trip} / (2.885 x {}) - {stage})", tcp.first);
    let what = (
        "spaced by BBR",
        "segments × (round trip / (2.885 × first window) − time on the slowest stage)",
        PACING,
    );
    let place = HostPlace::Pacing.of(&there.from.0.name);
    terms.add(what, &place, Cause::Window, gap.scaled(behind, 1), numbers);
}

/// What an answer waits behind the acknowledgements of its message: of every second segment, as most receivers have it. The answer
/// carries what is left.
fn acknowledged(
    terms: &mut Terms,
    (there, back): (&Talk<'_>, &Talk<'_>),
    tcp: &Connection,
    (bytes, answer): (u32, u32),
) {
    let segments = there.speech.requests(bytes, &there.from.0.interface.split).concat();
    let Some(&last) = segments.last() else { return };
    let apart = gap(there, back, tcp).0 + there.block(tcp.payload).spacing;
    let sent: Vec<_> = (0..)
        .zip(&segments)
        .flat_map(|(place, &data)| {
            let packets = burst(&there.speech.packets(data));
            packets.into_iter().map(move |(_, packet, ends)| (apart.scaled(place, 1), packet, ends))
        })
        .collect();
    let arrivals = there.way.arrivals(&sent);
    let whole = arrivals.iter().zip(&sent).filter(|(_, (.., ends))| *ends);
    let whole: Vec<Span> = whole.map(|(&at, _)| at).collect();
    let end = whole.last().copied().unwrap_or_default();
    let every = tcp.acked.max(1) as usize;
    let early = whole.chunks_exact(every).filter_map(|of| of.last());
    let early: Vec<Span> = early.map(|&at| end.saturating_sub(at)).collect();
    behind_answers(terms, (there, back), (acknowledgement(tcp), &early), (last, answer));
}

const PACING: &str = "draft-cardwell-iccrg-bbr-congestion-control-00 §4.2.1";

/// The flow beside the scenario's other traffic: behind the queues that transfers over TCP leave.
fn beside<'a>(
    known: &Known<'_>,
    index: usize,
    flow: &Flow<'a>,
    notes: &mut Vec<Note>,
) -> Result<Flow<'a>, String> {
    let network = known.network;
    let ways = [&flow.there.way, &flow.back.way];
    let used: BTreeSet<Resource> =
        ways.into_iter().flat_map(|way| way.stages.iter().map(|stage| stage.resource)).collect();
    let mut transfers = false;
    for other in alongside(network, index) {
        if !meets(network, other, &used)? {
            continue;
        }
        let traffic = &network.scenario().traffic[other];
        if !is_bulk(traffic) || !matches!(*traffic.transport, Transport::Tcp(_)) {
            return Err(format!("waiting for {}", traffic.name));
        }
        transfers = true;
    }
    let mut loaded = flow.clone();
    if transfers {
        let rivals = known.rivals(index);
        let rivals = rivals.as_ref().as_ref().map_err(String::clone)?;
        let shares = rivals.shares.as_ref().map_err(String::clone)?;
        queues(network, (&rivals.flows, shares), &mut loaded)?;
        notes.push(Note::of_traffic(
            &network.scenario().traffic[index].name,
            NoteKind::Assumed,
            "waits for the mean queue of full lines; other waits for the transfers are left out",
        ));
    }
    Ok(loaded)
}

/// Puts the mean queues of full lines where the flow meets them.
fn queues(
    network: &Network<'_>,
    (flows, shares): (&Flows<'_>, &[Share]),
    loaded: &mut Flow<'_>,
) -> Result<(), String> {
    let all = flows.iter().map(|it| it.flow.traffic).chain([loaded.traffic]);
    for share in shares {
        match share.regime {
            Regime::Window | Regime::Loss => {}
            Regime::Standing(Resource::Line(link, reversed))
            | Regime::Overflow(Resource::Line(link, reversed), _)
                if bands_differ(network, line(network, link, reversed), all.clone()) =>
            {
                return Err("waiting for transfers in another priority band".into());
            }
            Regime::Standing(resource) | Regime::Overflow(resource, _)
                if !serves_in_turn(network, resource) =>
            {
                wait(loaded, resource, share.queue.min(flows.drains_in(resource).scaled(1, 2)));
            }
            Regime::Stage(_) | Regime::Standing(_) | Regime::Overflow(..) => {
                return Err("waiting for transfers at a stage that serves them in turn".into());
            }
        }
    }
    Ok(())
}

/// Whether a line gives flows turns: a transfer's queue there is its own, and a message of another flow does not wait behind it.
pub(super) fn serves_in_turn(network: &Network<'_>, resource: Resource) -> bool {
    let Resource::Line(link, reversed) = resource else { return false };
    let sharing = line(network, link, reversed).discipline.assumptions().sharing;
    matches!(sharing, Sharing::Rounds { .. } | Sharing::Turns { .. })
}

fn wait(flow: &mut Flow<'_>, resource: Resource, queue: Span) {
    let ways: [&mut Way; 4] =
        [&mut flow.there.way, &mut flow.there.back, &mut flow.back.way, &mut flow.back.back];
    for stage in ways.into_iter().flat_map(|way| &mut way.stages) {
        if stage.resource == resource {
            stage.queue = queue;
        }
    }
}
