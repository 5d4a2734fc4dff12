//! What a node says to its message layer, and what it hears from it (TR 94-14 §5.1).

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A node of the cluster, from 0.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct NodeId(pub u16);

/// An event: what the program counts its exchanges by. Events are totally ordered, and the same on every node.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct EventId(pub u32);

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node {}", self.0)
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "event {}", self.0)
    }
}

/// The node or nodes that a fragment is for. There are no other subsets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Destination {
    /// One other node.
    Node(NodeId),
    /// All other nodes.
    All,
}

impl From<NodeId> for Destination {
    fn from(node: NodeId) -> Destination {
        Destination::Node(node)
    }
}

/// The nodes from which a fragment is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Source {
    /// This node only.
    Node(NodeId),
    /// Any node.
    Any,
}

impl From<NodeId> for Source {
    fn from(node: NodeId) -> Source {
        Source::Node(node)
    }
}

impl Source {
    /// Whether what `node` sends is wanted.
    #[inline]
    pub(super) fn has(self, node: NodeId) -> bool {
        match self {
            Source::Node(wanted) => wanted == node,
            Source::Any => true,
        }
    }
}

/// What a fragment says of its event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flags {
    /// It is its node's last of this event for its destination.
    pub last: bool,
    /// Every other node sends fragments of this event too (`BCAST_Event`).
    pub crowd: bool,
    /// The event has more than one fragment of each node; a hint.
    pub large: bool,
}

/// A fragment to be sent: at most one frame of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fragment {
    /// Where it goes.
    pub to: Destination,
    /// The event.
    pub event: EventId,
    /// What it says of the event.
    pub flags: Flags,
    /// Fragments of the same message that will follow it, as far as is known: a careful layer may reserve room for them.
    pub following: u32,
    /// Its octets.
    pub data: Bytes,
}

/// What is known of an event once a fragment has been taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// More fragments of this node are there or will come.
    More,
    /// All fragments of this node have been taken.
    NodeDone,
    /// No node has more fragments of this event; stands before [`NodeDone`](Status::NodeDone).
    EventDone,
}

/// A receive buffer of the adapter that the application holds; to be [released](super::Layer::release).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BufferId(pub u32);

/// A fragment as the application gets it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// The node that sent it.
    pub from: NodeId,
    /// The event.
    pub event: EventId,
    /// Its number among those that its node sent under this event, from 0.
    pub fragment: u32,
    /// What is known of the event now.
    pub status: Status,
    /// Its octets.
    pub data: Bytes,
    /// The receive buffer that it lies in; `None` if it was copied to memory, or needs none.
    pub buffer: Option<BufferId>,
}
