//! The simulator: its network, and scenarios on it.

mod by_host;
mod hosts;
mod netblt;
mod network;
