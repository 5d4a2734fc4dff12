//! A stream of messages from the first node through all others to the last (§6 of TR 94-14, Table 2).

use super::payload::{check, payload};
use super::settings::{PROCESSING, WORDS, flag_of, neighbours, written_and_read};
use crate::{Message, Plan, Rounds};
use trunkline_transport::cstar::{EventId, NodeId, Source};
use trunkline_transport::protocol::{ProtocolKey, Takes, Values};

/// Settings of the throughput test.
///
/// The last node answers each message with a word to node 0, so that every node receives under every event; node 0 puts off
/// its reception. A lap ends with each such reception; its bytes are the payload of one message × (P − 1) senders, so that
/// the bytes of all laps over their time are the figure of Table 2. Single laps are not: the first holds `ahead` messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Throughput {
    /// Words of 4 bytes of a message.
    pub words: u32,
    /// Messages, each a lap.
    pub messages: u32,
    /// Messages that node 0 sends before it receives the answer to the first. The report does not state it: "very likely to
    /// have arrived already".
    pub ahead: u32,
    /// Whether each node writes each word once before it sends it, and reads it once after it has received it.
    pub processing: bool,
}

impl Default for Throughput {
    fn default() -> Throughput {
        Throughput::of(&Values::defaults(Throughput::KEYS))
    }
}

/// Bytes of an answer.
const ANSWER: usize = 4;

impl Throughput {
    /// The keys of its settings.
    pub const KEYS: &'static [ProtocolKey] = &[
        WORDS,
        ProtocolKey {
            name: "messages",
            takes: Takes::Count(1, 10_000_000),
            default: Some("1000"),
            help: "Messages that the first node sends, each a lap",
        },
        ProtocolKey {
            name: "ahead",
            takes: Takes::Count(1, 1_000_000),
            default: Some("16"),
            help: "Messages that the first node sends before it receives the last node's answer to the first of them",
        },
        PROCESSING,
    ];

    pub(super) fn of(values: &Values) -> Throughput {
        Throughput {
            words: values.number("words") as u32,
            messages: values.number("messages") as u32,
            ahead: values.number("ahead") as u32,
            processing: flag_of(values),
        }
    }

    pub(super) fn events(&self) -> u64 {
        u64::from(self.messages)
    }
}

/// A node of the chain.
#[derive(Debug)]
pub(super) struct Chain {
    settings: Throughput,
    me: NodeId,
    nodes: u16,
    /// Messages planned so far.
    planned: u32,
}

impl Chain {
    pub fn new(settings: Throughput, me: NodeId, nodes: u16) -> Chain {
        Chain { settings, me, nodes, planned: 0 }
    }

    fn bytes(&self) -> usize {
        4 * self.settings.words as usize
    }

    /// The first node: sends a message, and receives the answer to an earlier one, or all that are left.
    fn first(&self, plan: &mut Plan, event: EventId, after: NodeId) {
        let Throughput { words, messages, ahead, processing } = self.settings;
        if self.planned == 0 {
            plan.begin();
        }
        plan.work(written_and_read(words.into(), processing).0);
        plan.send(after, event, payload(self.me, event, self.bytes()));
        let all = self.planned + 1 == messages;
        let oldest = event.0.saturating_sub(ahead - 1);
        let received = if all {
            oldest..event.0 + 1
        } else if self.planned + 1 >= ahead {
            oldest..oldest + 1
        } else {
            0..0
        };
        for answered in received.map(EventId) {
            plan.receive(Source::Node(NodeId(self.nodes - 1)), answered);
            plan.lap(self.bytes() as u64 * u64::from(self.nodes - 1));
        }
    }
}

impl Rounds for Chain {
    fn round(&mut self, plan: &mut Plan) -> bool {
        if self.planned == self.settings.messages {
            return false;
        }
        let Throughput { words, processing, .. } = self.settings;
        let (before, after) = neighbours(self.me, self.nodes);
        let event = plan.event();
        if self.me == NodeId(0) {
            self.first(plan, event, after);
        } else {
            let (written, read) = written_and_read(words.into(), processing);
            plan.receive(Source::Node(before), event);
            plan.work(read);
            if after == NodeId(0) {
                plan.send(after, event, payload(self.me, event, ANSWER));
            } else {
                plan.work(written);
                plan.send(after, event, payload(self.me, event, self.bytes()));
            }
        }
        self.planned += 1;
        true
    }

    fn take(&mut self, message: Message) -> Result<(), String> {
        check(&message, if self.me == NodeId(0) { ANSWER } else { self.bytes() })
    }

    fn verdict(&self) -> Result<(), String> {
        Ok(())
    }
}
