//! How a scenario is run.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use trunkline_core::Span;

/// How a scenario is run.
#[derive(Clone, Copy)]
pub struct Options<'a> {
    /// How often a measurement is made at most, until it is valid; at least once.
    pub attempts: u32,
    /// Set by somebody else to break the run off.
    pub cancel: Option<&'a AtomicBool>,
    /// Told how far the run is, some times a second.
    pub progress: Option<&'a (dyn Fn(&Progress) + Sync)>,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Options { attempts: 3, cancel: None, progress: None }
    }
}

impl fmt::Debug for Options<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Options { attempts, cancel, .. } = self;
        f.debug_struct("Options")
            .field("attempts", attempts)
            .field("cancel", cancel)
            .finish_non_exhaustive()
    }
}

/// How far a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// The number of the measurement, from 1.
    pub attempt: u32,
    /// How long it has lasted.
    pub elapsed: Span,
    /// How long it can last.
    pub most: Span,
    /// It has not begun: another testbed is at work on this machine.
    pub waiting: bool,
}

impl Options<'_> {
    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancel.is_some_and(|cancel| cancel.load(Ordering::Relaxed))
    }

    pub(crate) fn tell(&self, progress: &Progress) {
        if let Some(told) = self.progress {
            told(progress);
        }
    }
}
