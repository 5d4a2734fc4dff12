//! Why cells cannot be run.

use thiserror::Error;
use trunkline_sim::SimError;

/// Why cells cannot be run: one line with cause and remedy.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BatchError {
    /// A cell cannot be simulated.
    #[error("{cell}: {cause}")]
    Sim {
        /// The scenario's name with the cell's coordinates.
        cell: String,
        /// Why not.
        cause: SimError,
    },
    /// One seed was asked for where the scenario's grid has several.
    #[error(
        "seed {seed}: the scenario varies the seed itself, as an axis of its grid; take the axis out or give no seed"
    )]
    SeedVaries {
        /// The seed asked for.
        seed: u64,
    },
}
