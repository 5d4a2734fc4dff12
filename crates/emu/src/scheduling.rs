//! Asking the machine to let the dataplane run when it wants to.
#![allow(unsafe_code)]

use crate::EmuError;
use rustix::thread::{CpuSet, sched_setaffinity, set_current_timer_slack};
use trunkline_core::{Span, Time};

/// The slice that the scheduler plans for this thread. A woken thread with a shorter slice than the
/// running one's (3 ms by default) runs at once instead of waiting for that slice to end.
const SLICE_NANOS: u64 = 100_000;
const NICE: i32 = -20;
/// Above ordinary threads, below the kernel's own real-time threads (50 and up).
const REAL_TIME_PRIORITY: u32 = 10;
/// The least share of its time, in percent, that a real-time thread must sleep here. One that spins
/// without pause starves the kernel's own work and is stopped for 50 ms in every second in return.
const LEAST_SLEEP: u64 = 20;
/// How often the share is judged.
const TERM: Span = Span::from_millis(100);

/// A scheduling class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Ordinary { nice: i32 },
    RealTime,
}

/// `struct sched_attr` of sched_setattr(2), its first version.
#[repr(C)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

impl Class {
    /// Puts the calling thread into this class; in the ordinary one with a short slice (Linux 6.12).
    fn enter(self) -> std::io::Result<()> {
        let (policy, nice, priority, runtime) = match self {
            Class::Ordinary { nice } => (libc::SCHED_OTHER, nice, 0, SLICE_NANOS),
            Class::RealTime => (libc::SCHED_FIFO, 0, REAL_TIME_PRIORITY, 0),
        };
        let size = size_of::<Attributes>() as u32;
        let policy = policy as u32;
        let attributes =
            Attributes { size, policy, flags: 0, nice, priority, runtime, deadline: 0, period: 0 };
        // SAFETY: `attributes` is laid out as the kernel expects and outlives the call; 0 is this thread.
        let result = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
        if result == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
    }
}

/// Keeps the thread in the real-time class while it sleeps enough, and out of it while it does not.
#[derive(Debug)]
pub struct Scheduling {
    /// Is the real-time class to be had, and does the thread ever sleep?
    allowed: bool,
    class: Class,
    since: Time,
    slept: Span,
}

impl Scheduling {
    /// Prepares the calling thread: precise timers, the best class that is allowed, and one processor
    /// where asked. A thread that is `busy` never sleeps and stays in the ordinary class.
    ///
    /// # Errors
    /// Where the processor asked for does not exist.
    pub fn prepare(cpu: Option<usize>, busy: bool, now: Time) -> Result<Scheduling, EmuError> {
        if let Err(error) = set_current_timer_slack(std::num::NonZeroU64::new(1)) {
            tracing::debug!(%error, "timer slack stays at its default of 50 us");
        }
        if let Some(cpu) = cpu {
            pin(cpu)?;
        }
        let wanted = [Class::RealTime, Class::Ordinary { nice: NICE }, Class::Ordinary { nice: 0 }];
        let class = wanted.into_iter().skip(usize::from(busy)).find(|class| class.enter().is_ok());
        let class = class.unwrap_or(Class::Ordinary { nice: 0 });
        tracing::debug!(?class, "dataplane");
        let allowed = class == Class::RealTime;
        Ok(Scheduling { allowed, class, since: now, slept: Span::ZERO })
    }

    /// Notes a sleep.
    pub fn slept(&mut self, span: Span) {
        self.slept += span;
    }

    /// Judges the term that ends at `now`, and changes the class where that is called for.
    pub fn judge(&mut self, now: Time) {
        let term = now.since(self.since);
        if !self.allowed || term < TERM {
            return;
        }
        let rested = self.slept.as_nanos().saturating_mul(100) >= term.as_nanos() * LEAST_SLEEP;
        let fit = if rested { Class::RealTime } else { Class::Ordinary { nice: NICE } };
        if fit != self.class && fit.enter().is_ok() {
            self.class = fit;
        }
        (self.since, self.slept) = (now, Span::ZERO);
    }
}

fn pin(cpu: usize) -> Result<(), EmuError> {
    let mut set = CpuSet::new();
    if cpu < CpuSet::MAX_CPU {
        set.set(cpu);
    }
    sched_setaffinity(None, &set).map_err(|error| EmuError::Processor { cpu, source: error.into() })
}
