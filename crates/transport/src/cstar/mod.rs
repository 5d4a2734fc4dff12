//! The message layer of the C* cluster: events and fragments among many nodes, in a traditional and in a careful form.
//!
//! Mosberger, Turner and Peterson, *Exploiting Highly Reliable Networks with Careful Protocols*, University of Arizona,
//! TR 94-14, 1994; sections named here are of that report. A node exchanges [`Frame`]s with all others over one channel.
//! It [sends](Layer::send) fragments under an event and [receives](Layer::receive) those of an event, each exactly once
//! and in no promised order. [`Traditional`] keeps what it has sent until it is acknowledged, and repairs what is lost.
//! [`Careful`] loses nothing itself, and stands on a network that loses nothing: it frees what it has sent at once, has no
//! timers, and never sends what the far node has no buffer for.
//!
//! Like all of this crate it does no I/O and reads no clock. Its driver calls in one order, stated at [`Layer`].

mod buffers;
mod careful;
mod cluster;
mod frame;
mod inbox;
mod layer;
mod names;
mod numbers;
mod operation;
mod traditional;
mod wire;

pub use careful::{Careful, CarefulSettings, Grid};
pub use cluster::{Cluster, ClusterError};
pub use frame::{Entry, Frame, Kind, Route};
pub use layer::{Blocked, Counters, Failure, Layer, Memory};
pub use names::{
    BufferId, Delivery, Destination, EventId, Flags, Fragment, NodeId, Source, Status,
};
pub use operation::{Operation, Tally};
pub use traditional::{Traditional, TraditionalSettings};
pub use wire::FrameError;
