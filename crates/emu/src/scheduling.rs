//! Asking the machine to let the dataplane run when it wants to.

use crate::EmuError;
use rustix::process::setpriority_process;
use rustix::thread::{CpuSet, sched_setaffinity, set_current_timer_slack};

/// Prepares the calling thread: precise timers, first among ordinary processes where that is allowed,
/// and on one processor where asked. No real-time class: spinning there starves the kernel's own work.
///
/// # Errors
/// Where the processor asked for does not exist.
pub fn prepare(cpu: Option<usize>) -> Result<(), EmuError> {
    if let Err(error) = set_current_timer_slack(std::num::NonZeroU64::new(1)) {
        tracing::debug!(%error, "timer slack stays at its default of 50 us");
    }
    if let Err(error) = setpriority_process(None, -20) {
        tracing::debug!(%error, "runs at ordinary priority");
    }
    let Some(cpu) = cpu else { return Ok(()) };
    let mut set = CpuSet::new();
    if cpu < CpuSet::MAX_CPU {
        set.set(cpu);
    }
    sched_setaffinity(None, &set).map_err(|error| EmuError::Processor { cpu, source: error.into() })
}
