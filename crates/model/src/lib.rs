//! The engine of closed formulas.
//!
//! [`formula`] holds the formulas of the published reports, and their general forms, as pure functions
//! that are tested against every number printed.

pub mod formula;
mod throughput;

pub use throughput::Throughput;
