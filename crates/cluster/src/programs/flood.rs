//! Broadcasts of all nodes, received late (§6 of TR 94-14, Table 3).

use super::payload::{check, payload};
use super::settings::{PROCESSING, WORDS, flag_of, written_and_read};
use crate::{Message, Plan, Rounds};
use trunkline_transport::cstar::{EventId, NodeId};
use trunkline_transport::protocol::{ProtocolKey, Takes, Values};

/// Settings of the flooding test. A lap is an event that node 0 has received whole, its bytes what a node sends under it;
/// the first lap holds the `ahead` messages sent before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flood {
    /// Words of 4 bytes of a fragment.
    pub words: u32,
    /// Fragments of a message, k.
    pub fragments: u32,
    /// Messages that a node sends before it receives the first, n.
    pub ahead: u32,
    /// Messages that a node sends, each under an event of its own.
    pub events: u32,
    /// Whether each node writes each word once before it sends it, and reads it once after it has received it.
    pub processing: bool,
}

impl Default for Flood {
    fn default() -> Flood {
        Flood::of(&Values::defaults(Flood::KEYS))
    }
}

impl Flood {
    /// The keys of its settings.
    pub const KEYS: &'static [ProtocolKey] = &[
        ProtocolKey {
            help: "Words of 4 bytes of a fragment; they have to fit in a frame",
            ..WORDS
        },
        ProtocolKey {
            name: "fragments",
            takes: Takes::Count(1, 1_000_000),
            default: Some("16"),
            help: "Fragments of a message; in the report 16, 8 and 4 with 2, 4 and 8 nodes",
        },
        ProtocolKey {
            name: "ahead",
            takes: Takes::Count(1, 1_000_000),
            default: Some("10"),
            help: "Messages that a node sends before it receives the first",
        },
        ProtocolKey {
            name: "events",
            takes: Takes::Count(1, 10_000_000),
            default: Some("100"),
            help: "Messages that a node sends, each a lap",
        },
        PROCESSING,
    ];

    pub(super) fn of(values: &Values) -> Flood {
        Flood {
            words: values.number("words") as u32,
            fragments: values.number("fragments") as u32,
            ahead: values.number("ahead") as u32,
            events: values.number("events") as u32,
            processing: flag_of(values),
        }
    }

    pub(super) fn check(&self, frame: u32) -> Result<(), String> {
        let bytes = u64::from(self.words) * 4;
        if bytes > u64::from(frame) {
            let most = frame / 4;
            return Err(format!(
                "a fragment of {} words does not fit in a frame of {frame} B: give at most words = {most}",
                self.words
            ));
        }
        if bytes * u64::from(self.fragments) > super::MOST_MESSAGE {
            return Err(format!(
                "messages of {} fragments of {bytes} B are too long: give fewer than {}",
                self.fragments,
                super::MOST_MESSAGE / bytes + 1
            ));
        }
        Ok(())
    }
}

/// A node that floods the others.
#[derive(Debug)]
pub(super) struct Flooder {
    settings: Flood,
    me: NodeId,
    nodes: u16,
    /// Messages planned so far.
    planned: u32,
}

impl Flooder {
    pub fn new(settings: Flood, me: NodeId, nodes: u16) -> Flooder {
        Flooder { settings, me, nodes, planned: 0 }
    }

    fn bytes(&self) -> usize {
        4 * self.settings.words as usize * self.settings.fragments as usize
    }

    /// Receives the messages of all others under an event.
    fn receive(&self, plan: &mut Plan, event: EventId) {
        let words = self.bytes() as u64 / 4 * u64::from(self.nodes - 1);
        plan.receive_crowd(event, self.nodes);
        plan.work(written_and_read(words, self.settings.processing).1);
        if self.me == NodeId(0) {
            plan.lap(self.bytes() as u64);
        }
    }
}

impl Rounds for Flooder {
    fn round(&mut self, plan: &mut Plan) -> bool {
        let Flood { words, ahead, events, processing, .. } = self.settings;
        if self.planned == events {
            return false;
        }
        if self.planned == 0 && self.me == NodeId(0) {
            plan.begin();
        }
        let event = plan.event();
        let data = payload(self.me, event, self.bytes());
        plan.work(written_and_read(self.bytes() as u64 / 4, processing).0);
        plan.broadcast_in_crowd(event, data, Some(4 * words));
        self.planned += 1;
        let oldest = event.0.saturating_sub(ahead - 1);
        if self.planned == events {
            (oldest..=event.0).for_each(|late| self.receive(plan, EventId(late)));
        } else if self.planned >= ahead {
            self.receive(plan, EventId(oldest));
        }
        true
    }

    fn take(&mut self, message: Message) -> Result<(), String> {
        check(&message, self.bytes())
    }

    fn verdict(&self) -> Result<(), String> {
        Ok(())
    }
}
