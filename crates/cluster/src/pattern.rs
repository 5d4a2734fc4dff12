//! Who sends to whom: the traffic patterns of a program (§6.2 of TR 94-14).

use crate::trace::{Act, Record};
use std::fmt;
use trunkline_transport::cstar::Destination;

/// The fragments of a run by where they went. The report found that thirteen C* applications sent nothing but broadcasts and
/// messages to the left and right neighbours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pattern {
    /// To all other nodes.
    pub broadcast: Share,
    /// To node p − 1 or p + 1, in the ring of all nodes.
    pub neighbour: Share,
    /// To another node.
    pub other: Share,
}

/// Fragments of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Share {
    /// How many were sent.
    pub fragments: u64,
    /// User bytes of them; those of a broadcast count once.
    pub bytes: u64,
}

impl Pattern {
    /// The pattern of the records of each node, from node 0. The events at the end of the programs are among them.
    pub fn of(nodes: &[Vec<Record>]) -> Pattern {
        let mut pattern = Pattern::default();
        for (me, records) in nodes.iter().enumerate() {
            for record in records {
                let Act::Send { to, bytes, .. } = record.act else { continue };
                let share = match to {
                    Destination::All => &mut pattern.broadcast,
                    Destination::Node(to) if are_neighbours(me, to.0.into(), nodes.len()) => {
                        &mut pattern.neighbour
                    }
                    Destination::Node(_) => &mut pattern.other,
                };
                share.fragments += 1;
                share.bytes += u64::from(bytes);
            }
        }
        pattern
    }

    fn all(&self) -> [(&'static str, Share); 3] {
        [("broadcast", self.broadcast), ("neighbour", self.neighbour), ("other", self.other)]
    }
}

/// Whether two nodes are neighbours in the ring.
fn are_neighbours(one: usize, other: usize, nodes: usize) -> bool {
    let distance = one.abs_diff(other);
    distance == 1 || distance + 1 == nodes
}

impl Pattern {
    /// The fragments in a sentence.
    pub fn sentence(&self) -> String {
        let Pattern { broadcast, neighbour, other } = self;
        format!(
            "Fragments: {} to all nodes, {} to neighbours, {} to others.",
            broadcast.fragments, neighbour.fragments, other.fragments
        )
    }
}

/// A table: fragments, their share of all in per cent, and user bytes.
impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: u64 = self.all().iter().map(|it| it.1.fragments).sum();
        writeln!(f, "{:<10} {:>12} {:>7} {:>15}", "to", "fragments", "%", "bytes")?;
        for (name, Share { fragments, bytes }) in self.all() {
            let percent = 100.0 * fragments as f64 / all.max(1) as f64;
            writeln!(f, "{name:<10} {fragments:>12} {percent:>7.1} {bytes:>15}")?;
        }
        Ok(())
    }
}
