//! Everything that a run consists of, and the loop that drives it.

use super::booking::LinePlaces;
use super::course::Course;
use super::end::{Described, Doing, End};
use super::flying::{Carried, Spare};
use super::jobs::{EndId, Job, Jobs, Timer};
use super::measured::Measured;
use super::segments::Segments;
use super::serial::{Done, Serial};
use crate::network::{Event, LinkId, Network};
use std::collections::VecDeque;
use trunkline_core::{Seldom, Span, Stream, Time, Untouched};
use trunkline_measure::{Trail, Waiting};
use trunkline_scenario::{HostPlace, Network as Lowered, Scenario};

/// A host at work.
#[derive(Debug)]
pub(crate) struct HostState {
    pub processor: Serial,
    pub working: Seldom<Working>,
    /// Envelopes received and not yet taken by the host.
    pub memory: u64,
    /// Until when it hears nothing, behind what it has sent.
    pub deaf_until: Time,
    /// Packets lost because its memory was full, or because it was sending from its only buffer.
    pub overruns: u64,
    /// Chance of the disturbance, if there is one.
    pub chance: Option<Box<Stream>>,
    /// The first of the places under which its time is booked.
    pub first_place: u32,
}

/// What is at work on a host beside its processor, and what that is to be told of. An ideal host for whose datagrams no
/// job is done has none of it.
#[derive(Debug, Default)]
pub(crate) struct Working {
    /// The processor's jobs for which timers run, in order.
    pub promised: VecDeque<u32>,
    /// The board's processor; for sending only, if it has one for each direction.
    pub board: Serial,
    /// The board's processor for receiving, if it has one for each direction.
    pub board_in: Serial,
}

impl Untouched for Working {
    const UNTOUCHED: &'static Working =
        &Working { promised: VecDeque::new(), board: Serial::IDLE, board_in: Serial::IDLE };
}

/// The places under which a host's time is booked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HostPlaces {
    pub processor: u32,
    pub board: u32,
    pub requests: u32,
    pub window: u32,
    pub congestion: u32,
    pub paced: u32,
}

impl HostPlaces {
    /// Places of a host, one after the other.
    const ALL: [HostPlace; 6] = [
        HostPlace::Processor,
        HostPlace::Interface,
        HostPlace::EarlierRequest,
        HostPlace::Transport,
        HostPlace::CongestionWindow,
        HostPlace::Pacing,
    ];
    /// The number of them.
    pub const COUNT: usize = HostPlaces::ALL.len();

    /// The places of a host from number `first` on.
    #[inline]
    pub fn from(first: u32) -> HostPlaces {
        HostPlaces {
            processor: first,
            board: first + 1,
            requests: first + 2,
            window: first + 3,
            congestion: first + 4,
            paced: first + 5,
        }
    }

    /// Their names, in order, on the host called `host`.
    pub fn names(host: &str) -> [String; HostPlaces::COUNT] {
        HostPlaces::ALL.map(|place| place.of(host))
    }

    /// The place under which the time of a system write that waits to return is booked: all work is the board's.
    pub fn of_write(self, waiting: Waiting) -> u32 {
        if waiting == Waiting::Application { self.board } else { self.of(waiting) }
    }

    /// The place under which a sender's time is booked.
    pub fn of(self, waiting: Waiting) -> u32 {
        match waiting {
            Waiting::Application => self.processor,
            Waiting::Host => self.board,
            Waiting::Request => self.requests,
            Waiting::Opening | Waiting::Window | Waiting::Recover => self.window,
            Waiting::Congestion => self.congestion,
            Waiting::Paced => self.paced,
        }
    }
}

/// A scenario in virtual time.
#[derive(Debug)]
pub(crate) struct World<'a> {
    pub scenario: &'a Scenario,
    pub lowered: &'a Lowered<'a>,
    pub net: Network,
    pub hosts: Vec<HostState>,
    pub ends: Vec<End<'a>>,
    pub traffic: Vec<Measured>,
    /// What waits for what.
    pub course: Course,
    pub jobs: Jobs,
    /// Jobs that are done now.
    pub soon: VecDeque<(EndId, Job)>,
    /// Ends whose sender's clock is to be brought to what they wait for.
    pub unsettled: Vec<EndId>,
    /// The places of links and of lanes over media.
    pub lines: LinePlaces,
    /// The links that carry out the lanes of the lowered scenario, by their numbers.
    pub lanes: Vec<LinkId>,
    /// The end that each route leads to.
    pub arrives_at: Vec<EndId>,
    pub stopped: bool,
    /// Segments of TCP, datagrams, and frames of listed protocols on their way.
    pub segments: Segments,
    /// Whether a link can change the order of packets.
    pub reorders: bool,
    /// Records to be used again.
    pub spare: Spare,
    /// What messages bring to their readers, to be used again.
    pub brought: Vec<Carried>,
    /// The record of a datagram that an ideal host reads now.
    pub at_once: Trail,
    /// The instant at which data last came in no time, and how many packets of them there were before at that instant.
    pub standing: (Time, u32),
}

/// Packets with data that cross their path at one instant after which time is taken to stand still (a choice).
const MOST_TIMELESS: u32 = 200_000;

/// `span` so many times, saturating.
pub(crate) fn times(span: Span, count: u64) -> Span {
    Span::from_nanos(span.as_nanos().saturating_mul(count))
}

impl<'a> World<'a> {
    /// Runs to the end of all traffic, or to the latest end. `told` hears now and then how far it is.
    pub fn run(&mut self, told: &(dyn Fn(&str) + Sync)) {
        self.start_due();
        while self.goes_on() {
            told(&crate::so_far(self.net.now()));
        }
    }

    /// Runs for a while; whether there is more to do.
    fn goes_on(&mut self) -> bool {
        let until = Time::ZERO + self.scenario.stop_after;
        for _ in 0..crate::EVENTS {
            if self.stopped {
                return false;
            }
            let Some(event) = self.net.next(until) else { return false };
            self.copied();
            match event {
                Event::Arrived(parcel) => self.arrived(parcel),
                Event::Lost(parcel, _, _) => self.lost(parcel),
                Event::Timer(number) => self.timer(Timer::from_number(number)),
            }
            while !self.stopped
                && let Some((end, job)) = self.soon.pop_front()
            {
                self.done(end, job);
            }
            self.settle_all();
        }
        true
    }

    fn timer(&mut self, timer: Timer) {
        match timer {
            Timer::Job(slot) if self.is_late(slot) => {}
            Timer::Job(slot) => {
                if let Some((end, job)) = self.jobs.take(slot) {
                    self.done(end, job);
                }
            }
            Timer::Deadline(end, number) => self.deadline(end, number),
            Timer::Wake(end) => self.woke(end),
            Timer::Start(flow) => self.start_flow(flow),
            Timer::Buffer(end) => self.buffer_due(end),
            Timer::Interval(end) => self.interval_ended(end),
            Timer::Sample(end) => self.sample_window(end),
        }
    }

    fn done(&mut self, end: EndId, job: Job) {
        match job {
            Job::Wrote { bytes, end: ends } => self.wrote(end, bytes, ends),
            Job::Requested => self.requested(end),
            Job::Released => self.released(end),
            Job::Prepared(segment) => self.prepared(end, segment),
            Job::Sent(segment) => self.sent(end, segment),
            Job::TakenIn(pieces) => self.taken_in(end, pieces),
            Job::Digested(pieces) => self.digested(end, pieces),
            Job::Interrupted => self.interrupted(end),
            Job::ReadDone => self.read_done(end),
            Job::Worked => self.worked(end),
            Job::Expired => self.expired(end),
        }
    }

    /// Gives an end's host processor work.
    pub fn on_processor(&mut self, end: EndId, cost: Span, job: Job) {
        let done = self.processor_done(end, cost);
        self.when(done, end, job);
    }

    /// When an end's host processor will have done work that takes `cost`.
    pub fn processor_done(&mut self, end: EndId, cost: Span) -> Done {
        let now = self.net.now();
        let host = self.ends[end.index()].host;
        self.hosts[host].processor.submit(now, cost)
    }

    /// Interrupts an end's host processor.
    pub fn interrupt(&mut self, end: EndId, cost: Span, job: Job) {
        let done = self.interrupt_done(end, cost);
        self.when(done, end, job);
    }

    /// When an interrupt of an end's host processor will be over.
    pub fn interrupt_done(&mut self, end: EndId, cost: Span) -> Done {
        let now = self.net.now();
        let host = self.ends[end.index()].host;
        self.hosts[host].processor.interrupt(now, cost)
    }

    /// Whether the processor has lost time to interrupts since it promised a job. Then it is done later, and so is
    /// what waits behind it, even if that takes no time. Nothing interrupts a board.
    fn is_late(&mut self, slot: u32) -> bool {
        let Some((end, promise)) = self.jobs.promise(slot) else { return false };
        let host = &mut self.hosts[self.ends[end.index()].host];
        let at = match host.processor.renewed(*promise) {
            Some(renewed) => {
                *promise = renewed;
                renewed.at
            }
            None if host.working.promised.front() == Some(&slot) => {
                host.working.promised.pop_front();
                return false;
            }
            None => self.net.now(),
        };
        self.net.set_timer(at, Timer::Job(slot).number());
        true
    }

    /// When an end's board will have done work that takes `cost`; `inward` for what it receives.
    pub fn board_done(&mut self, end: EndId, inward: bool, cost: Span) -> Done {
        let now = self.net.now();
        match self.board(end, inward).submit(now, cost) {
            Done::Promised(promise) => Done::At(promise.at),
            done => done,
        }
    }

    /// When an end's board will have sent a packet. From an unsteady host it leaves somewhat later.
    pub fn sent_off(&mut self, end: EndId, cost: Span) -> Done {
        let (now, done) = (self.net.now(), self.board_done(end, false, cost));
        let Some(unsteady) = self.ends[end.index()].unsteady.as_mut() else { return done };
        let done = match done {
            Done::Now => now,
            Done::At(at) => at,
            Done::Promised(promise) => promise.at,
        };
        Done::At(unsteady.leaves(done))
    }

    /// Gives an end's board work with what it receives, of whose end nobody has to be told.
    pub fn occupy_board(&mut self, end: EndId, cost: Span) {
        let now = self.net.now();
        self.board(end, true).occupy(now, cost);
    }

    fn board(&mut self, end: EndId, inward: bool) -> &mut Serial {
        let separate = inward && !self.host_of(end).interface.half_duplex;
        let host = self.ends[end.index()].host;
        let state = &mut self.hosts[host];
        if separate { &mut state.working.board_in } else { &mut state.working.board }
    }

    /// Does `job` when a processor is done, as the last thing that the present step does: if that is now and no other
    /// job waits to be done now, it is the next in any case.
    pub fn then(&mut self, done: Done, end: EndId, job: Job) {
        match done {
            Done::Now if self.soon.is_empty() => self.done(end, job),
            done => self.when(done, end, job),
        }
    }

    /// Does `job` when a processor is done; before anything else happens, if that is now.
    pub fn when(&mut self, done: Done, end: EndId, job: Job) {
        let (at, promise) = match done {
            Done::Now => return self.soon.push_back((end, job)),
            Done::At(at) => (at, None),
            Done::Promised(promise) => (promise.at, Some(promise)),
        };
        let slot = self.jobs.put(end, job, promise);
        if promise.is_some() {
            let host = self.ends[end.index()].host;
            self.hosts[host].working.promised.push_back(slot);
        }
        self.net.set_timer(at, Timer::Job(slot).number());
    }

    /// The description of the host on which an end runs.
    pub fn host_of(&self, end: EndId) -> Described<'a> {
        self.ends[end.index()].described
    }

    /// The places under which time on an end's host is booked.
    pub fn places_of(&self, end: EndId) -> HostPlaces {
        HostPlaces::from(self.hosts[self.ends[end.index()].host].first_place)
    }

    /// Other work that gets in the way of an operation now, by chance.
    pub fn disturbance(&mut self, end: EndId) -> Span {
        let Some(other) = self.host_of(end).processor.disturbance else { return Span::ZERO };
        let host = self.ends[end.index()].host;
        let Some(chance) = &mut self.hosts[host].chance else { return Span::ZERO };
        if chance.unit() >= other.probability {
            return Span::ZERO;
        }
        // Inversion of the exponential distribution; libm gives the same bits on every machine.
        let factor = -libm::log(1.0 - chance.unit());
        Span::from_nanos((other.mean.as_nanos() as f64 * factor) as u64)
    }

    /// Has the sender's clock brought to what the end waits for, before time goes on: what it waits for until then
    /// takes none. Who only listens to datagrams sends nothing, and nobody asks its clock.
    pub fn settle(&mut self, id: EndId) {
        let end = &mut self.ends[id.index()];
        let listens = !id.is_sender() && !end.protocol.is_connected();
        if !listens && !std::mem::replace(&mut end.unsettled, true) {
            self.unsettled.push(id);
        }
    }

    fn settle_all(&mut self) {
        while let Some(id) = self.unsettled.pop() {
            self.settle_now(id);
        }
    }

    /// Brings the sender's clock to what the end waits for now.
    fn settle_now(&mut self, id: EndId) {
        let now = self.net.now();
        let limit = self.host_of(id).interface.requests;
        let end = &mut self.ends[id.index()];
        end.unsettled = false;
        if end.doing == Doing::Ended {
            return;
        }
        let waiting = if end.doing == Doing::Opening {
            Waiting::Opening
        } else if let Some(held) = end.protocol.held(now) {
            held
        } else if end.protocol.unsent() > 0 || end.in_hand > 0 || end.outward.starting.is_some() {
            Waiting::Host
        } else if end.send_queue.queued() == 0 {
            if end.doing == Doing::Busy { Waiting::Host } else { Waiting::Application }
        } else if limit.is_some_and(|limit| end.outstanding() >= limit as usize) && !end.releasing {
            Waiting::Request
        } else {
            Waiting::Host
        };
        end.clock.enter(now, waiting);
    }

    /// Books the time since a write began to wait by what the sender waited for.
    pub fn book_waiting(&mut self, id: EndId) {
        let now = self.net.now();
        let places = self.places_of(id);
        let end = &mut self.ends[id.index()];
        let spent = end.clock.spent_by(now);
        for (waiting, span) in spent.since(&end.outward.waiting_since) {
            end.trail.add(span, places.of_write(waiting), waiting.cause());
        }
    }

    /// Sets the timer of an end's deadline if that has moved.
    pub fn set_deadline(&mut self, id: EndId) {
        let end = &mut self.ends[id.index()];
        let deadline = end.protocol.deadline().filter(|_| !end.cut_off && !end.expiring);
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
        let cost = self.host_of(id).processor.timer;
        let end = &mut self.ends[id.index()];
        let is_due = end.protocol.deadline().is_some_and(|at| at <= now);
        if is_due && end.protocol.is_of_host() && !cost.is_zero() {
            end.expiring = true;
            return self.on_processor(id, cost, Job::Expired);
        }
        self.expired(id);
    }

    /// The protocol does what its timer was for.
    fn expired(&mut self, id: EndId) {
        let now = self.net.now();
        let end = &mut self.ends[id.index()];
        end.expiring = false;
        if end.protocol.deadline().is_some_and(|at| at <= now) {
            end.protocol.expire(now);
        }
        let dead = end.protocol.dead();
        self.pump(id);
        if dead {
            self.give_up(id);
        }
    }

    /// Data have come in no time. Stops the run if that goes on: nothing on their path takes time, and a workload that
    /// lasts for a time would never end. What is written or read at one instant is no sign of that: many flows
    /// fill large buffers then.
    pub fn came_in_no_time(&mut self) {
        let now = self.net.now();
        let (since, count) = self.standing;
        self.standing = if since == now { (now, count + 1) } else { (now, 0) };
        if count >= MOST_TIMELESS {
            self.stopped = true;
        }
    }

    /// Whether it was stopped for that reason.
    pub fn stood_still(&self) -> bool {
        self.standing.1 >= MOST_TIMELESS
    }
}
