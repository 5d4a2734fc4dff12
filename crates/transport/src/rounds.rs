//! Rounds: what a sender could send of a message before it had to wait for an answer.

use crate::Extent;
use std::collections::BTreeMap;

/// Counts the bytes of each round of the first message of each size.
#[derive(Debug, Default)]
pub struct Rounds {
    /// The position in the stream at which the round began.
    from: u64,
    /// By size, in ascending order.
    of: Vec<(u32, Vec<u32>)>,
    /// The message being counted: its size and the position at which it began.
    counting: Option<(u32, u64)>,
}

impl Rounds {
    /// None yet.
    pub const NONE: Rounds = Rounds { from: 0, of: Vec::new(), counting: None };

    /// A write of `bytes` begins at `place` of the stream: it is counted if it is the first of its size.
    pub fn begin(&mut self, bytes: u32, place: u64) {
        if bytes == 0 || self.counting.is_some() {
            return;
        }
        if let Err(at) = self.place_of(bytes) {
            if self.of.is_empty() {
                // Many a flow writes one size only.
                self.of.reserve_exact(1);
            }
            self.of.insert(at, (bytes, Vec::new()));
            self.counting = Some((bytes, place));
        }
    }

    /// Data go out for the first time, when everything up to `answered` has been answered for. A round
    /// ends when the answer to its first block has come. A segment may hold parts of other messages too,
    /// which do not count.
    pub fn count(&mut self, data: Extent, answered: u64) {
        let Some((size, begin)) = self.counting else { return };
        let end = begin + u64::from(size);
        let (from, to) = (data.offset.max(begin), data.end().min(end));
        if from >= to {
            return;
        }
        let Ok(at) = self.place_of(size) else { return };
        let (_, rounds) = &mut self.of[at];
        if rounds.is_empty() || answered > self.from {
            self.from = from;
            rounds.push(0);
        }
        if let Some(round) = rounds.last_mut() {
            *round += (to - from) as u32;
        }
        self.counting = self.counting.filter(|_| to < end);
    }

    /// The rounds of each size whose message has been sent whole.
    pub fn whole(&self) -> BTreeMap<u32, Vec<u32>> {
        let unfinished = self.counting.map(|(size, _)| size);
        self.of.iter().filter(|(size, _)| Some(*size) != unfinished).cloned().collect()
    }

    /// The place of a size, or the place that it would have.
    fn place_of(&self, size: u32) -> Result<usize, usize> {
        self.of.binary_search_by_key(&size, |(size, _)| *size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Vande Water 1988 §3.7.2: 1024 bytes through a window of 756 go as 756 and 268.
    #[test]
    fn a_round_ends_with_an_answer() {
        let mut rounds = Rounds::default();
        rounds.begin(1024, 100);
        for offset in [100, 352, 604] {
            rounds.count(Extent::new(offset, 252), 100);
        }
        rounds.begin(7, 2000);
        assert!(rounds.whole().is_empty(), "the message is not sent yet");
        rounds.count(Extent::new(856, 252), 352);
        rounds.count(Extent::new(1108, 16), 604);
        rounds.count(Extent::new(1124, 50), 1124);
        assert_eq!(rounds.whole(), BTreeMap::from([(1024, vec![756, 268])]));
    }

    #[test]
    fn a_segment_of_several_messages_counts_for_each_its_part() {
        let mut rounds = Rounds::default();
        rounds.begin(100, 50);
        rounds.count(Extent::new(0, 80), 0);
        rounds.count(Extent::new(80, 80), 80);
        assert_eq!(rounds.whole(), BTreeMap::from([(100, vec![30, 70])]));
    }
}
