//! Why cells cannot be run.

use thiserror::Error;

/// Why cells cannot be run: one line with cause and remedy.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BatchError {
    /// Somebody wanted it to end.
    #[error("broken off before all was run")]
    BrokenOff,
    /// One seed was asked for where the scenario's grid has several.
    #[error(
        "seed {seed}: the scenario varies the seed itself, as an axis of its grid; take the axis out or give no seed"
    )]
    SeedVaries {
        /// The seed asked for.
        seed: u64,
    },
}
