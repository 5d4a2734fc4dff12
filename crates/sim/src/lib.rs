//! Virtual time: a scenario is run packet by packet, to the nanosecond and reproducibly.

mod network;

pub use network::{
    Event, HopShare, HopSums, LinkId, Network, Parcel, RECORD_BYTES, RecordKind, RouteId, TraceId,
};
