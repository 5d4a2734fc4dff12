//! The receiving half.

use super::Rule;
use super::header::{Says, encode, widen};
use crate::Extent;
use crate::protocol::{Delivery, Frame};
use std::collections::{BTreeMap, VecDeque};

/// Answers that may wait to be sent; older ones are left out, for the newer ones say more.
const MOST_ANSWERS: usize = 1 << 16;

/// The frames that have come, and the answers to them.
#[derive(Debug)]
pub(super) struct Receiver {
    rule: Rule,
    /// Frames that it can hold, counted from the next in order.
    buffer: u64,
    /// The number of the next frame in order.
    expected: u64,
    /// Frames behind a gap.
    early: BTreeMap<u64, (Extent, bool)>,
    /// Frames in order that the application has not taken.
    inbox: VecDeque<Delivery>,
    answers: VecDeque<(u64, u8)>,
}

impl Receiver {
    pub fn new(rule: Rule, buffer: u64) -> Receiver {
        Receiver {
            rule,
            buffer,
            expected: 0,
            early: BTreeMap::new(),
            inbox: VecDeque::new(),
            answers: VecDeque::new(),
        }
    }

    /// Data have come. Answers their number if they are kept.
    pub fn data(&mut self, (low, sending): (u32, u8), data: Extent, end: bool) -> Option<u64> {
        let number = widen(low, self.expected);
        let kept = match self.rule {
            Rule::GoBack => {
                let kept = number == self.expected;
                if kept {
                    self.accept(data, end);
                }
                // An answer tells which frame comes next, also if it says so again.
                self.answer(self.expected, sending);
                kept
            }
            Rule::Selective => self.selective((number, sending), data, end),
        };
        kept.then_some(number)
    }

    fn selective(&mut self, (number, sending): (u64, u8), data: Extent, end: bool) -> bool {
        if number >= self.expected.saturating_add(self.buffer) {
            return false;
        }
        self.answer(number, sending);
        if number < self.expected || self.early.contains_key(&number) {
            return false;
        }
        self.early.insert(number, (data, end));
        while let Some((data, end)) = self.early.remove(&self.expected) {
            self.accept(data, end);
        }
        true
    }

    fn accept(&mut self, data: Extent, end: bool) {
        self.inbox.push_back(Delivery { number: self.expected, data, end });
        self.expected += 1;
    }

    fn answer(&mut self, number: u64, sending: u8) {
        if self.answers.len() == MOST_ANSWERS {
            self.answers.pop_front();
        }
        self.answers.push_back((number, sending));
    }

    /// The next answer to be sent.
    pub fn next_answer(&mut self) -> Option<Frame> {
        let (number, sending) = self.answers.pop_front()?;
        let header = encode(Says::Answer { number: number as u32, sending });
        Some(Frame { header, data: Extent::default() })
    }

    pub fn take(&mut self) -> Option<Delivery> {
        self.inbox.pop_front()
    }
}
