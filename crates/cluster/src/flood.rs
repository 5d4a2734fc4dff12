//! All nodes flood all others (§6.1 of TR 94-14, Table 3).

use crate::message::Cut;
use crate::script::{Script, read, scripted, write};
use crate::test::{Description, PROCESSING, WORDS, count};
use crate::{Op, Program};
use std::collections::VecDeque;
use trunkline_transport::cstar::{Delivery, Destination, EventId, NodeId, Source};
use trunkline_transport::protocol::{ProtocolKey, Takes, Values};

/// Most messages ahead: layers keep what has come under so many events.
const MOST_AHEAD: u64 = 1 << 12;
/// Most fragments of a message, as for the layers.
const MOST_FRAGMENTS: u64 = 1 << 16;

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

impl Description for Flood {
    const NAME: &'static str = "flood";
    const HELP: &'static str = "Each node broadcasts messages before it receives any; the figure is the time of one (TR 94-14, Table 3).";
    const KEYS: &'static [ProtocolKey] = &[
        ProtocolKey { help: "Payload of a fragment, in words of 4 bytes", ..WORDS },
        ProtocolKey {
            takes: Takes::Count(1, MOST_FRAGMENTS),
            ..count("fragments", 1, "4", "Fragments of a message, 65536 at most")
        },
        ProtocolKey {
            takes: Takes::Count(1, MOST_AHEAD),
            ..count("ahead", 1, "10", "Messages that are sent before any is received, 4096 at most")
        },
        count("events", 1, "100", "Messages of each node, rounded up to a multiple of ahead"),
        PROCESSING,
    ];
    const TRIAL: &'static str = "ahead=2,events=10,words=20,fragments=2";
    const FIGURE: &'static str = "time of a message of each node";

    fn read(values: &Values) -> Flood {
        Flood {
            words: values.number("words") as u32,
            fragments: values.number("fragments") as u32,
            ahead: values.number("ahead") as u32,
            events: values.number("events") as u32,
            processing: values.flag("processing"),
        }
    }

    fn check(&self, _: u16, frame: u32) -> Result<(), String> {
        let words = self.words;
        if 4 * words > frame {
            return Err(format!(
                "a fragment of {words} words is longer than a frame of {frame} bytes: give at most {}",
                frame / 4
            ));
        }
        Ok(())
    }

    fn events(&self, _: u16) -> u64 {
        u64::from(self.events).next_multiple_of(u64::from(self.ahead.max(1)))
    }

    fn laps(&self) -> u32 {
        self.events.div_ceil(self.ahead.max(1))
    }

    fn parts(&self, _: u16) -> u64 {
        u64::from(self.ahead)
    }

    fn program(&self, me: NodeId, nodes: u16, _: u32) -> Box<dyn Program> {
        let (frame, bytes) = (4 * self.words, 4 * self.words * self.fragments);
        let cut = Cut { bytes, frame };
        scripted(Torrent { test: *self, me, nodes, cut, event: 0, step: 0 }, me, nodes)
    }
}

#[derive(Debug)]
pub(crate) struct Torrent {
    pub test: Flood,
    pub me: NodeId,
    pub nodes: u16,
    pub cut: Cut,
    /// The first event of the batch.
    pub event: u32,
    /// Phases of the batch that are planned: one sends a message, one receives as many fragments as a message has.
    pub step: u32,
}

impl Script for Torrent {
    fn phase(&mut self, ops: &mut VecDeque<Op>) {
        let Flood { words, fragments, ahead, events, processing } = self.test;
        if self.event >= events {
            return;
        }
        if (self.event, self.step) == (0, 0) {
            ops.push_back(Op::Begin);
        }
        let others = u32::from(self.nodes - 1);
        if let Some(received) = self.step.checked_sub(ahead) {
            let event = EventId(self.event + received / others.max(1));
            for _ in 0..fragments {
                ops.push_back(Op::Receive(Source::Any, event));
                ops.extend(read(processing, 4 * words));
            }
        } else {
            let event = EventId(self.event + self.step);
            for fragment in self.cut.send(self.me, Destination::All, event, true) {
                ops.extend(write(processing, 4 * words));
                ops.push_back(fragment);
            }
        }
        self.step += 1;
        if self.step == ahead + ahead * others {
            ops.push_back(Op::Lap(u64::from(ahead) * u64::from(self.cut.bytes)));
            (self.event, self.step) = (self.event + ahead, 0);
        }
    }

    fn end(&self) -> EventId {
        EventId(self.event)
    }

    fn received(&mut self, delivery: &Delivery) -> Result<(), String> {
        self.cut.check(delivery)
    }
}
