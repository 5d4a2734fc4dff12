//! When the path's ends got what was handed over: measured by a thread that waits as programs do.
//!
//! Lateness ends when the kernel has taken a frame. The program that waits for it has to get a processor
//! then, and nothing before that says whether it does: the kernel's stamp at the far device is made within
//! the emulator's own call. So after sending frames the dataplane now and then sends a message to a thread
//! of its own, which is an ordinary one, waits at a socket like any program, and looks at the clock when it
//! runs. No frame is added to the path for it.

use crate::DataplaneError;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use trunkline_core::{Span, Time};
use trunkline_measure::Times;

/// The witness is woken no more often than this: some microseconds each time are no load.
const EVERY: Span = Span::from_millis(10);

/// The dataplane's side.
#[derive(Debug)]
pub(crate) struct Witness {
    stream: UnixStream,
    seen: Arc<Seen>,
    asked: Time,
}

/// The thread's observations.
#[derive(Debug, Default)]
struct Seen {
    /// The time since which it has not answered, in nanoseconds of the clock; zero if it has.
    since: AtomicU64,
    /// The longest wait, in nanoseconds, since somebody last looked.
    longest: AtomicU64,
    waits: Mutex<Times>,
}

impl Seen {
    fn note(&self, wait: Span) {
        self.waits.lock().unwrap_or_else(PoisonError::into_inner).record(wait);
        self.longest.fetch_max(wait.as_nanos(), Ordering::Release);
        self.since.store(0, Ordering::Release);
    }
}

impl Witness {
    /// Starts the thread. It gets the processors and the rank of the calling thread, and ends when the
    /// witness is dropped.
    ///
    /// # Errors
    /// If the system has no socket or no thread to give.
    pub fn start() -> Result<Witness, DataplaneError> {
        let (stream, mut far) = UnixStream::pair().map_err(DataplaneError::Wait)?;
        stream.set_nonblocking(true).map_err(DataplaneError::Wait)?;
        let seen = Arc::new(Seen::default());
        let own = Arc::clone(&seen);
        let attend = move || {
            let mut sent = [0; 8];
            while far.read_exact(&mut sent).is_ok() {
                let sent = Time::from_nanos(u64::from_ne_bytes(sent));
                own.note(crate::monotonic().since(sent));
            }
        };
        let thread = trunkline_netns::thread("witness").map_err(DataplaneError::Wait)?;
        thread.spawn(attend).map_err(DataplaneError::Wait)?;
        Ok(Witness { stream, seen, asked: Time::ZERO })
    }

    /// Wakes the thread, frames having been handed over at `now`, unless it was woken just before.
    pub fn ask(&mut self, now: Time) {
        if now.since(self.asked) < EVERY || self.seen.since.load(Ordering::Acquire) != 0 {
            return;
        }
        self.asked = now;
        self.seen.since.store(now.as_nanos(), Ordering::Release);
        if self.stream.write_all(&now.as_nanos().to_ne_bytes()).is_err() {
            // Nobody is there to answer: the thread has ended.
            self.seen.since.store(0, Ordering::Release);
        }
    }

    /// The longest wait that has ended since the last call, if one has.
    pub fn ended(&self) -> Option<Span> {
        match self.seen.longest.load(Ordering::Acquire) {
            0 => None,
            _ => Some(Span::from_nanos(self.seen.longest.swap(0, Ordering::AcqRel))),
        }
    }

    /// The time for which the thread has been waiting for a processor, if it is.
    pub fn waiting(&self, now: Time) -> Span {
        match self.seen.since.load(Ordering::Acquire) {
            0 => Span::ZERO,
            since => now.since(Time::from_nanos(since)),
        }
    }

    /// All waits, one that has not ended by `now` included as far as it has come.
    pub fn waits(&self, now: Time) -> Times {
        let mut waits = self.seen.waits.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match self.waiting(now) {
            Span::ZERO => {}
            waiting => waits.record(waiting),
        }
        waits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait_until(mut done: impl FnMut() -> bool) {
        for _ in 0..10_000 {
            if done() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        panic!("nothing after ten seconds");
    }

    #[test]
    fn every_question_is_answered_once_and_not_too_often() {
        let mut witness = Witness::start().unwrap();
        let now = crate::monotonic();
        witness.ask(now);
        wait_until(|| witness.waiting(crate::monotonic()).is_zero());
        witness.ask(now + Span::from_millis(9));
        assert_eq!(witness.waits(now).count(), 1, "not again so soon");
        witness.ask(now + EVERY);
        wait_until(|| witness.waits(now).count() == 2);
        assert!(witness.ended().is_some_and(|wait| !wait.is_zero()));
        assert_eq!(witness.ended(), None, "told once");
    }

    #[test]
    fn a_wait_that_has_not_ended_counts_as_far_as_it_has_come() {
        let mut witness = Witness::start().unwrap();
        // Nobody reads at this stream's other end.
        let (stream, _far) = UnixStream::pair().unwrap();
        witness.stream = stream;
        let asked = Time::from_nanos(1_000_000_000);
        witness.ask(asked);
        let later = asked + Span::from_secs(2);
        assert_eq!((witness.waiting(later), witness.ended()), (Span::from_secs(2), None));
        let waits = witness.waits(later);
        assert_eq!((waits.count(), waits.longer_than(Span::from_secs(1))), (1, 1));
        witness.ask(later);
        assert_eq!(witness.waiting(later), Span::from_secs(2), "the question stands");
    }
}
