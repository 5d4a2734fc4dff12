//! One message that goes round the ring of nodes (§6 of TR 94-14, Table 1).

use super::payload::{check, payload};
use super::settings::{PROCESSING, WORDS, flag_of, written_and_read};
use crate::{Message, Plan, Rounds};
use trunkline_transport::cstar::{NodeId, Source};
use trunkline_transport::protocol::{ProtocolKey, Takes, Values};

/// Settings of the latency test. A lap is a round of the ring, its bytes the payload; a hop takes lap / P.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Latency {
    /// Words of 4 bytes of the message.
    pub words: u32,
    /// Rounds that are measured.
    pub rounds: u32,
    /// Rounds before those.
    pub warm_up: u32,
    /// Whether each node writes each word once before it sends it, and reads it once after it has received it.
    pub processing: bool,
}

impl Default for Latency {
    fn default() -> Latency {
        Latency::of(&Values::defaults(Latency::KEYS))
    }
}

impl Latency {
    /// The keys of its settings.
    pub const KEYS: &'static [ProtocolKey] = &[
        WORDS,
        ProtocolKey {
            name: "rounds",
            takes: Takes::Count(1, 10_000_000),
            default: Some("100"),
            help: "Rounds of the ring that are measured, each a lap",
        },
        ProtocolKey {
            name: "warm_up",
            takes: Takes::Count(0, 1_000_000),
            default: Some("5"),
            help: "Rounds of the ring before those",
        },
        PROCESSING,
    ];

    pub(super) fn of(values: &Values) -> Latency {
        Latency {
            words: values.number("words") as u32,
            rounds: values.number("rounds") as u32,
            warm_up: values.number("warm_up") as u32,
            processing: flag_of(values),
        }
    }

    pub(super) fn events(&self) -> u64 {
        u64::from(self.rounds) + u64::from(self.warm_up)
    }
}

/// A node of the ring.
#[derive(Debug)]
pub(super) struct Ring {
    settings: Latency,
    me: NodeId,
    nodes: u16,
    round: u32,
}

impl Ring {
    pub fn new(settings: Latency, me: NodeId, nodes: u16) -> Ring {
        Ring { settings, me, nodes, round: 0 }
    }

    fn bytes(&self) -> usize {
        4 * self.settings.words as usize
    }
}

impl Rounds for Ring {
    fn round(&mut self, plan: &mut Plan) -> bool {
        let Latency { words, rounds, warm_up, processing } = self.settings;
        if self.round == warm_up + rounds {
            return false;
        }
        let (before, after) = super::settings::neighbours(self.me, self.nodes);
        let (written, read) = written_and_read(words.into(), processing);
        let event = plan.event();
        let data = payload(self.me, event, self.bytes());
        if self.me == NodeId(0) {
            if self.round == warm_up {
                plan.begin();
            }
            plan.work(written);
            plan.send(after, event, data);
            plan.receive(Source::Node(before), event);
            plan.work(read);
            if self.round >= warm_up {
                plan.lap(self.bytes() as u64);
            }
        } else {
            plan.receive(Source::Node(before), event);
            plan.work(read);
            plan.work(written);
            plan.send(after, event, data);
        }
        self.round += 1;
        true
    }

    fn take(&mut self, message: Message) -> Result<(), String> {
        check(&message, self.bytes())
    }

    fn verdict(&self) -> Result<(), String> {
        Ok(())
    }
}
