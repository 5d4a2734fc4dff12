//! All nodes flood all others (§6.1 of TR 94-14, Table 3).

use crate::Op;
use crate::message::Cut;
use crate::script::{Script, read, write};
use std::collections::VecDeque;
use trunkline_transport::cstar::{Delivery, Destination, EventId, NodeId, Source};

/// Each node broadcasts messages, and receives those of the others only when it has sent `ahead` of them. A lap is that
/// many messages; divided by them it is the time of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flood {
    /// Payload of a fragment, in words of 4 bytes.
    pub words: u32,
    /// Fragments of a message.
    pub fragments: u32,
    /// Messages that are sent before any is received.
    pub ahead: u32,
    /// Messages in all, rounded up to a multiple of `ahead`.
    pub events: u32,
    /// Whether each word is written before it is sent, and read when it has come.
    pub processing: bool,
}

#[derive(Debug)]
pub(crate) struct Torrent {
    pub test: Flood,
    pub me: NodeId,
    pub nodes: u16,
    pub cut: Cut,
    pub event: u32,
}

impl Script for Torrent {
    fn phase(&mut self, ops: &mut VecDeque<Op>) {
        let Flood { words, fragments, ahead, events, processing } = self.test;
        if self.event >= events {
            return;
        }
        if self.event == 0 {
            ops.push_back(Op::Begin);
        }
        let batch = self.event..self.event + ahead;
        for event in batch.clone().map(EventId) {
            for fragment in self.cut.send(self.me, Destination::All, event, true) {
                ops.extend(write(processing, 4 * words));
                ops.push_back(fragment);
            }
        }
        for event in batch.map(EventId) {
            for _ in 0..u32::from(self.nodes - 1) * fragments {
                ops.push_back(Op::Receive(Source::Any, event));
                ops.extend(read(processing, 4 * words));
            }
        }
        ops.push_back(Op::Lap(u64::from(ahead) * u64::from(self.cut.bytes)));
        self.event += ahead;
    }

    fn end(&self) -> EventId {
        EventId(self.event)
    }

    fn received(&mut self, delivery: &Delivery) -> Result<(), String> {
        self.cut.check(delivery)
    }
}
