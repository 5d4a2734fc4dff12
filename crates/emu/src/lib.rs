//! The emulator as an engine: a scenario in real time, with real packets.
//!
//! [`Emulator`] is the engine; its [`run`] builds the hosts of a scenario as network namespaces, each with one interface into a dataplane in
//! which all its links live; lets its applications, or outside programs, talk across them; and gives what they
//! have measured as the same [`Run`](trunkline_engine::Run) that the other engines return, with what the
//! machine did to the measurement. Nothing of it remains, whatever happens.
//!
//! Hosts are real here: what a scenario says of the costs of simulated ones is not imitated, and the run says
//! so.

mod collect;
mod conduct;
mod engine;
mod error;
mod flows;
mod frame;
mod kernel;
mod laboratory;
mod load;
mod notes;
mod options;
mod places;
mod plan;
mod rights;
mod run;
#[cfg(test)]
mod testing;
mod turn;
mod validity;

pub use engine::Emulator;
pub use error::EmuError;
pub use options::{AtWork, Options, Progress, at_work, break_off, broken_off};
pub use rights::get_rights;
pub use run::run;
pub use trunkline_dataplane::Console;
pub use validity::{FOREIGN, LATENESS, LATENESS_SHARE, SATURATED, STALLED, STOLEN};
