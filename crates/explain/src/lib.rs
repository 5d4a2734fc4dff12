//! The reasons for a scenario's results: the places and causes of time, the constraint that binds, and the worth of
//! relaxing it.
//!
//! [`explain`] runs a scenario in the engine that it is handed, then runs it again with each [`Relaxation`] that could
//! matter, and compares the figures. The ledger shows what time was spent on; only a run without a constraint shows
//! what that constraint cost. `docs/explain.md` says how it decides and what its limits are.

mod candidates;
mod cluster;
mod constraint;
mod decide;
mod explain;
mod explanation;
mod figure;
mod focus;
mod jump;
mod lengths;
mod lines;
mod media;
mod relax;
mod rounds;
mod runner;
mod text;
mod waterfall;
mod windows;
mod words;

pub use cluster::Ease;
pub use constraint::Constraint;
pub use explain::{Options, Stage, explain, explain_with};
pub use explanation::{
    Binding, Bought, Explanation, Group, Jump, PairRelaxed, Relaxed, TrafficExplanation,
};
pub use figure::{Figure, Measure};
pub use media::MediumEase;
pub use relax::{Line, PRACTICALLY_NOTHING, Relaxation};
pub use rounds::{Queued, Rounds};
pub use text::text;
pub use waterfall::{Bar, StateShare};

use thiserror::Error;
use trunkline_engine::EngineError;

/// Why a scenario cannot be explained.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ExplainError {
    /// It cannot be simulated.
    #[error(transparent)]
    Simulation(#[from] EngineError),
    /// It has no such traffic or cluster.
    #[error("there is no traffic or cluster '{name}': the scenario has {known}")]
    NoTraffic {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
}
