//! The reason why a scenario cannot be simulated.

use thiserror::Error;

/// The reason why a scenario cannot be simulated.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SimError {
    /// A traffic has no way.
    #[error("traffic '{traffic}': {reason}")]
    Route {
        /// The traffic.
        traffic: String,
        /// The cause.
        reason: String,
    },
    /// A transport cannot be set up as described.
    #[error("traffic '{traffic}': transport: {reason}")]
    Transport {
        /// The traffic.
        traffic: String,
        /// The cause.
        reason: String,
    },
}
