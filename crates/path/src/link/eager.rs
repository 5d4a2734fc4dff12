//! A plain link, which knows at a packet's arrival when it departs.

use super::Delivered;
use super::rides::{Ride, Rides};
use super::staged::{Inherited, Staged};
use crate::impairment::Achieved;
use crate::line::{Line, Mark, Wire};
use crate::{Backlog, BlockQueue, DisciplineSpec, Drops, Limit, LinkSpec, Piece, Service};
use std::collections::VecDeque;
use trunkline_core::{Carried, Counts, DropCause, Metered, Seed, Span, Time};

/// A link of a first-in-first-out queue and a line, with nothing that changes or impairs it.
///
/// What waits and what is under way lie in one ring. Which of them have left the line matters only when
/// somebody asks, and when the ring holds so much that an arrival might find no room: only then the
/// departures that have passed are counted, each once ([`Left`]). All else that a packet costs is a place in
/// the ring, the time of its bits, and four sums. What is used seldom is boxed, so that the rest of a link
/// takes few cache lines.
#[derive(Debug)]
pub(super) struct Eager<P> {
    rides: Rides<P>,
    limit: Limit,
    /// What departs until then has left.
    known: Time,
    /// When the last packet came.
    clock: Time,
    came: Sums,
    taken: Sums,
    /// When the packet taken last left the line.
    taken_last: Time,
    drops: Drops<P>,
    rest: Box<Rest>,
}

/// Packets that came and were not turned away, or that were taken.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    /// 0 of those taken: they are those that came and are not in the ring.
    packets: u64,
    bytes: u64,
    /// In units of the limit.
    weight: u64,
}

/// What is used seldom.
#[derive(Debug)]
struct Rest {
    left: Left,
    dropped: u64,
    dropped_bytes: u64,
    /// What the wire remembers after each packet in the ring, where that cannot be worked out backwards.
    marks: Option<VecDeque<Mark>>,
    /// What the engine has lost itself. Seldom anything.
    told: Option<Box<Counts>>,
    /// For the impairments and slot clock of a [`Staged`] link that goes on from here.
    seed: Seed,
    name: Box<str>,
    origin: Time,
}

/// Packets that have been found to have left the line, of all that ever came: the first so many.
#[derive(Debug, Clone, Copy, Default)]
struct Left {
    sums: Sums,
    /// When the last of them left.
    last: Time,
}

impl<P: Carried> Eager<P> {
    /// Such a link, if `spec` describes one.
    pub fn new(spec: &LinkSpec, seed: Seed, name: &str, origin: Time) -> Option<Eager<P>> {
        let DisciplineSpec::Fifo { limit } = spec.discipline else { return None };
        if *spec != plain(spec) {
            return None;
        }
        let wire = Wire::new(spec.framing, spec.rate, None, origin);
        let rest = Rest {
            left: Left::default(),
            dropped: 0,
            dropped_bytes: 0,
            marks: wire.needs_marks().then(VecDeque::new),
            told: None,
            seed,
            name: name.into(),
            origin,
        };
        Some(Eager {
            rides: Rides { ring: BlockQueue::default(), wire, delay: spec.delay },
            limit,
            known: origin,
            clock: origin,
            came: Sums::default(),
            taken: Sums::default(),
            taken_last: Time::ZERO,
            drops: Drops::default(),
            rest: Box::new(rest),
        })
    }

    #[inline(always)]
    pub fn offer(&mut self, at: Time, packet: P) {
        if at < self.known {
            self.come_late(at);
        } else {
            (self.known, self.clock) = (at, at);
        }
        let size = packet.size();
        let weight = self.limit.weight(size);
        let held = self.came.weight - self.taken.weight;
        if held + weight > self.limit.amount() && !self.has_room(weight) {
            return self.turn_away(packet);
        }
        self.came.packets += 1;
        self.came.bytes += u64::from(size);
        self.came.weight += weight;
        let wire = &mut self.rides.wire;
        let departed = wire.send(self.clock.max(wire.free_at()), piece(&packet));
        if wire.needs_marks() {
            self.keep_mark();
        }
        self.rides.ring.push_back(Ride { departed, packet });
    }

    /// An arrival is told of after something else has happened: it counts as come with the last thing that
    /// had. What was known to have left by then stays so.
    #[cold]
    #[inline(never)]
    fn come_late(&mut self, at: Time) {
        self.settle();
        self.clock = self.last_doing().max(at);
        self.known = self.clock;
    }

    /// Is there room behind what waits? The packet on the line does not count, and an idle line takes
    /// anything.
    #[inline(never)]
    fn has_room(&mut self, weight: u64) -> bool {
        self.settle();
        let Left { sums, .. } = self.rest.left;
        let Some(on_line) = self.rides.ring.get(self.in_flight()) else { return true };
        let others = self.came.weight - sums.weight - self.limit.weight(on_line.packet.size());
        self.came.packets - sums.packets < 2 || others + weight <= self.limit.amount()
    }

    #[cold]
    #[inline(never)]
    fn turn_away(&mut self, packet: P) {
        self.rest.dropped += 1;
        self.rest.dropped_bytes += u64::from(packet.size());
        self.drops.push(packet, DropCause::QueueLimit);
    }

    #[inline(never)]
    fn keep_mark(&mut self) {
        let mark = self.rides.wire.mark();
        self.rest.marks.get_or_insert_default().push_back(mark);
    }

    /// Takes note of what has left by `to`, which costs nothing until it matters.
    #[inline]
    pub fn advance(&mut self, to: Time) {
        self.known = self.known.max(to);
    }

    /// Finds out what has left.
    fn settle(&mut self) {
        self.rest.left = self.left();
    }

    /// What has left, from where that was found out last.
    fn left(&self) -> Left {
        let taken = self.taken_packets();
        let mut left = self.rest.left;
        if left.sums.packets < taken {
            left.sums = Sums { packets: taken, ..self.taken };
            left.last = self.taken_last;
        }
        let mut index = (left.sums.packets - taken) as usize;
        while let Some(ride) = self.rides.ring.get(index).filter(|it| it.departed <= self.known) {
            let size = ride.packet.size();
            left.sums.packets += 1;
            left.sums.bytes += u64::from(size);
            left.sums.weight += self.limit.weight(size);
            left.last = ride.departed;
            index += 1;
        }
        left
    }

    fn taken_packets(&self) -> u64 {
        self.came.packets - self.rides.len() as u64
    }

    /// The last arrival or departure, once it has been found out what has left.
    fn last_doing(&self) -> Time {
        self.clock.max(self.rest.left.last)
    }

    /// Whoever takes a packet knows that it has left the line.
    #[inline(always)]
    pub fn take(&mut self, now: Time) -> Option<Delivered<P>> {
        let (departed, delivered) = self.rides.take(now)?;
        let size = delivered.packet.size();
        self.known = self.known.max(departed);
        self.taken.bytes += u64::from(size);
        self.taken.weight += self.limit.weight(size);
        self.taken_last = departed;
        if self.rides.wire.needs_marks() {
            self.forget_mark();
        }
        Some(delivered)
    }

    #[inline(never)]
    fn forget_mark(&mut self) {
        self.rest.marks.get_or_insert_default().pop_front();
    }

    pub fn told(&mut self) -> &mut Counts {
        self.rest.told.get_or_insert_default()
    }

    pub fn drops(&mut self) -> &mut Drops<P> {
        &mut self.drops
    }

    #[inline]
    pub fn has_dropped(&self) -> bool {
        !self.drops.is_empty()
    }

    #[inline(always)]
    pub fn next_release(&self) -> Option<Time> {
        self.rides.next_release()
    }

    pub fn delay(&self) -> Span {
        self.rides.delay
    }

    /// The time that a packet's own bits take.
    #[inline(always)]
    pub fn nominal(&self, size: u32, controls: u32) -> Span {
        self.rides.wire.nominal(size, controls)
    }

    pub fn backlog(&self) -> Backlog {
        let Left { sums, .. } = self.left();
        let packets = self.came.packets - sums.packets;
        Backlog { packets, bytes: self.came.bytes - sums.bytes }
    }

    pub fn in_flight(&self) -> usize {
        (self.left().sums.packets - self.taken_packets()) as usize
    }

    pub fn counts(&self) -> Counts {
        let Rest { dropped, dropped_bytes, told, .. } = &*self.rest;
        let mut counts = told.as_deref().copied().unwrap_or_default();
        counts.entered += self.came.packets + dropped;
        counts.entered_bytes += self.came.bytes + dropped_bytes;
        // The engine may have taken back what was delivered here.
        counts.delivered = counts.delivered.wrapping_add(self.taken_packets());
        counts.delivered_bytes = counts.delivered_bytes.wrapping_add(self.taken.bytes);
        counts.drop_many(DropCause::QueueLimit, dropped - self.drops.len() as u64);
        counts
    }

    pub fn achieved(&self) -> Achieved {
        Achieved { packets: self.left().sums.packets, ..Achieved::default() }
    }

    /// The same link in the same state, working stage by stage. What is under way stays where it is; what
    /// waits goes back into the queue. Leaves an empty shell.
    pub fn go_staged(&mut self) -> Staged<P> {
        self.settle();
        let counts = self.counts();
        let (judged, last) = (self.rest.left.sums.packets, self.rest.left.last);
        let waiting = self.call_back();
        let wire = self.rewound(&waiting);
        let mut waiting = waiting.into_iter();
        let current = waiting.next().map(|ride| (ride.departed, Service::whole(ride.packet)));
        let delay = self.rides.delay;
        let ring = std::mem::take(&mut self.rides.ring);
        let spec = LinkSpec {
            delay,
            discipline: DisciplineSpec::Fifo { limit: self.limit },
            ..LinkSpec::default()
        };
        let mut staged = Staged::new(&spec, self.rest.seed, &self.rest.name, self.rest.origin);
        staged.inherit(Inherited {
            under_way: Rides { ring, wire: wire.clone(), delay },
            line: Line::resume(wire, current),
            queue: waiting.map(|ride| ride.packet).collect(),
            clock: self.last_doing(),
            judged,
            last_release: if judged > 0 { last + delay } else { Time::ZERO },
            counts,
            drops: std::mem::take(&mut self.drops),
        });
        staged
    }

    /// Takes out of the ring what has not left, in order.
    fn call_back(&mut self) -> VecDeque<Ride<P>> {
        let count = self.rides.len() - self.in_flight();
        let mut waiting = VecDeque::with_capacity(count);
        for _ in 0..count {
            if let Some(ride) = self.rides.ring.pop_back() {
                waiting.push_front(ride);
            }
        }
        waiting
    }

    /// The wire as it was when it had sent the first of `waiting` only; what has left is in the ring still.
    fn rewound(&self, waiting: &VecDeque<Ride<P>>) -> Wire {
        let mut wire = self.rides.wire.clone();
        let marks = self.rest.marks.as_ref();
        let mark = marks.and_then(|marks| marks.get(self.rides.len()));
        match (mark, waiting.front()) {
            (Some(mark), Some(first)) => wire.go_back(mark, first.departed),
            _ => {
                for index in (1..waiting.len()).rev() {
                    wire.take_back(piece(&waiting[index].packet), waiting[index - 1].departed);
                }
            }
        }
        wire
    }
}

/// The part of `spec` that such a link can have.
fn plain(spec: &LinkSpec) -> LinkSpec {
    LinkSpec {
        rate: spec.rate,
        framing: spec.framing,
        delay: spec.delay,
        discipline: spec.discipline.clone(),
        ..LinkSpec::default()
    }
}

/// The whole of `packet`, as a framer sees it.
#[inline(always)]
fn piece(packet: &impl Metered) -> Piece {
    let (channel, bytes) = (packet.channel(), packet.size());
    Piece { channel, bytes, controls: packet.controls(), last: true }
}
