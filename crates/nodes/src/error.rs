//! What keeps a node from running.

use std::io;
use std::net::SocketAddr;
use thiserror::Error;
use trunkline_netns::LabError;
use trunkline_transport::cstar::{ClusterError, NodeId};

/// What keeps a node, or a cluster, from running.
#[derive(Debug, Error)]
pub enum NodesError {
    /// The system refused something.
    #[error("{what}: {source}")]
    System {
        /// What was asked of it.
        what: String,
        /// Why it refused.
        source: io::Error,
    },
    /// Namespaces or devices could not be had.
    #[error(transparent)]
    Laboratory(#[from] LabError),
    /// The message layer refuses to start.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// The kernel gives a socket less memory than the promise of the careful protocol needs.
    #[error(
        "the kernel gives {address} a receive buffer of {granted} bytes, and {buffers} frames need {needed}: raise net.core.rmem_max (sysctl -w net.core.rmem_max={needed}), or give fewer --buffers or a smaller --frame"
    )]
    Buffer {
        /// The socket's address.
        address: SocketAddr,
        /// What was granted.
        granted: usize,
        /// What is needed.
        needed: usize,
        /// Frames.
        buffers: u32,
    },
    /// A peer was never heard.
    #[error(
        "{peer} at {address} was not heard for {seconds} s: is it started, and is its address right?"
    )]
    Silent {
        /// The peer.
        peer: NodeId,
        /// Its address.
        address: SocketAddr,
        /// How long.
        seconds: u64,
    },
    /// A node's process ended, or said what it should not.
    #[error("{node} {what}")]
    Died {
        /// The node.
        node: NodeId,
        /// What happened.
        what: String,
    },
    /// It was told to stop.
    #[error("stopped")]
    Stopped,
}

impl NodesError {
    /// What makes an error of the system's refusal of `what`.
    pub(crate) fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> NodesError {
        let what = what.into();
        move |source| NodesError::System { what, source }
    }
}
