//! The protocols of end points.
//!
//! Every protocol here is a machine without I/O: it never reads a clock, draws no randomness and starts
//! no thread, so that the same code runs in the simulator and on real wires. A driver calls it in one
//! order, stated at [`Endpoint`].
//!
//! [`urp`] is the Universal Receiver Protocol of Datakit, [`envelope`] its form on the wire; [`tcp`] holds
//! the congestion controllers of TCP. [`cstar`] is a message layer among the many nodes of a cluster.

mod arq;
mod checksum;
pub mod cstar;
mod endpoint;
pub mod envelope;
pub mod netblt;
mod payload;
pub mod protocol;
pub mod restraint;
mod rounds;
pub mod tcp;
pub mod urp;

pub use endpoint::{Counters, Endpoint, Held, WAITING};
pub use payload::{Extent, Payload};
pub use protocol::Protocol;
pub use rounds::Rounds;
