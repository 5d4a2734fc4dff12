//! As much as the transport takes, for a stated time: the greedy connections of the LDS report (section
//! 3.10.1), whose goodput is what the receiving application reads.

use crate::{Action, Draft, Outcome};
use std::collections::VecDeque;
use trunkline_core::{Span, Time};

/// The sending side: writes one after the other until the time is up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Spender {
    write: u32,
    duration: Span,
    begin: Time,
}

impl Spender {
    pub(crate) fn new(write: u32, duration: Span) -> Spender {
        Spender { write, duration, begin: Time::ZERO }
    }

    pub(crate) fn step(&mut self, now: Time, outcome: Outcome) -> Action {
        if outcome == Outcome::Start {
            self.begin = now;
        }
        match now.since(self.begin) < self.duration {
            true => Action::Write { bytes: self.write, end: false, fresh: false },
            false => Action::Done,
        }
    }
}

/// The receiving side: one sample for each whole interval between the end of the warm-up and the duration.
/// An interval is closed by whatever comes after its end: a read, or [`flush`](Meter::flush).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Meter {
    warm_up: Span,
    interval: Span,
    /// Whole intervals between warm-up and duration.
    count: u32,
    begin: Time,
    /// The interval being counted, and what it has got.
    at: u32,
    bytes: u64,
    pub(crate) samples: VecDeque<Draft>,
}

impl Meter {
    pub(crate) fn new(duration: Span, warm_up: Span, interval: Span) -> Meter {
        let count = duration.saturating_sub(warm_up).as_nanos() / interval.as_nanos().max(1);
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        let samples = VecDeque::new();
        Meter { warm_up, interval, count, begin: Time::ZERO, at: 0, bytes: 0, samples }
    }

    pub(crate) fn step(&mut self, now: Time, outcome: Outcome) -> Action {
        if outcome == Outcome::Start {
            self.begin = now;
        }
        self.flush(now);
        if let Outcome::Read { bytes, .. } = outcome
            && now >= self.begin + self.warm_up
        {
            self.bytes += u64::from(bytes);
        }
        Action::Read
    }

    /// Closes the intervals that have ended by `now`.
    pub(crate) fn flush(&mut self, now: Time) {
        while self.at < self.count {
            let start = self.begin + self.warm_up + self.interval.scaled(u64::from(self.at), 1);
            let end = start + self.interval;
            if now < end {
                return;
            }
            let size = std::mem::take(&mut self.bytes);
            self.samples.push_back(Draft { size, index: self.at, intended: start, start, end });
            self.at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    fn read(bytes: u32) -> Outcome {
        Outcome::Read { bytes, end: false }
    }

    #[test]
    fn it_writes_until_the_time_is_up() {
        let mut spender = Spender::new(100, Span::from_millis(5));
        let write = Action::Write { bytes: 100, end: false, fresh: false };
        assert_eq!(spender.step(at(10), Outcome::Start), write);
        assert_eq!(spender.step(at(14), Outcome::Written), write);
        assert_eq!(spender.step(at(15), Outcome::Written), Action::Done);
    }

    #[test]
    fn bytes_count_where_they_are_read() {
        let milli = Span::from_millis;
        let mut meter = Meter::new(milli(50), milli(10), milli(10));
        meter.step(at(100), Outcome::Start);
        for (millis, bytes) in [(105, 1), (111, 2), (119, 3), (120, 4), (151, 9)] {
            assert_eq!(meter.step(at(millis), read(bytes)), Action::Read);
        }
        let sizes: Vec<_> = meter.samples.iter().map(|it| (it.index, it.size)).collect();
        assert_eq!(sizes, [(0, 5), (1, 4), (2, 0), (3, 0)], "four whole intervals, none after");
        assert!(meter.samples.iter().all(|it| it.end - it.start == milli(10)));
        assert_eq!(meter.samples[0].start, at(110));
        meter.flush(at(900));
        assert_eq!(meter.samples.len(), 4);
    }

    #[test]
    fn silence_is_measured_when_it_is_asked_for() {
        let milli = Span::from_millis;
        let mut meter = Meter::new(milli(30), Span::ZERO, milli(10));
        meter.step(at(0), Outcome::Start);
        meter.flush(at(25));
        assert_eq!(meter.samples.iter().map(|it| it.size).collect::<Vec<_>>(), [0, 0]);
    }
}
