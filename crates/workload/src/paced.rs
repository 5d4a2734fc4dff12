//! Datagrams of one size at a constant rate, and how long each was on its way.

use crate::{Action, Draft, Outcome, Stamp};
use trunkline_core::{Rate, Span, Time};

/// Bits of a byte times nanoseconds of a second.
const NANO_BITS: u64 = 8 * 1_000_000_000;

/// The sending side. Datagram `n` is meant to be sent `n * size / rate` after the first, computed anew
/// for each so that no rounding adds up. If the host falls behind it sends at once and the intended
/// times stay as they were.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pacer {
    size: u32,
    rate: Rate,
    duration: Span,
    begin: Time,
    /// Datagrams asked to be written so far.
    sent: u32,
    stamp: Option<Stamp>,
}

impl Pacer {
    pub(crate) fn new(size: u32, rate: Rate, duration: Span) -> Pacer {
        Pacer { size, rate, duration, begin: Time::ZERO, sent: 0, stamp: None }
    }

    pub(crate) fn stamp(&self) -> Option<Stamp> {
        self.stamp
    }

    pub(crate) fn step(&mut self, now: Time, outcome: Outcome) -> Action {
        if outcome == Outcome::Start {
            self.begin = now;
        }
        self.stamp = None;
        let Some(offset) = self.offset().filter(|&offset| offset < self.duration) else {
            return Action::Done;
        };
        let intended = self.begin + offset;
        if intended > now {
            return Action::Wait(intended);
        }
        self.stamp = Some(Stamp { index: self.sent, intended, start: now });
        self.sent += 1;
        Action::Write { bytes: self.size, end: true, fresh: true }
    }

    /// From the first datagram's intended start to that of the next to be sent; `None` if there is
    /// none: beyond the longest time, or because a datagram has no bytes and so no time.
    fn offset(&self) -> Option<Span> {
        // Two numbers of 32 bits fit one of 64; divisions of 128 bits are slow, and few runs come to them.
        let (bytes, rate) =
            (u64::from(self.sent) * u64::from(self.size), self.rate.bits_per_second());
        let nanos = match bytes.checked_mul(NANO_BITS) {
            Some(product) => Some(product / rate),
            None => {
                u64::try_from(u128::from(bytes) * u128::from(NANO_BITS) / u128::from(rate)).ok()
            }
        };
        nanos.filter(|_| self.size > 0).map(Span::from_nanos)
    }
}

/// The receiving side: a sample for each datagram that comes with a stamp.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Listener {
    size: u32,
    stamp: Option<Stamp>,
    pub(crate) sample: Option<Draft>,
}

impl Listener {
    pub(crate) fn new(size: u32) -> Listener {
        Listener { size, stamp: None, sample: None }
    }

    pub(crate) fn stamped(&mut self, stamp: Stamp) {
        self.stamp = Some(stamp);
    }

    pub(crate) fn step(&mut self, now: Time, outcome: Outcome) -> Action {
        let complete = matches!(outcome, Outcome::Read { end: true, .. });
        if let Some(stamp) = self.stamp.take_if(|_| complete) {
            let Stamp { index, intended, start } = stamp;
            let size = u64::from(self.size);
            self.sample = Some(Draft { size, index, intended, start, end: now });
        }
        Action::Read
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pair::{LATENCY, Pair, WRITE};
    use trunkline_scenario::Workload;

    fn paced(bits: u64, duration: Span) -> Workload {
        Workload::Paced { size: 125, rate: Rate::from_bits_per_second(bits), duration }
    }

    #[test]
    fn datagrams_leave_on_time_and_are_timed_one_way() {
        // 1000 bits at 3 Mbit/s: one in each third of a millisecond, thirty in 10 ms.
        let samples = Pair::new(&paced(3_000_000, Span::from_millis(10))).run();
        assert_eq!(samples.len(), 30);
        for (index, draft) in samples.iter().enumerate() {
            assert_eq!(draft.start, Time::from_nanos(index as u64 * 1_000_000 / 3));
            assert_eq!((draft.index as usize, draft.intended), (index, draft.start));
            assert_eq!((draft.size, draft.end - draft.start), (125, WRITE + LATENCY));
        }
    }

    #[test]
    fn a_host_that_cannot_keep_up_is_late_for_its_intentions() {
        let interval = WRITE.scaled(1, 2);
        let bits = 1_000_000_000_000 / interval.as_nanos();
        let samples = Pair::new(&paced(bits, interval.scaled(10, 1))).run();
        assert_eq!(samples.len(), 10);
        for (index, draft) in samples.iter().enumerate() {
            assert_eq!(draft.intended, Time::ZERO + interval.scaled(index as u64, 1));
            assert_eq!(draft.start, Time::ZERO + WRITE.scaled(index as u64, 1));
        }
    }

    #[test]
    fn a_lost_datagram_is_no_sample_and_shifts_none() {
        let mut listener = Listener::new(125);
        assert_eq!(listener.step(Time::ZERO, Outcome::Start), Action::Read);
        let stamp = Stamp { index: 4, intended: Time::ZERO, start: Time::ZERO };
        listener.stamped(stamp);
        let read = Outcome::Read { bytes: 125, end: true };
        assert_eq!(listener.step(Time::from_nanos(9), read), Action::Read);
        assert_eq!(listener.sample.take().map(|draft| draft.index), Some(4));
        listener.step(Time::from_nanos(10), read);
        assert_eq!(listener.sample, None, "without a stamp nothing is known of its delay");
    }

    #[test]
    fn nothing_to_send_ends_at_once() {
        assert!(Pair::new(&paced(1, Span::ZERO)).run().is_empty());
        let rate = Rate::from_bits_per_second(1);
        let mut empty = Pacer::new(0, rate, Span::from_secs(1));
        assert_eq!(empty.step(Time::ZERO, Outcome::Start), Action::Done);
    }
}
