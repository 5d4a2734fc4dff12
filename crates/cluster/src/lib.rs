//! Clusters: the same program on every node, over the message layer of [`trunkline_transport::cstar`].
//!
//! A [`Program`] is what a node does, as a sequence of operations; a [`Node`] carries them out over a message layer. Neither
//! does I/O nor reads a clock: the simulator drives nodes in virtual time, processes drive them over sockets.

mod node;
mod program;
mod programs;
mod rounds;
pub mod together;

pub use node::{Lap, Node, Spent, Step, Waiting};
pub use program::{Op, Outcome, Program, Work};
pub use programs::{Flood, Jacobi, Latency, TESTS, Test, TestKind, Throughput};
pub use rounds::{InRounds, Message, Plan, Rounds};
