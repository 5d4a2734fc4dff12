//! Fraser's two lists of channels: newly active ones first.

use super::channels::{Channels, End, Turns};
use super::settings::{choice, settings};
use super::{Assumptions, Backlog, Chance, Discipline, Drops, QUANTA, Service, Settings};
use crate::Limit;
use std::collections::VecDeque;
use trunkline_core::{Channel, Metered, Time};

/// Bytes of each turn, as of round robin; the patent's abstract gives no figure.
const QUANTUM: u32 = 64;
/// Bytes of a frame: the most data of a Datakit trunk frame (Hawley 1989 §2.1); the patent's abstract gives no
/// figure.
const FRAME: u32 = 256;

settings! {
    /// Newly active channels first (Fraser, US patent 4,583,219; its abstract gives no figures, these are ours).
    pub struct TwoListsSettings {
        /// How much may wait in all; the longest channel gives way.
        limit: Limit;
        /// Bytes from one channel before the next has its turn.
        quantum: u32 as Bytes = QUANTUM, "the quantum in bytes" in QUANTA;
        /// Bytes of one frame, which new channels fill before an old one opens the next.
        frame: u32 as Bytes = FRAME, "the frame in bytes" in QUANTA;
        /// Whether an emptied channel still takes its turn in the low list.
        sparse: Sparse = Sparse::ViaLow;
    }
}

choice! {
    /// What the two-lists discipline does with a channel that has been emptied.
    pub enum Sparse {
        /// It leaves the lists at once.
        Leave = "leave",
        /// It takes one more turn in the low list (the rule of FQ-CoDel against starvation).
        ViaLow = "via-low",
    }
}

impl Settings for TwoListsSettings {
    type Queue<P: Metered> = TwoLists<P>;

    const TRIALS: &'static [&'static str] = &[
        "quantum=64,frame=256,sparse=leave,limit=3kB",
        "quantum=100,frame=150,sparse=via-low,limit=9p",
    ];

    fn build<P: Metered>(self, _chance: &Chance<'_>) -> TwoLists<P> {
        TwoLists::new(self.limit, self.quantum, self.frame, self.sparse)
    }

    fn assumptions(&self) -> Assumptions {
        Assumptions { cuts: Some(self.quantum), ..Assumptions::turns(self.quantum) }
    }
}

/// Two lists of channels (US patent 4,583,219): a newly active channel joins the high list; after one
/// quantum it goes to the end of the low list.
///
/// Service is by frames, each built at one instant. A frame starts with the first channel of the low
/// list if the high list is empty, and is then filled from the high list, a quantum for each channel,
/// until it has its number of bytes or the high list is empty. What a channel receives after its part
/// has gone into a frame waits for another turn. That is all that the frame's size decides: turns go to the
/// high list first whatever it is.
///
/// The patent's frames mix channels. Each channel's part of a frame goes out as pieces of its own, each with bytes of
/// one packet: the framing `t1-mixed` puts them into one frame, `t1-lapd`, whose frames hold one channel, one by one.
///
/// When the whole is over its limit the last packet of the longest channel is dropped, if nothing of it
/// is in a frame yet, else the arriving one. "Longest" is within 5.9 % of the longest in bytes.
#[derive(Debug)]
pub struct TwoLists<P> {
    channels: Channels<P, ()>,
    quantum: u32,
    frame_bytes: u32,
    sparse: Sparse,
    frame: VecDeque<Service<P>>,
    /// Whose piece was served last.
    served: Option<Channel>,
}

/// The list of newly active channels.
const HIGH: Turns = Turns::First;
/// The list of those that have had a quantum.
const LOW: Turns = Turns::Second;

impl<P: Metered> TwoLists<P> {
    /// Empty lists that hold at most `limit` in all, with `quantum` bytes for each turn and frames of
    /// `frame` bytes. A quantum or frame of 0 bytes counts as 1.
    pub fn new(limit: Limit, quantum: u32, frame: u32, sparse: Sparse) -> TwoLists<P> {
        TwoLists {
            channels: Channels::new(limit, sparse == Sparse::ViaLow),
            quantum: quantum.max(1),
            served: None,
            frame_bytes: frame.max(1),
            sparse,
            frame: VecDeque::new(),
        }
    }

    /// Builds the next frame. It stays empty if the channels at the heads of the lists are idle.
    fn build(&mut self) {
        let mut length = 0;
        if self.channels.first(HIGH).is_none()
            && let Some(id) = self.channels.first(LOW)
        {
            if self.channels.is_idle(id) {
                return self.channels.forget(id);
            }
            length += self.serve(id);
        }
        while length < self.frame_bytes
            && let Some(id) = self.channels.first(HIGH)
        {
            length += self.serve(id);
        }
    }

    /// Moves a quantum of channel `id` into the frame and the channel to its next list. Answers with
    /// the number of bytes moved.
    fn serve(&mut self, id: u32) -> u32 {
        let mut left = self.quantum;
        while left > 0
            && let Some(piece) = self.channels.cut(id, left)
        {
            left -= piece.bytes;
            self.frame.push_back(piece);
        }
        if self.channels.is_idle(id) && self.sparse == Sparse::Leave {
            self.channels.forget(id);
        } else {
            self.channels.list(id, LOW);
        }
        self.quantum - left
    }
}

impl<P: Metered> Discipline<P> for TwoLists<P> {
    fn enqueue(&mut self, now: Time, packet: P, drops: &mut Drops<P>) {
        let key = packet.channel();
        self.channels.enqueue(now, key, packet, End::Tail, drops, |()| ());
    }

    fn dequeue(&mut self, _now: Time, _drops: &mut Drops<P>) -> Option<Service<P>> {
        while self.frame.is_empty() && self.channels.any_listed() {
            self.build();
        }
        let piece = self.frame.pop_front()?;
        self.channels.release(&piece);
        self.served = Some(piece.channel);
        Some(piece)
    }

    fn backlog(&self) -> Backlog {
        self.channels.backlog()
    }

    fn set_limit(&mut self, limit: Limit) {
        self.channels.set_limit(limit);
    }

    fn quantum(&self) -> Option<u32> {
        Some(self.quantum)
    }

    fn mid_turn(&self) -> bool {
        // A channel has one turn in a frame at most.
        self.frame.front().is_some_and(|piece| self.served == Some(piece.channel))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trunkline_core::{Channel, Packet};

    type P = Packet<()>;

    fn put(lists: &mut TwoLists<P>, channel: u64, size: u32) {
        let packet = Packet::new(Channel(channel), size, Time::ZERO, ());
        lists.enqueue(Time::ZERO, packet, &mut Drops::default());
    }

    fn next(lists: &mut TwoLists<P>) -> Option<(u64, u32)> {
        lists.dequeue(Time::ZERO, &mut Drops::default()).map(|piece| (piece.channel.0, piece.bytes))
    }

    fn rest(lists: &mut TwoLists<P>) -> Vec<(u64, u32)> {
        std::iter::from_fn(|| next(lists)).collect()
    }

    #[test]
    fn a_new_channel_overtakes_old_ones_at_the_next_frame() {
        let mut lists = TwoLists::new(Limit::Bytes(1 << 20), 64, 256, Sparse::Leave);
        put(&mut lists, 1, 200);
        put(&mut lists, 2, 200);
        // The first frame takes both from the high list; each then waits in the low list.
        assert_eq!((next(&mut lists), next(&mut lists)), (Some((1, 64)), Some((2, 64))));
        put(&mut lists, 3, 10);
        put(&mut lists, 4, 70);
        let expected =
            [(3, 10), (4, 64), (1, 64), (2, 64), (4, 6), (1, 64), (2, 64), (1, 8), (2, 8)];
        assert_eq!(rest(&mut lists), expected);
    }

    #[test]
    fn what_comes_while_a_frame_is_sent_waits_for_the_next() {
        let mut lists = TwoLists::new(Limit::Bytes(1 << 20), 64, 128, Sparse::Leave);
        for channel in 1..=3 {
            put(&mut lists, channel, 64);
        }
        assert_eq!(next(&mut lists), Some((1, 64)));
        put(&mut lists, 4, 20);
        put(&mut lists, 4, 20);
        assert_eq!(rest(&mut lists), [(2, 64), (3, 64), (4, 20), (4, 20)]);
    }

    #[test]
    fn what_has_no_place_in_a_full_frame_can_still_grow() {
        let mut lists = TwoLists::new(Limit::Bytes(1 << 20), 64, 64, Sparse::Leave);
        put(&mut lists, 1, 64);
        put(&mut lists, 2, 10);
        // Channel 1 fills the frame exactly: channel 2 is not in it, and takes 20 bytes more along.
        assert_eq!(next(&mut lists), Some((1, 64)));
        put(&mut lists, 3, 5);
        put(&mut lists, 2, 20);
        assert_eq!(rest(&mut lists), [(2, 10), (2, 20), (3, 5)]);
    }

    #[test]
    fn an_emptied_channel_that_takes_its_low_turn_cannot_starve_the_others() {
        let served = |sparse| {
            let mut lists = TwoLists::new(Limit::Bytes(1 << 20), 64, 64, sparse);
            put(&mut lists, 1, 200);
            assert_eq!(next(&mut lists), Some((1, 64)));
            // Channel 2 sends just what it is served, again and again.
            (0..4)
                .filter_map(|_| {
                    put(&mut lists, 2, 64);
                    next(&mut lists)
                })
                .map(|(channel, _)| channel)
                .collect::<Vec<_>>()
        };
        assert_eq!(served(Sparse::Leave), [2, 2, 2, 2]);
        assert_eq!(served(Sparse::ViaLow), [2, 1, 2, 1]);
    }
}
