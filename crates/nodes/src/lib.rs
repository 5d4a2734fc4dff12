//! Nodes of a cluster as real processes: each drives a [`trunkline_cluster::Node`] over UDP or over Ethernet frames.
//!
//! [`drive`] runs one node to its end; an [`Endpoint`] is the message layer alone, for a program of one's own; [`in_threads`] tries such a program with
//! all nodes in one process; [`Launch`] starts a process for each node of a cluster on this machine, in network
//! namespaces of their own or on loopback, and collects what they say.

mod address;
mod carrier;
mod drive;
mod endpoint;
mod error;
mod ethernet;
mod launch;
mod line;
mod meet;
mod meeting;
mod memory;
mod outcome;
mod progress;
mod still;
mod terms;
mod threads;
mod udp;
mod wire;
mod words;

pub use address::{Address, Place};
pub use carrier::Carrier;
pub use drive::{Plan, Told, drive};
pub use endpoint::Endpoint;
pub use error::NodesError;
pub use ethernet::ETHERTYPE;
pub use launch::{Joined, Launch, MOST_NAMESPACES, Peers, Said};
pub use meet::{Missing, Unheard};
pub use memory::frame_memory;
pub use outcome::{Outcome, together};
pub use progress::{Progress, Standstill, Watch};
pub use terms::Terms;
pub use threads::in_threads;
