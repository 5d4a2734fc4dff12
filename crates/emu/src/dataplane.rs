//! The real-time loop: one thread that reads, lets the links work, and writes.

use crate::EmuError;
use crate::capture::CaptureTap;
use crate::clock::Clock;
use crate::lane::Lane;
use crate::pool::FramePool;
use crate::scheduling::Scheduling;
use crate::snapshot::Snapshot;
use crate::wait::{Bed, Waker};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use trunkline_core::{Span, Time};
use trunkline_path::Change;
use trunkline_port::Port;

/// Frames taken from one port before the others have their turn.
const BUDGET: usize = 32;
/// The last part of a wait is spent spinning, because sleeping ends late by about this much.
const SPIN: Span = Span::from_micros(100);
/// Where frames must leave at once, it spins this long for the next one before it sleeps.
const LINGER: Span = Span::from_micros(150);
/// Longest sleep: a pulse for devices' health and the snapshot.
const PULSE: Span = Span::from_millis(100);
/// Longest time that arrivals may lie in the ring unseen, while they are not due.
const DOZE: Span = Span::from_millis(1);
/// Not having run for this long, against the plan, is a stall of the machine.
const STALL: Span = Span::from_millis(1);
/// Nor does work on a frame take longer than this, unless the machine took the processor away.
const WORK: u64 = 5_000;

/// How a dataplane runs.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// Never sleep.
    pub busy: bool,
    /// Run on this processor only.
    pub cpu: Option<usize>,
}

/// A port, and the lane that its frames enter.
pub struct Inlet {
    /// Where frames come from, and where those of the opposite lane go.
    pub port: Box<dyn Port>,
    /// The lane by its index.
    pub lane: usize,
}

/// A request to a running dataplane.
#[derive(Debug)]
struct Request {
    lane: usize,
    at: Time,
    change: Change,
}

/// The loop's state. Built in one thread, run in another.
pub struct Dataplane {
    inlets: Vec<Inlet>,
    lanes: Vec<Lane>,
    /// For each lane, the inlet whose port its frames leave by.
    outlets: Vec<usize>,
    pool: FramePool,
    clock: Clock,
    tap: CaptureTap,
    options: Options,
    started: Time,
    requests: Receiver<Request>,
    shared: Arc<Shared>,
    stalls: u64,
    longest_stall: Span,
    /// Some port gives no arrival stamps: a frame counts as having come when it is read.
    unstamped: bool,
}

struct Shared {
    stop: AtomicBool,
    asked: AtomicBool,
    snapshot: Mutex<Snapshot>,
    waker: Waker,
}

/// A handle on a dataplane that runs in another thread.
#[derive(Clone)]
pub struct Remote {
    requests: Sender<Request>,
    shared: Arc<Shared>,
}

impl Remote {
    /// Changes a setting of the lane with index `lane` at the instant `at` of [`monotonic`](crate::monotonic),
    /// or when the request is read, at once as a rule, if that is later.
    pub fn change(&self, lane: usize, at: Time, change: Change) {
        // A dataplane that has ended takes no more changes; its end is reported elsewhere.
        let _ = self.requests.send(Request { lane, at, change });
        self.shared.asked.store(true, Ordering::Release);
        self.shared.waker.wake();
    }

    /// Ends the run.
    pub fn stop(&self) {
        self.shared.stop.store(true, Ordering::Release);
        self.shared.waker.wake();
    }

    /// The latest state, at most a pulse (100 ms) old.
    pub fn snapshot(&self) -> Snapshot {
        self.shared.snapshot.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone()
    }
}

impl Dataplane {
    /// A dataplane over `inlets`, each leading into its lane; lanes of index `2k` and `2k + 1` are the
    /// two directions of one path, and each leaves by the port that the other comes from.
    ///
    /// # Errors
    /// Where the system has no descriptor to give.
    pub fn new(
        inlets: Vec<Inlet>,
        lanes: Vec<Lane>,
        pool: FramePool,
        tap: CaptureTap,
        options: Options,
    ) -> Result<(Dataplane, Remote), EmuError> {
        let outlets = (0..lanes.len())
            .map(|lane| inlets.iter().position(|inlet| inlet.lane == lane ^ 1).unwrap_or(0))
            .collect();
        let (sender, requests) = channel();
        let waker = Waker::new().map_err(EmuError::Wait)?;
        let shared = Arc::new(Shared {
            stop: AtomicBool::new(false),
            asked: AtomicBool::new(false),
            snapshot: Mutex::new(Snapshot::default()),
            waker,
        });
        let remote = Remote { requests: sender, shared: Arc::clone(&shared) };
        let clock = Clock::default();
        let started = crate::clock::monotonic();
        let dataplane = Dataplane {
            inlets,
            lanes,
            outlets,
            pool,
            clock,
            tap,
            options,
            started,
            requests,
            shared,
            stalls: 0,
            longest_stall: Span::ZERO,
            unstamped: false,
        };
        Ok((dataplane, remote))
    }

    /// Runs until [`Remote::stop`], or until a device fails. Either way the final state comes back.
    pub fn run(mut self) -> (Snapshot, Result<(), EmuError>) {
        let result = self.turn();
        for inlet in &mut self.inlets {
            self.lanes[inlet.lane].account(inlet.port.as_mut());
        }
        self.clock.now();
        let last = self.snapshot();
        *self.shared.snapshot.lock().unwrap_or_else(|p| p.into_inner()) = last.clone();
        (last, result)
    }

    fn turn(&mut self) -> Result<(), EmuError> {
        let Options { cpu, busy } = self.options;
        let mut scheduling = Scheduling::prepare(cpu, busy, self.clock.now())?;
        let mut bed = Bed::new(&self.shared.waker).map_err(EmuError::Wait)?;
        let mut doze = Bed::new(&self.shared.waker).map_err(EmuError::Wait)?;
        for inlet in &self.inlets {
            bed.add(inlet.port.poll_fd()).map_err(EmuError::Wait)?;
        }
        // What came before the start is taken to have come with it.
        self.clock.start();
        let mut expected = self.clock.now();
        let mut active = expected;
        let mut pulse = expected;
        while !self.shared.stop.load(Ordering::Acquire) {
            let begun = self.notice_stall(expected);
            if self.shared.asked.swap(false, Ordering::AcqRel) {
                self.take_requests();
            }
            let received = self.receive()?;
            let sent = self.serve()?;
            let work = Span::from_nanos(WORK * (received + sent) as u64);
            let now = self.notice_stall(begun + work);
            if received + sent > 0 {
                active = now;
            }
            let next = self.lanes.iter().filter_map(Lane::next_wake).min();
            scheduling.judge(now, self.stalls);
            if self.pulse_is_due(&mut pulse, now, next) {
                self.pulse()?;
            }
            if self.options.busy || received >= BUDGET {
                scheduling.pause(now);
                expected = self.clock.now();
                continue;
            }
            expected = self.rest(now, next, active, &mut bed, &mut doze)?;
            if expected > now {
                scheduling.slept(now, self.clock.now());
            } else {
                scheduling.pause(now);
                expected = self.clock.now();
            }
        }
        Ok(())
    }

    /// Sleeps as long as nothing can be due. Returns when it meant to be awake again.
    fn rest(
        &mut self,
        now: Time,
        next: Option<Time>,
        active: Time,
        bed: &mut Bed,
        doze: &mut Bed,
    ) -> Result<Time, EmuError> {
        let until_next = next.map_or(PULSE, |next| next.since(now)).min(PULSE);
        let free = until_next.saturating_sub(SPIN);
        if free.is_zero() {
            return Ok(now);
        }
        let least = self.lanes.iter().map(Lane::least_delay).min().unwrap_or_default();
        let tolerance = match self.unstamped {
            true => Span::ZERO,
            false => least.saturating_sub(SPIN + SPIN),
        };
        if tolerance > SPIN && now.since(active) < DOZE + DOZE {
            // Frames keep coming and are not due for a while: let them gather in the ring.
            let nap = free.min(tolerance).min(DOZE);
            let woken = doze.sleep(nap).map_err(EmuError::Wait)?;
            return Ok(if woken { self.clock.now() } else { now + nap });
        }
        if tolerance <= SPIN && now.since(active) < LINGER {
            return Ok(now);
        }
        let woken = bed.sleep(free).map_err(EmuError::Wait)?;
        Ok(if woken { self.clock.now() } else { now + free })
    }

    /// Makes the changes asked for by [`Remote::change`].
    fn take_requests(&mut self) {
        self.shared.waker.clear();
        let now = self.clock.now();
        while let Ok(Request { lane, at, change }) = self.requests.try_recv() {
            self.lanes[lane].change(at.max(now), change);
        }
    }

    fn receive(&mut self) -> Result<usize, EmuError> {
        let Dataplane { inlets, lanes, pool, clock, tap, unstamped, .. } = self;
        clock.synchronise();
        let began = clock.now();
        let mut received = 0;
        for Inlet { port, lane } in inlets {
            let lane = &mut lanes[*lane];
            let mut latest = None;
            let count = port.receive(BUDGET, &mut |frame| {
                let at = clock.stamp(frame.stamp);
                latest = Some(at);
                *unstamped |= frame.stamp.is_none();
                lane.accept(at, frame.bytes, pool, clock, tap);
            })?;
            lane.was_read(began, latest.filter(|_| count >= BUDGET));
            received = received.max(count);
        }
        Ok(received)
    }

    fn serve(&mut self) -> Result<usize, EmuError> {
        let mut sent = 0;
        for (index, lane) in self.lanes.iter_mut().enumerate() {
            let port = self.inlets[self.outlets[index]].port.as_mut();
            sent += lane.serve(&mut self.pool, port, &mut self.clock, &mut self.tap)?;
        }
        Ok(sent)
    }

    /// Counts a stall if it is much later than `expected`; returns the time now.
    fn notice_stall(&mut self, expected: Time) -> Time {
        let now = self.clock.now();
        let stall = now.since(expected);
        if stall > STALL {
            self.stalls += 1;
            self.longest_stall = self.longest_stall.max(stall);
        }
        now
    }

    /// The pulse waits for a moment in which nothing is due, but not for more than a second.
    fn pulse_is_due(&self, last: &mut Time, now: Time, next: Option<Time>) -> bool {
        let since = now.since(*last);
        let quiet = next.is_none_or(|next| next.since(now) > SPIN + SPIN);
        let due = (since >= PULSE && quiet) || since >= Span::from_secs(1);
        if due {
            *last = now;
        }
        due
    }

    /// Looks after the devices and publishes the state.
    fn pulse(&mut self) -> Result<(), EmuError> {
        for inlet in &mut self.inlets {
            inlet.port.check()?;
            self.lanes[inlet.lane].account(inlet.port.as_mut());
        }
        let snapshot = self.snapshot();
        if let Ok(mut place) = self.shared.snapshot.try_lock() {
            *place = snapshot;
        }
        Ok(())
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot {
            uptime: crate::clock::monotonic().since(self.started),
            lanes: self.lanes.iter().map(Lane::snapshot).collect(),
            stalls: self.stalls,
            longest_stall: self.longest_stall,
            clock_steps: self.clock.steps(),
            stamps_replaced: self.clock.unbelieved(),
        }
    }
}
