//! Whether a cluster stands still: frames are exchanged, and no program comes on.

use trunkline_core::{Span, Time};

/// Events of a node without any program coming on after which its cluster stands still, whatever its programs do (a choice).
const MOST: u64 = 100_000;
/// The same while no program computes: then one comes on by a fragment, a window or a buffer, of which the layers' timers
/// must have had their chance too (a choice: a node that waits for a repetition sees some ten events).
const WAITING: u64 = 10_000;
/// And of all nodes at least so many: few nodes have them soon.
const LEAST: u64 = 1_000_000;
/// The chance of the timers: so many times the longest that they take (a choice).
const TIMES: u64 = 3;
/// Timers that are long make few events: who has waited for so many times the longest when the run is over waits for ever
/// (a choice: of time-outs one in a hundred of which is answered, all but one in twenty such waits would have ended).
const MANY_TIMES: u64 = 300;

/// What has happened since a program came on.
#[derive(Debug)]
pub(super) struct Standstill {
    nodes: u64,
    /// The longest that the layers' timers take.
    longest: Span,
    /// Since a program last went on.
    events: u64,
    /// Of these, those before the last step that took time was done, and when that was.
    before: u64,
    since: Time,
    /// Programs that compute, send or receive.
    at_work: u32,
}

impl Standstill {
    /// Of a cluster before its start, the timers of whose layers take `longest` at most.
    pub fn new(nodes: usize, longest: Span) -> Standstill {
        Standstill {
            nodes: nodes as u64,
            longest,
            events: 0,
            before: 0,
            since: Time::ZERO,
            at_work: 0,
        }
    }

    /// Something has happened.
    pub fn event(&mut self) {
        self.events += 1;
    }

    /// A program goes on.
    pub fn goes_on(&mut self, now: Time) {
        (self.events, self.before, self.since) = (0, 0, now);
    }

    /// A step of a program takes time.
    pub fn begins(&mut self) {
        self.at_work += 1;
    }

    /// A step that took time is done. What came meanwhile says nothing of those that wait.
    pub fn ends(&mut self, now: Time) {
        self.at_work -= 1;
        (self.before, self.since) = (self.events, now);
    }

    /// Whether no program will come on.
    pub fn is_reached(&self, now: Time) -> bool {
        let few = LEAST.max(self.nodes * WAITING);
        let is_busy = self.events - self.before > few;
        self.events > self.nodes * MOST || is_busy && self.waits(now, TIMES)
    }

    /// Whether all have waited for so long that no program will come on, however little happens.
    pub fn is_long(&self, now: Time) -> bool {
        self.waits(now, MANY_TIMES)
    }

    /// Whether all have waited for so many times the longest that timers take.
    fn waits(&self, now: Time, times: u64) -> bool {
        self.at_work == 0 && now.since(self.since) > self.longest.scaled(times, 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(still: &mut Standstill, events: u64, seconds: u64) -> bool {
        (0..events).for_each(|_| still.event());
        still.is_reached(Time::ZERO + Span::from_secs(seconds))
    }

    /// Few events suffice only if timers have had their chance and no program computes.
    #[test]
    fn who_waits_stands_still_sooner_than_who_computes() {
        let mut still = Standstill::new(200, Span::from_secs(1));
        assert!(!after(&mut still, 2_000_001, 3));
        assert!(after(&mut still, 0, 4));
        still.begins();
        assert!(!after(&mut still, 10_000_000, 60));
        still.ends(Time::ZERO + Span::from_secs(60));
        assert!(!after(&mut still, 2_000_000, 90));
        assert!(after(&mut still, 1, 90));
        still.goes_on(Time::ZERO + Span::from_secs(90));
        still.begins();
        assert!(!after(&mut still, 20_000_000, 120));
        assert!(after(&mut still, 1, 120));
    }

    /// However little happens: but not while a program computes, nor before all have waited for long.
    #[test]
    fn who_waits_for_very_long_waits_for_ever() {
        let mut still = Standstill::new(4, Span::from_secs(2));
        let at = |seconds| Time::ZERO + Span::from_secs(seconds);
        still.goes_on(at(10));
        assert!(!still.is_long(at(610)) && still.is_long(at(611)));
        still.begins();
        assert!(!still.is_long(at(5000)));
        still.ends(at(5000));
        assert!(!still.is_long(at(5600)) && still.is_long(at(5601)));
    }

    #[test]
    fn few_nodes_may_exchange_as_much_as_ever() {
        let mut still = Standstill::new(4, Span::from_secs(1));
        assert!(!after(&mut still, 400_000, 90));
        assert!(after(&mut still, 1, 90));
    }
}
