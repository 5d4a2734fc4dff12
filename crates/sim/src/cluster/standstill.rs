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

/// What has happened since a program came on.
#[derive(Debug)]
pub(super) struct Standstill {
    nodes: u64,
    /// The time that all wait before the lower bound counts.
    patience: Span,
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
        let patience = longest.scaled(TIMES, 1);
        Standstill {
            nodes: nodes as u64,
            patience,
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
        let waits = self.at_work == 0 && now.since(self.since) > self.patience;
        let few = LEAST.max(self.nodes * WAITING);
        self.events > self.nodes * MOST || waits && self.events - self.before > few
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

    #[test]
    fn few_nodes_may_exchange_as_much_as_ever() {
        let mut still = Standstill::new(4, Span::from_secs(1));
        assert!(!after(&mut still, 400_000, 90));
        assert!(after(&mut still, 1, 90));
    }
}
