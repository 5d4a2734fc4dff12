//! What the stations of every medium have: queues, the frame in hand, counts, and what is under way to them.

use super::Ground;
use super::transit::Transit;
use crate::line::Wire;
use crate::link::book_departure;
use crate::{AnyDiscipline, Backlog, Discipline, Drops, Service};
use std::collections::BTreeMap;
use trunkline_core::{Carried, Cause, Channel, Counts, DropCause, Ecn, Hosts, Metered, Span, Time};

/// A station of a medium, numbered in the order of the names given to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StationId(pub usize);

/// A packet that has come to its station.
#[derive(Debug)]
pub struct Heard<P> {
    /// When its last bit is there.
    pub release: Time,
    /// The station that sent it.
    pub from: StationId,
    /// The station that it is for.
    pub to: StationId,
    /// How long its own bits took, of the time since it entered.
    pub nominal: Span,
    /// How long it kept its own station sending, of that. No time of a copy, but for one of all.
    pub(super) sending: Span,
    /// How long it was on its way from station to station.
    pub way: Span,
    /// The packet, its ledger complete.
    pub packet: P,
}

/// The stations of a medium.
#[derive(Debug)]
pub(super) struct Stations<P> {
    pub(super) list: Vec<Station<P>>,
    pub(super) wire: Wire,
    /// Frames that switches hold.
    pub(super) transit: Transit<P>,
    /// What has been sent, by when it comes to its station and in the order of sending.
    under_way: BTreeMap<(Time, u64), Heard<P>>,
    sent: u64,
    pub(super) given_up: Vec<(StationId, P, DropCause)>,
}

/// A station's queue, and what became of what it was given.
#[derive(Debug)]
pub(super) struct Station<P> {
    queue: AnyDiscipline<Addressed<P>>,
    drops: Drops<Addressed<P>>,
    /// The frame in hand, until it has been sent or given up.
    pub(super) frame: Option<Service<Addressed<P>>>,
    pub(super) counts: Counts,
    /// Of the packets marked, those that the medium has marked on their way.
    pub(super) marked_on_way: u64,
    /// How long it has sent what has come to its stations or was lost on its way.
    pub(super) busy: Span,
    /// Its place in the order of names, by which ties are broken.
    rank: usize,
}

/// A packet with the station that it is for.
#[derive(Debug)]
pub(super) struct Addressed<P> {
    pub(super) to: To<P>,
    pub(super) packet: P,
}

/// The stations that a packet is for.
#[derive(Debug, Clone, Copy)]
pub(super) enum To<P> {
    One(StationId),
    /// All others, each of which gets a copy.
    All(fn(&P) -> P),
}

impl<P: Metered> Metered for Addressed<P> {
    fn size(&self) -> u32 {
        self.packet.size()
    }
    fn controls(&self) -> u32 {
        self.packet.controls()
    }
    fn channel(&self) -> Channel {
        self.packet.channel()
    }
    fn hosts(&self) -> Option<Hosts> {
        self.packet.hosts()
    }
    fn band(&self) -> u8 {
        self.packet.band()
    }
    fn ecn(&self) -> Ecn {
        self.packet.ecn()
    }
    fn mark(&mut self) {
        self.packet.mark();
    }
}

/// What an access does with stations.
impl<P: Carried> Stations<P> {
    /// A station's place in the order of names, which does not depend on the order of their declaration.
    pub fn rank(&self, station: StationId) -> usize {
        self.list[station.0].rank
    }

    /// Takes a frame in hand, unless there is one. Whether there is one now.
    pub fn fetch(&mut self, now: Time, station: StationId) -> bool {
        let it = &mut self.list[station.0];
        if it.frame.is_none() {
            it.frame = it.queue.dequeue(now, &mut it.drops);
            self.collect_drops(station);
        }
        self.list[station.0].frame.is_some()
    }

    /// From when on a station has a frame, now at the earliest: later if its queue holds back what waits there.
    pub fn wants(&self, station: StationId, now: Time) -> Option<Time> {
        let Station { queue, frame, .. } = &self.list[station.0];
        if frame.is_some() || !queue.holds() {
            return (self.backlog(station).packets > 0).then_some(now);
        }
        queue.next_ready().map(|ready| ready.max(now))
    }

    /// The same of a station whose queue has just given nothing: it is asked again later than now.
    pub fn wants_later(&self, station: StationId, now: Time) -> Option<Time> {
        self.wants(station, now).map(|at| at.max(now + Span::from_nanos(1)))
    }

    /// From when on a station asks that has a packet more and has asked from `asked` on so far: sooner, if the packet makes
    /// ready what its queue holds back. A frame in hand keeps its instant, which may be that of a back-off.
    pub fn asks_from(&self, station: StationId, now: Time, asked: Option<Time>) -> Time {
        match asked {
            None => now,
            Some(at) if self.list[station.0].frame.is_some() => at,
            Some(at) => self.wants(station, now).map_or(at, |ready| ready.min(at)),
        }
    }

    /// How long the frame in hand takes to send. No time without a frame.
    pub fn length(&self, station: StationId) -> Span {
        let frame = self.list[station.0].frame.as_ref();
        frame.map_or(Span::ZERO, |frame| self.wire.nominal(frame.bytes, frame.controls))
    }

    /// Bytes of the frame in hand. None without a frame.
    pub fn size(&self, station: StationId) -> u32 {
        self.list[station.0].frame.as_ref().map_or(0, |frame| frame.bytes)
    }

    /// Puts the frame in hand on the channel, on which nothing else is. Returns when its last bit has left.
    pub fn send(&mut self, at: Time, station: StationId) -> Time {
        match &self.list[station.0].frame {
            Some(frame) => self.wire.send(at, frame.piece()),
            None => at,
        }
    }

    /// The frame in hand left at `departed` after it took `length` itself, and comes to a station `way` later.
    pub fn deliver(
        &mut self,
        from: StationId,
        departed: Time,
        length: Span,
        way: impl Fn(StationId) -> Span,
    ) {
        let frame = self.list[from.0].frame.take();
        let Some(Addressed { to, packet }) = frame.and_then(|it| it.packet) else { return };
        let copy = match to {
            To::One(to) => {
                return self.set_out((from, to), departed, (length, length), way(to), packet);
            }
            To::All(copy) => copy,
        };
        let mut others = (0..self.list.len()).map(StationId).filter(|&to| to != from);
        let Some(last) = others.next_back() else { return };
        for to in others {
            self.list[from.0].counts.duplicated += 1;
            // The bits of all copies are the same, and are sent once.
            self.set_out((from, to), departed, (length, Span::ZERO), way(to), copy(&packet));
        }
        self.set_out((from, last), departed, (length, length), way(last), packet);
    }

    /// A packet that left at `departed` is under way to a station, where it is `delay` later. Its bits took `length`, and
    /// kept its own station sending for `own` of that.
    pub(super) fn set_out(
        &mut self,
        (from, to): (StationId, StationId),
        departed: Time,
        (length, own): (Span, Span),
        delay: Span,
        mut packet: P,
    ) {
        let nominal = length.min(departed.since(packet.entered()));
        if P::BOOKS {
            book_departure(&mut packet, departed, length);
            packet.book(Cause::Propagate, delay);
        }
        let (release, sending) = (departed + delay, own.min(nominal));
        self.under_way.insert(
            (release, self.sent),
            Heard { release, from, to, nominal, sending, way: delay, packet },
        );
        self.sent += 1;
    }

    /// Gives the frame in hand up.
    pub fn give_up(&mut self, station: StationId, cause: DropCause) {
        let frame = self.list[station.0].frame.take();
        if let Some(Addressed { packet, .. }) = frame.and_then(|it| it.packet) {
            self.list[station.0].counts.drop(cause);
            self.given_up.push((station, packet, cause));
        }
    }

    fn collect_drops(&mut self, station: StationId) {
        let it = &mut self.list[station.0];
        it.counts.marked = it.drops.marked() + it.marked_on_way;
        for (Addressed { packet, .. }, cause) in it.drops.drain() {
            it.counts.drop(cause);
            self.given_up.push((station, packet, cause));
        }
    }
}

/// What a medium does with them.
impl<P: Carried> Stations<P> {
    /// Stations with nothing to send.
    pub fn new(ground: &Ground<'_>) -> Stations<P> {
        let (medium, names) = (ground.medium, ground.stations);
        let mut by_name: Vec<usize> = (0..names.len()).collect();
        by_name.sort_by_key(|&station| names[station]);
        let mut ranks = vec![0; names.len()];
        by_name.iter().enumerate().for_each(|(rank, &station)| ranks[station] = rank);
        let station = |(index, name): (usize, &&str)| Station {
            queue: AnyDiscipline::new(
                &medium.discipline,
                ground.seed,
                &format!("{} {name}", ground.name),
            ),
            drops: Drops::default(),
            frame: None,
            counts: Counts::default(),
            marked_on_way: 0,
            busy: Span::ZERO,
            rank: ranks[index],
        };
        Stations {
            list: names.iter().enumerate().map(station).collect(),
            wire: Wire::new(medium.framing, medium.rate, None, Time::ZERO),
            transit: Transit::default(),
            under_way: BTreeMap::new(),
            sent: 0,
            given_up: Vec::new(),
        }
    }

    pub fn count(&self) -> usize {
        self.list.len()
    }

    pub fn introduce(&mut self, station: StationId, channel: Channel, hosts: Hosts) {
        self.list[station.0].queue.introduce(channel, hosts);
    }

    pub fn enqueue(&mut self, now: Time, from: StationId, to: StationId, packet: P) {
        self.enqueue_for(now, from, To::One(to), packet);
    }

    pub fn enqueue_for_all(&mut self, now: Time, from: StationId, packet: P)
    where
        P: Clone,
    {
        self.enqueue_for(now, from, To::All(P::clone), packet);
    }

    fn enqueue_for(&mut self, now: Time, from: StationId, to: To<P>, packet: P) {
        let it = &mut self.list[from.0];
        it.counts.entered += 1;
        it.counts.entered_bytes += u64::from(packet.size());
        it.queue.enqueue(now, Addressed { to, packet }, &mut it.drops);
        self.collect_drops(from);
    }

    pub fn take(&mut self, now: Time) -> Option<Heard<P>> {
        let first = self.under_way.first_entry().filter(|first| first.key().0 <= now)?;
        let heard = first.remove();
        let station = &mut self.list[heard.from.0];
        station.busy += heard.sending;
        station.counts.delivered += 1;
        station.counts.delivered_bytes += u64::from(heard.packet.size());
        Some(heard)
    }

    pub fn dropped(&mut self) -> impl Iterator<Item = (StationId, P, DropCause)> + '_ {
        self.given_up.drain(..)
    }

    pub fn has_dropped(&self) -> bool {
        !self.given_up.is_empty()
    }

    pub fn next_release(&self) -> Option<Time> {
        self.under_way.first_key_value().map(|(&(release, _), _)| release)
    }

    pub fn counts(&self, station: StationId) -> Counts {
        self.list[station.0].counts
    }

    pub fn busy(&self, station: StationId) -> Span {
        self.list[station.0].busy
    }

    pub fn backlog(&self, station: StationId) -> Backlog {
        let Station { queue, frame, .. } = &self.list[station.0];
        let mut backlog = queue.backlog();
        if let Some(packet) = frame.as_ref().and_then(|frame| frame.packet.as_ref()) {
            backlog.packets += 1;
            backlog.bytes += u64::from(packet.size());
        }
        backlog
    }
}
