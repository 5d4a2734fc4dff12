//! One lane of a network, at work.

use super::counts::Way;
use super::plan::LanePlan;
use super::transit::Transit;
use crate::snapshot::LaneSnapshot;
use crate::tally::Tally;
use std::collections::VecDeque;
use trunkline_core::{Cause, Counts, DropCause, Ledger, Packet, Span, Time};
use trunkline_measure::Times;
use trunkline_path::medium::StationId;
use trunkline_path::{Backlog, Change, Delivered, Link};
use trunkline_port::SendOutcome;

/// Frames handed to the kernel at once.
const BATCH: usize = 32;
/// The time that the line's work may wait for stamps that come late: a frame that arrived before an
/// instant may be seen only after it, and the order of service must not depend on that.
pub(super) const LAG: Span = Span::from_micros(100);

/// The results of a lane.
#[derive(Debug, Clone, PartialEq)]
pub struct LaneResult {
    /// Counts of the packets.
    pub counts: Counts,
    /// The time that its line was busy with packets that have come out or were lost behind it; if packets share frames, with any.
    pub busy: Span,
    /// Times in queue, if they are recorded.
    pub queueing: Option<Times>,
    /// Bytes waiting, if they are sampled.
    pub backlog: Vec<(Time, u64)>,
    /// The lateness of frames that left, if they leave by ports.
    pub lateness: Times,
}

/// The origin and the destination of a lane's frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    /// Its frames leave by ports. Else they enter other lanes.
    pub exit: bool,
    /// Its frames come from one port only and leave by ports: nothing else has to be looked at for it, so that
    /// they are offered as they are read.
    pub alone: bool,
}

/// One lane at work.
#[derive(Debug)]
pub(super) struct Lane {
    plan: LanePlan,
    pub link: Link<Packet<Transit>>,
    /// What has come to its station over the medium and leaves.
    pub heard: VecDeque<Delivered<Packet<Transit>>>,
    pub place: Place,
    /// When it next has something to do beside sending what is due; not kept for a lane alone.
    pub due: Time,
    /// By how much its work may lag without making frames late that leave.
    pub slack: Span,
    /// All frames for a lane alone that arrived before this instant have been taken in; its line may work up to it.
    pub settled: Time,
    pub tally: Tally,
    /// The time that packets took on its line which were lost behind it.
    sent_in_vain: Span,
    queueing: Option<Times>,
    backlog: Vec<(Time, u64)>,
    pub batch: Vec<Delivered<Packet<Transit>>>,
    /// Due like the batch, for another port.
    held: Option<Delivered<Packet<Transit>>>,
    pub outcomes: Vec<SendOutcome>,
    bound: Span,
}

impl Lane {
    /// A lane as `plan` says that begins at `origin` and keeps up to `samples` of its backlog.
    pub fn new(plan: LanePlan, place: Place, origin: Time, bound: Span, samples: usize) -> Lane {
        let mut lane = Lane {
            link: Link::new(&plan.spec, plan.seed, &plan.stream, origin),
            heard: VecDeque::new(),
            place,
            due: Time::NEVER,
            slack: slack(&plan),
            settled: origin,
            tally: Tally::default(),
            sent_in_vain: Span::ZERO,
            queueing: plan.observed.then(Times::default),
            backlog: Vec::with_capacity(samples),
            batch: Vec::with_capacity(BATCH),
            held: None,
            outcomes: Vec::with_capacity(2 * BATCH),
            bound,
            plan,
        };
        lane.look_ahead();
        lane
    }

    /// Forgets everything and begins anew at `origin`.
    pub fn restart(&mut self, origin: Time) {
        let LanePlan { spec, seed, stream, .. } = &self.plan;
        self.link = Link::new(spec, *seed, stream, origin);
        self.slack = slack(&self.plan);
        self.heard.clear();
        self.settled = origin;
        self.tally = Tally::default();
        self.sent_in_vain = Span::ZERO;
        self.queueing = self.queueing.take().map(|_| Times::default());
        self.backlog.clear();
        self.held = None;
        self.look_ahead();
    }

    /// The time by which the work of a lane alone lags behind the clock.
    pub fn lag(&self) -> Span {
        self.slack.min(LAG)
    }

    /// Finds out when it next has something to do.
    pub fn look_ahead(&mut self) {
        let next = if self.place.exit { self.link.next_work() } else { self.link.next_event() };
        self.due = next.unwrap_or(Time::NEVER);
    }

    /// When a lane whose frames leave next has something to do: `lag` behind its line's next work, or when a
    /// frame is due.
    pub fn next_wake(&self, lag: Span) -> Option<Time> {
        let work = self.link.next_work().map(|at| at + lag);
        work.into_iter().chain(self.link.next_release()).min()
    }

    /// A packet has come out.
    #[inline]
    pub fn crossed(&mut self, ledger: &Ledger) {
        self.tally.book(ledger);
        if let Some(times) = &mut self.queueing {
            times.record(ledger.get(Cause::Queue));
        }
    }

    /// Packets have been lost whose bits were on the line for `sent` in all.
    #[inline]
    pub fn lost_after(&mut self, sent: Span) {
        self.sent_in_vain += sent;
    }

    /// Counts one copy as lost for want of memory.
    pub fn lose_copy(&mut self, packet: &Packet<Transit>) {
        self.link.undelivered(packet, DropCause::NoBuffer);
    }

    /// The medium whose station it is, and the station.
    pub fn station(&self) -> Option<(usize, StationId)> {
        self.plan.station
    }

    /// Takes a sample of the backlog at `at`, if there is room for it. `on_medium` is what waits at the station that it is.
    pub fn sample(&mut self, at: Time, on_medium: u64) {
        if self.backlog.len() < self.backlog.capacity() {
            self.link.advance(at);
            self.backlog.push((at, self.link.backlog().bytes + on_medium));
            self.look_ahead();
        }
    }

    /// Changes a setting at `at`, or now if that has passed.
    pub fn change(&mut self, at: Time, change: Change) {
        self.slack = match &change {
            Change::Delay(delay) => self.slack.min(*delay),
            Change::Rate(_) | Change::Limit(_) | Change::CatchUp(_) => self.slack,
            _ => Span::ZERO,
        };
        self.link.schedule(at, change);
        self.look_ahead();
    }

    /// What it did by `now`, with what its station on a medium did.
    pub fn result(&self, now: Time, on_medium: Counts) -> LaneResult {
        let passed = Span::from_nanos(self.tally.booked(Cause::Transmit) as u64);
        let own = || passed + self.sent_in_vain;
        LaneResult {
            counts: self.link.counts() + on_medium,
            busy: self.link.shared(now).unwrap_or_else(own),
            queueing: self.queueing.clone(),
            backlog: self.backlog.clone(),
            lateness: self.tally.lateness().clone(),
        }
    }

    /// What it has done so far, with what its station on a medium did and what waits there.
    pub fn snapshot(&self, on_medium: (Counts, Backlog)) -> LaneSnapshot {
        self.tally.snapshot(&self.plan.name, &self.link, on_medium, self.bound)
    }

    /// When the next frame that leaves is due.
    pub fn next_release(&self) -> Option<Time> {
        self.heard.front().map(|heard| heard.release).or_else(|| self.link.next_release())
    }

    /// Takes the next batch of frames that are due by `now` and leave by one port; answers that port.
    pub fn collect(&mut self, now: Time, ways: &[Way]) -> Option<usize> {
        let exit = |one: &Delivered<Packet<Transit>>| ways[one.packet.body.way()].exit;
        // Seldom there: a packet is not moved about to find that out.
        if self.held.is_some() {
            self.batch.extend(self.held.take());
        }
        while self.batch.len() < BATCH
            && let Some(next) = self.heard.pop_front().or_else(|| self.link.take(now))
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

/// The time by which a lane's work may lag behind, so that nothing is due before the line has sent it.
fn slack(LanePlan { spec, station, .. }: &LanePlan) -> Span {
    match spec.schedule.steps.is_empty() && station.is_none() {
        true => spec.delay.saturating_sub(spec.impairments.most_extra_delay()),
        false => Span::ZERO,
    }
}
