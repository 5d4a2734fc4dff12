//! The work of the dataplane's loop on a network: read, let the links work, send, and tell when there is more.

use super::lane::Lane;
use super::transit::{self, Transit, way_of};
use super::{Inlet, Plane, bit, like};
use crate::DataplaneError;
use crate::clock::Clock;
use crate::dataplane::BUDGET;
use crate::snapshot::LaneSnapshot;
use trunkline_core::{Cause, DropCause, Packet, Span, Time};
use trunkline_path::{Change, Delivered};
use trunkline_port::{Port, PortError};

/// The result of a reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Taken {
    /// The most frames that came from one port.
    pub most: usize,
    /// When the first of all came.
    pub earliest: Option<Time>,
}

impl Taken {
    /// Notes a frame that came at `at`.
    fn note(&mut self, at: Time) {
        self.earliest = Some(self.earliest.map_or(at, |earliest| earliest.min(at)));
    }
}

/// The next event among the lanes that are served together.
#[derive(Clone, Copy)]
enum Next {
    /// A frame that came in by this port enters its first lane.
    Arrival(usize),
    /// This lane has something to do.
    Lane(usize),
    /// This medium has something to do.
    Medium(usize),
}

/// The result, or nothing if a device is down, for that passes.
fn unless_down<T: Default>(result: Result<T, PortError>) -> Result<T, PortError> {
    match result {
        Err(error) if error.is_passing() => Ok(T::default()),
        other => other,
    }
}

impl Plane {
    /// The ports whose frames end a sleep.
    pub(crate) fn ports(&self) -> impl Iterator<Item = &dyn Port> {
        self.inlets.iter().map(|inlet| &*inlet.port as &dyn Port)
    }

    /// Reads what waits at the ports.
    ///
    /// # Errors
    /// If receiving fails.
    pub(crate) fn receive(&mut self, clock: &mut Clock) -> Result<Taken, DataplaneError> {
        if let Some(origin) = self.live.wanted_restart() {
            self.restart(origin);
        }
        clock.synchronise();
        let began = clock.now();
        let mut settled = began.before(self.lag);
        let (mut taken, mut frames) = (Taken::default(), 0);
        for index in 0..self.inlets.len() {
            let (count, latest) = unless_down(self.read(index, clock, &mut taken))?;
            let emptied = count < BUDGET;
            if emptied {
                self.inlets[index].arrivals.drained(began);
            } else {
                settled = settled.min(latest);
            }
            for &lane in &self.inlets[index].feeds {
                // A line must not work beyond what has been read, however late it is when it comes to work: what
                // was not read yet arrived soon after that, and would be taken for having arrived later.
                let all = began.before(self.lanes[lane].lag());
                self.lanes[lane].settled = if emptied { all } else { all.min(latest) };
            }
            taken.most = taken.most.max(count);
            frames += count;
        }
        clock.read(frames);
        self.settled = settled;
        Ok(taken)
    }

    /// Reads what waits at a port; answers how many frames came, and when the last of them did.
    fn read(
        &mut self,
        index: usize,
        clock: &mut Clock,
        taken: &mut Taken,
    ) -> Result<(usize, Time), PortError> {
        let Plane { inlets, lanes, ways, pool, live, strays, unstamped, tap, .. } = self;
        let Inlet { port, waiting, arrivals, whole, .. } = &mut inlets[index];
        let mut latest = waiting.back().map_or(Time::ZERO, |packet| packet.entered);
        let count = port.receive(BUDGET, &mut |frame| {
            // Stamps that come out of order are put into it: a port is one wire.
            let at = clock.stamp(frame.stamp, arrivals);
            taken.note(at);
            latest = latest.max(at);
            *unstamped |= frame.stamp.is_none();
            let enters = |&way: &usize| ways.get(way).is_some_and(|it| it.entry == index);
            let Some(number) = whole.or_else(|| way_of(frame.bytes).filter(enters)) else {
                *strays += 1;
                return;
            };
            let (way, counts) = (&ways[number], live.way(number));
            let lane = way.lanes[0];
            counts.send();
            tap.arrived(lane, clock.realtime(at), frame.bytes);
            let Some(packet) = transit::packet(frame.bytes, (number, way.takes), latest, pool)
            else {
                counts.drop_one();
                let cause = DropCause::NoBuffer;
                tap.dropped(lane, clock.realtime(at), frame.bytes, cause);
                return lanes[lane].link.turned_away(1, cause);
            };
            match lanes[lane].place.alone {
                true => lanes[lane].link.offer(latest, packet),
                false => waiting.push_back(packet),
            }
        })?;
        Ok((count, latest))
    }

    /// Lets the links work and sends what is due; answers how many frames that were.
    ///
    /// # Errors
    /// If a device is gone, or down and that is not expected to pass.
    pub(crate) fn serve(&mut self, clock: &mut Clock) -> Result<usize, DataplaneError> {
        self.work(self.settled, clock);
        let mut sent = 0;
        for index in 0..self.lanes.len() {
            let Lane { place, settled, .. } = self.lanes[index];
            if place.alone {
                self.lanes[index].link.advance(settled);
                if self.lanes[index].link.has_dropped() {
                    let now = clock.now();
                    self.give_back(index, now, clock);
                }
            }
            if place.exit {
                sent += unless_down(self.send_due(index, clock))?;
            }
        }
        Ok(sent)
    }

    /// When there is next something to do, as far as is known now.
    pub(crate) fn next_wake(&self) -> Option<Time> {
        let work = self.next().map(|(at, _)| at + self.lag);
        let exits = self.lanes.iter().filter(|lane| lane.place.exit);
        let wake = |lane: &Lane| match lane.place.alone {
            true => lane.next_wake(lane.lag()),
            false => lane.next_release(),
        };
        work.into_iter().chain(exits.filter_map(wake)).min()
    }

    /// The time that a frame may lie in a port's ring without being late: the least time that any frame is
    /// under way as the links are set now, and none if ports give no arrival stamps.
    pub(crate) fn patience(&self) -> Span {
        let whole = |route: &[usize]| route.iter().map(|&lane| self.lanes[lane].link.delay()).sum();
        let least = || self.routes.iter().map(|route| whole(route)).min().unwrap_or_default();
        if self.unstamped { Span::ZERO } else { least() }
    }

    /// Looks after the devices.
    ///
    /// # Errors
    /// If a device is gone, or down and that is not expected to pass.
    pub(crate) fn pulse(&mut self) -> Result<(), DataplaneError> {
        self.down = 0;
        for (index, inlet) in self.inlets.iter_mut().enumerate() {
            match inlet.port.check() {
                Err(error) if error.is_passing() => self.down |= bit(index),
                other => other?,
            }
        }
        self.was_down |= self.down;
        self.account();
        Ok(())
    }

    /// A bit for each port whose device was down at the last pulse and may come up again.
    pub(crate) fn down(&self) -> u64 {
        self.down
    }

    /// Counts what the ports lost.
    pub(crate) fn account(&mut self) {
        for inlet in &mut self.inlets {
            let (drops, refusals) = (inlet.port.kernel_drops(), inlet.port.refusals().total());
            if let Some(lane) = inlet.entry {
                let link = &mut self.lanes[lane].link;
                link.turned_away(drops - inlet.ring_drops, DropCause::RingFull);
                link.turned_away(refusals - inlet.refusals, DropCause::Unsegmentable);
            }
            (inlet.ring_drops, inlet.refusals) = (drops, refusals);
        }
    }

    /// Changes a setting of the lane with index `lane` at `at`.
    pub(crate) fn change(&mut self, lane: usize, at: Time, change: Change) {
        self.lanes[lane].change(at, change);
        self.measure_lag();
    }

    /// The state of each lane so far.
    pub(crate) fn snapshots(&self) -> Vec<LaneSnapshot> {
        self.lanes.iter().map(|lane| lane.snapshot(self.on_medium(lane))).collect()
    }

    /// The next event among the lanes together, and its time.
    fn next(&self) -> Option<(Time, Next)> {
        let arrival = |(index, inlet): (usize, &Inlet)| {
            Some((inlet.waiting.front()?.entered, Next::Arrival(index)))
        };
        let arrivals = self.inlets.iter().enumerate().filter_map(arrival);
        let lanes = self.together.iter().map(|&index| (self.lanes[index].due, Next::Lane(index)));
        let media = self.media.iter().enumerate();
        let media = media.map(|(index, shared)| (shared.due(), Next::Medium(index)));
        let first = arrivals.chain(lanes).chain(media).min_by_key(|&(at, _)| at)?;
        (first.0 != Time::NEVER).then_some(first)
    }

    /// Lets everything happen among the lanes together that happens by `to`, in order.
    fn work(&mut self, to: Time, clock: &Clock) {
        while let Some((at, next)) = self.next()
            && at <= to
        {
            self.sample(at);
            match next {
                Next::Arrival(port) => self.take_in(port, clock),
                Next::Lane(lane) => self.serve_lane(lane, at, clock),
                Next::Medium(medium) => self.serve_medium(medium, at, clock),
            }
        }
        self.sample(to);
    }

    fn take_in(&mut self, port: usize, clock: &Clock) {
        if let Some(packet) = self.inlets[port].waiting.pop_front() {
            let lane = self.ways[packet.body.way()].lanes[0];
            self.enter(lane, packet.entered, packet, clock);
        }
    }

    fn enter(&mut self, lane: usize, at: Time, packet: Packet<Transit>, clock: &Clock) {
        if let Some(station) = self.lanes[lane].station() {
            return self.enter_medium(station, at, packet, clock);
        }
        self.lanes[lane].link.offer(at, packet);
        self.look_after(lane, at, clock);
    }

    /// After anything has happened on a lane: gives back what it dropped, and looks ahead.
    fn look_after(&mut self, lane: usize, at: Time, clock: &Clock) {
        self.give_back(lane, at, clock);
        self.lanes[lane].look_ahead();
    }

    /// Gives back what a lane has dropped by `at`.
    fn give_back(&mut self, index: usize, at: Time, clock: &Clock) {
        let Plane { lanes, pool, live, tap, .. } = self;
        let link = &mut lanes[index].link;
        if link.has_dropped() {
            let mut sent = Span::ZERO;
            for (packet, cause) in link.dropped() {
                sent += packet.ledger.get(Cause::Transmit);
                live.way(packet.body.way()).drop_one();
                tap.dropped(index, clock.realtime(at), pool.bytes(&packet.body.frame), cause);
                pool.free(packet.body.frame);
            }
            lanes[index].lost_after(sent);
        }
    }

    /// Lets a lane work up to `at`, and moves on what comes out of it.
    fn serve_lane(&mut self, index: usize, at: Time, clock: &Clock) {
        self.lanes[index].link.advance(at);
        if !self.lanes[index].place.exit {
            while let Some(delivered) = self.lanes[index].link.take(at) {
                self.forward(index, delivered, clock);
            }
        }
        self.look_after(index, at, clock);
    }

    /// Moves a packet on to the next lane of its way, and its copies behind it.
    pub(super) fn forward(
        &mut self,
        index: usize,
        delivered: Delivered<Packet<Transit>>,
        clock: &Clock,
    ) {
        let Delivered { release, packet } = delivered;
        let way = packet.body.way();
        self.lanes[index].crossed(&packet.ledger);
        self.ways[way].book(packet.body.hop(), &packet.ledger);
        packet.body.note_hop(&mut self.pool, index, &packet.ledger);
        let hop = (index, self.ways[way].lanes[packet.body.hop() + 1]);
        for _ in 1..packet.copies {
            match packet.body.copy(&mut self.pool) {
                Some(body) => {
                    self.live.way(way).duplicate();
                    self.move_on(hop, release, like(&packet, body), clock);
                }
                None => self.lanes[index].lose_copy(&packet),
            }
        }
        self.move_on(hop, release, packet, clock);
    }

    /// Lets a packet enter the second lane of a hop as it comes out of the first.
    fn move_on(
        &mut self,
        (last, next): (usize, usize),
        at: Time,
        mut packet: Packet<Transit>,
        clock: &Clock,
    ) {
        let (stamp, bytes) = (clock.realtime(at), self.pool.bytes(&packet.body.frame));
        self.tap.departed(last, stamp, bytes);
        self.tap.arrived(next, stamp, bytes);
        (packet.entered, packet.copies, packet.ledger) = (at, 1, Default::default());
        packet.body.go_on();
        self.enter(next, at, packet, clock);
    }

    /// Takes the samples of backlogs that are due before `now`: between two events no link does anything
    /// that it would not have done anyway, so that they can be taken afterwards.
    fn sample(&mut self, now: Time) {
        let Some((mut next, every)) = self.sampling else { return };
        while next < now {
            for index in 0..self.lanes.len() {
                let (_, waits) = self.on_medium(&self.lanes[index]);
                self.lanes[index].sample(next, waits.bytes);
            }
            next += every;
        }
        self.sampling = Some((next, every));
    }
}
