//! Why a report could not be made.

use std::path::PathBuf;
use thiserror::Error;
use trunkline_engine::EngineName;

/// Why a report could not be made.
#[derive(Debug, Error)]
pub enum ReportError {
    /// Two runs claim the same place.
    #[error(
        "two runs of {engine} for scenario '{scenario}', cell '{cell}': give each repetition a cell of its own"
    )]
    Twice {
        /// The engine.
        engine: EngineName,
        /// The scenario.
        scenario: String,
        /// The cell's coordinates.
        cell: String,
    },
    /// Two figures claim the same file.
    #[error("two figures are written as '{0}.svg': give each figure a name of its own")]
    Figure(String),
    /// The directory holds results already.
    #[error("{0} holds results already: choose another directory, or replace them with --force")]
    Exists(PathBuf),
    /// The directory holds something else.
    #[error("{path} holds '{found}', which is no file of a report: choose another directory")]
    Foreign {
        /// The directory.
        path: PathBuf,
        /// What was found there.
        found: String,
    },
    /// It is no directory.
    #[error("{0} is there and is no directory: choose another name")]
    NotDirectory(PathBuf),
    /// A file could not be written.
    #[error("cannot write {path}: {cause}: choose a directory that can be written")]
    Write {
        /// Which file.
        path: PathBuf,
        /// Why not.
        cause: std::io::Error,
    },
}

impl ReportError {
    /// Whether a directory was named that may not be used, so that nothing failed but the choice of it.
    pub fn is_wrong_use(&self) -> bool {
        use ReportError::{Exists, Foreign, NotDirectory};
        matches!(self, Exists(_) | Foreign { .. } | NotDirectory(_))
    }
}
