//! The emulator behind the trait of all engines.

use crate::{EmuError, Options, Progress, run};
use std::sync::Arc;
use trunkline_core::Span;
use trunkline_dataplane::Console;
use trunkline_engine::{Engine, EngineError, EngineName, Pace, Run};
use trunkline_scenario::Network;

/// The engine of real time.
#[derive(Debug, Clone)]
pub struct Emulator {
    /// How often a cell is measured at most, until a result is valid.
    pub attempts: u32,
    /// The register in which measurements are shown, set and captured.
    pub console: Option<Arc<Console>>,
}

impl Default for Emulator {
    fn default() -> Emulator {
        Emulator { attempts: Options::default().attempts, console: None }
    }
}

impl Engine for Emulator {
    fn name(&self) -> EngineName {
        EngineName::EMU
    }

    fn pace(&self) -> Pace {
        Pace::Real
    }

    fn run(&self, network: &Network<'_>, told: &(dyn Fn(&str) + Sync)) -> Result<Run, EngineError> {
        let progress = |now: &Progress| told(&so_far(now));
        let options = Options {
            attempts: self.attempts,
            cancel: None,
            progress: Some(&progress),
            console: self.console.as_deref(),
        };
        run(network, &options).map_err(|error| match error {
            EmuError::Cancelled => EngineError::BrokenOff,
            other => EngineError::refused(&other),
        })
    }
}

/// How far a run is.
fn so_far(now: &Progress) -> String {
    if now.waiting {
        return "waits until another testbed on this machine has ended".into();
    }
    let seconds = |span: Span| span.as_nanos() / 1_000_000_000;
    let again = if now.attempt > 1 { "once more, " } else { "" };
    format!("{again}{} of at most {} s", seconds(now.elapsed), seconds(now.most))
}
