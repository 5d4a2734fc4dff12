//! One direction of a path: discipline, line, impairments, delay line.

use crate::impairment::{Achieved, Fate, ImpairmentSpec, Impairments, Setting};
use crate::schedule::Plan;
use crate::{AnyDiscipline, Backlog, DelayLine, Discipline, Drops, Limit, Line, LinkSpec, Service};
use std::collections::VecDeque;
use trunkline_core::{Carried, Cause, Counts, DropCause, Rate, Seed, Span, Time};

/// One direction of a path, at work, and the packets `P` that it carries.
///
/// The engine calls [`offer`](Link::offer) for each arrival in order of time, [`advance`](Link::advance)
/// so that the line works up to an instant, [`take`](Link::take) until it answers `None`, and
/// [`dropped`](Link::dropped) to get back what was given up.
#[derive(Debug)]
pub struct Link<P> {
    discipline: AnyDiscipline<P>,
    buffer: VecDeque<Service<P>>,
    buffered: u64,
    buffer_size: u64,
    line: Line<P>,
    impairments: Impairments,
    delay: Span,
    in_flight: DelayLine<P>,
    plan: Plan,
    changes: VecDeque<(Time, Change)>,
    clock: Time,
    counts: Counts,
    drops: Drops<P>,
}

/// A setting that changes while traffic flows.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// The delay; packets under way keep theirs.
    Delay(Span),
    /// The line's rate; what is on the line goes on at the new rate.
    Rate(Option<Rate>),
    /// The discipline's limit; what waits stays.
    Limit(Limit),
    /// All impairments.
    Impairments(ImpairmentSpec),
    /// One impairment; the others stay.
    Setting(Setting),
}

/// A packet that has come out at the far end.
#[derive(Debug)]
pub struct Delivered<P> {
    /// When it is due there.
    pub release: Time,
    /// The packet, its ledger complete.
    pub packet: P,
}

impl<P: Carried> Link<P> {
    /// A link as `spec` says, whose slot clock, trace and schedule start at `origin`. Its randomness
    /// comes from the streams of `seed` under `name`.
    pub fn new(spec: &LinkSpec, seed: Seed, name: &str, origin: Time) -> Link<P> {
        Link {
            discipline: AnyDiscipline::new(&spec.discipline),
            buffer: VecDeque::new(),
            buffered: 0,
            buffer_size: spec.output_buffer.bytes(),
            line: Line::new(spec.framing, spec.rate, spec.trace.as_deref(), origin),
            impairments: Impairments::new(&spec.impairments, seed, name),
            delay: spec.delay,
            in_flight: DelayLine::default(),
            plan: Plan::new(&spec.schedule, origin),
            changes: VecDeque::new(),
            clock: origin,
            counts: Counts::default(),
            drops: Drops::default(),
        }
    }

    /// A packet arrives at `at`, or with the last thing that has happened where that was later.
    pub fn offer(&mut self, at: Time, packet: P) {
        self.advance(at);
        self.clock = self.clock.max(at);
        self.counts.entered += 1;
        self.counts.entered_bytes += u64::from(packet.size());
        self.discipline.enqueue(self.clock, packet, &mut self.drops);
        self.fill();
        self.work(self.clock);
    }

    /// Lets the line work up to `to`. A schedule that repeats never ends: with one, `to` has to be an
    /// instant that the run can reach, not [`Time::NEVER`].
    pub fn advance(&mut self, to: Time) {
        while let Some(at) = self.next_change().filter(|&at| at <= to) {
            self.work(at);
            self.clock = self.clock.max(at);
            if let Some(change) = self.take_change(at) {
                self.apply(change);
            }
        }
        self.work(to);
    }

    fn next_change(&self) -> Option<Time> {
        let asked = self.changes.front().map(|&(at, _)| at);
        self.plan.due().into_iter().chain(asked).min()
    }

    /// Takes the change that is due at `at`: the schedule's first, so that what was asked for wins.
    fn take_change(&mut self, at: Time) -> Option<Change> {
        if self.plan.due() == Some(at) {
            return self.plan.take();
        }
        self.changes.pop_front().map(|(_, change)| change)
    }

    /// Finishes every piece that ends by `to` and starts what follows. The clock stays at the last thing
    /// that happened, so that an engine may tell of an arrival late as long as nothing else came between.
    fn work(&mut self, to: Time) {
        while self.line.done().is_some_and(|done| done <= to) {
            if let Some((done, service)) = self.line.finish() {
                self.clock = self.clock.max(done);
                if let Some(packet) = service.packet {
                    self.depart(done, packet);
                }
            }
            self.fill();
        }
    }

    /// Puts the next piece onto the line if that is idle, past the output buffer where it is empty, and
    /// moves work from the discipline to the buffer while that holds less than its size.
    fn fill(&mut self) {
        if self.line.done().is_none() {
            let Some(service) = self.next_piece() else { return };
            self.line.start(self.clock, service);
        }
        while self.buffered < self.buffer_size
            && let Some(service) = self.discipline.dequeue(self.clock, &mut self.drops)
        {
            self.buffered += u64::from(service.bytes);
            self.buffer.push_back(service);
        }
    }

    fn next_piece(&mut self) -> Option<Service<P>> {
        let Some(service) = self.buffer.pop_front() else {
            return self.discipline.dequeue(self.clock, &mut self.drops);
        };
        self.buffered -= u64::from(service.bytes);
        Some(service)
    }

    /// A packet has left the line: book where its time went and send it on its way.
    fn depart(&mut self, at: Time, mut packet: P) {
        let sojourn = at.since(packet.entered());
        let transmit = self.line.nominal(packet.size(), packet.controls()).min(sojourn);
        packet.book(Cause::Transmit, transmit);
        packet.book(Cause::Queue, sojourn - transmit);
        match self.impairments.judge(at, self.delay, &packet) {
            Fate::Lost(cause) => self.drops.push(packet, cause),
            Fate::Arrives { release, unordered, copies } => {
                packet.set_copies(copies);
                packet.book(Cause::Propagate, release.since(at));
                self.counts.duplicated += u64::from(copies.saturating_sub(1));
                if unordered {
                    self.in_flight.push_unordered(release, packet);
                } else {
                    self.in_flight.push(release, packet);
                }
            }
        }
    }

    /// Takes the next packet that is due by `now`.
    pub fn take(&mut self, now: Time) -> Option<Delivered<P>> {
        let (release, packet) = self.in_flight.pop(now)?;
        let copies = u64::from(packet.copies());
        self.counts.delivered += copies;
        self.counts.delivered_bytes += copies * u64::from(packet.size());
        Some(Delivered { release, packet })
    }

    /// Counts `packets` that entered but were lost by the engine before they could be offered.
    pub fn turned_away(&mut self, packets: u64, cause: DropCause) {
        self.counts.entered += packets;
        self.counts.drop_many(cause, packets);
    }

    /// Counts one copy of `packet`, which was taken, as lost by the engine after all.
    pub fn undelivered(&mut self, packet: &P, cause: DropCause) {
        self.counts.delivered -= 1;
        self.counts.delivered_bytes -= u64::from(packet.size());
        self.counts.drop(cause);
    }

    /// Takes out what was given up since the last call, with its causes.
    pub fn dropped(&mut self) -> impl Iterator<Item = (P, DropCause)> + '_ {
        let counts = &mut self.counts;
        self.drops.drain().inspect(|&(_, cause)| counts.drop(cause))
    }

    /// Has anything been given up since the last call of [`dropped`](Link::dropped)?
    pub fn has_dropped(&self) -> bool {
        !self.drops.is_empty()
    }

    /// When the link next needs anything at all: [`advance`](Link::advance) for its line or a scheduled
    /// change, or [`take`](Link::take) for what is due at the far end.
    pub fn next_event(&self) -> Option<Time> {
        self.next_work().into_iter().chain(self.next_release()).min()
    }

    /// When the line or a scheduled change next needs [`advance`](Link::advance).
    pub fn next_work(&self) -> Option<Time> {
        self.line.done().into_iter().chain(self.next_change()).min()
    }

    /// When the next packet is due at the far end, of those that have left the line.
    pub fn next_release(&self) -> Option<Time> {
        self.in_flight.next_release()
    }

    /// Changes a setting at `at`, or now where that has passed. Changes at one instant happen in the
    /// order in which they were asked for.
    pub fn schedule(&mut self, at: Time, change: Change) {
        let place = self.changes.partition_point(|&(other, _)| other <= at);
        self.changes.insert(place, (at, change));
    }

    fn apply(&mut self, change: Change) {
        match change {
            Change::Delay(delay) => self.delay = delay,
            Change::Rate(rate) => self.line.set_rate(self.clock, rate),
            Change::Limit(limit) => self.discipline.set_limit(limit),
            Change::Impairments(spec) => self.impairments.set_spec(&spec),
            Change::Setting(setting) => self.impairments.set(setting),
        }
        self.work(self.clock);
    }

    /// The delay in force.
    pub fn delay(&self) -> Span {
        self.delay
    }

    /// What waits: in the discipline, in the output buffer and on the line.
    pub fn backlog(&self) -> Backlog {
        let mut backlog = self.discipline.backlog();
        for service in self.buffer.iter().chain(self.line.current()) {
            backlog.packets += u64::from(service.packet.is_some());
            backlog.bytes += u64::from(service.bytes);
        }
        backlog
    }

    /// How many packets are in the delay line.
    pub fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// What became of the packets so far. What was given up counts when [`dropped`](Link::dropped)
    /// hands it out.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// What the impairments have done so far.
    pub fn achieved(&self) -> Achieved {
        self.impairments.achieved()
    }
}
