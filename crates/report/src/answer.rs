//! What a page begins with: what was found, in sentences; what must not be used; one or two charts.

use crate::figure::{Figure, FigureKind, Place};
use crate::number;
use crate::report::{INVALID, Report, is_rate};
use crate::summary::{Digest, Summary};
use std::collections::BTreeSet;
use trunkline_engine::{EngineName, NoteKind};
use trunkline_measure::Quantity;

/// Traffics that have a sentence.
const TRAFFICS: usize = 3;
/// Charts at the head of a page.
const CHARTS: usize = 2;

/// Returns what was found in the runs that can be used, in sentences.
pub fn answer(report: &Report) -> Vec<String> {
    found(&Digest::of(report))
}

/// What was found: the words of the report's maker, else a sentence for each of the first traffics, the loss, and how
/// far the engines agree.
pub(crate) fn found(digest: &Digest<'_>) -> Vec<String> {
    if !digest.report.answer.is_empty() {
        return digest.report.answer.clone();
    }
    let mut names: Vec<&str> = Vec::new();
    for row in &digest.rows {
        if !names.contains(&row.traffic.name.as_str()) {
            names.push(&row.traffic.name);
        }
    }
    let traffics = names.iter().take(TRAFFICS).filter_map(|name| of_traffic(digest, name));
    let mut found: Vec<String> = traffics.collect();
    if names.len() > TRAFFICS {
        let more = names.len() - TRAFFICS;
        found.push(format!("The summary has {more} more."));
    }
    found.extend(loss(digest));
    found.extend(agreement(digest));
    found
}

/// What a reader has to know before using anything: runs that are not to be used, engines that did not run.
pub(crate) fn warnings(report: &Report) -> Vec<String> {
    let invalid = report.engines().into_iter().filter_map(|engine| spoilt(report, engine));
    let absent = report.unavailable.iter();
    let absent = absent.map(|(engine, reason)| format!("{engine} did not run: {reason}"));
    let broken = report.notes().into_iter().filter(|note| note.note.kind == NoteKind::Broken);
    invalid.chain(absent).chain(broken.map(|note| note.to_string())).collect()
}

/// How many runs of `engine` must not be used, and the first reason.
fn spoilt(report: &Report, engine: EngineName) -> Option<String> {
    let runs: Vec<_> = report.runs.iter().filter(|run| run.engine == engine).collect();
    let spoilt = runs.iter().filter(|run| !run.is_valid());
    let count = spoilt.clone().count();
    let mut notes = spoilt.flat_map(|run| &run.notes);
    let why = notes.find(|note| note.kind == NoteKind::Invalid)?;
    Some(format!(
        "{count} of {} runs by {engine} {} {INVALID}: {}. Do not use {} values; they are struck out below.",
        runs.len(),
        if count == 1 { "is" } else { "are" },
        why.to_string().trim_start_matches("INVALID: ").trim_end_matches('.'),
        if count == 1 { "its" } else { "their" },
    ))
}

/// The rows that count: valid, and with a value.
fn usable<'d, 'a>(digest: &'d Digest<'a>) -> impl Iterator<Item = &'d Summary<'a>> {
    digest.rows.iter().filter(|row| row.run.is_valid() && row.value().is_some())
}

/// The rows of the engine nearest to the real thing that has any.
fn speaking<'d, 'a>(digest: &'d Digest<'a>, name: &str) -> Vec<&'d Summary<'a>> {
    let rows: Vec<&Summary<'a>> = usable(digest).filter(|row| row.traffic.name == name).collect();
    let engine = rows.iter().map(|row| row.run.engine).max();
    rows.into_iter().filter(|row| Some(row.run.engine) == engine).collect()
}

fn of_traffic(digest: &Digest<'_>, name: &str) -> Option<String> {
    let drawn = digest.drawn(name)?;
    let mut rows = speaking(digest, name);
    rows.retain(|row| row.quantity == drawn.quantity);
    let value = |row: &&Summary<'_>| row.value().map_or(0.0, |(value, _)| value);
    let least = *rows.iter().min_by(|a, b| value(a).total_cmp(&value(b)))?;
    let greatest = *rows.iter().max_by(|a, b| value(a).total_cmp(&value(b)))?;
    let rule =
        if drawn.estimator.is_some() { format!("{} ", least.estimator) } else { String::new() };
    let what = format!("{name}: {rule}{}", quantity(drawn.quantity));
    let by = least.run.engine;
    let text = |row: &Summary<'_>| printed(row);
    // A size that all have tells nothing apart.
    let sized = rows.iter().any(|row| row.size != least.size);
    let place = |row| place(digest, row, sized || rows.len() == 1);
    if text(least) == text(greatest) {
        let of = if rows.len() == 1 { place(least) } else { "in every cell".into() };
        return Some(format!("{what} {} ({of}), by {by}.", text(least)));
    }
    let ends = [least, greatest].map(|row| format!("{} ({})", text(row), place(row)));
    Some(format!("{what} from {} to {}, by {by}.", ends[0], ends[1]))
}

fn quantity(quantity: Quantity) -> &'static str {
    match quantity {
        Quantity::Delay => "delay",
        Quantity::Response => "delay from the intended start",
        Quantity::Rate => "throughput per flow",
        Quantity::TotalRate => "throughput in all",
    }
}

fn printed(row: &Summary<'_>) -> String {
    let value = row.value().map_or(f64::NAN, |(value, _)| value);
    if is_rate(row.quantity) { number::rate(value, 0.0) } else { number::time(value, 0.0) }
}

/// What tells a row apart: its cell, and its size if `sized`.
fn place(digest: &Digest<'_>, row: &Summary<'_>, sized: bool) -> String {
    let report = digest.report;
    let spot = crate::report::Spot::of(row.run);
    let cell = match report.varying() {
        (false, keys) if keys.len() == 1 => spot.cell.get(keys[0]).cloned().unwrap_or_default(),
        _ => report.label(spot),
    };
    let size = row.size.filter(|_| sized && !row.traffic.amounts);
    let size = size.map(|size| number::bytes(size, false));
    let parts: Vec<String> = [Some(cell), size].into_iter().flatten().collect();
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
}

/// The greatest loss that any traffic had.
fn loss(digest: &Digest<'_>) -> Option<String> {
    let share = |row: &&Summary<'_>| row.traffic.packets.lost().unwrap_or(0.0);
    let most = usable(digest).filter(|row| share(row) > 0.0);
    let row = most.max_by(|a, b| share(a).total_cmp(&share(b)))?;
    let percent = number::short(share(&row) * 100.0);
    let (name, by) = (&row.traffic.name, row.run.engine);
    let cell = digest.report.label(crate::report::Spot::of(row.run));
    let cell = if cell.is_empty() { String::new() } else { format!(" ({cell})") };
    Some(format!("The most loss: {percent} % of the packets of {name}{cell}, by {by}."))
}

/// How far each engine is from the one that the others are held against.
fn agreement(digest: &Digest<'_>) -> Vec<String> {
    let Some(against) = digest.report.against() else { return Vec::new() };
    let others: BTreeSet<EngineName> =
        usable(digest).map(|row| row.run.engine).filter(|engine| *engine != against).collect();
    others.into_iter().filter_map(|engine| differences(digest, engine, against)).collect()
}

fn differences(digest: &Digest<'_>, engine: EngineName, against: EngineName) -> Option<String> {
    let difference = |row: &Summary<'_>| {
        let other = digest.report.run(against, crate::report::Spot::of(row.run))?;
        let other = Some(other).filter(|run| run.is_valid())?;
        let other = digest.get(other, &row.traffic.name, row.size?)?.value()?.0;
        Some(row.value()?.0 / other - 1.0).filter(|share| share.is_finite())
    };
    let rows = usable(digest).filter(|row| row.run.engine == engine);
    let mut found: Vec<(f64, &Summary<'_>)> =
        rows.filter_map(|row| Some((difference(row)?, row))).collect();
    found.sort_by(|a, b| a.0.abs().total_cmp(&b.0.abs()));
    let (most, row) = found.last()?;
    let most = number::share(*most);
    if found.len() == 1 {
        return Some(format!("Against {against}, {engine} differs by {most}."));
    }
    let median = number::unsigned_share(found[found.len() / 2].0.abs());
    let sized = row.traffic.sizes().len() > 1;
    let place = [row.traffic.name.clone(), place(digest, row, sized)];
    let place = place.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ");
    Some(format!(
        "Against {against}, {engine} differs by {median} in the median and by {most} at most ({place})."
    ))
}

/// The figures to begin with: those asked for, else published ones beside ours, else those that compare cells, else
/// the causes and the spread of what one cell measured.
pub(crate) fn leading(report: &Report, figures: &[Figure]) -> Vec<String> {
    let named = |starts: &'static [&'static str], least: usize| {
        figures.iter().filter(move |figure| {
            starts.iter().any(|start| figure.name.starts_with(start)) && places(figure) >= least
        })
    };
    let asked = figures.iter().take(report.figures.len()).filter(|figure| !figure.is_empty());
    let order = asked
        .chain(named(&["against-"], 2))
        .chain(named(&["measured-"], 2))
        .chain(named(&["ledger-0-"], 1))
        .chain(named(&["cdf-0-"], 1))
        .chain(named(&["queue-0", "measured-"], 1));
    let mut chosen: Vec<String> = Vec::new();
    for figure in order {
        if chosen.len() < CHARTS && !chosen.contains(&figure.name) {
            chosen.push(figure.name.clone());
        }
    }
    chosen
}

/// How many places on its level axis a figure has.
fn places(figure: &Figure) -> usize {
    let points = figure.series.iter().flat_map(|series| &series.points);
    let name = |place: &Place| match place {
        Place::Number(number) => number.to_string(),
        Place::Text(text) => text.clone(),
    };
    match figure.kind {
        FigureKind::Bars | FigureKind::Lines => {
            points.map(|point| name(&point.x)).collect::<BTreeSet<String>>().len()
        }
        _ => points.count(),
    }
}
