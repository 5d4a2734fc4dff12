//! Queue disciplines: who is served next, and who is turned away.

mod channels;
mod codel;
mod drr;
mod dualpi2;
mod epd;
mod fifo;
mod fq_codel;
mod links;
mod longest;
mod packets;
mod pi;
mod pie;
mod priority;
mod round_robin;
mod sfq;
mod spec;
mod tally;
mod text;
mod two_lists;

pub use codel::{Codel, CodelSettings};
pub use drr::Drr;
pub use dualpi2::{DualPi2, DualPi2Settings, DualScheduler};
pub use epd::Epd;
pub use fifo::Fifo;
pub use fq_codel::{FqCodel, FqCodelSettings};
pub use pi::Gain;
pub use pie::{Pie, PieSettings};
pub use priority::Priority;
pub use round_robin::RoundRobin;
pub use sfq::{Sfq, SfqSettings};
pub use spec::{DisciplineSpec, Sparse};
pub use text::DisciplineTextError;
pub use two_lists::TwoLists;

use crate::{Limit, Piece};
use trunkline_core::{Channel, DropCause, Ecn, Metered, Seed, Time};

/// A queue in front of a line.
///
/// A discipline owns what waits. It is told the time, never reads it, and is O(1) for each packet
/// however many channels are active. Whatever it gives up, on arrival or later, it hands to `drops`,
/// so that nothing is lost in silence.
pub trait Discipline<P: Metered> {
    /// Takes `packet` in, or drops it or others into `drops`.
    fn enqueue(&mut self, now: Time, packet: P, drops: &mut Drops<P>);

    /// What the line sends next: a whole packet, or a quantum of one. `None` when nothing waits.
    fn dequeue(&mut self, now: Time, drops: &mut Drops<P>) -> Option<Service<P>>;

    /// What waits now.
    fn backlog(&self) -> Backlog;

    /// Changes the limit. What waits already stays; only later arrivals meet the new limit.
    fn set_limit(&mut self, limit: Limit);

    /// The most bytes of one turn, where a discipline serves quanta of packets. `None` where it serves whole
    /// packets.
    fn quantum(&self) -> Option<u32> {
        None
    }

    /// Does the next piece belong to the same turn as the last one?
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
    /// Marks `packet`, which goes on, if that [can take it](trunkline_core::Ecn::is_capable); is it marked
    /// now? One that was marked before it came here is not counted again.
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
    /// Was nothing given up?
    pub fn is_empty(&self) -> bool {
        self.given_up.is_empty()
    }
    /// How many packets have been marked so far.
    pub fn marked(&self) -> u64 {
        self.marked
    }
}

/// Every discipline there is, chosen when the path is described and dispatched without boxing.
#[derive(Debug)]
pub enum AnyDiscipline<P> {
    /// First in, first out.
    Fifo(Fifo<P>),
    /// A quantum from each active channel in turn.
    RoundRobin(RoundRobin<P>),
    /// Newly active channels first.
    TwoLists(TwoLists<P>),
    /// Whole packets, fair in bytes.
    Drr(Drr<P>),
    /// Strict priority by band.
    Priority(Priority<P>),
    /// Controlled delay.
    Codel(Codel<P>),
    /// Flow queueing with controlled delay.
    FqCodel(FqCodel<P>),
    /// ATM early packet discard.
    Epd(Epd<P>),
    /// Proportional integral controller enhanced.
    Pie(Pie<P>),
    /// Two coupled queues.
    DualPi2(DualPi2<P>),
    /// Stochastic fair queueing.
    Sfq(Sfq<P>),
}

macro_rules! each {
    ($any:expr, $it:ident => $body:expr) => {
        match $any {
            AnyDiscipline::Fifo($it) => $body,
            AnyDiscipline::RoundRobin($it) => $body,
            AnyDiscipline::TwoLists($it) => $body,
            AnyDiscipline::Drr($it) => $body,
            AnyDiscipline::Priority($it) => $body,
            AnyDiscipline::Codel($it) => $body,
            AnyDiscipline::FqCodel($it) => $body,
            AnyDiscipline::Epd($it) => $body,
            AnyDiscipline::Pie($it) => $body,
            AnyDiscipline::DualPi2($it) => $body,
            AnyDiscipline::Sfq($it) => $body,
        }
    };
}

impl<P: Metered> AnyDiscipline<P> {
    /// The discipline that `spec` describes. What it leaves to chance comes from the stream of `seed` for the
    /// queue of the link called `name`.
    pub fn new(spec: &DisciplineSpec, seed: Seed, name: &str) -> AnyDiscipline<P> {
        let stream = || seed.stream(&format!("{name}/queue"));
        match *spec {
            DisciplineSpec::Fifo { limit } => AnyDiscipline::Fifo(Fifo::new(limit)),
            DisciplineSpec::RoundRobin { limit, quantum } => {
                AnyDiscipline::RoundRobin(RoundRobin::new(limit, quantum))
            }
            DisciplineSpec::TwoLists { limit, quantum, frame, sparse } => {
                AnyDiscipline::TwoLists(TwoLists::new(limit, quantum, frame, sparse))
            }
            DisciplineSpec::Drr { limit, quantum } => AnyDiscipline::Drr(Drr::new(limit, quantum)),
            DisciplineSpec::Priority { limit, bands } => {
                AnyDiscipline::Priority(Priority::new(limit, bands))
            }
            DisciplineSpec::Codel { limit, target, interval, mtu, ecn, ce_threshold } => {
                let settings = CodelSettings { limit, target, interval, mtu, ecn, ce_threshold };
                AnyDiscipline::Codel(Codel::new(settings))
            }
            DisciplineSpec::FqCodel {
                limit,
                flows,
                quantum,
                target,
                interval,
                mtu,
                ecn,
                ce_threshold,
            } => AnyDiscipline::FqCodel(FqCodel::new(FqCodelSettings {
                limit,
                flows,
                quantum,
                target,
                interval,
                mtu,
                ecn,
                ce_threshold,
            })),
            DisciplineSpec::Epd { threshold, limit } => {
                AnyDiscipline::Epd(Epd::new(threshold, limit))
            }
            DisciplineSpec::Pie(settings) => AnyDiscipline::Pie(Pie::new(settings, stream())),
            DisciplineSpec::DualPi2(settings) => {
                AnyDiscipline::DualPi2(DualPi2::new(settings, stream()))
            }
            DisciplineSpec::Sfq(settings) => AnyDiscipline::Sfq(Sfq::new(settings, stream())),
        }
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
    fn quantum(&self) -> Option<u32> {
        each!(self, it => it.quantum())
    }
    fn mid_turn(&self) -> bool {
        each!(self, it => it.mid_turn())
    }
}
