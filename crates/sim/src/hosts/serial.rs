//! A processor that does one thing at a time: interrupts at once, other work first come, first served.

use trunkline_core::{Span, Time};

/// A serial processor.
///
/// Work at the level of interrupts takes the processor from other work, which goes on afterwards. What
/// other work has been promised for an instant is then late by the time stolen since
/// ([`renewed`](Serial::renewed)).
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Serial {
    /// When the work that it has been given will be done.
    free_at: Time,
    /// The latest end of work that is waited for by a timer.
    timed: Time,
    /// When the interrupts that it has will be done.
    interrupts_until: Time,
    /// The latest end of an interrupt that is waited for by a timer.
    interrupts_timed: Time,
    /// Time stolen from other work by interrupts, altogether.
    stolen: Span,
}

/// When work is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Done {
    /// At once: nothing given to the processor before is still to be finished.
    Now,
    /// At an instant that interrupts may move.
    Promised(Promise),
    /// At this instant.
    At(Time),
}

/// When work will be done, unless interrupts steal more time until then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Promise {
    /// The instant.
    pub at: Time,
    stolen: Span,
}

impl Serial {
    /// A processor that has had no work.
    pub const IDLE: Serial = Serial {
        free_at: Time::ZERO,
        timed: Time::ZERO,
        interrupts_until: Time::ZERO,
        interrupts_timed: Time::ZERO,
        stolen: Span::ZERO,
    };

    /// Gives it work that takes `cost`, behind what it already has, to be told of when it is done.
    pub fn submit(&mut self, now: Time, cost: Span) -> Done {
        self.occupy(now, cost);
        // Earlier work that ends at this very instant may still wait for its timer.
        if self.free_at == now && self.timed < now {
            return Done::Now;
        }
        self.timed = self.free_at;
        Done::Promised(Promise { at: self.free_at, stolen: self.stolen })
    }

    /// Gives it work that takes `cost` of whose end nobody has to be told.
    pub fn occupy(&mut self, now: Time, cost: Span) {
        self.free_at = self.free_at.max(self.interrupts_until).max(now) + cost;
    }

    /// Whether it has work at `now`.
    pub fn is_busy(&self, now: Time) -> bool {
        self.free_at > now
    }

    /// Interrupts it for `cost`, behind earlier interrupts only.
    pub fn interrupt(&mut self, now: Time, cost: Span) -> Done {
        self.interrupts_until = self.interrupts_until.max(now) + cost;
        if self.free_at > now {
            self.free_at += cost;
            self.timed = if self.timed > now { self.timed + cost } else { self.timed };
            self.stolen += cost;
        }
        if self.interrupts_until == now && self.interrupts_timed < now {
            return Done::Now;
        }
        self.interrupts_timed = self.interrupts_until;
        Done::At(self.interrupts_until)
    }

    /// What a promise has become because of interrupts; `None` if it is kept.
    pub fn renewed(&self, promise: Promise) -> Option<Promise> {
        let late = self.stolen.saturating_sub(promise.stolen);
        (!late.is_zero()).then(|| Promise { at: promise.at + late, stolen: self.stolen })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(nanos: u64) -> Time {
        Time::from_nanos(nanos)
    }

    const fn ns(nanos: u64) -> Span {
        Span::from_nanos(nanos)
    }

    fn promise(done: Done) -> Promise {
        match done {
            Done::Promised(promise) => promise,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn work_waits_for_earlier_work() {
        let mut serial = Serial::default();
        assert_eq!(promise(serial.submit(at(100), ns(50))).at, at(150));
        assert_eq!(promise(serial.submit(at(120), ns(50))).at, at(200));
        serial.occupy(at(130), ns(7));
        assert_eq!(promise(serial.submit(at(300), ns(1))).at, at(301));
    }

    #[test]
    fn work_that_takes_no_time_does_not_overtake() {
        let mut serial = Serial::default();
        assert_eq!(serial.submit(at(100), Span::ZERO), Done::Now);
        assert_eq!(promise(serial.submit(at(100), ns(50))).at, at(150));
        assert_eq!(promise(serial.submit(at(150), Span::ZERO)).at, at(150));
        assert_eq!(serial.submit(at(151), Span::ZERO), Done::Now);
        assert_eq!(serial.interrupt(at(160), Span::ZERO), Done::Now);
        assert_eq!(serial.interrupt(at(160), Span::ZERO), Done::Now);
        assert_eq!(serial.interrupt(at(160), ns(5)), Done::At(at(165)));
        assert_eq!(serial.interrupt(at(165), Span::ZERO), Done::At(at(165)));
    }

    #[test]
    fn an_interrupt_delays_all_work_that_is_not_done() {
        let mut serial = Serial::default();
        let first = promise(serial.submit(at(0), ns(100)));
        let second = promise(serial.submit(at(0), ns(100)));
        assert_eq!(serial.interrupt(at(50), ns(30)), Done::At(at(80)));
        assert_eq!(serial.interrupt(at(60), ns(5)), Done::At(at(85)));
        let first = serial.renewed(first).unwrap();
        assert_eq!(first.at, at(135));
        assert_eq!(serial.renewed(first), None);
        assert_eq!(serial.interrupt(at(140), ns(10)), Done::At(at(150)));
        assert_eq!(serial.renewed(second).unwrap().at, at(245));
        assert_eq!(promise(serial.submit(at(141), ns(1))).at, at(246));
        assert_eq!(serial.interrupt(at(400), ns(10)), Done::At(at(410)));
        assert_eq!(promise(serial.submit(at(401), ns(1))).at, at(411));
    }
}
