//! Clusters: the same program on every node, over the message layer of [`trunkline_transport::cstar`].
//!
//! A [`Program`] is what a node does, as a sequence of operations; a [`Node`] carries them out over a message layer. Neither
//! does I/O nor reads a clock: the simulator drives nodes in virtual time, processes drive them over sockets.
//!
//! # Tests
//! [`TESTS`] lists the programs that are here: the four of Mosberger, Turner and Peterson, *Exploiting Highly Reliable
//! Networks with Careful Protocols* (University of Arizona, TR 94-14, 1994), and four of today's clusters. [`Test::parse`]
//! reads one from text. Each checks every byte that it receives and what it computes; [`Node::verdict`] tells.
//!
//! # Programs of one's own
//! [`Rounds`] is the easiest way: whole messages, a round of operations at a time. [`in_rounds`] makes a program of it,
//! [`together`] runs it in one process, and `examples/rounds.rs` is a whole one. Three rules hold for all nodes (the first
//! two are §5.1 and §5.2 of the report, the third §5.3):
//! - All take the same events in the same order: a node may send under several before it receives, and then receives in ascending
//!   order. With the traditional layer, who has received all of an event has acknowledged all before it.
//! - Under an event a node sends at most one message to a destination, and receives from one node or, in a crowd, from each
//!   other node.
//! - Nobody sends more ahead of the receivers than they can hold. A careful layer holds what does not fit in the adapter in
//!   memory, up to a limit, and fails beyond; a traditional one refuses it and asks for it again, in the worst case for ever.
//!
//! # Which message layer
//! [`Careful`](trunkline_transport::cstar::Careful) frees what it has sent at once, and has neither acknowledgements nor
//! timers. It demands a network that loses, damages, repeats and reorders no frame: a token ring, a lossless fabric, shared
//! memory. It demands buffers too: a node's receive buffers are shared out among all nodes in equal windows, so that 3 P
//! buffers are the least for P nodes. When the network breaks its promise, it stops with a
//! [`Failure`](trunkline_transport::cstar::Failure): the program has to start again, as after a crash. The loss of a
//! frame behind which nothing follows shows only if `audit` is set.
//!
//! [`Traditional`](trunkline_transport::cstar::Traditional) keeps what it has sent until the receiver is known to have it, and
//! repairs what was lost. It works on any network. It pays for that with more operations for each fragment, a copy of what
//! is not acknowledged, and the danger of refusing for ever under a flood.
//!
//! So: careful on a fabric of its own with a few buffers for each node, when the time of a small message counts;
//! traditional over Ethernet, UDP, or anything shared.
//!
//! # Seeing what happens
//! [`Node::record`] records what a program does; [`trace`] turns the records into a file for Perfetto or a picture, and
//! [`pattern`] into a table of who sends to whom.

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
mod whole;

pub use all_reduce::AllReduce;
pub use all_to_all::AllToAll;
pub use flood::Flood;
pub use halo::Halo;
pub use incast::Incast;
pub use jacobi::Jacobi;
pub use latency::Latency;
pub use node::{Lap, Node, Spent, Step, Waiting};
pub use program::{Op, Outcome, Program, Work};
pub use rounds::{Plan, Rounds, in_rounds};
pub use test::{TESTS, Test, TestKind, kind};
pub use throughput::Throughput;
pub use whole::{Message, Parts, fragments};
