//! Queue disciplines: who is served next, and who is turned away.

mod assumptions;
mod channels;
mod codel;
mod drr;
mod dualpi2;
mod epd;
mod fifo;
mod fq_codel;
mod gather;
mod links;
mod list;
mod longest;
mod packets;
mod pi;
mod pie;
mod priority;
mod red;
mod round_robin;
pub(crate) mod settings;
mod sfq;
mod spec;
mod tally;
mod text;
mod token_bucket;
mod two_lists;
mod waiting;

pub use assumptions::{Assumptions, Sharing, Standing};
pub use dualpi2::DualScheduler;
pub use pi::Gain;
pub use settings::{Chance, FLAG, Key, Keys, Limited, Settings};

pub use spec::{DisciplineKind, help};
pub use text::DisciplineTextError;
pub use two_lists::Sparse;

use crate::{Limit, Piece};
use list::disciplines;
use std::ops::RangeInclusive;
use trunkline_core::{Channel, DropCause, Ecn, Hosts, Metered, Seed, Span, Time};

// A discipline is its file, its `mod` above and its line here: its name, and its file's queue and settings.
disciplines! {
    "fifo" => fifo::{Fifo, FifoSettings},
    "round-robin" => round_robin::{RoundRobin, RoundRobinSettings},
    "two-lists" => two_lists::{TwoLists, TwoListsSettings},
    "drr" => drr::{Drr, DrrSettings},
    "priority" => priority::{Priority, PrioritySettings},
    "codel" => codel::{Codel, CodelSettings},
    "fq-codel" => fq_codel::{FqCodel, FqCodelSettings},
    "epd" => epd::{Epd, EpdSettings},
    "pie" => pie::{Pie, PieSettings},
    "dualpi2" => dualpi2::{DualPi2, DualPi2Settings},
    "sfq" => sfq::{Sfq, SfqSettings},
    "red" => red::{Red, RedSettings},
    "token-bucket" => token_bucket::{TokenBucket, TokenBucketSettings},
    "gather" => gather::{Gather, GatherSettings},
}

/// Bytes of each turn for disciplines that serve whole packets: an Ethernet frame of the largest size (RFC 8290
/// §5.2.4).
const PACKET_QUANTUM: u32 = 1514;
/// Bytes of one turn.
const QUANTA: RangeInclusive<u32> = 1..=1 << 20;
/// Delays that a controller may aim at.
const TARGETS: RangeInclusive<Span> = Span::from_nanos(1)..=TEN_SECONDS;
/// The longest delay that a controller compares with.
const TEN_SECONDS: Span = Span::from_secs(10);
/// The largest IP packet on Ethernet (RFC 8289 §5.3 asks for the interface's).
const MTU: u32 = 1500;

/// A queue in front of a line.
///
/// A discipline owns what waits. It is told the time, never reads it, and is O(1) for each packet
/// however many channels are active. Whatever it gives up, on arrival or later, it hands to `drops`,
/// so that nothing is lost in silence.
pub trait Discipline<P: Metered> {
    /// Takes `packet` in, or drops it or others into `drops`.
    fn enqueue(&mut self, now: Time, packet: P, drops: &mut Drops<P>);

    /// What the line sends next: a whole packet, or a quantum of one. `None` when nothing waits, or nothing any more
    /// because it was all given up, and from a discipline that [`holds`](Discipline::holds) before its time.
    fn dequeue(&mut self, now: Time, drops: &mut Drops<P>) -> Option<Service<P>>;

    /// What waits now.
    fn backlog(&self) -> Backlog;

    /// Changes the limit. What waits already stays; only later arrivals meet the new limit.
    fn set_limit(&mut self, limit: Limit);

    /// Whether it ever holds back what waits although the line asks for it. Only then is
    /// [`next_ready`](Discipline::next_ready) asked for.
    fn holds(&self) -> bool {
        false
    }

    /// When [`dequeue`](Discipline::dequeue), which gave nothing although something waits, will give something.
    /// `None` if nothing waits.
    fn next_ready(&self) -> Option<Time> {
        None
    }

    /// Learns which hosts the packets of `channel` go between. Only a discipline that tells hosts apart listens.
    fn introduce(&mut self, _channel: Channel, _hosts: Hosts) {}

    /// The most bytes of one turn, if a discipline serves quanta of packets. `None` if it serves whole
    /// packets.
    fn quantum(&self) -> Option<u32> {
        None
    }

    /// Whether the next piece belongs to the same turn as the last one.
    fn mid_turn(&self) -> bool {
        false
    }
}

/// A piece of service: the bytes that go onto the line next, and the packet that they complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Service<P> {
    /// Whose bytes they are.
    pub channel: Channel,
    /// User bytes in this piece.
    pub bytes: u32,
    /// Control envelopes among them (each costs a stuff byte on a T1 trunk).
    pub controls: u32,
    /// The packet whose last byte is in this piece. `None` for an earlier quantum, and for the
    /// cells of a packet whose tail was discarded.
    pub packet: Option<P>,
}

impl<P: Metered> Service<P> {
    /// The whole of `packet` in one piece.
    pub fn whole(packet: P) -> Service<P> {
        Service {
            channel: packet.channel(),
            bytes: packet.size(),
            controls: packet.controls(),
            packet: Some(packet),
        }
    }
}

impl<P> Service<P> {
    /// What a framer needs to know of it.
    #[inline]
    pub(crate) fn piece(&self) -> Piece {
        Piece {
            channel: self.channel,
            bytes: self.bytes,
            controls: self.controls,
            last: self.packet.is_some(),
        }
    }
}

/// What waits in a discipline. Partly served packets count with the bytes that they still have to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Backlog {
    /// Packets.
    pub packets: u64,
    /// User bytes.
    pub bytes: u64,
}

/// What a discipline does against congestion: packets given up, each with its cause, and how many were
/// marked. Reused by the caller, so that the packet's way allocates nothing.
#[derive(Debug)]
pub struct Drops<P> {
    given_up: GivenUp<P>,
    marked: u64,
}

/// Packets given up, oldest first. A plain link needs no more than that.
pub(crate) type GivenUp<P> = Vec<(P, DropCause)>;

impl<P> Default for Drops<P> {
    fn default() -> Drops<P> {
        Drops { given_up: Vec::new(), marked: 0 }
    }
}

impl<P: Metered> Drops<P> {
    /// Marks `packet`, which goes on, if that [can take it](trunkline_core::Ecn::is_capable). Returns whether it is
    /// marked now. One that was marked before it came here is not counted again.
    #[inline]
    pub fn mark(&mut self, packet: &mut P) -> bool {
        match packet.ecn() {
            Ecn::NotEct => return false,
            Ecn::Ce => {}
            Ecn::Ect0 | Ecn::Ect1 => {
                packet.mark();
                self.marked += 1;
            }
        }
        true
    }

    /// Marks `packet` if that can take it and `may_mark`, else gives it up. The packet, if it goes on.
    #[inline]
    pub fn mark_or_drop(&mut self, mut packet: P, may_mark: bool, cause: DropCause) -> Option<P> {
        if may_mark && self.mark(&mut packet) {
            return Some(packet);
        }
        self.push(packet, cause);
        None
    }
}

impl<P> Drops<P> {
    /// Gives `packet` up.
    pub fn push(&mut self, packet: P, cause: DropCause) {
        self.given_up.push((packet, cause));
    }
    /// Takes everything out, oldest first.
    pub fn drain(&mut self) -> impl Iterator<Item = (P, DropCause)> + '_ {
        self.given_up.drain(..)
    }
    /// What was given up.
    pub(crate) fn given_up(&mut self) -> &mut GivenUp<P> {
        &mut self.given_up
    }
    /// How many wait to be taken out.
    pub fn len(&self) -> usize {
        self.given_up.len()
    }
    /// Whether nothing was given up.
    pub fn is_empty(&self) -> bool {
        self.given_up.is_empty()
    }
    /// How many packets have been marked so far.
    pub fn marked(&self) -> u64 {
        self.marked
    }
}

impl<P: Metered> Discipline<P> for AnyDiscipline<P> {
    #[inline(always)]
    fn enqueue(&mut self, now: Time, packet: P, drops: &mut Drops<P>) {
        each!(self, it => it.enqueue(now, packet, drops))
    }
    #[inline(always)]
    fn dequeue(&mut self, now: Time, drops: &mut Drops<P>) -> Option<Service<P>> {
        each!(self, it => it.dequeue(now, drops))
    }
    fn backlog(&self) -> Backlog {
        each!(self, it => it.backlog())
    }
    fn set_limit(&mut self, limit: Limit) {
        each!(self, it => it.set_limit(limit));
    }
    fn holds(&self) -> bool {
        each!(self, it => it.holds())
    }
    fn next_ready(&self) -> Option<Time> {
        each!(self, it => it.next_ready())
    }
    fn introduce(&mut self, channel: Channel, hosts: Hosts) {
        each!(self, it => it.introduce(channel, hosts));
    }
    fn quantum(&self) -> Option<u32> {
        each!(self, it => it.quantum())
    }
    fn mid_turn(&self) -> bool {
        each!(self, it => it.mid_turn())
    }
}
