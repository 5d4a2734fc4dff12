//! All nodes send to one at once.

use crate::message::Cut;
use crate::script::{Script, receive, scripted};
use crate::test::{BYTES, Description, ROUNDS};
use crate::{Op, Program};
use std::collections::VecDeque;
use trunkline_transport::cstar::{Delivery, Destination, EventId, NodeId, Source};
use trunkline_transport::protocol::{ProtocolKey, Values};

/// Node 0 broadcasts a word, upon which each other node sends it a message. A lap of node 0 is a round, from its word to the
/// last message, its bytes those of all messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Incast {
    /// Bytes of a message.
    pub bytes: u32,
    /// Rounds.
    pub rounds: u32,
}

impl Description for Incast {
    const NAME: &'static str = "incast";
    const HELP: &'static str = "All nodes send a message to node 0 as soon as it tells them to; the figure is the time of a round.";
    const KEYS: &'static [ProtocolKey] = &[BYTES, ROUNDS];

    fn read(values: &Values) -> Incast {
        Incast { bytes: values.number("bytes") as u32, rounds: values.number("rounds") as u32 }
    }

    fn events(&self, _: u16) -> u64 {
        2 * u64::from(self.rounds)
    }

    fn laps(&self) -> u32 {
        self.rounds
    }

    fn program(&self, me: NodeId, nodes: u16, frame: u32) -> Box<dyn Program> {
        let cut = Cut { bytes: self.bytes, frame };
        scripted(Funnel { test: *self, me, nodes, cut, round: 0 }, me, nodes)
    }
}

/// The word upon which the others send.
const GO: Cut = Cut { bytes: 4, frame: 4 };

const TARGET: NodeId = NodeId(0);

#[derive(Debug)]
pub(crate) struct Funnel {
    pub test: Incast,
    pub me: NodeId,
    pub nodes: u16,
    pub cut: Cut,
    pub round: u32,
}

impl Script for Funnel {
    fn phase(&mut self, ops: &mut VecDeque<Op>) {
        if self.round == self.test.rounds {
            return;
        }
        let (go, event) = (EventId(2 * self.round), EventId(2 * self.round + 1));
        if self.me == TARGET {
            if self.round == 0 {
                ops.push_back(Op::Begin);
            }
            ops.extend(GO.send(TARGET, Destination::All, go, false));
            let others = u64::from(self.nodes) - 1;
            let fragments = others * u64::from(self.cut.count());
            ops.extend((0..fragments).map(|_| Op::Receive(Source::Any, event)));
            ops.push_back(Op::Lap(others * u64::from(self.cut.bytes)));
        } else {
            ops.extend(receive(TARGET, go, 1));
            ops.extend(self.cut.send(self.me, Destination::Node(TARGET), event, true));
        }
        self.round += 1;
    }

    fn end(&self) -> EventId {
        EventId(2 * self.round)
    }

    fn received(&mut self, delivery: &Delivery) -> Result<(), String> {
        let is_go = delivery.from == TARGET;
        if is_go { GO.check(delivery) } else { self.cut.check(delivery) }
    }
}
