//! Clusters in virtual time: nodes, each with a processor, and the medium that joins them.
//!
//! A frame's way: the program's step at the sender's processor → the medium → the interrupt at the receiver's processor →
//! the program's step there. What a node waited for is told along [the path](path) of the messages that it waited for.

mod collect;
mod machine;
mod path;
mod world;

pub(crate) use world::Cluster;
