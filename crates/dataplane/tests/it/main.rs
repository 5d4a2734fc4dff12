//! The dataplane on real packets: what it counts, states and captures.

mod capture;
mod session;
mod statement;
