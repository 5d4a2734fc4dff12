//! When the blocks of a message may start: a window of blocks, a limit on requests.

use crate::talk::{BlockTimes, Talk};
use std::collections::BTreeMap;
use trunkline_core::Span;

/// The starts of a write's blocks, counted from the end of the system write.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Schedule {
    /// Processor time of handing over requests, as far as blocks waited for it.
    pub handing: Span,
    /// Blocks being sent ahead of the last.
    pub ahead: Span,
    /// Answers to blocks being waited for.
    pub window: Span,
    /// Answers to earlier requests being waited for.
    pub request: Span,
    /// When the last block's answer is there.
    pub answered: Span,
    /// How much earlier than the last each block started, the first one first.
    pub earlier: Vec<Span>,
    /// User bytes of the last block.
    pub last: u32,
    /// Those of the block before it, and how much earlier that started.
    pub before: Option<(u32, Span)>,
}

/// What of the reader's work counts.
#[derive(Debug, Clone, Copy)]
enum Reading {
    /// A system call for each block.
    Each,
    /// The bytes alone.
    Together,
    /// Nothing: only answers count.
    Left,
}

/// The times of blocks by size, computed once for each.
#[derive(Debug)]
pub(crate) struct Blocks<'a, 'b> {
    talk: &'b Talk<'a>,
    reading: Reading,
    known: BTreeMap<u32, BlockTimes>,
}

impl<'a, 'b> Blocks<'a, 'b> {
    pub fn of(talk: &'b Talk<'a>) -> Blocks<'a, 'b> {
        Blocks { talk, reading: Reading::Each, known: BTreeMap::new() }
    }

    /// The same if all that has come is read with one call.
    pub fn read_together(talk: &'b Talk<'a>) -> Blocks<'a, 'b> {
        Blocks { reading: Reading::Together, ..Blocks::of(talk) }
    }

    /// Blocks that the sender waits for, however far behind the reader is if a board answers for it.
    pub fn answered(talk: &'b Talk<'a>) -> Blocks<'a, 'b> {
        Blocks { reading: Reading::Left, ..Blocks::of(talk) }
    }

    pub fn times(&mut self, data: u32) -> BlockTimes {
        let times = || match self.reading {
            Reading::Each => self.talk.block(data),
            Reading::Together => self.talk.block_together(data),
            Reading::Left => self.talk.block_answered(data),
        };
        *self.known.entry(data).or_insert_with(times)
    }

    /// The start of each block k: t(k) = max(t(k−1) + spacing, answer to block k − w, request ready). The first answer has to
    /// come before answers add to the spacing.
    /// Request r is handed over when r − n is answered for, n being the requests that the interface takes.
    pub fn schedule(&mut self, requests: &[Vec<u32>]) -> Schedule {
        let limit =
            self.talk.from.0.interface.requests.filter(|_| self.talk.speech.answer.is_some());
        let window = self.talk.speech.outstanding.map_or(usize::MAX, |blocks| blocks as usize);
        let mut schedule = Schedule::default();
        // When each request and each block is answered for, and when the next block could start.
        let (mut done, mut answers): (Vec<Span>, Vec<Span>) = (Vec::new(), Vec::new());
        let mut free = Span::ZERO;
        let mut ready = Span::ZERO;
        let mut spacing = Span::ZERO;
        let mut previous: Option<(u32, Span)> = None;
        let apart = self.talk.answers_apart();
        for (index, blocks) in requests.iter().enumerate() {
            let mut handing = self.talk.request(blocks.iter().sum());
            let gate = limit.and_then(|n| index.checked_sub(n as usize)).map(|before| done[before]);
            if let Some(gate) = gate {
                handing += self.talk.done();
                ready = ready.max(gate);
            }
            ready += handing;
            for &data in blocks {
                let opened = answers.len().checked_sub(window).map_or(Span::ZERO, |k| answers[k]);
                let start = free.max(ready).max(opened);
                let gap = start - free;
                let handed = gap.min(handing);
                schedule.handing += handed;
                let for_window = opened.saturating_sub(free.max(ready)).min(gap - handed);
                schedule.window += for_window;
                schedule.request += gap - handed - for_window;
                handing = Span::ZERO;
                let times = self.times(data);
                let behind = answers.last().map_or(Span::ZERO, |&before| before + apart);
                answers.push((start + times.answered).max(behind));
                schedule.earlier.push(start);
                let takes = if start < answers[0] { times.unanswered } else { times.spacing };
                schedule.ahead += std::mem::replace(&mut spacing, takes);
                free = start + takes;
                schedule.last = data;
                schedule.before = previous.map(|(data, earlier)| (data, start - earlier));
                previous = Some((data, start));
            }
            done.push(answers.last().copied().unwrap_or(ready));
        }
        schedule.answered = done.last().copied().unwrap_or_default();
        let last = schedule.earlier.last().copied().unwrap_or_default();
        schedule.earlier.iter_mut().for_each(|start| *start = last - *start);
        schedule
    }
}
