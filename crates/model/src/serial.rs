//! What remains open where processors work: each does one thing at a time, and what it does holds answers up or not.

use crate::formula::general::utilisation_ppm;
use crate::group::{Group, stage_name};
use crate::share::Grant;
use crate::talk::Talk;
use crate::throughput::Throughput;
use crate::transfer::Cycle;
use crate::way::Resource;
use std::collections::BTreeMap;
use std::fmt::Display;
use trunkline_core::Span;
use trunkline_engine::{Note, NoteKind};
use trunkline_scenario::{Echo, Network, ProtocolPlace, Traffic, Workload};

/// Parts of a million by which an end of the range has to differ from the figure to be told.
const TOLD: u64 = 50_000;

/// What is known of a write, or of a unit, in the long run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Known {
    /// The figure told.
    pub figure: Span,
    /// The same if processors took no time beside what an answer waits for.
    pub base: Span,
    /// The figure if no answer waits for the reader.
    pub least: Span,
    /// The same without what the receiver's processor does behind its answers.
    pub unread: Span,
    /// The processors' work at both ends, a system call of reading for each block included.
    pub work: Span,
    /// What the window has to spare: so much may be held up without a pause.
    pub spare: Span,
}

impl Known {
    /// The least and the most that the figure stands for, if that is worth a word. If everything is held up, one thing
    /// comes after the other. A test that only counts its writes does not wait for the reader.
    pub fn range(self, only_writes: bool) -> (Span, Span) {
        // A processor that is busy all the time leaves no time to spare.
        let most = match self.figure <= self.base && self.spare >= self.work {
            true => self.figure,
            false => self.figure.max(self.base + self.work),
        };
        let least = if only_writes { self.unread } else { self.least };
        let least = self.figure.min(least);
        (least, most)
    }

    /// The range of `total`, the time of so many `writes`, if that is worth a word. What a whole transfer waits for once
    /// is a part of it however much its window has to spare.
    pub fn of(
        self,
        traffic: &Traffic,
        talk: &Talk<'_>,
        total: Span,
        writes: u64,
    ) -> Option<[Span; 2]> {
        let (least, most) = self.range(only_writes(traffic, talk));
        let whole = matches!(traffic.workload, Workload::Bulk { .. } | Workload::Push { .. });
        let once = if whole { self.work } else { Span::ZERO };
        let low = total.saturating_sub((self.figure - least).scaled(writes, 1));
        let high = total + (most - self.figure).scaled(writes, 1).max(once);
        let differ = |low: Span, high: Span| utilisation_ppm(high - low, low) > TOLD;
        let differs = differ(total, high) || differ(low, total);
        (differs && !self.work.is_zero()).then_some([low, high])
    }
}

/// The note on a transfer over a window that `total` is told for.
pub(crate) fn note(
    network: &Network<'_>,
    group: &Group<'_>,
    index: usize,
    (cycle, grant, total): (&Cycle, Grant, Span),
) -> Option<Note> {
    let flow = &group.flows[index];
    let traffic = &network.scenario().traffic[flow.traffic];
    let talk = &flow.there;
    let outstanding = u64::from(talk.speech.outstanding?);
    let ends = ends(talk);
    let longest = |leave: &[Resource]| longest(&cycle.claim.demands, leave);
    let own = cycle.window.max(cycle.requests);
    // At best a window is read with one call.
    let together = cycle.claim.demands.get(&ends[0]).copied().unwrap_or_default();
    let together =
        together.saturating_sub(cycle.calls.saturating_sub(
            talk.to.0.processor.read.fixed.scaled(cycle.blocks, outstanding.max(1)),
        ));
    let unheard = unheard(traffic, talk);
    let heard = if unheard { &ends[1..] } else { &ends[..] };
    let work = |cycle: &Cycle| -> Span {
        heard.iter().filter_map(|end| cycle.claim.demands.get(end).copied()).sum()
    };
    let calls = talk.to.0.processor.read.fixed.scaled(cycle.blocks, 1);
    let calls = if unheard { Span::ZERO } else { calls };
    let known = Known {
        figure: grant.cycle,
        base: own.max(longest(&ends)),
        least: own.saturating_sub(cycle.reads).max(longest(&ends[..1])).max(together),
        unread: own.max(longest(&ends[..1])),
        work: group.cycles.iter().map(work).sum::<Span>() + calls,
        spare: grant.cycle.saturating_sub(own).scaled(outstanding, cycle.blocks.max(1)),
    };
    let writes = match &traffic.workload {
        Workload::TimedTransfer { .. } => 1,
        Workload::Greedy { .. } => {
            let range = known.of(traffic, talk, known.figure, 1)?;
            let [most, least] = range.map(|span| Throughput::over(cycle.claim.bytes, span));
            return Some(told(network, traffic, talk, [least, most]));
        }
        Workload::Bulk { bytes, .. } | Workload::Push { bytes, .. } => {
            bytes.bytes().div_ceil(cycle.claim.bytes.max(1))
        }
        _ => return None,
    };
    let range = known.of(traffic, talk, total, writes)?;
    Some(told(network, traffic, talk, range.map(Span::rounded)))
}

/// The note that a figure lies between two others. Of 317 cases drawn by chance 19 of 20 lay in the third of the range
/// next to the figure (docs/formulas.md).
pub(crate) fn told<T: Display>(
    network: &Network<'_>,
    traffic: &Traffic,
    talk: &Talk<'_>,
    [low, high]: [T; 2],
) -> Note {
    let [receiver, sender] = ends(talk).map(|end| stage_name(network, end));
    let what = match &traffic.workload {
        Workload::TimedTransfer { .. } => "an interval",
        Workload::Greedy { .. } => "the rate",
        _ => "the time of a transfer",
    };
    let text = format!(
        "{sender} and {receiver} do one thing at a time, which holds answers up or not as things fall: {what} is between {low} and {high}, most often near the figure"
    );
    Note::of_traffic(&traffic.name, NoteKind::Assumed, text)
}

/// Whether the traffic counts its writes, or what comes to the far host, and answers do not wait for the reader.
pub(crate) fn only_writes(traffic: &Traffic, talk: &Talk<'_>) -> bool {
    let waits = talk.to.0.interface.echo == Echo::Consumption && !talk.speech.of_host;
    let counts =
        matches!(traffic.workload, Workload::TimedTransfer { .. } | Workload::Greedy { .. });
    counts && !waits
}

/// Whether besides a board takes in what the reader has not: the writes do not wait for its processor at all.
pub(crate) fn unheard(traffic: &Traffic, talk: &Talk<'_>) -> bool {
    only_writes(traffic, talk) && talk.to.0.interface.protocol == ProtocolPlace::Board
}

/// The processors of the receiver and of the sender.
pub(crate) fn ends(talk: &Talk<'_>) -> [Resource; 2] {
    [Resource::Processor(talk.to.1), Resource::Processor(talk.from.1)]
}

/// The longest demand but for what is left out.
pub(crate) fn longest(demands: &BTreeMap<Resource, Span>, leave: &[Resource]) -> Span {
    let others = demands.iter().filter(|(resource, _)| !leave.contains(resource));
    others.map(|(_, &span)| span).max().unwrap_or_default()
}

/// What a sender waits for its own processor if one unit of several of a write may be unanswered. The next write begins when
/// a unit has gone out, and the answer to that has to wait for its end.
pub(crate) fn held_up(talk: &Talk<'_>, write: u32, unit: u32, answered: Span) -> Span {
    match talk.from.0.interface.protocol {
        ProtocolPlace::Host => {
            (talk.writing(write) + talk.host_send(unit)).saturating_sub(answered)
        }
        ProtocolPlace::Board => Span::ZERO,
    }
}
