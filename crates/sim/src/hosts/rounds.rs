//! Rounds: what a sender could send of a message before it had to wait for an answer.

use std::collections::BTreeMap;
use trunkline_transport::Extent;
use trunkline_transport::urp::Block;

/// Counts the bytes of each round of the first message of each size.
#[derive(Debug, Default)]
pub(crate) struct Rounds {
    /// Where the round began in the stream.
    from: u64,
    of: BTreeMap<u32, Vec<u32>>,
    /// The message being counted: its size and where it began.
    counting: Option<(u32, u64)>,
}

impl Rounds {
    /// A write of `bytes` begins at `place` of the stream: it is counted if it is the first of its size.
    pub fn begin(&mut self, bytes: u32, place: u64) {
        if bytes > 0 && self.counting.is_none() && !self.of.contains_key(&bytes) {
            self.of.insert(bytes, Vec::new());
            self.counting = Some((bytes, place));
        }
    }

    /// A block goes out for the first time, when everything up to `answered` has been answered for. A round
    /// ends when the answer to its first block has come.
    pub fn count(&mut self, block: &Block<Extent>, answered: u64) {
        let Extent { offset: from, len } = block.data;
        let Some((size, _)) = self.counting.filter(|&(_, begin)| from >= begin) else { return };
        let Some(rounds) = self.of.get_mut(&size) else { return };
        if rounds.is_empty() || answered > self.from {
            self.from = from;
            rounds.push(0);
        }
        if let Some(round) = rounds.last_mut() {
            *round += len;
        }
        self.counting =
            self.counting.filter(|&(size, begin)| block.data.end() < begin + u64::from(size));
    }

    /// The rounds of each size whose message has been sent whole.
    pub fn whole(&self) -> BTreeMap<u32, Vec<u32>> {
        let unfinished = self.counting.map(|(size, _)| size);
        let whole = self.of.iter().filter(|&(&size, _)| Some(size) != unfinished);
        whole.map(|(&size, rounds)| (size, rounds.clone())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trunkline_core::Time;
    use trunkline_transport::urp::{Kind, Seq};

    fn block(offset: u64, len: u32) -> Block<Extent> {
        Block {
            data: Extent::new(offset, len),
            user: None,
            seq: Seq::FIRST,
            kind: Kind::Bot,
            crc: None,
            eligible: Time::ZERO,
            first_sent: None,
        }
    }

    /// Vande Water 1988 §3.7.2: 1024 bytes through a window of 756 go as 756 and 268.
    #[test]
    fn a_round_ends_with_an_answer() {
        let mut rounds = Rounds::default();
        rounds.begin(1024, 100);
        for offset in [100, 352, 604] {
            rounds.count(&block(offset, 252), 100);
        }
        rounds.begin(7, 2000);
        assert!(rounds.whole().is_empty(), "the message is not sent yet");
        rounds.count(&block(856, 252), 352);
        rounds.count(&block(1108, 16), 604);
        rounds.count(&block(1124, 50), 1124);
        assert_eq!(rounds.whole(), BTreeMap::from([(1024, vec![756, 268])]));
    }
}
