//! The careful protocol (§5 of the report): it loses nothing itself, on a network that loses nothing.
//!
//! Each of R receive buffers is some peer's for good: a node may send ⌊R/P⌋ frames to each other one, its window, and more
//! when it is granted more. Data leave a window of at least one frame, which only an update may take; an update's buffer
//! comes free at once, so of two nodes one can always send. Updates go when more than half a window is owed, on data frames
//! where there are any. When a peer has used up half its window and the application receives nothing, its frames are copied
//! out of the adapter, so that a program may send much before it receives.

mod loans;
#[cfg(test)]
mod model;
mod peer;
#[cfg(test)]
mod pool_tests;
mod reserve;
mod settings;
#[cfg(test)]
mod tests;

pub use settings::CarefulSettings;

use super::inbox::{Inbox, Stored};
use super::numbers::Numbers;
use super::{
    Blocked, BufferId, Cluster, ClusterError, Counters, Delivery, Destination, EventId, Failure,
    Flags, Fragment, Frame, Kind, Layer, Memory, NodeId, Operation, Source, Tally,
};
use loans::Loans;
use peer::Peer;
use reserve::MOST_ASKED;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use trunkline_core::Time;

/// The least window with which the half-window rule makes progress (a random simulation of the rules, and the model check
/// in the tests); the report's theorem allows 1, and 2 against livelock.
const LEAST_WINDOW: u32 = 3;

/// Bytes of memory that a fragment takes which was copied out, beside its own: those of its place.
const COPY: u64 = size_of::<Stored>() as u64;

/// One node's end of the careful protocol.
#[derive(Debug, Clone)]
pub struct Careful {
    me: NodeId,
    cluster: Cluster,
    settings: CarefulSettings,
    /// Frames that each node may send to each other at the start.
    window: u32,
    /// What is lent beyond the windows.
    loans: Option<Loans>,
    /// Who has asked for room, and for how much that there has not been yet.
    asking: VecDeque<(NodeId, u32)>,
    /// Those dealt with so far; any other is as at the start.
    peers: BTreeMap<NodeId, Peer>,
    /// Peers that are owed so much that they are due an update.
    due: BTreeSet<NodeId>,
    /// Peers that asked what was sent to them.
    asked: BTreeSet<NodeId>,
    inbox: Inbox,
    numbers: Numbers,
    out: VecDeque<Frame>,
    /// The owner of each receive buffer; the application's and those of what waits have one.
    buffers: Vec<Option<NodeId>>,
    /// Those that have none.
    free: Vec<BufferId>,
    sent_to_all: u32,
    /// The latest event that was sent under.
    latest: EventId,
    waits: Option<Waits>,
    tally: Tally,
    memory: Memory,
    failure: Option<Failure>,
}

/// What the application waits for, and when the peers are asked about it.
#[derive(Debug, Clone, Copy)]
struct Waits {
    from: Source,
    audit: Time,
}

impl Careful {
    /// The end of node `me`.
    ///
    /// # Errors
    /// If there is no such node, or the window is too small.
    pub fn new(
        me: NodeId,
        cluster: &Cluster,
        settings: &CarefulSettings,
    ) -> Result<Careful, ClusterError> {
        let &Cluster { nodes, receive_buffers: buffers, .. } = cluster;
        if me.0 >= nodes {
            return Err(ClusterError::Node { me, nodes });
        }
        let fixed = buffers / u32::from(nodes.max(1));
        let pools = settings.lease.is_some() || settings.reserve.is_some();
        let window = if pools { fixed.min(LEAST_WINDOW) } else { fixed };
        let least = if settings.literal { 1 } else { LEAST_WINDOW };
        if window < least && nodes > 1 {
            return Err(ClusterError::Window { buffers, nodes, window, least });
        }
        Ok(Careful {
            me,
            cluster: *cluster,
            settings: settings.clone(),
            window,
            loans: pools.then(|| Loans::new(settings.lease, buffers, nodes)),
            asking: VecDeque::new(),
            peers: BTreeMap::new(),
            due: BTreeSet::new(),
            asked: BTreeSet::new(),
            inbox: Inbox::default(),
            numbers: Numbers::default(),
            out: VecDeque::new(),
            buffers: Vec::new(),
            free: Vec::new(),
            sent_to_all: 0,
            latest: EventId(0),
            waits: None,
            tally: Tally::default(),
            memory: Memory::default(),
            failure: None,
        })
    }

    /// Frames that each node may send to each other at the start.
    pub fn window(&self) -> u32 {
        self.window
    }

    fn peer(&mut self, node: NodeId) -> &mut Peer {
        let window = self.window;
        self.peers.entry(node).or_insert_with(|| Peer::new(window))
    }

    /// The first peer whose window is closed to data, of those that a fragment is for.
    fn closed(&self, to: Destination) -> Option<NodeId> {
        let closed = |node: &NodeId| match self.peers.get(node) {
            Some(peer) => peer.ours < 2,
            None => self.window < 2,
        };
        match to {
            Destination::Node(node) => Some(node).filter(closed),
            Destination::All => self.cluster.others(self.me).find(closed),
        }
    }

    /// The grant that a data frame takes along: all that is owed to its receiver; of one for all the least that is owed
    /// to any, so that it is right for each.
    fn piggyback(&mut self, to: Destination) -> u16 {
        if !self.settings.piggyback {
            return 0;
        }
        let most = u32::from(u16::MAX);
        match to {
            Destination::Node(node) => {
                if self.peer(node).owed > 0 {
                    self.adapt(node);
                }
                self.peer(node).grant(most) as u16
            }
            Destination::All => {
                let others = self.cluster.others(self.me);
                let least = others.map(|node| self.peer(node).owed).min().unwrap_or(0).min(most);
                self.cluster.others(self.me).for_each(|node| {
                    self.peer(node).grant(least);
                });
                least as u16
            }
        }
    }

    /// Takes a frame off the windows of its receivers. Returns its counter.
    fn count(&mut self, to: Destination) -> u32 {
        match to {
            Destination::Node(node) => {
                let peer = self.peer(node);
                peer.ours -= 1;
                peer.used = true;
                peer.sent = peer.sent.wrapping_add(1);
                peer.sent.wrapping_sub(1)
            }
            Destination::All => {
                self.cluster.others(self.me).for_each(|node| {
                    let peer = self.peer(node);
                    peer.ours -= 1;
                    peer.used = true;
                });
                self.sent_to_all = self.sent_to_all.wrapping_add(1);
                self.sent_to_all.wrapping_sub(1)
            }
        }
    }

    /// A frame of `from` is done with: it is owed, and an update may be due.
    fn freed(&mut self, from: NodeId) {
        if !self.retire(from) {
            self.peer(from).owed += 1;
        }
        if self.is_due(from) {
            self.due.insert(from);
        }
    }

    /// Whether an update of what is owed is still due: data may have taken it along.
    fn is_due(&self, node: NodeId) -> bool {
        let Some(&Peer { lent, reserved, owed, promised, .. }) = self.peers.get(&node) else {
            return false;
        };
        let half = (self.window + lent + reserved) / 2;
        promised || owed > half || (self.settings.at_half && owed > 0 && owed >= half)
    }

    /// A window update, if one is due and may be sent.
    fn update(&mut self) -> Option<Frame> {
        if let Some(node) = self.asked.pop_first() {
            return Some(self.audit(node, false));
        }
        let due: Vec<NodeId> = self.due.iter().copied().collect();
        for node in due {
            if !self.is_due(node) {
                self.due.remove(&node);
            } else if self.peer(node).ours > 0 {
                self.due.remove(&node);
                self.adapt(node);
                let grant = self.peer(node).grant(u32::from(u16::MAX)) as u16;
                let counter = self.count(Destination::Node(node));
                return Some(self.control(node, grant, counter));
            }
        }
        None
    }

    /// A question whether anything was lost, or the answer. Neither takes a credit nor counts: else nodes that ask each
    /// other could close both their windows. It is done with when it comes, in the share of the buffers, ⌊R/P⌋, that is
    /// no peer's; if it is lost another follows.
    fn audit(&mut self, node: NodeId, asks: bool) -> Frame {
        let counter = self.peer(node).sent;
        Frame { wants_ack: asks, again: !asks, ..self.control(node, 0, counter) }
    }

    /// A frame without data for `node`.
    fn control(&self, node: NodeId, grant: u16, counter: u32) -> Frame {
        Frame {
            kind: Kind::Update,
            flags: Flags::default(),
            wants_ack: false,
            again: false,
            from: self.me,
            to: Destination::Node(node),
            event: self.latest,
            // So its receiver sees whether frames to all are missing.
            fragment: self.sent_to_all,
            grant,
            back: 0,
            complete: EventId(0),
            asks: 0,
            counter,
            data: bytes::Bytes::new(),
            list: Vec::new(),
        }
    }

    fn fail(&mut self, failure: Failure) {
        self.failure.get_or_insert(failure);
    }

    /// Whether a frame may be here: it is the next of its sender, which had a credit for it.
    fn is_promised(&mut self, frame: &Frame) -> bool {
        let (peer, event) = (frame.from, frame.event);
        let most = self.loans.map_or(self.window, |_| self.cluster.receive_buffers);
        let known = peer.0 < self.cluster.nodes && peer != self.me;
        if !known || !matches!(frame.kind, Kind::Careful | Kind::Update) {
            let what = if known { "it sent a frame of another protocol" } else { "it is no peer" };
            self.fail(Failure::Protocol { peer, what });
            return false;
        }
        let to_all = frame.to == Destination::All;
        let it = self.peer(peer);
        let audits = is_audit(frame);
        let missing = match audits {
            true => it.ahead(frame.counter),
            false => it.counted(to_all, frame.counter),
        };
        let of_all = frame.fragment.wrapping_sub(it.expected_of_all);
        let missing = match frame.kind {
            Kind::Update if missing == 0 => of_all,
            _ => missing,
        };
        let failure = match missing {
            0 if it.theirs == 0 && !audits => Failure::Overrun { peer, event },
            0 if it.ours + u32::from(frame.grant) > most => {
                Failure::Protocol { peer, what: "it granted more than its window" }
            }
            0 if frame.back > 0 && frame.kind != Kind::Update => {
                Failure::Protocol { peer, what: "it gives back with data" }
            }
            0 if frame.asks > MOST_ASKED || frame.asks > 0 && !self.may_ask(frame.kind) => {
                Failure::Protocol { peer, what: "it asks for room that is not to be had so" }
            }
            0 => return true,
            1..=0x7fff_ffff => Failure::Lost { peer, event, missing },
            _ => Failure::Disordered { peer, event },
        };
        self.fail(failure);
        false
    }

    /// Stores a frame's fragment in a receive buffer.
    fn store(&mut self, frame: Frame) {
        let Frame { from, event, fragment, flags, data, .. } = frame;
        let buffer = self.free.last().copied().unwrap_or(BufferId(self.buffers.len() as u32));
        let stored = Stored { from, fragment, data, buffer: Some(buffer) };
        if !self.inbox.takes(event, from, fragment) {
            let what = "its fragments are numbered beyond reason, or its events too many";
            return self.fail(Failure::Protocol { peer: from, what });
        }
        if !self.inbox.put(event, flags, stored) {
            return self.fail(Failure::Disordered { peer: from, event });
        }
        match self.free.pop() {
            Some(BufferId(place)) => self.buffers[place as usize] = Some(from),
            None => self.buffers.push(Some(from)),
        }
        self.peer(from).held += 1;
        self.memory.receive = (self.buffers.len() - self.free.len()) as u32;
        self.memory.receive_most = self.memory.receive_most.max(self.memory.receive);
    }

    /// Copies frames of a peer out of the adapter if it has used up half its window and the application does not receive:
    /// two for each that comes, so that an update is due before the window is closed.
    fn copy_out(&mut self, from: NodeId) {
        for _ in 0..2 {
            let peer = *self.peer(from);
            // What is reserved is no right to stay here: it is done with when its message is.
            let window = self.window + peer.lent;
            let keep = (window / 4).min(window.saturating_sub(2 + window / 2));
            // What is promised it will have at once.
            let has = peer.theirs + if peer.promised { peer.owed } else { 0 };
            if has > (window + peer.reserved) / 2 || peer.held <= keep {
                return;
            }
            let Some(stored) = self.inbox.latest_on_board(from) else { return };
            let (bytes, buffer) = (stored.data.len() as u64, stored.buffer.take());
            self.tally.copied += bytes;
            self.tally.copied_out += 1;
            self.memory.copied += bytes + COPY;
            self.memory.copied_most = self.memory.copied_most.max(self.memory.copied);
            if self.memory.copied > self.settings.memory {
                let bytes = self.memory.copied;
                return self.fail(Failure::Memory { bytes });
            }
            self.give_back(buffer);
        }
    }

    /// A receive buffer is free again.
    fn give_back(&mut self, buffer: Option<BufferId>) {
        let Some(buffer) = buffer else { return };
        let owner = self.buffers.get_mut(buffer.0 as usize).and_then(Option::take);
        let Some(from) = owner else { return };
        self.free.push(buffer);
        self.memory.receive = (self.buffers.len() - self.free.len()) as u32;
        self.peer(from).held -= 1;
        self.freed(from);
    }

    /// The peers to be asked while the application waits: those it waits for, and all dealt with, since it may be one of
    /// those that waits for this node and cannot ask.
    fn suspects(&self, from: Source) -> BTreeSet<NodeId> {
        let known = self.peers.keys().copied();
        match from {
            Source::Node(node) => known.chain([node]).collect(),
            Source::Any => self.cluster.others(self.me).collect(),
        }
    }
}

/// Whether a frame asks whether anything was lost, or answers that.
fn is_audit(frame: &Frame) -> bool {
    frame.kind == Kind::Update && frame.grant == 0 && (frame.wants_ack || frame.again)
}

impl Layer for Careful {
    fn send(&mut self, now: Time, fragment: Fragment) -> Result<(), Blocked> {
        self.ask(&fragment);
        if let Some(peer) = self.closed(fragment.to) {
            self.wait(now, Source::Node(peer));
            return Err(Blocked::Window(fragment, peer));
        }
        self.waits = None;
        self.tally.note(Operation::ShrinkWindow);
        self.tally.note(Operation::FillUpdate);
        self.latest = self.latest.max(fragment.event);
        let number = self.numbers.next(&fragment);
        let Fragment { to, event, flags, following, data } = fragment;
        let frame = Frame {
            kind: Kind::Careful,
            flags,
            wants_ack: false,
            again: false,
            from: self.me,
            to,
            event,
            fragment: number,
            grant: self.piggyback(to),
            back: 0,
            complete: EventId(0),
            asks: 0,
            counter: self.count(to),
            data,
            list: Vec::new(),
        };
        self.out.push_back(frame);
        if let (0, Destination::Node(node), Some(_)) = (following, to, self.settings.reserve) {
            self.peer(node).asked = false;
            self.settle(node);
        }
        Ok(())
    }

    fn receive(&mut self, now: Time, from: Source, event: EventId) -> Option<Delivery> {
        let Some(delivery) = self.inbox.take(event, from, self.cluster.nodes) else {
            self.wait(now, from);
            return None;
        };
        self.waits = None;
        if delivery.buffer.is_none() {
            self.memory.copied -= delivery.data.len() as u64 + COPY;
        }
        Some(delivery)
    }

    fn release(&mut self, _now: Time, buffer: BufferId) {
        self.give_back(Some(buffer));
    }

    fn arrive(&mut self, now: Time, frame: Frame) {
        if self.failure.is_some() || !self.is_promised(&frame) {
            return;
        }
        let from = frame.from;
        if is_audit(&frame) {
            if frame.wants_ack {
                self.asked.insert(from);
            }
            return;
        }
        let peer = self.peer(from);
        peer.theirs -= 1;
        peer.ours += u32::from(frame.grant);
        peer.used |= frame.grant > 0;
        peer.recent = peer.recent.saturating_add(u32::from(frame.kind == Kind::Careful));
        if let Some(loans) = &mut self.loans {
            loans.begin(now);
        }
        if !self.given_back(from, frame.back) {
            let what = "it gives back more than it was lent";
            return self.fail(Failure::Protocol { peer: from, what });
        }
        if self.settings.reserve.is_some() {
            self.is_asked(from, frame.asks);
            self.settle(from);
        }
        [Operation::ProcessUpdate, Operation::TrackEvent, Operation::ShrinkSender]
            .into_iter()
            .for_each(|operation| self.tally.note(operation));
        if frame.kind == Kind::Update {
            self.freed(from);
        } else {
            self.store(frame);
            self.tally.note(Operation::SkipCopyOut);
        }
        // An update takes a credit too: data that wait may have to make room for the last ones.
        self.copy_out(from);
    }

    fn damaged(&mut self, _now: Time) {
        self.fail(Failure::Damaged);
    }

    fn transmit(&mut self, _now: Time) -> Option<Frame> {
        self.out.pop_front().or_else(|| self.update())
    }

    fn deadline(&self) -> Option<Time> {
        let audit = self.waits.filter(|_| self.settings.audit.is_some()).map(|waits| waits.audit);
        let lease = self.loans.and_then(|loans| loans.ends);
        audit.into_iter().chain(lease).min()
    }

    fn expire(&mut self, now: Time) {
        if self.loans.and_then(|loans| loans.ends).is_some_and(|ends| ends <= now) {
            self.lease_over(now);
        }
        let (Some(waits), Some(audit)) = (self.waits, self.settings.audit) else { return };
        if now < waits.audit {
            return;
        }
        self.waits = Some(Waits { audit: now + audit, ..waits });
        for node in self.suspects(waits.from) {
            let frame = self.audit(node, true);
            self.out.push_back(frame);
        }
    }

    fn failure(&self) -> Option<&Failure> {
        self.failure.as_ref()
    }

    fn take_tally(&mut self) -> Tally {
        std::mem::take(&mut self.tally)
    }

    fn memory(&self) -> Memory {
        let state = self.peers.len() * size_of::<(NodeId, Peer)>();
        Memory { state: state as u64, ..self.memory }
    }

    fn counters(&self) -> Counters {
        Counters::default()
    }
}

impl Careful {
    /// The application waits for something of `from`, or goes on waiting.
    fn wait(&mut self, now: Time, from: Source) {
        let Some(audit) = self.settings.audit else { return };
        if self.waits.is_none_or(|waits| waits.from != from) {
            self.waits = Some(Waits { from, audit: now + audit });
        }
    }
}
