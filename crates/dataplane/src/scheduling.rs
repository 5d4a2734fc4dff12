//! Asking the machine to let the dataplane run when it wants to.
#![allow(unsafe_code)]

use crate::DataplaneError;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity, set_current_timer_slack};
use trunkline_core::{Span, Time};

/// The slice that the scheduler plans for this thread. A woken thread with a shorter slice than the
/// running one's (3 ms by default) runs at once instead of waiting for that slice to end.
const SLICE_NANOS: u64 = 100_000;
const NICE: i32 = -20;
/// Above ordinary threads, below the kernel's own real-time threads (50 and up).
const REAL_TIME_PRIORITY: u32 = 10;
/// A thread that sleeps for this share of its time, in percent, stays in the real-time class. One that
/// spins there without pause starves the kernel's own work and is stopped for 50 ms in every second.
const LEAST_SLEEP: u64 = 10;
/// If others want the processor, a thread that has not slept for this long pauses
const PAUSE_EVERY: Span = Span::from_micros(1000);
/// for this long, and however long waking takes: together some percent of its time. At nice -20 the
/// others' due is about one percent.
const PAUSE: Span = Span::from_micros(5);
/// Losing the processor for long a second time within this means that others want it.
const AGAIN: Span = Span::from_millis(500);
/// The time for which others are taken to want the processor after they were seen to.
const CONTENTION: Span = Span::from_secs(3);
/// The time after which the share is judged anew.
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

/// The processors that this process may use.
pub fn processors() -> Vec<usize> {
    let set = sched_getaffinity(None).unwrap_or_else(|_| CpuSet::new());
    (0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect()
}

/// Keeps the calling thread, and every thread and program that it starts from now on, off one
/// processor, if there is another. A dataplane that is given that processor goes there all the same.
pub fn keep_off(processor: usize) {
    let mut others = CpuSet::new();
    processors()
        .into_iter()
        .filter(|&other| other != processor)
        .for_each(|other| others.set(other));
    if others.count() > 0
        && let Err(error) = sched_setaffinity(None, &others)
    {
        tracing::debug!(%error, "programs may use the emulator's processor");
    }
}

/// Keeps the thread in the class that serves it best.
///
/// While it sleeps enough by itself, that is the real-time one: it then runs as soon as it wakes. While
/// it has too much to do for that, it is the ordinary one, in which it is all but alone as long as nobody
/// else wants the processor. If somebody does, every loss of it lasts until the other's slice ends,
/// some milliseconds; then it pauses for some tens of microseconds in every millisecond, which gives
/// the others more than their due, so that the scheduler never takes it away for longer.
#[derive(Debug)]
pub struct Scheduling {
    /// Whether the real-time class is to be had, and the thread ever sleeps.
    allowed: bool,
    class: Class,
    since: Time,
    slept: Span,
    stalls: u64,
    preemptions: i64,
    /// When the processor was last lost to another thread for long.
    last_loss: Time,
    /// Until when others are taken to want the processor.
    contended_until: Time,
    last_sleep: Time,
}

impl Scheduling {
    /// Prepares the calling thread: precise timers, the best class that is allowed, and one processor
    /// if asked. A thread that is `busy` never sleeps and stays in the ordinary class.
    ///
    /// # Errors
    /// If the processor asked for does not exist.
    pub fn prepare(
        cpu: Option<usize>,
        busy: bool,
        now: Time,
    ) -> Result<Scheduling, DataplaneError> {
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
        Ok(Scheduling {
            allowed: class == Class::RealTime,
            class,
            since: now,
            slept: Span::ZERO,
            stalls: 0,
            preemptions: preemptions(),
            last_loss: Time::ZERO,
            contended_until: Time::ZERO,
            last_sleep: now,
        })
    }

    /// Notes a sleep from `from` to `to`.
    pub fn slept(&mut self, from: Time, to: Time) {
        if to > from {
            self.slept += to.since(from);
            self.last_sleep = to;
        }
    }

    /// Pauses if that is due: others want the processor, and the thread has not slept for long.
    /// Returns whether it did.
    pub fn pause(&mut self, now: Time) -> bool {
        let due = now < self.contended_until && now.since(self.last_sleep) > PAUSE_EVERY;
        if due {
            std::thread::sleep(PAUSE.to_duration());
            self.slept(now, crate::monotonic());
        }
        due
    }

    /// Whether another thread has taken the processor from this one since the last call. A stall without that
    /// is the machine's, and no class helps against it.
    fn was_preempted(&mut self) -> bool {
        let before = std::mem::replace(&mut self.preemptions, preemptions());
        self.preemptions > before
    }

    /// Judges the term that ends at `now`, the machine having stalled `stalls` times since the start,
    /// and changes the class if that is called for.
    pub fn judge(&mut self, now: Time, stalls: u64) {
        let term = now.since(self.since);
        let stalled = stalls > self.stalls;
        if !self.allowed || (term < TERM && !stalled) {
            return;
        }
        if stalled && self.was_preempted() {
            if now.since(self.last_loss) < AGAIN {
                self.contended_until = now + CONTENTION;
            }
            self.last_loss = now;
        }
        let rested = self.slept.as_nanos().saturating_mul(100) >= term.as_nanos() * LEAST_SLEEP;
        let fit = match rested {
            true => Class::RealTime,
            false => Class::Ordinary { nice: NICE },
        };
        if fit != self.class && fit.enter().is_ok() {
            self.class = fit;
        }
        (self.since, self.slept, self.stalls) = (now, Span::ZERO, stalls);
    }
}

/// The number of times that the calling thread has lost the processor against its will.
fn preemptions() -> i64 {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: `usage` is a valid place for the answer, and all zeros are a valid value of it.
    unsafe {
        libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
        usage.assume_init().ru_nivcsw
    }
}

fn pin(cpu: usize) -> Result<(), DataplaneError> {
    let mut set = CpuSet::new();
    if cpu < CpuSet::MAX_CPU {
        set.set(cpu);
    }
    sched_setaffinity(None, &set)
        .map_err(|error| DataplaneError::Processor { cpu, source: error.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scheduling(now: Time) -> Scheduling {
        Scheduling {
            allowed: true,
            class: Class::Ordinary { nice: 0 },
            since: now,
            slept: Span::ZERO,
            stalls: 3,
            preemptions: i64::MAX,
            last_loss: Time::ZERO,
            contended_until: Time::ZERO,
            last_sleep: now,
        }
    }

    #[test]
    fn there_is_a_processor_to_run_on() {
        assert!(!processors().is_empty());
    }

    /// On a thread of its own, for it stays where it is put.
    #[test]
    fn a_thread_is_pinned_to_the_processor_named_and_to_no_other() {
        let pinned = std::thread::spawn(|| {
            for cpu in processors() {
                pin(cpu).unwrap();
                assert_eq!(processors(), [cpu]);
            }
            pin(CpuSet::MAX_CPU).unwrap_err().to_string()
        });
        assert!(pinned.join().unwrap().contains(&CpuSet::MAX_CPU.to_string()));
    }

    #[test]
    fn losing_the_processor_to_another_thread_is_told_once() {
        let mut scheduling = scheduling(Time::ZERO);
        assert!(!scheduling.was_preempted());
        scheduling.preemptions = -1;
        assert!(scheduling.was_preempted());
    }

    #[test]
    fn a_term_is_judged_at_its_end_or_after_a_stall() {
        let start = Time::from_nanos(1_000_000_000);
        let within = start + TERM.scaled(1, 2);
        let mut waiting = scheduling(start);
        waiting.judge(within, 3);
        assert_eq!(waiting.since, start, "no stall is new");
        let mut stalled = scheduling(start);
        stalled.judge(within, 4);
        assert_eq!((stalled.since, stalled.stalls), (within, 4));
        let mut ended = scheduling(start);
        ended.judge(start + TERM, 3);
        assert_eq!(ended.since, start + TERM);
    }

    #[test]
    fn others_want_the_processor_if_it_is_lost_twice_within_a_time() {
        let start = Time::from_nanos(1_000_000_000);
        let lost_again = |after| {
            let mut scheduling = scheduling(start);
            (scheduling.last_loss, scheduling.preemptions) = (start, -1);
            scheduling.judge(start + after, 4);
            assert_eq!(scheduling.last_loss, start + after);
            scheduling.contended_until
        };
        let within = AGAIN.saturating_sub(Span::from_nanos(1));
        assert_eq!(lost_again(within), start + within + CONTENTION);
        assert_eq!(lost_again(AGAIN), Time::ZERO, "too long ago");
    }

    #[test]
    fn a_pause_is_due_where_others_want_the_processor_and_got_none_for_long() {
        let now = crate::monotonic();
        let mut calm = scheduling(now);
        calm.last_sleep = Time::ZERO;
        assert!(!calm.pause(now), "nobody wants it");
        let mut contended = scheduling(now);
        contended.contended_until = now + CONTENTION;
        assert!(!contended.pause(now), "it has slept just now");
        contended.last_sleep = Time::ZERO;
        assert!(contended.pause(now) && contended.last_sleep > now);
    }
}
