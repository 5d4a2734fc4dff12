//! So many bytes as fast as the transport takes them: `mpuke` (Hawley 1989, section 3.1), `trafgen`
//! (Vande Water 1988, section 3.1) and the sending side of `push` (section 3.5.1).

use crate::{Action, Draft, Outcome};
use trunkline_core::Time;

/// The event that ends a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Confirm {
    /// The last write's return.
    Not,
    /// The answer to an empty message behind it.
    Empty,
    /// The answer to the transfer itself.
    Last,
}

/// The sending side of a transfer, again and again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Source {
    bytes: u64,
    repeat: u32,
    write: u32,
    confirm: Confirm,
    /// Bytes of this transfer asked to be written so far.
    sent: u64,
    /// Whether what asks for the answer is out.
    asked: bool,
    index: u32,
    start: Time,
    pub(crate) sample: Option<Draft>,
}

impl Source {
    /// `repeat` transfers of `bytes` bytes, each in system writes of `write` bytes of which the last may
    /// be shorter and ends the message. A transfer of no bytes that nothing confirms is none.
    pub(crate) fn new(bytes: u64, repeat: u32, write: u32, confirm: Confirm) -> Source {
        Source {
            bytes,
            repeat: if bytes == 0 && confirm == Confirm::Not { 0 } else { repeat },
            write: write.max(1),
            confirm,
            sent: 0,
            asked: false,
            index: 0,
            start: Time::ZERO,
            sample: None,
        }
    }

    pub(crate) fn step(&mut self, now: Time, outcome: Outcome) -> Action {
        match outcome {
            Outcome::Start => self.begin(now),
            Outcome::Read { end: true, .. } => self.finish(now),
            Outcome::Written | Outcome::Woke if !self.asked => self.go_on(now),
            _ => Action::Read,
        }
    }

    fn begin(&mut self, now: Time) -> Action {
        if self.index == self.repeat {
            return Action::Done;
        }
        (self.start, self.sent, self.asked) = (now, 0, false);
        self.go_on(now)
    }

    /// The next write of this transfer, or its end.
    fn go_on(&mut self, now: Time) -> Action {
        let fresh = self.sent == 0;
        if self.sent < self.bytes {
            let bytes = u64::from(self.write).min(self.bytes - self.sent);
            self.sent += bytes;
            let end = self.sent == self.bytes;
            self.asked = end && self.confirm == Confirm::Last;
            return Action::Write { bytes: bytes as u32, end, fresh };
        }
        if self.confirm != Confirm::Not {
            self.asked = true;
            return Action::Write { bytes: 0, end: true, fresh };
        }
        self.finish(now)
    }

    fn finish(&mut self, now: Time) -> Action {
        let (size, index, start) = (self.bytes, self.index, self.start);
        self.sample = Some(Draft { size, index, intended: start, start, end: now });
        self.index += 1;
        self.begin(now)
    }
}

#[cfg(test)]
mod tests {
    use crate::pair::{LATENCY, Pair, WRITE};
    use trunkline_core::{Size, Span};
    use trunkline_scenario::Workload;

    fn bulk(bytes: u64, confirm: bool) -> Workload {
        Workload::Bulk { bytes: Size::from_bytes(bytes), repeat: 2, write: 1000, confirm }
    }

    #[test]
    fn a_confirmed_transfer_ends_with_the_answer() {
        let mut pair = Pair::new(&bulk(2500, true));
        let samples = pair.run();
        let transfer = WRITE.scaled(4, 1) + LATENCY + WRITE + LATENCY;
        assert_eq!(samples.len(), 2);
        for (index, draft) in samples.iter().enumerate() {
            assert_eq!((draft.size, draft.index as usize), (2500, index));
            assert_eq!(draft.end - draft.start, transfer);
        }
        assert_eq!(samples[0].end, samples[1].start);
        let one = [(1000, false), (1000, false), (500, true), (0, true)];
        assert_eq!(pair.written(0), [one, one].concat());
        assert_eq!(pair.written(1), [(4, true), (4, true)]);
        assert_eq!(pair.fresh(0), [0, 4], "a sample starts with the first write of each transfer");
    }

    #[test]
    fn an_unconfirmed_transfer_ends_with_the_last_write() {
        let mut pair = Pair::new(&bulk(3000, false));
        let samples = pair.run();
        assert!(samples.iter().all(|draft| draft.end - draft.start == WRITE.scaled(3, 1)));
        let one = [(1000, false), (1000, false), (1000, true)];
        assert_eq!(pair.written(0), [one, one].concat());
        assert!(pair.written(1).is_empty());
    }

    #[test]
    fn over_a_stream_the_transfer_itself_is_answered() {
        let push = Workload::Push {
            bytes: Size::from_bytes(2500),
            repeat: 2,
            write: 1000,
            store: Span::from_millis(4),
        };
        // The last 500 bytes of three pieces are stored in 2 ms before they are confirmed.
        for (workload, storing) in [(bulk(2500, true), 0), (push, 2)] {
            let mut pair = Pair::over_stream(&workload);
            let samples = pair.run();
            let last = WRITE.scaled(3, 1) + LATENCY + Span::from_millis(storing);
            assert_eq!(samples.len(), 2);
            for draft in &samples {
                assert!(draft.end - draft.start >= last + WRITE + LATENCY, "{draft:?}");
            }
            let one = [(1000, false), (1000, false), (500, true)];
            assert_eq!(pair.written(0), [one, one].concat());
            assert_eq!(pair.written(1), [(4, true), (4, true)]);
        }
        let mut pair = Pair::over_stream(&bulk(3000, false));
        assert_eq!(pair.run().len(), 2);
        assert!(pair.written(1).is_empty(), "what is not confirmed is not answered");
    }

    #[test]
    fn a_file_of_no_bytes_is_only_confirmed() {
        // The report subtracts the time of such a transfer: section 3.5.1.
        let workload =
            Workload::Push { bytes: Size::from_bytes(0), repeat: 1, write: 1, store: Span::ZERO };
        let mut pair = Pair::new(&workload);
        let samples = pair.run();
        assert_eq!(samples[0].end - samples[0].start, (WRITE + LATENCY).scaled(2, 1));
        assert_eq!((pair.written(0), pair.fresh(0)), (vec![(0, true)], vec![0]));
        assert!(Pair::new(&bulk(0, false)).run().is_empty());
    }
}
