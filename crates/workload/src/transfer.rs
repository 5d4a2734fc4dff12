//! Writes of one size one after the other for a stated time for each size: the transfer test of
//! `dkxload` (Vande Water 1988, section 3.7).

use crate::{Action, Draft, Outcome};
use trunkline_core::{Span, Time};

/// The sending side. Its peer is the discarding [`Sink`](crate::sink::Sink).
///
/// A sample is the interval from one write's return to the next one's. The first write of a size only
/// opens the first interval, and the interval in which the time runs out is not counted. An empty
/// message and its answer close each size, so that no size finds the one before still under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Streamer {
    sizes: Vec<u32>,
    duration: Span,
    at: usize,
    index: u32,
    /// When the first write of this size began.
    since: Time,
    /// When the last write of this size returned.
    returned: Option<Time>,
    /// Whether the empty message is out.
    asked: bool,
    pub(crate) sample: Option<Draft>,
}

impl Streamer {
    pub(crate) fn new(sizes: &[u32], duration: Span) -> Streamer {
        Streamer {
            sizes: sizes.to_vec(),
            duration,
            at: 0,
            index: 0,
            since: Time::ZERO,
            returned: None,
            asked: false,
            sample: None,
        }
    }

    pub(crate) fn connection(&self) -> usize {
        self.at.min(self.sizes.len().saturating_sub(1))
    }

    pub(crate) fn step(&mut self, now: Time, outcome: Outcome) -> Action {
        match outcome {
            Outcome::Start => self.begin(now),
            Outcome::Read { end: true, .. } => {
                self.at += 1;
                self.begin(now)
            }
            Outcome::Written | Outcome::Woke if !self.asked => self.returned(now),
            _ => Action::Read,
        }
    }

    fn begin(&mut self, now: Time) -> Action {
        (self.index, self.since, self.returned, self.asked) = (0, now, None, false);
        if self.at == self.sizes.len() || self.duration.is_zero() {
            return Action::Done;
        }
        self.write()
    }

    /// Each write is a message of its own: nothing waits to be joined by the next one's bytes.
    fn write(&self) -> Action {
        Action::Write { bytes: self.sizes[self.at], end: true, fresh: true }
    }

    fn returned(&mut self, now: Time) -> Action {
        let deadline = self.since + self.duration;
        if let Some(start) = self.returned.filter(|_| now <= deadline) {
            let size = u64::from(self.sizes[self.at]);
            self.sample = Some(Draft { size, index: self.index, intended: start, start, end: now });
            self.index += 1;
        }
        self.returned = Some(now);
        if now < deadline {
            return self.write();
        }
        self.asked = true;
        Action::Write { bytes: 0, end: true, fresh: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pair::{LATENCY, Pair, WRITE};
    use trunkline_scenario::Workload;

    #[test]
    fn intervals_between_returns_are_the_samples() {
        let workload =
            Workload::TimedTransfer { sizes: vec![100, 1024], duration: WRITE.scaled(9, 2) };
        let mut pair = Pair::new(&workload);
        let samples = pair.run();
        // Five writes begin in four and a half times a write: the first return opens, the fifth is late.
        let keys: Vec<_> = samples.iter().map(|draft| (draft.size, draft.index)).collect();
        assert_eq!(keys, [(100, 0), (100, 1), (100, 2), (1024, 0), (1024, 1), (1024, 2)]);
        assert!(samples.iter().all(|draft| draft.end - draft.start == WRITE));
        let second = Time::ZERO + WRITE.scaled(7, 1) + LATENCY + LATENCY;
        assert_eq!(samples[3].start, second + WRITE, "the second size starts on an idle path");
        let one = |bytes| [[(bytes, true); 5].as_slice(), &[(0, true)]].concat();
        assert_eq!(pair.written(0), [one(100), one(1024)].concat());
        assert_eq!(pair.written(1), [(4, true), (4, true)]);
    }

    #[test]
    fn no_time_no_writes() {
        let mut streamer = Streamer::new(&[1], Span::ZERO);
        assert_eq!(streamer.step(Time::ZERO, Outcome::Start), Action::Done);
    }
}
