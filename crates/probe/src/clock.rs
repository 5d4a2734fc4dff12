//! The clocks: all instants are the monotonic clock's; the other one is read only because the kernel
//! stamps packets with it.

use rustix::thread::set_current_timer_slack;
use rustix::time::{ClockId, Timespec, clock_getres, clock_gettime};
use trunkline_core::{Span, Time};

/// Now, by the monotonic clock.
pub fn now() -> Time {
    Time::from_nanos(nanos(clock_gettime(ClockId::Monotonic)))
}

/// Now, in nanoseconds since 1970, by the clock that can be set.
pub fn wall() -> u64 {
    nanos(clock_gettime(ClockId::Realtime))
}

/// The smallest step of the monotonic clock.
pub fn resolution() -> Span {
    Span::from_nanos(nanos(clock_getres(ClockId::Monotonic)))
}

/// A span as the system's calls take it.
pub fn timespec(span: Span) -> Timespec {
    let nanos = span.as_nanos();
    Timespec { tv_sec: (nanos / 1_000_000_000) as _, tv_nsec: (nanos % 1_000_000_000) as _ }
}

/// Nanoseconds of a time that is not negative.
pub fn nanos(time: Timespec) -> u64 {
    time.tv_sec.max(0).unsigned_abs() * 1_000_000_000 + time.tv_nsec.max(0).unsigned_abs()
}

/// Asks the kernel to wake this thread as exactly as it can: without this it may be 50 us late
/// (prctl(2), `PR_SET_TIMERSLACK`).
pub fn wake_exactly() {
    // Without it timers are later, which the self-calibration then shows.
    let _ = set_current_timer_slack(1.try_into().ok());
}

/// Both clocks at one instant: the wall clock, then the monotonic one. Whoever reads one after the other
/// may be interrupted in between for as long as the scheduler likes; so one is read between two readings
/// of the other, again if these are far apart.
pub fn both() -> (u64, Time) {
    let read = || {
        let (before, wall, after) = (now(), wall(), now());
        (after.since(before), wall, before + after.since(before).scaled(1, 2))
    };
    let mut best = read();
    for _ in 0..TRIES {
        if best.0 <= CLOSE {
            break;
        }
        best = best.min(read());
    }
    (best.1, best.2)
}

/// Readings this close together are good enough.
const CLOSE: Span = Span::from_nanos(500);
/// The number of times that both clocks are read again.
const TRIES: usize = 8;

/// The wall clock less the monotonic one, in nanoseconds: a change tells of a step of the wall clock.
pub fn difference() -> i64 {
    let (wall, now) = both();
    (wall as i64).wrapping_sub(now.as_nanos() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_clocks_are_read_together() {
        let first = difference();
        let off: Vec<u64> = (0..1000).map(|_| difference().abs_diff(first)).collect();
        // Nobody sets the clock by this much while the test runs, unless somebody does.
        let good = off.iter().filter(|&&nanos| nanos < 100_000).count();
        assert!(good > 900, "{good}");
    }
}
