//! The reason why a scenario cannot be simulated.

use thiserror::Error;
use trunkline_scenario::NetworkError;

/// The reason why a scenario cannot be simulated.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SimError {
    /// A traffic has no way.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// A transport cannot be set up as described.
    #[error("traffic '{traffic}': transport: {reason}")]
    Transport {
        /// The traffic.
        traffic: String,
        /// The cause.
        reason: String,
    },
    /// A cluster's nodes cannot be set up as described.
    #[error("cluster '{cluster}': {reason}")]
    Cluster {
        /// The cluster.
        cluster: String,
        /// The cause.
        reason: String,
    },
}
