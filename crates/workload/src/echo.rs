//! A message out, an answer back, one outstanding: `ipuke` and `ieat` (Hawley 1989, section 3.2),
//! `dkbench` and `dkbenchs` (Vande Water 1988, section 2.1), the RTT test of `dkxload` (section 2.7).

use crate::{Action, Draft, Outcome};
use trunkline_core::{Span, Time};
use trunkline_scenario::Reply;

/// When to go on to the next size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Quota {
    /// After so many messages.
    Messages(u32),
    /// After so long. The message under way then is finished and not counted.
    Time(Span),
}

/// The asking side: for each size in turn it writes a message in one system write and waits for the
/// answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Asker {
    sizes: Vec<u32>,
    quota: Quota,
    /// From one intended start to the next; zero: as soon as the answer is there.
    every: Span,
    /// Index of the size in turn.
    at: usize,
    /// Messages of this size that were answered.
    index: u32,
    /// When the first message of this size was meant to start.
    since: Time,
    intended: Time,
    start: Time,
    pub(crate) sample: Option<Draft>,
}

impl Asker {
    /// `repeat` messages of each size, their intended starts `every` apart.
    pub(crate) fn counted(sizes: &[u32], repeat: u32, every: Span) -> Asker {
        Asker::new(sizes, Quota::Messages(repeat), every)
    }

    /// Messages of each size for so long, each as soon as the one before is answered.
    pub(crate) fn timed(sizes: &[u32], duration: Span) -> Asker {
        Asker::new(sizes, Quota::Time(duration), Span::ZERO)
    }

    fn new(sizes: &[u32], quota: Quota, every: Span) -> Asker {
        Asker {
            sizes: sizes.to_vec(),
            quota,
            every,
            at: 0,
            index: 0,
            since: Time::ZERO,
            intended: Time::ZERO,
            start: Time::ZERO,
            sample: None,
        }
    }

    pub(crate) fn connection(&self) -> usize {
        self.at.min(self.sizes.len().saturating_sub(1))
    }

    pub(crate) fn step(&mut self, now: Time, outcome: Outcome) -> Action {
        match outcome {
            Outcome::Start => {
                (self.since, self.intended) = (now, now);
                self.next(now)
            }
            Outcome::Written | Outcome::Read { end: false, .. } => Action::Read,
            Outcome::Read { end: true, .. } => {
                self.answered(now);
                self.next(now)
            }
            Outcome::Woke => self.write(now),
        }
    }

    /// Makes the sample, and says when the next message is meant to start. If the schedule is missed
    /// the intended start stays on it, so that a slow answer is paid for by those behind it too
    /// (otherwise a stall would hide the messages it kept from being sent).
    fn answered(&mut self, now: Time) {
        if self.counts(now) {
            self.sample = Some(Draft {
                size: u64::from(self.sizes[self.at]),
                index: self.index,
                intended: self.intended,
                start: self.start,
                end: now,
            });
        }
        self.index += 1;
        self.intended = if self.every.is_zero() { now } else { self.intended + self.every };
    }

    /// Whether a message answered at `now` counts.
    fn counts(&self, now: Time) -> bool {
        match self.quota {
            Quota::Messages(_) => true,
            Quota::Time(duration) => now <= self.since + duration,
        }
    }

    /// Whether this size is done.
    fn exhausted(&self, now: Time) -> bool {
        match self.quota {
            Quota::Messages(repeat) => self.index >= repeat,
            Quota::Time(duration) => now >= self.since + duration,
        }
    }

    fn next(&mut self, now: Time) -> Action {
        if self.at < self.sizes.len() && self.exhausted(now) {
            (self.at, self.index, self.since) = (self.at + 1, 0, now);
        }
        if self.at == self.sizes.len() || self.exhausted(now) {
            // A quota that is used up before it began gives no size a message.
            return Action::Done;
        }
        if self.intended > now {
            return Action::Wait(self.intended);
        }
        self.write(now)
    }

    fn write(&mut self, now: Time) -> Action {
        self.start = now;
        Action::Write { bytes: self.sizes[self.at], end: true, fresh: true }
    }
}

/// The answering side: reads a whole message, writes the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answerer {
    reply: Reply,
    /// Bytes of the message being read.
    got: u32,
}

impl Answerer {
    pub(crate) fn new(reply: Reply) -> Answerer {
        Answerer { reply, got: 0 }
    }

    pub(crate) fn step(&mut self, outcome: Outcome) -> Action {
        let Outcome::Read { bytes, end } = outcome else { return Action::Read };
        self.got += bytes;
        if !end {
            return Action::Read;
        }
        let got = std::mem::take(&mut self.got);
        let bytes = match self.reply {
            Reply::Echo => got,
            Reply::Bytes(bytes) => bytes,
        };
        Action::Write { bytes, end: true, fresh: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pair::{LATENCY, Pair, WRITE};
    use trunkline_scenario::Workload;

    /// Two writes and two crossings of the toy network.
    fn round_trip() -> Span {
        WRITE + LATENCY + WRITE + LATENCY
    }

    fn interactive(every: Span) -> Workload {
        Workload::Interactive { sizes: vec![1, 800], repeat: 3, reply: Reply::Bytes(4), every }
    }

    #[test]
    fn each_size_is_repeated_and_timed_from_write_to_answer() {
        let mut pair = Pair::new(&interactive(Span::ZERO));
        let samples = pair.run();
        let keys: Vec<_> = samples.iter().map(|draft| (draft.size, draft.index)).collect();
        assert_eq!(keys, [(1, 0), (1, 1), (1, 2), (800, 0), (800, 1), (800, 2)]);
        assert!(samples.iter().all(|draft| draft.end - draft.start == round_trip()));
        assert!(samples.iter().all(|draft| draft.intended == draft.start));
        let message = |bytes| (bytes, true);
        assert_eq!(pair.written(0), [1, 1, 1, 800, 800, 800].map(message));
        assert_eq!(pair.written(1), [4; 6].map(message));
    }

    #[test]
    fn echoes_are_as_long_as_the_message_however_it_comes() {
        let mut answerer = Answerer::new(Reply::Echo);
        assert_eq!(answerer.step(Outcome::Start), Action::Read);
        assert_eq!(answerer.step(Outcome::Read { bytes: 256, end: false }), Action::Read);
        let reply = Action::Write { bytes: 512, end: true, fresh: false };
        assert_eq!(answerer.step(Outcome::Read { bytes: 256, end: true }), reply);
        assert_eq!(answerer.step(Outcome::Written), Action::Read);
        let reply = Action::Write { bytes: 0, end: true, fresh: false };
        assert_eq!(answerer.step(Outcome::Read { bytes: 0, end: true }), reply);
    }

    #[test]
    fn a_schedule_slower_than_the_answers_is_kept() {
        let every = round_trip() + Span::from_millis(1);
        for (index, draft) in Pair::new(&interactive(every)).run().iter().enumerate() {
            assert_eq!(draft.start, Time::ZERO + every.scaled(index as u64, 1));
            assert_eq!(draft.intended, draft.start);
        }
    }

    #[test]
    fn a_schedule_faster_than_the_answers_leaves_intentions_behind() {
        let every = round_trip().scaled(1, 2);
        for (index, draft) in Pair::new(&interactive(every)).run().iter().enumerate() {
            assert_eq!(draft.intended, Time::ZERO + every.scaled(index as u64, 1));
            assert_eq!(draft.start, Time::ZERO + round_trip().scaled(index as u64, 1));
        }
    }

    #[test]
    fn a_timed_test_counts_what_was_answered_in_time() {
        let sizes = vec![10, 20];
        let duration = round_trip().scaled(7, 2);
        let mut pair = Pair::new(&Workload::TimedEcho { sizes, duration });
        let keys: Vec<_> = pair.run().iter().map(|draft| (draft.size, draft.index)).collect();
        assert_eq!(keys, [(10, 0), (10, 1), (10, 2), (20, 0), (20, 1), (20, 2)]);
        assert_eq!(pair.written(0).len(), 8, "one more of each size was under way");
    }

    #[test]
    fn nothing_to_do_ends_at_once() {
        let mut none = Asker::counted(&[1, 2], 0, Span::ZERO);
        assert_eq!(none.step(Time::ZERO, Outcome::Start), Action::Done);
        let mut none = Asker::timed(&[1, 2], Span::ZERO);
        assert_eq!(none.step(Time::ZERO, Outcome::Start), Action::Done);
        let mut none = Asker::counted(&[], 3, Span::ZERO);
        assert_eq!(none.step(Time::ZERO, Outcome::Start), Action::Done);
    }
}
