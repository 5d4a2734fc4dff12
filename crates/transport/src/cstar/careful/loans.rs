//! Adaptive windows (TR 94-14 §6.2): buffers beyond the least windows are lent to those that are likely to use them.
//!
//! Each peer has a [least window](super::CarefulSettings::least_window) for good, with which the protocol makes progress whatever becomes of loans.
//! The other buffers are a pool. A peer that has used up more than half of what it may send is granted more with its next
//! update: at most as much again, and of the pool at most its share of the frames that came lately, which are counted and
//! halved once in a lease. What a peer has more than its share is kept back from its grants. A right that its holder does not
//! use for a lease it gives back in so many words ([`Frame::back`]), behind all frames that it sent with it: so the lender
//! needs no clock in common with it, and lends no buffer twice.

use super::Careful;
use crate::cstar::{Destination, Frame, NodeId};
use trunkline_core::{Span, Time};

/// What a node lends.
#[derive(Debug, Clone, Copy)]
pub(super) struct Loans {
    /// How long a right may lie unused; `None` if nothing is lent for a time, and the pool is for reservations alone.
    lease: Option<Span>,
    /// Buffers of the pool, lent or not.
    pub all: u32,
    /// Those that are not lent.
    pub free: u32,
    /// When the lease under way ends; `None` if nothing was received, sent or lent of late.
    pub ends: Option<Time>,
}

impl Loans {
    /// A pool of what `buffers` are more than `windows`, those that all nodes have for good.
    pub fn new(lease: Option<Span>, buffers: u32, windows: u32) -> Loans {
        let all = buffers.saturating_sub(windows);
        Loans { lease, all, free: all, ends: None }
    }

    /// Something was received, sent or lent.
    pub fn begin(&mut self, now: Time) {
        self.ends = self.ends.or(self.lease.map(|lease| now + lease));
    }
}

impl Careful {
    /// Lends a peer that is granted something more of the pool, or keeps back what it has beyond its share.
    pub(super) fn adapt(&mut self, node: NodeId) {
        let Some(mut loans) = self.loans.filter(|it| it.lease.is_some()) else { return };
        let (window, share) = (self.window, self.share(&loans, node));
        let peer = self.peer(node);
        let has = window + peer.lent + peer.reserved;
        if share > peer.lent && 2 * peer.theirs < has {
            let more = (share - peer.lent).min(has).min(loans.free);
            peer.lent += more;
            peer.owed += more;
            loans.free -= more;
        } else if share < peer.lent {
            // Something is left to be granted: an update without it would be none.
            let fewer = (peer.lent - share).min(peer.owed.saturating_sub(1));
            peer.lent -= fewer;
            peer.owed -= fewer;
            loans.free += fewer;
        }
        self.loans = Some(loans);
    }

    /// A peer's share of the pool: that of its frames among all that came lately.
    fn share(&self, loans: &Loans, node: NodeId) -> u32 {
        let recent = self.peers.get(node).map_or(0, |peer| u64::from(peer.recent));
        let sum: u64 = self.peers.values().map(|peer| u64::from(peer.recent)).sum();
        (u64::from(loans.all) * recent / sum.max(1)) as u32
    }

    /// A lease has ended: what came lately counts half, and rights that were not used meanwhile are given back.
    pub(super) fn lease_over(&mut self, now: Time) {
        let window = self.window;
        let mut idle = Vec::new();
        let mut goes_on = false;
        for (node, peer) in self.peers.iter_mut() {
            peer.recent /= 2;
            if peer.ours > window && !std::mem::take(&mut peer.used) {
                idle.push(node);
            }
            goes_on |= peer.recent > 0 || peer.ours > window;
        }
        for node in idle {
            let frame = self.give_up(node);
            self.out.push_back(frame);
        }
        if let Some(loans) = &mut self.loans {
            loans.ends = loans.lease.filter(|_| goes_on).map(|lease| now + lease);
        }
    }

    /// The frame that gives back what a peer has granted beyond its window.
    pub(super) fn give_up(&mut self, node: NodeId) -> Frame {
        let window = self.window;
        let peer = self.peer(node);
        peer.asked = false;
        let back = (peer.ours - window).min(u32::from(u16::MAX));
        peer.ours -= back;
        let counter = self.count(Destination::Node(node));
        Frame { back: back as u16, ..self.control(node, 0, counter) }
    }

    /// Takes in what a peer gives back. Whether it had been lent that.
    pub(super) fn given_back(&mut self, node: NodeId, back: u16) -> bool {
        let back = u32::from(back);
        let Some(loans) = &mut self.loans else { return back == 0 };
        let Some(peer) = self.peers.get_mut(node) else { return back == 0 };
        if back > peer.lent + peer.reserved || back > peer.theirs {
            return false;
        }
        let reserved = back.min(peer.reserved);
        peer.reserved -= reserved;
        peer.lent -= back - reserved;
        peer.theirs -= back;
        loans.free += back;
        self.serve();
        true
    }
}
