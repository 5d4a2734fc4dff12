//! The CSV files. Their columns are described in `docs/results.md`. All times are whole nanoseconds, and
//! nothing but scenario and seed decides a byte of them.

mod cells;
mod details;
mod samples;

pub(crate) use cells::cells;
pub(crate) use details::{backlog, links, senders, steps};
pub(crate) use samples::samples;

use crate::report::{INVALID, Report};
use crate::summary::Digest;
use std::io::{self, Write};
use trunkline_engine::Run;

/// Stands in a list of columns for those of the grid's coordinates.
pub(crate) const COORDINATES: &str = "cell.KEY";

/// The columns with which every file begins.
pub(crate) const WHERE: [&str; 5] = ["engine", "scenario", COORDINATES, "seed", "validity"];

/// A file and its columns, as documented.
pub(crate) struct File {
    pub(crate) name: &'static str,
    pub(crate) columns: Vec<String>,
    pub(crate) write: fn(&Digest<'_>, &mut dyn Write) -> io::Result<()>,
}

/// Every CSV file.
pub(crate) fn files() -> Vec<File> {
    vec![
        File { name: "samples.csv", columns: samples::columns(), write: samples },
        File { name: "cells.csv", columns: cells::columns(), write: cells },
        File { name: "links.csv", columns: details::link_columns(), write: links },
        File { name: "steps.csv", columns: named(&details::STEPS), write: steps },
        File { name: "senders.csv", columns: named(&details::SENDERS), write: senders },
        File { name: "backlog.csv", columns: named(&details::BACKLOG), write: backlog },
    ]
}

fn named(columns: &[&str]) -> Vec<String> {
    columns.iter().map(|column| (*column).to_string()).collect()
}

/// Writes rows that all begin with the engine, the cell, the seed and whether the run may be used.
pub(crate) struct Rows<'a> {
    keys: Vec<&'a str>,
    out: &'a mut dyn Write,
    line: String,
}

impl<'a> Rows<'a> {
    /// Writes the heading: the common columns, then `columns`.
    pub(crate) fn new(
        report: &'a Report,
        out: &'a mut dyn Write,
        columns: &[String],
    ) -> io::Result<Rows<'a>> {
        let mut rows = Rows { keys: report.keys(), out, line: String::new() };
        for column in WHERE {
            if column == COORDINATES {
                for key in rows.keys.clone() {
                    rows.field(&format!("cell.{key}"));
                }
            } else {
                rows.field(column);
            }
        }
        columns.iter().for_each(|column| rows.field(column));
        rows.end()?;
        Ok(rows)
    }

    /// Begins a row of `run`.
    pub(crate) fn begin(&mut self, run: &Run) {
        self.field(run.engine.as_str());
        self.field(&run.scenario);
        for key in self.keys.clone() {
            self.field(run.cell.get(key).map_or("", String::as_str));
        }
        self.number(run.seed);
        self.field(if run.is_valid() { "valid" } else { INVALID });
    }

    /// Adds a field, quoted if it has to be.
    pub(crate) fn field(&mut self, text: &str) {
        if text.contains([',', '"', '\n', '\r']) {
            self.line.push_str(&format!("\"{}\"", text.replace('"', "\"\"")));
        } else {
            self.line.push_str(text);
        }
        self.line.push(',');
    }

    /// Adds a whole number.
    pub(crate) fn number(&mut self, value: impl Into<u64>) {
        self.line.push_str(&value.into().to_string());
        self.line.push(',');
    }

    /// Adds a value rounded to a whole number; empty if there is none.
    pub(crate) fn rounded(&mut self, value: Option<f64>) {
        let text = value.filter(|v| v.is_finite()).map(|v| format!("{v:.0}")).unwrap_or_default();
        self.field(if text == "-0" { "0" } else { &text });
    }

    /// Ends the row.
    pub(crate) fn end(&mut self) -> io::Result<()> {
        self.line.pop();
        self.line.push('\n');
        self.out.write_all(self.line.as_bytes())?;
        self.line.clear();
        Ok(())
    }
}

/// One column in nanoseconds for each cause of the ledger.
pub(crate) fn cause_columns() -> impl Iterator<Item = String> {
    trunkline_core::Cause::ALL.into_iter().map(|cause| format!("{}_ns", crate::names::cause(cause)))
}
