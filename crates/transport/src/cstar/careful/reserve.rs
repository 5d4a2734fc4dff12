//! Reservation before a large message (TR 94-14 §7, as in NX/2): its sender asks for room, and has it before the data go.
//!
//! The room is of the same pool that [`loans`](super::loans) are of, beside the least windows, and is given in the order of
//! asking, so that of many large messages for one node some are on their way and not all at once. Each right is for one
//! frame: when that is done with, the buffer goes back to the pool and not to the sender. Data go meanwhile as the window
//! allows, so that nobody depends on a reservation. What a sender is given and does not need, since its message has gone
//! within the window, it gives back at once; with a lease, when that ends.

use super::Careful;
use crate::cstar::{Destination, Fragment, Frame, Kind, NodeId};

/// Most frames that are asked for at once: as many as a message has fragments at most.
pub(super) const MOST_ASKED: u32 = 1 << 16;

/// Most that is given at once: less than what a frame's grant can say (a choice).
const MOST_GIVEN: u32 = 1 << 15;

impl Careful {
    /// Asks for room for a fragment and those behind it, if they are many, and it was not asked for.
    #[inline]
    pub(super) fn ask(&mut self, fragment: &Fragment) {
        let (Some(many), Destination::Node(node)) = (self.settings.reserve, fragment.to) else {
            return;
        };
        let frames = fragment.following.saturating_add(1).min(MOST_ASKED - 2);
        let peer = self.peer(node);
        // The question takes a credit, and the last one is kept for an update. The fragment itself goes at once: else a node
        // whose leases are short could ask for ever and send nothing (the model check found it).
        let asks = (frames + 2).saturating_sub(peer.ours);
        if frames < many || peer.asked || peer.ours < 3 || asks == 0 {
            return;
        }
        peer.asked = true;
        let grant = self.piggyback(fragment.to);
        let counter = self.count(fragment.to);
        let frame = Frame { asks, ..self.control(node, grant, counter) };
        self.out.push_back(frame);
    }

    /// Whether room can be asked for here, with a frame of this kind.
    pub(super) fn may_ask(&self, kind: Kind) -> bool {
        self.settings.reserve.is_some() && kind == Kind::Update
    }

    /// A peer asks for room for so many frames, or for none. Of the last message that it asked for the rest is not needed.
    pub(super) fn is_asked(&mut self, node: NodeId, asks: u32) {
        if asks == 0 {
            return;
        }
        match self.asking.iter_mut().find(|it| it.0 == node) {
            Some(waiting) => waiting.1 = asks,
            None => self.asking.push_back((node, asks)),
        }
        self.serve();
    }

    /// Gives room to those who ask, as far as there is some: a quarter of the pool or all that is asked for, lest a large
    /// message be granted frame by frame.
    pub(super) fn serve(&mut self) {
        while let (Some(&(node, asks)), Some(loans)) = (self.asking.front(), &mut self.loans) {
            if loans.free == 0 || loans.free < asks.min(loans.all / 4) {
                return;
            }
            let given = asks.min(loans.free).min(MOST_GIVEN);
            loans.free -= given;
            let peer = self.peer(node);
            peer.reserved += given;
            peer.owed += given;
            peer.promised = true;
            self.due.insert(node);
            self.asking[0].1 -= given;
            if given == asks {
                self.asking.pop_front();
            }
        }
    }

    /// A frame of a peer is done with: whether it was of what is reserved, and the buffer is the pool's again.
    #[inline]
    pub(super) fn retire(&mut self, node: NodeId) -> bool {
        if self.settings.reserve.is_none() {
            return false;
        }
        let peer = self.peer(node);
        if peer.reserved == 0 {
            return false;
        }
        peer.reserved -= 1;
        if let Some(loans) = &mut self.loans {
            loans.free += 1;
        }
        self.serve();
        true
    }

    /// Gives back what a peer has granted beyond its window if no message needs it.
    pub(super) fn settle(&mut self, node: NodeId) {
        let (window, at_once) = (self.window, self.settings.lease.is_none());
        let peer = self.peer(node);
        if at_once && !peer.asked && peer.ours > window {
            let frame = self.give_up(node);
            self.out.push_back(frame);
        }
    }
}
