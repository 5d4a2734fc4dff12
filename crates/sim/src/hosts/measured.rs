//! What a traffic has measured so far.

use super::jobs::EndId;
use trunkline_core::{Cause, Span, Tight, Time};
use trunkline_measure::{Samples, Step, WindowSample};

/// The time of all blocks by place and cause.
#[derive(Debug, Default)]
pub(crate) struct Blocks {
    pub count: u64,
    /// In the order of place and cause.
    sums: Vec<Sum>,
    /// The sum that the last block's first step was added to.
    first: u32,
}

/// The time of one place and cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sum {
    step: Step,
    /// The sum to which the step after one of this was added the last time: the blocks of a traffic mostly go the same
    /// way, and one that did not wait somewhere has a step less.
    next: u32,
}

/// No sum: in front of a block's first step.
const NONE: u32 = u32::MAX;

impl Blocks {
    /// Begins to add the time of one block, from `since` on.
    pub fn book(&mut self, since: Time) -> Booking<'_> {
        self.count += 1;
        Booking { blocks: self, before: NONE, until: since }
    }

    /// The sums, in the order of place and cause.
    pub fn steps(&self) -> impl Iterator<Item = Step> {
        self.sums.iter().map(|sum| sum.step)
    }

    /// Adds the step of a block that comes after the one added to the sum at `before`; the sum that it goes to.
    #[inline]
    fn add(&mut self, before: u32, step: Step) -> u32 {
        let guess = self.sums.get(before as usize).map_or(self.first, |sum| sum.next);
        match self.sums.get_mut(guess as usize) {
            Some(Sum { step: sum, .. }) if sum.place == step.place && sum.cause == step.cause => {
                sum.span += step.span;
                guess
            }
            _ => self.search(before, step),
        }
    }

    /// The same if the guess was wrong. The sum is made if there is none.
    #[cold]
    fn search(&mut self, before: u32, step: Step) -> u32 {
        let key = |step: &Step| (step.place, step.cause as u8);
        let (at, moved) = match self.sums.binary_search_by_key(&key(&step), |sum| key(&sum.step)) {
            Ok(at) => (at, false),
            Err(at) => {
                self.sums.push_tight(Sum { step: Step { span: Span::ZERO, ..step }, next: 0 });
                self.sums[at..].rotate_right(1);
                (at, true)
            }
        };
        self.sums[at].step.span += step.span;
        // Where the sum before is now.
        let shift = u32::from(moved && at <= before as usize);
        match self.sums.get_mut(before.saturating_add(shift) as usize) {
            Some(sum) => sum.next = at as u32,
            None => self.first = at as u32,
        }
        at as u32
    }
}

/// The time of one block on its way into the sums: like a [`Trail`](trunkline_measure::Trail) of which nothing is kept.
#[derive(Debug)]
pub(crate) struct Booking<'a> {
    blocks: &'a mut Blocks,
    /// The sum that the step before was added to.
    before: u32,
    /// The instant up to which its time is booked.
    until: Time,
}

impl Booking<'_> {
    /// Books the time up to `now`. An instant that has been passed books nothing.
    #[inline]
    pub fn mark(&mut self, now: Time, place: u32, cause: Cause) {
        self.add(Step { place, cause, span: now.since(self.until) });
    }

    /// Books a step.
    #[inline]
    pub fn add(&mut self, step: Step) {
        if !step.span.is_zero() {
            self.until += step.span;
            self.before = self.blocks.add(self.before, step);
        }
    }
}

/// What a traffic has measured so far.
#[derive(Debug, Default)]
pub(crate) struct Measured {
    pub samples: Samples,
    pub delivered: u64,
    /// Of each flow, with the time of the last delivery.
    pub delivered_by: Vec<(u64, Time)>,
    pub windows: Vec<WindowSample>,
    pub blocks: Blocks,
    /// Flows that have not ended.
    pub flows_left: u32,
    /// Flows that ended because the other end left every enquiry unanswered.
    pub gave_up: u32,
    pub started: bool,
    pub ended: bool,
    /// Packets that came to the interface and found its memory full.
    pub overruns: u64,
}

impl Measured {
    /// A traffic of `flows` flows before it starts.
    pub fn new(flows: u32, samples: Samples) -> Measured {
        let delivered_by = vec![(0, Time::ZERO); flows as usize];
        let flows_left = flows;
        Measured { flows_left, delivered_by, samples, ..Measured::default() }
    }

    /// An application has read `bytes`; those at the peer's end count for the flow's progress.
    pub fn deliver(&mut self, now: Time, flow: u32, id: EndId, bytes: u32) {
        self.delivered += u64::from(bytes);
        if !id.is_sender() {
            let (delivered, until) = &mut self.delivered_by[flow as usize];
            *delivered += u64::from(bytes);
            *until = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    impl Blocks {
        fn book_all(&mut self, steps: &[Step]) {
            let mut booking = self.book(Time::ZERO);
            steps.iter().for_each(|step| booking.add(*step));
        }
    }

    #[test]
    fn blocks_are_summed_by_place_and_cause() {
        let step = |place, cause, nanos| Step { place, cause, span: Span::from_nanos(nanos) };
        let mut blocks = Blocks::default();
        blocks.book_all(&[step(1, Cause::Queue, 30), step(2, Cause::Queue, 5)]);
        blocks.book_all(&[step(1, Cause::Queue, 12), step(1, Cause::Transmit, 7)]);
        blocks.book_all(&[step(0, Cause::Host, 1), step(2, Cause::Queue, 4)]);
        let expected = [
            step(0, Cause::Host, 1),
            step(1, Cause::Queue, 42),
            step(1, Cause::Transmit, 7),
            step(2, Cause::Queue, 9),
        ];
        assert_eq!((blocks.steps().collect::<Vec<_>>(), blocks.count), (expected.to_vec(), 3));
    }

    #[test]
    fn sums_do_not_depend_on_what_was_guessed() {
        let (mut blocks, mut sums) = (Blocks::default(), BTreeMap::new());
        // Every subset of eight steps, forwards and backwards: each step follows each other, or is the first.
        for subset in 0..256_u64 {
            let one = |bit: u64| {
                let cause = if bit.is_multiple_of(2) { Cause::Queue } else { Cause::Transmit };
                Step { place: (bit / 2) as u32, cause, span: Span::from_nanos(subset + bit) }
            };
            let mut steps: Vec<Step> =
                (0..8).filter(|bit| subset >> bit & 1 == 1).map(one).collect();
            if subset.is_multiple_of(3) {
                steps.reverse();
            }
            blocks.book_all(&steps);
            for step in steps {
                *sums.entry((step.place, step.cause as u8)).or_insert(Span::ZERO) += step.span;
            }
        }
        let found = blocks.steps().map(|sum| ((sum.place, sum.cause as u8), sum.span));
        assert!(found.eq(sums));
        assert_eq!(blocks.sums.len(), 8);
    }

    #[test]
    fn a_step_left_out_spoils_no_more_than_the_guess_after_it() {
        let step = |place| Step { place, cause: Cause::Queue, span: Span::from_nanos(1) };
        let all: Vec<Step> = (0..6).map(step).collect();
        let mut blocks = Blocks::default();
        blocks.book_all(&all);
        let without: Vec<Step> = all.iter().copied().filter(|step| step.place != 2).collect();
        blocks.book_all(&without);
        let next: Vec<u32> = blocks.sums[..5].iter().map(|sum| sum.next).collect();
        assert_eq!((blocks.first, next), (0, vec![1, 3, 3, 4, 5]));
    }
}
