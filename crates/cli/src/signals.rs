//! Signals as events.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::iterator::Signals;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The signals that ask for an end.
const ALL: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];

/// The exit status of a command that a signal has ended, as shells tell it.
pub fn status(signal: i32) -> i32 {
    128 + signal
}

/// Signals that are caught from the making on and acted upon later. Make it before the first change to the machine: a
/// signal before ends the process, which has then changed nothing; one after waits here.
///
/// It starts no thread, so that the process can still enter a user namespace.
pub struct Caught(Signals);

impl Caught {
    /// Catches them from now on.
    ///
    /// # Errors
    /// If the handlers cannot be installed.
    pub fn begin() -> io::Result<Caught> {
        Signals::new(ALL).map(Caught)
    }

    /// One that has come, if any has.
    pub fn pending(&mut self) -> Option<i32> {
        self.0.pending().next()
    }

    /// Calls `act` for each, on a thread of its own, for as long as it says to go on.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn watch(mut self, mut act: impl FnMut(i32) -> bool + Send + 'static) -> io::Result<()> {
        trunkline_netns::thread("signals")?.spawn(move || {
            for signal in &mut self.0 {
                if !act(signal) {
                    return;
                }
            }
        })?;
        Ok(())
    }
}

/// Calls `act` for each SIGINT, SIGTERM or SIGHUP, on a thread of its own, for as long as it says to go on.
///
/// # Errors
/// If the handlers cannot be installed.
pub fn watch(act: impl FnMut(i32) -> bool + Send + 'static) -> io::Result<()> {
    Caught::begin()?.watch(act)
}

/// A flag that each of them sets from now on. It starts no thread.
///
/// # Errors
/// If the handlers cannot be installed.
pub fn flag() -> io::Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in ALL {
        flag::register(signal, Arc::clone(&flag))?;
    }
    Ok(flag)
}
