//! One testbed at a time on a machine: two would make each other late.

use crate::EmuError;
use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};
use trunkline_core::Span;

/// The file whose lock is the turn.
const FILE: &str = "testbed.lock";
/// The file whose lock is the right to the next turn: who gives a turn back and wants another one at once, as
/// between the cells of a grid, finds it taken by whoever waits.
const NEXT: &str = "testbed.next";
/// How often it is looked whether the turn has come.
const LOOK: Duration = Duration::from_millis(50);
/// How often it is told that the turn has not come.
const TELL: Duration = Duration::from_secs(1);

/// The turn, given back when dropped, by the kernel if not otherwise.
#[derive(Debug)]
pub struct Turn {
    _lock: OwnedFd,
}

impl Turn {
    /// Waits for the turn, `patience` at most. `waiting` is told at once that it has to wait, and each second that it still
    /// does: who shows it may show little. `cancelled` ends the wait.
    ///
    /// # Errors
    /// If the turn does not come, or the wait was cancelled.
    pub fn wait(
        directory: &Path,
        patience: Duration,
        waiting: &dyn Fn(),
        cancelled: &dyn Fn() -> bool,
    ) -> Result<Turn, EmuError> {
        let mut wait = Wait { begun: Instant::now(), patience, told: None, waiting, cancelled };
        let next = open_lock(directory, NEXT)?;
        wait.acquire(&next)?;
        let file = open_lock(directory, FILE)?;
        wait.acquire(&file)?;
        Ok(Turn { _lock: file })
    }
}

fn open_lock(directory: &Path, name: &str) -> Result<OwnedFd, EmuError> {
    let flags = OFlags::CREATE | OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    open(directory.join(name), flags, Mode::RUSR | Mode::WUSR).map_err(failed)
}

fn failed(error: Errno) -> EmuError {
    EmuError::System { what: "open the lock of the testbed", source: error.into() }
}

/// A wait for one lock after the other.
struct Wait<'a> {
    begun: Instant,
    patience: Duration,
    told: Option<Instant>,
    waiting: &'a dyn Fn(),
    cancelled: &'a dyn Fn() -> bool,
}

impl Wait<'_> {
    fn acquire(&mut self, file: &OwnedFd) -> Result<(), EmuError> {
        loop {
            match flock(file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(()),
                Err(Errno::WOULDBLOCK | Errno::INTR) => {}
                Err(error) => return Err(failed(error)),
            }
            if self.told.is_none_or(|at| at.elapsed() >= TELL) {
                self.told = Some(Instant::now());
                (self.waiting)();
            }
            if (self.cancelled)() {
                return Err(EmuError::Cancelled);
            }
            if self.begun.elapsed() > self.patience {
                let waited = Span::from_secs(self.begun.elapsed().as_secs());
                return Err(EmuError::Taken { waited });
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
        assert!(matches!(wait(Duration::ZERO, false), Err(EmuError::Taken { .. })));
        assert!(matches!(wait(Duration::MAX, true), Err(EmuError::Cancelled)));
        assert_eq!(told.get(), 2);
        drop(first);
        assert!(wait(Duration::ZERO, false).is_ok());
    }

    /// Somebody who shows a line only now and then would else never show that it waits.
    #[test]
    fn it_is_told_again_while_it_waits() {
        let directory = tempfile::tempdir().unwrap();
        let told = Cell::new(0);
        let long = Duration::from_secs(60);
        let _first = Turn::wait(directory.path(), Duration::ZERO, &|| (), &|| false).unwrap();
        let waiting = || told.set(told.get() + 1);
        let second = Turn::wait(directory.path(), long, &waiting, &|| told.get() == 2);
        assert!(matches!(second, Err(EmuError::Cancelled)));
    }

    #[test]
    fn who_waits_goes_before_who_comes_back() {
        let directory = tempfile::tempdir().unwrap();
        let wait = || Turn::wait(directory.path(), Duration::from_secs(60), &|| (), &|| false);
        let order = std::sync::Mutex::new(Vec::new());
        let first = wait().unwrap();
        std::thread::scope(|scope| {
            let (told, waits) = std::sync::mpsc::channel();
            let order = &order;
            let directory = &directory;
            scope.spawn(move || {
                let waiting = || told.send(()).unwrap();
                let patience = Duration::from_secs(60);
                let turn = Turn::wait(directory.path(), patience, &waiting, &|| false);
                order.lock().unwrap().push("waited");
                drop(turn.unwrap());
            });
            waits.recv().unwrap();
            drop(first);
            let again = wait().unwrap();
            order.lock().unwrap().push("came back");
            drop(again);
        });
        assert_eq!(*order.lock().unwrap(), ["waited", "came back"]);
    }
}
