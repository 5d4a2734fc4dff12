//! What ends a real-time run.

use std::io;
use thiserror::Error;
use trunkline_port::PortError;

/// What ends a real-time run.
#[derive(Debug, Error)]
pub enum EmuError {
    /// A device failed.
    #[error(transparent)]
    Port(#[from] PortError),
    /// The processor asked for cannot be had.
    #[error("cannot run on processor {cpu}: {source}; give a number that `nproc` counts, from 0")]
    Processor {
        /// The processor asked for.
        cpu: usize,
        /// The system's answer.
        source: io::Error,
    },
    /// Sleeping failed.
    #[error("cannot wait for frames: {0}; too many open files?")]
    Wait(io::Error),
}
