//! What a traffic has measured so far.

use super::jobs::EndId;
use trunkline_core::{Span, Time};
use trunkline_measure::{Samples, Step, WindowSample};

/// The time of all blocks by place and cause.
#[derive(Debug, Default)]
pub(crate) struct Blocks {
    pub count: u64,
    /// In the order of place and cause.
    pub sums: Vec<Step>,
    /// The sum that the last block's first step was added to.
    first: u32,
    /// For each sum the one to which the step after it was added the last time: the blocks of a traffic mostly go the
    /// same way, and one that did not wait somewhere has a step less.
    next: Vec<u32>,
}

impl Blocks {
    /// Adds the time of one block.
    pub fn book(&mut self, steps: &[Step]) {
        self.count += 1;
        let mut before = None;
        for step in steps {
            let guess = before.map_or(self.first, |before: usize| self.next[before]) as usize;
            let same = |sum: &Step| sum.place == step.place && sum.cause == step.cause;
            let right = self.sums.get(guess).is_some_and(same);
            let at = if right { guess } else { self.place(before, step) };
            self.sums[at].span += step.span;
            before = Some(at);
        }
    }

    /// The place of the sum for `step`, which follows the step of the sum at `before`. It is made if there is none.
    fn place(&mut self, before: Option<usize>, step: &Step) -> usize {
        let key = |step: &Step| (step.place, step.cause as u8);
        let (at, moved) = match self.sums.binary_search_by_key(&key(step), key) {
            Ok(at) => (at, false),
            Err(at) => {
                self.sums.insert(at, Step { span: Span::ZERO, ..*step });
                self.next.insert(at, 0);
                (at, true)
            }
        };
        match before {
            Some(before) => self.next[before + usize::from(moved && at <= before)] = at as u32,
            None => self.first = at as u32,
        }
        at
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
    use trunkline_core::Cause;

    #[test]
    fn blocks_are_summed_by_place_and_cause() {
        let step = |place, cause, nanos| Step { place, cause, span: Span::from_nanos(nanos) };
        let mut blocks = Blocks::default();
        blocks.book(&[step(1, Cause::Queue, 30), step(2, Cause::Queue, 5)]);
        blocks.book(&[step(1, Cause::Queue, 12), step(1, Cause::Transmit, 7)]);
        blocks.book(&[step(0, Cause::Host, 1), step(2, Cause::Queue, 4)]);
        let expected = [
            step(0, Cause::Host, 1),
            step(1, Cause::Queue, 42),
            step(1, Cause::Transmit, 7),
            step(2, Cause::Queue, 9),
        ];
        assert_eq!((blocks.sums, blocks.count), (expected.to_vec(), 3));
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
            blocks.book(&steps);
            for step in steps {
                *sums.entry((step.place, step.cause as u8)).or_insert(Span::ZERO) += step.span;
            }
        }
        let found = blocks.sums.iter().map(|sum| ((sum.place, sum.cause as u8), sum.span));
        assert!(found.eq(sums));
        assert_eq!(blocks.next.len(), 8);
    }

    #[test]
    fn a_step_left_out_spoils_no_more_than_the_guess_after_it() {
        let step = |place| Step { place, cause: Cause::Queue, span: Span::from_nanos(1) };
        let all: Vec<Step> = (0..6).map(step).collect();
        let mut blocks = Blocks::default();
        blocks.book(&all);
        let without: Vec<Step> = all.iter().copied().filter(|step| step.place != 2).collect();
        blocks.book(&without);
        assert_eq!((blocks.first, &blocks.next[..5]), (0, &[1, 3, 3, 4, 5][..]));
    }
}
