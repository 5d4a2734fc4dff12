//! Scenarios drawn by chance in which one thing holds the traffic up, by construction, and the judgement of what
//! `explain` says of them.
//!
//! The judgement stands on its own feet. It writes each change into the scenario's file, runs that at full length, and reads
//! the figures off the run itself; it knows neither the relaxations nor how runs are shortened.

pub mod change;
pub mod draw;
pub mod judge;
pub mod paper;
