//! Laplace's equation on a square, by Jacobi's iteration (§6 of TR 94-14, Table 4).

use super::payload::{check, payload};
use super::settings::neighbours;
use crate::{Message, Plan, Rounds, Work};
use bytes::Bytes;
use std::ops::Range;
use trunkline_transport::cstar::{EventId, NodeId, Source};
use trunkline_transport::protocol::{ProtocolKey, Takes, Values};

/// Settings of the Jacobi test. A lap is an iteration; its bytes are the row that a node sends to a neighbour.
///
/// Each node sends its first row to the node above and its last row to the node below. The outermost nodes have no
/// neighbour on one side; they exchange a word instead, so that every node receives under every event, as the message
/// layer of the report wants it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Jacobi {
    /// Points of a side of the grid within its boundary.
    pub side: u32,
    /// Iterations.
    pub iterations: u32,
}

impl Default for Jacobi {
    fn default() -> Jacobi {
        Jacobi::of(&Values::defaults(Jacobi::KEYS))
    }
}

impl Jacobi {
    /// The keys of its settings. The report does not state its iterations; about 1000 fit its times.
    pub const KEYS: &'static [ProtocolKey] = &[
        ProtocolKey {
            name: "side",
            takes: Takes::Count(1, 4096),
            default: Some("64"),
            help: "Points of a side of the grid; the rows are spread evenly over the nodes",
        },
        ProtocolKey {
            name: "iterations",
            takes: Takes::Count(1, 1_000_000),
            default: Some("1000"),
            help: "Iterations, each a lap",
        },
    ];

    pub(super) fn of(values: &Values) -> Jacobi {
        Jacobi {
            side: values.number("side") as u32,
            iterations: values.number("iterations") as u32,
        }
    }

    pub(super) fn events(&self) -> u64 {
        2 * u64::from(self.iterations)
    }

    pub(super) fn check(&self, nodes: u16) -> Result<(), String> {
        if u32::from(nodes) > self.side {
            return Err(format!(
                "{nodes} nodes cannot share {} rows: give fewer nodes, or a side of at least {nodes}",
                self.side
            ));
        }
        Ok(())
    }
}

/// Rows of a grid with the boundary around them: above the first and below the last a row that is not computed, and the
/// same to the left and to the right.
#[derive(Debug, Clone, PartialEq)]
struct Grid {
    /// Points of a row, with two of the boundary.
    width: usize,
    points: Vec<f64>,
}

/// The fixed temperature at a point of the boundary of a square whose rows and columns are numbered from 0 to `end`: hot
/// above, falling along the sides, cold below.
fn boundary(row: usize, end: usize) -> f64 {
    100.0 * (end - row) as f64 / end as f64
}

impl Grid {
    /// The rows `rows` of a square of `side` points, all 0 within the boundary.
    fn new(side: usize, rows: Range<usize>) -> Grid {
        let (width, end) = (side + 2, side + 1);
        let mut points = vec![0.0; width * (rows.len() + 2)];
        for (at, line) in points.chunks_exact_mut(width).enumerate() {
            let row = rows.start + at;
            line[0] = boundary(row, end);
            line[end] = boundary(row, end);
            if row == 0 || row == end {
                line.fill(boundary(row, end));
            }
        }
        Grid { width, points }
    }

    /// Rows that are computed.
    fn rows(&self) -> usize {
        self.points.len() / self.width - 2
    }

    /// A row between its boundary points; row 0 is the one above the first computed.
    fn row(&self, row: usize) -> &[f64] {
        &self.points[row * self.width + 1..(row + 1) * self.width - 1]
    }

    fn row_mut(&mut self, row: usize) -> &mut [f64] {
        &mut self.points[row * self.width + 1..(row + 1) * self.width - 1]
    }

    /// Sets each point to the mean of its four neighbours.
    fn sweep(&mut self) {
        let (old, width) = (self.points.clone(), self.width);
        for row in 1..=self.rows() {
            for at in row * width + 1..(row + 1) * width - 1 {
                let (above, below) = (old[at - width], old[at + width]);
                self.points[at] = (above + below + old[at - 1] + old[at + 1]) * 0.25;
            }
        }
    }
}

/// A node with its rows.
#[derive(Debug)]
pub(super) struct Solver {
    settings: Jacobi,
    me: NodeId,
    nodes: u16,
    /// The rows of the square that it computes, from 0.
    rows: Range<usize>,
    grid: Grid,
    iteration: u32,
    /// The events of the rows that go up and down in this iteration.
    up: EventId,
    down: EventId,
}

impl Solver {
    pub fn new(settings: Jacobi, me: NodeId, nodes: u16) -> Solver {
        let side = settings.side as usize;
        let start = |node: u16| side * usize::from(node) / usize::from(nodes);
        let rows = start(me.0)..start(me.0 + 1);
        let grid = Grid::new(side, rows.clone());
        let (up, down) = (EventId(0), EventId(0));
        Solver { settings, me, nodes, rows, grid, iteration: 0, up, down }
    }

    fn is_first(&self) -> bool {
        self.me.0 == 0
    }

    fn is_last(&self) -> bool {
        self.me.0 == self.nodes - 1
    }

    /// Exchanges rows with the neighbours.
    fn exchange(&self, plan: &mut Plan) {
        let (above, below) = neighbours(self.me, self.nodes);
        let row = |row: usize| -> Bytes {
            self.grid
                .row(row)
                .iter()
                .flat_map(|point| point.to_le_bytes())
                .collect::<Vec<u8>>()
                .into()
        };
        let word = |event| payload(self.me, event, WORD);
        let first = if self.is_first() { word(self.up) } else { row(1) };
        let last = if self.is_last() { word(self.down) } else { row(self.grid.rows()) };
        plan.send(above, self.up, first);
        plan.send(below, self.down, last);
        plan.receive(Source::Node(below), self.up);
        plan.receive(Source::Node(above), self.down);
    }
}

/// Bytes of the message that the outermost nodes exchange.
const WORD: usize = 4;

impl Rounds for Solver {
    fn round(&mut self, plan: &mut Plan) -> bool {
        let row = 8 * u64::from(self.settings.side);
        if self.iteration > 0 {
            self.grid.sweep();
        }
        if self.is_first() {
            if self.iteration == 0 {
                plan.begin();
            } else {
                plan.lap(if self.nodes > 1 { row } else { 0 });
            }
        }
        if self.iteration == self.settings.iterations {
            return false;
        }
        (self.up, self.down) = (plan.event(), plan.event());
        if self.nodes > 1 {
            self.exchange(plan);
        }
        let points = self.rows.len() as u64 * u64::from(self.settings.side);
        plan.work(Work { points, sweeps: 1, ..Work::default() });
        self.iteration += 1;
        true
    }

    fn take(&mut self, message: Message) -> Result<(), String> {
        let goes_up = message.event == self.up;
        if if goes_up { self.is_last() } else { self.is_first() } {
            return check(&message, WORD);
        }
        let Message { from, event, data } = message;
        let row = if goes_up { self.grid.rows() + 1 } else { 0 };
        let row = self.grid.row_mut(row);
        let (points, rest) = data.as_chunks::<8>();
        if points.len() != row.len() || !rest.is_empty() {
            return Err(format!(
                "the row of {from} for {event} has {} B instead of {} B",
                data.len(),
                8 * row.len()
            ));
        }
        row.iter_mut().zip(points).for_each(|(point, &it)| *point = f64::from_le_bytes(it));
        Ok(())
    }

    /// Solves the whole square, and compares its own rows to the last bit.
    fn verdict(&self) -> Result<(), String> {
        let side = self.settings.side as usize;
        let mut whole = Grid::new(side, 0..side);
        (0..self.settings.iterations).for_each(|_| whole.sweep());
        for row in 1..=self.grid.rows() {
            let right = whole.row(self.rows.start + row);
            let differs = |(a, b): (&f64, &f64)| a.to_bits() != b.to_bits();
            if let Some(column) = std::iter::zip(self.grid.row(row), right).position(differs) {
                let (row_of, is) = (self.rows.start + row, self.grid.row(row)[column]);
                return Err(format!(
                    "row {row_of}, column {} is {is} instead of {}",
                    column + 1,
                    right[column]
                ));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The boundary falls evenly from above to below, and so does the solution.
    #[test]
    fn the_iteration_comes_to_the_solution() {
        let mut grid = Grid::new(9, 0..9);
        (0..2000).for_each(|_| grid.sweep());
        for row in 1..=9 {
            let want = 100.0 - 10.0 * row as f64;
            assert!(grid.row(row).iter().all(|point| (point - want).abs() < 1e-9));
        }
    }

    #[test]
    fn a_wrong_point_is_found() {
        let settings = Jacobi { side: 4, iterations: 1 };
        let mut solver = Solver::new(settings, NodeId(1), 2);
        assert!(solver.verdict().is_err(), "it has not swept");
        let above = Grid::new(4, 0..4);
        solver.grid.row_mut(0).copy_from_slice(above.row(2));
        solver.grid.sweep();
        assert_eq!(solver.verdict(), Ok(()));
        solver.grid.row_mut(2)[1] += 1e-9;
        assert!(solver.verdict().unwrap_err().starts_with("row 4, column 2 is "));
    }
}
