//! The receiving side of a transfer: `meat` (Hawley 1989, section 3.1), `trafgens` (Vande Water 1988,
//! section 3.1) and the receiving side of `push` (sections 3.5.1 and 3.7.1), which stores what it reads.

use crate::{Action, COUNT, Outcome};
use trunkline_core::Span;

/// Reads as fast as it can, throws away or stores, and answers each empty message, or each message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sink {
    /// Whether each message is answered, once it is stored.
    all: bool,
    /// Whether an answer is due when what was read is stored.
    due: bool,
    /// Storing so many bytes takes so long.
    store: Option<(u32, Span)>,
    /// Bytes of the message being read.
    got: u64,
    /// Bytes read and not yet stored.
    unstored: u64,
}

impl Sink {
    /// Throws away what it reads.
    pub(crate) fn discarding() -> Sink {
        Sink { all: false, due: false, store: None, got: 0, unstored: 0 }
    }

    /// Answers every message, not the empty ones alone.
    pub(crate) fn answering(self) -> Sink {
        Sink { all: true, ..self }
    }

    /// Spends `store` on each `write` bytes before it reads on; on fewer bytes, at the end of a message,
    /// in proportion.
    pub(crate) fn storing(write: u32, store: Span) -> Sink {
        Sink { store: Some((write.max(1), store)), ..Sink::discarding() }
    }

    pub(crate) fn step(&mut self, outcome: Outcome) -> Action {
        let Outcome::Read { bytes, end } = outcome else { return self.answer() };
        self.got += u64::from(bytes);
        self.unstored += u64::from(bytes);
        self.due = end && (self.all || self.got == 0);
        if end {
            self.got = 0;
        }
        let work = self.work(end);
        if work.is_zero() { self.answer() } else { Action::Work(work) }
    }

    /// The answer that is due, or the next read.
    fn answer(&mut self) -> Action {
        match std::mem::take(&mut self.due) {
            true => Action::Write { bytes: COUNT, end: true, fresh: false },
            false => Action::Read,
        }
    }

    /// The time that storing takes of what is due to be stored.
    fn work(&mut self, end: bool) -> Span {
        let Some((piece, store)) = self.store else { return Span::ZERO };
        let piece = u64::from(piece);
        let due = if end { self.unstored } else { self.unstored / piece * piece };
        self.unstored -= due;
        store.scaled(due, piece)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANSWER: Action = Action::Write { bytes: COUNT, end: true, fresh: false };

    fn read(bytes: u32, end: bool) -> Outcome {
        Outcome::Read { bytes, end }
    }

    #[test]
    fn only_empty_messages_are_answered() {
        let mut sink = Sink::discarding();
        assert_eq!(sink.step(Outcome::Start), Action::Read);
        assert_eq!(sink.step(read(256, false)), Action::Read);
        assert_eq!(sink.step(read(0, true)), Action::Read, "the end of a message that had bytes");
        assert_eq!(sink.step(read(9, true)), Action::Read);
        assert_eq!(sink.step(read(0, true)), ANSWER);
        assert_eq!(sink.step(Outcome::Written), Action::Read);
        assert_eq!(sink.step(read(0, true)), ANSWER);
    }

    #[test]
    fn storing_is_paid_for_whole_pieces_and_for_the_rest_at_the_end() {
        let milli = Span::from_millis;
        let mut sink = Sink::storing(1000, milli(10));
        assert_eq!(sink.step(read(900, false)), Action::Read);
        assert_eq!(sink.step(read(200, false)), Action::Work(milli(10)));
        assert_eq!(sink.step(Outcome::Woke), Action::Read);
        assert_eq!(sink.step(read(2000, false)), Action::Work(milli(20)));
        assert_eq!(sink.step(Outcome::Woke), Action::Read);
        assert_eq!(sink.step(read(400, true)), Action::Work(milli(5)));
        assert_eq!(sink.step(Outcome::Woke), Action::Read);
        assert_eq!(sink.step(read(0, true)), ANSWER);
    }
}
