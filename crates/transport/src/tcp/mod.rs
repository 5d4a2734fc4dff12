//! TCP for the simulator: congestion control first.

pub mod congestion;
