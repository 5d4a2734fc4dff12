//! A processor that does one thing at a time: interrupts at once, other work first come, first served.

use trunkline_core::{Span, Time};

/// A serial processor.
///
/// Work at the level of interrupts takes the processor from other work, which goes on afterwards. What
/// other work has been promised for an instant is then late by the time stolen since
/// ([`stolen_since`](Serial::stolen_since)).
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Serial {
    /// When the work that it has been given will be done.
    free_at: Time,
    /// When the interrupts that it has will be done.
    interrupts_until: Time,
    /// Time stolen from other work by interrupts, altogether.
    stolen: Span,
}

/// When work will be done, unless interrupts steal more time until then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Promise {
    /// The instant.
    pub at: Time,
    stolen: Span,
}

impl Serial {
    /// Gives it work that takes `cost`, behind what it already has.
    pub fn submit(&mut self, now: Time, cost: Span) -> Promise {
        self.free_at = self.free_at.max(self.interrupts_until).max(now) + cost;
        Promise { at: self.free_at, stolen: self.stolen }
    }

    /// Interrupts it for `cost`, behind earlier interrupts only. Returns when that is done.
    pub fn interrupt(&mut self, now: Time, cost: Span) -> Time {
        self.interrupts_until = self.interrupts_until.max(now) + cost;
        if self.free_at > now {
            self.free_at = self.free_at + cost;
            self.stolen += cost;
        }
        self.interrupts_until
    }

    /// By how much a promise is late because of interrupts, with the promise renewed; `None` where it is
    /// kept.
    pub fn stolen_since(&self, promise: Promise) -> Option<Promise> {
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

    #[test]
    fn work_waits_for_earlier_work() {
        let mut serial = Serial::default();
        assert_eq!(serial.submit(at(100), ns(50)).at, at(150));
        assert_eq!(serial.submit(at(120), ns(50)).at, at(200));
        assert_eq!(serial.submit(at(300), ns(1)).at, at(301));
    }

    #[test]
    fn an_interrupt_delays_all_work_that_is_not_done() {
        let mut serial = Serial::default();
        let (first, second) = (serial.submit(at(0), ns(100)), serial.submit(at(0), ns(100)));
        assert_eq!(serial.interrupt(at(50), ns(30)), at(80));
        assert_eq!(serial.interrupt(at(60), ns(5)), at(85));
        let first = serial.stolen_since(first).unwrap();
        assert_eq!(first.at, at(135));
        assert_eq!(serial.stolen_since(first), None);
        assert_eq!(serial.interrupt(at(140), ns(10)), at(150));
        assert_eq!(serial.stolen_since(second).unwrap().at, at(245));
        assert_eq!(serial.submit(at(141), ns(1)).at, at(246));
        assert_eq!(serial.interrupt(at(400), ns(10)), at(410));
        assert_eq!(serial.submit(at(401), ns(1)).at, at(411));
    }
}
