//! Credits: what may be sent, what has come and is done with, and the updates that open windows again (TR 94-14 §5.3).

use super::peer::Peer;
use super::{COPY, Careful};
use crate::cstar::{BufferId, Destination, EventId, Failure, Flags, Frame, Kind, NodeId};
use bytes::Bytes;

impl Careful {
    #[inline]
    pub(super) fn peer(&mut self, node: NodeId) -> &mut Peer {
        self.peers.at(node, self.window)
    }

    /// The first peer whose window is closed to data, of those that a fragment is handed to.
    #[inline]
    pub(super) fn closed(&self, to: Destination) -> Option<NodeId> {
        let closed = |node: &NodeId| match self.peers.get(*node) {
            Some(peer) => peer.ours < 2,
            None => self.window < 2,
        };
        match (to, self.grid) {
            (Destination::Node(node), None) => Some(node).filter(closed),
            (Destination::All, None) => self.cluster.others(self.me).find(closed),
            // What comes from elsewhere goes first: its buffer is another node's window.
            (to, Some(grid)) => {
                let closed = |node: &NodeId| closed(node) || self.transit.waits_for(*node);
                grid.onward(self.me, self.me, to).find(closed)
            }
        }
    }

    /// The grant that a data frame takes along: all that is owed to its receiver; of one for all the least that is owed
    /// to any, so that it is right for each.
    #[inline(never)]
    pub(super) fn piggyback(&mut self, to: Destination) -> u16 {
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

    /// Takes a data frame off the windows of its receivers. Returns the grant that it takes along, and its counter.
    #[inline]
    pub(super) fn charge(&mut self, to: Destination) -> (u16, u32) {
        let piggyback = self.settings.piggyback;
        match to {
            Destination::Node(node) if self.loans.is_none() => {
                let peer = self.peer(node);
                let most = if piggyback { u32::from(u16::MAX) } else { 0 };
                (peer.grant(most) as u16, peer.count())
            }
            _ => (self.piggyback(to), self.count(to)),
        }
    }

    /// Takes a frame off the windows of its receivers. Returns its counter.
    #[inline(never)]
    pub(super) fn count(&mut self, to: Destination) -> u32 {
        match to {
            Destination::Node(node) => self.peer(node).count(),
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

    /// A frame of `from` is done with, of which so many lay in a buffer: it is owed, and an update may be due.
    #[inline]
    pub(super) fn freed(&mut self, from: NodeId, held: u32) {
        let (retired, at_half) = (self.retire(from), self.settings.at_half);
        let peer = self.peer(from);
        peer.held -= held;
        peer.owed += u32::from(!retired);
        if peer.is_due(at_half) {
            self.owes(from);
        }
    }

    /// An update for a peer is due.
    #[cold]
    fn owes(&mut self, node: NodeId) {
        self.due.insert(node);
    }

    /// Whether an update of what is owed is still due: data may have taken it along.
    fn is_due(&self, node: NodeId) -> bool {
        self.peers.get(node).is_some_and(|peer| peer.is_due(self.settings.at_half))
    }

    /// A window update, if one is due and may be sent.
    pub(super) fn update(&mut self) -> Option<Frame> {
        if let Some(node) = self.asked.pop_first() {
            return Some(self.audit(node, false));
        }
        let mut from = NodeId(0);
        while let Some(&node) = self.due.range(from..).next() {
            if !self.is_due(node) {
                self.due.remove(&node);
            } else if self.peer(node).ours > 0 {
                self.due.remove(&node);
                self.adapt(node);
                let grant = self.peer(node).grant(u32::from(u16::MAX)) as u16;
                let counter = self.count(Destination::Node(node));
                return Some(self.control(node, grant, counter));
            }
            from = NodeId(node.0.checked_add(1)?);
        }
        None
    }

    /// A frame without data for `node`.
    pub(super) fn control(&self, node: NodeId, grant: u16, counter: u32) -> Frame {
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
            route: None,
            counter,
            data: Bytes::new(),
            list: Vec::new(),
        }
    }

    /// Copies frames of a peer out of the adapter if it has used up half its window and the application does not receive:
    /// two for each that comes, so that an update is due before the window is closed; but as many as it takes when it is
    /// closed without one, since what was lent has been taken back meanwhile. Those whose buffers go back to the pool do not
    /// count: they open no window.
    #[inline(never)]
    pub(super) fn copy_out(&mut self, from: NodeId) {
        let (mut left, at_half) = (2_u32, self.settings.at_half);
        loop {
            let peer = self.peer(from);
            let is_shut = peer.theirs < 2 && !peer.is_due(at_half);
            if peer.has_half() || left == 0 && !is_shut {
                return;
            }
            // What is reserved is no right to stay here: it is done with when its message is.
            let (window, opens) = (peer.window + peer.lent, peer.reserved == 0);
            let keep = (window / 4).min(window.saturating_sub(2 + window / 2));
            if peer.held <= keep || !self.copy_out_latest(from) {
                return;
            }
            left = left.saturating_sub(u32::from(opens));
        }
    }

    /// Copies the latest frame of a peer out of the adapter. Whether there was one, and room for it.
    fn copy_out_latest(&mut self, from: NodeId) -> bool {
        let is_theirs = |buffer| self.buffers.owner(buffer) == Some(from);
        let Some(stored) = self.inbox.latest_on_board(is_theirs) else { return false };
        let (bytes, buffer) = (stored.data.len() as u64, stored.buffer.take());
        // What it was part of comes free: only so these octets are all that it takes.
        stored.data = Bytes::copy_from_slice(&stored.data);
        self.tally.copied += bytes;
        self.tally.copied_out += 1;
        self.memory.copied += bytes + COPY;
        self.memory.copied_most = self.memory.copied_most.max(self.memory.copied);
        if self.memory.copied > self.settings.memory {
            let bytes = self.memory.copied;
            self.fail(Failure::Memory { bytes });
            return false;
        }
        self.give_back(buffer);
        true
    }

    /// One of a receive buffer's users has done with it: it is free behind the last.
    #[inline]
    pub(super) fn give_back(&mut self, buffer: Option<BufferId>) {
        let Some(buffer) = buffer else { return };
        if let Some(from) = self.buffers.give_back(buffer) {
            self.freed(from, 1);
        }
    }

    /// Takes a receive buffer for a frame of a peer, with so many users.
    #[inline]
    pub(super) fn take_buffer(&mut self, owner: NodeId, users: u32) -> BufferId {
        self.peer(owner).held += 1;
        self.buffers.take(owner, users)
    }
}
