//! The clock of every end: CLOCK_MONOTONIC, as the emulator's.

use rustix::time::{ClockId, clock_gettime};
use trunkline_core::Time;

/// CLOCK_MONOTONIC now.
pub fn now() -> Time {
    Time::from_nanos(nanos(ClockId::Monotonic))
}

/// CLOCK_REALTIME less CLOCK_MONOTONIC, in nanoseconds.
pub fn wall_offset() -> i64 {
    let realtime = nanos(ClockId::Realtime);
    realtime as i64 - nanos(ClockId::Monotonic) as i64
}

fn nanos(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
