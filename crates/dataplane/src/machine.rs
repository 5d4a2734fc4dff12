//! The disturbances of the dataplane's thread by the machine: the times when it did not let it run.

use trunkline_core::{Span, Time};

/// Not having run for this long, against the plan, is a stall of the machine.
const STALL: Span = Span::from_millis(1);
/// While it spins or works, having lost this much is an interruption: spacing suffers.
const INTERRUPTION: Span = Span::from_micros(20);

/// The rest of the loop between two turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rest {
    /// When it began.
    pub from: Time,
    /// When it was to end at the latest. A loop that goes on at once had no rest.
    pub until: Time,
    /// Whether frames were to end it.
    pub by_frames: bool,
}

impl Rest {
    /// No rest: the loop goes on at `now`.
    pub fn none(now: Time) -> Rest {
        Rest { from: now, until: now, by_frames: false }
    }

    /// Whether there was one.
    pub fn slept(&self) -> bool {
        self.until > self.from
    }

    /// When the loop was to go on, the first frame read after it having come at `earliest`. Whatever else
    /// may have ended a sleep early cannot tell when it did.
    fn due(&self, earliest: Option<Time>) -> Time {
        let frame = earliest.filter(|_| self.by_frames);
        frame.map_or(self.until, |frame| frame.max(self.from).min(self.until))
    }
}

/// The disturbances of the dataplane's thread by the machine.
#[derive(Debug, Default)]
pub(crate) struct Machine {
    /// The number of times that it did not let it run for more than a millisecond.
    pub stalls: u64,
    /// The time so lost in all.
    pub stalled: Span,
    /// The longest of these.
    pub longest_stall: Span,
    /// The number of times that the thread lost more than 20 us while it was spinning or working.
    pub interruptions: u64,
    /// The time so lost in all.
    pub interrupted: Span,
}

impl Machine {
    /// Counts what was lost between when the loop was to go on after `rest` and `now`, when it did; the
    /// first frame read then had come at `earliest`. Waking from a sleep is always late by some tens of
    /// microseconds, which is what the spinning before a release is for.
    pub fn resumed(&mut self, rest: &Rest, now: Time, earliest: Option<Time>) {
        let lost = now.since(rest.due(earliest));
        if lost > INTERRUPTION && !rest.slept() {
            self.interruptions += 1;
            self.interrupted += lost;
        }
        if lost > STALL {
            self.stalls += 1;
            self.stalled += lost;
            self.longest_stall = self.longest_stall.max(lost);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    /// The stall that is seen by a loop which rested from 10 ms to 20 ms and went on at `now`.
    fn stall(by_frames: bool, now: u64, earliest: Option<u64>) -> Span {
        let mut machine = Machine::default();
        let rest = Rest { from: at(10), until: at(20), by_frames };
        machine.resumed(&rest, at(now), earliest.map(at));
        assert_eq!((machine.interruptions, machine.stalled), (0, machine.longest_stall));
        machine.longest_stall
    }

    #[test]
    fn a_sleeping_loop_sees_a_stall_by_its_plan_or_by_the_frame_that_was_to_wake_it() {
        let millis = Span::from_millis;
        assert_eq!(stall(true, 20, None), Span::ZERO);
        assert_eq!(stall(true, 3020, None), millis(3000));
        assert_eq!(stall(true, 15, Some(15)), Span::ZERO, "woken at once");
        assert_eq!(stall(true, 15, Some(12)), millis(3), "woken late, within its plan");
        assert_eq!(stall(true, 3015, Some(15)), millis(3000));
        assert_eq!(stall(true, 15, Some(5)), millis(5), "it came before the sleep");
        assert_eq!(stall(true, 25, Some(24)), millis(5), "it came after the planned end");
        assert_eq!(stall(true, 15, None), Span::ZERO, "woken by a command");
        assert_eq!(stall(false, 18, Some(12)), Span::ZERO, "frames were to gather");
        assert_eq!(stall(false, 23, Some(12)), millis(3));
    }

    #[test]
    fn a_loop_at_work_sees_interruptions_too() {
        let mut machine = Machine::default();
        let rest = Rest::none(at(10));
        machine.resumed(&rest, at(10) + Span::from_micros(20), None);
        assert_eq!(machine.interruptions, 0);
        machine.resumed(&rest, at(10) + Span::from_micros(900), None);
        machine.resumed(&rest, at(12), None);
        assert_eq!((machine.interruptions, machine.stalls), (2, 1));
        assert_eq!(machine.interrupted, Span::from_micros(2900));
    }

    #[test]
    fn a_stall_is_longer_than_a_millisecond() {
        let mut machine = Machine::default();
        let rest = Rest { from: at(10), until: at(20), by_frames: true };
        machine.resumed(&rest, at(20) + STALL, None);
        assert_eq!(machine.stalls, 0);
        machine.resumed(&rest, at(20) + STALL + Span::from_nanos(1), None);
        assert_eq!((machine.stalls, machine.longest_stall), (1, STALL + Span::from_nanos(1)));
    }
}
