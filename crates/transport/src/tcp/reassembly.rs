//! Octets that came before something still missing.

use crate::Payload;
use std::collections::VecDeque;
use trunkline_core::Tight;

/// A run of positions, `start` to before `end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    pub start: u64,
    pub end: u64,
}

/// Pieces beyond the next octet expected, in order and without overlap. Empty, it holds no memory
/// but its own few words.
#[derive(Debug, Clone)]
pub struct Reassembly<B> {
    pieces: VecDeque<(u64, B)>,
    /// The runs that the pieces form.
    ranges: VecDeque<Range>,
    /// Octets in all of them.
    octets: u64,
    /// The starts of the runs, the one that grew last first (RFC 2018 §4).
    recent: Vec<u64>,
}

/// The number of runs remembered by when they grew: as many as SACK blocks fit into a segment.
const RECENT: usize = 4;

impl<B: Payload> Reassembly<B> {
    pub const fn new() -> Reassembly<B> {
        Reassembly {
            pieces: VecDeque::new(),
            ranges: VecDeque::new(),
            octets: 0,
            recent: Vec::new(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Puts in `data` from `start` on, without what is there already. True if any of it was new.
    pub fn insert(&mut self, start: u64, mut data: B) -> bool {
        let (mut at, mut fresh) = (start, false);
        while !data.is_empty() {
            let index = match self.pieces.back() {
                Some((begin, piece)) if end(*begin, piece) <= at => self.pieces.len(),
                _ => self.pieces.partition_point(|(begin, piece)| end(*begin, piece) <= at),
            };
            let (gap, skip) = match self.pieces.get(index) {
                Some((begin, piece)) if *begin <= at => (0, end(*begin, piece) - at),
                Some((begin, _)) => (begin - at, 0),
                None => (u64::MAX, 0),
            };
            at += u64::from(data.take_front(cut(skip)).len());
            let part = data.take_front(cut(gap));
            if !part.is_empty() {
                let next = at + u64::from(part.len());
                self.octets += u64::from(part.len());
                match index == self.pieces.len() {
                    true => self.pieces.push_tight((at, part)),
                    false => self.pieces.insert(index, (at, part)),
                }
                self.note(Range { start: at, end: next });
                (at, fresh) = (next, true);
            }
        }
        fresh
    }

    /// Joins a run to the others. Most lie behind all of them, or go on from the end of the last.
    fn note(&mut self, run: Range) {
        match self.ranges.back_mut() {
            Some(last) if last.end == run.start => {
                last.end = run.end;
                let grown = *last;
                if self.recent.first() != Some(&grown.start) {
                    self.recall(grown);
                }
            }
            Some(last) if last.end > run.start => self.join(run),
            _ => {
                self.ranges.push_tight(run);
                self.recall(run);
            }
        }
    }

    fn join(&mut self, mut run: Range) {
        let first = self.ranges.partition_point(|range| range.end < run.start);
        let last = self.ranges.partition_point(|range| range.start <= run.end);
        if first < last {
            run.start = run.start.min(self.ranges[first].start);
            run.end = run.end.max(self.ranges[last - 1].end);
        }
        self.ranges.drain(first..last);
        self.ranges.insert(first, run);
        self.recall(run);
    }

    fn recall(&mut self, run: Range) {
        self.recent.retain(|&other| other < run.start || other >= run.end);
        self.recent.insert(0, run.start);
        self.recent.truncate(RECENT);
    }

    /// Takes out the piece at `next`, if the first one has been reached.
    pub fn pop(&mut self, next: u64) -> Option<B> {
        if self.pieces.front()?.0 != next {
            return None;
        }
        let (start, piece) = self.pieces.pop_front()?;
        let reached = end(start, &piece);
        self.octets -= u64::from(piece.len());
        match self.ranges.front_mut() {
            Some(range) if range.end <= reached => drop(self.ranges.pop_front()),
            Some(range) => range.start = reached,
            None => {}
        }
        if self.pieces.is_empty() {
            *self = Reassembly::new();
        }
        Some(piece)
    }

    /// Octets in all runs.
    pub fn octets(&self) -> u64 {
        self.octets
    }

    /// The end of the last run; zero without any.
    pub fn end(&self) -> u64 {
        self.ranges.back().map_or(0, |run| run.end)
    }

    /// The runs, as many as a segment tells of: the one that grew last first, then the ones before it (RFC 2018 §4).
    pub fn runs(&self) -> impl Iterator<Item = Range> + '_ {
        self.recent.iter().filter_map(|&start| self.run_of(start))
    }

    /// The run that `position` belongs to.
    pub fn run_of(&self, position: u64) -> Option<Range> {
        let index = self.ranges.partition_point(|range| range.end <= position);
        self.ranges.get(index).copied().filter(|range| range.start <= position)
    }
}

fn end<B: Payload>(start: u64, piece: &B) -> u64 {
    start + u64::from(piece.len())
}

fn cut(bytes: u64) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Extent;
    use proptest::prelude::*;

    fn put(into: &mut Reassembly<Extent>, start: u64, end: u64) -> bool {
        into.insert(start, Extent::new(start, (end - start) as u32))
    }

    /// The longest runs of what has been seen.
    fn runs_of(seen: &[bool]) -> Vec<Range> {
        let mut runs: Vec<Range> = Vec::new();
        for position in (0..seen.len() as u64).filter(|&position| seen[position as usize]) {
            match runs.last_mut().filter(|run| run.end == position) {
                Some(run) => run.end += 1,
                None => runs.push(Range { start: position, end: position + 1 }),
            }
        }
        runs
    }

    #[test]
    fn the_run_that_grew_last_is_named_first() {
        let mut held = Reassembly::new();
        for (start, end) in [(10, 20), (30, 40), (50, 60), (20, 25)] {
            assert!(put(&mut held, start, end));
        }
        let named: Vec<_> = held.runs().map(|range| (range.start, range.end)).collect();
        assert_eq!(named, [(10, 25), (50, 60), (30, 40)]);
        assert!(!put(&mut held, 12, 25));
        assert!(put(&mut held, 5, 70));
        assert_eq!(held.runs().next(), Some(Range { start: 5, end: 70 }));
        assert_eq!(held.pop(4), None);
        assert_eq!(held.pop(5), Some(Extent::new(5, 5)));
    }

    proptest! {
        #[test]
        fn whatever_comes_goes_out_once_and_in_order(
            pieces in prop::collection::vec((0..200u64, 1..60u64), 1..40),
        ) {
            let mut held = Reassembly::new();
            let mut seen = [false; 300];
            for (start, len) in pieces {
                let part = &mut seen[start as usize..(start + len) as usize];
                let fresh = part.contains(&false);
                part.fill(true);
                prop_assert_eq!(put(&mut held, start, start + len), fresh);
                prop_assert!(held.ranges.iter().copied().eq(runs_of(&seen)));
                let octets = seen.iter().filter(|&&seen| seen).count();
                prop_assert_eq!(held.octets(), octets as u64);
                if fresh {
                    // What came last may have filled several gaps of one run.
                    let last = held.runs().next().expect("there is one");
                    prop_assert!(last.start < start + len && start < last.end, "{:?}", last);
                }
                let named: Vec<Range> = held.runs().collect();
                let twice = |index: usize| named[..index].contains(&named[index]);
                prop_assert!(named.len() <= RECENT && !(0..named.len()).any(twice), "{:?}", named);
                for range in held.runs() {
                    let run = &seen[range.start as usize..range.end as usize];
                    prop_assert!(!run.contains(&false));
                }
            }
            let mut out = [false; 300];
            for start in 0..300u64 {
                while let Some(piece) = held.pop(start) {
                    prop_assert_eq!(piece.offset, start);
                    out[start as usize..piece.end() as usize].fill(true);
                }
            }
            prop_assert!(held.is_empty() && held.ranges.is_empty());
            prop_assert_eq!(out, seen);
        }
    }
}
