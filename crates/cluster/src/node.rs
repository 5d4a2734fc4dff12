//! A node: a program, and the message layer that carries out what it asks for.

use crate::trace::{Act, Record};
use crate::{Op, Outcome, Program, Work};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use trunkline_core::{Span, Time};
use trunkline_transport::cstar::{
    Blocked, BufferId, Counters, Delivery, EventId, Failure, Fragment, Frame, Layer, Memory,
    NodeId, Source, Tally,
};

/// A node of a cluster at work.
///
/// Its driver calls [`step`](Node::step) and charges what it answers to the node's processor until it waits or has ended;
/// [`arrive`](Node::arrive) when a frame has come; [`expire`](Node::expire) at the [`deadline`](Node::deadline). After each of
/// these, when the processor has done the work, it sends what [`transmit`](Node::transmit) gives until that is `None`, and
/// steps on if the node waited.
#[derive(Debug)]
pub struct Node {
    program: Box<dyn Program>,
    layer: Box<dyn Layer>,
    pending: Pending,
    /// The buffer of the last delivery, while the program looks at it.
    held: Option<BufferId>,
    began: Option<Time>,
    laps: VecDeque<Lap>,
    records: Vec<Record>,
    /// Records that are kept at most.
    most_records: usize,
}

/// The operation that is not yet done.
#[derive(Debug)]
enum Pending {
    /// The program is to be asked, with this outcome.
    Ask(Outcome),
    Send(Fragment),
    Receive(Source, EventId),
    Ended,
}

/// A measured piece of a program, on one node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lap {
    /// When it began.
    pub start: Time,
    /// When it ended.
    pub end: Time,
    /// User bytes of it that are this node's.
    pub bytes: u64,
}

impl Lap {
    /// How long it took.
    pub fn span(&self) -> Span {
        self.end.since(self.start)
    }
}

/// What a node did at a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// It worked, and goes on when its processor has done this.
    Worked(Spent),
    /// It waits. What it spent in vain comes with it.
    Waits(Waiting, Spent),
    /// Its program has ended. It still answers others.
    Ended,
}

/// Work for a node's processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Spent {
    /// A fragment was given to the layer to send.
    pub sent: u32,
    /// A fragment was received.
    pub received: u32,
    /// Operations of the message layer.
    pub tally: Tally,
    /// The program's own work.
    pub work: Work,
}

/// What a node waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Waiting {
    /// This node's window to open.
    Window(NodeId),
    /// Buffers for sending.
    Buffers,
    /// A fragment of an event.
    Fragment(Source, EventId),
}

impl Node {
    /// A node that has not started.
    pub fn new(program: Box<dyn Program>, layer: Box<dyn Layer>) -> Node {
        Node {
            program,
            layer,
            pending: Pending::Ask(Outcome::Started),
            held: None,
            began: None,
            laps: VecDeque::new(),
            records: Vec::new(),
            most_records: 0,
        }
    }

    /// Does the program's next operation, or tries again what it waits for.
    pub fn step(&mut self, now: Time) -> Step {
        // What most nodes wait for stays where it is until it has come.
        if let Pending::Receive(from, event) = self.pending {
            return self.receive(now, from, event);
        }
        match std::mem::replace(&mut self.pending, Pending::Ended) {
            Pending::Ask(outcome) => self.begin(now, outcome),
            Pending::Send(fragment) => self.send(now, fragment),
            Pending::Receive(from, event) => self.receive(now, from, event),
            Pending::Ended => Step::Ended,
        }
    }

    /// Asks the program for its next operation, and begins it.
    fn begin(&mut self, now: Time, outcome: Outcome) -> Step {
        match self.program.next(outcome) {
            Op::Send(fragment) => self.send(now, fragment),
            Op::Receive(from, event) => self.receive(now, from, event),
            Op::Work(work) => {
                self.note(now, Act::Work(work));
                self.done(Spent { work, ..Spent::default() })
            }
            Op::Begin => {
                self.note(now, Act::Begin);
                self.began = Some(now);
                self.done(Spent::default())
            }
            Op::Lap(bytes) => self.lap(now, bytes),
            Op::Done => {
                self.note(now, Act::End);
                self.let_go(now);
                Step::Ended
            }
        }
    }

    fn done(&mut self, spent: Spent) -> Step {
        self.pending = Pending::Ask(Outcome::Done);
        self.worked(spent)
    }

    fn worked(&mut self, spent: Spent) -> Step {
        Step::Worked(Spent { tally: self.layer.take_tally(), ..spent })
    }

    fn send(&mut self, now: Time, fragment: Fragment) -> Step {
        self.let_go(now);
        let (to, event, bytes) = (fragment.to, fragment.event, fragment.data.len() as u32);
        let (fragment, waiting) = match self.layer.send(now, fragment) {
            Ok(()) => {
                self.note(now, Act::Send { to, event, bytes });
                return self.done(Spent { sent: 1, ..Spent::default() });
            }
            Err(Blocked::Window(fragment, peer)) => (fragment, Waiting::Window(peer)),
            Err(Blocked::Buffers(fragment)) => (fragment, Waiting::Buffers),
        };
        self.pending = Pending::Send(fragment);
        self.waits(now, waiting)
    }

    fn receive(&mut self, now: Time, from: Source, event: EventId) -> Step {
        self.let_go(now);
        let Some(delivery) = self.layer.receive(now, from, event) else {
            self.pending = Pending::Receive(from, event);
            return self.waits(now, Waiting::Fragment(from, event));
        };
        let (from, fragment) = (delivery.from, delivery.fragment);
        let bytes = delivery.data.len() as u32;
        self.note(now, Act::Receive { from, event, fragment, bytes });
        self.held = delivery.buffer;
        self.pending = Pending::Ask(Outcome::Received(delivery));
        self.worked(Spent { received: 1, ..Spent::default() })
    }

    fn waits(&mut self, now: Time, waiting: Waiting) -> Step {
        self.note(now, Act::Wait(waiting));
        let tally = self.layer.take_tally();
        Step::Waits(waiting, Spent { tally, ..Spent::default() })
    }

    fn lap(&mut self, now: Time, bytes: u64) -> Step {
        self.note(now, Act::Lap(bytes));
        if let Some(start) = self.began.replace(now) {
            self.laps.push_back(Lap { start, end: now, bytes });
        }
        self.done(Spent::default())
    }

    /// Releases the buffer that the program has looked at.
    fn let_go(&mut self, now: Time) {
        if let Some(buffer) = self.held.take() {
            self.layer.release(now, buffer);
        }
    }

    /// Records what the program does from now on, so many acts at most; none at 0. A record takes 40 bytes, and is kept
    /// until it is taken.
    pub fn record(&mut self, most: usize) {
        self.most_records = most;
    }

    /// Whether it records what its program does.
    pub fn records(&self) -> bool {
        self.most_records > 0
    }

    /// What was recorded since this was asked last, in the order of time.
    pub fn take_records(&mut self) -> Vec<Record> {
        std::mem::take(&mut self.records)
    }

    /// Records an act; one wait is recorded once, however often it is tried again.
    fn note(&mut self, at: Time, act: Act) {
        if self.records.len() >= self.most_records {
            return;
        }
        let again =
            matches!(act, Act::Wait(_)) && self.records.last().is_some_and(|it| it.act == act);
        if !again {
            self.records.push(Record { at, act });
        }
    }

    /// Its message layer, for a driver that hands it frames itself.
    pub fn layer_mut(&mut self) -> &mut dyn Layer {
        self.layer.as_mut()
    }

    /// A frame for this node has come. Answers what that costs.
    pub fn arrive(&mut self, now: Time, frame: Frame) -> Tally {
        self.layer.arrive(now, frame);
        self.layer.take_tally()
    }

    /// A frame has come whose check sum is wrong.
    pub fn damaged(&mut self, now: Time) {
        self.layer.damaged(now);
    }

    /// The next frame to be sent.
    pub fn transmit(&mut self, now: Time) -> Option<Frame> {
        self.layer.transmit(now)
    }

    /// When [`expire`](Node::expire) is to be called.
    pub fn deadline(&self) -> Option<Time> {
        self.layer.deadline()
    }

    /// Does what is due. Answers what that costs.
    pub fn expire(&mut self, now: Time) -> Tally {
        self.layer.expire(now);
        self.layer.take_tally()
    }

    /// Why it cannot go on.
    pub fn failure(&self) -> Option<&Failure> {
        self.layer.failure()
    }

    /// What its program has just received, if that was its last operation.
    pub fn received(&self) -> Option<&Delivery> {
        match &self.pending {
            Pending::Ask(Outcome::Received(delivery)) => Some(delivery),
            _ => None,
        }
    }

    /// Whether its program has ended.
    pub fn has_ended(&self) -> bool {
        matches!(self.pending, Pending::Ended)
    }

    /// When the lap under way began; `None` before the first.
    pub fn lap_began(&self) -> Option<Time> {
        self.began
    }

    /// The laps that have ended since they were last [taken](Node::take_laps).
    pub fn laps(&self) -> usize {
        self.laps.len()
    }

    /// What was measured since this was asked last.
    pub fn take_laps(&mut self) -> impl Iterator<Item = Lap> + '_ {
        self.laps.drain(..)
    }

    /// Whether what its program has computed and received is right.
    ///
    /// # Errors
    /// What is wrong.
    pub fn verdict(&self) -> Result<(), String> {
        self.program.verdict()
    }

    /// What its message layer counts.
    pub fn counters(&self) -> Counters {
        self.layer.counters()
    }

    /// What its message layer holds.
    pub fn memory(&self) -> Memory {
        self.layer.memory()
    }
}
