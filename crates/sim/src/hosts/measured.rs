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
    /// The places at which the first step of the last block was found, the second, and so on: the blocks of a traffic
    /// mostly go the same way.
    found: Vec<u32>,
}

impl Blocks {
    /// Adds the time of one block.
    pub fn book(&mut self, steps: &[Step]) {
        self.count += 1;
        self.found.resize(self.found.len().max(steps.len()), 0);
        for (index, step) in steps.iter().enumerate() {
            let guess = self.found[index] as usize;
            let same = |sum: &Step| sum.place == step.place && sum.cause == step.cause;
            let at = if self.sums.get(guess).is_some_and(same) { guess } else { self.place(step) };
            self.found[index] = at as u32;
            self.sums[at].span += step.span;
        }
    }

    /// The place of the sum for `step`. It is made if there is none.
    fn place(&mut self, step: &Step) -> usize {
        let key = |step: &Step| (step.place, step.cause as u8);
        let found = self.sums.binary_search_by_key(&key(step), key);
        found.unwrap_or_else(|at| {
            self.sums.insert(at, Step { span: Span::ZERO, ..*step });
            at
        })
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
}
