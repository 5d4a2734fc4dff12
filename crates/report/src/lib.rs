//! Runs to tables, charts, CSV, JSON and one self-contained page.
//!
//! Nothing here asks which engine made a [`Run`](trunkline_measure::Run): an engine is a column's heading.

mod chart;
mod figure;
mod number;

pub use chart::{Embed, chart, chart_style};
pub use figure::{Axis, Figure, Kind, Place, Point, Role, Scale, Series, distribution};
