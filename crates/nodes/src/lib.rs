//! Nodes of a cluster as real processes: each drives a [`trunkline_cluster::Node`] over UDP.
//!
//! [`drive`] runs one node to its end; [`Launch`] starts a process for each node of a cluster on this machine, in network
//! namespaces of their own or on loopback, and collects what they say.

mod carrier;
mod drive;
mod error;
mod launch;
mod meeting;
mod outcome;

pub use carrier::{Carrier, frame_memory};
pub use drive::{Plan, drive};
pub use error::NodesError;
pub use launch::{Launch, MOST_NAMESPACES, Peers, Place, Said};
pub use outcome::{Outcome, together};
