//! Measuring by intervals: the goodput of a greedy connection, and what its sender waited for meanwhile.
//!
//! An interval's sample comes from the receiver, but what made it as small as it is lies with the sender:
//! the interval is booked by the states that the sender was in. So the sender's clock is read at the very
//! instant at which an interval ends, by a timer.

use super::end::Doing;
use super::jobs::{EndId, Timer};
use super::world::World;
use trunkline_core::{Span, Time};
use trunkline_measure::{Spent, Step};
use trunkline_scenario::Workload;
use trunkline_workload::Draft;

/// The state of a receiver in its intervals.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Intervals {
    /// When the one being counted ends; the warm-up goes before the first.
    next: Time,
    every: Span,
    until: Time,
    /// What the sender's clock showed when the one being counted began.
    since: Spent,
    /// Whether the flow has ended. What comes afterwards is not measured.
    over: bool,
}

impl World<'_> {
    /// Starts the intervals of a receiver that measures so.
    pub fn begin_intervals(&mut self, id: EndId) {
        let now = self.net.now();
        let end = &mut self.ends[id.index()];
        let workload = &self.scenario.traffic[end.traffic].workload;
        let &Workload::Greedy { duration, warm_up, interval, .. } = workload else { return };
        if id.is_sender() || interval.is_zero() {
            return;
        }
        let (next, until) = (now + warm_up, now + duration);
        let intervals =
            Intervals { next, every: interval, until, since: Spent::default(), over: false };
        end.intervals = Some(Box::new(intervals));
        self.net.set_timer(next, Timer::Interval(id).number());
    }

    /// An interval of a receiver ends, or its warm-up, and the next begins.
    pub fn interval_ended(&mut self, id: EndId) {
        let now = self.net.now();
        self.flush(id);
        let spent = self.ends[id.peer().index()].clock.spent_by(now);
        let Some(intervals) = &mut self.ends[id.index()].intervals else { return };
        intervals.since = spent;
        intervals.next = now + intervals.every;
        if intervals.next <= intervals.until && !intervals.over {
            self.net.set_timer(intervals.next, Timer::Interval(id).number());
        }
    }

    /// Lets an application measure what has come to an end by now. One that has not begun has no intervals.
    pub fn flush(&mut self, id: EndId) {
        let now = self.net.now();
        if self.ends[id.index()].doing == Doing::Nothing {
            return;
        }
        self.ends[id.index()].app.flush(now);
        self.keep_samples(id);
    }

    /// The flow ends: what is whole by now is measured, nothing after it.
    pub fn end_intervals(&mut self, id: EndId) {
        self.flush(id);
        if let Some(intervals) = &mut self.ends[id.index()].intervals {
            intervals.over = true;
        }
    }

    /// Whether what an application has measured is to be left out.
    pub fn is_over(&self, id: EndId) -> bool {
        self.ends[id.index()].intervals.as_ref().is_some_and(|intervals| intervals.over)
    }

    /// What the sender waited for in the interval of a sample, which ends now.
    pub fn interval_steps(&mut self, id: EndId, draft: &Draft) -> Vec<Step> {
        let spent = self.ends[id.peer().index()].clock.spent_by(draft.end);
        let places = self.places_of(id.peer());
        let Some(intervals) = &mut self.ends[id.index()].intervals else { return Vec::new() };
        let since = std::mem::replace(&mut intervals.since, spent);
        let mut steps: Vec<Step> = Vec::new();
        for (waiting, span) in spent.since(&since) {
            let (place, cause) = (places.of(waiting), waiting.cause());
            match steps.iter_mut().find(|step| (step.place, step.cause) == (place, cause)) {
                Some(step) => step.span += span,
                None => steps.push(Step { place, cause, span }),
            }
        }
        steps
    }
}
