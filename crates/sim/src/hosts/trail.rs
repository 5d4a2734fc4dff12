//! Where the time of a message or a block went: a record that telescopes, so that its spans always sum
//! to the time that has passed.

use trunkline_core::{Cause, Span, Time};
use trunkline_measure::Step;

/// A record of time. Each [`mark`](Trail::mark) books everything since the last one.
#[derive(Debug, Clone)]
pub(crate) struct Trail {
    /// Where it starts.
    origin: Time,
    /// Up to where it is booked.
    until: Time,
    /// By place and cause, in the order in which they first occurred.
    steps: Vec<Step>,
}

impl Trail {
    /// A record that starts at `origin`.
    pub fn new(origin: Time) -> Trail {
        Trail { origin, until: origin, steps: Vec::new() }
    }

    /// Starts anew at `origin`.
    pub fn restart(&mut self, origin: Time) {
        (self.origin, self.until) = (origin, origin);
        self.steps.clear();
    }

    /// Books the time from the last booking to `now`. An instant that has been passed books nothing.
    pub fn mark(&mut self, now: Time, place: u16, cause: Cause) {
        self.add(now.since(self.until), place, cause);
    }

    /// Books `span`.
    pub fn add(&mut self, span: Span, place: u16, cause: Cause) {
        if span.is_zero() {
            return;
        }
        self.until += span;
        match self.steps.iter_mut().find(|step| step.place == place && step.cause == cause) {
            Some(step) => step.span += span,
            None => self.steps.push(Step { place, cause, span }),
        }
    }

    /// Where it starts.
    pub fn origin(&self) -> Time {
        self.origin
    }

    /// Up to where it is booked.
    pub fn until(&self) -> Time {
        self.until
    }

    /// What is booked.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trail_sums_to_the_time_that_has_passed() {
        let mut trail = Trail::new(Time::from_nanos(100));
        trail.mark(Time::from_nanos(130), 0, Cause::Host);
        trail.mark(Time::from_nanos(120), 1, Cause::Window);
        trail.mark(Time::from_nanos(190), 1, Cause::Window);
        trail.add(Span::from_nanos(10), 0, Cause::Host);
        let sum: Span = trail.steps().iter().map(|step| step.span).sum();
        assert_eq!((sum, trail.until()), (Span::from_nanos(100), Time::from_nanos(200)));
        assert_eq!(trail.steps().len(), 2);
        assert_eq!(trail.steps()[0].span, Span::from_nanos(40));
    }
}
