//! A processor that does one thing at a time, first come, first served.

use trunkline_core::{Span, Time};

/// A serial processor.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Serial {
    free_at: Time,
    /// The latest end of work that is waited for by a timer.
    timed: Time,
}

/// When work is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Done {
    /// At once: nothing given to the processor before is still to be finished.
    Now,
    /// At this instant.
    At(Time),
}

impl Serial {
    /// Gives it work that takes `cost`, behind what it already has, to be told of when it is done.
    pub fn submit(&mut self, now: Time, cost: Span) -> Done {
        self.occupy(now, cost);
        // Earlier work that ends at this very instant may still wait for its timer.
        if self.free_at == now && self.timed < now {
            return Done::Now;
        }
        self.timed = self.free_at;
        Done::At(self.free_at)
    }

    /// Gives it work that takes `cost` of whose end nobody has to be told.
    pub fn occupy(&mut self, now: Time, cost: Span) {
        self.free_at = self.free_at.max(now) + cost;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_waits_for_earlier_work() {
        let mut serial = Serial::default();
        let (at, span) = (Time::from_nanos, Span::from_nanos);
        assert_eq!(serial.submit(at(100), span(50)), Done::At(at(150)));
        assert_eq!(serial.submit(at(120), span(50)), Done::At(at(200)));
        serial.occupy(at(130), span(7));
        assert_eq!(serial.submit(at(300), span(1)), Done::At(at(301)));
    }

    #[test]
    fn work_that_takes_no_time_does_not_overtake() {
        let mut serial = Serial::default();
        let (at, span) = (Time::from_nanos, Span::from_nanos);
        assert_eq!(serial.submit(at(100), Span::ZERO), Done::Now);
        assert_eq!(serial.submit(at(100), span(50)), Done::At(at(150)));
        assert_eq!(serial.submit(at(150), Span::ZERO), Done::At(at(150)));
        assert_eq!(serial.submit(at(151), Span::ZERO), Done::Now);
    }
}
