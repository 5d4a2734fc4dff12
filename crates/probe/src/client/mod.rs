//! The measuring end.

mod carrier;
mod connection;
mod exchange;
mod hosts;
pub mod rtt;
mod sizes;
mod tcp_carrier;
mod udp_carrier;
mod urp_carrier;

pub use carrier::{Carrier, Reply};
pub use connection::{Connection, Target};
pub use exchange::{Course, Ended, Event, Exchanged, Ledger, exchange};
pub use hosts::Hosts;
