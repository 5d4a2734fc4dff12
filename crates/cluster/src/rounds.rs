//! Programs in whole messages: cutting them into fragments, and putting together what comes.

use crate::{Op, Outcome, Program, Work};
use bytes::{Bytes, BytesMut};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use trunkline_transport::cstar::{
    Delivery, Destination, EventId, Flags, Fragment, NodeId, Source, Status,
};

/// A program that thinks in whole messages, a round of operations at a time. [`InRounds`] makes a [`Program`] of it.
///
/// A message layer wants every node to send at most one message to a destination under an event, and every node to receive
/// from one node under an event, or from all others (a *crowd*). All nodes take the same events in the same order.
pub trait Rounds: fmt::Debug + Send {
    /// Plans the operations of the next round, once those of the last one are done. `false` if there is no further round;
    /// what was planned is still done then.
    fn round(&mut self, plan: &mut Plan) -> bool;

    /// Takes a message that has come whole.
    ///
    /// # Errors
    /// What is wrong with it. The first such error is the program's verdict; the program goes on.
    fn take(&mut self, message: Message) -> Result<(), String>;

    /// Checks what the program has computed, once it has ended.
    ///
    /// # Errors
    /// What is wrong.
    fn verdict(&self) -> Result<(), String>;
}

/// A message: all fragments of one node under one event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The node that sent it.
    pub from: NodeId,
    /// The event.
    pub event: EventId,
    /// Its bytes.
    pub data: Bytes,
}

/// The operations of a round, done in the order in which they are planned.
#[derive(Debug, Default)]
pub struct Plan {
    acts: VecDeque<Act>,
    /// Events used up so far.
    events: u32,
}

/// An operation on whole messages.
#[derive(Debug)]
enum Act {
    Send(Outgoing),
    Receive { from: Source, event: EventId, messages: u32 },
    Op(Op),
}

/// A message to be sent.
#[derive(Debug)]
struct Outgoing {
    to: Destination,
    event: EventId,
    crowd: bool,
    data: Bytes,
    /// Bytes of a fragment at most; as many as a frame holds if `None`.
    piece: Option<u32>,
}

impl Plan {
    /// A new event, which follows all others. To be asked for on all nodes alike.
    pub fn event(&mut self) -> EventId {
        let event = EventId(self.events);
        self.events += 1;
        event
    }

    /// Sends a message to one node, which receives from no other under this event.
    pub fn send(&mut self, to: NodeId, event: EventId, data: Bytes) {
        let to = Destination::Node(to);
        self.outgoing(Outgoing { to, event, crowd: false, data, piece: None });
    }

    /// Sends a message to one node, which receives from all others under this event.
    pub fn send_in_crowd(&mut self, to: NodeId, event: EventId, data: Bytes) {
        let to = Destination::Node(to);
        self.outgoing(Outgoing { to, event, crowd: true, data, piece: None });
    }

    /// Sends a message to all other nodes, of which none sends under this event.
    pub fn broadcast(&mut self, event: EventId, data: Bytes) {
        self.outgoing(Outgoing { to: Destination::All, event, crowd: false, data, piece: None });
    }

    /// Sends a message to all other nodes, each of which does the same under this event. `piece` is the most bytes of a
    /// fragment; no fragment is longer than a frame.
    pub fn broadcast_in_crowd(&mut self, event: EventId, data: Bytes, piece: Option<u32>) {
        self.outgoing(Outgoing { to: Destination::All, event, crowd: true, data, piece });
    }

    fn outgoing(&mut self, message: Outgoing) {
        self.acts.push_back(Act::Send(message));
    }

    /// Receives one message.
    pub fn receive(&mut self, from: Source, event: EventId) {
        self.acts.push_back(Act::Receive { from, event, messages: 1 });
    }

    /// Receives the messages of a crowd, as many as there are other nodes.
    pub fn receive_crowd(&mut self, event: EventId, nodes: u16) {
        let messages = u32::from(nodes) - 1;
        if messages > 0 {
            self.acts.push_back(Act::Receive { from: Source::Any, event, messages });
        }
    }

    /// Spends time of the processor.
    pub fn work(&mut self, work: Work) {
        if work != Work::default() {
            self.acts.push_back(Act::Op(Op::Work(work)));
        }
    }

    /// Begins what is measured.
    pub fn begin(&mut self) {
        self.acts.push_back(Act::Op(Op::Begin));
    }

    /// Ends a measured piece, in which `bytes` user bytes were exchanged, and begins the next.
    pub fn lap(&mut self, bytes: u64) {
        self.acts.push_back(Act::Op(Op::Lap(bytes)));
    }
}

/// A [`Program`] made of [`Rounds`].
///
/// It ends with a crowd event of empty messages, beyond what is measured: whoever has received it knows that all other nodes
/// have come to their end, and a traditional layer's last fragments are acknowledged by it.
#[derive(Debug)]
pub struct InRounds<R> {
    rounds: R,
    nodes: u16,
    /// Bytes of a fragment at most.
    frame: u32,
    plan: Plan,
    /// Fragments of the message that is being sent.
    cut: VecDeque<Fragment>,
    assemblies: BTreeMap<(EventId, NodeId), Assembly>,
    /// The closing event, once it is planned.
    closing: Option<EventId>,
    ended: bool,
    fault: Option<String>,
}

/// The fragments of a message that have come.
#[derive(Debug, Default)]
struct Assembly {
    parts: BTreeMap<u32, Bytes>,
}

impl<R: Rounds> InRounds<R> {
    /// The program of a node of a cluster of so many nodes, whose frames hold `frame` bytes of payload.
    pub fn new(rounds: R, nodes: u16, frame: u32) -> InRounds<R> {
        InRounds {
            rounds,
            nodes,
            frame: frame.max(1),
            plan: Plan::default(),
            cut: VecDeque::new(),
            assemblies: BTreeMap::new(),
            closing: None,
            ended: false,
            fault: None,
        }
    }

    fn note(&mut self, found: Result<(), String>) {
        if let Err(fault) = found {
            self.fault.get_or_insert(fault);
        }
    }

    /// Plans the next round, and behind the last one the closing event.
    fn refill(&mut self) {
        if self.closing.is_some() {
            self.ended = true;
        } else if !self.rounds.round(&mut self.plan) {
            let event = self.plan.event();
            self.closing = Some(event);
            if self.nodes > 1 {
                self.plan.broadcast_in_crowd(event, Bytes::new(), None);
                self.plan.receive_crowd(event, self.nodes);
            }
        }
    }

    fn cut(&mut self, message: Outgoing) {
        let Outgoing { to, event, crowd, mut data, piece } = message;
        let most = piece.unwrap_or(self.frame).clamp(1, self.frame) as usize;
        let large = data.len() > most;
        loop {
            let part = data.split_to(most.min(data.len()));
            let last = data.is_empty();
            let flags = Flags { last, crowd, large };
            self.cut.push_back(Fragment { to, event, flags, data: part });
            if last {
                return;
            }
        }
    }

    /// Takes a fragment in. Whether its message is whole now.
    fn assemble(&mut self, delivery: Delivery) -> bool {
        let Delivery { from, event, fragment, status, data, .. } = delivery;
        let assembly = self.assemblies.entry((event, from)).or_default();
        let twice = assembly.parts.insert(fragment, data).is_some();
        if twice {
            self.note(Err(format!(
                "fragment {fragment} of {from} for {event} was delivered twice"
            )));
        }
        if status == Status::More {
            return false;
        }
        let assembly = self.assemblies.remove(&(event, from)).unwrap_or_default();
        let found = match assembly.whole() {
            Some(data) if self.closing == Some(event) => closed(from, &data),
            Some(data) => self.rounds.take(Message { from, event, data }),
            None => Err(format!("the message of {from} for {event} has holes")),
        };
        self.note(found);
        true
    }
}

fn closed(from: NodeId, data: &Bytes) -> Result<(), String> {
    if data.is_empty() {
        return Ok(());
    }
    Err(format!("the closing message of {from} has {} B instead of none", data.len()))
}

impl Assembly {
    /// The message; `None` if a fragment is missing.
    fn whole(mut self) -> Option<Bytes> {
        let (&last, _) = self.parts.last_key_value()?;
        if last as usize + 1 != self.parts.len() {
            return None;
        }
        if last == 0 {
            return self.parts.remove(&0);
        }
        let mut whole = BytesMut::with_capacity(self.parts.values().map(Bytes::len).sum());
        self.parts.values().for_each(|part| whole.extend_from_slice(part));
        Some(whole.freeze())
    }
}

impl<R: Rounds> Program for InRounds<R> {
    fn next(&mut self, outcome: Outcome) -> Op {
        if let Outcome::Received(delivery) = outcome
            && self.assemble(delivery)
            && let Some(Act::Receive { messages, .. }) = self.plan.acts.front_mut()
        {
            *messages -= 1;
            if *messages == 0 {
                self.plan.acts.pop_front();
            }
        }
        loop {
            if let Some(fragment) = self.cut.pop_front() {
                return Op::Send(fragment);
            }
            match self.plan.acts.pop_front() {
                Some(Act::Send(message)) => self.cut(message),
                Some(Act::Op(op)) => return op,
                Some(Act::Receive { from, event, messages }) => {
                    self.plan.acts.push_front(Act::Receive { from, event, messages });
                    return Op::Receive(from, event);
                }
                None if self.ended => return Op::Done,
                None => self.refill(),
            }
        }
    }

    fn verdict(&self) -> Result<(), String> {
        if let Some(fault) = &self.fault {
            return Err(fault.clone());
        }
        if !self.ended {
            return Err("the program has not ended".into());
        }
        self.rounds.verdict()
    }
}
