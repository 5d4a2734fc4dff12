//! The critical path: what the time of a lap went into, from node to node.
//!
//! A node that waits for a fragment takes over the path of that fragment, which was its sender's path when it was sent and
//! has grown by what the frame waited for since. So the path of the node that takes the laps is at each instant the chain
//! of what happened one after the other until then, wherever it happened, and its time adds up.

use trunkline_core::{Cause, Ledger, Span, Time};
use trunkline_measure::{Step, Trail};

/// The lap under way: its number and its start. Paths forget what was before it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Era {
    pub number: u64,
    pub start: Time,
}

impl Era {
    pub const FIRST: Era = Era { number: 0, start: Time::ZERO };
}

/// The path by which something has come to where it is, since the lap's start.
#[derive(Debug, Clone)]
pub(super) struct Path {
    era: u64,
    trail: Trail,
}

impl Path {
    pub fn new() -> Path {
        Path { era: 0, trail: Trail::new(Time::ZERO) }
    }

    /// Books the time from the last booking to `now`, as far as it lies in the lap under way.
    pub fn mark(&mut self, era: Era, now: Time, place: u32, cause: Cause) {
        if self.era < era.number {
            self.era = era.number;
            self.trail.restart(era.start);
        }
        self.trail.mark(now, place, cause);
    }

    /// Books what a medium made a frame wait for until it came at `now`.
    pub fn crossed(&mut self, era: Era, now: Time, place: u32, ledger: &Ledger) {
        let way = ledger.get(Cause::Propagate);
        let sent = now.before(way);
        self.mark(era, sent.before(ledger.get(Cause::Transmit)), place, Cause::Queue);
        self.mark(era, sent, place, Cause::Transmit);
        self.mark(era, now, place, Cause::Propagate);
    }

    /// The steps of the lap that ends now.
    pub fn steps(&self) -> &[Step] {
        self.trail.steps()
    }
}

/// Cuts a lap into `parts` of equal length, each with its share of every step. Spans that do not divide go to the
/// parts in turn, so that nothing is lost.
pub(super) fn cut(steps: &[Step], parts: u64) -> Vec<Vec<Step>> {
    let share = |span: Span, part: u64| {
        let until = |part| span.scaled(part, parts.max(1));
        until(part + 1).saturating_sub(until(part))
    };
    (0..parts)
        .map(|part| {
            let of = |step: &Step| Step { span: share(step.span, part), ..*step };
            steps.iter().map(of).filter(|step| !step.span.is_zero()).collect()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(nanos: u64) -> Time {
        Time::from_nanos(nanos)
    }

    /// A frame that was under way when the lap began brings only what has passed since.
    #[test]
    fn a_path_begins_with_its_lap() {
        let mut path = Path::new();
        path.mark(Era::FIRST, at(100), 0, Cause::Host);
        let mut ledger = Ledger::default();
        ledger.book(Cause::Queue, Span::from_nanos(20));
        ledger.book(Cause::Transmit, Span::from_nanos(40));
        ledger.book(Cause::Propagate, Span::from_nanos(5));
        let era = Era { number: 1, start: at(130) };
        path.crossed(era, at(165), 1, &ledger);
        let spans: Vec<_> = path.steps().iter().map(|it| (it.cause, it.span.as_nanos())).collect();
        assert_eq!(spans, [(Cause::Transmit, 30), (Cause::Propagate, 5)]);
    }

    #[test]
    fn the_parts_of_a_lap_add_up_to_it() {
        let step = |cause, nanos| Step { place: 0, cause, span: Span::from_nanos(nanos) };
        let steps = [step(Cause::Host, 10), step(Cause::Queue, 1), step(Cause::Transmit, 7)];
        let parts = cut(&steps, 4);
        let sum: Span = parts.iter().flatten().map(|it| it.span).sum();
        assert_eq!((parts.len(), sum.as_nanos()), (4, 18));
        let lengths: Vec<Span> = parts.iter().map(|it| it.iter().map(|it| it.span).sum()).collect();
        assert!(lengths.iter().all(|it| (3..=6).contains(&it.as_nanos())), "{lengths:?}");
    }
}
