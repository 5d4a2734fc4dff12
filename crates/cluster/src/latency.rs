//! One message that goes round the ring of nodes (§6.1 of TR 94-14, Table 1).

use crate::message::Cut;
use crate::script::{Script, read, receive, scripted, write};
use crate::test::{Description, PROCESSING, WORDS, count};
use crate::{Op, Program};
use std::collections::VecDeque;
use trunkline_transport::cstar::{Delivery, Destination, EventId, NodeId};
use trunkline_transport::protocol::{ProtocolKey, Values};

/// A message goes round the ring. A lap of node 0 is a round; divided by the nodes it is the latency of a hop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Latency {
    /// Payload of the message, in words of 4 bytes.
    pub words: u32,
    /// Rounds that are measured.
    pub rounds: u32,
    /// Rounds before.
    pub warm_up: u32,
    /// Whether each word is written before it is sent, and read when it has come.
    pub processing: bool,
}

impl Description for Latency {
    const NAME: &'static str = "latency";
    const HELP: &'static str = "A message goes round the ring of nodes; the figure is the time of a hop (TR 94-14, Table 1).";
    const KEYS: &'static [ProtocolKey] = &[
        WORDS,
        count("rounds", 1, "100", "Rounds that are measured"),
        count("warm_up", 0, "10", "Rounds before"),
        PROCESSING,
    ];
    const FIGURE: &'static str = "time of a hop";

    fn read(values: &Values) -> Latency {
        Latency {
            words: values.number("words") as u32,
            rounds: values.number("rounds") as u32,
            warm_up: values.number("warm_up") as u32,
            processing: values.flag("processing"),
        }
    }

    fn events(&self, _: u16) -> u64 {
        u64::from(self.rounds) + u64::from(self.warm_up)
    }

    fn laps(&self) -> u32 {
        self.rounds
    }

    fn parts(&self, nodes: u16) -> u64 {
        u64::from(nodes)
    }

    fn program(&self, me: NodeId, nodes: u16, frame: u32) -> Box<dyn Program> {
        let cut = Cut { bytes: 4 * self.words, frame };
        scripted(Round { test: *self, me, nodes, cut, round: 0 }, me, nodes)
    }
}

#[derive(Debug)]
pub(crate) struct Round {
    pub test: Latency,
    pub me: NodeId,
    pub nodes: u16,
    pub cut: Cut,
    pub round: u32,
}

impl Script for Round {
    fn phase(&mut self, ops: &mut VecDeque<Op>) {
        let Latency { rounds, warm_up, processing, .. } = self.test;
        if self.round == rounds + warm_up {
            return;
        }
        let event = EventId(self.round);
        let (next, before) = neighbours(self.me, self.nodes);
        let sends = self.cut.send(self.me, Destination::Node(next), event, false);
        let receives = receive(before, event, self.cut.count());
        let (write, read) = (write(processing, self.cut.bytes), read(processing, self.cut.bytes));
        if self.me != NodeId(0) {
            receives.chain(read).chain(write).for_each(|op| ops.push_back(op));
            sends.for_each(|op| ops.push_back(op));
        } else {
            if self.round == warm_up {
                ops.push_back(Op::Begin);
            }
            write.into_iter().chain(sends).for_each(|op| ops.push_back(op));
            receives.chain(read).for_each(|op| ops.push_back(op));
            if self.round >= warm_up {
                ops.push_back(Op::Lap(u64::from(self.cut.bytes)));
            }
        }
        self.round += 1;
    }

    fn end(&self) -> EventId {
        EventId(self.test.rounds + self.test.warm_up)
    }

    fn received(&mut self, delivery: &Delivery) -> Result<(), String> {
        self.cut.check(delivery)
    }
}

/// The nodes behind and in front of a node in the ring.
fn neighbours(NodeId(me): NodeId, nodes: u16) -> (NodeId, NodeId) {
    (NodeId((me + 1) % nodes), NodeId((me + nodes - 1) % nodes))
}
