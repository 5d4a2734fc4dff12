//! What a traffic has measured so far.

use super::jobs::EndId;
use std::collections::BTreeMap;
use trunkline_core::{Span, Time};
use trunkline_measure::{Samples, Step, WindowSample};

/// What a traffic has measured so far.
#[derive(Debug, Default)]
pub(crate) struct Measured {
    pub samples: Samples,
    pub delivered: u64,
    /// Of each flow, with the time of the last delivery.
    pub delivered_by: Vec<u64>,
    pub delivered_until: Vec<Time>,
    pub windows: Vec<WindowSample>,
    pub blocks: BTreeMap<(u32, u8), Step>,
    pub block_count: u64,
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
        let delivered_by = vec![0; flows as usize];
        let delivered_until = vec![Time::ZERO; flows as usize];
        let flows_left = flows;
        Measured { flows_left, delivered_by, delivered_until, samples, ..Measured::default() }
    }

    /// Adds the time of one block.
    pub fn book_block(&mut self, steps: &[Step]) {
        self.block_count += 1;
        for step in steps {
            let none = Step { span: Span::ZERO, ..*step };
            let sum = self.blocks.entry((step.place, step.cause as u8)).or_insert(none);
            sum.span += step.span;
        }
    }

    /// An application has read `bytes`; those at the peer's end count for the flow's progress.
    pub fn deliver(&mut self, now: Time, flow: u32, id: EndId, bytes: u32) {
        self.delivered += u64::from(bytes);
        if !id.is_sender() {
            self.delivered_by[flow as usize] += u64::from(bytes);
            self.delivered_until[flow as usize] = now;
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
        let mut measured = Measured::default();
        measured.book_block(&[step(1, Cause::Queue, 30), step(2, Cause::Queue, 5)]);
        measured.book_block(&[step(1, Cause::Queue, 12), step(1, Cause::Transmit, 7)]);
        let mut sums: Vec<Step> = measured.blocks.into_values().collect();
        sums.sort_by_key(|it| it.span);
        let expected =
            [step(2, Cause::Queue, 5), step(1, Cause::Transmit, 7), step(1, Cause::Queue, 42)];
        assert_eq!((sums, measured.block_count), (expected.to_vec(), 2));
    }
}
