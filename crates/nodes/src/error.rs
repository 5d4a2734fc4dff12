//! What keeps a node from running.

use crate::Missing;
use std::io;
use thiserror::Error;
use trunkline_core::Span;
use trunkline_netns::LabError;
use trunkline_port::PortError;
use trunkline_transport::cstar::{ClusterError, Failure, NodeId};

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
    /// No process more may be had.
    #[error(
        "cannot start {node}: no more processes are allowed; ask for fewer nodes, or raise the limits (`ulimit -u`, pids.max of the control group)"
    )]
    Processes {
        /// The node for which there was none.
        node: NodeId,
    },
    /// An address could not be had.
    #[error("cannot listen at {at}: {source}: choose another address or port")]
    Listen {
        /// The address.
        at: String,
        /// Why not.
        source: io::Error,
    },
    /// Namespaces or devices could not be had.
    #[error(transparent)]
    Laboratory(#[from] LabError),
    /// A device could not be opened.
    #[error(transparent)]
    Port(#[from] PortError),
    /// A device's packets are too small for the frames.
    #[error(
        "a frame of {payload} bytes needs packets of {needs}, and {device} has an MTU of {mtu}: give --frame {most} or less, or raise the MTU"
    )]
    Mtu {
        /// The device.
        device: String,
        /// Its MTU.
        mtu: u32,
        /// Most payload of a frame.
        payload: u32,
        /// The packet that it needs.
        needs: u32,
        /// Most payload that fits.
        most: u32,
    },
    /// A peer's address is not of the carrier's kind.
    #[error("a peer is at {peer}: give {wanted}, as of this node")]
    Address {
        /// The address.
        peer: String,
        /// What is wanted.
        wanted: &'static str,
    },
    /// A node is told different numbers of its own.
    #[error(
        "this node is {plan} by its plan, {layer} to its message layer and {carrier} to its carrier: give all three the same number"
    )]
    Numbers {
        /// By its plan.
        plan: NodeId,
        /// To its message layer.
        layer: NodeId,
        /// To its carrier.
        carrier: NodeId,
    },
    /// A message layer and a carrier do not fit together.
    #[error("the message layer has {what} {layer}, and the carrier {carrier}: give both the same")]
    Unfit {
        /// Of what.
        what: &'static str,
        /// How many the layer has.
        layer: u32,
        /// How many the carrier has.
        carrier: u32,
    },
    /// There is no such peer.
    #[error(
        "{node} is no peer of {me}, one of {nodes} nodes numbered from 0: nothing can be sent to it, nor received from it"
    )]
    Stranger {
        /// The number.
        node: NodeId,
        /// This node's own.
        me: NodeId,
        /// Nodes.
        nodes: usize,
    },
    /// A fragment does not fit in a frame.
    #[error(
        "a fragment of {bytes} bytes is longer than the {most} of a frame: cut it, or send it as a message"
    )]
    Long {
        /// Its bytes.
        bytes: usize,
        /// Most bytes of a fragment.
        most: u32,
    },
    /// The message layer refuses to start.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// The message layer cannot go on.
    #[error(transparent)]
    Layer(#[from] Failure),
    /// The kernel gives a socket less memory than the promise of the careful protocol needs.
    #[error(
        "the kernel gives {at} a receive buffer of {granted} bytes, and {buffers} frames need {needed}: {}give fewer --buffers or a smaller --frame", raise(*.needed)
    )]
    Buffer {
        /// Where the socket is.
        at: String,
        /// What was granted.
        granted: usize,
        /// What is needed.
        needed: usize,
        /// Frames.
        buffers: u32,
    },
    /// A peer was never heard.
    #[error(
        "{missing} was not heard for {seconds} s: is it started and not ended yet, and is this the address from which it sends?"
    )]
    Silent {
        /// The peer.
        missing: Missing,
        /// How long.
        seconds: u64,
    },
    /// A peer is there, and was not heard to have heard all others.
    #[error(
        "{peer} did not say for {seconds} s that it has heard all others, as this node has: does something keep their datagrams from it?"
    )]
    Alone {
        /// The peer.
        peer: NodeId,
        /// How long.
        seconds: u64,
    },
    /// A peer was started with other settings.
    #[error(
        "{peer} has {name} = {theirs}, and this node {own}: give all nodes the same (all options but --id and --bind)"
    )]
    Unlike {
        /// The peer.
        peer: NodeId,
        /// The setting.
        name: String,
        /// Its value there.
        theirs: String,
        /// Its value here.
        own: String,
    },
    /// A peer tells no settings, or is the only one to tell them.
    #[error("{peer} tells nothing of its settings: is it another version of trunkline?")]
    Mute {
        /// The peer.
        peer: NodeId,
    },
    /// Another node has this one's number.
    #[error(
        "another node says that it is {me} too, or {me} is told that it is itself at another's address: give each node a number of its own, and its own address the same place in the list of peers"
    )]
    Number {
        /// The number.
        me: NodeId,
    },
    /// A node said that it cannot go on.
    #[error("{node} has failed: {reason}")]
    Gone {
        /// The node.
        node: NodeId,
        /// Why.
        reason: String,
    },
    /// Nothing passes for want of buffers, and nothing will.
    #[error(
        "livelock: for {stood} nothing has passed of what this node waits for, while {refused} fragments were refused here for want of buffers and {again} sent again; give the layer more receive buffers and send buffers, receive before so much is sent ahead, or take the careful layer"
    )]
    Livelock {
        /// For how long.
        stood: Span,
        /// Fragments refused here meanwhile.
        refused: u64,
        /// Fragments sent again meanwhile.
        again: u64,
    },
    /// The node's program gave up.
    #[error("{0}")]
    Program(String),
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

/// How to have so much receive memory, if a socket can.
fn raise(needed: usize) -> String {
    if i32::try_from(needed).is_err() {
        return "that is more than any socket has: ".into();
    }
    format!("raise net.core.rmem_max (sysctl -w net.core.rmem_max={needed}), or ")
}

impl NodesError {
    /// What makes an error of the system's refusal of `what`.
    pub(crate) fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> NodesError {
        let what = what.into();
        move |source| NodesError::System { what, source }
    }
}
