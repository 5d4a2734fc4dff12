//! How nodes meet: what a node has heard of the others, and what it says next. It does no I/O and reads no clock.
//!
//! At the beginning each node says hello to all others until all have said that they have heard everybody: nobody sends a
//! frame before. If there is a multicast group each also says by it that it is there, and then tells those that it has so
//! heard: what is for all goes by the group only if all others hear it.

use std::collections::VecDeque;
use trunkline_core::{Span, Time};
use trunkline_transport::cstar::NodeId;

/// How often hello is said at the beginning.
const EVERY: Span = Span::from_millis(20);
/// How long the group is tried when all have heard each other (a choice: ten greetings).
const GRACE: Span = Span::from_millis(200);

/// What is known of a node at the beginning.
#[derive(Debug, Clone, Copy, Default)]
struct Known {
    /// It has been heard.
    there: bool,
    /// It has heard everybody.
    all: bool,
    /// It has heard this node by the group.
    hears: bool,
}

/// What a node does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// It says by the group that it is there.
    Group,
    /// It says hello to a node, and whether it has heard everybody.
    Hello(NodeId, bool),
    /// It takes in a word that has come, or comes before this time.
    Hear(Time),
    /// It has met the others.
    Over,
}

/// The nodes as they meet.
///
/// Its driver does what is [next](Meeting::next) and tells what it has [heard](Meeting::hears).
#[derive(Debug)]
pub(crate) struct Meeting {
    me: NodeId,
    known: Vec<Known>,
    has_group: bool,
    /// What is to be said.
    out: VecDeque<Next>,
    /// When hello is said again.
    again: Time,
    /// When all had heard each other.
    met: Option<Time>,
    /// Whether the last word has been said.
    last: bool,
}

impl Meeting {
    /// Of this node with so many in all, itself included.
    pub fn new(me: NodeId, nodes: usize, has_group: bool) -> Meeting {
        let mut known = vec![Known::default(); nodes];
        known[usize::from(me.0)] = Known { there: true, all: true, hears: true };
        let (out, again) = (VecDeque::new(), Time::ZERO);
        Meeting { me, known, has_group, out, again, met: None, last: false }
    }

    /// What this node does next.
    pub fn next(&mut self, now: Time) -> Next {
        if let Some(said) = self.out.pop_front() {
            return said;
        }
        if self.is_over(now) {
            if std::mem::replace(&mut self.last, true) {
                return Next::Over;
            }
            // Whoever has not heard this node's last word asks again, and is answered.
            self.greets();
        } else if now >= self.again {
            self.greets();
            self.again = now + EVERY;
        }
        self.out.pop_front().unwrap_or(Next::Hear(self.again))
    }

    /// A node says hello, and whether it has heard everybody, and this node by the group.
    pub fn hears(&mut self, from: NodeId, all: bool, hears: bool) {
        if let Some(it) = self.known.get_mut(usize::from(from.0)) {
            *it = Known { there: true, all: it.all || all, hears: it.hears || hears };
        }
    }

    /// A node was started again.
    pub fn forget(&mut self, from: NodeId) {
        if let Some(it) = self.known.get_mut(usize::from(from.0)) {
            *it = Known::default();
        }
    }

    /// Those that have not been heard.
    pub fn missing(&self) -> impl Iterator<Item = NodeId> {
        (0..).zip(&self.known).filter(|(_, it)| !it.there).map(|(node, _)| NodeId(node))
    }

    /// The first that has not said that it has heard everybody.
    pub fn alone(&self) -> Option<NodeId> {
        self.known.iter().position(|it| !it.all).map(|node| NodeId(node as u16))
    }

    /// Whether all have heard each other.
    pub fn has_met(&self) -> bool {
        self.met.is_some()
    }

    /// Whether all others hear this node by the group.
    pub fn is_heard_by_group(&self) -> bool {
        self.known.iter().all(|it| it.hears)
    }

    fn is_over(&mut self, now: Time) -> bool {
        if self.alone().is_some() {
            return false;
        }
        let met = *self.met.get_or_insert(now);
        !self.has_group || self.is_heard_by_group() || now.since(met) > GRACE
    }

    fn greets(&mut self) {
        self.out.push_back(Next::Group);
        let all = self.missing().next().is_none();
        let others = (0..self.known.len() as u16).map(NodeId).filter(|&to| to != self.me);
        self.out.extend(others.map(|to| Next::Hello(to, all)));
    }
}
