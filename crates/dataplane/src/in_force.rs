//! Paths as they are in force: the changes of their schedules and those that were asked for, each from its time on.

use trunkline_core::Time;
use trunkline_path::{Change, LinkSpec, Schedule};

/// The description of a link at `now`: `link` as it began at `origin`, with the changes of its schedule and those
/// `asked` for.
pub(crate) fn in_force(
    link: &LinkSpec,
    origin: Time,
    asked: impl Iterator<Item = (Time, Change)>,
    now: Time,
) -> LinkSpec {
    let mut changes = scheduled(&link.schedule, origin, now);
    changes.extend(asked.filter(|&(at, _)| at <= now));
    // Of those at one instant the schedule's come first, so that what was asked for wins, as in the link itself.
    changes.sort_by_key(|&(at, _)| at);
    let mut link = link.clone();
    for (_, change) in changes {
        make(&mut link, change);
    }
    link
}

/// The changes of this round that have taken hold, behind those of the round before it. Earlier rounds left nothing, for each round
/// makes the same changes.
fn scheduled(schedule: &Schedule, origin: Time, now: Time) -> Vec<(Time, Change)> {
    let Some(since) = now.as_nanos().checked_sub(origin.as_nanos()) else { return Vec::new() };
    let length = schedule.repeat.map_or(0, |repeat| repeat.as_nanos());
    let round = since.checked_div(length).unwrap_or(0);
    let steps = (round.saturating_sub(1)..=round).flat_map(|round| {
        let begun = origin.as_nanos() + round * length;
        let at = move |after: u64| Time::from_nanos(begun + after);
        schedule.steps.iter().map(move |(after, change)| (at(after.as_nanos()), change.clone()))
    });
    steps.filter(|&(at, _)| at <= now).collect()
}

/// Rounds of a schedule that show all that it can bring about: in the second a step may meet what the first one left behind.
const ROUNDS: u64 = 2;

/// The steps of a schedule that began at `origin` behind `now`, counted from then on: all there are, or those of this round and of
/// as many more as can differ.
pub(crate) fn to_come(schedule: &Schedule, origin: Time, now: Time) -> Schedule {
    let length = schedule.repeat.map_or(0, |repeat| repeat.as_nanos());
    let round = now.since(origin).as_nanos().checked_div(length).unwrap_or(0);
    let last = if length == 0 { round } else { round + ROUNDS };
    let steps = (round..=last).flat_map(|round| {
        let at = move |after: u64| Time::from_nanos(origin.as_nanos() + round * length + after);
        schedule.steps.iter().map(move |(after, change)| (at(after.as_nanos()), change))
    });
    let steps = steps.filter(|&(at, _)| at > now || now < origin);
    let steps = steps.map(|(at, change)| (at.since(now), change.clone()));
    Schedule { steps: steps.collect(), repeat: None }
}

fn make(link: &mut LinkSpec, change: Change) {
    match change {
        Change::Delay(delay) => link.delay = delay,
        Change::CatchUp(catch_up) => link.catch_up = catch_up,
        Change::Rate(rate) => (link.rate, link.trace) = (rate, None),
        // What the discipline does not take has been refused where it was read.
        Change::Limit(limit) => drop(link.discipline.set_limit(limit)),
        Change::Impairments(spec) => link.impairments = spec,
        Change::Setting(setting) => link.impairments.set(setting),
    }
}
