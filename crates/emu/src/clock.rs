//! The emulator's clock: CLOCK_MONOTONIC, with kernel stamps of CLOCK_REALTIME brought over to it.

use rustix::time::{ClockId, clock_gettime};
use trunkline_core::{Span, Time};

/// A change of the offset between the two clocks beyond this is a step, not an adjustment of pace.
const STEP: i64 = 1_000_000;
/// A comparison of the clocks that took longer than this was interrupted and is not used.
const PROMPT: Span = Span::from_micros(2);
/// A stamp further ahead than this is not believed,
const AHEAD: Span = Span::from_millis(10);
/// nor one older than this.
const OLDEST: Span = Span::from_millis(500);

/// Reads the clock and converts stamps. [`Clock::now`] also keeps the offset fresh.
#[derive(Debug)]
pub struct Clock {
    /// CLOCK_REALTIME less CLOCK_MONOTONIC.
    offset: i64,
    now: Time,
    /// Nothing is taken to have come before this.
    start: Time,
    steps: u64,
    unbelieved: u64,
}

impl Default for Clock {
    fn default() -> Clock {
        Clock { offset: offset().0, now: monotonic(), start: Time::ZERO, steps: 0, unbelieved: 0 }
    }
}

impl Clock {
    /// From here on, what was stamped before now is taken to have come now.
    pub fn start(&mut self) {
        self.start = self.now();
    }

    /// The time now. Only the monotonic clock is read.
    pub fn now(&mut self) -> Time {
        self.now = monotonic();
        self.now
    }

    /// Brings the offset between the clocks up to date; to be called before stamps are converted.
    pub fn synchronise(&mut self) {
        let (offset, took) = offset();
        let stepped = (offset - self.offset).abs() > STEP + took.as_nanos() as i64;
        self.steps += u64::from(stepped);
        if stepped || took < PROMPT {
            self.offset = offset;
        }
        self.now();
    }

    /// The instant of a kernel stamp (CLOCK_REALTIME in nanoseconds). A stamp from before a clock
    /// step, or none at all, counts as now.
    pub fn stamp(&mut self, realtime: Option<u64>) -> Time {
        let Some(realtime) = realtime else { return self.now };
        let nanos = i64::try_from(realtime).unwrap_or(i64::MAX).saturating_sub(self.offset);
        let stamp = Time::from_nanos(u64::try_from(nanos).unwrap_or(0));
        // A frame may have come since the clock was read.
        if stamp < self.start {
            return self.start;
        }
        if stamp.since(self.now) > AHEAD || self.now.since(stamp) > OLDEST {
            self.unbelieved += 1;
            return self.now;
        }
        stamp
    }

    /// How often CLOCK_REALTIME was stepped by more than a millisecond.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// How many stamps lay well in the future or more than half a second back.
    pub fn unbelieved(&self) -> u64 {
        self.unbelieved
    }

    /// The CLOCK_REALTIME instant, in nanoseconds, of an instant of this clock.
    pub fn realtime(&self, at: Time) -> u64 {
        (at.as_nanos() as i64).saturating_add(self.offset) as u64
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

/// The offset between the clocks, with how long the comparison took.
fn offset() -> (i64, Span) {
    let before = monotonic();
    let realtime = read(ClockId::Realtime) as i64;
    let after = monotonic();
    // The instant between two readings of one clock belongs to the reading of the other in between.
    let between = (before.as_nanos() + after.as_nanos()) / 2;
    (realtime - between as i64, after.since(before))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_come_over() {
        let mut clock = Clock::default();
        clock.synchronise();
        let realtime = read(ClockId::Realtime);
        let now = clock.now();
        let stamp = clock.stamp(Some(realtime));
        assert!(now.since(stamp) < Span::from_millis(100), "{now} {stamp}");
        assert_eq!(clock.stamp(None), now);
        assert_eq!(clock.stamp(Some(realtime + 10_000_000_000)), now, "from the future");
        assert_eq!(clock.stamp(Some(1)), now, "from the distant past");
        assert_eq!((clock.unbelieved(), clock.steps()), (2, 0));
    }
}
