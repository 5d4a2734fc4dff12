//! The emulator as an engine: a scenario in real time, with real packets.

mod error;
mod frame;
mod kernel;
mod laboratory;
mod load;
mod notes;
mod plan;
#[cfg(test)]
mod testing;
mod turn;

pub use error::TestbedError;
