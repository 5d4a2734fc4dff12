//! As much as the transport takes, for a stated time: the greedy connections of the LDS report (section
//! 3.10.1), whose goodput is what has come to the receiver: what lies behind a hole counts when it comes, not when
//! the hole is filled and the application can read it, else an interval could have more than the line carries.

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

    /// When the time is up.
    pub(crate) fn until(&self) -> Time {
        self.begin + self.duration
    }

    pub(crate) fn step(&mut self, now: Time, outcome: Outcome) -> Action {
        if outcome == Outcome::Start {
            self.begin = now;
        }
        match now < self.until() {
            true => Action::Write { bytes: self.write, end: false, fresh: false },
            false => Action::Done,
        }
    }
}

/// The receiving side: one sample for each whole interval between the end of the warm-up and the duration.
/// [`flush`](Meter::flush) closes those that have ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Meter {
    warm_up: Span,
    interval: Span,
    /// Whole intervals between warm-up and duration.
    count: u32,
    begin: Time,
    /// The first interval that is not closed.
    at: u32,
    /// The bytes that have come in that one and those behind it.
    bytes: VecDeque<u64>,
    pub(crate) samples: VecDeque<Draft>,
}

impl Meter {
    pub(crate) fn new(duration: Span, warm_up: Span, interval: Span) -> Meter {
        let count = duration.saturating_sub(warm_up).as_nanos() / interval.as_nanos().max(1);
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        let samples = VecDeque::new();
        Meter {
            warm_up,
            interval,
            count,
            begin: Time::ZERO,
            at: 0,
            bytes: VecDeque::new(),
            samples,
        }
    }

    pub(crate) fn step(&mut self, now: Time, outcome: Outcome) -> Action {
        if outcome == Outcome::Start {
            self.begin = now;
        }
        Action::Read
    }

    /// So many bytes have come to the host at an even rate between two instants, which may be one.
    pub(crate) fn arrived(&mut self, from: Time, to: Time, bytes: u64) {
        let first = self.begin + self.warm_up;
        let mut counted = self.share_before(first, from, to, bytes);
        let mut at = self.number_at(from.max(first));
        while counted < bytes && at < self.count {
            let so_far = self.share_before(self.start_of(at + 1), from, to, bytes);
            self.count(at, so_far - counted);
            (counted, at) = (so_far, at + 1);
        }
    }

    /// The bytes that came before `instant`.
    fn share_before(&self, instant: Time, from: Time, to: Time, bytes: u64) -> u64 {
        match (instant <= from, instant > to) {
            (true, _) => 0,
            (_, true) => bytes,
            _ => {
                let (part, whole) = (instant - from, to - from);
                (u128::from(bytes) * u128::from(part.as_nanos()) / u128::from(whole.as_nanos()))
                    as u64
            }
        }
    }

    fn start_of(&self, number: u32) -> Time {
        self.begin + self.warm_up + self.interval.scaled(u64::from(number), 1)
    }

    /// The interval in which an instant after the warm-up lies.
    fn number_at(&self, at: Time) -> u32 {
        let past = at.since(self.begin + self.warm_up).as_nanos() / self.interval.as_nanos().max(1);
        u32::try_from(past).unwrap_or(u32::MAX)
    }

    fn count(&mut self, number: u32, bytes: u64) {
        debug_assert!(number >= self.at, "bytes of an interval that has been closed");
        let place = number.saturating_sub(self.at) as usize;
        if self.bytes.len() <= place {
            self.bytes.resize(place + 1, 0);
        }
        self.bytes[place] += bytes;
    }

    /// Closes the intervals that have ended by `now`.
    pub(crate) fn flush(&mut self, now: Time) {
        while self.at < self.count {
            let start = self.start_of(self.at);
            let end = start + self.interval;
            if now < end {
                return;
            }
            let size = self.bytes.pop_front().unwrap_or(0);
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

    #[test]
    fn it_writes_until_the_time_is_up() {
        let mut spender = Spender::new(100, Span::from_millis(5));
        let write = Action::Write { bytes: 100, end: false, fresh: false };
        assert_eq!(spender.step(at(10), Outcome::Start), write);
        assert_eq!(spender.step(at(14), Outcome::Written), write);
        assert_eq!(spender.step(at(15), Outcome::Written), Action::Done);
    }

    #[test]
    fn bytes_count_where_they_come() {
        let milli = Span::from_millis;
        let mut meter = Meter::new(milli(50), milli(10), milli(10));
        meter.step(at(100), Outcome::Start);
        for (millis, bytes) in [(105, 1), (111, 2), (119, 3), (120, 4), (151, 9)] {
            meter.arrived(at(millis), at(millis), bytes);
        }
        // Reading is another matter: what comes out then may have lain there.
        assert_eq!(meter.step(at(149), Outcome::Read { bytes: 19, end: false }), Action::Read);
        meter.flush(at(900));
        let sizes: Vec<_> = meter.samples.iter().map(|it| (it.index, it.size)).collect();
        assert_eq!(sizes, [(0, 5), (1, 4), (2, 0), (3, 0)], "four whole intervals, none after");
        assert!(meter.samples.iter().all(|it| it.end - it.start == milli(10)));
        assert_eq!(meter.samples[0].start, at(110));
    }

    #[test]
    fn what_came_in_a_while_is_spread_over_it() {
        let milli = Span::from_millis;
        let mut meter = Meter::new(milli(50), milli(10), milli(10));
        meter.step(at(0), Outcome::Start);
        // A hole from 5 to 45: a quarter of what lay behind it came before 15, and so on.
        meter.arrived(at(5), at(45), 4001);
        meter.arrived(at(45), at(65), 1000);
        meter.flush(at(100));
        let sizes: Vec<u64> = meter.samples.iter().map(|it| it.size).collect();
        assert_eq!(sizes, [1000, 1000, 1000, 501 + 250]);
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
