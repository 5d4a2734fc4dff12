//! Axes of a grid that change nothing.

use std::collections::{BTreeMap, BTreeSet};
use trunkline_core::Time;
use trunkline_engine::{About, Note, NoteKind, Pace, Run};
use trunkline_measure::{Key, TrafficRun};

/// A note for each key of the grid whose values all gave the same measurements and counts in virtual time, whatever
/// the other keys were.
pub fn idle_axes(runs: &[Run]) -> Vec<Note> {
    let simulated: Vec<&Run> = runs.iter().filter(|run| run.pace == Pace::Virtual).collect();
    let keys: BTreeSet<&String> = simulated.iter().flat_map(|run| run.cell.keys()).collect();
    // Rules of figures are not meant to change measurements.
    keys.into_iter()
        .filter(|key| !key.ends_with(".estimator"))
        .filter(|key| is_idle(key, &simulated))
        .map(|key| told(key, &simulated))
        .collect()
}

fn told(key: &str, runs: &[&Run]) -> Note {
    let values: BTreeSet<&String> = runs.iter().filter_map(|run| run.cell.get(key)).collect();
    let values: Vec<&str> = values.into_iter().map(String::as_str).collect();
    let text = format!(
        "has no effect: {} give the same measurements; leave the axis out, or look for what caps it",
        values.join(" and ")
    );
    Note::new(NoteKind::NoEffect, text).about(About::Axis(key.into()))
}

/// Whether all runs are alike that differ in `key` alone. There have to be some, and something measured.
fn is_idle(key: &str, runs: &[&Run]) -> bool {
    let mut groups: BTreeMap<Key, Vec<&Run>> = BTreeMap::new();
    for run in runs {
        let mut others = run.cell.clone();
        if others.remove(key).is_some() {
            groups.entry(others).or_default().push(run);
        }
    }
    let mut pairs = groups.values().flat_map(|group| group.windows(2)).peekable();
    let measured = runs.iter().flat_map(|run| &run.traffic).any(|it| !it.samples.is_empty());
    pairs.peek().is_some() && measured && pairs.all(|pair| alike(pair[0], pair[1]))
}

/// Whether two runs have the same measurements and ended at the same time.
fn alike(one: &Run, other: &Run) -> bool {
    let same = |(one, other): (&_, &_)| measured_alike(one, other);
    one.ended == other.ended
        && one.traffic.len() == other.traffic.len()
        && one.traffic.iter().zip(&other.traffic).all(same)
}

/// Whether two runs of a traffic have the same counts, and samples of the same times and sizes.
fn measured_alike(one: &TrafficRun, other: &TrafficRun) -> bool {
    let counts =
        |it: &TrafficRun| (it.delivered_bytes, it.packets, it.retransmissions, it.timeouts);
    let samples = |it: &TrafficRun| -> Vec<(u64, Time, Time)> {
        it.samples.iter().map(|sample| (sample.size, sample.start, sample.end)).collect()
    };
    counts(one) == counts(other) && samples(one) == samples(other)
}
