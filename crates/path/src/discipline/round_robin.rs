//! Datakit's per-channel queueing: a quantum from each active channel in turn.

use super::channels::{Channels, End, Turns};
use super::settings::settings;
use super::{Assumptions, Backlog, Chance, Discipline, Drops, QUANTA, Service, Settings, Sharing};
use crate::Limit;
use trunkline_core::{Metered, Time};

/// Bytes of each turn (Hawley 1989 §1.4).
const QUANTUM: u32 = 64;

settings! {
    /// Datakit: a quantum of bytes from each active channel in turn; a packet leaves when its last byte has (Hawley
    /// 1989 §1.2, §1.4).
    pub struct RoundRobinSettings {
        /// How much may wait in all; the longest channel gives way.
        limit: Limit;
        /// Bytes from one channel before the next has its turn.
        quantum: u32 as Bytes = QUANTUM, "the quantum in bytes" in QUANTA;
    }
}

impl Settings for RoundRobinSettings {
    type Queue<P: Metered> = RoundRobin<P>;

    const ALIASES: &'static [&'static str] = &["rr"];

    const TRIALS: &'static [&'static str] =
        &["quantum=64,limit=3kB", "quantum=700,limit=9p", "quantum=1,limit=60c"];

    fn build<P: Metered>(self, _chance: &Chance<'_>) -> RoundRobin<P> {
        RoundRobin::new(self.limit, self.quantum)
    }

    fn assumptions(&self) -> Assumptions {
        let sharing = Sharing::Rounds { quantum: self.quantum };
        Assumptions { sharing, cuts: Some(self.quantum), ..Assumptions::FIFO }
    }
}

/// Round robin by bytes (Hawley 1989 §1.2): a queue for each channel, and a quantum of bytes from each
/// active channel in turn.
///
/// A piece holds bytes of one packet. A packet that ends before the quantum is used up leaves the rest
/// of it to the next packet of its channel, in the same turn; the pieces then follow each other and a
/// T1 framer puts them into one frame. A channel that becomes active joins the end of the circle, so
/// that nobody waits for more than one quantum of each other active channel between two turns.
///
/// When the whole is over its limit the last packet of the longest channel is dropped, if it has not been
/// partly sent, else the arriving one. "Longest" is within 5.9 % of the longest in bytes.
#[derive(Debug)]
pub struct RoundRobin<P> {
    channels: Channels<P, Turn>,
    quantum: u32,
}

/// What is left of the quantum of the channel whose turn it is; 0 for a channel that waits.
#[derive(Debug, Default)]
struct Turn {
    left: u32,
}

impl<P: Metered> RoundRobin<P> {
    /// An empty round robin that holds at most `limit` in all. A quantum of 0 bytes counts as 1.
    pub fn new(limit: Limit, quantum: u32) -> RoundRobin<P> {
        RoundRobin { channels: Channels::new(limit, false), quantum: quantum.max(1) }
    }
}

impl<P: Metered> Discipline<P> for RoundRobin<P> {
    fn enqueue(&mut self, now: Time, packet: P, drops: &mut Drops<P>) {
        let key = packet.channel();
        self.channels.enqueue(now, key, packet, End::Tail, drops, |_| ());
    }

    fn dequeue(&mut self, _now: Time, _drops: &mut Drops<P>) -> Option<Service<P>> {
        let id = self.channels.first(Turns::First)?;
        let left = match self.channels.state(id).left {
            0 => self.quantum,
            left => left,
        };
        let piece = self.channels.cut(id, left)?;
        self.channels.release(&piece);
        self.channels.state(id).left = left - piece.bytes;
        if self.channels.is_idle(id) {
            self.channels.forget(id);
        } else if piece.bytes == left {
            self.channels.list(id, Turns::First);
        }
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
        self.channels.first(Turns::First).is_some_and(|id| self.channels.look(id).left > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trunkline_core::{Channel, DropCause, Packet};

    type P = Packet<()>;

    fn packet(channel: u64, size: u32) -> P {
        Packet { controls: 2, ..Packet::new(Channel(channel), size, Time::ZERO, ()) }
    }

    fn filled(limit: Limit, packets: &[(u64, u32)]) -> (RoundRobin<P>, Drops<P>) {
        let (mut queue, mut drops) = (RoundRobin::new(limit, 64), Drops::default());
        for &(channel, size) in packets {
            queue.enqueue(Time::ZERO, packet(channel, size), &mut drops);
        }
        (queue, drops)
    }

    fn next(queue: &mut RoundRobin<P>) -> Option<(u64, u32, u32, bool)> {
        let piece = queue.dequeue(Time::ZERO, &mut Drops::default())?;
        Some((piece.channel.0, piece.bytes, piece.controls, piece.packet.is_some()))
    }

    #[test]
    fn quanta_go_round_and_a_short_packet_leaves_the_rest_to_the_next() {
        let (mut queue, _) = filled(Limit::Bytes(1000), &[(1, 150), (2, 20), (2, 60), (3, 64)]);
        let served: Vec<_> = std::iter::from_fn(|| next(&mut queue)).collect();
        let expected = [
            (1, 64, 0, false),
            (2, 20, 2, true),
            (2, 44, 0, false),
            (3, 64, 2, true),
            (1, 64, 0, false),
            (2, 16, 2, true),
            (1, 22, 2, true),
        ];
        assert_eq!(served, expected);
        assert_eq!(queue.backlog(), Backlog::default());
    }

    #[test]
    fn the_longest_channel_gives_way_but_never_a_packet_partly_sent() {
        let (mut queue, mut drops) = filled(Limit::Bytes(400), &[(1, 150), (1, 150), (2, 90)]);
        queue.enqueue(Time::ZERO, packet(2, 100), &mut drops);
        let dropped: Vec<_> =
            drops.drain().map(|(p, cause)| (p.channel.0, p.size, cause)).collect();
        assert_eq!(dropped, [(1, 150, DropCause::QueueLimit)], "300 bytes against 190");
        assert_eq!(queue.backlog(), Backlog { packets: 3, bytes: 340 });

        let (mut queue, mut drops) = filled(Limit::Bytes(400), &[(1, 390)]);
        assert_eq!(next(&mut queue), Some((1, 64, 0, false)));
        queue.enqueue(Time::ZERO, packet(2, 100), &mut drops);
        let dropped: Vec<_> = drops.drain().map(|(p, _)| p.channel.0).collect();
        assert_eq!(dropped, [2], "326 + 100 bytes do not fit and the longest is on its way");
    }

    #[test]
    fn an_empty_queue_takes_any_packet_and_a_lower_limit_leaves_what_waits() {
        let (mut queue, mut drops) = filled(Limit::Bytes(100), &[(1, 5000)]);
        assert_eq!(queue.backlog().bytes, 5000);
        queue.enqueue(Time::ZERO, packet(1, 40), &mut drops);
        assert_eq!((queue.backlog().packets, drops.len()), (1, 1));

        let (mut queue, mut drops) = filled(Limit::Packets(9), &[(1, 50), (1, 50), (2, 50)]);
        queue.set_limit(Limit::Packets(1));
        assert!(drops.is_empty());
        queue.enqueue(Time::ZERO, packet(3, 10), &mut drops);
        assert_eq!((queue.backlog().packets, drops.len()), (3, 1), "one comes, one goes");
    }
}
