//! A plain link, which knows at a packet's arrival when it departs.

use super::Delivered;
use super::rides::{Ride, Rides};
use super::staged::{Inherited, Staged};
use crate::discipline::GivenUp;
use crate::impairment::Achieved;
use crate::line::{Line, Mark, Wire};
use crate::{
    Backlog, BlockQueue, CatchUp, DisciplineSpec, Limit, LinkSpec, Piece, Service, aal5_cells,
};
use std::collections::VecDeque;
use trunkline_core::{Carried, Counts, DropCause, Metered, Seed, Span, Time};

/// A link of a first-in-first-out queue and a line, with nothing that changes or impairs it.
///
/// Packets that wait and packets under way lie in one ring. Which of them have left the line matters only when
/// somebody asks, and when so much has come that an arrival might find no room ([`Room`]): only then the
/// departures that have passed are counted, each once ([`Left`]). All else that a packet costs is a place in
/// the ring, the time of its bits, and three sums. Rare state is boxed, so that the rest of a link
/// takes few cache lines.
#[derive(Debug)]
pub(super) struct Eager<P> {
    rides: Rides<P>,
    room: Room,
    /// The instant up to which departures have left.
    known: Time,
    /// When the last packet came.
    clock: Time,
    /// Packets that came and were not turned away; those that were taken are the ones not in the ring.
    came: u64,
    came_bytes: u64,
    taken_bytes: u64,
    /// When the packet taken last left the line.
    taken_last: Time,
    /// What is noted of a packet beside that, if anything is.
    careful: Option<Box<Careful>>,
    given_up: GivenUp<P>,
    rest: Box<Rest>,
}

/// Room that there is for certain, in shares of which a packet of any size takes no more than it says: it
/// only ever becomes less, until somebody looks what has left. So an arrival costs a multiplication, whatever
/// the unit of the limit, and a departure nothing.
#[derive(Debug, Clone, Copy)]
struct Room {
    shares: u64,
    each: u64,
    byte: u64,
}

impl Room {
    /// `units` of `limit`. A cell is 48 shares: of a packet's cells the last one may be all but empty, and 16
    /// bytes are overhead. No packet takes nothing, or it would pass although more waits than may.
    fn of(limit: Limit, units: u64) -> Room {
        let (unit, each, byte) = match limit {
            Limit::Packets(_) => (1, 1, 0),
            Limit::Bytes(_) => (1, 1, 1),
            Limit::Cells(_) => (48, 63, 1),
        };
        Room { shares: units.saturating_mul(unit), each, byte }
    }

    /// Takes the room for a packet of `size`, if it is there for certain.
    #[inline(always)]
    fn take(&mut self, size: u32) -> bool {
        let (left, short) = self.shares.overflowing_sub(self.each + self.byte * u64::from(size));
        if !short {
            self.shares = left;
        }
        !short
    }
}

/// The state that is used seldom.
#[derive(Debug)]
struct Rest {
    limit: Limit,
    left: Left,
    dropped: u64,
    dropped_bytes: u64,
    /// The packets that the engine has lost itself. Seldom anything.
    told: Option<Box<Counts>>,
    /// For when the delay changes, and for the impairments and slot clock of a [`Staged`] link that goes on from here.
    catch_up: CatchUp,
    seed: Seed,
    name: Box<str>,
    origin: Time,
}

/// The notes of a limit that counts cells, or of a wire that cannot be computed backwards.
#[derive(Debug)]
struct Careful {
    /// Cells of the packets that came and that were taken.
    came_cells: u64,
    taken_cells: u64,
    /// The marks of the wire after each packet in the ring, if they cannot be computed backwards.
    marks: Option<VecDeque<Mark>>,
}

impl Careful {
    /// The notes for a link of `wire` and `limit`, if it needs any.
    fn of(wire: &Wire, limit: Limit) -> Option<Box<Careful>> {
        let marks = wire.needs_marks().then(VecDeque::new);
        let needed = marks.is_some() || matches!(limit, Limit::Cells(_));
        needed.then(|| Box::new(Careful { came_cells: 0, taken_cells: 0, marks }))
    }
}

/// Packets that have been found to have left the line, of all that ever came: the first so many.
#[derive(Debug, Clone, Copy, Default)]
struct Left {
    packets: u64,
    bytes: u64,
    cells: u64,
    /// When the last of them left.
    last: Time,
}

impl<P: Carried> Eager<P> {
    /// Such a link, if `spec` describes one.
    pub fn new(spec: &LinkSpec, seed: Seed, name: &str, origin: Time) -> Option<Eager<P>> {
        let limit = spec.discipline.limit();
        if !spec.discipline.is_fifo() || *spec != plain(spec) {
            return None;
        }
        let wire = Wire::new(spec.framing, spec.rate, None, origin);
        let careful = Careful::of(&wire, limit);
        let rest = Rest {
            limit,
            left: Left::default(),
            dropped: 0,
            dropped_bytes: 0,
            told: None,
            catch_up: spec.catch_up,
            seed,
            name: name.into(),
            origin,
        };
        Some(Eager {
            rides: Rides { ring: BlockQueue::default(), wire, delay: spec.delay },
            room: Room::of(limit, limit.amount()),
            known: origin,
            clock: origin,
            came: 0,
            came_bytes: 0,
            taken_bytes: 0,
            taken_last: Time::ZERO,
            careful,
            given_up: GivenUp::new(),
            rest: Box::new(rest),
        })
    }

    #[inline(always)]
    pub fn offer(&mut self, at: Time, packet: P) {
        let at = if at < self.known { self.come_late(at) } else { at };
        (self.known, self.clock) = (at, at);
        let size = packet.size();
        if !self.room.take(size) && !self.make_room(size) {
            self.count_refusal(size);
            return self.given_up.push((packet, DropCause::QueueLimit));
        }
        self.came += 1;
        self.came_bytes += u64::from(size);
        let wire = &mut self.rides.wire;
        let departed = wire.send(at.max(wire.free_at()), piece(&packet));
        if self.careful.is_some() {
            self.note_arrival(size);
        }
        // In two arms, so that in the common one the packet goes straight to its place.
        match self.rides.ring.is_short() {
            true => self.rides.ring.push_short(Ride { departed, packet }),
            false => self.rides.ring.push_back(Ride { departed, packet }),
        }
    }

    /// An arrival is told of after something else has happened: it counts as come with the last thing that
    /// had. What was known to have left by then stays so.
    #[cold]
    #[inline(never)]
    fn come_late(&mut self, at: Time) -> Time {
        self.settle();
        self.last_doing().max(at)
    }

    /// Looks whether there is room for a packet of `size` behind what waits. The packet on the line does not
    /// count, and an idle line takes anything.
    #[inline(never)]
    fn make_room(&mut self, size: u32) -> bool {
        self.settle();
        let limit = self.rest.limit;
        let (waiting, weight, amount) = (self.waiting_weight(), limit.weight(size), limit.amount());
        if self.came - self.rest.left.packets > 1
            && let Some(first) = self.rides.ring.get(self.left_behind())
            && waiting - limit.weight(first.packet.size()) + weight > amount
        {
            return false;
        }
        self.room = Room::of(limit, amount.saturating_sub(waiting + weight));
        true
    }

    /// The packets that wait, the one on the line included, in units of the limit.
    fn waiting_weight(&self) -> u64 {
        let Left { packets, bytes, cells, .. } = self.rest.left;
        match self.rest.limit {
            Limit::Packets(_) => self.came - packets,
            Limit::Bytes(_) => self.came_bytes - bytes,
            Limit::Cells(_) => self.careful.as_ref().map_or(0, |it| it.came_cells) - cells,
        }
    }

    #[cold]
    #[inline(never)]
    fn count_refusal(&mut self, size: u32) {
        self.rest.dropped += 1;
        self.rest.dropped_bytes += u64::from(size);
    }

    /// Notes what is not noted of every packet.
    #[inline(never)]
    fn note_arrival(&mut self, size: u32) {
        let Some(careful) = &mut self.careful else { return };
        careful.came_cells += aal5_cells(size);
        if let Some(marks) = &mut careful.marks {
            marks.push_back(self.rides.wire.mark());
        }
    }

    #[inline(never)]
    fn note_taken(&mut self, size: u32) {
        let Some(careful) = &mut self.careful else { return };
        careful.taken_cells += aal5_cells(size);
        if let Some(marks) = &mut careful.marks {
            marks.pop_front();
        }
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

    /// The departures since they were counted last.
    fn left(&self) -> Left {
        let taken = self.taken();
        let mut left = self.rest.left;
        if left.packets < taken {
            let cells = self.careful.as_ref().map_or(0, |it| it.taken_cells);
            let bytes = self.taken_bytes;
            left = Left { packets: taken, bytes, cells, last: self.taken_last };
        }
        let mut index = (left.packets - taken) as usize;
        while let Some(ride) = self.rides.ring.get(index).filter(|it| it.departed <= self.known) {
            let size = ride.packet.size();
            left.packets += 1;
            left.bytes += u64::from(size);
            left.cells += aal5_cells(size);
            left.last = ride.departed;
            index += 1;
        }
        left
    }

    /// The number that were taken.
    fn taken(&self) -> u64 {
        self.came - self.rides.len() as u64
    }

    /// The number that have left and were not taken, once it has been found out what has left.
    fn left_behind(&self) -> usize {
        (self.rest.left.packets - self.taken()) as usize
    }

    /// The last arrival or departure, once it has been found out what has left.
    fn last_doing(&self) -> Time {
        self.clock.max(self.rest.left.last)
    }

    /// Whoever takes a packet knows that it has left the line.
    #[inline]
    pub fn take(&mut self, now: Time) -> Option<Delivered<P>> {
        let delivered = self.take_known(now)?;
        self.known = self.known.max(self.taken_last);
        Some(delivered)
    }

    /// [`advance`](Eager::advance) and [`take`](Eager::take).
    #[inline(always)]
    pub fn pull(&mut self, now: Time) -> Option<Delivered<P>> {
        self.advance(now);
        self.take_known(now)
    }

    #[inline(always)]
    fn take_known(&mut self, now: Time) -> Option<Delivered<P>> {
        let (departed, delivered) = self.rides.take(now)?;
        self.taken_last = departed;
        let size = delivered.packet.size();
        self.taken_bytes += u64::from(size);
        if self.careful.is_some() {
            self.note_taken(size);
        }
        Some(delivered)
    }

    pub fn told(&mut self) -> &mut Counts {
        self.rest.told.get_or_insert_default()
    }

    pub fn given_up(&mut self) -> &mut GivenUp<P> {
        &mut self.given_up
    }

    #[inline]
    pub fn has_dropped(&self) -> bool {
        !self.given_up.is_empty()
    }

    /// No more than a release.
    #[inline(always)]
    pub fn next_event(&self) -> Option<Time> {
        self.next_release()
    }

    #[inline(always)]
    pub fn next_release(&self) -> Option<Time> {
        let Rides { ring, wire, delay } = &self.rides;
        // What is alone was sent last: its place, which has just been written or not been looked at for long,
        // need not be read.
        if ring.is_single() {
            debug_assert_eq!(self.rides.next_release(), Some(wire.free_at() + *delay));
            return Some(wire.free_at() + *delay);
        }
        self.rides.next_release()
    }

    pub fn delay(&self) -> Span {
        self.rides.delay
    }

    /// The line's wire.
    pub fn wire(&self) -> &Wire {
        &self.rides.wire
    }

    /// The time that a packet's own bits take.
    #[inline(always)]
    pub fn nominal(&self, size: u32, controls: u32) -> Span {
        self.rides.wire.nominal(size, controls)
    }

    pub fn backlog(&self) -> Backlog {
        let Left { packets, bytes, .. } = self.left();
        Backlog { packets: self.came - packets, bytes: self.came_bytes - bytes }
    }

    pub fn in_flight(&self) -> usize {
        (self.left().packets - self.taken()) as usize
    }

    pub fn counts(&self) -> Counts {
        let Rest { dropped, dropped_bytes, told, .. } = &*self.rest;
        let mut counts = told.as_deref().copied().unwrap_or_default();
        counts.entered += self.came + dropped;
        counts.entered_bytes += self.came_bytes + dropped_bytes;
        // The engine may have taken back what was delivered here.
        counts.delivered = counts.delivered.wrapping_add(self.taken());
        counts.delivered_bytes = counts.delivered_bytes.wrapping_add(self.taken_bytes);
        counts.drop_many(DropCause::QueueLimit, dropped - self.given_up.len() as u64);
        counts
    }

    pub fn achieved(&self) -> Achieved {
        Achieved { packets: self.left().packets, ..Achieved::default() }
    }

    /// The same link in the same state, working stage by stage. Packets under way stay under way; those that
    /// wait go back into the queue. Leaves an empty shell.
    pub fn go_staged(&mut self) -> Staged<P> {
        self.settle();
        let counts = self.counts();
        let Left { packets: judged, last, .. } = self.rest.left;
        let waiting = self.call_back();
        let wire = self.rewound(&waiting);
        // How long the line was idle before what is on it now.
        let idle = waiting.front().map_or(Span::ZERO, |ride| ride.packet.entered().since(last));
        let mut waiting = waiting.into_iter();
        let current = waiting.next().map(|ride| (ride.departed, Service::whole(ride.packet)));
        let delay = self.rides.delay;
        let ring = std::mem::take(&mut self.rides.ring);
        let spec = LinkSpec {
            delay,
            catch_up: self.rest.catch_up,
            discipline: DisciplineSpec::fifo(self.rest.limit),
            ..LinkSpec::default()
        };
        let mut staged = Staged::new(&spec, self.rest.seed, &self.rest.name, self.rest.origin);
        staged.inherit(Inherited {
            under_way: Rides { ring, wire: wire.clone(), delay },
            line: Line::resume(wire, current, idle),
            queue: waiting.map(|ride| ride.packet).collect(),
            clock: self.last_doing(),
            judged,
            last: (judged > 0).then_some((last, last + delay)),
            counts,
            given_up: std::mem::take(&mut self.given_up),
        });
        staged
    }

    /// Takes out of the ring what has not left, in order.
    fn call_back(&mut self) -> VecDeque<Ride<P>> {
        let count = self.rides.len() - self.left_behind();
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
        let marks = self.careful.as_ref().and_then(|careful| careful.marks.as_ref());
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
        catch_up: spec.catch_up,
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
