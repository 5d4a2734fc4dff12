//! What the programs of a cluster did, when: records of nodes, and the messages among them.

mod perfetto;
mod picture;

pub use perfetto::perfetto;
pub use picture::{MOST_LINES, MOST_NODES, picture};

use crate::{Waiting, Work};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use trunkline_core::Time;
use trunkline_transport::cstar::{Destination, EventId, NodeId, Source};

/// An act of a node's program. It lasts until the next record of the node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// When it began.
    pub at: Time,
    /// What it is.
    pub act: Act,
}

/// What a program does at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Act {
    /// It gives a fragment to the message layer.
    Send {
        /// Where it goes.
        to: Destination,
        /// The event.
        event: EventId,
        /// User bytes of it.
        bytes: u32,
    },
    /// It receives a fragment.
    Receive {
        /// The node that sent it.
        from: NodeId,
        /// The event.
        event: EventId,
        /// The fragment's number among those from its node for this one under the event.
        fragment: u32,
        /// User bytes of it.
        bytes: u32,
    },
    /// It waits.
    Wait(Waiting),
    /// It works.
    Work(Work),
    /// What is measured begins.
    Begin,
    /// A lap of so many user bytes ends.
    Lap(u64),
    /// The program has ended.
    End,
}

/// A fragment on its way from program to program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrow {
    /// The node that sent it.
    pub from: NodeId,
    /// The node that received it.
    pub to: NodeId,
    /// When the sender gave it to its message layer.
    pub sent: Time,
    /// When the receiver received it, which may be long after it came.
    pub received: Time,
    /// The event.
    pub event: EventId,
    /// Its number among those of its sender, its event and its destination.
    pub fragment: u32,
    /// User bytes of it.
    pub bytes: u32,
}

/// The fragments that were sent and received, in the order in which node 0 received its own, then node 1, and so on.
/// `nodes` are the records of each node, from node 0. A fragment sent before the recording began is left out.
pub fn arrows(nodes: &[Vec<Record>]) -> Vec<Arrow> {
    let sent = sent(nodes);
    let mut arrows = Vec::new();
    for (records, to) in nodes.iter().zip(0..) {
        let to = NodeId(to);
        for record in records {
            let Act::Receive { from, event, fragment, bytes } = record.act else { continue };
            let alone = sent.get(&(from, Some(to), event, fragment));
            if let Some(&at) = alone.or_else(|| sent.get(&(from, None, event, fragment))) {
                let received = record.at;
                arrows.push(Arrow { from, to, sent: at, received, event, fragment, bytes });
            }
        }
    }
    arrows
}

/// A fragment's sender, its receiver unless all are, its event and number.
type Name = (NodeId, Option<NodeId>, EventId, u32);

fn sent(nodes: &[Vec<Record>]) -> HashMap<Name, Time> {
    let mut sent = HashMap::new();
    for (records, from) in nodes.iter().zip(0..) {
        let mut numbers = HashMap::new();
        for record in records {
            let Act::Send { to, event, .. } = record.act else { continue };
            let to = match to {
                Destination::Node(node) => Some(node),
                Destination::All => None,
            };
            let number: &mut u32 = numbers.entry((to, event)).or_default();
            sent.insert((NodeId(from), to, event, *number), record.at);
            *number += 1;
        }
    }
    sent
}

/// The node that is waited for; `None` if it is any, or none in particular.
fn awaited(waiting: Waiting) -> Option<NodeId> {
    match waiting {
        Waiting::Window(node) | Waiting::Fragment(Source::Node(node), _) => Some(node),
        Waiting::Buffers | Waiting::Fragment(Source::Any, _) => None,
    }
}

/// The records of a node, each with the time at which it ended; the last one ends with itself.
fn slices(records: &[Record]) -> impl Iterator<Item = (&Record, Time)> {
    let ends = records.iter().skip(1).chain(records.last()).map(|it| it.at);
    records.iter().zip(ends)
}
