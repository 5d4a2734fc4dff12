//! Everything that a run consists of, and the loop that drives it.

use super::clock;
use super::end::{Doing, End};
use super::jobs::{EndId, Job, Jobs, Timer};
use super::serial::Serial;
use crate::network::{Event, LinkId, Network, Parcel};
use std::collections::{BTreeMap, VecDeque};
use trunkline_core::{Span, Stream, Time};
use trunkline_measure::{Sample, SenderState, Step};
use trunkline_scenario::{Scenario, Start};

/// A host at work.
#[derive(Debug)]
pub(crate) struct HostState {
    pub processor: Serial,
    /// The board's processor; for sending only, where it has one for each direction.
    pub board: Serial,
    /// The board's processor for receiving, where it has one for each direction.
    pub board_in: Serial,
    /// Envelopes received and not yet taken by the host.
    pub memory: u64,
    /// Packets lost because the memory was full.
    pub overruns: u64,
    /// Chance of the disturbance.
    pub chance: Stream,
    pub places: HostPlaces,
}

/// Where a host's time is booked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HostPlaces {
    pub processor: u16,
    pub board: u16,
    pub requests: u16,
    pub window: u16,
}

/// What a traffic has measured so far.
#[derive(Debug, Default)]
pub(crate) struct Measured {
    pub samples: Vec<Sample>,
    pub delivered: u64,
    /// Of each flow.
    pub delivered_by: Vec<u64>,
    pub blocks: BTreeMap<(u16, u8), Step>,
    pub block_count: u64,
    pub flows_left: u32,
    pub started: bool,
    pub ended: bool,
    /// Packets that came to the interface and found its memory full.
    pub overruns: u64,
}

/// A scenario in virtual time.
#[derive(Debug)]
pub(crate) struct World<'a> {
    pub scenario: &'a Scenario,
    pub net: Network,
    pub hosts: Vec<HostState>,
    pub ends: Vec<End>,
    pub traffic: Vec<Measured>,
    pub jobs: Jobs,
    /// Jobs that are done now.
    pub soon: VecDeque<(EndId, Job)>,
    pub places: Vec<String>,
    /// The place of each link of the network, by [`LinkId`].
    pub link_places: Vec<u16>,
    /// The links of each wire: forward, backward.
    pub wires: Vec<[LinkId; 2]>,
    /// The end that each route leads to.
    pub arrives_at: Vec<EndId>,
    pub stopped: bool,
}

impl World<'_> {
    /// Runs to the end of all traffic, or to the latest end.
    pub fn run(&mut self) {
        self.start_due();
        let until = Time::ZERO + self.scenario.stop_after;
        while !self.stopped
            && let Some(event) = self.net.next(until)
        {
            match event {
                Event::Arrived(parcel) => self.arrived(parcel),
                Event::Lost(parcel, _, _) => self.lost(parcel),
                Event::Timer(number) => self.timer(Timer::from_number(number)),
            }
            while let Some((end, job)) = self.soon.pop_front() {
                self.done(end, job);
            }
        }
    }

    fn timer(&mut self, timer: Timer) {
        match timer {
            Timer::Job(slot) => {
                if let Some((end, job)) = self.jobs.take(slot) {
                    self.done(end, job);
                }
            }
            Timer::Deadline(end, number) => self.deadline(end, number),
            Timer::Wake(end) => self.woke(end),
            Timer::Start(flow) => self.start_flow(flow),
            Timer::Buffer(end) => self.buffer_due(end),
        }
    }

    fn done(&mut self, end: EndId, job: Job) {
        match job {
            Job::Wrote { bytes, end: ends } => self.wrote(end, bytes, ends),
            Job::Requested => self.requested(end),
            Job::Released => self.released(end),
            Job::Prepared(segment) => self.prepared(end, segment),
            Job::Sent(segment) => self.sent(end, segment),
            Job::TakenIn { tag, envelopes, trail } => self.taken_in(end, tag, envelopes, trail),
            Job::Digested { packets } => self.digested(end, packets),
            Job::Interrupted => self.interrupted(end),
            Job::ReadDone => self.read_done(end),
            Job::Worked => self.worked(end),
        }
    }

    /// A packet was lost on its way.
    fn lost(&mut self, parcel: Parcel) {
        let end = self.arrives_at[parcel.route.0 as usize];
        if let Some(trace) = parcel.trace {
            self.ends[end.index()].flying.remove(&trace);
            self.net.release(trace);
        }
    }

    /// Gives an end's host processor work.
    pub fn on_processor(&mut self, end: EndId, cost: Span, job: Job) {
        let now = self.net.now();
        let host = self.ends[end.index()].host;
        let at = self.hosts[host].processor.submit(now, cost);
        self.at(at, end, job);
    }

    /// Gives an end's board work; `inward` for what it receives.
    pub fn on_board(&mut self, end: EndId, inward: bool, cost: Span, job: Job) {
        let now = self.net.now();
        let host = self.ends[end.index()].host;
        let separate = inward && !self.scenario.hosts[host].interface.half_duplex;
        let state = &mut self.hosts[host];
        let board = if separate { &mut state.board_in } else { &mut state.board };
        let at = board.submit(now, cost);
        self.at(at, end, job);
    }

    /// Does `job` at `at`; before anything else happens, where that is now.
    fn at(&mut self, at: Time, end: EndId, job: Job) {
        if at == self.net.now() {
            return self.soon.push_back((end, job));
        }
        let slot = self.jobs.put(end, job);
        self.net.set_timer(at, Timer::Job(slot).number());
    }

    /// The scenario's host on which an end runs.
    pub fn host_of(&self, end: EndId) -> &trunkline_scenario::Host {
        &self.scenario.hosts[self.ends[end.index()].host]
    }

    /// Where time on an end's host is booked.
    pub fn places_of(&self, end: EndId) -> HostPlaces {
        self.hosts[self.ends[end.index()].host].places
    }

    /// Other work that gets in the way of an operation now, by chance.
    pub fn disturbance(&mut self, end: EndId) -> Span {
        let host = self.ends[end.index()].host;
        let Some(other) = self.scenario.hosts[host].processor.disturbance else {
            return Span::ZERO;
        };
        let chance = &mut self.hosts[host].chance;
        if chance.unit() >= other.probability {
            return Span::ZERO;
        }
        // Inversion of the exponential distribution; libm gives the same bits on every machine.
        let factor = -libm::log(1.0 - chance.unit());
        Span::from_nanos((other.mean.as_nanos() as f64 * factor) as u64)
    }

    /// Brings the sender's clock to what the end waits for now.
    pub fn settle(&mut self, id: EndId) {
        let now = self.net.now();
        let limit = self.host_of(id).interface.requests;
        let end = &mut self.ends[id.index()];
        let state = if end.speaker.recovering() {
            SenderState::Recover
        } else if end.speaker.blocked() {
            SenderState::Window
        } else if end.speaker.unsent() > 0 || end.in_hand > 0 || end.starting.is_some() {
            SenderState::Host
        } else if end.queue.is_empty() {
            if end.doing == Doing::Busy { SenderState::Host } else { SenderState::Application }
        } else if limit.is_some_and(|limit| end.outstanding >= limit) && !end.releasing {
            SenderState::Request
        } else {
            SenderState::Host
        };
        end.clock.enter(now, state);
    }

    /// Books the time since a write began to wait by what the sender waited for.
    pub fn book_waiting(&mut self, id: EndId) {
        let now = self.net.now();
        let places = self.places_of(id);
        let end = &mut self.ends[id.index()];
        let spent = end.clock.spent_by(now);
        for (state, span) in spent.since(&end.waiting_since) {
            let place = match state {
                SenderState::Application | SenderState::Host => places.board,
                SenderState::Request => places.requests,
                SenderState::Window | SenderState::Recover => places.window,
            };
            end.trail.add(span, place, clock::cause(state));
        }
    }

    /// Sets the timer of an end's deadline where that has moved.
    pub fn set_deadline(&mut self, id: EndId) {
        let end = &mut self.ends[id.index()];
        let deadline = end.speaker.deadline();
        // A deadline that moved away is looked at again when the old one comes.
        let sooner = match (deadline, end.deadline_set) {
            (Some(new), Some(set)) => new < set,
            (Some(_), None) => true,
            (None, _) => false,
        };
        if sooner && let Some(at) = deadline {
            end.deadline_number = end.deadline_number.wrapping_add(1);
            end.deadline_set = Some(at);
            self.net.set_timer(at, Timer::Deadline(id, end.deadline_number).number());
        }
    }

    fn deadline(&mut self, id: EndId, number: u32) {
        let now = self.net.now();
        let end = &mut self.ends[id.index()];
        if end.deadline_number != number {
            return;
        }
        end.deadline_set = None;
        if end.speaker.deadline().is_some_and(|at| at <= now) {
            end.speaker.expire(now);
        }
        self.pump(id);
    }

    /// Starts the traffic whose time has come, and asks for a timer for what starts later.
    pub fn start_due(&mut self) {
        for traffic in 0..self.scenario.traffic.len() {
            if !self.traffic[traffic].started
                && let Some(at) = self.starts_at(traffic)
            {
                self.traffic[traffic].started = true;
                self.schedule_flows(traffic, at);
            }
        }
    }

    /// When a traffic starts, once that is known.
    fn starts_at(&self, traffic: usize) -> Option<Time> {
        let now = self.net.now();
        match &self.scenario.traffic[traffic].start {
            Start::At(span) => Some(Time::ZERO + *span),
            Start::AfterBytes(other, size) => {
                let other = &self.traffic[self.traffic_named(other)?];
                other.delivered_by.iter().all(|&bytes| bytes >= size.bytes()).then_some(now)
            }
            Start::AfterEnd(other) => self.traffic[self.traffic_named(other)?].ended.then_some(now),
        }
    }

    fn traffic_named(&self, name: &str) -> Option<usize> {
        self.scenario.traffic.iter().position(|traffic| traffic.name == name)
    }

    fn schedule_flows(&mut self, traffic: usize, at: Time) {
        let stagger = self.scenario.traffic[traffic].stagger;
        let flows = (0..self.ends.len() / 2).filter(|&f| self.ends[2 * f].traffic == traffic);
        for (index, flow) in flows.collect::<Vec<_>>().into_iter().enumerate() {
            let at = at + stagger.scaled(index as u64, 1);
            self.net.set_timer(at, Timer::Start(flow as u32).number());
        }
    }

    /// A flow's sender has ended.
    pub fn flow_ended(&mut self, id: EndId) {
        let traffic = self.ends[id.index()].traffic;
        let state = &mut self.traffic[traffic];
        state.flows_left -= 1;
        if state.flows_left == 0 {
            state.ended = true;
            self.start_due();
            self.stopped = self.all_over();
        }
    }

    /// Has everything ended that does not merely accompany something that has ended?
    fn all_over(&self) -> bool {
        self.scenario.traffic.iter().zip(&self.traffic).all(|(traffic, state)| {
            let accompanies = traffic.until.as_deref().and_then(|name| self.traffic_named(name));
            state.ended || accompanies.is_some_and(|other| self.traffic[other].ended)
        })
    }
}
