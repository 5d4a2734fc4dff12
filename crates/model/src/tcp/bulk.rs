//! Predictions of transfers over TCP from what their connections get.

use super::beginning::Joins;
use super::company::outlasted;
use super::connection::Law;
use super::early;
use super::first::held_back;
use super::flow::Greedy;
use super::growing::bursts;
use super::message::serves_in_turn;
use super::share::{Flows, Regime, Share};
use super::times::{Before, Test, times};
use crate::engine::unconfirmed;
use crate::formula::fairness::effective_ratio;
use crate::formula::tcp;
use crate::group::{line, stage_name};
use crate::prediction::{Figure, Prediction, Term, What};
use crate::shaper;
use crate::talk::{TOGETHER, window_place};
use crate::way::Resource;
use trunkline_core::Span;
use trunkline_engine::{Note, NoteKind};
use trunkline_path::Standing;
use trunkline_scenario::{Network, Workload};

/// Segments of a window that are too few for three duplicates and another loss.
const SMALL: f64 = 4.0;
/// Segments that a connection sends at once at most while nothing is lost: the first window (RFC 6928).
const BURST: f64 = 10.0;
/// Segments of a receiver's window that leave nothing of it to chance.
const LITTLE: f64 = 16.0;
/// Segments of each connection that a queue served in turn needs at least.
const FEW: f64 = 2.5;
/// The used share of a line that leaves nothing to be told.
const FULL: f64 = 0.99;
/// Saw-teeth in a test that show the long run.
const TEETH: u64 = 10;
/// The least ratio of two rates that is worth a note.
const TELLING: f64 = 1.05;
pub(super) const WINDOW: &str = "RFC 9293 §3.8.6: at most a window in each round trip";
const SAW_TOOTH: &str = "RFC 5681 §3.1, RFC 9438 §4.2; shares of tail drop by N losses in N flows";
const BBR: &str = "Cardwell et al. 2017; draft-cardwell-iccrg-bbr-congestion-control-00 §4.3.4";
pub(super) const BALANCE: &str =
    "square-root model after Floyd 1991; Padhye et al. 1998; RFC 9438 §5.1";

/// A traffic among its rivals: its number, that of its first connection, and how its connections begin.
pub(crate) struct Own {
    pub index: usize,
    pub first: usize,
    pub joins: Joins,
}

/// The figures of one traffic's transfers. Those of its flows that have the same way are the same; the
/// first flow stands for all.
pub(crate) fn predict(
    network: &Network<'_>,
    Own { index, first, joins }: Own,
    (flows, shares): (&Flows<'_>, &[Share]),
    list: &mut Vec<Prediction>,
    notes: &mut Vec<Note>,
) {
    let traffic = &network.scenario().traffic[index];
    let (flow, share) = (&flows[first], &shares[first]);
    let mut add = |size, what, value, terms| {
        let traffic = traffic.name.clone();
        list.push(Prediction { traffic, size, what, value, terms });
    };
    let size = throughput_size(&traffic.workload, flow);
    add(size, What::Throughput, Figure::Rate(share.rate), limits(network, flow, share));
    if let Regime::Standing(_) = share.regime {
        let term = standing(network, flows, shares, share);
        add(flow.tcp.window, What::StandingQueue, Figure::Time(share.queue), vec![term]);
    }
    if let Some(term) = mean_queue(network, flow, share) {
        add(flow.tcp.window, What::MeanQueue, Figure::Time(share.queue), vec![term]);
    }
    let before = Before::of(network, flows, shares, (first, joins));
    let mut total = Span::ZERO;
    for (size, what, terms) in times(&traffic.workload, flow, share, &before) {
        total = terms.total();
        add(size, what, Figure::Time(total), terms.0);
    }
    let begins = bbr_begins(&traffic.workload, (flow, share), &before, total);
    notes.extend(begins.map(|text| Note::of_traffic(&traffic.name, NoteKind::Assumed, text)));
    notes.extend(unconfirmed(traffic));
    explain(network, first, (flows, shares), &before, notes);
}

/// The size under which a throughput stands: the write's, the transfer's, or a segment's.
fn throughput_size(workload: &Workload, flow: &Greedy<'_>) -> u64 {
    match workload {
        Workload::Bulk { bytes, .. } | Workload::Push { bytes, .. } => bytes.bytes(),
        Workload::TimedTransfer { .. } => flow.write,
        _ => u64::from(flow.tcp.payload),
    }
}

/// The limits on a connection's throughput, for information.
fn limits(network: &Network<'_>, flow: &Greedy<'_>, share: &Share) -> Vec<Term> {
    let place = window_place(flow.flow.there.from.0);
    let term = |name: &str, place: String, formula, numbers, rate, source| Term {
        name: name.into(),
        place,
        cause: None,
        formula,
        numbers,
        value: Figure::Rate(rate),
        source,
    };
    let window = tcp::window_limit(flow.tcp.window, flow.round_trip, share.queue);
    let numbers = format!("{} bytes / ({} + {})", flow.tcp.window, flow.round_trip, share.queue);
    let formula = "window / (round trip + queue)";
    let mut terms = vec![term("window", place.clone(), formula, numbers, window, WINDOW)];
    if flow.loss > 0.0 {
        let sway = flow.sway(share.queue, 0.0);
        let rate = flow.arrived(sway.mean, share.queue);
        let formula =
            "(1 − p) window / (round trip + queue), the window by its course from loss to loss";
        let numbers = format!(
            "p = {:.3e}: window {:.1} segments of {} bytes, swinging by {:.0} %; {} + {}",
            flow.loss,
            sway.mean,
            flow.tcp.payload,
            100.0 * sway.swing,
            flow.round_trip,
            share.queue
        );
        terms.push(term("losses of the path", place, formula, numbers, rate, BALANCE));
    }
    if let Regime::Stage(resource) | Regime::Standing(resource) | Regime::Overflow(resource, _) =
        share.regime
    {
        let rate = flow.capacity(resource);
        let demand = flow.demands.get(&resource).copied().unwrap_or_default();
        let numbers = format!("{TOGETHER} x {} bytes / {demand}", flow.tcp.payload);
        let (name, formula) = ("the stage that is full", "segments / their time there");
        terms.push(term(name, stage_name(network, resource), formula, numbers, rate, BALANCE));
    }
    terms
}

/// The mean queue before the connection's line, and what it is worked out from.
fn mean_queue(network: &Network<'_>, flow: &Greedy<'_>, share: &Share) -> Option<Term> {
    let place = match share.regime {
        Regime::Standing(_) => return None,
        Regime::Overflow(resource, _) | Regime::Stage(resource) => stage_name(network, resource),
        Regime::Window | Regime::Loss => String::new(),
    };
    let (formula, numbers, source) = match share.saw {
        Some(saw) => (
            "mean over the saw-tooth of the windows' sum, from (1 − h (1 − β)) (P + B) to P + B, h = 1 − (1 − 1/N)^N",
            format!(
                "P {:.1}, B {:.1} segments, N {}, h {:.3}, a tooth of {}",
                saw.pipe, saw.buffer, share.users, saw.hit, saw.lasts
            ),
            SAW_TOOTH,
        ),
        None if flow.tcp.law == Law::Bbr => (
            "min(buffer, RTT/32 + 3 bursts) alone, min(buffer, RTT + 3 bursts of each) beside others",
            format!("round trip {}, {} connections", flow.round_trip, share.users),
            BBR,
        ),
        None if share.queue.is_zero() => return None,
        None => (
            "mean of what the windows' sum, swinging by chance, exceeds the path by",
            format!("round trip {}, {} connections", flow.round_trip, share.users),
            BALANCE,
        ),
    };
    Some(Term {
        name: "mean queue".into(),
        place,
        cause: None,
        formula,
        numbers,
        value: Figure::Time(share.queue),
        source,
    })
}

fn standing(network: &Network<'_>, flows: &[Greedy<'_>], shares: &[Share], share: &Share) -> Term {
    let together = flows.iter().zip(shares).filter(|(_, other)| other.regime == share.regime);
    let windows: Vec<String> = together
        .map(|(flow, _)| format!("{}/({} + q)", flow.tcp.window, flow.round_trip))
        .collect();
    let place = match share.regime {
        Regime::Standing(resource) => stage_name(network, resource),
        _ => String::new(),
    };
    Term {
        name: "standing queue".into(),
        place,
        cause: None,
        formula: "q of Σ window / (round trip + q) = rate of the line",
        numbers: windows.join(" + "),
        value: Figure::Time(share.queue),
        source: WINDOW,
    }
}

/// What was assumed, in words.
fn explain(
    network: &Network<'_>,
    first: usize,
    (flows, shares): (&Flows<'_>, &[Share]),
    before: &Before,
    notes: &mut Vec<Note>,
) {
    let traffic = &network.scenario().traffic[flows[first].flow.traffic];
    let name = &traffic.name;
    let text = reason(network, first, flows, shares);
    notes.push(Note::of_traffic(name, NoteKind::Assumed, text));
    let cautions = [
        small_window(&flows[first], &shares[first]),
        short_queue(&shares[first]),
        short_turns(network, &traffic.workload, &flows[first], &shares[first]),
        small_writes(&flows[first], &shares[first]),
        receives_little(&flows[first]),
        early::dropped(network, &flows[first], &shares[first]),
        few_teeth(&traffic.workload, &shares[first]),
        outlasted(&flows[first], &shares[first]),
        bursts(&flows[first], before, throughput_size(&traffic.workload, &flows[first])),
    ];
    let cautions =
        cautions.into_iter().flatten().chain(first_tick(&traffic.workload, &flows[first]));
    let cautions =
        cautions.chain(short(&traffic.workload, (&flows[first], &shares[first]), before));
    let cautions = cautions.chain(shaper::taken(network, &flows[first].flow.route.there));
    notes.extend(cautions.map(|text| Note::of_traffic(name, NoteKind::Assumed, text)));
    if let Workload::Bulk { repeat, .. } | Workload::Push { repeat, .. } = traffic.workload {
        let state =
            if repeat > 1 { "keeps its window from one transfer to the next" } else { "is new" };
        notes.push(Note::of_traffic(
            name,
            NoteKind::Assumed,
            format!("the connection is established and {state}"),
        ));
        let others = match before {
            Before::New(new) if new.is_behind() => {
                "begins behind the queue that the others keep, and what it finds there is a matter of chance: four in five simulated transfers took 0.6 to 1.5 times as long"
            }
            Before::New(_) if matches!(shares[first].regime, Regime::Overflow(_, Some(_))) => {
                "has the part of the line that its window, its law and its distance leave it in the long run: simulated transfers took 0.6 to 2.2 times as long"
            }
            Before::Again => {
                "its transfers and those of the other connections are taken to begin again at once and to have equal shares; if some end sooner, the mean of the times is less"
            }
            _ => {
                "connections that begin together are taken to be alike but for the turns in which they send and lose; if some are luckier still, the mean of their times is less"
            }
        };
        if shares[first].users > 1 {
            notes.push(Note::of_traffic(name, NoteKind::Assumed, others));
        }
    }
}

/// What is to be said of a window so small that time-outs decide more than the formulas know.
fn small_window(flow: &Greedy<'_>, share: &Share) -> Option<String> {
    let window = match (share.regime, share.saw) {
        (_, Some(saw)) => (saw.pipe + saw.buffer) / share.users.max(1) as f64,
        (Regime::Loss, None) => flow.sway(share.queue, 0.0).mean,
        _ => return None,
    };
    let size = match window {
        ..2.0 => "less than two segments",
        2.0..SMALL => "two or three segments",
        _ => return None,
    };
    let error = match (flow.loss.max(flow.unheard), flow.tcp.ticks) {
        (loss, _) if loss > TRIED => "far too high, for they were tried up to 30 % of loss",
        (loss, true) if loss >= MANY => "two to three times too high",
        _ => "wrong by a factor of two",
    };
    Some(format!(
        "windows of {size} ({window:.1}) live by time-outs more than the formulas know: the figures may be {error}"
    ))
}

/// Losses up to which the formulas were held against the simulator, 30 % (docs/formulas.md, Losses both ways).
const TRIED: f64 = 0.3001;
/// Losses from which on time-outs of ticks are more than a factor of two longer than the formulas say, 20 % (there too).
const MANY: f64 = 0.1999;

/// What is to be said of a test in which much of what was written has not been carried.
fn short(
    workload: &Workload,
    (flow, share): (&Greedy<'_>, &Share),
    before: &Before,
) -> Option<String> {
    let Workload::TimedTransfer { duration, .. } = *workload else { return None };
    let [least, most] = Test::of(flow, share, duration, before).range(flow.write);
    (most.as_nanos() as f64 > TELLING * least.as_nanos() as f64).then(|| {
        format!(
            "the test is short: what the host still holds at its end is not known, so that writes take between {least} and {most} in the mean"
        )
    })
}

/// What is to be said of a queue that is served in turn and holds less than the path, or than a few segments of each connection.
fn short_turns(
    network: &Network<'_>,
    workload: &Workload,
    flow: &Greedy<'_>,
    share: &Share,
) -> Option<String> {
    let Regime::Stage(resource @ Resource::Line(link, reversed)) = share.regime else {
        return None;
    };
    if share.users < 2 || !serves_in_turn(network, resource) {
        return None;
    }
    let discipline = &line(network, link, reversed).discipline;
    let segment = flow.tcp.payload + flow.tcp.header;
    let room = discipline.limit().most_bytes(segment) as f64;
    let capacity = flow.capacity(resource).millibytes_per_second() as f64 / 1e3;
    let pipe = capacity * flow.round_trip.as_secs_f64();
    let few = FEW * share.users as f64 * f64::from(segment);
    let drops_early = matches!(discipline.assumptions().standing, Standing::Delay(target) if flow.round_trip > target.scaled(4, 1));
    let range = match workload {
        Workload::Bulk { .. } | Workload::Push { .. } => "transfers took 0.75 to 2.8 times as long",
        _ => "throughputs were 0.85 to 1 of this",
    };
    (room < pipe.max(few) || drops_early).then(|| {
        format!("each connection's part of the queue is short for the path: what it loses is left out, and simulated {range}")
    })
}

/// What is to be said of a receiver whose window holds a few segments: what it acknowledges when decides.
fn receives_little(flow: &Greedy<'_>) -> Option<String> {
    let segments = flow.tcp.segments();
    let gathers = flow.write < u64::from(flow.tcp.payload);
    let times = match (segments < 2.0, gathers) {
        (true, _) => "three times",
        // Of a window that holds less than five segments two may be used.
        (false, true) => "two and a half times",
        (false, false) => "twice",
    };
    (segments < LITTLE).then(|| {
        format!(
            "the receiver's window holds {segments:.1} segments: acknowledgements that it holds back, and what is left of the window, decide, and the figures may be up to {times} too fast"
        )
    })
}

/// What is to be said of the start-up of BBR in a transfer of `total`.
fn bbr_begins(
    workload: &Workload,
    (flow, share): (&Greedy<'_>, &Share),
    before: &Before,
    total: Span,
) -> Option<String> {
    let (Workload::Bulk { .. } | Workload::Push { .. }, Before::New(new)) = (workload, before)
    else {
        return None;
    };
    if flow.tcp.law == Law::Bbr && share.users > 1 {
        return Some("BBR's connections share the line unequally while they begin, and some are done long before the others: simulated means were up to 41 % off".into());
    }
    let miss = new.bbr_may_miss(flow, total).filter(|miss| *miss > total.scaled(1, 20))?;
    Some(format!(
        "the windows of BBR's start-up are paced by a rate that it has yet to find: the transfer may take {miss} less or more"
    ))
}

/// What is to be said of a first segment whose acknowledgement waits for a tick of the receiver's clock.
fn first_tick(workload: &Workload, flow: &Greedy<'_>) -> Option<String> {
    let (Workload::Bulk { bytes, repeat: ..=1, .. } | Workload::Push { bytes, repeat: ..=1, .. }) =
        workload
    else {
        return None;
    };
    let [least, mean, most] = held_back(flow, bytes.bytes())?;
    (least < most).then(|| {
        let half = mean.saturating_sub(least);
        format!(
            "the first segment is alone in its window, and its acknowledgement waits for the receiver's clock: half a tick is counted, and a transfer may take {half} less or more"
        )
    })
}

/// What is to be said of a queue that overflows before windows fill it.
fn short_queue(share: &Share) -> Option<String> {
    let saw = share.saw?;
    if let Some(target) = saw.kept.filter(|_| saw.used < FULL) {
        return Some(format!(
            "the discipline lets bursts pass, and the queue stand above its target of {target} for a while: simulated throughputs were 0.85 to 1.33 of this, and 0.6 to 1.3 over round trips of 600ms"
        ));
    }
    let room = Some(saw.buffer).filter(|&buffer| saw.kept.is_none() && buffer < BURST)?;
    Some(format!(
        "a queue with room for {room:.1} segments loses some of those that a window sends at once (two or three with an ACK, ten at a start), which the formulas do not count: the throughput is an upper bound"
    ))
}

/// What is to be said of a test in which the window overflows its queue a few times only.
fn few_teeth(workload: &Workload, share: &Share) -> Option<String> {
    let (Workload::TimedTransfer { duration, .. } | Workload::Greedy { duration, .. }) = workload
    else {
        return None;
    };
    let lasts = share.saw.filter(|saw| saw.kept.is_none() && saw.used < FULL)?.lasts;
    (lasts.scaled(TEETH, 1) > *duration).then(|| {
        format!(
            "from one overflow of the queue to the next it takes {lasts}: a test of {duration} shows how it began, and may be a fifth above or below the long run"
        )
    })
}

/// What is to be said of writes smaller than a segment that come faster than the path carries them one by one.
fn small_writes(flow: &Greedy<'_>, share: &Share) -> Option<String> {
    if share.regime == Regime::Window && flow.write < u64::from(flow.tcp.payload) {
        // Of a window of a few segments more is lost, which has a note of its own.
        let told =
            if flow.tcp.segments() < LITTLE { "" } else { " (simulated up to a fifth lower)" };
        return Some(format!(
            "writes of {} bytes do not fill segments, and a window of them is not used in full: the throughput is an upper bound{told}",
            flow.write
        ));
    }
    let writer = &flow.flow.there;
    // Who holds no more than its window has nothing that waits, and gathers nothing.
    let holds = flow.tcp.buffer > flow.tcp.window;
    let at_once = writer.writing(flow.write as u32).is_zero();
    let alone = flow.ungathered.filter(|_| !(holds && at_once))?;
    let few = alone.millibytes_per_second() as f64 * TELLING;
    (few < share.rate.millibytes_per_second() as f64).then(|| {
        format!(
            "writes of {} bytes come faster than segments of one write each can go: TCP gathers them only while its window is full, so that the rate lies between {alone} and the {} told, and below that while many small segments are lost",
            flow.write, share.rate
        )
    })
}

/// Why a connection gets what it gets.
fn reason(network: &Network<'_>, first: usize, flows: &[Greedy<'_>], shares: &[Share]) -> String {
    let (flow, share) = (&flows[first], &shares[first]);
    let place = |resource| stage_name(network, resource);
    match share.regime {
        Regime::Window => "its window limits it; the windows have grown to their full size".into(),
        Regime::Loss => format!(
            "the path's losses limit it (p = {:.3e}): the window runs its course from loss to loss, a round of losses counting once",
            flow.loss
        ),
        Regime::Stage(resource) if share.users > 1 => {
            format!("{} connections share {} equally", share.users, place(resource))
        }
        Regime::Stage(resource) => format!("{} is always busy", place(resource)),
        Regime::Standing(resource) => format!(
            "the queue of {} takes all windows: nothing is lost, each has window / (round trip + queue)",
            place(resource)
        ),
        Regime::Overflow(resource, None) if share.users == 1 => format!(
            "alone at {}: the rate is the mean over a saw-tooth of the window, one overflow in each",
            place(resource)
        ),
        Regime::Overflow(resource, None) => format!(
            "{} connections that are alike share {} equally: the rate is the mean over a saw-tooth of their windows",
            share.users,
            place(resource)
        ),
        Regime::Overflow(resource, Some(loss)) => overflow(network, resource, loss, flows, shares),
    }
}

fn overflow(
    network: &Network<'_>,
    resource: crate::way::Resource,
    loss: f64,
    flows: &[Greedy<'_>],
    shares: &[Share],
) -> String {
    let place = stage_name(network, resource);
    let users = flows.iter().zip(shares).filter(
        |(_, share)| matches!(share.regime, Regime::Overflow(other, _) if other == resource),
    );
    let trips: Vec<(Span, Span)> = users.map(|(f, share)| (f.round_trip, share.queue)).collect();
    let (long, short) = (trips.iter().max().copied(), trips.iter().min().copied());
    let (long, short) = (long.unwrap_or_default(), short.unwrap_or_default());
    let nominal = effective_ratio(long.0, short.0, Span::ZERO);
    let ratio = effective_ratio(long.0, short.0, long.1);
    let bound = 100.0 / (1.0 + ratio * ratio);
    format!(
        "{} connections share {place}, losing with one probability (p = {loss:.3e}); the mean queue is taken as {} (the saw-tooth's, or the discipline's target); round trips 1 : {nominal:.2}, with the queue 1 : {ratio:.2}; if losses were synchronised, two would share as the squares of the round trips (the longer gets {bound:.1} %)",
        trips.len(),
        long.1
    )
}
