//! The simulator: its network, and scenarios on it.

mod by_host;
mod clusters;
mod dctcp;
mod hosts;
mod netblt;
mod netblt_again;
mod netblt_short;
mod network;
