//! The measuring end.

pub mod bulk;
mod carried;
mod carrier;
mod connection;
mod control;
mod exchange;
pub mod fitting;
mod fresh;
mod goodput;
mod hosts;
mod ledger;
mod line;
pub mod load;
pub mod rtt;
mod streams;
mod tcp_carrier;
pub mod transfer;
mod udp_carrier;
mod urp_carrier;

pub use carrier::{Carrier, Reply};
pub use connection::{Connection, DataStream, Target, TcpEnd};
pub use exchange::{Course, Ended, Event, Exchanged, exchange};
pub use hosts::Hosts;
pub use ledger::Ledger;
