//! Programs in whole messages: what is sent is cut into fragments, and what comes is put together.

use crate::script::{Script, scripted};
use crate::whole::{Message, Parts, fragments};
use crate::{Op, Program, Work};
use bytes::Bytes;
use std::collections::VecDeque;
use std::fmt;
use trunkline_transport::cstar::{Delivery, Destination, EventId, NodeId, Source};

/// A program that thinks in whole messages, a round of operations at a time. [`in_rounds`] makes a [`Program`] of it.
///
/// A message layer wants each node to send at most one message to a destination under an event, and a node to receive from
/// one node under an event or, in a *crowd*, from all others. All nodes take the same events in the same order.
pub trait Rounds: fmt::Debug + Send {
    /// Plans the operations of the next round, when those of the last one are done. It is the end if it plans none.
    fn round(&mut self, plan: &mut Plan);

    /// Takes a message that has come whole.
    ///
    /// # Errors
    /// What is wrong with it. The first such error is the program's verdict; the program goes on.
    fn take(&mut self, message: Message) -> Result<(), String>;

    /// Checks what the program has computed, when it has ended.
    ///
    /// # Errors
    /// What is wrong.
    fn verdict(&self) -> Result<(), String> {
        Ok(())
    }
}

/// The program of node `me`, which works in rounds, in a cluster of so many nodes whose frames hold `frame` bytes of payload.
///
/// Up to 64 nodes end, beyond what is measured, with two events of empty messages: a word of node 0, upon which the others
/// know that its laps are over, and a crowd, upon which each knows that all have come to their end.
pub fn in_rounds(
    rounds: impl Rounds + 'static,
    me: NodeId,
    nodes: u16,
    frame: u32,
) -> Box<dyn Program> {
    scripted(Messages::new(rounds, frame), me, nodes)
}

/// The operations of a round, done in the order in which they are planned.
#[derive(Debug, Default)]
pub struct Plan {
    acts: VecDeque<Act>,
    /// Events taken so far.
    events: u32,
}

/// An operation on whole messages.
#[derive(Debug)]
enum Act {
    Send { to: Destination, event: EventId, crowd: bool, data: Bytes },
    Receive { from: Source, event: EventId, messages: u16 },
    Op(Op),
}

impl Plan {
    /// Takes a new event, which follows all others. All nodes take as many.
    pub fn event(&mut self) -> EventId {
        let event = EventId(self.events);
        self.events += 1;
        event
    }

    /// Whether nothing is planned.
    pub fn is_empty(&self) -> bool {
        self.acts.is_empty()
    }

    /// Sends a message to one node, which receives from no other under this event.
    pub fn send(&mut self, to: NodeId, event: EventId, data: Bytes) {
        self.acts.push_back(Act::Send { to: Destination::Node(to), event, crowd: false, data });
    }

    /// Sends a message to one node, which receives from all other nodes under this event.
    pub fn send_in_crowd(&mut self, to: NodeId, event: EventId, data: Bytes) {
        self.acts.push_back(Act::Send { to: Destination::Node(to), event, crowd: true, data });
    }

    /// Sends a message to all other nodes, none of which sends under this event.
    pub fn broadcast(&mut self, event: EventId, data: Bytes) {
        self.acts.push_back(Act::Send { to: Destination::All, event, crowd: false, data });
    }

    /// Sends a message to all other nodes, each of which does the same under this event.
    pub fn broadcast_in_crowd(&mut self, event: EventId, data: Bytes) {
        self.acts.push_back(Act::Send { to: Destination::All, event, crowd: true, data });
    }

    /// Receives a message from one node.
    pub fn receive(&mut self, from: NodeId, event: EventId) {
        self.acts.push_back(Act::Receive { from: Source::Node(from), event, messages: 1 });
    }

    /// Receives the messages of a crowd: one from each other node.
    pub fn receive_crowd(&mut self, event: EventId, nodes: u16) {
        let messages = nodes.saturating_sub(1);
        if messages > 0 {
            self.acts.push_back(Act::Receive { from: Source::Any, event, messages });
        }
    }

    /// Spends time of the processor.
    pub fn work(&mut self, work: Work) {
        self.acts.push_back(Act::Op(Op::Work(work)));
    }

    /// Begins what is measured.
    pub fn begin(&mut self) {
        self.acts.push_back(Act::Op(Op::Begin));
    }

    /// Ends a measured piece in which `bytes` user bytes were exchanged, and begins the next.
    pub fn lap(&mut self, bytes: u64) {
        self.acts.push_back(Act::Op(Op::Lap(bytes)));
    }
}

/// Rounds as a script of fragments.
#[derive(Debug)]
struct Messages<R> {
    rounds: R,
    /// Bytes of a fragment at most.
    frame: u32,
    plan: Plan,
    parts: Parts,
}

impl<R: Rounds> Messages<R> {
    fn new(rounds: R, frame: u32) -> Messages<R> {
        Messages { rounds, frame, plan: Plan::default(), parts: Parts::default() }
    }
}

impl<R: Rounds> Script for Messages<R> {
    /// One operation of the plan; of a receive a single fragment, as nobody knows how many there will be.
    fn phase(&mut self, ops: &mut VecDeque<Op>) {
        if self.plan.acts.is_empty() {
            self.rounds.round(&mut self.plan);
        }
        match self.plan.acts.pop_front() {
            None => {}
            Some(Act::Op(op)) => ops.push_back(op),
            Some(Act::Send { to, event, crowd, data }) => {
                ops.extend(fragments(to, event, crowd, data, self.frame).map(Op::Send));
            }
            Some(Act::Receive { from, event, messages }) => {
                ops.push_back(Op::Receive(from, event));
                self.plan.acts.push_front(Act::Receive { from, event, messages });
            }
        }
    }

    fn received(&mut self, delivery: &Delivery) -> Result<(), String> {
        let Some(message) = self.parts.take(delivery.clone()) else {
            return Ok(());
        };
        if let Some(Act::Receive { messages, .. }) = self.plan.acts.front_mut() {
            *messages -= 1;
            if *messages == 0 {
                self.plan.acts.pop_front();
            }
        }
        self.rounds.take(message)
    }

    fn end(&self) -> EventId {
        EventId(self.plan.events)
    }

    fn result(&self) -> Result<(), String> {
        self.rounds.verdict()
    }
}
