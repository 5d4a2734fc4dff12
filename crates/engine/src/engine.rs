//! The trait of all engines.

use crate::{EngineName, Run};
use serde::{Deserialize, Serialize};
use std::fmt::Debug;
use std::sync::Arc;
use thiserror::Error;
use trunkline_scenario::{Network, NetworkError};

/// A way from a scenario to a [`Run`].
///
/// Whoever runs scenarios is handed engines, and knows none by its crate. How an engine is set up is in its
/// constructor.
pub trait Engine: Debug + Send + Sync {
    /// Its name; no other engine has it.
    fn name(&self) -> EngineName;

    /// In which time its runs pass.
    fn pace(&self) -> Pace;

    /// Runs one cell of a scenario, lowered by whoever asks for the run, so that several engines see the same. `told`
    /// hears, some times a second, how far a run is that takes longer.
    ///
    /// # Errors
    /// [`EngineError::Refused`] if it cannot run the scenario, [`EngineError::BrokenOff`] if somebody ended the run.
    fn run(&self, network: &Network<'_>, told: &(dyn Fn(&str) + Sync)) -> Result<Run, EngineError>;
}

/// An engine that many runs share.
pub type SharedEngine = Arc<dyn Engine>;

/// In which time runs pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pace {
    /// In none: formulas. A run costs next to nothing, counts no packets, and its samples are what is predicted.
    Formulas,
    /// In virtual time: a run costs what it works, is the same each time, and nothing but its traffic crosses its
    /// links.
    Virtual,
    /// In real time: a run wants the machine for itself, and the machine may spoil it.
    Real,
}

impl From<NetworkError> for EngineError {
    fn from(error: NetworkError) -> EngineError {
        EngineError::refused(&error)
    }
}

/// The reason why there is no run.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum EngineError {
    /// The engine cannot run this scenario: the reason in one line.
    #[error("{0}")]
    Refused(String),
    /// Somebody wanted the run to end.
    #[error("broken off before all was run")]
    BrokenOff,
}

impl EngineError {
    /// The refusal for this reason.
    pub fn refused(reason: &(impl ToString + ?Sized)) -> EngineError {
        EngineError::Refused(reason.to_string())
    }
}
