//! Runs to tables, charts, CSV, JSON and one self-contained page.
//!
//! Nothing here asks which engine made a [`Run`](trunkline_engine::Run): an engine is a column's heading.
//! A [`Report`] holds the runs and what is known about them; [`terminal`] prints its table, [`write()`] its
//! files, whose columns and fields `docs/results.md` describes. A [`Figure`] is a chart as data, which a
//! study can write down in its own file.

mod against;
mod answer;
mod axis;
mod cell;
mod chart;
mod charts;
mod csv;
mod destination;
mod error;
mod figure;
mod gather;
mod json;
mod names;
mod number;
mod once;
mod overview;
mod page;
mod pictures;
mod report;
mod rules;
mod section;
mod steps;
mod summary;
mod terminal;
mod write;

pub use against::comparison_figures;
pub use answer::answer;
pub use chart::{Embed, chart, chart_style};
pub use charts::{Charts, ChartsError};
pub use destination::Destination;
pub use error::ReportError;
pub use figure::{Axis, Figure, FigureKind, Place, Point, Role, Scale, Series, distribution};
pub use gather::figures;
pub use json::{FORMAT, json};
pub use number::share;
pub use once::each_once;
pub use page::page;
pub use report::{Report, ReportNote, Shown};
pub use rules::Rules;
pub use section::Section;
pub use terminal::{fit, terminal, terminal_comparison, terminal_verdict};
pub use write::write;

/// The names of the CSV files with their columns; `cell.KEY` stands for one column for each coordinate of
/// the grid.
pub fn columns() -> Vec<(&'static str, Vec<String>)> {
    let all = |file: csv::File| {
        let first = csv::WHERE.into_iter().map(String::from);
        (file.name, first.chain(file.columns).collect())
    };
    csv::files().into_iter().map(all).collect()
}
