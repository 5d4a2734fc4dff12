//! The report, field by field as in `docs/probe.md`. Keys carry their units.

mod figures;
pub mod flent;
mod lines;
mod path;
mod samples;

pub use figures::{Figures, GoalFigures, OneDirection, Outliers, SizeFigures};
pub use lines::Line;
pub use path::{Known, LineFigures, PathFigures, SegmentFigures, ToldBy};
pub use samples::{IntervalRow, write_intervals, write_samples};

/// The number of the format of every JSON document and line. Within it fields are added, never removed or
/// changed in meaning.
pub const FORMAT: u32 = 1;
