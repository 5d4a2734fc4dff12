//! Why a report could not be made.

use std::path::PathBuf;
use thiserror::Error;

/// Why a report could not be made.
#[derive(Debug, Error)]
pub enum ReportError {
    /// Two runs claim the same place.
    #[error(
        "two runs of {engine} for scenario '{scenario}', cell '{cell}': give each repetition a cell of its own"
    )]
    Twice {
        /// The engine.
        engine: &'static str,
        /// The scenario.
        scenario: String,
        /// The cell's coordinates.
        cell: String,
    },
    /// Two figures claim the same file.
    #[error("two figures are written as '{0}.svg': give each figure a name of its own")]
    Figure(String),
    /// A file could not be written.
    #[error("cannot write {path}: {cause}: choose a directory that can be written")]
    Write {
        /// Which file.
        path: PathBuf,
        /// Why not.
        cause: std::io::Error,
    },
}
