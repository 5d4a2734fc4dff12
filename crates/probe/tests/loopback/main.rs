//! Server and client on this host's loopback.

mod abuse;
mod round_trips;
mod support;
mod transfers;
