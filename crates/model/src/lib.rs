//! The engine of closed formulas.
//!
//! [`formula`] holds the formulas of the published reports, and their general forms, as pure functions
//! that are tested against every number printed. [`predictions`] applies them to a scenario, term by
//! term; [`predict`] makes a run of them, and [`Formulas`] is the engine that does so. All arithmetic is in
//! integers, but for roots and powers in the laws of TCP, which a portable library takes.

mod answered;
mod bucket;
mod bulk;
mod engine;
mod flow;
pub mod formula;
mod group;
mod known;
mod lap;
mod listed;
mod load;
mod losses;
mod medium;
mod message;
mod paced;
mod prediction;
mod run;
mod schedule;
mod serial;
mod shaper;
mod share;
mod slots;
mod speech;
mod streams;
mod talk;
mod tcp;
mod throughput;
mod transfer;
mod units;
mod way;
mod when;

pub use engine::{Formulas, predict, predictions};
pub use prediction::{Figure, Prediction, Predictions, Term, What};
pub use throughput::Throughput;
