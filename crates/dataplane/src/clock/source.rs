//! The readings of the two clocks.

use rustix::time::{ClockId, clock_gettime};
use std::fmt::Debug;
use trunkline_core::Time;

/// The two clocks.
pub trait Source: Debug + Send {
    /// CLOCK_MONOTONIC.
    fn monotonic(&self) -> Time;
    /// CLOCK_REALTIME, in nanoseconds.
    fn realtime(&self) -> i64;
}

/// The system's clocks.
#[derive(Debug)]
pub struct System;

impl Source for System {
    fn monotonic(&self) -> Time {
        monotonic()
    }

    fn realtime(&self) -> i64 {
        read(ClockId::Realtime) as i64
    }
}

fn read(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// CLOCK_MONOTONIC now.
pub fn monotonic() -> Time {
    Time::from_nanos(read(ClockId::Monotonic))
}
