//! How nodes meet: what a node has heard of the others, and what it says next. It does no I/O and reads no clock.
//!
//! At the beginning each node asks all others whether they are there, and is answered. When it has heard everybody it says
//! so to all, and when all others have said the same it begins: nobody sends a frame before. What is lost is asked for
//! again, of those alone that have not answered, and more and more seldom; whoever has begun goes on answering. Many nodes
//! may share a processor, so a node says nothing before it has taken in what has come: else it would ask for what waits
//! for it, and the more words wait the less it would take in.
//!
//! If there is a multicast group each also says by it that it is there, and tells those that it has so heard: what is for
//! all goes by the group only if all others hear it.

use std::collections::VecDeque;
use trunkline_core::{Span, Time};
use trunkline_transport::cstar::NodeId;

/// A node asks again for the first time after so long for the way, and for each node, which may all share a processor; then
/// so often at least (choices: many nodes take about half of this to hear each other).
const SOON: Span = Span::from_millis(20);
const EACH: Span = Span::from_millis(4);
const SELDOM: Span = Span::from_secs(1);
/// How long the group is tried when all have heard each other (a choice: few nodes ask three times).
const GRACE: Span = Span::from_millis(200);
/// So many words that wait are taken in before something is said at most (a choice: four of each of 250 nodes).
const MOST: usize = 1000;

/// What a node says to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Said {
    /// It asks for an answer.
    Asks,
    /// It is there, and has not heard everybody.
    There,
    /// It has heard everybody.
    All,
    /// It has begun.
    Begun,
}

/// What is known of a node at the beginning.
#[derive(Debug, Clone, Copy, Default)]
struct Known {
    /// It has been heard.
    there: bool,
    /// It has heard everybody.
    all: bool,
    /// It has heard this node by the group.
    hears: bool,
    /// It has asked, and is not answered.
    asks: bool,
}

/// What a node does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// It says by the group that it is there.
    Group,
    /// It says something to a node.
    Say(NodeId, Said),
    /// It takes in a word that has come, or comes before this time.
    Hear(Time),
    /// It has met the others.
    Over,
}

/// How long so many nodes wait for an answer before they ask again.
fn soon(nodes: usize) -> Span {
    (SOON + EACH.scaled(nodes as u64, 1)).min(SELDOM)
}

/// The nodes as they meet.
///
/// Its driver does what is [next](Meeting::next) and tells that it has [taken something in](Meeting::takes_in) and what it
/// has [heard](Meeting::hears), or that it has heard [nothing](Meeting::hears_nothing).
#[derive(Debug)]
pub(crate) struct Meeting {
    me: NodeId,
    known: Vec<Known>,
    has_group: bool,
    /// What is to be said.
    out: VecDeque<Next>,
    /// Words that were taken in since something was said, if more may wait.
    taken: Option<usize>,
    /// Whether it has said to all that it has heard everybody.
    told: bool,
    /// When it asks next, and how long after that again.
    asks: Time,
    pause: Span,
    /// When something new was last heard, and when all had heard each other.
    news: Time,
    met: Option<Time>,
}

impl Meeting {
    /// Of this node with so many in all, itself included.
    pub fn new(me: NodeId, nodes: usize, has_group: bool) -> Meeting {
        let mut known = vec![Known::default(); nodes];
        known[usize::from(me.0)] = Known { there: true, all: true, hears: true, asks: false };
        Meeting {
            me,
            known,
            has_group,
            out: VecDeque::new(),
            taken: Some(0),
            told: false,
            asks: Time::ZERO,
            pause: soon(nodes),
            news: Time::ZERO,
            met: None,
        }
    }

    /// What this node does next.
    pub fn next(&mut self, now: Time) -> Next {
        if let Some(said) = self.out.pop_front() {
            return said;
        }
        if self.taken.is_some_and(|it| it < MOST) {
            return Next::Hear(now);
        }
        self.taken = self.taken.map(|_| 0);
        self.speaks(now);
        match self.out.pop_front() {
            Some(said) => said,
            None if self.is_over(now) => Next::Over,
            None => Next::Hear(self.met.map_or(self.asks, |met| self.asks.min(met + GRACE))),
        }
    }

    /// A node says something, and whether it has heard this one by the group.
    pub fn hears(&mut self, now: Time, NodeId(from): NodeId, said: Said, hears: bool) {
        let Some(it) = self.known.get_mut(usize::from(from)) else { return };
        let all = it.all || matches!(said, Said::All | Said::Begun);
        if (it.there, it.all) != (true, all) {
            self.news = now;
        }
        let (hears, asks) = (it.hears || hears, it.asks || said == Said::Asks);
        *it = Known { there: true, all, hears, asks };
    }

    /// Something has come, whatever it is; more may wait.
    pub fn takes_in(&mut self) {
        self.taken = Some(self.taken.map_or(1, |it| it + 1));
    }

    /// Nothing more has come.
    pub fn hears_nothing(&mut self) {
        self.taken = None;
    }

    /// A node was started again.
    pub fn forget(&mut self, NodeId(from): NodeId) {
        if let Some(it) = self.known.get_mut(usize::from(from)) {
            *it = Known::default();
            (self.told, self.met) = (false, None);
        }
    }

    /// Those that have not been heard.
    pub fn missing(&self) -> impl Iterator<Item = NodeId> {
        self.those(|it| !it.there)
    }

    /// The first that has not said that it has heard everybody.
    pub fn alone(&self) -> Option<NodeId> {
        self.those(|it| !it.all).next()
    }

    /// For how long nothing new was heard, if not all have heard each other.
    pub fn waits(&self, now: Time) -> Option<Span> {
        if self.met.is_some() { None } else { Some(now.since(self.news)) }
    }

    /// Whether all others hear this node by the group.
    pub fn is_heard_by_group(&self) -> bool {
        self.known.iter().all(|it| it.hears)
    }

    fn those(&self, which: impl Fn(&Known) -> bool) -> impl Iterator<Item = NodeId> {
        (0..).zip(&self.known).filter(move |(_, it)| which(it)).map(|(node, _)| NodeId(node))
    }

    fn is_over(&self, now: Time) -> bool {
        let tried = |met| !self.has_group || self.is_heard_by_group() || now.since(met) >= GRACE;
        self.told && self.met.is_some_and(tried)
    }

    /// Finds what is to be said when what has come was taken in.
    fn speaks(&mut self, now: Time) {
        if self.met.is_none() && self.alone().is_none() {
            self.met = Some(now);
            // Of the others only the group is still in question.
            (self.asks, self.pause) = (now, soon(self.known.len()));
        }
        if now >= self.asks {
            self.asks();
            (self.asks, self.pause) = (now + self.pause, (self.pause + self.pause).min(SELDOM));
        }
        if !self.told && self.missing().next().is_none() {
            self.told = true;
            self.pause = soon(self.known.len());
            self.asks = now + self.pause;
            self.known.iter_mut().for_each(|it| it.asks = true);
        }
        self.answers();
    }

    /// Asks those of which this node needs an answer to come on.
    fn asks(&mut self) {
        let (told, met) = (self.told, self.met.is_some());
        if self.has_group && !self.is_heard_by_group() && (self.asks == Time::ZERO || met) {
            self.out.push_back(Next::Group);
        }
        let hears = |it: &Known| it.hears || !self.has_group || !met;
        let silent = self.those(|it| !it.there || told && !it.all || !hears(it));
        let asked: Vec<_> = silent.map(|to| Next::Say(to, Said::Asks)).collect();
        self.out.extend(asked);
    }

    /// Answers those that have asked.
    fn answers(&mut self) {
        let said = if self.told { Said::All } else { Said::There };
        for (to, it) in (0..).map(NodeId).zip(&mut self.known) {
            if std::mem::take(&mut it.asks) && to != self.me {
                self.out.push_back(Next::Say(to, said));
            }
        }
    }
}

#[cfg(test)]
mod tests;
