//! A link at work stage by stage.

use super::rides::Rides;
use super::{Change, Delivered, book_departure};
use crate::board::Board;
use crate::catch_up::{CatchUp, Front, Gap};
use crate::discipline::GivenUp;
use crate::impairment::{Achieved, Fate, Impairments};
use crate::line::Wire;
use crate::outlet::Outlet;
use crate::schedule::Plan;
use crate::{AnyDiscipline, Backlog, DelayLine, Discipline, Drops, Line, LinkSpec, Service};
use std::collections::VecDeque;
use trunkline_core::{Carried, Cause, Channel, Counts, Hosts, Seed, Span, Time};

/// A link that takes every packet through its stages at the instants at which they happen.
#[derive(Debug)]
pub(super) struct Staged<P> {
    board: Option<Board<P>>,
    discipline: AnyDiscipline<P>,
    /// Whether the discipline may hold back what waits.
    holds: bool,
    outlet: Outlet<P>,
    line: Line<P>,
    impairments: Impairments,
    delay: Span,
    catch_up: CatchUp,
    front: Front,
    in_flight: DelayLine<P>,
    /// The packets that had left before this link took over from an eager one. They are released before anything that
    /// keeps its order.
    under_way: Option<Rides<P>>,
    plan: Plan,
    changes: VecDeque<(Time, Change)>,
    clock: Time,
    /// When the line or the board's processor has done what it does or the discipline gives what it held back, and
    /// when that or a change is due: never, if nothing is. Kept so that most calls need look no further.
    done: Time,
    due: Time,
    next_change: Time,
    /// When the next packet is due at the far end; never, if none is.
    release: Time,
    counts: Counts,
    drops: Drops<P>,
}

/// The state of an eager link, for one that goes on stage by stage.
#[derive(Debug)]
pub(super) struct Inherited<P> {
    /// The packets that have left the line.
    pub under_way: Rides<P>,
    /// The line, with what is on it.
    pub line: Line<P>,
    /// The packets that wait.
    pub queue: Vec<P>,
    /// The last thing that has happened.
    pub clock: Time,
    /// The number of packets that have left the line, when the last of them did, and when it is released.
    pub judged: u64,
    pub last: Option<(Time, Time)>,
    /// Counts of the packets.
    pub counts: Counts,
    pub given_up: GivenUp<P>,
}

impl<P: Carried> Staged<P> {
    /// A link as `spec` says, whose slot clock, trace and schedule start at `origin`. Its randomness
    /// comes from the streams of `seed` under `name`.
    pub fn new(spec: &LinkSpec, seed: Seed, name: &str, origin: Time) -> Staged<P> {
        let discipline = AnyDiscipline::new(&spec.discipline, seed, name);
        let mut staged = Staged {
            board: spec.processor.map(Board::new),
            holds: discipline.holds(),
            discipline,
            outlet: Outlet::new(spec.output_buffer.bytes()),
            line: Line::new(spec.framing, spec.rate, spec.trace.as_deref(), origin),
            impairments: Impairments::new(&spec.impairments, seed, name),
            delay: spec.delay,
            catch_up: spec.catch_up,
            front: Front::default(),
            in_flight: DelayLine::default(),
            under_way: None,
            plan: Plan::new(&spec.schedule, origin),
            changes: VecDeque::new(),
            clock: origin,
            done: Time::NEVER,
            due: Time::NEVER,
            next_change: Time::NEVER,
            release: Time::NEVER,
            counts: Counts::default(),
            drops: Drops::default(),
        };
        staged.plan_changed();
        staged
    }

    /// Finds out anew which change comes next.
    fn plan_changed(&mut self) {
        self.next_change = self.next_change().unwrap_or(Time::NEVER);
        self.look_ahead();
    }

    /// Finds out anew what comes next, after anything may have changed it.
    #[inline]
    fn look_ahead(&mut self) {
        let line = self.line.done().unwrap_or(Time::NEVER);
        let board = self.board.as_ref().and_then(Board::done);
        self.done = board.map_or(line, |board| line.min(board));
        if self.holds {
            self.look_for_held();
        }
        self.due = self.done.min(self.next_change);
    }

    /// Tells the discipline which hosts a channel's packets go between.
    pub fn introduce(&mut self, channel: Channel, hosts: Hosts) {
        self.discipline.introduce(channel, hosts);
    }

    /// What is held back needs the line again when it is ready. What is ready now waits for the line, the output
    /// buffer or the board, whose end lets it go.
    #[cold]
    fn look_for_held(&mut self) {
        if let Some(ready) = self.discipline.next_ready().filter(|&ready| ready > self.clock) {
            self.done = self.done.min(ready);
        }
    }

    /// Goes on from the state in which an eager link stopped.
    pub fn inherit(&mut self, from: Inherited<P>) {
        if let Some((departed, release)) = from.last {
            self.impairments.resume(from.judged, release);
            self.front = Front::resume(departed, release);
        }
        self.under_way = Some(from.under_way);
        self.line = from.line;
        (self.clock, self.counts) = (from.clock, from.counts);
        *self.drops.given_up() = from.given_up;
        if let AnyDiscipline::Fifo(fifo) = &mut self.discipline {
            from.queue.into_iter().for_each(|packet| fifo.push(packet));
        }
        self.look_out();
        self.look_ahead();
    }

    /// Finds out anew what is due next at the far end.
    #[inline]
    fn look_out(&mut self) {
        let earlier = self.under_way.as_ref().and_then(Rides::next_release);
        let release = earliest(earlier, self.in_flight.next_release());
        self.release = release.unwrap_or(Time::NEVER);
    }

    #[inline]
    pub fn offer(&mut self, at: Time, packet: P) {
        self.advance(at);
        self.clock = self.clock.max(at);
        self.counts.entered += 1;
        self.counts.entered_bytes += u64::from(packet.size());
        match &mut self.board {
            Some(board) => board.arrive(packet, &mut self.drops),
            None => self.discipline.enqueue(self.clock, packet, &mut self.drops),
        }
        if self.may_start() {
            self.fill();
            self.work(self.clock);
        }
    }

    /// Whether an arrival can set anything going. Not while the line is busy and takes everything from the discipline
    /// itself.
    #[inline]
    fn may_start(&self) -> bool {
        self.line.done().is_none() || self.outlet.is_short() || self.board.is_some()
    }

    #[inline]
    pub fn advance(&mut self, to: Time) {
        if self.due <= to {
            self.catch_up(to);
        }
    }

    fn catch_up(&mut self, to: Time) {
        while self.next_change <= to
            && let Some(at) = self.next_change()
        {
            self.work(at);
            self.clock = self.clock.max(at);
            if let Some(change) = self.take_change(at) {
                self.apply(change);
            }
            self.plan_changed();
        }
        self.work(to);
    }

    fn next_change(&self) -> Option<Time> {
        earliest(self.plan.due(), self.changes.front().map(|&(at, _)| at))
    }

    /// Takes the change that is due at `at`: the schedule's first, so that what was asked for wins.
    fn take_change(&mut self, at: Time) -> Option<Change> {
        if self.plan.due() == Some(at) {
            return self.plan.take();
        }
        self.changes.pop_front().map(|(_, change)| change)
    }

    /// Finishes everything that ends by `to` and starts what follows. The clock stays at the last thing
    /// that happened, so that an engine may tell of an arrival late as long as nothing else came between.
    #[inline(always)]
    fn work(&mut self, to: Time) {
        while self.done <= to && self.is_busy() {
            let done = self.done;
            self.clock = self.clock.max(done);
            if self.line.done() == Some(done) {
                self.finish_piece();
            } else if let Some(board) = &mut self.board
                && board.done() == Some(done)
            {
                board.finish(done, &mut self.discipline, &mut self.outlet, &mut self.drops);
            }
            self.fill();
        }
    }

    /// Whether anything is on the line or in the processor's hands.
    #[inline]
    fn is_busy(&self) -> bool {
        let moving = || self.board.as_ref().is_some_and(|board| board.done().is_some());
        self.done < Time::NEVER || self.line.done().is_some() || moving()
    }

    #[inline]
    fn finish_piece(&mut self) {
        if let Some((done, service)) = self.line.finish()
            && let Some(packet) = service.packet
        {
            self.depart(done, packet);
        }
    }

    /// Puts the next piece onto the line if that is idle, and moves work from the discipline to the output
    /// buffer: by the board's processor, or at once while the buffer holds less than its size.
    #[inline(always)]
    fn fill(&mut self) {
        if self.line.done().is_none()
            && let Some(service) = self.next_piece()
        {
            self.line.start(self.clock, service);
        }
        if let Some(board) = &mut self.board {
            board.start(self.clock, &mut self.discipline, &mut self.outlet, &mut self.drops);
        } else {
            while self.outlet.is_short()
                && let Some(service) = self.discipline.dequeue(self.clock, &mut self.drops)
            {
                self.outlet.fill(service);
            }
        }
        self.look_ahead();
    }

    /// The piece that goes onto the line next, past the output buffer if that is empty and no processor has to
    /// fill it.
    fn next_piece(&mut self) -> Option<Service<P>> {
        let buffered = self.outlet.pop();
        if buffered.is_some() || self.board.is_some() {
            return buffered;
        }
        self.discipline.dequeue(self.clock, &mut self.drops)
    }

    /// Books the times of a packet that has left the line and sends it on its way.
    fn depart(&mut self, at: Time, mut packet: P) {
        if P::BOOKS {
            let nominal = self.line.nominal(packet.size(), packet.controls());
            book_departure(&mut packet, at, nominal);
        }
        let due = self.due_after(at, packet.size());
        let behind = due.since(at + self.delay);
        match self.impairments.judge(at, self.delay, behind, &packet) {
            Fate::Lost(cause) => self.drops.push(packet, cause),
            Fate::Arrives { release, unordered, copies } => {
                packet.set_copies(copies);
                packet.book(Cause::Queue, behind);
                packet.book(Cause::Propagate, release.since(at + behind));
                self.counts.duplicated += u64::from(copies.saturating_sub(1));
                let release = match unordered {
                    true => self.in_flight.push_unordered(release, packet),
                    false => self.in_flight.push(release, packet),
                };
                self.release = self.release.min(release);
            }
        }
    }

    /// When a packet of `bytes` that leaves the line at `at` is due at the far end without impairments.
    #[inline]
    fn due_after(&mut self, at: Time, bytes: u32) -> Time {
        let idle = self.line.take_idle();
        let (wire, catch_up) = (self.line.wire(), self.catch_up);
        self.front.follow(at, self.delay, |whole, under_way| match catch_up {
            CatchUp::Drain => wire.spacing(Gap { whole, idle, bytes }, !under_way),
            CatchUp::AtOnce => Span::ZERO,
        })
    }

    /// [`advance`](Staged::advance) and [`take`](Staged::take).
    #[inline]
    pub fn pull(&mut self, now: Time) -> Option<Delivered<P>> {
        self.advance(now);
        self.take(now)
    }

    #[inline]
    pub fn take(&mut self, now: Time) -> Option<Delivered<P>> {
        if self.release > now {
            return None;
        }
        let delivered = match self.take_earlier(now) {
            None => {
                let (release, packet) = self.in_flight.pop(now)?;
                Delivered { release, packet }
            }
            Some(earlier) => earlier,
        };
        self.look_out();
        let copies = u64::from(delivered.packet.copies());
        self.counts.delivered += copies;
        self.counts.delivered_bytes += copies * u64::from(delivered.packet.size());
        Some(delivered)
    }

    /// The next of those that had left before this link took over, if it is the next of all.
    #[inline]
    fn take_earlier(&mut self, now: Time) -> Option<Delivered<P>> {
        let rides = self.under_way.as_mut()?;
        let Some(release) = rides.next_release() else {
            self.under_way = None;
            return None;
        };
        let first = self.in_flight.next_release().is_none_or(|other| release <= other);
        if first { rides.take(now).map(|(_, delivered)| delivered) } else { None }
    }

    /// The line's wire.
    pub fn wire(&self) -> &Wire {
        self.line.wire()
    }

    /// The time that a packet's own bits take.
    #[inline]
    pub fn nominal(&self, size: u32, controls: u32) -> Span {
        self.line.nominal(size, controls)
    }

    pub fn told(&mut self) -> &mut Counts {
        &mut self.counts
    }

    pub fn given_up(&mut self) -> (Option<&mut Counts>, &mut GivenUp<P>) {
        (Some(&mut self.counts), self.drops.given_up())
    }

    #[inline]
    pub fn has_dropped(&self) -> bool {
        !self.drops.is_empty()
    }

    #[inline]
    pub fn next_event(&self) -> Option<Time> {
        let next = self.due.min(self.release);
        (next < Time::NEVER).then_some(next)
    }

    #[inline]
    pub fn next_work(&self) -> Option<Time> {
        (self.due < Time::NEVER).then_some(self.due)
    }

    #[inline]
    pub fn next_release(&self) -> Option<Time> {
        (self.release < Time::NEVER).then_some(self.release)
    }

    pub fn schedule(&mut self, at: Time, change: Change) {
        let place = self.changes.partition_point(|&(other, _)| other <= at);
        self.changes.insert(place, (at, change));
        self.plan_changed();
    }

    fn apply(&mut self, change: Change) {
        match change {
            Change::Delay(delay) => self.delay = delay,
            Change::CatchUp(catch_up) => self.catch_up = catch_up,
            Change::Rate(rate) => self.line.set_rate(self.clock, rate),
            Change::Limit(limit) => self.discipline.set_limit(limit),
            Change::Impairments(spec) => self.impair(|impairments| impairments.set_spec(&spec)),
            Change::Setting(setting) => self.impair(|impairments| impairments.set(setting)),
        }
        self.look_ahead();
        self.work(self.clock);
    }

    /// Makes a change of impairments. What comes after a change of the jitter catches up with what it has
    /// held, as after a change of the delay.
    fn impair(&mut self, change: impl FnOnce(&mut Impairments)) {
        let jitter = self.impairments.spec().jitter;
        change(&mut self.impairments);
        if self.impairments.spec().jitter != jitter {
            self.front.hold(self.impairments.last_release());
        }
    }

    pub fn delay(&self) -> Span {
        self.delay
    }

    pub fn backlog(&self) -> Backlog {
        let mut backlog = self.discipline.backlog();
        for service in self.outlet.iter().chain(self.line.current()) {
            backlog.packets += u64::from(service.packet.is_some());
            backlog.bytes += u64::from(service.bytes);
        }
        if let Some((packets, bytes)) = self.board.as_ref().map(Board::backlog) {
            backlog.packets += packets;
            backlog.bytes += bytes;
        }
        backlog
    }

    pub fn in_flight(&self) -> usize {
        self.in_flight.len() + self.under_way.as_ref().map_or(0, Rides::len)
    }

    pub fn counts(&self) -> Counts {
        let mut counts = self.counts;
        counts.marked = self.drops.marked();
        counts
    }

    pub fn achieved(&self) -> Achieved {
        self.impairments.achieved()
    }
}

/// The earlier of two instants, if there are any.
#[inline]
fn earliest(one: Option<Time>, other: Option<Time>) -> Option<Time> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, None) => one,
        (None, other) => other,
    }
}
