//! Places of nodes in a grid, and the ways between them (TR 94-14 §7: windows by logical distance, and forwarding).
//!
//! The nodes stand in rows, and each row and each column is closed to a ring. A node has windows for those that are a power
//! of two before or behind it in its row or its column, the nearer the larger; whoever else it sends to is reached over
//! these. A way goes along columns first, then along rows, in the shorter direction, and each step is the longest that does
//! not pass the target. So no way has two steps of one length in one direction, and along any way the steps come in one
//! order, the same for all ways: columns before rows, long before short. A buffer belongs to the step by which its frame
//! came, and a frame in it waits only for windows of later steps. Hence nodes that forward for each other never wait for
//! each other in a circle, without a class of buffers for what they forward.

use crate::cstar::{Destination, NodeId};

/// The nodes of a cluster in rows of equal length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grid {
    rows: u16,
    columns: u16,
}

/// From one place to another: steps along the column and along the row, each the shorter way round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Offset {
    down: i32,
    right: i32,
}

impl Grid {
    /// The grid of `nodes` in rows of `columns`; `None` if these do not divide them.
    pub fn new(nodes: u16, columns: u16) -> Option<Grid> {
        let fits = columns > 0 && nodes > 0 && nodes.is_multiple_of(columns);
        fits.then(|| Grid { rows: nodes / columns, columns })
    }

    /// The node to which `from` hands what is for `to`; `to` itself if it has a window for it.
    pub fn next(self, from: NodeId, to: NodeId) -> NodeId {
        let Offset { down, right } = self.offset(from, to);
        if down != 0 { self.at(from, longest(down), 0) } else { self.at(from, 0, longest(right)) }
    }

    /// How often a frame of `from` for `to` is sent.
    pub fn hops(self, from: NodeId, to: NodeId) -> u32 {
        let Offset { down, right } = self.offset(from, to);
        down.unsigned_abs().count_ones() + right.unsigned_abs().count_ones()
    }

    /// Those that `node` has windows for, each once, with their distance along the row or the column.
    pub fn peers(self, node: NodeId) -> impl Iterator<Item = (NodeId, u16)> {
        let down = steps(self.rows).map(move |step| (self.at(node, step, 0), step));
        let right = steps(self.columns).map(move |step| (self.at(node, 0, step), step));
        down.chain(right).map(|(peer, step)| (peer, step.unsigned_abs() as u16))
    }

    /// Those to whom `node` hands what `origin` sends to `target`; none if it is for `node` alone.
    pub fn onward(
        self,
        node: NodeId,
        origin: NodeId,
        target: Destination,
    ) -> impl Iterator<Item = NodeId> {
        let (one, all) = match target {
            Destination::Node(to) => (Some(self.next(node, to)).filter(|_| to != node), None),
            Destination::All => (None, Some(self.children(origin, node))),
        };
        one.into_iter().chain(all.into_iter().flatten())
    }

    /// Those to whom `node` hands what `origin` sends to all: each node gets it once, by the way that it would have alone.
    fn children(self, origin: NodeId, node: NodeId) -> impl Iterator<Item = NodeId> {
        let Offset { down, right } = self.offset(origin, node);
        let column = further(self.rows, if right == 0 { Some(down) } else { None });
        let row = further(self.columns, Some(right));
        let column = column.map(move |step| self.at(node, step, 0));
        column.chain(row.map(move |step| self.at(node, 0, step)))
    }

    /// The window for each peer of a node: of `buffers` the `least` for each, and what is left in inverse proportion to the
    /// distance. `None` if there are too few.
    pub fn windows(self, node: NodeId, buffers: u32, least: u32) -> Option<Vec<(NodeId, u32)>> {
        let rest = buffers.checked_sub(self.least_buffers(least))?;
        let longest = self.peers(node).map(|it| it.1).max().unwrap_or(1);
        // Distances are powers of two.
        let weight = |distance: u16| u64::from(longest / distance);
        let all: u64 = self.peers(node).map(|it| weight(it.1)).sum();
        let share = |distance| (u64::from(rest) * weight(distance) / all.max(1)) as u32;
        let window = |(peer, distance)| (peer, least + share(distance));
        Some(self.peers(node).map(window).collect())
    }

    /// Buffers without which nodes do not start: those of windows of the `least` size.
    pub fn least_buffers(self, least: u32) -> u32 {
        least * self.peers(NodeId(0)).count() as u32
    }

    fn offset(self, from: NodeId, to: NodeId) -> Offset {
        let (row, column) = self.place(from);
        let (to_row, to_column) = self.place(to);
        Offset {
            down: around(self.rows, to_row - row),
            right: around(self.columns, to_column - column),
        }
    }

    fn place(self, NodeId(node): NodeId) -> (i32, i32) {
        (i32::from(node / self.columns), i32::from(node % self.columns))
    }

    /// The node so many steps from another.
    fn at(self, from: NodeId, down: i32, right: i32) -> NodeId {
        let (row, column) = self.place(from);
        let (rows, columns) = (i32::from(self.rows), i32::from(self.columns));
        let (row, column) = ((row + down).rem_euclid(rows), (column + right).rem_euclid(columns));
        NodeId((row * columns + column) as u16)
    }
}

/// The shorter way round a ring; forward if both are as long.
fn around(ring: u16, steps: i32) -> i32 {
    let ring = i32::from(ring);
    let forward = steps.rem_euclid(ring);
    if forward > ring / 2 { forward - ring } else { forward }
}

/// The longest step that does not pass a target so far away.
fn longest(away: i32) -> i32 {
    away.signum() << away.unsigned_abs().checked_ilog2().unwrap_or(0)
}

/// Places of a ring that are nearer forward (1) or backward (-1), the furthest of them.
fn reach(ring: u16, direction: i32) -> i32 {
    let ring = i32::from(ring);
    if direction > 0 { ring / 2 } else { (ring - 1) / 2 }
}

/// The steps that nodes of a ring make.
fn steps(ring: u16) -> impl Iterator<Item = i32> {
    further(ring, Some(0))
}

/// The steps by which what has come so far round a ring goes on, to reach each place once: shorter ones than that by which
/// it came, within the half of the ring. None if it is not to go round it.
fn further(ring: u16, come: Option<i32>) -> impl Iterator<Item = i32> {
    let come = come.into_iter();
    come.flat_map(move |come| {
        let directions = [1, -1].into_iter().filter(move |it| come == 0 || come.signum() == *it);
        directions.flat_map(move |direction| {
            let left = reach(ring, direction) - come.abs();
            let shorter = if come == 0 { i32::MAX } else { 1 << come.trailing_zeros() };
            let lengths = (0..16).map(|power| 1 << power);
            let fit = lengths.take_while(move |&length| length <= left && length < shorter);
            fit.map(move |length| direction * length)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn grids() -> impl Strategy<Value = Grid> {
        (1_u16..40, 1_u16..40).prop_map(|(rows, columns)| Grid { rows, columns })
    }

    /// The class of a buffer: that of the step by which its frame came. Lower ones wait for none but still lower ones.
    fn class(grid: Grid, from: NodeId, to: NodeId) -> u16 {
        let found = grid.peers(from).find(|it| it.0 == to);
        let distance = found.expect("a step leads to a peer").1;
        let Offset { down, .. } = grid.offset(from, to);
        if down != 0 { 1000 + distance } else { distance }
    }

    proptest! {
        /// Peers have windows for each other, of one size; a way leads to its target, over peers, in as many hops as are
        /// told, and each buffer on it is of a lower class than the one before.
        #[test]
        fn ways_lead_to_their_targets_in_one_order(grid in grids(), from: u16, to: u16) {
            let nodes = grid.rows * grid.columns;
            let (from, to) = (NodeId(from % nodes), NodeId(to % nodes));
            let distance = |a, b| grid.peers(a).find(|it| it.0 == b).map(|it| it.1);
            for (peer, far) in grid.peers(from) {
                prop_assert_eq!(distance(peer, from), Some(far));
                prop_assert_eq!(grid.peers(from).filter(|it| it.0 == peer).count(), 1);
                prop_assert_eq!(grid.next(from, peer), peer);
            }
            let (mut at, mut hops, mut last) = (from, 0, u16::MAX);
            while at != to {
                let next = grid.next(at, to);
                let of = class(grid, at, next);
                prop_assert!(of < last, "{:?} {:?}", at, next);
                (at, last, hops) = (next, of, hops + 1);
            }
            prop_assert_eq!(hops, grid.hops(from, to));
        }

        /// What is sent to all comes to each once, and by the way that it would have had alone.
        #[test]
        fn what_is_for_all_comes_to_each_once(grid in grids(), origin: u16) {
            let nodes = grid.rows * grid.columns;
            let origin = NodeId(origin % nodes);
            let (mut reached, mut next) = (BTreeSet::from([origin]), vec![origin]);
            while let Some(node) = next.pop() {
                for child in grid.children(origin, node) {
                    prop_assert!(reached.insert(child), "{:?} twice", child);
                    prop_assert_eq!(grid.next(node, child), child);
                    next.push(child);
                }
            }
            prop_assert_eq!(reached.len(), usize::from(nodes));
        }

        /// Windows are never more than the buffers, and those of two peers for each other are the same.
        #[test]
        fn windows_fit_into_the_buffers(grid in grids(), node: u16, least in 3_u32..5, spare in 0_u32..1000) {
            let node = NodeId(node % (grid.rows * grid.columns));
            let buffers = grid.least_buffers(least) + spare;
            let windows = grid.windows(node, buffers, least).unwrap();
            prop_assert!(windows.iter().map(|it| it.1).sum::<u32>() <= buffers);
            for (peer, window) in windows {
                prop_assert!(window >= least);
                prop_assert!(grid.windows(peer, buffers, least).unwrap().contains(&(node, window)));
            }
        }
    }

    /// 10,000 nodes in a square: 24 windows each, and no more than 10 hops.
    #[test]
    fn ten_thousand_nodes_need_few_buffers() {
        let grid = Grid::new(10_000, 100).unwrap();
        assert_eq!((grid.peers(NodeId(0)).count(), grid.least_buffers(3)), (24, 72));
        let most = (0..10_000).map(|to| grid.hops(NodeId(0), NodeId(to))).max();
        assert_eq!(most, Some(10));
        let windows = grid.windows(NodeId(0), 256, 3).unwrap();
        assert_eq!(windows.iter().find(|it| it.0 == NodeId(1)).unwrap().1, 26);
        assert!(grid.windows(NodeId(0), 71, 3).is_none());
        assert_eq!(Grid::new(10, 4), None);
    }
}
