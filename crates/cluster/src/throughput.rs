//! Messages that go down the chain of nodes (§6.1 of TR 94-14, Table 2).

use crate::message::Cut;
use crate::script::{Script, read, receive, scripted, write};
use crate::test::{Description, PROCESSING, WORDS, count};
use crate::{Op, Program};
use std::collections::VecDeque;
use trunkline_transport::cstar::{Delivery, Destination, EventId, NodeId};
use trunkline_transport::protocol::{ProtocolKey, Values};

/// Node 0 sends to node 1, which sends on, to the last; that one sends a small message back, which node 0 receives when it
/// has sent `ahead` more. The lap of node 0 is the whole test, with the payload of all senders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Throughput {
    /// Payload of a message, in words of 4 bytes.
    pub words: u32,
    /// Messages that node 0 sends.
    pub messages: u32,
    /// How many more it sends before it receives the answer to one.
    pub ahead: u32,
    /// Whether each word is written before it is sent, and read when it has come.
    pub processing: bool,
}

impl Description for Throughput {
    const NAME: &'static str = "throughput";
    const HELP: &'static str = "Messages go down the chain of nodes; the figure is the payload of all senders (TR 94-14, Table 2).";
    const KEYS: &'static [ProtocolKey] = &[
        WORDS,
        count("messages", 1, "1000", "Messages of the first node"),
        count("ahead", 0, "2", "Messages that it sends before it receives the answer to one"),
        PROCESSING,
    ];
    const TRIAL: &'static str = "messages=50";
    const FIGURE: &'static str = "payload of all senders";
    const IS_RATE: bool = true;

    fn read(values: &Values) -> Throughput {
        Throughput {
            words: values.number("words") as u32,
            messages: values.number("messages") as u32,
            ahead: values.number("ahead") as u32,
            processing: values.flag("processing"),
        }
    }

    fn events(&self, _: u16) -> u64 {
        u64::from(self.messages) + u64::from(self.ahead)
    }

    fn laps(&self) -> u32 {
        1
    }

    fn program(&self, me: NodeId, nodes: u16, frame: u32) -> Box<dyn Program> {
        let cut = Cut { bytes: 4 * self.words, frame };
        scripted(Chain { test: *self, me, nodes, cut, message: 0 }, me, nodes)
    }
}

/// The small message that goes back: one word.
const BACK: Cut = Cut { bytes: 4, frame: 4 };

#[derive(Debug)]
pub(crate) struct Chain {
    pub test: Throughput,
    pub me: NodeId,
    pub nodes: u16,
    pub cut: Cut,
    /// The next message.
    pub message: u32,
}

impl Chain {
    fn last(&self) -> NodeId {
        NodeId(self.nodes - 1)
    }

    /// Node 0 writes a message, receives the answer to an earlier one as late as it can, and sends the message.
    fn first(&self, ops: &mut VecDeque<Op>) {
        let Throughput { messages, ahead, .. } = self.test;
        let number = self.message;
        if number == 0 {
            ops.push_back(Op::Begin);
        }
        if number < messages {
            ops.extend(write(self.test.processing, self.cut.bytes));
        }
        if let Some(answered) = number.checked_sub(ahead + 1) {
            ops.extend(receive(self.last(), EventId(answered), 1));
        }
        if number < messages {
            ops.extend(self.send(EventId(number)));
        }
        if number == messages + ahead {
            let payload = u64::from(self.cut.bytes) * u64::from(messages);
            ops.push_back(Op::Lap(payload * u64::from(self.nodes - 1)));
        }
    }

    /// Another receives one, and sends it on, or the last node a word back.
    fn other(&self, ops: &mut VecDeque<Op>) {
        let (event, NodeId(me)) = (EventId(self.message), self.me);
        ops.extend(receive(NodeId(me - 1), event, self.cut.count()));
        ops.extend(read(self.test.processing, self.cut.bytes));
        if self.me != self.last() {
            ops.extend(write(self.test.processing, self.cut.bytes));
            return ops.extend(self.send(event));
        }
        ops.extend(BACK.send(self.me, Destination::Node(NodeId(0)), event, false));
        // The same program runs on the last node: it writes what it would send on.
        ops.extend(write(self.test.processing, self.cut.bytes));
    }

    fn send(&self, event: EventId) -> impl Iterator<Item = Op> {
        let to = Destination::Node(NodeId(self.me.0 + 1));
        self.cut.send(self.me, to, event, false)
    }
}

impl Script for Chain {
    fn phase(&mut self, ops: &mut VecDeque<Op>) {
        let Throughput { messages, ahead, .. } = self.test;
        let first = self.me == NodeId(0);
        let end = if first { messages + ahead + 1 } else { messages };
        // Between its last message and the first answer node 0 has nothing to do, if it is to be further ahead than that.
        while ops.is_empty() && self.message < end {
            if first {
                self.first(ops)
            } else {
                self.other(ops)
            }
            self.message += 1;
        }
    }

    fn end(&self) -> EventId {
        EventId(self.test.messages)
    }

    fn received(&mut self, delivery: &Delivery) -> Result<(), String> {
        if self.me == NodeId(0) { BACK.check(delivery) } else { self.cut.check(delivery) }
    }
}
