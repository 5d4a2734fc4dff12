//! What a node says when its program has ended.

use serde::{Deserialize, Serialize};

/// What a node's run came to. Times are in nanoseconds.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Outcome {
    /// The node.
    pub node: u16,
    /// Its laps, and the user bytes of each.
    pub laps: Vec<(u64, u64)>,
    /// What is wrong with what it computed or received.
    pub wrong: Option<String>,
    /// Why its message layer could not go on.
    pub failure: Option<String>,
    /// Datagrams sent.
    pub sent: u64,
    /// Datagrams received.
    pub received: u64,
    /// Datagrams dropped on arrival because it was asked to.
    pub dropped: u64,
    /// Datagrams that the kernel dropped for want of memory, if it tells.
    pub kernel_dropped: Option<u64>,
    /// Fragments refused for want of buffers.
    pub refused: u64,
    /// Fragments asked for again.
    pub requests: u64,
    /// Fragments sent again.
    pub again: u64,
    /// Receive buffers in use at most.
    pub buffers: u32,
    /// Bytes copied out of receive buffers at most at once.
    pub copied: u64,
    /// Bytes of state about peers.
    pub state: u64,
}
