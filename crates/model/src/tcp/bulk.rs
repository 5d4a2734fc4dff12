//! Predictions of transfers over TCP from what their connections get.

use super::beginning::Joins;
use super::cautions::{bbr_begins, cautions};
use super::connection::Law;
use super::flow::Greedy;
use super::share::{Flows, Regime, Share};
use super::times::{Before, times};
use crate::bulk::unconfirmed;
use crate::formula::fairness::effective_ratio;
use crate::formula::tcp;
use crate::group::stage_name;
use crate::prediction::{Figure, Prediction, Term, What};
use crate::talk::{TOGETHER, window_place};
use trunkline_core::Span;
use trunkline_engine::{Note, NoteKind};
use trunkline_scenario::{Network, Workload};

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
    if matches!(share.regime, Regime::Standing(_)) && fills(flows, share) {
        let term = standing(network, flows, shares, share);
        add(flow.tcp.window, What::StandingQueue, Figure::Time(share.queue), vec![term]);
    }
    if let Some(term) = mean_queue(network, flow, share).filter(|_| fills(flows, share)) {
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

/// Whether the users of a connection's line have enough to send for its queue.
fn fills(flows: &Flows<'_>, share: &Share) -> bool {
    match share.regime {
        Regime::Overflow(at, _) | Regime::Standing(at) | Regime::Stage(at) => {
            share.queue <= flows.drains_in(at).scaled(1, 2)
        }
        Regime::Window | Regime::Loss => true,
    }
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
    let own = (&flows[first], &shares[first]);
    let told = cautions(network, own, before, throughput_size(&traffic.workload, &flows[first]));
    notes.extend(told.into_iter().map(|text| Note::of_traffic(name, NoteKind::Assumed, text)));
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
        Regime::Overflow(resource, None) if share.users == 1 && flow.loss > 0.0 => format!(
            "alone at {}: the rate is the mean over a saw-tooth of the window, which losses of the path (p = {:.3e}) end, and overflows of the queue",
            place(resource),
            flow.loss
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
