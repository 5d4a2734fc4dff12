//! The ladder as a table for the terminal and for the page.

use crate::because::rounded;
use crate::figure::{Figure, What};
use crate::ladder::{Ladder, REFERENCE, Row};
use crate::phase::Moves;
use crate::verdict::{Judgement, Range, Verdict};
use comfy_table::{CellAlignment, Table, presets};
use std::fmt::Write;
use trunkline_core::Span;
use trunkline_engine::EngineName;
use trunkline_measure::Accuracy;
use trunkline_report::{Section, fit};

const NONE: &str = "–";
/// A share above this is no agreement by itself.
const MUCH: f64 = 0.02;

/// The table of one cell, with the accuracy statement below it.
pub fn terminal(ladder: &Ladder) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    fit(&mut table);
    table.set_header(columns(ladder));
    let mut last = "";
    for row in &ladder.rows {
        let mut entries = entries(ladder, row);
        if last == row.traffic {
            entries[0].clear();
        }
        last = &row.traffic;
        table.add_row(entries);
    }
    for column in 2..2 + ladder.engines.len() {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let mut text = format!("{}\n{table}\n", heading(ladder));
    for row in &ladder.rows {
        for (engine, why) in unjudged(row) {
            let (traffic, what, engine) = (&row.traffic, row.what, engine);
            let _ = writeln!(text, "  {NONE} {traffic}, {what}: {engine}: {why}");
        }
        // Why a run is invalid stands once below the table.
        let sound = row.judgements.iter().filter(|(_, it)| it.verdict != Verdict::Invalid);
        for (engine, judgement) in sound {
            let because = because(ladder, row, *engine, judgement).join("; ");
            if !because.is_empty() {
                let (traffic, what, engine) = (&row.traffic, row.what, engine);
                let _ = writeln!(text, "  {traffic}, {what}: {engine}: {because}");
            }
        }
    }
    if let Some(accuracy) = &ladder.accuracy {
        let _ = writeln!(text, "{}: {}", EngineName::EMU, statement(accuracy));
    }
    for reason in &ladder.invalid {
        let _ = writeln!(text, "INVALID: {reason}");
    }
    text
}

/// The table of several cells for a page.
pub fn section(ladders: &[Ladder]) -> Section {
    let mut columns = vec!["scenario".to_string(), "cell".into()];
    columns.extend(ladders.first().map(self::columns).unwrap_or_default());
    columns.extend(["because".into(), "accuracy of the emulation".into()]);
    let rows = ladders.iter().flat_map(|ladder| ladder.rows.iter().map(move |row| (ladder, row)));
    let rows = rows.map(|(ladder, row)| {
        let place = [ladder.scenario.clone(), ladder.cell.clone()];
        let told = |(engine, judgement): (&EngineName, &Judgement)| {
            let because = because(ladder, row, *engine, judgement).join("; ");
            (!because.is_empty()).then(|| format!("{engine}: {because}"))
        };
        let absent = unjudged(row).map(|(engine, why)| format!("{NONE} {engine}: {why}"));
        let because = row.judgements.iter().filter_map(told).chain(absent);
        let because = because.collect::<Vec<String>>().join(" | ");
        let accuracy = ladder.accuracy.as_ref().map(statement).unwrap_or_default();
        place.into_iter().chain(entries(ladder, row)).chain([because, accuracy]).collect()
    });
    Section {
        name: "ladder".into(),
        heading: "Predicted, simulated, emulated".into(),
        about: "Each figure in every engine; formulas and emulator are held against the simulator. Agreement: a delay within 2 % or 100 us, a goodput within 2 %, a loss within its 95 % interval. What phase decides is what the simulator itself gives when starts and hosts vary.".into(),
        columns,
        rows: rows.collect(),
    }
}

/// Engines without a value of which no judgement tells why.
fn unjudged(row: &Row) -> impl Iterator<Item = (EngineName, &str)> {
    // A comparison that lacks a value tells of its engine's absence, or else of the reference's.
    let told_of = |engine: EngineName| {
        let lacks = |engine| !row.figures.contains_key(engine);
        row.judgements.iter().any(|(own, judgement)| {
            let absent = if lacks(own) { *own } else { REFERENCE };
            judgement.verdict == Verdict::Missing && absent == engine
        })
    };
    let absent = row.absent.iter().filter(move |(engine, _)| !told_of(**engine));
    absent.map(|(engine, why)| (*engine, why.as_str()))
}

/// What the simulator gives in other phases, and the reasons.
fn because(ladder: &Ladder, row: &Row, engine: EngineName, judgement: &Judgement) -> Vec<String> {
    // Once: below the last of the engines, which is the one in real time if that ran.
    let under = row.judgements.keys().next_back();
    let asked = row.range.filter(|_| Some(&engine) == under).zip(ladder.moves);
    let range = asked.map(|(range, moves)| phases(row.what, &range, &moves));
    // Who reads them knows whose they are.
    let own = format!("{engine}: ");
    let because = judgement.because.iter().map(|why| why.strip_prefix(&own).unwrap_or(why).into());
    range.into_iter().chain(because).collect()
}

/// The simulator's own range in words.
fn phases(what: What, range: &Range, moves: &Moves) -> String {
    let ends = [range.low, range.high].map(|value| {
        shown(what, &Figure { value, low: None, high: None, count: 1, invalid: false })
    });
    let Range { runs, .. } = range;
    let Moves { starts, packets, .. } = moves;
    let [low, high] = ends;
    let starts = rounded(starts.as_nanos() as f64);
    let text = format!(
        "sim gives {low} to {high} in {runs} runs (starts up to {starts} later, packets up to {packets} sooner or later), and one more would lie between with a probability of {:.0} %",
        range.probability * 100.0
    );
    match range.width() > Range::WIDE {
        true => format!(
            "{text}: it hangs on phase by {:.0} %, so compare several runs, or make the scenario longer",
            range.width() * 100.0
        ),
        false => text,
    }
}

fn heading(ladder: &Ladder) -> String {
    match ladder.cell.as_str() {
        "" => ladder.scenario.clone(),
        cell => format!("{}: {cell}", ladder.scenario),
    }
}

fn columns(ladder: &Ladder) -> Vec<String> {
    let engines = ladder.engines.iter().map(EngineName::to_string);
    let first = ["traffic".to_string(), "figure".into()];
    first.into_iter().chain(engines).chain(["verdict".into()]).collect()
}

fn entries(ladder: &Ladder, row: &Row) -> Vec<String> {
    let value = |engine: &EngineName| match row.figures.get(engine) {
        Some(figure) => shown(row.what, figure),
        None => NONE.into(),
    };
    let values = ladder.engines.iter().map(value);
    let first = [format!("{} ({})", row.traffic, row.transport), row.what.to_string()];
    first.into_iter().chain(values).chain([verdict(row)]).collect()
}

/// A figure with half of its interval, marked if it must not be used.
fn shown(what: What, figure: &Figure) -> String {
    let half = match (figure.low, figure.high) {
        (Some(low), Some(high)) => (high - low) / 2.0,
        _ => 0.0,
    };
    let (value, half, unit) = match what {
        What::Goodput => scaled(figure.value * 8.0, half * 8.0),
        What::Loss => (figure.value * 100.0, half * 100.0, "%"),
        _ => (figure.value, half, "ms"),
    };
    let places = places(value, half);
    let mark = if figure.invalid { " INVALID" } else { "" };
    match half > 0.0 {
        true => format!("{value:.places$} ± {half:.places$} {unit}{mark}"),
        false => format!("{value:.places$} {unit}{mark}"),
    }
}

/// Bits per second in a fitting unit.
fn scaled(value: f64, half: f64) -> (f64, f64, &'static str) {
    let units = [(1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s")];
    let (scale, unit) =
        units.into_iter().find(|(scale, _)| value >= *scale).unwrap_or((1.0, "bit/s"));
    (value / scale, half / scale, unit)
}

/// Digits behind the point: four figures of the value, or two of its uncertainty if that is coarser.
fn places(value: f64, half: f64) -> usize {
    let digits = |number: f64, wanted: i32| match number > 0.0 {
        true => (wanted - 1 - number.log10().floor() as i32).max(0) as usize,
        false => 0,
    };
    let fine = digits(value, 4).min(6);
    if half > 0.0 { fine.min(digits(half, 2)) } else { fine }
}

fn verdict(row: &Row) -> String {
    let parts: Vec<String> = row
        .judgements
        .iter()
        .map(|(engine, judgement)| told(row.what, *engine, judgement))
        .collect();
    parts.join("; ")
}

fn told(what: What, engine: EngineName, judgement: &Judgement) -> String {
    let by = match (judgement.difference, judgement.apart, what) {
        (Some(points), _, What::Loss) => format!(" {:+.3} points", points * 100.0),
        // Of a delay that agrees by its distance the share says nothing.
        (Some(share), Some(apart), _)
            if judgement.verdict == Verdict::Agree && share.abs() > MUCH =>
        {
            format!(" {apart:+.3} {}", what.unit())
        }
        (Some(share), ..) => format!(" {}", trunkline_report::share(share)),
        (None, Some(apart), _) => format!(" {apart:+.3} {}", what.unit()),
        (None, None, _) => String::new(),
    };
    match judgement.verdict {
        Verdict::Agree => format!("{engine} agrees ({})", by.trim_start()),
        Verdict::Phase => format!("{engine}{by}, within the phase range"),
        Verdict::Undecided => format!("{engine}{by}, undecided (the intervals overlap)"),
        Verdict::Differ if judgement.because.is_empty() => {
            format!("{engine} differs{by}, unexplained")
        }
        Verdict::Differ => format!("{engine} differs{by}"),
        Verdict::Missing => format!("{engine} cannot be compared"),
        Verdict::Invalid if by.is_empty() => format!("{engine} INVALID"),
        Verdict::Invalid => format!("{engine} INVALID ({})", by.trim_start()),
    }
}

/// The accuracy statement in a line.
fn statement(accuracy: &Accuracy) -> String {
    let late = accuracy.lateness;
    let stalls = match accuracy.stalls {
        0 => String::new(),
        count => format!("; {count} stalls, the longest {}", accuracy.longest_stall),
    };
    let lost = match accuracy.dropped_by_emulator {
        0 => String::new(),
        count => format!("; {count} lost by the emulator"),
    };
    let short = |span: Span| span.to_string();
    format!(
        "{} frames in, {} out; late by {} (median), {} (p99), {} at most; spacing error p99 {}{stalls}{lost}",
        accuracy.frames_in,
        accuracy.frames_out,
        short(late.p50),
        short(late.p99),
        short(late.max),
        short(accuracy.spacing_error.p99),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_as_many_digits_as_they_deserve() {
        let figure = |value, half: f64| Figure {
            value,
            low: (half > 0.0).then_some(value - half),
            high: (half > 0.0).then_some(value + half),
            count: 9,
            invalid: false,
        };
        assert_eq!(shown(What::OneWay, &figure(12.3456, 0.0)), "12.35 ms");
        assert_eq!(shown(What::OneWay, &figure(12.3456, 0.123)), "12.35 ± 0.12 ms");
        assert_eq!(shown(What::Goodput, &figure(193_000.0, 0.0)), "1.544 Mbit/s");
        assert_eq!(shown(What::Loss, &figure(0.0123, 0.0012)), "1.23 ± 0.12 %");
        assert_eq!(shown(What::OneWay, &figure(0.0, 0.0)), "0 ms");
    }
}
