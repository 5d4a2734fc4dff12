//! What is asked for again, acknowledged and sent again.

use super::list::{entries, fragments};
use super::store::Label;
use super::{Awaited, Traditional};
use crate::cstar::{Destination, Entry, EventId, Failure, Frame, Kind, NodeId, Operation, Source};

/// Most fragments that one request asks for.
pub(super) const MOST_ASKED: usize = 256;
/// Most fragments that are asked for and have not come.
pub(super) const MOST_REQUESTED: usize = 1 << 12;

/// What a peer is told to have done that asks for what it says it has received.
const SAID: &str = "it asks for what it has acknowledged; does it receive events out of their order, or do several nodes send to it under an event that is no crowd?";

/// What one is told to have done of whom that was only taken from the event under which it sends.
const INFERRED: &str = "it asks for what `infer` took it to have, since it has sent under a later event; leave out `infer` if nodes send under an event before they have received all before, or make `timeout` longer than a frame can be late";

impl Traditional {
    pub(super) fn answer(&mut self, to: NodeId, event: EventId, first: u32) {
        let mut frame = self.frame(Kind::Acknowledgement, Destination::Node(to), self.latest);
        frame.list.push(Entry { event, first, following: 0 });
        self.counters.acknowledgements += 1;
        self.out.push_back(frame);
    }

    /// Asks a peer for what is missing of it and has not been asked for: what is before something that has come. What has
    /// just been refused is left for the next time.
    pub(super) fn ask_for_holes(&mut self, from: NodeId, but: Option<(EventId, u32)>) {
        if self.inbox.is_simple() {
            return;
        }
        let holes: Vec<(EventId, u32)> = self.inbox.holes(from).take(MOST_REQUESTED).collect();
        let room = MOST_REQUESTED.saturating_sub(self.requested.len()).min(MOST_ASKED);
        let new = holes.into_iter().filter(|&(event, fragment)| {
            Some((event, fragment)) != but && self.requested.insert((from, event, fragment))
        });
        let missing: Vec<(EventId, u32)> = new.take(room).collect();
        self.ask(from, &missing);
    }

    fn ask(&mut self, from: NodeId, missing: &[(EventId, u32)]) {
        if missing.is_empty() {
            return;
        }
        let mut frame = self.frame(Kind::Request, Destination::Node(from), self.latest);
        frame.list = entries(missing);
        self.counters.requests += missing.len() as u64;
        self.out.push_back(frame);
    }

    /// A peer acknowledges fragments.
    pub(super) fn acknowledged_list(&mut self, frame: &Frame) {
        self.tally.note(Operation::ImplicitAck);
        for (event, number) in frame.list.iter().flat_map(fragments) {
            if let Some(label) = self.store.find(frame.from, event, number) {
                self.passed += 1;
                self.store.has(frame.from, &label);
            }
        }
        self.memory.send = self.store.len();
    }

    /// A peer asks for fragments. Those that are not sent yet it will get in their time; those that it has acknowledged
    /// since are of no use to it: its request was overtaken.
    pub(super) fn requested_list(&mut self, frame: &Frame) {
        self.tally.note(Operation::CheckRetransmission);
        let claimed = self.claimed(frame.complete, frame.event);
        for (event, number) in frame.list.iter().flat_map(fragments) {
            match self.store.find(frame.from, event, number) {
                Some(label) => self.repeat(frame.from, &label),
                None if event < claimed => {
                    let what = if event < frame.complete { SAID } else { INFERRED };
                    self.failure.get_or_insert(Failure::Protocol { peer: frame.from, what });
                }
                None => {}
            }
        }
    }

    pub(super) fn repeat(&mut self, to: NodeId, label: &Label) {
        let Some(descriptor) = self.store.get(label) else { return };
        let &(event, _, fragment) = label;
        let (flags, data) = (descriptor.flags, descriptor.data.clone());
        let frame = self.frame(Kind::Traditional, Destination::Node(to), event);
        let wants_ack = self.is_short() || self.waits.is_some_and(|it| it.what == Awaited::Buffers);
        self.counters.again += 1;
        self.out.push_back(Frame { flags, fragment, data, again: true, wants_ack, ..frame });
    }

    /// Asks for what is missing of an event, whether or not it was asked for: all of what its nodes may have sent.
    pub(super) fn ask_for_event(&mut self, source: Source, event: EventId) {
        let nodes: Vec<NodeId> = match source {
            Source::Node(node) => vec![node],
            Source::Any => self.cluster.others(self.me).collect(),
        };
        for node in nodes {
            let missing = self.inbox.missing(event, node).map(|number| (event, number));
            let missing: Vec<(EventId, u32)> = missing.take(MOST_ASKED).collect();
            self.requested.extend(missing.iter().map(|&(event, number)| (node, event, number)));
            self.ask(node, &missing);
        }
    }
}
