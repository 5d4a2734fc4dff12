//! Jacobi's iteration for the Laplace equation on a square (§6.1 of TR 94-14, Table 4).

use crate::script::{Script, scripted};
use crate::test::{Description, count};
use crate::{Op, Program, Work};
use bytes::Bytes;
use std::collections::VecDeque;
use std::ops::Range;
use trunkline_transport::cstar::{Delivery, Destination, EventId, Flags, Fragment, NodeId, Source};
use trunkline_transport::protocol::{ProtocolKey, Takes, Values};

/// The rows of the grid are spread over the nodes. In each iteration a node sends its first row up and its last row down,
/// and computes its points from those of its neighbours. The lap of node 0 is the whole computation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Jacobi {
    /// Points of a side of the grid.
    pub side: u32,
    /// Iterations.
    pub iterations: u32,
}

impl Description for Jacobi {
    const NAME: &'static str = "jacobi";
    const HELP: &'static str = "Jacobi's iteration for the Laplace equation on a square; the figure is its time (TR 94-14, Table 4).";
    const KEYS: &'static [ProtocolKey] = &[
        ProtocolKey {
            name: "side",
            takes: Takes::Count(1, 8192),
            default: Some("64"),
            help: "Points of a side of the grid",
        },
        count("iterations", 1, "1000", "Iterations"),
    ];
    const TRIAL: &'static str = "side=12,iterations=20";
    const FIGURE: &'static str = "time of the computation";
    const LEAST_NODES: u16 = 1;

    fn read(values: &Values) -> Jacobi {
        Jacobi {
            side: values.number("side") as u32,
            iterations: values.number("iterations") as u32,
        }
    }

    fn check(&self, nodes: u16, frame: u32) -> Result<(), String> {
        let side = self.side;
        if u32::from(nodes) > side {
            return Err(format!(
                "{nodes} nodes are more than the grid's {side} rows: give a larger side"
            ));
        }
        if frame < 8 {
            return Err("a frame has no room for a value of 8 bytes: give larger frames".into());
        }
        Ok(())
    }

    fn events(&self, _: u16) -> u64 {
        2 * u64::from(self.iterations)
    }

    fn laps(&self) -> u32 {
        1
    }

    fn program(&self, me: NodeId, nodes: u16, frame: u32) -> Box<dyn Program> {
        scripted(Iteration::new(*self, me, nodes, frame), me, nodes)
    }
}

/// What the points above the grid are kept at; those at its other sides are 0.
const EDGE: f64 = 1.0;

/// A stretch of rows of the grid, between a row above and one below, with a column at either side.
#[derive(Debug, Clone, PartialEq)]
struct Rows {
    side: usize,
    values: Vec<f64>,
}

impl Rows {
    fn new(side: usize, rows: &Range<usize>) -> Rows {
        let mut values = vec![0.0; (rows.len() + 2) * (side + 2)];
        if rows.start == 0 {
            values[1..=side].fill(EDGE);
        }
        Rows { side, values }
    }

    /// The places of the points of a row; 0 is the row above.
    fn row(&self, row: usize) -> Range<usize> {
        let start = row * (self.side + 2) + 1;
        start..start + self.side
    }

    fn count(&self) -> usize {
        self.values.len() / (self.side + 2) - 2
    }

    fn sweep(&mut self) {
        let (width, old) = (self.side + 2, self.values.clone());
        for row in 1..=self.count() {
            for at in self.row(row) {
                self.values[at] =
                    (old[at - width] + old[at - 1] + old[at + 1] + old[at + width]) / 4.0;
            }
        }
    }

    fn octets(&self, row: usize) -> Bytes {
        self.values[self.row(row)].iter().flat_map(|value| value.to_le_bytes()).collect()
    }

    /// Sets points of a row from `first` on.
    fn set(&mut self, row: usize, first: usize, octets: &[u8]) -> Result<(), String> {
        let row = self.row(row);
        let values = octets.chunks_exact(8).map(|it| it.try_into().map_or(0.0, f64::from_le_bytes));
        let places = row.skip(first);
        if !octets.len().is_multiple_of(8) || octets.len() / 8 > places.len() {
            return Err(format!(
                "{} bytes are no part of a row of {} points",
                octets.len(),
                self.side
            ));
        }
        std::iter::zip(places, values).for_each(|(at, value)| self.values[at] = value);
        Ok(())
    }
}

/// The rows of a node, spread evenly.
fn share(side: u32, NodeId(me): NodeId, nodes: u16) -> Range<usize> {
    let until = |node: u16| side as usize * usize::from(node) / usize::from(nodes);
    until(me)..until(me + 1)
}

#[derive(Debug)]
pub(crate) struct Iteration {
    test: Jacobi,
    me: NodeId,
    nodes: u16,
    /// Points in a fragment at most.
    points: usize,
    rows: Rows,
    iteration: u32,
    ended: bool,
}

impl Iteration {
    pub fn new(test: Jacobi, me: NodeId, nodes: u16, frame: u32) -> Iteration {
        let rows = Rows::new(test.side as usize, &share(test.side, me, nodes));
        let points = (frame as usize / 8).max(1);
        Iteration { test, me, nodes, points, rows, iteration: 0, ended: false }
    }

    fn above(&self) -> Option<NodeId> {
        self.me.0.checked_sub(1).map(NodeId)
    }

    fn below(&self) -> Option<NodeId> {
        Some(NodeId(self.me.0 + 1)).filter(|node| node.0 < self.nodes)
    }

    /// Rows that go down and rows that go up have events of their own, so that a node receives from one at each.
    fn events(&self) -> (EventId, EventId) {
        (EventId(2 * self.iteration), EventId(2 * self.iteration + 1))
    }

    fn exchange(&self, ops: &mut VecDeque<Op>) {
        let (down, up) = self.events();
        if let Some(above) = self.above() {
            ops.extend(self.send(1, above, up));
        }
        if let Some(below) = self.below() {
            ops.extend(self.send(self.rows.count(), below, down));
        }
        let fragments = self.rows.side.div_ceil(self.points);
        for (from, event) in [(self.above(), down), (self.below(), up)] {
            let Some(from) = from else { continue };
            ops.extend((0..fragments).map(|_| Op::Receive(Source::Node(from), event)));
        }
    }

    fn send(&self, row: usize, to: NodeId, event: EventId) -> impl Iterator<Item = Op> {
        let octets = self.rows.octets(row);
        let pieces = octets.len().div_ceil(8 * self.points);
        let points = self.points;
        (0..pieces).map(move |piece| {
            let until = octets.len().min(8 * points * (piece + 1));
            let data = octets.slice(8 * points * piece..until);
            let flags = Flags { last: piece + 1 == pieces, crowd: false, large: pieces > 1 };
            let (to, following) = (Destination::Node(to), (pieces - piece - 1) as u32);
            Op::Send(Fragment { to, event, flags, following, data })
        })
    }
}

impl Script for Iteration {
    fn phase(&mut self, ops: &mut VecDeque<Op>) {
        if self.iteration > 0 && !self.ended {
            self.rows.sweep();
        }
        if self.iteration == self.test.iterations {
            if !self.ended {
                ops.push_back(Op::Lap(0));
            }
            self.ended = true;
            return;
        }
        if self.iteration == 0 {
            ops.push_back(Op::Begin);
        }
        self.exchange(ops);
        let points = (self.rows.count() * self.rows.side) as u64;
        ops.push_back(Op::Work(Work { points, sweeps: 1, ..Work::default() }));
        self.iteration += 1;
    }

    fn end(&self) -> EventId {
        EventId(2 * self.test.iterations)
    }

    fn received(&mut self, delivery: &Delivery) -> Result<(), String> {
        let row = if Some(delivery.from) == self.above() { 0 } else { self.rows.count() + 1 };
        self.rows.set(row, delivery.fragment as usize * self.points, &delivery.data)
    }

    /// The rows are those that one node alone computes, to the last bit.
    fn result(&self) -> Result<(), String> {
        let side = self.test.side as usize;
        let mut whole = Rows::new(side, &(0..side));
        (0..self.test.iterations).for_each(|_| whole.sweep());
        for (own, row) in share(self.test.side, self.me, self.nodes).enumerate() {
            if self.rows.values[self.rows.row(own + 1)] != whole.values[whole.row(row + 1)] {
                return Err(format!("row {row} is not what one node alone computes"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One point: a quarter of the edge. Two in a column: after two sweeps the lower has a sixteenth, the upper a quarter and
    /// a quarter of what the lower had.
    #[test]
    fn a_point_is_the_mean_of_its_four_neighbours() {
        let mut one = Rows::new(1, &(0..1));
        one.sweep();
        assert_eq!(one.values[one.row(1)], [0.25]);
        let mut four = Rows::new(2, &(0..2));
        four.sweep();
        assert_eq!(
            (&four.values[four.row(1)], &four.values[four.row(2)]),
            (&[0.25; 2][..], &[0.0; 2][..])
        );
        four.sweep();
        assert_eq!(four.values[four.row(1)], [0.3125; 2]);
        assert_eq!(four.values[four.row(2)], [0.0625; 2]);
    }
}
