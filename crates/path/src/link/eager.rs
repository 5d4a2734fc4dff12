//! A plain link, which knows at a packet's arrival when it departs.

use super::staged::{Inherited, Staged};
use super::{Delivered, book_departure};
use crate::impairment::Achieved;
use crate::line::{Line, Mark, Wire};
use crate::{Backlog, BlockQueue, DisciplineSpec, Drops, Limit, LinkSpec, Piece, Service};
use std::collections::VecDeque;
use trunkline_core::{Carried, Cause, Counts, DropCause, Metered, Seed, Span, Time};

/// A link of a first-in-first-out queue and a line, with nothing that changes or impairs it.
///
/// What waits and what is under way lie in one ring; which of them still wait is only counted, and found
/// out when somebody asks: an arrival that needs to know how much room there is, mostly.
#[derive(Debug)]
pub(super) struct Eager<P> {
    rides: Rides<P>,
    waiting: Waiting,
    limit: Limit,
    /// The last thing that has happened, and the last departure.
    clock: Time,
    last_departed: Time,
    tally: Tally,
    drops: Drops<P>,
    /// For the impairments and slot clock of a [`Staged`] link that goes on from here.
    seed: Seed,
    name: Box<str>,
    origin: Time,
}

/// Packets whose departures are known, in order.
#[derive(Debug)]
pub(super) struct Rides<P> {
    ring: BlockQueue<Ride<P>>,
    wire: Wire,
    delay: Span,
}

#[derive(Debug)]
struct Ride<P> {
    departed: Time,
    packet: P,
}

/// Those at the end of the ring that have not left: the first of them is on the line.
#[derive(Debug)]
struct Waiting {
    count: usize,
    /// How many lie before them in the ring.
    behind: usize,
    /// When the one on the line departs, and its size. Never, where there is none.
    next: Time,
    size: u32,
    /// User bytes of all, and what those behind the first weigh.
    bytes: u64,
    queued: u64,
    /// What the wire remembers after each of them, where that cannot be worked out backwards.
    marks: Option<Box<Marks>>,
}

/// Marks, first to last.
#[derive(Debug, Default)]
struct Marks(VecDeque<Mark>);

/// What became of the packets. Those delivered are the rest.
#[derive(Debug, Default)]
struct Tally {
    entered: u64,
    entered_bytes: u64,
    dropped: u64,
    delivered_bytes: u64,
    /// What the engine has lost itself. Seldom anything.
    told: Option<Box<Counts>>,
}

impl<P: Carried> Rides<P> {
    /// When the first packet is due.
    #[inline]
    pub fn next_release(&self) -> Option<Time> {
        self.ring.front().map(|ride| ride.departed + self.delay)
    }

    /// When the first packet departed, if it is due by `now`.
    #[inline]
    fn due(&self, now: Time) -> Option<Time> {
        self.ring.front().map(|ride| ride.departed).filter(|&departed| departed + self.delay <= now)
    }

    /// Takes the first packet, its share booked.
    #[inline(always)]
    pub fn take(&mut self) -> Option<Delivered<P>> {
        let Ride { departed, mut packet } = self.ring.pop_front()?;
        let release = departed + self.delay;
        let nominal = self.wire.nominal(packet.size(), packet.controls());
        book_departure(&mut packet, departed, nominal);
        packet.book(Cause::Propagate, release.since(departed));
        Some(Delivered { release, packet })
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.ring.len()
    }
}

impl Waiting {
    fn new(with_marks: bool) -> Waiting {
        let marks = with_marks.then(Box::default);
        Waiting { count: 0, behind: 0, next: Time::NEVER, size: 0, bytes: 0, queued: 0, marks }
    }

    #[inline]
    fn push(&mut self, departed: Time, size: u32, weight: u64, wire: &Wire) {
        if self.count == 0 {
            (self.next, self.size) = (departed, size);
        } else {
            self.queued += weight;
        }
        self.count += 1;
        self.bytes += u64::from(size);
        if self.marks.is_some() {
            self.keep_mark(wire);
        }
    }

    #[cold]
    fn keep_mark(&mut self, wire: &Wire) {
        self.marks.get_or_insert_default().0.push_back(wire.mark());
    }

    #[cold]
    fn forget_mark(&mut self) {
        self.marks.get_or_insert_default().0.pop_front();
    }
}

impl<P: Carried> Eager<P> {
    /// Such a link, if `spec` describes one.
    pub fn new(spec: &LinkSpec, seed: Seed, name: &str, origin: Time) -> Option<Eager<P>> {
        let DisciplineSpec::Fifo { limit } = spec.discipline else { return None };
        if *spec != plain(spec) {
            return None;
        }
        let wire = Wire::new(spec.framing, spec.rate, None, origin);
        Some(Eager {
            waiting: Waiting::new(wire.needs_marks()),
            rides: Rides { ring: BlockQueue::default(), wire, delay: spec.delay },
            limit,
            clock: origin,
            last_departed: Time::ZERO,
            tally: Tally::default(),
            drops: Drops::default(),
            seed,
            name: name.into(),
            origin,
        })
    }

    #[inline(always)]
    pub fn offer(&mut self, at: Time, packet: P) {
        self.advance(at);
        self.clock = self.clock.max(at);
        let size = packet.size();
        self.tally.entered += 1;
        self.tally.entered_bytes += u64::from(size);
        let weight = self.limit.weight(size);
        if self.waiting.count > 1 && self.waiting.queued + weight > self.limit.amount() {
            self.tally.dropped += 1;
            return self.drops.push(packet, DropCause::QueueLimit);
        }
        let wire = &mut self.rides.wire;
        let departed = wire.send(self.clock.max(wire.free_at()), piece(&packet));
        if departed > self.clock {
            self.waiting.push(departed, size, weight, wire);
        } else {
            self.last_departed = departed;
            self.waiting.behind += 1;
        }
        self.rides.ring.push_back(Ride { departed, packet });
    }

    #[inline]
    pub fn advance(&mut self, to: Time) {
        while self.waiting.next <= to && self.waiting.count > 0 {
            self.depart();
        }
    }

    /// The packet on the line has left; the next one goes onto it.
    #[inline]
    fn depart(&mut self) {
        let waiting = &mut self.waiting;
        self.clock = self.clock.max(waiting.next);
        self.last_departed = waiting.next;
        waiting.count -= 1;
        waiting.behind += 1;
        waiting.bytes -= u64::from(waiting.size);
        if waiting.marks.is_some() {
            waiting.forget_mark();
        }
        if waiting.count == 0 {
            waiting.next = Time::NEVER;
        } else if let Some(ride) = self.rides.ring.get(waiting.behind) {
            waiting.next = ride.departed;
            waiting.size = ride.packet.size();
            waiting.queued -= self.limit.weight(waiting.size);
        }
    }

    /// Whoever takes a packet knows that it has left the line.
    #[inline(always)]
    pub fn take(&mut self, now: Time) -> Option<Delivered<P>> {
        let departed = self.rides.due(now)?;
        self.advance(departed);
        let delivered = self.rides.take()?;
        self.waiting.behind -= 1;
        self.tally.delivered_bytes += u64::from(delivered.packet.size());
        Some(delivered)
    }

    pub fn told(&mut self) -> &mut Counts {
        self.tally.told.get_or_insert_default()
    }

    pub fn drops(&mut self) -> &mut Drops<P> {
        &mut self.drops
    }

    #[inline]
    pub fn has_dropped(&self) -> bool {
        !self.drops.is_empty()
    }

    #[inline]
    pub fn next_release(&self) -> Option<Time> {
        self.rides.next_release()
    }

    pub fn delay(&self) -> Span {
        self.rides.delay
    }

    pub fn backlog(&self) -> Backlog {
        Backlog { packets: self.waiting.count as u64, bytes: self.waiting.bytes }
    }

    pub fn in_flight(&self) -> usize {
        self.waiting.behind
    }

    pub fn counts(&self) -> Counts {
        let Tally { entered, entered_bytes, dropped, delivered_bytes, told } = &self.tally;
        let mut counts = told.as_deref().copied().unwrap_or_default();
        let delivered = entered - dropped - self.rides.len() as u64;
        counts.entered += entered;
        counts.entered_bytes += entered_bytes;
        // The engine may have taken back what was delivered here.
        counts.delivered = counts.delivered.wrapping_add(delivered);
        counts.delivered_bytes = counts.delivered_bytes.wrapping_add(*delivered_bytes);
        counts.drop_many(DropCause::QueueLimit, dropped - self.drops.len() as u64);
        counts
    }

    /// How many have left the line.
    fn departures(&self) -> u64 {
        self.tally.entered - self.tally.dropped - self.waiting.count as u64
    }

    pub fn achieved(&self) -> Achieved {
        Achieved { packets: self.departures(), ..Achieved::default() }
    }

    /// The same link in the same state, working stage by stage. What is under way stays where it is; what
    /// waits goes back into the queue. Leaves an empty shell.
    pub fn go_staged(&mut self) -> Staged<P> {
        let (counts, judged) = (self.counts(), self.departures());
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
        let mut staged = Staged::new(&spec, self.seed, &self.name, self.origin);
        staged.inherit(Inherited {
            under_way: Rides { ring, wire: wire.clone(), delay },
            line: Line::resume(wire, current),
            queue: waiting.map(|ride| ride.packet).collect(),
            clock: self.clock,
            judged,
            last_release: if judged > 0 { self.last_departed + delay } else { Time::ZERO },
            counts,
            drops: std::mem::take(&mut self.drops),
        });
        staged
    }

    /// Takes out of the ring what has not left, in order.
    fn call_back(&mut self) -> VecDeque<Ride<P>> {
        let mut waiting = VecDeque::with_capacity(self.waiting.count);
        for _ in 0..self.waiting.count {
            if let Some(ride) = self.rides.ring.pop_back() {
                waiting.push_front(ride);
            }
        }
        waiting
    }

    /// The wire as it was when it had sent the first of `waiting` only.
    fn rewound(&self, waiting: &VecDeque<Ride<P>>) -> Wire {
        let mut wire = self.rides.wire.clone();
        let marks = self.waiting.marks.as_ref().and_then(|marks| marks.0.front());
        match (marks, waiting.front()) {
            (Some(mark), Some(first)) => wire.go_back(mark.clone(), first.departed),
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
#[inline]
fn piece(packet: &impl Metered) -> Piece {
    let (channel, bytes) = (packet.channel(), packet.size());
    Piece { channel, bytes, controls: packet.controls(), last: true }
}
