//! What a careful node knows of a peer: credits, and counters of frames.
//!
//! Of the window W of a peer, with what it is lent and what is reserved for it, each frame's credit is in one place: with the peer (`theirs`, which
//! counts grants under way to it), in a frame under way, in a frame held here, or `owed`.

use crate::cstar::NodeId;
use std::ops::Index;

/// A peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Peer {
    /// Frames that each may send to the other at the start.
    pub window: u32,
    /// Frames that may be sent to it.
    pub ours: u32,
    /// Frames that it may send here, grants under way included.
    pub theirs: u32,
    /// Its frames that lie in receive buffers here.
    pub held: u32,
    /// Its frames that are done with and not granted again.
    pub owed: u32,
    /// Frames sent to it alone.
    pub sent: u32,
    /// The counter of its next frame to this node alone.
    pub expected: u32,
    /// The counter of its next frame to all.
    pub expected_of_all: u32,
    /// Frames that it may send beyond its window, as long as it uses them.
    pub lent: u32,
    /// Frames that it may send beyond its window and what it is lent, each once: room for a message.
    pub reserved: u32,
    /// Whether it has not been told of all of these.
    pub promised: bool,
    /// Whether it was asked for room for a message that is not all sent.
    pub asked: bool,
    /// Its frames with data that came lately.
    pub recent: u32,
    /// Whether anything was sent to it, or granted by it, in the lease under way.
    pub used: bool,
    /// How often in a row it was asked whether anything was lost, and has not answered.
    pub vain: u8,
}

impl Peer {
    /// A peer at the start: each side has the whole window of the other.
    pub fn new(window: u32) -> Peer {
        Peer {
            window,
            ours: window,
            theirs: window,
            held: 0,
            owed: 0,
            sent: 0,
            expected: 0,
            expected_of_all: 0,
            lent: 0,
            reserved: 0,
            promised: false,
            asked: false,
            recent: 0,
            used: false,
            vain: 0,
        }
    }

    /// Grants what is owed, at most `most`. Returns how much.
    #[inline]
    pub fn grant(&mut self, most: u32) -> u32 {
        let granted = self.owed.min(most);
        self.owed -= granted;
        self.theirs += granted;
        self.promised &= self.owed > 0;
        granted
    }

    /// A frame of it has come, with a grant.
    #[inline]
    pub fn credit(&mut self, grant: u16) {
        self.theirs -= 1;
        self.ours += u32::from(grant);
        self.used |= grant > 0;
    }

    /// Whether it may send more than half of its frames, with what is promised, which it will have at once.
    #[inline]
    pub fn has_half(&self) -> bool {
        let has = self.theirs + if self.promised { self.owed } else { 0 };
        has > (self.window + self.lent + self.reserved) / 2
    }

    /// Takes a frame to it alone off its window. Returns the frame's counter.
    #[inline]
    pub fn count(&mut self) -> u32 {
        self.ours -= 1;
        self.used = true;
        self.sent = self.sent.wrapping_add(1);
        self.sent.wrapping_sub(1)
    }

    /// Whether an update of what it is owed is due; `at_half` if it is at half a window already.
    #[inline]
    pub fn is_due(&self, at_half: bool) -> bool {
        let half = (self.window + self.lent + self.reserved) / 2;
        self.promised || self.owed > half || (at_half && self.owed > 0 && self.owed >= half)
    }

    /// How far a counter is ahead of the one expected, which it leaves as it is.
    pub fn ahead(&self, counter: u32) -> u32 {
        counter.wrapping_sub(self.expected)
    }

    /// Takes note of a frame with this counter. Answers how far it is ahead of the one expected.
    pub fn counted(&mut self, to_all: bool, counter: u32) -> u32 {
        let expected = if to_all { &mut self.expected_of_all } else { &mut self.expected };
        let ahead = counter.wrapping_sub(*expected);
        *expected = counter.wrapping_add(1);
        ahead
    }
}

/// The peers dealt with so far, in their order: few, or all that there are. They are looked up for each frame.
#[derive(Debug, Clone, Default)]
pub(super) struct Peers {
    all: Vec<(NodeId, Peer)>,
    /// The place of the one that was changed last, mostly the one that is wanted next.
    last: usize,
}

impl Peers {
    #[inline]
    fn place(&self, node: NodeId) -> Result<usize, usize> {
        match self.all.get(self.last) {
            Some(it) if it.0 == node => Ok(self.last),
            _ => self.search(node),
        }
    }

    #[inline(never)]
    fn search(&self, node: NodeId) -> Result<usize, usize> {
        self.all.binary_search_by_key(&node, |it| it.0)
    }

    #[inline]
    pub fn get(&self, node: NodeId) -> Option<&Peer> {
        self.place(node).ok().map(|place| &self.all[place].1)
    }

    pub fn get_mut(&mut self, node: NodeId) -> Option<&mut Peer> {
        self.place(node).ok().map(|place| &mut self.all[place].1)
    }

    /// A peer, with this window if it was not dealt with so far.
    #[inline]
    pub fn at(&mut self, node: NodeId, window: u32) -> &mut Peer {
        if self.all.get(self.last).is_none_or(|it| it.0 != node) {
            self.turn_to(node, window);
        }
        &mut self.all[self.last].1
    }

    /// This peer, if it is the one that was changed last.
    #[inline]
    pub fn latest(&mut self, node: NodeId) -> Option<&mut Peer> {
        self.all.get_mut(self.last).filter(|it| it.0 == node).map(|it| &mut it.1)
    }

    /// Makes a peer the one that was changed last.
    #[inline(never)]
    fn turn_to(&mut self, node: NodeId, window: u32) {
        self.last = self.search(node).unwrap_or_else(|place| {
            self.all.insert(place, (node, Peer::new(window)));
            place
        });
    }

    pub fn nodes(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.all.iter().map(|it| it.0)
    }

    pub fn values(&self) -> impl Iterator<Item = &Peer> {
        self.all.iter().map(|it| &it.1)
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = (NodeId, &mut Peer)> {
        self.all.iter_mut().map(|(node, peer)| (*node, peer))
    }

    /// Bytes that they take.
    pub fn bytes(&self) -> u64 {
        (self.all.len() * size_of::<(NodeId, Peer)>()) as u64
    }
}

impl Index<NodeId> for Peers {
    type Output = Peer;

    fn index(&self, node: NodeId) -> &Peer {
        self.get(node).expect("a peer dealt with before")
    }
}
