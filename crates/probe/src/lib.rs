//! Measurement between two real hosts.
//!
//! A [`server::Server`] answers, a [`client`] measures: round trips of messages of many sizes, bulk
//! transfers, and the one beside the other. Whatever is measured is handed to the analysis with the time
//! stamps of both hosts. The protocol is in [`wire`]; it is described in `docs/probe.md`.

mod bins;
mod bucket;
mod channel;
pub mod client;
pub mod clock;
pub mod counters;
mod error;
mod limited;
mod pacer;
mod readings;
pub mod result;
pub mod server;
pub mod stamp;
pub mod tcp;
pub mod tracker;
pub mod wire;

pub use error::ProbeError;
pub use pacer::Pace;
pub use trunkline_handshake::{CodeKey, Key};
