//! Long work that a signal ends at once.

use crate::failure::Failure;
use crate::signals;
use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

/// The time that a testbed may take to remove itself.
const GRACE: Duration = Duration::from_secs(5);
/// The time between two looks at whether it has.
const LOOK: Duration = Duration::from_millis(10);

/// An event while the work is done.
enum Event {
    Done,
    Signal(i32),
}

/// Signals, noticed from its start on.
pub struct Watch {
    sender: Sender<Event>,
    events: Receiver<Event>,
}

/// Tells of the work's end even if it panics.
struct Teller(Sender<Event>);

impl Drop for Teller {
    fn drop(&mut self) {
        // Nobody listens any more after a signal.
        let _ = self.0.send(Event::Done);
    }
}

impl Watch {
    /// From now on SIGINT, SIGTERM, SIGHUP and SIGQUIT end the work and not the process.
    pub fn start() -> Result<Watch, Failure> {
        let (sender, events) = channel();
        let told = sender.clone();
        signals::watch(move |signal| told.send(Event::Signal(signal)).is_ok())?;
        Ok(Watch { sender, events })
    }

    /// Does `work` on a thread of its own. After a signal a testbed is given the time to remove itself; other
    /// work is not waited for: it must leave nothing behind when the process ends.
    pub fn during<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Failure> {
        let teller = Teller(self.sender.clone());
        let work = move || {
            let _teller = teller;
            work()
        };
        let thread = trunkline_netns::thread("work")
            .and_then(|it| it.spawn(work))
            .map_err(Failure::no_thread)?;
        match self.events.recv() {
            Ok(Event::Signal(signal)) => {
                self.clear_up();
                Err(Failure::interrupted(signal))
            }
            _ => thread.join().or_else(|panic| resume_unwind(panic)),
        }
    }

    /// Has testbeds end, and waits for that.
    fn clear_up(&self) {
        trunkline_emu::break_off();
        let until = Instant::now() + GRACE;
        while trunkline_emu::at_work() && Instant::now() < until {
            thread::sleep(LOOK);
        }
    }

    /// Fails if a signal has come since.
    pub fn check(&self) -> Result<(), Failure> {
        match self.events.try_recv() {
            Ok(Event::Signal(signal)) => Err(Failure::interrupted(signal)),
            _ => Ok(()),
        }
    }
}
