//! Why two engines differ, as far as their records tell.

use crate::figure::What;
use trunkline_core::{Cause, Span};
use trunkline_engine::{About, EngineName, Note, NoteKind, Run};
use trunkline_measure::TrafficRun;
use trunkline_scenario::{Traffic, Workload};

/// Causes are named until they make up so much of the difference.
const ENOUGH: f64 = 0.8;
/// Most reasons that are given.
const MOST: usize = 3;

/// Reasons why `run` differs from `reference` in `what` of `traffic`, the greatest first; empty where the
/// records do not tell.
pub(crate) fn reasons(what: What, traffic: &str, run: &Run, reference: &Run) -> Vec<String> {
    let (Some(own), Some(other)) = (run.traffic(traffic), reference.traffic(traffic)) else {
        return Vec::new();
    };
    let names = [run.engine, reference.engine];
    let mut found = by_cause(what, own, other);
    if found.is_empty() && what != What::Loss {
        found.extend(by_loss(own, other, names));
    }
    found.extend(notes(traffic, run));
    found.extend(notes(traffic, reference));
    found.truncate(MOST);
    found
}

/// Why `run` has no such figure of `traffic`: what it says itself, or what it has counted.
pub(crate) fn absence(what: What, traffic: &Traffic, run: &Run) -> String {
    let Some(own) = run.traffic(&traffic.name) else { return "the run has no such traffic".into() };
    if what == What::Loss {
        return "no packets were counted".into();
    }
    if let Some(why) = other_size(what, traffic, own) {
        return why;
    }
    let words = run.notes.iter().filter_map(Note::word_on_traffic);
    let told: Vec<String> =
        words.filter(|(name, _)| *name == traffic.name).map(|(_, words)| words).collect();
    match told.is_empty() {
        false => told.join("; "),
        true => format!("nothing was completed; {} B were delivered in all", own.delivered_bytes),
    }
}

/// That an outside program's messages have another size than those that the scenario describes.
fn other_size(what: What, traffic: &Traffic, own: &TrafficRun) -> Option<String> {
    let (What::RoundTrip { size } | What::Interval { size }) = what else { return None };
    let described: Vec<u64> = match &traffic.workload {
        Workload::Interactive { sizes, .. }
        | Workload::TimedEcho { sizes, .. }
        | Workload::TimedTransfer { sizes, .. } => sizes.iter().map(|&it| it.into()).collect(),
        _ => return None,
    };
    if !described.contains(&size) {
        let described: Vec<String> = described.iter().map(|it| format!("{it} B")).collect();
        return Some(format!(
            "only the program's messages have this size; the scenario describes {}",
            described.join(", ")
        ));
    }
    let strange = own.sizes().into_iter().find(|it| !described.contains(it))?;
    Some(format!(
        "the program's messages have {strange} B: describe these, or give the program those described"
    ))
}

/// The causes whose mean share in a sample's delay differs most, until they make up the whole difference.
fn by_cause(what: What, own: &TrafficRun, other: &TrafficRun) -> Vec<String> {
    let (Some(own), Some(other)) = (ledger(what, own), ledger(what, other)) else {
        return Vec::new();
    };
    let mut apart: Vec<(Cause, f64)> =
        std::iter::zip(own, other).map(|((cause, own), (_, other))| (cause, own - other)).collect();
    let total: f64 = apart.iter().map(|(_, millis)| millis).sum();
    // Only what works in the direction of the difference explains it.
    apart.retain(|(_, millis)| millis * total > 0.0);
    apart.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()));
    let mut explained = 0.0;
    let mut found = Vec::new();
    for (cause, millis) in apart {
        if explained >= ENOUGH * total.abs() {
            break;
        }
        explained += millis.abs();
        found.push(words(cause, millis));
    }
    found
}

/// Mean milliseconds of a sample by cause; `None` where samples have no steps.
fn ledger(what: What, run: &TrafficRun) -> Option<Vec<(Cause, f64)>> {
    let size = what.size(run)?;
    let count = run.count(size);
    if count == 0 || run.any_untold(size) {
        return None;
    }
    let mean = |cause: Cause| {
        let total = run.booked(size, cause);
        (cause, total.as_millis_f64() / count as f64)
    };
    Some(Cause::ALL.into_iter().map(mean).collect())
}

fn words(cause: Cause, millis: f64) -> String {
    let span = rounded(millis.abs() * 1e6);
    let (more, longer) = if millis > 0.0 { ("more", "longer") } else { ("less", "shorter") };
    match cause {
        Cause::Host => format!("hosts take {span} {more}"),
        Cause::Window => format!("senders wait {span} {longer} for their window"),
        Cause::Queue => format!("packets wait {span} {longer} in queues"),
        Cause::Transmit => format!("{span} {more} on the lines"),
        Cause::Propagate => format!("{span} {more} of distance"),
        Cause::Recover => format!("{span} {more} for what was lost"),
        Cause::Emulator => format!("the emulator is late by {span} {more}"),
    }
}

/// Nanoseconds to three figures.
pub(crate) fn rounded(nanos: f64) -> Span {
    let step = 10f64.powi((nanos.max(1.0).log10().floor() as i32 - 2).max(0));
    Span::from_nanos(((nanos / step).round() * step) as u64)
}

/// That one lost, or sent again, more than the other.
fn by_loss(own: &TrafficRun, other: &TrafficRun, names: [EngineName; 2]) -> Option<String> {
    let share = |run: &TrafficRun| 100.0 * run.packets.lost().unwrap_or_default();
    let (own_share, other_share) = (share(own), share(other));
    if own_share == other_share && own.retransmissions == other.retransmissions {
        return None;
    }
    let [one, two] = names;
    Some(format!(
        "{one} lost {own_share:.3} % of its packets and sent {} again, {two} {other_share:.3} % and {}",
        own.retransmissions, other.retransmissions
    ))
}

/// What an engine says of this traffic, or of its hosts, itself.
fn notes<'a>(traffic: &'a str, run: &'a Run) -> impl Iterator<Item = String> + 'a {
    let concerns = move |note: &&Note| match (&note.about, note.kind) {
        (About::Host(_), kind) => kind == NoteKind::NotEmulated,
        _ => note.word_on_traffic().is_some_and(|(name, _)| name == traffic),
    };
    let engine = run.engine;
    run.notes.iter().filter(concerns).map(move |note| format!("{engine}: {note}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use trunkline_core::Time;
    use trunkline_measure::{Sample, Samples, Step};

    fn traffic(steps: &[(Cause, u64)]) -> TrafficRun {
        let micros = Span::from_micros;
        let steps: Vec<Step> =
            steps.iter().map(|&(cause, it)| Step { place: 0, cause, span: micros(it) }).collect();
        let total = steps.iter().map(|step| step.span).sum();
        let (start, end) = (Time::ZERO, Time::ZERO + total);
        let sample = Sample {
            flow: 0,
            index: 0,
            size: 64,
            intended: start,
            start,
            end,
            steps: steps.into(),
        };
        TrafficRun { name: "t".into(), samples: vec![sample].into(), ..TrafficRun::default() }
    }

    #[test]
    fn the_ledgers_tell_where_the_difference_is() {
        let sim = traffic(&[(Cause::Queue, 500), (Cause::Propagate, 1000)]);
        let emu = traffic(&[(Cause::Queue, 480), (Cause::Propagate, 1000), (Cause::Host, 300)]);
        let found = by_cause(What::RoundTrip { size: 64 }, &emu, &sim);
        assert_eq!(found, ["hosts take 300us more"]);
        let found = by_cause(What::RoundTrip { size: 64 }, &sim, &emu);
        assert_eq!(found, ["hosts take 300us less"]);
    }

    #[test]
    fn several_causes_are_named_until_they_suffice() {
        let sim = traffic(&[(Cause::Queue, 100), (Cause::Host, 10)]);
        let emu = traffic(&[(Cause::Queue, 400), (Cause::Host, 210), (Cause::Emulator, 20)]);
        let found = by_cause(What::OneWay, &emu, &sim);
        assert_eq!(found, ["packets wait 300us longer in queues", "hosts take 200us more"]);
    }

    #[test]
    fn samples_without_steps_explain_nothing() {
        let bare = TrafficRun { samples: Samples::default(), ..traffic(&[]) };
        assert!(by_cause(What::OneWay, &bare, &traffic(&[(Cause::Host, 1)])).is_empty());
    }
}
