//! How much later the packets of one flow leave a host that is unsteady.

use trunkline_core::{Span, Stream, Time};

/// What part of the whole is drawn anew for each packet; the rest is drawn once and stays.
const EACH: u64 = 10;

/// A process on a host whose work takes a while: nearly always the same while, for this process goes the same way
/// through the kernel each time, and another process another way.
///
/// The part drawn once decides which of two flows is steadily served first if their packets come at once; chance
/// for each packet alone would mix that, and find none of the patterns that real hosts fall into and stay in.
#[derive(Debug, Clone)]
pub(crate) struct Unsteady {
    steady: Span,
    each: Span,
    chance: Stream,
    last: Time,
}

impl Unsteady {
    /// Up to `most` later.
    pub fn new(most: Span, mut chance: Stream) -> Unsteady {
        let each = most.scaled(1, EACH);
        let steady = chance.span_to(most - each);
        Unsteady { steady, each, chance, last: Time::ZERO }
    }

    /// When a packet leaves with which the host is done at `done`; never before the one in front of it.
    pub fn leaves(&mut self, done: Time) -> Time {
        let at = done + self.steady + self.chance.span_to(self.each);
        self.last = self.last.max(at);
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trunkline_core::Seed;

    #[test]
    fn a_flow_keeps_its_order_and_its_habit() {
        let most = Span::from_micros(100);
        let mut first = Unsteady::new(most, Seed(1).stream("one"));
        let mut other = Unsteady::new(most, Seed(1).stream("other"));
        assert_ne!(first.steady, other.steady);
        let mut last = Time::ZERO;
        for micros in 0..1000 {
            let done = Time::ZERO + Span::from_micros(micros);
            let left = first.leaves(done);
            assert!(left >= last && left >= done + first.steady && left <= done + most);
            last = left;
            other.leaves(done);
        }
    }
}
