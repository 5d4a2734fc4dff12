//! One end of a flow: an application on its protocol.

use crate::clock;
use crate::context::{Context, Side};
use crate::plan::FlowPlan;
use crate::protocol::{ProtocolEnd, Taken, Write};
use crate::run::EndReport;
use crate::shared::Carried;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::Ordering;
use trunkline_core::{Cause, Time};
use trunkline_engine::Note;
use trunkline_measure::{Sample, SenderClock, Spent, Steps, Trail, Waiting};
use trunkline_workload::{Action, Application, Draft, Outcome};

/// Actions that one end does before the others of its host get their turn.
const TURN: usize = 32;

/// The present activity of an application.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Doing {
    /// It has not started.
    Nothing,
    /// It sleeps; if it works, the time is booked to the host.
    Asleep { until: Time, working: bool },
    /// It waits for the end of a write.
    Writing,
    /// It waits for data.
    Reading,
    /// It has ended.
    Ended,
}

/// When an end wants its next turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Want {
    /// At this time.
    pub at: Option<Time>,
    /// Whether the application waits for that time, so that it counts.
    pub precise: bool,
    /// When its socket can be read.
    pub read: bool,
    /// When its socket can be written.
    pub write: bool,
    /// No more: it has reported.
    pub over: bool,
}

/// One end of a flow.
#[derive(Debug)]
pub(crate) struct End {
    flow: u32,
    context: Context,
    app: Application,
    protocol: ProtocolEnd,
    doing: Doing,
    /// The process's record since its sample began.
    trail: Trail,
    clock: SenderClock,
    /// The state of the sender's clock when the process began to wait for its write.
    waiting_since: Spent,
    report: EndReport,
    reported: bool,
}

impl End {
    pub fn new(plan: &FlowPlan, context: Context, app: Application, protocol: ProtocolEnd) -> End {
        End {
            flow: plan.flow,
            context,
            app,
            protocol,
            doing: Doing::Nothing,
            trail: Trail::new(Time::ZERO),
            clock: SenderClock::new(Time::ZERO),
            waiting_since: Spent::default(),
            report: EndReport { flow: plan.flow, samples: plan.samples(), ..EndReport::default() },
            reported: false,
        }
    }

    /// Does all that can be done now.
    pub fn turn(&mut self) -> Want {
        self.protocol.pump(clock::now(), &self.context);
        let (mut now, mut busy) = (Time::ZERO, true);
        for _ in 0..TURN {
            // What was sent and received may have taken long.
            now = clock::now();
            busy = self.advance(now);
            self.settle(now, busy);
            if !busy {
                break;
            }
        }
        if self.context.shared.stopped() {
            // What this thread waited since belongs to the run.
            return self.stop(clock::now());
        }
        self.want(now, busy)
    }

    fn want(&self, now: Time, busy: bool) -> Want {
        let own = match self.doing {
            _ if busy => Some(now),
            Doing::Nothing => Some(self.context.shared.start()).filter(|&at| at != Time::NEVER),
            Doing::Asleep { until, .. } => Some(until),
            Doing::Writing => self.app.until(),
            _ => None,
        };
        let deadline = self.protocol.deadline();
        let at = [own, deadline].into_iter().flatten().min();
        let (read, write) = self.protocol.interest(self.doing == Doing::Reading);
        Want { at, precise: at.is_some() && at == own, read, write, over: false }
    }

    /// Takes the application's next step if it can. Returns whether it could.
    fn advance(&mut self, now: Time) -> bool {
        match self.doing {
            Doing::Nothing if self.context.shared.start() <= now => self.start(now),
            Doing::Asleep { until, working } if until <= now => {
                if working {
                    self.trail.mark(now, self.context.own.host, Cause::Host);
                }
                self.step(now, Outcome::Woke);
            }
            Doing::Writing if self.app.until().is_some_and(|until| until <= now) => {
                self.book_waiting(now);
                self.end(now);
            }
            Doing::Writing if self.protocol.written() => {
                self.book_waiting(now);
                self.step(now, Outcome::Written);
            }
            Doing::Reading => match self.protocol.take(now, &self.context) {
                Some(taken) => self.read(now, taken),
                None => return self.give_up(now),
            },
            Doing::Writing => return self.give_up(now),
            _ => return false,
        }
        true
    }

    /// The peer counts from the instant that was agreed upon, so that its intervals end before the sender
    /// does.
    fn start(&mut self, now: Time) {
        let now = match self.context.side {
            Side::Source => now,
            Side::Destination => self.context.shared.start(),
        };
        self.report.started = Some(now);
        self.clock = SenderClock::new(now);
        self.trail = Trail::new(now);
        self.step(now, Outcome::Start);
    }

    /// Ends the sender if the far end counts as dead, so that nobody waits for it for ever. One that was stopped
    /// is not dead: it may have closed its connection before this end has had its turn to stop.
    fn give_up(&mut self, now: Time) -> bool {
        let dead = self.context.side == Side::Source && self.protocol.dead();
        let hopeless = dead && !self.context.shared.stopped();
        if hopeless {
            self.report.note = Some(Note::failed("a flow gave up: the other end does not answer"));
            self.end(now);
        }
        hopeless
    }

    fn read(&mut self, now: Time, taken: Taken) {
        let Taken { bytes, end, since, carried } = taken;
        let places = self.context.own;
        let source = self.context.side == Side::Source;
        match carried.filter(|carried| self.fits(&carried.trail, now)) {
            Some(Carried { trail, stamp }) => {
                self.trail = trail;
                stamp.into_iter().for_each(|stamp| self.app.stamped(stamp));
            }
            // A copy has brought the message whose own packet was lost: nobody knows where that was.
            None if end && source => self.trail.mark(now, places.transport, Cause::Recover),
            None => (),
        }
        self.trail.mark(now, places.host, Cause::Host);
        self.app.arrived(since.unwrap_or(now), now, u64::from(bytes));
        self.report.delivered += u64::from(bytes);
        self.report.last_read = now;
        if !source {
            self.context.shared.delivered.fetch_add(u64::from(bytes), Ordering::AcqRel);
        }
        self.step(now, Outcome::Read { bytes, end });
    }

    /// Whether what a message brings belongs to the reader's measurement. The record of a sender's sample comes
    /// back with the answer; if it was lost on the way, an answer brings an older one.
    fn fits(&self, trail: &Trail, now: Time) -> bool {
        let source = self.context.side == Side::Source;
        trail.until() <= now && (!source || trail.origin() == self.trail.origin())
    }

    /// Tells the application what its last action came to, and does what it asks next.
    fn step(&mut self, now: Time, outcome: Outcome) {
        let action = self.app.step(now, outcome);
        self.keep_samples();
        match action {
            Action::Write { bytes, end, fresh } => self.write(now, bytes, end, fresh),
            Action::Read => self.doing = Doing::Reading,
            Action::Work(span) => {
                self.doing = Doing::Asleep { until: now + span, working: true };
            }
            Action::Wait(until) => self.doing = Doing::Asleep { until, working: false },
            Action::Done => self.end(now),
        }
    }

    fn write(&mut self, now: Time, bytes: u32, end: bool, fresh: bool) {
        if fresh {
            self.trail = Trail::new(now);
        }
        self.doing = Doing::Writing;
        self.waiting_since = self.clock.spent_by(now);
        let carried = Carried { trail: self.trail.clone(), stamp: self.app.stamp() };
        self.protocol.write(now, Write { bytes, end, carried }, &self.context);
    }

    fn end(&mut self, now: Time) {
        if self.doing == Doing::Ended {
            return;
        }
        self.doing = Doing::Ended;
        self.clock.enter(now, Waiting::Application);
        self.report.sender = self.clock.spent_by(now).to_map();
        self.report.ended = Some(now);
        if self.context.side == Side::Source {
            // What sends for a stated time sends no longer than that, however much it has left to the transport.
            if self.app.leaves_the_rest() {
                self.protocol.cut_off();
                self.context.shared.cut_off();
            }
            self.context.shared.set_done(now);
        }
    }

    /// Notes what the sender now waits for.
    fn settle(&mut self, now: Time, busy: bool) {
        if matches!(self.doing, Doing::Ended | Doing::Nothing) {
            return;
        }
        let waits = match busy {
            true => Waiting::Host,
            false => Waiting::Application,
        };
        self.clock.enter(now, self.protocol.waiting(now).unwrap_or(waits));
    }

    /// Books the time since a write began by what the sender waited for.
    fn book_waiting(&mut self, now: Time) {
        let places = self.context.own;
        let spent = self.clock.spent_by(now);
        for (waiting, span) in spent.since(&self.waiting_since) {
            let place = match waiting {
                Waiting::Application | Waiting::Host => places.host,
                Waiting::Request => places.requests,
                _ => places.transport,
            };
            self.trail.add_within(now, span, place, waiting.cause());
        }
        self.trail.mark(now, places.host, Cause::Host);
    }

    fn keep_samples(&mut self) {
        while let Some(draft) = self.app.take_sample() {
            let steps = self.steps_of(&draft);
            let Draft { size, index, intended, start, end } = draft;
            let flow = self.flow;
            self.report.samples.push(Sample { flow, index, size, intended, start, end, steps });
        }
    }

    /// The steps of a measurement's time. An interval of a greedy flow is no message's, and all of it
    /// is the path's.
    fn steps_of(&self, draft: &Draft) -> Steps {
        if (self.trail.origin(), self.trail.until()) == (draft.start, draft.end) {
            return self.trail.steps().into();
        }
        let mut whole = Trail::new(draft.start);
        whole.mark(draft.end, self.context.places.path, Cause::Host);
        whole.steps().into()
    }

    /// Ends the application, whatever it is doing, and reports.
    fn stop(&mut self, now: Time) -> Want {
        if self.doing != Doing::Nothing {
            // What has come is still read.
            while self.doing == Doing::Reading
                && let Some(taken) = self.protocol.take(now, &self.context)
            {
                self.read(now, taken);
            }
            self.app.flush(now);
            self.keep_samples();
            if self.doing != Doing::Ended {
                self.report.sender = self.clock.spent_by(now).to_map();
                self.report.stopped = now;
            }
        }
        self.app.stop();
        self.doing = Doing::Ended;
        self.report.protocol = self.protocol.report();
        self.context.shared.report(self.context.side as usize, std::mem::take(&mut self.report));
        self.reported = true;
        Want { at: None, precise: false, read: false, write: false, over: true }
    }
}

impl Drop for End {
    /// Its host's thread ends before its flow does.
    fn drop(&mut self) {
        if !self.reported {
            self.context.shared.lose();
        }
    }
}

impl AsFd for End {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.protocol.as_fd()
    }
}
