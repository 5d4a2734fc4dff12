//! The clock of every end: CLOCK_MONOTONIC, as the emulator's.

use rustix::time::{ClockId, clock_gettime};
use trunkline_core::Time;

/// CLOCK_MONOTONIC now.
pub fn now() -> Time {
    let time = clock_gettime(ClockId::Monotonic);
    Time::from_nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}
