//! What an engine is: the trait [`Engine`], and the [`Run`] that each of them returns.
//!
//! Formulas, simulator and emulator are crates of their own, and none knows another. What is made of runs (a batch, a
//! study, a ladder, an explanation, a report) is handed engines or runs, and imports no engine.

mod engine;
mod name;
mod run;
mod violation;

pub use engine::{Engine, EngineError, Pace, SharedEngine};
pub use name::{EngineName, EngineNameError};
pub use run::{Run, wrong_blocks};
pub use violation::{Violation, check};
