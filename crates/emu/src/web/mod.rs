//! A network of links in one dataplane: a frame comes in at one port, crosses one link after the other, and
//! leaves by another port, with one crossing of the kernel at each end however many links lie between.
//!
//! The links are served in order of time, as in a simulator whose clock is the machine's: a frame that one
//! link releases at an instant arrives at the next at that instant, whenever the loop comes to it. So
//! lateness does not add up along the way.

mod counts;
mod leg;
mod plan;
#[cfg(test)]
mod tests;
mod transit;

pub use counts::{HopSums, Live, WayCounts};
pub use leg::LegResult;
pub use plan::{LanePlan, WayPlan, WebPlan, way_mac};

use crate::EmuError;
use crate::clock::{Arrivals, Clock};
use crate::dataplane::BUDGET;
use crate::lane::LAG;
use crate::pool::FramePool;
use crate::snapshot::LaneSnapshot;
use crate::work::{Taken, Work};
use counts::Way;
use leg::Leg;
use std::collections::VecDeque;
use std::sync::Arc;
use transit::{Transit, way_of};
use trunkline_core::{DropCause, Packet, Span, Time};
use trunkline_lab::available_memory;
use trunkline_measure::Times;
use trunkline_path::{Change, Delivered};
use trunkline_port::Port;

/// Frames of one port that have been read and that the links have not come to.
const WAITING: usize = 4 * BUDGET;

/// Links, the ports at their ends, and the ways of frames through them.
pub struct Web {
    inlets: Vec<Inlet>,
    legs: Vec<Leg>,
    ways: Vec<Way>,
    pool: FramePool,
    live: Arc<Live>,
    /// How far the links' work lags behind the clock; see [`LAG`].
    lag: Span,
    /// All frames that arrived before this instant have been read; the links may work up to it.
    settled: Time,
    /// When backlogs are sampled next, and how often.
    sampling: Option<(Time, Span)>,
    /// Least time that any frame is under way.
    patience: Span,
    /// Some port gives no arrival stamps.
    unstamped: bool,
    /// Frames that have no way.
    strays: u64,
}

/// A port, and what has come in by it.
struct Inlet {
    port: Box<dyn Port>,
    arrivals: Arrivals,
    waiting: VecDeque<Packet<Transit>>,
    /// The leg that answers for what the port lost.
    entry: Option<usize>,
    ring_drops: u64,
    refusals: u64,
}

/// What happens next.
#[derive(Clone, Copy)]
enum Next {
    /// A frame that came in by this port enters its first leg.
    Arrival(usize),
    /// This leg has something to do.
    Leg(usize),
}

impl Web {
    /// A network as `plan` says.
    ///
    /// # Errors
    /// [`EmuError::Memory`] where the system does not give what the plan needs.
    pub fn new(plan: WebPlan) -> Result<Web, EmuError> {
        let WebPlan { ports, lanes, ways, seed, origin, bound, arena, sample } = plan;
        let exits: Vec<usize> = ways.iter().filter_map(|way| way.lanes.last().copied()).collect();
        let pool = FramePool::try_new(arena)
            .ok_or_else(|| EmuError::Memory { needed: arena, available: available_memory() })?;
        let leg = |(index, lane): (usize, LanePlan)| {
            let most = sample.map_or(0, |(_, most)| if lane.observed { most } else { 0 });
            Leg::new(lane, seed, origin, bound, exits.contains(&index), most)
        };
        let legs = lanes.into_iter().enumerate().map(leg).collect();
        let inlet = |(index, port)| Inlet {
            port,
            arrivals: Arrivals::default(),
            waiting: VecDeque::with_capacity(WAITING),
            entry: ways.iter().find(|way| way.entry == index).map(|way| way.lanes[0]),
            ring_drops: 0,
            refusals: 0,
        };
        let inlets = ports.into_iter().enumerate().map(inlet).collect();
        let live = Arc::new(Live::new(ways.len()));
        let ways: Vec<Way> = ways.into_iter().map(Way::new).collect();
        let mut web = Web {
            inlets,
            legs,
            ways,
            pool,
            live,
            lag: Span::ZERO,
            settled: Time::ZERO,
            sampling: sample.map(|(every, _)| (origin, every.max(Span::from_nanos(1)))),
            patience: Span::ZERO,
            unstamped: false,
            strays: 0,
        };
        web.measure_delays();
        Ok(web)
    }

    /// What has become of the frames of each way, to be read while the network is at work.
    pub fn live(&self) -> Arc<Live> {
        Arc::clone(&self.live)
    }

    /// What each lane did, in the plan's order.
    pub fn legs(&self) -> Vec<LegResult> {
        self.legs.iter().map(Leg::result).collect()
    }

    /// What the frames of way `index` waited for on each of its lanes, in the order of crossing, summed over
    /// those that have passed it.
    pub fn hops(&self, index: usize) -> &[HopSums] {
        &self.ways[index].hops
    }

    /// Lateness of all frames that left, and errors of their spacing.
    pub fn punctuality(&self) -> (Times, Times) {
        let (mut lateness, mut spacing) = (Times::default(), Times::default());
        for leg in &self.legs {
            lateness.add(leg.tally.lateness());
            spacing.add(leg.tally.spacing());
        }
        (lateness, spacing)
    }

    /// Frames that came and had no way: what a host says of its own accord. They are not carried.
    pub fn strays(&self) -> u64 {
        self.strays
    }

    /// Forgets everything and begins anew at `origin`.
    fn restart(&mut self, origin: Time) {
        self.ways.iter_mut().for_each(|way| way.hops.fill(HopSums::default()));
        self.inlets.iter_mut().for_each(|inlet| inlet.waiting.clear());
        self.pool.clear();
        self.strays = 0;
        self.sampling = self.sampling.map(|(_, every)| (origin, every));
        self.account();
        self.legs.iter_mut().for_each(|leg| leg.restart(origin));
        self.measure_delays();
        self.live.restarted();
    }

    /// Finds out anew by how much work may lag, and how long frames may wait to be read.
    fn measure_delays(&mut self) {
        let exits = self.legs.iter().filter(|leg| leg.exit);
        self.lag = exits.map(|leg| leg.slack).min().unwrap_or_default().min(LAG);
        let whole = |way: &Way| way.lanes.iter().map(|&leg| self.legs[leg].link.delay()).sum();
        self.patience = self.ways.iter().map(whole).min().unwrap_or_default();
    }

    /// What happens next, and when.
    fn next(&self) -> Option<(Time, Next)> {
        let arrival = |(index, inlet): (usize, &Inlet)| {
            Some((inlet.waiting.front()?.entered, Next::Arrival(index)))
        };
        let arrivals = self.inlets.iter().enumerate().filter_map(arrival);
        let legs = self.legs.iter().enumerate().map(|(index, leg)| (leg.due, Next::Leg(index)));
        let first = arrivals.chain(legs).min_by_key(|&(at, _)| at)?;
        (first.0 != Time::NEVER).then_some(first)
    }

    /// Reads what waits at a port; answers how many frames came, and when the last of them did.
    fn read(
        &mut self,
        index: usize,
        clock: &mut Clock,
        taken: &mut Taken,
    ) -> Result<(usize, Time), EmuError> {
        let Web { inlets, legs, ways, pool, live, strays, unstamped, .. } = self;
        let Inlet { port, waiting, arrivals, .. } = &mut inlets[index];
        let mut latest = waiting.back().map_or(Time::ZERO, |packet| packet.entered);
        let count = port.receive(BUDGET, &mut |frame| {
            // Stamps that come out of order are put into it: a port is one wire.
            let at = clock.stamp(frame.stamp, arrivals);
            taken.note(at);
            latest = latest.max(at);
            *unstamped |= frame.stamp.is_none();
            let enters = |&way: &usize| ways.get(way).is_some_and(|it| it.entry == index);
            let Some(way) = way_of(frame.bytes).filter(enters) else {
                *strays += 1;
                return;
            };
            live.way(way).send();
            match transit::packet(frame.bytes, way, latest, pool) {
                Some(packet) => waiting.push_back(packet),
                None => {
                    live.way(way).drop_one();
                    legs[ways[way].lanes[0]].link.turned_away(1, DropCause::NoBuffer);
                }
            }
        })?;
        Ok((count, latest))
    }

    /// Lets everything happen that happens by `to`, in order.
    fn work(&mut self, to: Time) {
        while let Some((at, next)) = self.next()
            && at <= to
        {
            self.sample(at);
            match next {
                Next::Arrival(port) => self.take_in(port),
                Next::Leg(leg) => self.serve_leg(leg, at),
            }
        }
        self.sample(to);
    }

    fn take_in(&mut self, port: usize) {
        if let Some(packet) = self.inlets[port].waiting.pop_front() {
            let leg = self.ways[packet.body.way()].lanes[0];
            self.enter(leg, packet.entered, packet);
        }
    }

    fn enter(&mut self, leg: usize, at: Time, packet: Packet<Transit>) {
        self.legs[leg].link.offer(at, packet);
        self.look_after(leg);
    }

    /// After anything has happened on a leg: gives back what it dropped, and looks ahead.
    fn look_after(&mut self, leg: usize) {
        let Web { legs, pool, live, .. } = self;
        let leg = &mut legs[leg];
        if leg.link.has_dropped() {
            for (packet, _) in leg.link.dropped() {
                live.way(packet.body.way()).drop_one();
                pool.free(packet.body.frame);
            }
        }
        leg.look_ahead();
    }

    /// Lets a leg work up to `at`, and moves on what comes out of it.
    fn serve_leg(&mut self, index: usize, at: Time) {
        self.legs[index].link.advance(at);
        if !self.legs[index].exit {
            while let Some(delivered) = self.legs[index].link.take(at) {
                self.forward(index, delivered);
            }
        }
        self.look_after(index);
    }

    /// Moves a packet on to the next leg of its way, and its copies behind it.
    fn forward(&mut self, index: usize, delivered: Delivered<Packet<Transit>>) {
        let Delivered { release, packet } = delivered;
        let way = packet.body.way();
        self.legs[index].crossed(&packet.ledger);
        self.ways[way].hops[packet.body.hop()].add(&packet.ledger);
        packet.body.note_hop(&mut self.pool, index, &packet.ledger);
        let next = self.ways[way].lanes[packet.body.hop() + 1];
        for _ in 1..packet.copies {
            match packet.body.copy(&mut self.pool) {
                Some(body) => {
                    self.live.way(way).duplicate();
                    self.enter_next(next, release, like(&packet, body));
                }
                None => self.legs[index].lose_copy(&packet),
            }
        }
        self.enter_next(next, release, packet);
    }

    fn enter_next(&mut self, next: usize, at: Time, mut packet: Packet<Transit>) {
        (packet.entered, packet.copies, packet.ledger) = (at, 1, Default::default());
        packet.body.go_on();
        self.enter(next, at, packet);
    }

    /// Takes the samples of backlogs that are due before `now`: between two events no link does anything
    /// that it would not have done anyway, so that they can be taken afterwards.
    fn sample(&mut self, now: Time) {
        let Some((mut next, every)) = self.sampling else { return };
        while next < now {
            self.legs.iter_mut().for_each(|leg| leg.sample(next));
            next += every;
        }
        self.sampling = Some((next, every));
    }
}

/// A packet like `packet`, with a frame of its own.
fn like(packet: &Packet<Transit>, body: Transit) -> Packet<Transit> {
    let Packet { channel, hosts, size, entered, band, ecn, controls, .. } = *packet;
    Packet { hosts, band, ecn, controls, ..Packet::new(channel, size, entered, body) }
}

impl Work for Web {
    fn ports(&self) -> impl Iterator<Item = &dyn Port> {
        self.inlets.iter().map(|inlet| &*inlet.port as &dyn Port)
    }

    fn receive(&mut self, clock: &mut Clock) -> Result<Taken, EmuError> {
        if let Some(origin) = self.live.wanted_restart() {
            self.restart(origin);
        }
        clock.synchronise();
        let began = clock.now();
        let mut settled = began.before(self.lag);
        let (mut taken, mut frames) = (Taken::default(), 0);
        for index in 0..self.inlets.len() {
            let (count, latest) = self.read(index, clock, &mut taken)?;
            match count < BUDGET {
                true => self.inlets[index].arrivals.drained(began),
                false => settled = settled.min(latest),
            }
            taken.most = taken.most.max(count);
            frames += count;
        }
        clock.read(frames);
        self.settled = settled;
        Ok(taken)
    }

    fn serve(&mut self, clock: &mut Clock) -> Result<usize, EmuError> {
        self.work(self.settled);
        let mut sent = 0;
        for index in 0..self.legs.len() {
            if self.legs[index].exit {
                sent += self.send_due(index, clock)?;
            }
        }
        Ok(sent)
    }

    fn next_wake(&self) -> Option<Time> {
        let work = self.next().map(|(at, _)| at + self.lag);
        let exits = self.legs.iter().filter(|leg| leg.exit);
        let releases = exits.filter_map(|leg| leg.link.next_release());
        work.into_iter().chain(releases).min()
    }

    fn patience(&self) -> Span {
        if self.unstamped { Span::ZERO } else { self.patience }
    }

    fn pulse(&mut self) -> Result<(), EmuError> {
        self.inlets.iter_mut().try_for_each(|inlet| inlet.port.check())?;
        self.account();
        Ok(())
    }

    fn account(&mut self) {
        for inlet in &mut self.inlets {
            let (drops, refusals) = (inlet.port.kernel_drops(), inlet.port.refusals().total());
            if let Some(leg) = inlet.entry {
                let link = &mut self.legs[leg].link;
                link.turned_away(drops - inlet.ring_drops, DropCause::RingFull);
                link.turned_away(refusals - inlet.refusals, DropCause::Unsegmentable);
            }
            (inlet.ring_drops, inlet.refusals) = (drops, refusals);
        }
    }

    fn change(&mut self, lane: usize, at: Time, change: Change) {
        self.legs[lane].change(at, change);
        self.measure_delays();
    }

    fn lanes(&self) -> Vec<LaneSnapshot> {
        self.legs.iter().map(Leg::snapshot).collect()
    }
}
