//! Waits for the slots of lines (cells of ATM). Formulas take half a slot for each; units that go round in step find each the
//! same wait, none or a whole slot, as the slots happen to lie.

use crate::flow::Flow;
use crate::message::rounds_of;
use crate::share::{Grant, Limit};
use crate::throughput::Throughput;
use crate::transfer::Cycle;
use trunkline_core::Span;
use trunkline_engine::{Note, NoteKind};
use trunkline_scenario::{Listed, Traffic, Workload};
use trunkline_transport::protocol::Circumstances;

/// The greatest figure over the least from which on it is told that waits for slots decide.
const TOLD: f64 = 1.01;
const HALF: &str =
    "waits for slots of the lines, which depend on how these lie, are taken as half a slot each";

/// What a unit and its answer wait for slots in the mean.
pub(crate) fn to_slots(flow: &Flow<'_>) -> Span {
    flow.there.way.to_slots() + flow.back.way.to_slots()
}

/// A note if the rate of units over a listed protocol may be much greater or less.
pub(crate) fn of_units(listed: &Listed, flow: &Flow<'_>, path: &Circumstances) -> Option<String> {
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
    Some(format!("{HALF}: the rate is {range}"))
}

/// A note if waits for slots are much of the shortest round trip.
pub(crate) fn of_messages(
    traffic: &Traffic,
    flow: &Flow<'_>,
    (bytes, answer): (u32, u32),
    least: Option<Span>,
) -> Option<Note> {
    let counted = [(&flow.there, bytes), (&flow.back, answer)].map(|(talk, bytes)| {
        let windows = rounds_of(talk, bytes).len().saturating_sub(1) as u64;
        talk.way.to_slots() + to_slots(flow).scaled(windows, 1)
    });
    let most: Span = counted.into_iter().sum();
    (most > least?.scaled(1, 20)).then(|| {
        let text = format!(
            "{HALF}: a round trip of {bytes} bytes may be up to {} shorter or longer",
            most.rounded()
        );
        Note::of_traffic(&traffic.name, NoteKind::Assumed, text)
    })
}

/// A note if the answers that a window waits for may make a transfer, or its writes, much slower or faster than `total`.
pub(crate) fn of_transfer(
    traffic: &Traffic,
    flow: &Flow<'_>,
    (cycle, grant, total): (&Cycle, Grant, Span),
) -> Option<Note> {
    let outstanding = u64::from(flow.there.speech.outstanding?);
    let waited = to_slots(flow).scaled(cycle.blocks, outstanding);
    let most = grant.cycle.max(cycle.window + waited);
    let least = match grant.limit {
        Limit::Own => {
            let others = cycle.claim.demands.values().copied().max().unwrap_or_default();
            cycle.window.saturating_sub(waited).max(others).max(cycle.requests)
        }
        Limit::Stage(..) => grant.cycle,
    };
    let least = least.min(grant.cycle);
    let far = |least: Span, most: Span| most.as_secs_f64() > TOLD * least.as_secs_f64();
    let range = match &traffic.workload {
        Workload::Greedy { .. } => far(least, most).then(|| {
            let [low, high] = [most, least].map(|it| Throughput::over(cycle.claim.bytes, it));
            format!("the rate is between {low} and {high}")
        }),
        Workload::Bulk { bytes, .. } | Workload::Push { bytes, .. } => {
            let writes = bytes.bytes().div_ceil(cycle.claim.bytes.max(1));
            let low = total.saturating_sub((grant.cycle - least).scaled(writes, 1));
            let high = total + (most - grant.cycle).scaled(writes, 1);
            far(low, high).then(|| {
                let [low, high] = [low, high].map(Span::rounded);
                format!("the time of a transfer is between {low} and {high}")
            })
        }
        _ => far(least, most).then(|| {
            let [low, high] = [least, most].map(Span::rounded);
            format!("an interval is between {low} and {high}")
        }),
    };
    let told =
        |range| Note::of_traffic(&traffic.name, NoteKind::Assumed, format!("{HALF}: {range}"));
    range.map(told)
}
