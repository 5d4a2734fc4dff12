//! The real-time loop: one thread that reads, lets the links work, and writes.

use crate::DataplaneError;
use crate::accuracy::LONG_WAIT;
use crate::awake::Awake;
use crate::clock::Clock;
use crate::machine::{Machine, Rest};
use crate::plane::Plane;
use crate::scheduling::Scheduling;
use crate::sharing::Sharing;
use crate::snapshot::Snapshot;
use crate::wait::{Bed, Waker};
use crate::witness::Witness;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;
use trunkline_core::{Span, Time};
use trunkline_path::Change;

/// Frames taken from one port before the others have their turn.
pub(crate) const BUDGET: usize = 32;
/// The last part of a wait is spent spinning, because sleeping ends late by about this much.
const SPIN: Span = Span::from_micros(120);
/// Less of it if somebody else wants the processor.
const SHORT_SPIN: Span = Span::from_micros(20);
/// If frames must leave at once, it spins this long for the next one before it sleeps.
const LINGER: Span = Span::from_micros(150);
/// Longest sleep: a pulse for the health of the devices.
const PULSE: Span = Span::from_millis(100);
/// With nothing due for this long there is time for other work.
const QUIET: Span = Span::from_micros(600);
/// Longest that somebody waits for a snapshot because something is always due.
const HURRY: Span = Span::from_millis(200);
/// And longest that somebody waits at all, on a machine that does not let the dataplane run.
const PATIENCE: Duration = Duration::from_secs(2);
/// Longest time that arrivals may lie in the ring unseen, while they are not due.
const DOZE: Span = Span::from_millis(1);
/// At the end the rings are emptied, by this many readings at most: a whole ring, several times over.
const LAST_READINGS: usize = 1024;
/// Nor does work on a frame take longer than this, unless the machine took the processor away.
const WORK: u64 = 5_000;

/// The way in which a dataplane runs.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// Never sleep.
    pub busy: bool,
    /// Run on this processor only.
    pub cpu: Option<usize>,
    /// Programs and receivers are kept off that processor.
    pub own: bool,
}

/// A request to a running dataplane.
#[derive(Debug)]
struct Request {
    lane: usize,
    at: Time,
    change: Change,
}

/// The loop's state. Built in one thread, run in another. The loop decides when its network reads, works and
/// sends, and when it may sleep.
pub struct Dataplane {
    plane: Plane,
    clock: Clock,
    options: Options,
    started: Time,
    requests: Receiver<Request>,
    shared: Arc<Shared>,
    machine: Machine,
    sharing: Sharing,
    witness: Witness,
}

struct Shared {
    stop: AtomicBool,
    asked: AtomicBool,
    /// Whether somebody waits for a fresh snapshot.
    wanted: AtomicBool,
    ended: AtomicBool,
    /// A bit for each port whose device is down.
    down: AtomicU64,
    snapshot: Mutex<Snapshot>,
    published: Condvar,
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
    /// or when the request is read, at once as a rule, if that is later. A dataplane that ends takes no more
    /// changes ([`Remote::is_ending`]).
    pub fn change(&self, lane: usize, at: Time, change: Change) {
        let _ = self.requests.send(Request { lane, at, change });
        self.shared.asked.store(true, Ordering::Release);
        self.shared.waker.wake();
    }

    /// Whether the run has ended, or been told to.
    pub fn is_ending(&self) -> bool {
        self.shared.stop.load(Ordering::Acquire) || self.shared.ended.load(Ordering::Acquire)
    }

    /// A bit for each port whose device was down when last looked at, a second ago at most.
    pub fn down(&self) -> u64 {
        self.shared.down.load(Ordering::Relaxed)
    }

    /// Ends the run.
    pub fn stop(&self) {
        self.shared.stop.store(true, Ordering::Release);
        self.shared.waker.wake();
    }

    /// The state now. The dataplane puts it together in a moment in which nothing is due, at the latest
    /// after 200 ms; nobody pays for it who does not ask.
    pub fn snapshot(&self) -> Snapshot {
        let Shared { wanted, ended, snapshot, published, waker, asked, .. } = &*self.shared;
        let place = snapshot.lock().unwrap_or_else(PoisonError::into_inner);
        wanted.store(true, Ordering::Release);
        asked.store(true, Ordering::Release);
        waker.wake();
        let missing =
            |_: &mut Snapshot| wanted.load(Ordering::Acquire) && !ended.load(Ordering::Acquire);
        let waited = published.wait_timeout_while(place, PATIENCE, missing);
        waited.unwrap_or_else(PoisonError::into_inner).0.clone()
    }
}

impl Dataplane {
    /// A dataplane that serves `plane`.
    ///
    /// # Errors
    /// If the system has no descriptor to give.
    pub fn new(plane: Plane, options: Options) -> Result<(Dataplane, Remote), DataplaneError> {
        let (sender, requests) = channel();
        let waker = Waker::new().map_err(DataplaneError::Wait)?;
        let shared = Arc::new(Shared {
            stop: AtomicBool::new(false),
            asked: AtomicBool::new(false),
            wanted: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            down: AtomicU64::new(0),
            snapshot: Mutex::new(Snapshot::default()),
            published: Condvar::new(),
            waker,
        });
        let remote = Remote { requests: sender, shared: Arc::clone(&shared) };
        let dataplane = Dataplane {
            plane,
            clock: Clock::default(),
            options,
            started: crate::clock::monotonic(),
            requests,
            shared,
            machine: Machine::default(),
            sharing: Sharing::new(options.own),
            witness: Witness::start()?,
        };
        Ok((dataplane, remote))
    }

    /// Runs until [`Remote::stop`], or until a device fails. Either way the final state comes back, and the network
    /// for what else it can tell.
    pub fn run(mut self) -> (Snapshot, Plane, Result<(), DataplaneError>) {
        let result = self.turn().and_then(|()| self.last_turn());
        self.plane.account();
        self.clock.now();
        self.shared.ended.store(true, Ordering::Release);
        self.publish(true);
        (self.snapshot(), self.plane, result)
    }

    fn turn(&mut self) -> Result<(), DataplaneError> {
        let Options { cpu, busy, .. } = self.options;
        let _while_it_turns = Awake::hold();
        let mut scheduling = Scheduling::prepare(cpu, busy, self.clock.now())?;
        let mut bed = Bed::new(&self.shared.waker).map_err(DataplaneError::Wait)?;
        let mut doze = Bed::new(&self.shared.waker).map_err(DataplaneError::Wait)?;
        for port in self.plane.ports() {
            bed.add(port.poll_fd()).map_err(DataplaneError::Wait)?;
        }
        // What came before the start is taken to have come with it.
        self.clock.start();
        let mut rest = Rest::none(self.clock.now());
        let mut active = rest.from;
        let mut pulse = rest.from;
        let mut wanted_since = None;
        while !self.shared.stop.load(Ordering::Acquire) {
            let begun = self.clock.now();
            if self.shared.asked.swap(false, Ordering::AcqRel) {
                self.take_requests();
                wanted_since = wanted_since.or_else(|| self.shared.wanted().then_some(begun));
            }
            let taken = self.plane.receive(&mut self.clock)?;
            self.machine.resumed(&rest, begun, taken.earliest);
            let sent = self.plane.serve(&mut self.clock)?;
            let work = Span::from_nanos(WORK * (taken.most + sent) as u64);
            let now = self.clock.now();
            self.machine.resumed(&Rest::none(begun + work), now, None);
            if taken.most + sent > 0 {
                active = now;
            }
            if sent > 0 {
                self.witness.ask(now);
            }
            let next = self.plane.next_wake();
            scheduling.judge(now, self.machine.stalls);
            let quiet = next.is_none_or(|next| next.since(now) > QUIET);
            if due(now, pulse, PULSE, Span::from_secs(1), quiet) {
                pulse = now;
                self.plane.pulse()?;
                self.shared.down.store(self.plane.down(), Ordering::Relaxed);
            }
            wanted_since = self.answer(wanted_since, now, quiet);
            rest = self.rest(now, taken.most, next, active, &mut bed, &mut doze)?;
            if rest.slept() {
                scheduling.slept(now, self.clock.now());
            } else if scheduling.pause(now) {
                rest = Rest::none(self.clock.now());
            }
        }
        Ok(())
    }

    /// Reads what came before the end, lest it be lost in silence, and lets leave what is due by now: after
    /// a stall that may be much, and the statement has to tell of it.
    fn last_turn(&mut self) -> Result<(), DataplaneError> {
        for _ in 0..LAST_READINGS {
            let taken = self.plane.receive(&mut self.clock)?;
            self.plane.serve(&mut self.clock)?;
            if taken.most < BUDGET {
                break;
            }
        }
        Ok(())
    }

    /// Sleeps as long as nothing can be due; not at all if there may be more where the `most` frames that one port
    /// brought came from.
    fn rest(
        &mut self,
        now: Time,
        most: usize,
        next: Option<Time>,
        active: Time,
        bed: &mut Bed,
        doze: &mut Bed,
    ) -> Result<Rest, DataplaneError> {
        if self.options.busy || most >= BUDGET {
            return Ok(Rest::none(now));
        }
        let (ended, waiting) = (self.witness.ended(), self.witness.waiting(now));
        let gives_way = self.sharing.gives_way(now, ended, waiting);
        let until_next = next.map_or(PULSE, |next| next.since(now)).min(PULSE);
        let free = until_next.saturating_sub(if gives_way { SHORT_SPIN } else { SPIN });
        if free.is_zero() {
            return Ok(Rest::none(now));
        }
        let tolerance = self.plane.patience().saturating_sub(SPIN + SPIN);
        if tolerance > SPIN && now.since(active) < DOZE + DOZE {
            // Frames keep coming and are not due for a while: let them gather in the ring.
            let nap = free.min(tolerance).min(DOZE);
            doze.sleep(nap).map_err(DataplaneError::Wait)?;
            return Ok(Rest { from: now, until: now + nap, by_frames: false });
        }
        if tolerance <= SPIN && !gives_way && now.since(active) < LINGER {
            return Ok(Rest::none(now));
        }
        bed.sleep(free).map_err(DataplaneError::Wait)?;
        Ok(Rest { from: now, until: now + free, by_frames: true })
    }

    /// Makes the changes asked for by [`Remote::change`].
    fn take_requests(&mut self) {
        self.shared.waker.clear();
        let now = self.clock.now();
        while let Ok(Request { lane, at, change }) = self.requests.try_recv() {
            self.plane.change(lane, at.max(now), change);
        }
    }

    /// Publishes the state if somebody has waited for it since `since`, and the moment is `quiet` or they have waited
    /// for long. Returns since when somebody still waits.
    fn answer(&self, since: Option<Time>, now: Time, quiet: bool) -> Option<Time> {
        since.filter(|&since| !(due(now, since, Span::ZERO, HURRY, quiet) && self.publish(false)))
    }

    /// Gives whoever waits for it the state; waits for their lock only if `patient`. Returns whether
    /// they have it: somebody who has just asked may still hold the lock.
    fn publish(&self, patient: bool) -> bool {
        let Shared { snapshot, wanted, published, .. } = &*self.shared;
        let place = match patient {
            true => Some(snapshot.lock().unwrap_or_else(PoisonError::into_inner)),
            false => snapshot.try_lock().ok(),
        };
        let Some(mut place) = place else { return false };
        *place = self.snapshot();
        wanted.store(false, Ordering::Release);
        published.notify_all();
        true
    }

    fn snapshot(&self) -> Snapshot {
        let stamps = self.clock.stamps();
        let waits = self.witness.waits(crate::clock::monotonic());
        Snapshot {
            uptime: crate::clock::monotonic().since(self.started),
            lanes: self.plane.snapshots(),
            stalls: self.machine.stalls,
            stalled: self.machine.stalled,
            longest_stall: self.machine.longest_stall,
            interruptions: self.machine.interruptions,
            interrupted: self.machine.interrupted,
            ends: waits.percentiles(),
            ends_late: waits.longer_than(LONG_WAIT),
            own_processor: self.options.own,
            clock_steps: self.clock.steps(),
            stamps_corrected: stamps.corrected,
            stamps_uncertain: stamps.uncertain,
            stamp_uncertainty: stamps.uncertainty,
            stamps_replaced: stamps.replaced,
        }
    }
}

impl Shared {
    fn wanted(&self) -> bool {
        self.wanted.load(Ordering::Acquire)
    }
}

/// Whether something is due that is wanted every `period`, better in a `quiet` moment, but after `longest` anyway.
fn due(now: Time, last: Time, period: Span, longest: Span, quiet: bool) -> bool {
    let since = now.since(last);
    (quiet && since >= period) || since >= longest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Memory, one_way};
    use trunkline_path::LinkSpec;

    const NOW: Time = Time::from_nanos(5_000_000_000);
    /// Something is due after this time. A rest before it is a short one.
    const NEXT: Span = Span::from_millis(1);

    /// A path whose near port holds a frame stamped `ago` before now.
    fn path_with_frame(ago: Span) -> (Dataplane, Remote) {
        let stamp = Clock::default().realtime(crate::monotonic().before(ago));
        let near = Memory { stamp: Some(stamp), ..Memory::default() };
        near.inward.lock().unwrap().push(vec![0; 60]);
        Dataplane::new(one_way(near, Memory::default(), Default::default()), Options::default())
            .unwrap()
    }

    #[test]
    fn what_lies_unread_at_the_end_is_counted() {
        // The loop is told to stop while it stands still, and frames have come meanwhile.
        let (dataplane, remote) = path_with_frame(Span::from_secs(3));
        remote.stop();
        let (snapshot, _, result) = dataplane.run();
        result.unwrap();
        let up = &snapshot.lanes[0];
        assert_eq!((up.entered, up.delivered), (1, 1));
    }

    /// A dataplane that need not give way, with a path of `delay` both ways.
    fn path_of(delay: Span) -> Dataplane {
        let spec = LinkSpec { delay, ..LinkSpec::default() };
        let plane = one_way(Memory::default(), Memory::default(), spec);
        let (mut dataplane, _) = Dataplane::new(plane, Options::default()).unwrap();
        dataplane.sharing = Sharing::new(true);
        dataplane
    }

    /// The rest at [`NOW`] after a turn that read `most` frames, the last frame having passed `idle` before.
    fn rest_of(dataplane: &mut Dataplane, most: usize, idle: Span) -> Rest {
        let bed = || Bed::new(&dataplane.shared.waker).unwrap();
        let (mut bed, mut doze) = (bed(), bed());
        let (next, active) = (Some(NOW + NEXT), NOW.before(idle));
        dataplane.rest(NOW, most, next, active, &mut bed, &mut doze).unwrap()
    }

    fn sleep(span: Span, by_frames: bool) -> Rest {
        Rest { from: NOW, until: NOW + span, by_frames }
    }

    #[test]
    fn frames_gather_in_the_ring_while_they_keep_coming_and_are_not_due() {
        let mut slow = path_of(Span::from_secs(10));
        let mut rest = |idle| rest_of(&mut slow, 1, idle);
        let free = NEXT.saturating_sub(SPIN);
        assert_eq!(rest(Span::ZERO), sleep(free, false), "the next frame does not end it");
        let lately = DOZE + DOZE;
        assert_eq!(rest(lately.saturating_sub(Span::from_nanos(1))), sleep(free, false));
        assert_eq!(rest(lately), sleep(free, true), "none came for a while");
    }

    #[test]
    fn the_next_frame_is_awaited_without_sleep_unless_somebody_wants_the_processor() {
        let mut fast = path_of(Span::ZERO);
        assert_eq!(rest_of(&mut fast, 1, Span::ZERO), Rest::none(NOW));
        let free = NEXT.saturating_sub(SPIN);
        assert_eq!(rest_of(&mut fast, 1, LINGER), sleep(free, true), "none came for a while");
        // Programs wait one after the other, so that it gives way.
        fast.sharing = Sharing::new(false);
        let long = Some(Span::from_secs(1));
        (0..2).for_each(|_| _ = fast.sharing.gives_way(NOW, long, Span::ZERO));
        let free = NEXT.saturating_sub(SHORT_SPIN);
        assert_eq!(rest_of(&mut fast, 1, Span::ZERO), sleep(free, true));
    }

    #[test]
    fn a_loop_that_may_have_left_frames_in_a_ring_does_not_sleep() {
        let mut slow = path_of(Span::from_secs(10));
        assert_eq!(rest_of(&mut slow, BUDGET, Span::ZERO), Rest::none(NOW));
        assert!(rest_of(&mut slow, BUDGET - 1, Span::ZERO).slept());
        slow.options.busy = true;
        assert_eq!(rest_of(&mut slow, 0, Span::ZERO), Rest::none(NOW));
    }

    #[test]
    fn the_state_is_published_to_those_who_wait_for_it_and_only_then() {
        let dataplane = path_of(Span::ZERO);
        let published = || !dataplane.shared.snapshot.lock().unwrap().lanes.is_empty();
        assert_eq!((dataplane.answer(None, NOW, true), published()), (None, false));
        assert_eq!((dataplane.answer(Some(NOW), NOW, false), published()), (Some(NOW), false));
        let held = dataplane.shared.snapshot.lock().unwrap();
        assert_eq!(dataplane.answer(Some(NOW), NOW, true), Some(NOW), "they have just asked");
        drop(held);
        assert_eq!((dataplane.answer(Some(NOW), NOW, true), published()), (None, true));
    }

    #[test]
    fn what_is_due_waits_for_a_quiet_moment_but_not_for_ever() {
        let last = Time::from_nanos(1_000_000_000);
        let after = |millis, quiet| {
            let now = last + Span::from_millis(millis);
            due(now, last, Span::from_millis(100), Span::from_secs(1), quiet)
        };
        assert_eq!([99, 100, 1000].map(|millis| after(millis, true)), [false, true, true]);
        assert_eq!([100, 999, 1000].map(|millis| after(millis, false)), [false, false, true]);
    }
}
