//! The trait [`Engine`], the [`Run`] that each engine returns, and the [`Note`]s in it.
//!
//! Formulas, simulator and emulator are crates of their own, and none knows another. What is made of runs (a batch, a
//! study, a ladder, an explanation, a report) is handed engines or runs, and imports no engine.

mod engine;
mod name;
mod note;
mod picture;
mod run;
mod violation;

pub use engine::{Engine, EngineError, Pace, SharedEngine};
pub use name::{EngineName, EngineNameError};
pub use note::{Note, NoteKind, wrong_blocks};
pub use picture::Picture;
pub use run::Run;
pub use trunkline_scenario::About;
pub use violation::{Violation, check};
