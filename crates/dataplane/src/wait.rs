//! Waiting: sleep until shortly before the next release, or until a frame or a command comes.

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;
use rustix::time::Timespec;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use trunkline_core::Span;

/// Wakes a sleeping dataplane from another thread.
#[derive(Debug, Clone)]
pub struct Waker(Arc<OwnedFd>);

impl Waker {
    /// A waker that has not been used.
    ///
    /// # Errors
    /// If the system has no descriptor to give.
    pub fn new() -> io::Result<Waker> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        Ok(Waker(Arc::new(eventfd(0, flags)?)))
    }

    /// Ends the present or the next sleep.
    pub fn wake(&self) {
        // The only failure is a counter that is full, and then the sleeper is awake already.
        let _ = rustix::io::write(&*self.0, &1u64.to_ne_bytes());
    }

    /// Forgets past calls of [`Waker::wake`].
    pub fn clear(&self) {
        // Nothing to read means that nobody called.
        let _ = rustix::io::read(&*self.0, &mut [0u8; 8]);
    }
}

/// A place to sleep, with what may end the sleep early.
pub struct Bed {
    epoll: OwnedFd,
    events: [Event; 8],
}

impl Bed {
    /// A bed in which only time and `waker` end the sleep.
    ///
    /// # Errors
    /// If the system has no descriptor to give.
    pub fn new(waker: &Waker) -> io::Result<Bed> {
        let event = Event { flags: EventFlags::empty(), data: EventData::new_u64(0) };
        let bed = Bed { epoll: epoll::create(CreateFlags::CLOEXEC)?, events: [event; 8] };
        bed.add(&*waker.0)?;
        Ok(bed)
    }

    /// Lets `source` end the sleep when it is readable.
    ///
    /// # Errors
    /// If epoll(7) refuses it.
    pub fn add(&self, source: impl AsFd) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, source, EventData::new_u64(0), EventFlags::IN)?)
    }

    /// Sleeps for at most `span`. Returns whether something other than time ended the sleep.
    ///
    /// # Errors
    /// If epoll_pwait2(2) fails for another reason than a signal.
    pub fn sleep(&mut self, span: Span) -> io::Result<bool> {
        let timeout = Timespec {
            tv_sec: (span.as_nanos() / 1_000_000_000) as i64,
            tv_nsec: (span.as_nanos() % 1_000_000_000) as i64,
        };
        match epoll::wait(&self.epoll, &mut self.events[..], Some(&timeout)) {
            Ok(ready) => Ok(ready > 0),
            Err(Errno::INTR) => Ok(true),
            Err(error) => Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_waker_ends_the_sleep_and_time_does() {
        let waker = Waker::new().unwrap();
        let mut bed = Bed::new(&waker).unwrap();
        assert!(!bed.sleep(Span::from_millis(1)).unwrap());
        waker.wake();
        assert!(bed.sleep(Span::from_secs(60)).unwrap());
        waker.clear();
        assert!(!bed.sleep(Span::from_millis(1)).unwrap());
    }
}
