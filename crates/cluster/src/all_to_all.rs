//! Every node sends to every other.

use crate::message::Cut;
use crate::script::{Script, scripted};
use crate::test::{BYTES, Description, ROUNDS};
use crate::{Op, Program};
use std::collections::VecDeque;
use trunkline_transport::cstar::{Delivery, Destination, EventId, NodeId, Source};
use trunkline_transport::protocol::{ProtocolKey, Values};

/// Each node sends a message to each other, first to the one behind it, and then receives theirs. A lap of node 0 is a round,
/// its bytes those that one node sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AllToAll {
    /// Bytes of a message.
    pub bytes: u32,
    /// Rounds.
    pub rounds: u32,
}

impl Description for AllToAll {
    const NAME: &'static str = "all-to-all";
    const HELP: &'static str =
        "Every node sends a message to every other; the figure is the time of a round.";
    const KEYS: &'static [ProtocolKey] = &[BYTES, ROUNDS];

    fn read(values: &Values) -> AllToAll {
        AllToAll { bytes: values.number("bytes") as u32, rounds: values.number("rounds") as u32 }
    }

    fn events(&self, _: u16) -> u64 {
        u64::from(self.rounds)
    }

    fn laps(&self) -> u32 {
        self.rounds
    }

    fn program(&self, me: NodeId, nodes: u16, frame: u32) -> Box<dyn Program> {
        let cut = Cut { bytes: self.bytes, frame };
        scripted(Exchange { test: *self, me, nodes, cut, round: 0 }, me, nodes)
    }
}

#[derive(Debug)]
pub(crate) struct Exchange {
    pub test: AllToAll,
    pub me: NodeId,
    pub nodes: u16,
    pub cut: Cut,
    pub round: u32,
}

impl Script for Exchange {
    fn phase(&mut self, ops: &mut VecDeque<Op>) {
        if self.round == self.test.rounds {
            return;
        }
        if self.round == 0 {
            ops.push_back(Op::Begin);
        }
        let (event, others) = (EventId(self.round), u32::from(self.nodes) - 1);
        for step in 1..=others {
            let to = (u32::from(self.me.0) + step) % u32::from(self.nodes);
            let to = Destination::Node(NodeId(to as u16));
            ops.extend(self.cut.send(self.me, to, event, true));
        }
        let fragments = u64::from(others) * u64::from(self.cut.count());
        ops.extend((0..fragments).map(|_| Op::Receive(Source::Any, event)));
        ops.push_back(Op::Lap(u64::from(others) * u64::from(self.cut.bytes)));
        self.round += 1;
    }

    fn end(&self) -> EventId {
        EventId(self.round)
    }

    fn received(&mut self, delivery: &Delivery) -> Result<(), String> {
        self.cut.check(delivery)
    }
}
