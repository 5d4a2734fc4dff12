//! One lane of a network, at work.

use super::Web;
use super::counts::Way;
use super::plan::LanePlan;
use super::transit::Transit;
use crate::EmuError;
use crate::clock::Clock;
use crate::lane::{BATCH, cause_of};
use crate::snapshot::LaneSnapshot;
use crate::tally::Tally;
use trunkline_core::{Cause, Counts, DropCause, Ledger, Packet, Seed, Span, Time};
use trunkline_measure::Times;
use trunkline_path::{Change, Delivered, Link, LinkSpec};
use trunkline_port::SendOutcome;

/// What a lane did.
#[derive(Debug, Clone, PartialEq)]
pub struct LegResult {
    /// What became of the packets.
    pub counts: Counts,
    /// How long its line was busy with packets that have come out of it.
    pub busy: Span,
    /// Times in queue, where they are recorded.
    pub queueing: Option<Times>,
    /// Bytes waiting, where they are sampled.
    pub backlog: Vec<(Time, u64)>,
    /// How late frames left, where they leave by ports.
    pub lateness: Times,
}

/// One lane at work.
#[derive(Debug)]
pub(super) struct Leg {
    plan: LanePlan,
    seed: Seed,
    pub link: Link<Packet<Transit>>,
    /// Its frames leave by ports. Else they enter other legs.
    pub exit: bool,
    /// When it next has something to do beside sending what is due.
    pub due: Time,
    /// By how much its work may lag without making frames late that leave.
    pub slack: Span,
    pub tally: Tally,
    queueing: Option<Times>,
    backlog: Vec<(Time, u64)>,
    batch: Vec<Delivered<Packet<Transit>>>,
    /// Due like the batch, for another port.
    held: Option<Delivered<Packet<Transit>>>,
    outcomes: Vec<SendOutcome>,
    bound: Span,
}

impl Leg {
    /// A lane as `plan` says that begins at `origin` and keeps up to `samples` of its backlog.
    pub fn new(
        plan: LanePlan,
        seed: Seed,
        origin: Time,
        bound: Span,
        exit: bool,
        samples: usize,
    ) -> Leg {
        let mut leg = Leg {
            seed,
            link: Link::new(&plan.spec, seed, &plan.stream, origin),
            exit,
            due: Time::NEVER,
            slack: slack(&plan.spec),
            tally: Tally::default(),
            queueing: plan.observed.then(Times::default),
            backlog: Vec::with_capacity(samples),
            batch: Vec::with_capacity(BATCH),
            held: None,
            outcomes: Vec::with_capacity(2 * BATCH),
            bound,
            plan,
        };
        leg.look_ahead();
        leg
    }

    /// Forgets everything and begins anew at `origin`.
    pub fn restart(&mut self, origin: Time) {
        let Leg { plan, seed, .. } = self;
        self.link = Link::new(&plan.spec, *seed, &plan.stream, origin);
        self.slack = slack(&plan.spec);
        self.tally = Tally::default();
        self.queueing = self.queueing.take().map(|_| Times::default());
        self.backlog.clear();
        self.held = None;
        self.look_ahead();
    }

    /// Finds out when it next has something to do.
    pub fn look_ahead(&mut self) {
        let next = if self.exit { self.link.next_work() } else { self.link.next_event() };
        self.due = next.unwrap_or(Time::NEVER);
    }

    /// A packet has come out.
    pub fn crossed(&mut self, ledger: &Ledger) {
        self.tally.book(ledger);
        if let Some(times) = &mut self.queueing {
            times.record(ledger.get(Cause::Queue));
        }
    }

    /// Counts one copy as lost for want of memory.
    pub fn lose_copy(&mut self, packet: &Packet<Transit>) {
        self.link.undelivered(packet, DropCause::NoBuffer);
    }

    /// Takes a sample of the backlog at `at`, if there is room for it.
    pub fn sample(&mut self, at: Time) {
        if self.backlog.len() < self.backlog.capacity() {
            self.link.advance(at);
            self.backlog.push((at, self.link.backlog().bytes));
            self.look_ahead();
        }
    }

    /// Changes a setting at `at`.
    pub fn change(&mut self, at: Time, change: Change) {
        self.slack = match &change {
            Change::Delay(delay) => self.slack.min(*delay),
            Change::Rate(_) | Change::Limit(_) | Change::CatchUp(_) => self.slack,
            _ => Span::ZERO,
        };
        self.link.schedule(at, change);
        self.look_ahead();
    }

    pub fn result(&self) -> LegResult {
        LegResult {
            counts: self.link.counts(),
            busy: Span::from_nanos(self.tally.booked(Cause::Transmit) as u64),
            queueing: self.queueing.clone(),
            backlog: self.backlog.clone(),
            lateness: self.tally.lateness().clone(),
        }
    }

    pub fn snapshot(&self) -> LaneSnapshot {
        self.tally.snapshot(&self.plan.name, &self.link, self.bound)
    }

    /// Takes the next batch of frames that are due by `now` and leave by one port.
    fn collect(&mut self, now: Time, ways: &[Way]) -> Option<usize> {
        let exit = |one: &Delivered<Packet<Transit>>| ways[one.packet.body.way()].exit;
        while self.batch.len() < BATCH
            && let Some(next) = self.held.take().or_else(|| self.link.take(now))
        {
            if self.batch.first().is_some_and(|first| exit(first) != exit(&next)) {
                self.held = Some(next);
                break;
            }
            self.batch.push(next);
        }
        self.batch.first().map(exit)
    }
}

/// How far a lane's work may lag behind, so that nothing is due before the line has sent it.
fn slack(spec: &LinkSpec) -> Span {
    match spec.schedule.steps.is_empty() {
        true => spec.delay.saturating_sub(spec.impairments.most_extra_delay()),
        false => Span::ZERO,
    }
}

impl Web {
    /// Sends what is due on a leg whose frames leave; answers how many packets that were.
    pub(super) fn send_due(&mut self, index: usize, clock: &mut Clock) -> Result<usize, EmuError> {
        let now = clock.now();
        let mut sent = 0;
        while let Some(port) = self.legs[index].collect(now, &self.ways) {
            let mut batch = std::mem::take(&mut self.legs[index].batch);
            sent += batch.len();
            let result = self.send_batch(index, port, &mut batch, clock);
            self.legs[index].batch = batch;
            result?;
        }
        if sent > 0 {
            self.look_after(index);
        }
        Ok(sent)
    }

    /// Sends a batch by a port, books it and frees its frames. Each frame is taken to have left at the
    /// beginning of its share of the time that the whole took.
    fn send_batch(
        &mut self,
        index: usize,
        port: usize,
        batch: &mut Vec<Delivered<Packet<Transit>>>,
        clock: &mut Clock,
    ) -> Result<(), EmuError> {
        let Web { inlets, legs, ways, pool, .. } = self;
        let Leg { outcomes, .. } = &mut legs[index];
        let before = clock.now();
        for Delivered { release, packet } in batch.iter() {
            let body = &packet.body;
            body.note_hop(pool, index, &packet.ledger);
            body.address(pool, ways[body.way()].mac, before.since(*release), packet.ecn);
        }
        outcomes.clear();
        let mut frames = batch.iter().flat_map(|Delivered { packet, .. }| {
            std::iter::repeat_n(pool.bytes(&packet.body.frame), usize::from(packet.copies))
        });
        let result = inlets[port].port.send(&mut frames, &mut |_, outcome| outcomes.push(outcome));
        let took = clock.now().since(before);
        self.book(index, batch, before, took);
        Ok(result?)
    }

    fn book(
        &mut self,
        index: usize,
        batch: &mut Vec<Delivered<Packet<Transit>>>,
        before: Time,
        took: Span,
    ) {
        let Web { legs, ways, pool, live, .. } = self;
        let leg = &mut legs[index];
        let count = leg.outcomes.len().max(1) as u64;
        let mut outcomes = std::mem::take(&mut leg.outcomes);
        let mut outcome = outcomes.drain(..).enumerate();
        for Delivered { release, packet } in batch.drain(..) {
            let (way, hop) = (packet.body.way(), packet.body.hop());
            for copy in 0..packet.copies {
                if copy > 0 {
                    live.way(way).duplicate();
                }
                let (place, sent) = outcome.next().unzip();
                if sent != Some(SendOutcome::Sent) {
                    live.way(way).drop_one();
                    leg.link.undelivered(&packet, cause_of(sent));
                    continue;
                }
                let left = before + took.scaled(place.unwrap_or(0) as u64, count);
                let lateness = left.since(release);
                leg.tally.left(lateness);
                live.way(way).deliver();
                ways[way].hops[hop].late += u128::from(lateness.as_nanos());
            }
            leg.crossed(&packet.ledger);
            ways[way].hops[hop].add(&packet.ledger);
            pool.free(packet.body.frame);
        }
        drop(outcome);
        leg.outcomes = outcomes;
    }
}
