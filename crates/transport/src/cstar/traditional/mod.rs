//! The traditional protocol (TR 94-14 §5.2): it keeps what it sends until that is acknowledged.
//!
//! Normally nothing is sent to acknowledge: a frame says up to which event its node has received everything. Only when
//! buffers for sending run short does a frame ask for an answer. There are no timers for sending. A receiver that sees a
//! hole asks for what is missing at once, and again while its program waits for it, later each time. A fragment for which
//! there is no room is refused, and asked for like one that was lost: that is all flow control there is, so that nodes with
//! more outstanding than they have buffers can be busy with refusing and repeating for ever.

mod list;
mod requests;
mod settings;
mod store;
#[cfg(test)]
mod tests;

pub use settings::TraditionalSettings;

use super::buffers::Buffers;
use super::frame::Head;
use super::inbox::{Inbox, Stored};
use super::numbers::Numbers;
use super::{
    Blocked, BufferId, Cluster, ClusterError, Counters, Delivery, Destination, EventId, Failure,
    Flags, Fragment, Frame, FrameError, Kind, Layer, Memory, NodeId, Operation, Source, Tally,
};
use bytes::{Buf, Bytes};
use std::collections::{BTreeSet, VecDeque};
use store::Store;
use trunkline_core::{Span, Time};

/// The operations of Appendix A when a fragment is sent.
const SENDING: [Operation; 7] = [
    Operation::DecideAck,
    Operation::FillDescriptor,
    Operation::SetAckMask,
    Operation::FindSlot,
    Operation::PushDescriptor,
    Operation::CollectSent,
    Operation::CheckSets,
];

/// And when one has come.
const INTERRUPT: [Operation; 9] = [
    Operation::CountBuffers,
    Operation::Prioritise,
    Operation::CheckCopyOut,
    Operation::ImplicitAck,
    Operation::CheckNumber,
    Operation::CheckExplicitAck,
    Operation::CheckRetransmission,
    Operation::CheckCrowd,
    Operation::CheckComplete,
];

/// One node's end of the traditional protocol.
#[derive(Debug, Clone)]
pub struct Traditional {
    me: NodeId,
    cluster: Cluster,
    settings: TraditionalSettings,
    inbox: Inbox,
    numbers: Numbers,
    store: Store,
    out: VecDeque<Frame>,
    /// All events before this have been received whole by the program.
    complete: EventId,
    /// The latest event that was sent under.
    latest: EventId,
    /// Up to which event each peer dealt with has everything, in their order.
    acknowledged: Vec<(NodeId, EventId)>,
    /// Fragments asked for and not come.
    requested: BTreeSet<(NodeId, EventId, u32)>,
    buffers: Buffers,
    waits: Option<Waits>,
    tally: Tally,
    memory: Memory,
    counters: Counters,
    /// Fragments taken in, and acknowledgements that said something new.
    passed: u64,
    failure: Option<Failure>,
}

/// What the program waits for, and when the layer asks for it.
#[derive(Debug, Clone, Copy)]
struct Waits {
    what: Awaited,
    deadline: Time,
    timeout: Span,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Awaited {
    Fragment(Source, EventId),
    Buffers,
}

impl Traditional {
    /// The end of node `me`.
    ///
    /// # Errors
    /// If there is no such node, or there are too few buffers.
    pub fn new(
        me: NodeId,
        cluster: &Cluster,
        settings: &TraditionalSettings,
    ) -> Result<Traditional, ClusterError> {
        let &Cluster { nodes, receive_buffers, send_buffers, .. } = cluster;
        if me.0 >= nodes {
            return Err(ClusterError::Node { me, nodes });
        }
        // Room is kept for a fragment of each node beside that which is waited for.
        let least = u32::from(nodes) + 1;
        let counts = [("receive", receive_buffers, least), ("send", send_buffers, 1)];
        if let Some(&(which, given, least)) = counts.iter().find(|it| it.1 < it.2) {
            return Err(ClusterError::Buffers { which, given, least });
        }
        Ok(Traditional {
            me,
            cluster: *cluster,
            settings: settings.clone(),
            inbox: Inbox::default(),
            numbers: Numbers::default(),
            store: Store::default(),
            out: VecDeque::new(),
            complete: EventId(0),
            latest: EventId(0),
            acknowledged: Vec::new(),
            requested: BTreeSet::new(),
            buffers: Buffers::default(),
            waits: None,
            tally: Tally::default(),
            memory: Memory::default(),
            counters: Counters::default(),
            passed: 0,
            failure: None,
        })
    }

    /// Whether so little is free for sending that answers are asked for: less than a quarter.
    fn is_short(&self) -> bool {
        let all = self.cluster.send_buffers;
        4 * (all - self.store.len().min(all)) < all
    }

    fn frame(&self, kind: Kind, to: Destination, event: EventId) -> Frame {
        Frame {
            kind,
            flags: Flags::default(),
            wants_ack: false,
            again: false,
            from: self.me,
            to,
            event,
            fragment: 0,
            grant: 0,
            back: 0,
            complete: self.complete,
            asks: 0,
            route: None,
            counter: 0,
            data: Bytes::new(),
            list: Vec::new(),
        }
    }

    /// Keeps a fragment for which there is room. Returns what its frame says.
    fn head(&mut self, fragment: &Fragment) -> Head {
        self.waits = None;
        SENDING.into_iter().for_each(|operation| self.tally.note(operation));
        self.latest = self.latest.max(fragment.event);
        let number = self.numbers.next(fragment);
        let receivers = self.cluster.others(self.me);
        self.tally.copied += self.store.keep(number, fragment, receivers, self.settings.on_board);
        self.memory.send = self.store.len();
        self.memory.send_most = self.memory.send_most.max(self.memory.send);
        let &Fragment { to, event, flags, .. } = fragment;
        Head {
            kind: Kind::Traditional,
            flags,
            wants_ack: self.is_short(),
            from: self.me,
            to,
            event,
            fragment: number,
            grant: 0,
            complete: self.complete,
            counter: 0,
        }
    }

    fn is_full(&self) -> bool {
        self.store.len() >= self.cluster.send_buffers
    }

    /// The event before which a frame's sender has everything: the frame says so, or its event does.
    fn claimed(&self, complete: EventId, event: EventId) -> EventId {
        if self.settings.infer { complete.max(event) } else { complete }
    }

    /// A frame from a peer shows what that peer has: all before `until`.
    fn acknowledged_by(&mut self, peer: NodeId, until: EventId) {
        let place = match self.acknowledged.binary_search_by_key(&peer, |it| it.0) {
            Ok(place) => place,
            Err(place) => {
                self.acknowledged.insert(place, (peer, EventId(0)));
                place
            }
        };
        let known = &mut self.acknowledged[place].1;
        if until > *known {
            self.passed += 1;
            let from = std::mem::replace(known, until);
            self.store.acknowledge(peer, from, until);
            self.memory.send = self.store.len();
        }
    }

    /// Whether frames of a node are taken in.
    fn hears(&self, NodeId(from): NodeId) -> bool {
        from < self.cluster.nodes && from != self.me.0 && self.failure.is_none()
    }

    /// Whether there is room for a fragment: always for what the program waits for, if there is any; for others while
    /// there is a buffer left for each node besides.
    fn accepts(&self, from: NodeId, event: EventId) -> bool {
        let free = self.cluster.receive_buffers.saturating_sub(self.buffers.taken());
        let awaited = match self.waits.map(|waits| waits.what) {
            Some(Awaited::Fragment(Source::Node(node), awaited)) => {
                node == from && awaited == event
            }
            Some(Awaited::Fragment(Source::Any, awaited)) => awaited == event,
            _ => false,
        };
        if awaited { free > 0 } else { free > u32::from(self.cluster.nodes) }
    }

    /// A fragment has come.
    fn fragment(&mut self, now: Time, head: &Head, data: Bytes) {
        INTERRUPT.into_iter().for_each(|operation| self.tally.note(operation));
        let &Head { from, event, fragment, flags, wants_ack, .. } = head;
        if !self.requested.is_empty() {
            self.requested.remove(&(from, event, fragment));
        }
        if event < self.complete || self.inbox.has(event, from, fragment) {
            self.counters.duplicates += 1;
        } else if !self.inbox.takes(event, from, fragment) {
            // It is as if it had been lost: whoever is honest sends it again when it is asked for.
            self.counters.refused += 1;
            return;
        } else if self.accepts(from, event) {
            let buffer = Some(self.buffers.take(from, 1));
            self.inbox.put(event, flags, Stored { from, fragment, data, buffer });
            self.passed += 1;
            self.progressed(now);
        } else {
            self.counters.refused += 1;
            self.inbox.refused(event, from, flags, fragment);
            return self.ask_for_holes(from, Some((event, fragment)));
        }
        if wants_ack {
            self.answer(from, event, fragment);
        }
        self.ask_for_holes(from, None);
    }

    /// Reads any frame and takes it in. Returns who sent it.
    fn hear_any(&mut self, now: Time, octets: Bytes) -> Result<NodeId, FrameError> {
        let frame = Frame::decode(octets)?;
        let from = frame.from;
        self.arrive(now, frame);
        Ok(from)
    }

    /// What is waited for may take its time again.
    fn progressed(&mut self, now: Time) {
        let timeout = self.settings.timeout;
        if let Some(waits) = &mut self.waits {
            (waits.timeout, waits.deadline) = (timeout, now + timeout);
        }
    }

    fn awaits(&mut self, now: Time, what: Awaited) {
        if self.waits.is_none_or(|waits| waits.what != what) {
            let timeout = self.settings.timeout;
            self.waits = Some(Waits { what, deadline: now + timeout, timeout });
        }
    }
}

impl Layer for Traditional {
    fn node(&self) -> NodeId {
        self.me
    }

    fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    fn terms(&self) -> Vec<(&'static str, String)> {
        let Cluster { nodes, frame, .. } = self.cluster;
        vec![
            ("the message layer", "traditional".into()),
            ("nodes", nodes.to_string()),
            ("bytes of a frame", frame.to_string()),
        ]
    }

    fn send(&mut self, now: Time, fragment: Fragment) -> Result<(), Blocked> {
        if self.is_full() {
            self.awaits(now, Awaited::Buffers);
            return Err(Blocked::Buffers(fragment));
        }
        let frame = self.head(&fragment).frame(fragment.data);
        self.out.push_back(frame);
        Ok(())
    }

    fn post(&mut self, fragment: &Fragment) -> Option<[u8; Frame::HEADER as usize]> {
        let first = self.out.is_empty() && !self.is_full();
        first.then(|| self.head(fragment).octets(fragment.data.len() as u32))
    }

    fn take(&mut self, from: Source, event: EventId) -> Option<Delivery> {
        let delivery = self.inbox.take(event, from, self.cluster.nodes)?;
        self.waits = None;
        if delivery.status == super::Status::EventDone {
            self.complete = self.complete.max(EventId(event.0.saturating_add(1)));
            // All of what was asked for has come.
            if !self.requested.is_empty() {
                self.requested.retain(|it| it.1 >= self.complete);
            }
        }
        Some(delivery)
    }

    #[inline]
    fn has_fragments(&self) -> bool {
        !self.inbox.is_empty()
    }

    fn wait(&mut self, now: Time, from: Source, event: EventId) {
        if event < self.complete {
            let done = EventId(self.complete.0 - 1);
            self.failure.get_or_insert(Failure::Acknowledged { event, done });
        }
        self.awaits(now, Awaited::Fragment(from, event));
    }

    fn release(&mut self, _now: Time, buffer: BufferId) {
        self.buffers.give_back(buffer);
    }

    fn hear(&mut self, now: Time, mut octets: Bytes) -> Result<NodeId, FrameError> {
        match Head::plain(&octets, Kind::Traditional) {
            Some(head) if self.hears(head.from) => {
                octets.advance(Frame::HEADER as usize);
                self.acknowledged_by(head.from, self.claimed(head.complete, head.event));
                self.fragment(now, &head, octets);
                Ok(head.from)
            }
            _ => self.hear_any(now, octets),
        }
    }

    fn arrive(&mut self, now: Time, frame: Frame) {
        if !self.hears(frame.from) {
            return;
        }
        self.acknowledged_by(frame.from, self.claimed(frame.complete, frame.event));
        match frame.kind {
            Kind::Traditional => {
                let head = Head::of_fragment(&frame);
                self.fragment(now, &head, frame.data);
            }
            Kind::Acknowledgement => self.acknowledged_list(&frame),
            Kind::Request => self.requested_list(&frame),
            Kind::Careful | Kind::Update => {
                let (peer, what) = (frame.from, "it sent a frame of another protocol");
                self.failure.get_or_insert(Failure::Protocol { peer, what });
            }
        }
    }

    /// It will be missed, and asked for.
    fn damaged(&mut self, _now: Time) {}

    #[inline]
    fn has_frames(&self) -> bool {
        !self.out.is_empty()
    }

    #[inline]
    fn transmit(&mut self, _now: Time) -> Option<Frame> {
        self.out.pop_front()
    }

    fn deadline(&self) -> Option<Time> {
        self.waits.map(|waits| waits.deadline)
    }

    fn passed(&self) -> u64 {
        self.passed
    }

    fn expire(&mut self, now: Time) {
        let Some(waits) = self.waits.filter(|waits| waits.deadline <= now) else { return };
        let timeout = waits.timeout.scaled(2, 1).min(self.settings.longest_timeout);
        self.waits = Some(Waits { timeout, deadline: now + timeout, ..waits });
        match waits.what {
            Awaited::Fragment(from, event) => self.ask_for_event(from, event),
            Awaited::Buffers => {
                if let Some((label, node)) = self.store.oldest() {
                    self.repeat(node, &label);
                }
            }
        }
    }

    fn failure(&self) -> Option<&Failure> {
        self.failure.as_ref()
    }

    fn take_tally(&mut self) -> Tally {
        std::mem::take(&mut self.tally)
    }

    fn memory(&self) -> Memory {
        let peers = self.acknowledged.len() * size_of::<(NodeId, EventId)>();
        let (receive, receive_most) = (self.buffers.taken(), self.buffers.most());
        Memory { receive, receive_most, state: peers as u64, ..self.memory }
    }

    fn counters(&self) -> Counters {
        self.counters
    }
}
