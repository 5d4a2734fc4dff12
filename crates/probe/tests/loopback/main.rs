//! Server and client on this host's loopback.

mod abuse;
mod altered;
mod bounds;
mod round_trips;
mod siege;
mod support;
mod transfers;
