//! The reasons why cells cannot be run.

use std::path::PathBuf;
use thiserror::Error;

/// The reason why cells cannot be run: one line with cause and remedy.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BatchError {
    /// Somebody wanted it to end.
    #[error("broken off before all was run")]
    BrokenOff,
    /// One seed was asked for although the scenario's grid has several.
    #[error(
        "seed {seed}: the scenario varies the seed itself, as an axis of its grid; take the axis out or give no seed"
    )]
    SeedVaries {
        /// The seed asked for.
        seed: u64,
    },
    /// There is nothing to go on with.
    #[error("{}: no interrupted run is kept there: leave --resume out", place.display())]
    NothingKept {
        /// The place at which it would be.
        place: PathBuf,
    },
    /// What is kept is of something else.
    #[error("{}: the runs that are kept there are no part of this: {what}; leave --resume out to start anew", place.display())]
    KeptOfOther {
        /// Their place.
        place: PathBuf,
        /// In what they differ.
        what: String,
    },
    /// Runs that are kept cannot be read, or not removed.
    #[error("{}: {cause}; remove it, and leave --resume out", place.display())]
    Unkept {
        /// Their place.
        place: PathBuf,
        /// The obstacle.
        cause: String,
    },
}
