//! The time of a message or a block, by place and cause: a record that telescopes, so that its spans always sum
//! to the time that has passed.

use crate::Step;
use trunkline_core::{Cause, Span, Time};

/// A record of time. Each [`mark`](Trail::mark) books everything since the last one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trail {
    /// The instant at which it starts.
    origin: Time,
    /// The instant up to which it is booked.
    until: Time,
    /// By place and cause, in the order in which they first occurred.
    steps: Vec<Step>,
}

impl Trail {
    /// A record that starts at `origin`.
    pub fn new(origin: Time) -> Trail {
        Trail { origin, until: origin, steps: Vec::new() }
    }

    /// Starts anew at `origin`, in the memory that it has.
    pub fn restart(&mut self, origin: Time) {
        (self.origin, self.until) = (origin, origin);
        self.steps.clear();
    }

    /// Becomes the same as `other`, in the memory that it has.
    pub fn copy_from(&mut self, other: &Trail) {
        (self.origin, self.until) = (other.origin, other.until);
        self.steps.clear();
        self.steps.extend_from_slice(&other.steps);
    }

    /// Books the time from the last booking to `now`. An instant that has been passed books nothing.
    pub fn mark(&mut self, now: Time, place: u32, cause: Cause) {
        self.add(now.since(self.until), place, cause);
    }

    /// Books `span`.
    pub fn add(&mut self, span: Span, place: u32, cause: Cause) {
        if span.is_zero() {
            return;
        }
        self.until += span;
        match self.steps.iter_mut().find(|step| step.place == place && step.cause == cause) {
            Some(step) => step.span += span,
            None => self.steps.push(Step { place, cause, span }),
        }
    }

    /// Books `span`, or as much of it as there is up to `limit`: what was measured with one clock and
    /// told by another can be too long by the difference of the two.
    pub fn add_within(&mut self, limit: Time, span: Span, place: u32, cause: Cause) {
        self.add(span.min(limit.since(self.until)), place, cause);
    }

    /// The instant at which it starts.
    pub fn origin(&self) -> Time {
        self.origin
    }

    /// The instant up to which it is booked.
    pub fn until(&self) -> Time {
        self.until
    }

    /// The booked steps.
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
        trail.add_within(Time::from_nanos(210), Span::from_nanos(70), 2, Cause::Queue);
        trail.add_within(Time::from_nanos(205), Span::from_nanos(70), 2, Cause::Queue);
        let sum: Span = trail.steps().iter().map(|step| step.span).sum();
        assert_eq!((sum, trail.until()), (Span::from_nanos(110), Time::from_nanos(210)));
        assert_eq!(trail.steps().len(), 3);
        assert_eq!(trail.steps()[0].span, Span::from_nanos(40));
        let mut copy = Trail::new(Time::ZERO);
        copy.mark(Time::from_nanos(5), 7, Cause::Host);
        copy.copy_from(&trail);
        assert_eq!(copy, trail);
        trail.restart(Time::from_nanos(300));
        assert_eq!(trail, Trail::new(Time::from_nanos(300)));
    }
}
