//! The costs of what an emulator does between packets: reading the clock, looking at a ring, entering the kernel, waking up.
//!
//! The counterpart on this machine of Table 1 and Figure 3 of the LDS report (§3.7), which has 140 cycles for a read over
//! PCI, 34 for a write and 3754 for an interrupt routine.

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::retry_on_intr;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::time::{ClockId, Timespec, clock_gettime};
use serde::{Deserialize, Serialize};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::Duration;
use trunkline_core::{Span, Time};
use trunkline_dataplane::monotonic;
use trunkline_measure::{Percentiles, TimeRange, Times};

/// Samples of each operation, about as many as the report has.
const SAMPLES: u32 = 5_000;
/// Looks at a shared word in one sample: a single one is shorter than the clock's step.
const LOOKS: u32 = 1_000;
/// Wake-ups, and the pause in front of each, in which the thread that is woken falls asleep.
const WAKE_UPS: u32 = 1_000;
const PAUSE: Duration = Duration::from_micros(200);

/// The times of one operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cost {
    /// Mean, least, percentiles and greatest (Table 1).
    #[serde(flatten)]
    pub times: Percentiles,
    /// How often it took how long (Figure 3).
    pub ranges: Vec<TimeRange>,
}

impl Cost {
    fn of(times: &Times) -> Cost {
        Cost { times: times.percentiles(), ranges: times.ranges() }
    }
}

/// The costs on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Costs {
    /// A reading of the monotonic clock.
    pub clock_read: Cost,
    /// A look at a word that another processor may write, such as a ring's status: the mean of a thousand.
    pub ring_look: Cost,
    /// A system call that finds nothing to do (`poll` of an empty pipe), with one reading of the clock.
    pub system_call: Cost,
    /// From the call that wakes a sleeping thread until that thread runs.
    pub wake_up: Cost,
    /// Processor time of the woken thread for each wake-up.
    pub wake_up_processor: Span,
}

impl Costs {
    /// The rate of frames, in frames per second, from which on sleeping before each takes a whole processor: spinning costs no
    /// more then.
    pub fn spinning_pays_from(&self) -> Option<f64> {
        let nanos = self.wake_up_processor.as_nanos();
        (nanos > 0).then(|| 1e9 / nanos as f64)
    }
}

/// Measures the costs; takes half a second.
///
/// # Errors
/// If the system gives no pipe or thread.
pub fn costs() -> io::Result<Costs> {
    let (wake_up, wake_up_processor) = wake_ups()?;
    Ok(Costs {
        clock_read: clock_reads(),
        ring_look: ring_looks(),
        system_call: system_calls()?,
        wake_up,
        wake_up_processor,
    })
}

fn clock_reads() -> Cost {
    let mut times = Times::default();
    for _ in 0..SAMPLES {
        let before = monotonic();
        times.record(monotonic().since(before));
    }
    Cost::of(&times)
}

fn ring_looks() -> Cost {
    let (word, mut times) = (AtomicU32::new(0), Times::default());
    for _ in 0..SAMPLES {
        let before = monotonic();
        for _ in 0..LOOKS {
            std::hint::black_box(word.load(Ordering::Acquire));
        }
        let took = monotonic().since(before).as_nanos();
        times.record(Span::from_nanos(took.div_ceil(u64::from(LOOKS))));
    }
    Cost::of(&times)
}

fn system_calls() -> io::Result<Cost> {
    let (empty, _open) = pipe_with(PipeFlags::CLOEXEC)?;
    let mut times = Times::default();
    for _ in 0..SAMPLES {
        let before = monotonic();
        let mut fds = [PollFd::new(&empty, PollFlags::IN)];
        retry_on_intr(|| poll(&mut fds, Some(&Timespec::default())))?;
        times.record(monotonic().since(before));
    }
    Ok(Cost::of(&times))
}

/// From the write that wakes a thread to its first reading of the clock, and the processor time of that thread for each. What is
/// written is the instant of writing.
fn wake_ups() -> io::Result<(Cost, Span)> {
    let (reader, writer) = pipe_with(PipeFlags::CLOEXEC)?;
    let sleeper = std::thread::Builder::new().name("woken".into()).spawn(move || woken(&reader))?;
    for _ in 0..WAKE_UPS {
        sleep(PAUSE);
        retry_on_intr(|| rustix::io::write(&writer, &monotonic().as_nanos().to_ne_bytes()))?;
    }
    drop(writer);
    sleeper.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Reads until the other end is closed.
fn woken(reader: &OwnedFd) -> io::Result<(Cost, Span)> {
    let (mut times, began, mut octets) = (Times::default(), processor_time(), [0; 8]);
    while retry_on_intr(|| rustix::io::read(reader, &mut octets))? > 0 {
        times.record(monotonic().since(Time::from_nanos(u64::from_ne_bytes(octets))));
    }
    let spent = processor_time().saturating_sub(began);
    Ok((Cost::of(&times), Span::from_nanos(spent.as_nanos() / times.count().max(1))))
}

/// The processor time of this thread.
fn processor_time() -> Span {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Span::from_nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_was_measured_and_a_wake_up_is_the_dearest() {
        let costs = costs().unwrap();
        assert_eq!(costs.clock_read.times.count, u64::from(SAMPLES));
        assert_eq!(costs.system_call.times.count, u64::from(SAMPLES));
        assert_eq!(costs.wake_up.times.count, u64::from(WAKE_UPS));
        // Medians: a machine that stands still spoils the greatest alone.
        assert!(costs.ring_look.times.p50 <= costs.system_call.times.p50, "{costs:?}");
        assert!(costs.wake_up.times.p50 > costs.clock_read.times.p50, "{costs:?}");
        for cost in [&costs.clock_read, &costs.ring_look, &costs.system_call, &costs.wake_up] {
            let counted: u64 = cost.ranges.iter().map(|range| range.count).sum();
            assert_eq!(counted, cost.times.count);
            assert!(cost.ranges.iter().map(|range| range.up_to).is_sorted());
        }
        assert!(costs.spinning_pays_from().unwrap() > 0.0);
    }
}
