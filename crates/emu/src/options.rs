//! How a scenario is run.

use crate::EmuError;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use trunkline_core::Span;
use trunkline_dataplane::Console;

/// Whether this process wants its testbeds to end.
static BROKEN_OFF: AtomicBool = AtomicBool::new(false);
/// Testbeds of this process that are at work.
static AT_WORK: AtomicUsize = AtomicUsize::new(0);

/// Ends every testbed of this process, now and for good, in order: programs, devices and files are removed.
/// For whoever has to heed a signal.
pub fn break_off() {
    BROKEN_OFF.store(true, Ordering::SeqCst);
}

/// Whether a testbed of this process is at work. Once all have been broken off and none is, none will be.
pub fn at_work() -> bool {
    AT_WORK.load(Ordering::SeqCst) > 0
}

/// Set when every testbed is to end.
pub fn broken_off() -> &'static AtomicBool {
    &BROKEN_OFF
}

/// Counts as a testbed at work, for as long as it is kept. For whoever builds a laboratory of another kind, and
/// heeds [`broken_off`].
#[derive(Debug)]
pub struct AtWork(());

impl AtWork {
    /// The work begins, before anything is changed on the machine.
    ///
    /// # Errors
    /// [`EmuError::Cancelled`] if all testbeds have been broken off: whoever waits for their end may have left.
    pub fn begin() -> Result<AtWork, EmuError> {
        // Either whoever breaks off sees this count, or its flag is seen here: both are in one order for all threads.
        AT_WORK.fetch_add(1, Ordering::SeqCst);
        let work = AtWork(());
        match BROKEN_OFF.load(Ordering::SeqCst) {
            true => Err(EmuError::Cancelled),
            false => Ok(work),
        }
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        AT_WORK.fetch_sub(1, Ordering::SeqCst);
    }
}

/// How a scenario is run.
#[derive(Clone, Copy)]
pub struct Options<'a> {
    /// How often a measurement is made at most, until it is valid; at least once.
    pub attempts: u32,
    /// Set by somebody else to break the run off.
    pub cancel: Option<&'a AtomicBool>,
    /// Told how far the run is, some times a second.
    pub progress: Option<&'a (dyn Fn(&Progress) + Sync)>,
    /// The register in which measurements are shown, set and captured.
    pub console: Option<&'a Console>,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Options { attempts: 3, cancel: None, progress: None, console: None }
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
        let asked = self.cancel.is_some_and(|cancel| cancel.load(Ordering::Relaxed));
        asked || BROKEN_OFF.load(Ordering::Relaxed)
    }

    pub(crate) fn tell(&self, progress: &Progress) {
        if let Some(told) = self.progress {
            told(progress);
        }
    }
}
