//! Clusters: the same program on every node, over the message layer of [`trunkline_transport::cstar`].
//!
//! A [`Program`] is what a node does, as a sequence of operations; a [`Node`] carries them out over a message layer. Neither
//! does I/O nor reads a clock: the simulator drives nodes in virtual time, processes drive them over sockets.

mod all_reduce;
mod all_to_all;
mod flood;
mod halo;
mod incast;
mod jacobi;
mod latency;
mod message;
mod node;
pub mod pattern;
mod program;
mod rounds;
mod script;
mod test;
mod throughput;
pub mod together;
pub mod trace;

pub use all_reduce::AllReduce;
pub use all_to_all::AllToAll;
pub use flood::Flood;
pub use halo::Halo;
pub use incast::Incast;
pub use jacobi::Jacobi;
pub use latency::Latency;
pub use node::{Lap, Node, Spent, Step, Waiting};
pub use program::{Op, Outcome, Program, Work};
pub use rounds::{Message, Plan, Rounds, in_rounds};
pub use test::{TESTS, Test, TestKind, kind};
pub use throughput::Throughput;
