//! Every node sends to every other.

use crate::Op;
use crate::message::Cut;
use crate::script::Script;
use std::collections::VecDeque;
use trunkline_transport::cstar::{Delivery, Destination, EventId, NodeId, Source};

/// Each node sends a message to each other, first to the one behind it, and then receives theirs. A lap of node 0 is a round,
/// its bytes those that one node sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AllToAll {
    /// Bytes of a message.
    pub bytes: u32,
    /// Rounds.
    pub rounds: u32,
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
