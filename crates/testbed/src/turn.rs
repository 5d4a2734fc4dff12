//! One testbed at a time on a machine: two would make each other late.

use crate::TestbedError;
use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};
use trunkline_core::Span;

/// The file whose lock is the turn.
const FILE: &str = "testbed.lock";
/// How often it is looked whether the turn has come.
const LOOK: Duration = Duration::from_millis(50);

/// The turn, given back when dropped, by the kernel if not otherwise.
#[derive(Debug)]
pub struct Turn {
    _lock: OwnedFd,
}

impl Turn {
    /// Waits for the turn, `patience` at most. `waiting` is told once that it has to wait; `cancelled` ends
    /// the wait.
    ///
    /// # Errors
    /// Where the turn does not come, or the wait was cancelled.
    pub fn wait(
        directory: &Path,
        patience: Duration,
        waiting: &dyn Fn(),
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Turn, TestbedError> {
        let failed = |error: Errno| TestbedError::System {
            what: "open the lock of the testbed",
            source: error.into(),
        };
        let flags = OFlags::CREATE | OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let file = open(directory.join(FILE), flags, Mode::RUSR | Mode::WUSR).map_err(failed)?;
        let begun = Instant::now();
        let mut told = false;
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Turn { _lock: file }),
                Err(Errno::WOULDBLOCK | Errno::INTR) => {}
                Err(error) => return Err(failed(error)),
            }
            if !std::mem::replace(&mut told, true) {
                waiting();
            }
            if cancelled() {
                return Err(TestbedError::Cancelled);
            }
            if begun.elapsed() > patience {
                let waited = Span::from_secs(begun.elapsed().as_secs());
                return Err(TestbedError::Taken { waited });
            }
            sleep(LOOK);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn turns_are_taken_one_after_the_other() {
        let directory = tempfile::tempdir().unwrap();
        let told = Cell::new(0);
        let wait = |patience, cancelled: bool| {
            Turn::wait(directory.path(), patience, &|| told.set(told.get() + 1), &|| cancelled)
        };
        let first = wait(Duration::ZERO, false).unwrap();
        assert!(matches!(wait(Duration::ZERO, false), Err(TestbedError::Taken { .. })));
        assert!(matches!(wait(Duration::MAX, true), Err(TestbedError::Cancelled)));
        assert_eq!(told.get(), 2);
        drop(first);
        assert!(wait(Duration::ZERO, false).is_ok());
    }
}
