//! The careful protocol (TR 94-14 §5.3): it loses nothing itself, on a network that loses nothing.
//!
//! Each of R receive buffers is some peer's for good: a node may send ⌊R/P⌋ frames to each other one, its window, and more
//! when it is granted more. Data leave a window of at least one frame, which only an update may take; an update's buffer
//! comes free at once, so of two nodes one can always send. Updates go when more than half a window is owed, on data frames
//! where there are any. When a peer has used up half its window and the application receives nothing, its frames are copied
//! out of the adapter, so that a program may send much before it receives.

mod arrive;
mod audit;
mod credits;
mod forward;
mod grid;
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

pub use grid::Grid;
pub use settings::CarefulSettings;

use super::buffers::Buffers;
use super::frame::Head;
use super::inbox::{Inbox, Stored};
use super::numbers::Numbers;
use super::{
    Blocked, BufferId, Cluster, ClusterError, Counters, Delivery, Destination, EventId, Failure,
    Fragment, Frame, FrameError, Kind, Layer, Memory, NodeId, Operation, Source, Tally,
};
use audit::Questions;
use bytes::{Buf, Bytes};
use forward::Transit;
use loans::Loans;
use peer::Peers;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use trunkline_core::{Span, Time};

/// An audit may be late by one in so many of its times (a choice).
const MANY: u64 = 8;

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
    /// The places of the nodes, if not all have windows for all; and what is handed on.
    grid: Option<Grid>,
    transit: Transit,
    /// What is lent beyond the windows.
    loans: Option<Loans>,
    /// Who has asked for room, and for how much that there has not been yet.
    asking: VecDeque<(NodeId, u32)>,
    /// Those dealt with so far; any other is as at the start. In a grid all that there are.
    peers: Peers,
    /// Peers that are owed so much that they are due an update.
    due: BTreeSet<NodeId>,
    /// Peers that asked what was sent to them.
    asked: BTreeSet<NodeId>,
    /// What was asked of peers of which nothing else has come since.
    questions: BTreeMap<NodeId, Questions>,
    inbox: Inbox,
    numbers: Numbers,
    out: VecDeque<Frame>,
    /// Those of what waits, of what is handed on, and the application's are taken.
    buffers: Buffers,
    sent_to_all: u32,
    /// The latest event that was sent under.
    latest: EventId,
    waits: Option<Waits>,
    tally: Tally,
    /// What is copied.
    memory: Memory,
    failure: Option<Failure>,
}

/// What the application waits for, and when peers are next asked about it.
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
        let pools = settings.lease.is_some() || settings.reserve.is_some();
        if pools && settings.grid.is_some() {
            return Err(ClusterError::Schemes);
        }
        let grid = settings.grid.map(|columns| placed(nodes, columns)).transpose()?;
        let works = settings.least_window();
        let fixed = if grid.is_some() { works } else { buffers / u32::from(nodes.max(1)) };
        let window = if pools { fixed.min(works) } else { fixed };
        let least = if settings.literal { 1 } else { works };
        if window < least && nodes > 1 {
            return Err(ClusterError::Window { buffers, nodes, window, least });
        }
        Ok(Careful {
            me,
            cluster: *cluster,
            settings: settings.clone(),
            window,
            grid,
            transit: Transit::default(),
            loans: pools.then(|| Loans::new(settings.lease, buffers, works * u32::from(nodes))),
            asking: VecDeque::new(),
            peers: grid.map_or_else(
                || Ok(Peers::default()),
                |grid| neighbours(grid, me, buffers, works),
            )?,
            due: BTreeSet::new(),
            asked: BTreeSet::new(),
            questions: BTreeMap::new(),
            inbox: Inbox::default(),
            numbers: Numbers::default(),
            out: VecDeque::new(),
            buffers: Buffers::default(),
            sent_to_all: 0,
            latest: EventId(0),
            waits: None,
            tally: Tally::default(),
            memory: Memory::default(),
            failure: None,
        })
    }

    /// Frames that each node may send to each other at the start, in a grid at least.
    pub fn window(&self) -> u32 {
        self.window
    }

    /// Takes a fragment that may be sent. Returns what its frame says; in a grid, before its way is in it.
    #[inline]
    fn head(&mut self, fragment: &Fragment) -> Head {
        self.waits = None;
        self.tally.note(Operation::ShrinkWindow);
        self.tally.note(Operation::FillUpdate);
        self.latest = self.latest.max(fragment.event);
        let number = self.numbers.next(fragment);
        let &Fragment { to, event, flags, .. } = fragment;
        // In a grid it is charged to each of those next on its way.
        let (grant, counter) = if self.grid.is_none() { self.charge(to) } else { (0, 0) };
        Head {
            kind: Kind::Careful,
            flags,
            wants_ack: false,
            from: self.me,
            to,
            event,
            fragment: number,
            grant,
            complete: EventId(0),
            counter,
        }
    }
}

/// The places of nodes in rows of `columns`.
fn placed(nodes: u16, columns: u16) -> Result<Grid, ClusterError> {
    Grid::new(nodes, columns).ok_or(ClusterError::Grid { nodes, columns })
}

/// The peers of a node in a grid, with their windows of `least` or more.
fn neighbours(grid: Grid, me: NodeId, buffers: u32, least: u32) -> Result<Peers, ClusterError> {
    let windows = grid.windows(me, buffers, least);
    let (which, least) = ("receive", grid.least_buffers(least));
    let windows = windows.ok_or(ClusterError::Buffers { which, given: buffers, least })?;
    let mut peers = Peers::default();
    windows.into_iter().for_each(|(node, window)| {
        peers.at(node, window);
    });
    Ok(peers)
}

impl Layer for Careful {
    fn node(&self) -> NodeId {
        self.me
    }

    fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// The size of windows and what they are lent and reserved by; whether nodes hand on.
    fn terms(&self) -> Vec<(&'static str, String)> {
        let Cluster { nodes, receive_buffers, frame, .. } = self.cluster;
        let CarefulSettings { at_half, lease, reserve, grid, .. } = self.settings;
        let none = || "none".to_owned();
        vec![
            ("the message layer", "careful".into()),
            ("nodes", nodes.to_string()),
            ("receive buffers", receive_buffers.to_string()),
            ("bytes of a frame", frame.to_string()),
            ("at_half", at_half.to_string()),
            ("lease", lease.map_or_else(none, |it| it.to_string())),
            ("reserve", reserve.map_or_else(none, |it| it.to_string())),
            ("grid", grid.map_or_else(none, |it| it.to_string())),
        ]
    }

    fn send(&mut self, now: Time, fragment: Fragment) -> Result<(), Blocked> {
        self.ask(&fragment);
        if let Some(peer) = self.closed(fragment.to) {
            self.awaits(now, Source::Node(peer));
            return Err(Blocked::Window(fragment, peer));
        }
        let (head, Fragment { to, following, data, .. }) = (self.head(&fragment), fragment);
        let frame = head.frame(data);
        match self.grid {
            Some(grid) => self.set_out(grid, &frame),
            None => self.out.push_back(frame),
        }
        if let (0, Destination::Node(node), Some(_)) = (following, to, self.settings.reserve) {
            self.peer(node).asked = false;
            self.settle(node);
        }
        Ok(())
    }

    #[inline]
    fn post(&mut self, fragment: &Fragment) -> Option<[u8; Frame::HEADER as usize]> {
        let first = self.out.is_empty() && self.grid.is_none() && self.loans.is_none();
        if !first || self.closed(fragment.to).is_some() {
            return None;
        }
        Some(self.head(fragment).octets(fragment.data.len() as u32))
    }

    #[inline]
    fn take(&mut self, from: Source, event: EventId) -> Option<Delivery> {
        let delivery = self.inbox.take(event, from, self.cluster.nodes)?;
        self.waits = None;
        if delivery.buffer.is_none() {
            self.memory.copied -= delivery.data.len() as u64 + COPY;
        }
        Some(delivery)
    }

    #[inline]
    fn has_fragments(&self) -> bool {
        !self.inbox.is_empty()
    }

    fn wait(&mut self, now: Time, from: Source, _: EventId) {
        self.awaits(now, from);
    }

    // Called from each of an endpoint's calls, which mostly have nothing to release.
    #[inline(always)]
    fn release(&mut self, _now: Time, buffer: BufferId) {
        self.give_back(Some(buffer));
    }

    fn arrive(&mut self, now: Time, frame: Frame) {
        match Head::of(&frame) {
            Some(head) if self.is_next(&head) => self.take_in(now, &head, frame.data),
            _ => self.arrive_any(now, frame),
        }
    }

    #[inline]
    fn hear(&mut self, now: Time, mut octets: Bytes) -> Result<NodeId, FrameError> {
        match Head::plain(&octets, Kind::Careful) {
            Some(head) if self.is_next(&head) => {
                octets.advance(Frame::HEADER as usize);
                self.take_in(now, &head, octets);
                Ok(head.from)
            }
            _ => self.hear_any(now, octets),
        }
    }

    fn damaged(&mut self, _now: Time) {
        self.fail(Failure::Damaged);
    }

    #[inline]
    fn has_frames(&self) -> bool {
        let updates = !self.due.is_empty() || !self.asked.is_empty();
        !self.out.is_empty() || updates || self.grid.is_some()
    }

    #[inline]
    fn transmit(&mut self, _now: Time) -> Option<Frame> {
        if let Some(frame) = self.out.pop_front() {
            return Some(frame);
        }
        if self.grid.is_some()
            && let Some(frame) = self.forward()
        {
            return Some(frame);
        }
        if self.has_frames() { self.update() } else { None }
    }

    #[inline]
    fn deadline(&self) -> Option<Time> {
        let audit = self.waits.filter(|_| self.settings.audit.is_some()).map(|waits| waits.audit);
        let lease = self.loans.and_then(|loans| loans.ends);
        match (audit, lease) {
            (Some(audit), Some(lease)) => Some(audit.min(lease)),
            (one, other) => one.or(other),
        }
    }

    /// Leases are shorter than a nap, audits mostly longer.
    #[inline]
    fn bears(&self, late: Span) -> bool {
        let audits = |audit: Span| audit.as_nanos() >= MANY * late.as_nanos();
        self.loans.is_none() && self.settings.audit.is_none_or(audits)
    }

    fn unanswered(&self, peer: NodeId) -> u32 {
        self.peers.get(peer).map_or(0, |it| it.vain.into())
    }

    fn expire(&mut self, now: Time) {
        if self.loans.and_then(|loans| loans.ends).is_some_and(|ends| ends <= now) {
            self.lease_over(now);
        }
        self.audits(now);
    }

    #[inline]
    fn failure(&self) -> Option<&Failure> {
        self.failure.as_ref()
    }

    fn take_tally(&mut self) -> Tally {
        std::mem::take(&mut self.tally)
    }

    fn memory(&self) -> Memory {
        let (receive, receive_most) = (self.buffers.taken(), self.buffers.most());
        let asked = self.questions.len() * size_of::<(NodeId, Questions)>();
        let state = self.peers.bytes() + asked as u64;
        Memory { receive, receive_most, state, ..self.memory }
    }

    fn counters(&self) -> Counters {
        Counters::default()
    }
}
