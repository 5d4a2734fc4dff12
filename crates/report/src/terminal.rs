//! The table for the terminal.

use crate::names;
use crate::number;
use crate::overview::{Entry, Overview, overview};
use crate::report::Report;
use crate::summary::Digest;
use comfy_table::{CellAlignment, ContentArrangement, Table, TableComponent, presets};
use rustix::termios::tcgetwinsize;
use std::fmt::Write;
use trunkline_engine::EngineName;
use trunkline_measure::{Comparison, key_text};

/// The table with a column for each engine, then the comparisons, then what a reader has to know.
pub fn terminal(report: &Report) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "{}", heading(report));
    if report.runs.is_empty() {
        text.push_str("There are no runs to report.\n");
    } else {
        let overview = overview(&Digest::of(report));
        let _ = writeln!(text, "{}", table(&overview));
        overview.reasons().iter().for_each(|reason| {
            let _ = writeln!(text, "{reason}");
        });
    }
    for comparison in &report.comparisons {
        let _ = writeln!(text, "{}", terminal_comparison(comparison));
    }
    for note in report.notes() {
        let _ = writeln!(text, "note: {note}");
    }
    text
}

fn heading(report: &Report) -> String {
    let seeds: Vec<String> = report.seeds().iter().map(u64::to_string).collect();
    if seeds.is_empty() {
        report.title.clone()
    } else {
        format!("{} (seed {})", report.title, seeds.join(", "))
    }
}

fn table(overview: &Overview) -> Table {
    let mut table = plain();
    let engine = |name: &EngineName| match overview.against {
        Some(against) if against != *name && !overview.absent.contains(name) => {
            format!("{name} (against {against})")
        }
        _ => name.to_string(),
    };
    let first = overview.coordinates.iter().cloned().chain([
        "traffic".into(),
        "transport".into(),
        String::new(),
    ]);
    table.set_header(first.chain(overview.engines.iter().map(engine)));
    for (index, block) in overview.blocks.iter().enumerate() {
        if index > 0 {
            table.add_row([""]);
        }
        let mut place = block.place.clone();
        let mut traffic = "";
        for line in &block.lines {
            let known = traffic == line.traffic;
            let [name, transport] = [&line.traffic, &line.transport]
                .map(|text| if known { String::new() } else { text.clone() });
            let entries = line.entries.iter().map(printed);
            let first = place.iter().cloned().chain([name, transport, line.what.clone()]);
            table.add_row(first.chain(entries));
            traffic = &line.traffic;
            // Coordinates are shown once.
            place.iter_mut().for_each(String::clear);
        }
    }
    align(&mut table, overview.coordinates.len() + 3);
    table
}

fn printed(entry: &Entry) -> String {
    match &entry.difference {
        Some(difference) => format!("{}  {difference}", entry.marked()),
        None => entry.marked(),
    }
}

/// The published table against ours, with a verdict for each cell.
pub fn terminal_comparison(comparison: &Comparison) -> String {
    let mut table = plain();
    let unit =
        if comparison.unit.is_empty() { String::new() } else { format!(" ({})", comparison.unit) };
    table.set_header([
        comparison.name.clone(),
        format!("published{unit}"),
        format!("ours{unit}"),
        "error".into(),
        "verdict".into(),
    ]);
    for row in &comparison.rows {
        let verdict = if is_judged(comparison) {
            let (verdict, mark) = names::verdict(row.verdict);
            format!("{mark} {verdict}")
        } else {
            "not judged".into()
        };
        let value = |value: Option<f64>| value.map_or(number::NONE.into(), number::short);
        let error = row.error.map_or(number::NONE.into(), number::share);
        table.add_row([key_text(&row.key), value(row.published), value(row.ours), error, verdict]);
    }
    align(&mut table, 1);
    if let Some(column) = table.column_mut(4) {
        column.set_cell_alignment(CellAlignment::Left);
    }
    format!("{table}\n{}\n", terminal_verdict(comparison))
}

/// Whether a tolerance was set. Without one no cell is within or outside.
fn is_judged(comparison: &Comparison) -> bool {
    comparison.tolerance.relative.is_finite()
}

/// The comparison's outcome in one line.
pub fn terminal_verdict(comparison: &Comparison) -> String {
    let counts = comparison.counts;
    if !is_judged(comparison) {
        let shown = comparison.rows.len();
        return format!("{shown} cells, shown and not judged: no tolerance is set");
    }
    let share = |share: Option<f64>| share.map_or("none judged".into(), number::unsigned_share);
    format!(
        "{} of {} cells within ±{} ({}); {} outside, {} missing, {} suspect, {} unpublished; median error {}",
        counts.within,
        counts.judged(),
        number::unsigned_share(comparison.tolerance.relative),
        share(comparison.share_within),
        counts.outside,
        counts.missing,
        counts.suspect,
        counts.unpublished,
        share(comparison.median),
    )
}

fn plain() -> Table {
    let mut table = Table::new();
    table.load_preset(presets::UTF8_HORIZONTAL_ONLY);
    // Lines under every row would double the height.
    table.remove_style(TableComponent::HorizontalLines);
    table.remove_style(TableComponent::MiddleIntersections);
    fit(&mut table);
    table
}

/// Wraps the table's cells so that it is no wider than the terminal that standard output is. Without one nothing is
/// wrapped.
pub fn fit(table: &mut Table) {
    table.set_content_arrangement(ContentArrangement::Dynamic);
    let columns = tcgetwinsize(std::io::stdout()).map_or(0, |size| size.ws_col);
    if columns > 0 {
        table.set_width(columns);
    }
}

/// Figures stand to the right.
fn align(table: &mut Table, from: usize) {
    for column in table.column_iter_mut().skip(from) {
        column.set_cell_alignment(CellAlignment::Right);
    }
}
