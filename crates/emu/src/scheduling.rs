//! Asking the machine to let the dataplane run when it wants to.
#![allow(unsafe_code)]

use crate::EmuError;
use rustix::thread::{CpuSet, sched_setaffinity, set_current_timer_slack};

/// The slice that the scheduler plans for this thread. A woken thread with a shorter slice than the
/// running one's (3 ms by default) runs at once instead of waiting for that slice to end.
const SLICE_NANOS: u64 = 100_000;
const NICE: i32 = -20;

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

/// Stays in the ordinary class with the given nice value and, since Linux 6.12, slice.
fn ask_for(nice: i32) -> std::io::Result<()> {
    let attributes = Attributes {
        size: size_of::<Attributes>() as u32,
        policy: libc::SCHED_OTHER as u32,
        flags: 0,
        nice,
        priority: 0,
        runtime: SLICE_NANOS,
        deadline: 0,
        period: 0,
    };
    // SAFETY: `attributes` is laid out as the kernel expects and outlives the call; 0 is this thread.
    let result = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
    if result == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

/// Prepares the calling thread: precise timers, first among ordinary processes where that is allowed,
/// and on one processor where asked. No real-time class: spinning there starves the kernel's own work.
///
/// # Errors
/// Where the processor asked for does not exist.
pub fn prepare(cpu: Option<usize>) -> Result<(), EmuError> {
    if let Err(error) = set_current_timer_slack(std::num::NonZeroU64::new(1)) {
        tracing::debug!(%error, "timer slack stays at its default of 50 us");
    }
    if let Err(error) = ask_for(NICE).or_else(|_| ask_for(0)) {
        tracing::debug!(%error, "runs as any other thread");
    }
    let Some(cpu) = cpu else { return Ok(()) };
    let mut set = CpuSet::new();
    if cpu < CpuSet::MAX_CPU {
        set.set(cpu);
    }
    sched_setaffinity(None, &set).map_err(|error| EmuError::Processor { cpu, source: error.into() })
}
