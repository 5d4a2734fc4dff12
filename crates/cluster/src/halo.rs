//! Neighbours in a grid of nodes exchange messages.

use crate::message::Cut;
use crate::script::{Script, receive, scripted};
use crate::test::{BYTES, Description, ROUNDS};
use crate::{Op, Program};
use std::collections::VecDeque;
use trunkline_transport::cstar::{Delivery, Destination, EventId, NodeId};
use trunkline_transport::protocol::{ProtocolKey, Values};

/// The nodes form a grid, as square as their number allows, closed at its sides to a torus. In a round each sends a message
/// up, down, left and right, and then receives those of its neighbours; with a single row, or column, there is no up and
/// down, or left and right. A lap of node 0 is a round, its bytes those that one node sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Halo {
    /// Bytes of a message.
    pub bytes: u32,
    /// Rounds.
    pub rounds: u32,
}

impl Description for Halo {
    const NAME: &'static str = "halo";
    const HELP: &'static str = "Each node of a grid that is closed at its sides exchanges messages with its four neighbours; the figure is \
         the time of a round.";
    const KEYS: &'static [ProtocolKey] = &[BYTES, ROUNDS];

    fn read(values: &Values) -> Halo {
        Halo { bytes: values.number("bytes") as u32, rounds: values.number("rounds") as u32 }
    }

    fn events(&self, _: u16) -> u64 {
        4 * u64::from(self.rounds)
    }

    fn laps(&self) -> u32 {
        self.rounds
    }

    fn program(&self, me: NodeId, nodes: u16, frame: u32) -> Box<dyn Program> {
        scripted(Torus::new(*self, me, nodes, Cut { bytes: self.bytes, frame }), me, nodes)
    }
}

impl Halo {
    /// The rows and columns of so many nodes: the most rows that divide them and are not more than the columns.
    pub fn grid(nodes: u16) -> (u16, u16) {
        let fits = |rows: &u16| nodes.is_multiple_of(*rows) && *rows <= nodes / *rows;
        let rows = (1..=nodes.isqrt()).rev().find(fits).unwrap_or(1);
        (rows, nodes / rows)
    }
}

#[derive(Debug)]
pub(crate) struct Torus {
    test: Halo,
    me: NodeId,
    cut: Cut,
    /// For each direction the node that a message goes to, and the one from which one comes.
    ways: Vec<(NodeId, NodeId)>,
    round: u32,
}

impl Torus {
    pub fn new(test: Halo, me: NodeId, nodes: u16, cut: Cut) -> Torus {
        let (rows, columns) = Halo::grid(nodes);
        let (row, column) = (me.0 / columns, me.0 % columns);
        let mut ways = Vec::new();
        if rows > 1 {
            let at = |row: u16| NodeId(row * columns + column);
            let (up, down) = (at((row + rows - 1) % rows), at((row + 1) % rows));
            ways.extend([(up, down), (down, up)]);
        }
        if columns > 1 {
            let at = |column: u16| NodeId(row * columns + column);
            let (left, right) = (at((column + columns - 1) % columns), at((column + 1) % columns));
            ways.extend([(left, right), (right, left)]);
        }
        Torus { test, me, cut, ways, round: 0 }
    }

    /// Each direction has an event of its own, so that a node receives from one at each.
    fn event(&self, way: usize) -> EventId {
        EventId(self.round * self.ways.len() as u32 + way as u32)
    }
}

impl Script for Torus {
    fn phase(&mut self, ops: &mut VecDeque<Op>) {
        if self.round == self.test.rounds {
            return;
        }
        if self.round == 0 {
            ops.push_back(Op::Begin);
        }
        for (way, &(to, _)) in self.ways.iter().enumerate() {
            ops.extend(self.cut.send(self.me, Destination::Node(to), self.event(way), false));
        }
        for (way, &(_, from)) in self.ways.iter().enumerate() {
            ops.extend(receive(from, self.event(way), self.cut.count()));
        }
        ops.push_back(Op::Lap(self.ways.len() as u64 * u64::from(self.cut.bytes)));
        self.round += 1;
    }

    fn end(&self) -> EventId {
        self.event(0)
    }

    fn received(&mut self, delivery: &Delivery) -> Result<(), String> {
        self.cut.check(delivery)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grid_is_as_square_as_the_nodes_allow() {
        let grids = [2, 4, 6, 7, 12, 16, 64].map(Halo::grid);
        assert_eq!(grids, [(1, 2), (2, 2), (2, 3), (1, 7), (3, 4), (4, 4), (8, 8)]);
    }

    /// Whoever sends to a node is the one from which that node receives, in each direction.
    #[test]
    fn neighbours_agree() {
        for nodes in 2..30 {
            let cut = Cut { bytes: 1, frame: 1 };
            let torus = |me| Torus::new(Halo { bytes: 1, rounds: 1 }, me, nodes, cut);
            for me in (0..nodes).map(NodeId) {
                for (way, &(to, _)) in torus(me).ways.iter().enumerate() {
                    assert_eq!(torus(to).ways[way].1, me);
                }
            }
        }
    }
}
