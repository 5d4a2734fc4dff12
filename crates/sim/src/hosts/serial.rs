//! A processor that does one thing at a time, first come, first served.

use trunkline_core::{Span, Time};

/// A serial processor.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Serial {
    free_at: Time,
    busy: Span,
}

impl Serial {
    /// Gives it work that takes `cost`, behind what it already has. Returns when that is done.
    pub fn submit(&mut self, now: Time, cost: Span) -> Time {
        self.free_at = self.free_at.max(now) + cost;
        self.busy += cost;
        self.free_at
    }

    /// How long it has been given work for.
    pub fn busy(&self) -> Span {
        self.busy
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_waits_for_earlier_work() {
        let mut serial = Serial::default();
        let at = Time::from_nanos;
        assert_eq!(serial.submit(at(100), Span::from_nanos(50)), at(150));
        assert_eq!(serial.submit(at(120), Span::from_nanos(50)), at(200));
        assert_eq!(serial.submit(at(300), Span::from_nanos(1)), at(301));
        assert_eq!(serial.busy(), Span::from_nanos(101));
    }
}
