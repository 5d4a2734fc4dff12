//! What a cluster's nodes have in common, and what a node refuses to start with.

use super::NodeId;
use thiserror::Error;

/// A cluster, the same for each of its nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cluster {
    /// Nodes, P.
    pub nodes: u16,
    /// Receive buffers of each node's adapter, R, of one frame each; 128 on the Medusa adapter (TR 94-14 §5.3).
    pub receive_buffers: u32,
    /// Fragments that a traditional node holds until they are acknowledged.
    pub send_buffers: u32,
    /// Most payload of a frame, in bytes.
    pub frame: u32,
}

impl Cluster {
    /// All nodes but one.
    pub(super) fn others(&self, me: NodeId) -> impl Iterator<Item = NodeId> + use<> {
        (0..self.nodes).map(NodeId).filter(move |&node| node != me)
    }
}

/// Why a node cannot start.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ClusterError {
    /// There is no such node.
    #[error("{me} is none of {nodes} nodes, which are numbered from 0")]
    Node {
        /// The number asked for.
        me: NodeId,
        /// Nodes.
        nodes: u16,
    },
    /// Each peer would get a window too small to make progress.
    #[error(
        "{buffers} receive buffers give each of {nodes} nodes a window of {window}, and below {least} nodes can wait for each other for ever: give {} buffers", u64::from(*.least) * u64::from(*.nodes)
    )]
    Window {
        /// Receive buffers.
        buffers: u32,
        /// Nodes.
        nodes: u16,
        /// The window.
        window: u32,
        /// The least that works.
        least: u32,
    },
    /// The nodes do not stand in rows of one length.
    #[error("{nodes} nodes do not stand in rows of {columns}: give a number that divides them")]
    Grid {
        /// Nodes.
        nodes: u16,
        /// The length of a row.
        columns: u16,
    },
    /// Two ways to use the buffers that exclude each other.
    #[error("windows in a grid are fixed: give 'grid', or 'lease' and 'reserve'")]
    Schemes,
    /// A number of buffers is too small.
    #[error("{given} {which} buffers are too few: give at least {least}")]
    Buffers {
        /// Which buffers.
        which: &'static str,
        /// How many were given.
        given: u32,
        /// The least.
        least: u32,
    },
}
