//! Signals as events.

use crate::failure::Failure;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXFSZ};
use signal_hook::flag;
use signal_hook::iterator::Signals;
use std::fmt::Display;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The signals that ask for an end.
const ALL: [i32; 4] = [SIGINT, SIGTERM, SIGHUP, SIGQUIT];

/// The same signal so soon after itself is its echo: timeout(1) sends one to its program, and then to its process group.
const ECHO: Duration = Duration::from_millis(100);

/// The last signal that was no echo, and when it came.
#[derive(Default)]
struct Last(Option<(i32, Instant)>);

impl Last {
    /// Whether `signal`, which comes now, is an echo; if not, it is the last from now on.
    fn echoes(&mut self, signal: i32, now: Instant) -> bool {
        let echo = self.0.is_some_and(|(it, at)| it == signal && now.duration_since(at) < ECHO);
        if !echo {
            self.0 = Some((signal, now));
        }
        echo
    }
}

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

    /// Calls `act` for each, on a thread of its own, for as long as it says to go on. The echo of one is left out: often
    /// a second one means more.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn watch(
        mut self,
        mut act: impl FnMut(i32) -> bool + Send + 'static,
    ) -> Result<(), Failure> {
        let body = move || {
            let mut last = Last::default();
            for signal in &mut self.0 {
                if !last.echoes(signal, Instant::now()) && !act(signal) {
                    return;
                }
            }
        };
        let thread = trunkline_netns::thread("signals").and_then(|it| it.spawn(body));
        thread.map(|_| ()).map_err(Failure::no_thread)
    }
}

/// Calls `act` for each SIGINT, SIGTERM, SIGHUP or SIGQUIT, on a thread of its own, for as long as it says to go on.
///
/// # Errors
/// If the handlers cannot be installed.
pub fn watch(act: impl FnMut(i32) -> bool + Send + 'static) -> Result<(), Failure> {
    Caught::begin()?.watch(act)
}

/// A flag that each of them sets from now on, and which of them did. It starts no thread.
pub struct Flag {
    /// Whether one has come.
    pub raised: Arc<AtomicBool>,
    number: Arc<AtomicUsize>,
}

impl Flag {
    /// The failure of work that ended with `error`, by the signal's status if one has come.
    pub fn failure(&self, error: impl Display) -> Failure {
        match u8::try_from(self.number.load(Ordering::Relaxed)) {
            Ok(number @ 1..) => Failure::failed(error).with_status(128 + number),
            _ => Failure::failed(error),
        }
    }
}

/// Lets a write beyond the limit on the size of files (`ulimit -f`) fail with its error: SIGXFSZ would end the process without a
/// word. It is caught and not ignored, so that programs which are started have it as it was.
///
/// # Errors
/// If the handler cannot be installed.
pub fn bear_limits() -> io::Result<()> {
    flag::register(SIGXFSZ, Arc::default()).map(|_| ())
}

/// Raises the flag for each SIGINT, SIGTERM, SIGHUP or SIGQUIT from now on.
///
/// # Errors
/// If the handlers cannot be installed.
pub fn flag() -> io::Result<Flag> {
    let flag = Flag { raised: Arc::default(), number: Arc::default() };
    for signal in ALL {
        // The number first: whoever sees the flag finds it.
        flag::register_usize(signal, Arc::clone(&flag.number), signal as usize)?;
        flag::register(signal, Arc::clone(&flag.raised))?;
    }
    Ok(flag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_echo_comes_at_once_and_is_of_the_same_signal() {
        let (start, mut last) = (Instant::now(), Last::default());
        let mut echoes = |signal, after| last.echoes(signal, start + Duration::from_millis(after));
        assert!(!echoes(SIGTERM, 0) && echoes(SIGTERM, 1) && echoes(SIGTERM, 99));
        assert!(!echoes(SIGTERM, 100), "a second one");
        assert!(!echoes(SIGINT, 101) && !echoes(SIGTERM, 102), "another one");
    }
}
