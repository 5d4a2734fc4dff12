//! What a user is to know of predicted transfers: where their formulas leave out what may decide.

use super::company::outlasted;
use super::connection::Law;
use super::early;
use super::first::held_back;
use super::flow::Greedy;
use super::growing::bursts;
use super::message::serves_in_turn;
use super::meter::Meter;
use super::share::{Regime, Share};
use super::times::{Before, Test, bytes_per_second};
use crate::group::line;
use crate::shaper;
use crate::way::Resource;
use trunkline_core::Span;
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

/// All that is to be said of a traffic whose `flow` has this `share`; a transfer of it has `bytes`.
pub(super) fn cautions(
    network: &Network<'_>,
    (flow, share): (&Greedy<'_>, &Share),
    before: &Before,
    bytes: u64,
) -> Vec<String> {
    let workload = &network.scenario().traffic[flow.flow.traffic].workload;
    let told = [
        small_window(flow, share),
        short_queue(share),
        short_turns(network, workload, flow, share),
        small_writes(flow, share),
        receives_little(flow),
        early::dropped(network, flow, share),
        few_teeth(workload, flow, share),
        outlasted(flow, share),
        bursts(flow, before, bytes),
        first_tick(workload, flow),
        short(workload, (flow, share), before),
        Meter::of(workload, flow, share, before).and_then(|meter| meter.short_warm_up()),
    ];
    let shaped = shaper::taken(network, &flow.flow.route.there);
    told.into_iter().flatten().chain(shaped).collect()
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
pub(super) fn bbr_begins(
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
            "the discipline lets bursts pass, and the queue stand above its target of {target} for a while: simulated throughputs were 0.85 to 1.33 of this, over round trips of 600ms and in tests of a few seconds 0.3 to 1.3"
        ));
    }
    let room = Some(saw.buffer).filter(|&buffer| saw.kept.is_none() && buffer < BURST)?;
    Some(format!(
        "a queue with room for {room:.1} segments loses some of those that a window sends at once (two or three with an ACK, ten at a start), which the formulas do not count: the throughput is an upper bound"
    ))
}

/// What is to be said of a test in which the window overflows its queue a few times only, or few packets are lost.
fn few_teeth(workload: &Workload, flow: &Greedy<'_>, share: &Share) -> Option<String> {
    let (Workload::TimedTransfer { duration, .. } | Workload::Greedy { duration, .. }) = workload
    else {
        return None;
    };
    let rate = bytes_per_second(share);
    let by_losses = match share.regime {
        Regime::Loss => true,
        Regime::Overflow(resource, None) => {
            let line = flow.capacity(resource).millibytes_per_second() as f64 / 1e3;
            flow.loss > 0.0 && rate < FULL * line
        }
        _ => false,
    };
    if by_losses {
        let packets = rate * duration.as_secs_f64() / f64::from(flow.tcp.payload);
        let losses = packets * flow.loss;
        return (losses < TEETH as f64).then(|| {
            format!(
                "at this rate {losses:.1} packets are lost in {duration}: so short a test shows where chance ended slow start, and simulated throughputs were 0.5 to 9 times this"
            )
        });
    }
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
