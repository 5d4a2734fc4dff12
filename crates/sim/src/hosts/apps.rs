//! Applications: what they ask for, and what they have measured.

use super::end::Doing;
use super::jobs::{EndId, Job, Timer};
use super::world::World;
use trunkline_core::{Cause, Span};
use trunkline_measure::{Sample, SenderClock, Steps, Waiting};
use trunkline_workload::{Action, Draft, Outcome};

impl World<'_> {
    /// A flow's time has come. A TCP connection is set up first. What else there are, channels of URP, have been
    /// set up before: the reports time what follows the call.
    pub fn start_flow(&mut self, flow: u32) {
        let sender = EndId(flow * 2);
        let end = &mut self.ends[sender.index()];
        if end.doing != Doing::Nothing {
            return;
        }
        if end.protocol.to_be_opened() {
            end.doing = Doing::Opening;
            self.begin_clock(sender);
            return self.pump(sender);
        }
        self.begin_clock(sender);
        self.begin_flow(sender);
    }

    /// The time begins that an end's states add up to.
    fn begin_clock(&mut self, id: EndId) {
        let now = self.net.now();
        let end = &mut self.ends[id.index()];
        end.started = Some(now);
        end.clock = SenderClock::new(now);
    }

    /// Lets a flow begin that has waited for its connection, if that is there at both ends now: as in the
    /// emulator nothing of the handshake is under way any more.
    pub fn begin_if_opened(&mut self, id: EndId) {
        let sender = EndId(id.0 & !1);
        let both = [sender, sender.peer()];
        if self.ends[sender.index()].doing == Doing::Opening
            && both.iter().all(|id| !self.ends[id.index()].protocol.to_be_opened())
        {
            self.begin_flow(sender);
        }
    }

    /// Both applications of a flow begin.
    fn begin_flow(&mut self, sender: EndId) {
        self.begin_clock(sender.peer());
        // The peer first, so that it reads before anything comes.
        for id in [sender.peer(), sender] {
            self.begin_intervals(id);
            self.sample_window(id);
            self.step(id, Outcome::Start);
        }
    }

    /// Tells an application what its last action came to, and does what it asks next.
    pub fn step(&mut self, id: EndId, outcome: Outcome) {
        let now = self.net.now();
        let end = &mut self.ends[id.index()];
        if end.doing == Doing::Ended {
            return;
        }
        end.doing = Doing::Busy;
        let action = end.app.step(now, outcome);
        self.keep_samples(id);
        self.act(id, action);
    }

    /// Keeps what an application has measured.
    pub fn keep_samples(&mut self, id: EndId) {
        while let Some(draft) = self.ends[id.index()].app.take_sample() {
            if !self.is_over(id) {
                self.keep(id, draft);
            }
        }
    }

    fn act(&mut self, id: EndId, action: Action) {
        let now = self.net.now();
        match action {
            Action::Write { bytes, end, fresh } => {
                if fresh && end && self.posts(id) {
                    return self.post(id, bytes);
                }
                if fresh {
                    self.ends[id.index()].trail.restart(now);
                }
                let cost = self.host_of(id).processor.write.of(u64::from(bytes));
                let cost = cost + self.disturbance(id);
                self.on_processor(id, cost, Job::Wrote { bytes, end });
            }
            Action::Read => self.start_read(id),
            Action::Work(span) => self.on_processor(id, span, Job::Worked),
            Action::Wait(until) => {
                self.ends[id.index()].doing = Doing::Asleep;
                self.net.set_timer(until, Timer::Wake(id).number());
            }
            Action::Done => self.application_ended(id),
        }
        self.settle(id);
    }

    /// An application's work is done.
    pub fn worked(&mut self, id: EndId) {
        let now = self.net.now();
        let place = self.places_of(id).processor;
        self.ends[id.index()].trail.mark(now, place, Cause::Host);
        self.step(id, Outcome::Woke);
    }

    /// An application wakes.
    pub fn woke(&mut self, id: EndId) {
        self.step(id, Outcome::Woke);
    }

    /// An application does nothing more.
    pub fn application_ended(&mut self, id: EndId) {
        let now = self.net.now();
        let end = &mut self.ends[id.index()];
        if end.doing == Doing::Ended {
            return;
        }
        end.clock.enter(now, Waiting::Application);
        end.doing = Doing::Ended;
        end.ended = Some(now);
        // What sends for a stated time sends no longer than that, however much it has left to the transport.
        end.cut_off = id.is_sender() && end.app.leaves_the_rest();
        if id.is_sender() {
            self.sender_ended(id);
        }
    }

    /// Adds the steps of its time to a measurement.
    fn keep(&mut self, id: EndId, draft: Draft) {
        let end = &self.ends[id.index()];
        let steps = match &end.intervals {
            Some(_) => self.interval_steps(id, &draft).into(),
            None => Steps::from(end.trail.steps()),
        };
        let end = &self.ends[id.index()];
        debug_assert_eq!(steps.iter().map(|step| step.span).sum::<Span>(), draft.end - draft.start);
        let sample = Sample {
            flow: end.flow,
            index: draft.index,
            size: draft.size,
            intended: draft.intended,
            start: draft.start,
            end: draft.end,
            steps,
        };
        self.traffic[end.traffic].samples.push(sample);
    }
}
