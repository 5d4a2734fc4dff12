//! A port with a gate: it can keep frames back, and it measures the loop that uses it.
//!
//! Both the emulator and the bare forwarder read their ports through it, so that both are measured in
//! the same way and pay the same for it: one reading of the thread's processor time for each turn.

use rustix::time::{ClockId, clock_gettime};
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use trunkline_port::{Port, PortError, Received, Refusals, SendOutcome};

/// What the gates of one forwarding loop know together. Written by that loop alone, but for `open`.
#[derive(Debug, Default)]
pub struct Meter {
    open: AtomicBool,
    received: AtomicU64,
    sent: AtomicU64,
    busy: AtomicU64,
    turn_started: AtomicU64,
    moved: AtomicBool,
}

/// Frames, and the processor time of the turns that moved any.
#[derive(Debug, Clone, Copy)]
pub struct Reading {
    /// Frames received.
    pub received: u64,
    /// Frames handed to the device, whatever it did with them.
    pub sent: u64,
    /// Nanoseconds.
    pub busy: u64,
}

impl Meter {
    /// Lets frames through, or keeps them in the kernel's ring.
    pub fn set_open(&self, open: bool) {
        self.open.store(open, Relaxed);
    }

    /// The sums so far.
    pub fn read(&self) -> Reading {
        Reading {
            received: self.received.load(Relaxed),
            sent: self.sent.load(Relaxed),
            busy: self.busy.load(Relaxed),
        }
    }

    /// A turn of the loop ends and the next begins.
    fn turn(&self) {
        let now = thread_time();
        if self.moved.load(Relaxed) {
            add(&self.busy, now - self.turn_started.load(Relaxed));
            self.moved.store(false, Relaxed);
        }
        self.turn_started.store(now, Relaxed);
    }
}

/// Adds without a locked instruction: there is one writer.
fn add(sum: &AtomicU64, value: u64) {
    sum.store(sum.load(Relaxed) + value, Relaxed);
}

/// Processor time of the calling thread, the kernel's work on its behalf included.
pub fn thread_time() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// A port behind a gate.
pub struct Gate {
    port: Box<dyn Port>,
    meter: Arc<Meter>,
    /// The loop reads this one first in each turn.
    first: bool,
}

impl Gate {
    /// Puts both ports of a loop behind gates; the loop has to read the first one first.
    pub fn pair(ports: [Box<dyn Port>; 2], meter: &Arc<Meter>) -> [Box<dyn Port>; 2] {
        let mut first = true;
        ports.map(|port| -> Box<dyn Port> {
            let gate = Gate { port, meter: Arc::clone(meter), first };
            first = false;
            Box::new(gate)
        })
    }
}

impl Port for Gate {
    fn receive(
        &mut self,
        budget: usize,
        sink: &mut dyn FnMut(Received<'_>),
    ) -> Result<usize, PortError> {
        if self.first {
            self.meter.turn();
        }
        if !self.meter.open.load(Relaxed) {
            return Ok(0);
        }
        let count = self.port.receive(budget, sink)?;
        if count > 0 {
            self.meter.moved.store(true, Relaxed);
            add(&self.meter.received, count as u64);
        }
        Ok(count)
    }

    fn send(
        &mut self,
        frames: &mut dyn Iterator<Item = &[u8]>,
        outcome: &mut dyn FnMut(usize, SendOutcome),
    ) -> Result<(), PortError> {
        self.meter.moved.store(true, Relaxed);
        let mut sent = 0;
        let result = self.port.send(frames, &mut |index, fate| {
            sent += 1;
            outcome(index, fate);
        });
        add(&self.meter.sent, sent);
        result
    }

    fn poll_fd(&self) -> BorrowedFd<'_> {
        self.port.poll_fd()
    }

    fn check(&mut self) -> Result<(), PortError> {
        self.port.check()
    }

    fn kernel_drops(&mut self) -> u64 {
        self.port.kernel_drops()
    }

    fn refusals(&self) -> Refusals {
        self.port.refusals()
    }

    fn device(&self) -> &str {
        self.port.device()
    }

    fn mtu(&self) -> u32 {
        self.port.mtu()
    }

    fn backend_name(&self) -> &'static str {
        self.port.backend_name()
    }
}
