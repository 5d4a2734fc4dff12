//! Frames for nodes without a window here: they are handed on, and lie meanwhile in the buffers in which they came.
//!
//! A buffer comes free when its frame has been sent on, and what is for the application is copied out as ever, so that what
//! waits for a program never stands in the way of what only passes. Why nodes do not wait for each other: see [`Grid`].

use super::{Careful, Grid};
use crate::cstar::{BufferId, Destination, Frame, NodeId, Operation, Route};
use std::collections::{BTreeMap, VecDeque};

/// What waits to be handed on, by the next node; no queue is empty.
#[derive(Debug, Clone, Default)]
pub(super) struct Transit(BTreeMap<NodeId, VecDeque<(Frame, BufferId)>>);

impl Transit {
    /// Whether something waits for this node's window.
    pub fn waits_for(&self, node: NodeId) -> bool {
        self.0.contains_key(&node)
    }

    fn push(&mut self, node: NodeId, frame: Frame, buffer: BufferId) {
        self.0.entry(node).or_default().push_back((frame, buffer));
    }

    fn pop(&mut self, node: NodeId) -> Option<(Frame, BufferId)> {
        let queue = self.0.get_mut(&node)?;
        let first = queue.pop_front();
        if queue.is_empty() {
            self.0.remove(&node);
        }
        first
    }

    #[cfg(test)]
    pub fn queue(&self, node: NodeId) -> impl Iterator<Item = &Frame> {
        self.0.get(&node).into_iter().flatten().map(|it| &it.0)
    }
}

impl Careful {
    /// Whether a frame that has come cannot be here by the ways of the grid.
    pub(super) fn is_astray(&self, frame: &Frame) -> bool {
        if self.grid.is_none() {
            return frame.route.is_some();
        }
        let (origin, nodes) = (frame.origin(), self.cluster.nodes);
        let target_is_wrong = match frame.target() {
            Destination::Node(node) => node.0 >= nodes || node == origin,
            Destination::All => frame.route.is_none(),
        };
        frame.to == Destination::All || origin.0 >= nodes || origin == self.me || target_is_wrong
    }

    /// How many will have done with a frame before its buffer is free: the application, and the next nodes.
    #[inline]
    pub(super) fn users(&self, frame: &Frame) -> u32 {
        let Some(grid) = self.grid else { return 1 };
        let next = grid.onward(self.me, frame.origin(), frame.target()).count();
        next as u32 + u32::from(self.is_for_me(frame))
    }

    pub(super) fn is_for_me(&self, frame: &Frame) -> bool {
        match frame.target() {
            Destination::Node(node) => node == self.me,
            Destination::All => true,
        }
    }

    /// Queues a frame for those to whom it is handed on.
    #[inline]
    pub(super) fn hand_on(&mut self, frame: &Frame, buffer: BufferId) {
        let Some(grid) = self.grid else { return };
        let route = Route { origin: frame.origin(), target: frame.target() };
        for next in grid.onward(self.me, route.origin, route.target) {
            self.tally.note(Operation::ShrinkWindow);
            self.tally.note(Operation::FillUpdate);
            self.tally.handed_on += 1;
            self.transit.push(next, Frame { route: Some(route), ..frame.clone() }, buffer);
        }
    }

    /// A frame that is handed on, if there is one whose next window is open.
    pub(super) fn forward(&mut self) -> Option<Frame> {
        let is_open = |node: &NodeId| self.peers.get(*node).is_some_and(|peer| peer.ours >= 2);
        let next = self.transit.0.keys().copied().find(is_open)?;
        let (frame, buffer) = self.transit.pop(next)?;
        self.give_back(Some(buffer));
        Some(self.hop(next, frame))
    }

    /// Sends a fragment of this node's own to those next on its way.
    pub(super) fn set_out(&mut self, grid: Grid, frame: &Frame) {
        let target = frame.to;
        for next in grid.onward(self.me, self.me, target) {
            let route = Some(Route { origin: self.me, target });
            let route = route.filter(|_| target != Destination::Node(next));
            let frame = self.hop(next, Frame { route, ..frame.clone() });
            self.out.push_back(frame);
        }
    }

    /// A fragment as it goes to the next node.
    fn hop(&mut self, next: NodeId, frame: Frame) -> Frame {
        let to = Destination::Node(next);
        let (grant, counter) = self.charge(to);
        Frame { from: self.me, to, grant, counter, ..frame }
    }
}
