//! The errors that end a real-time run.

use crate::capture::CaptureError;
use std::io;
use thiserror::Error;
use trunkline_core::Size;
use trunkline_netns::LabError;
use trunkline_port::PortError;

/// An error that ends a real-time run.
#[derive(Debug, Error)]
pub enum DataplaneError {
    /// A device failed.
    #[error(transparent)]
    Port(#[from] PortError),
    /// The laboratory could not be built.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// The capture could not be begun.
    #[error(transparent)]
    Capture(#[from] CaptureError),
    /// The frames under way would not fit into memory.
    #[error(
        "the path needs {needed} bytes ({}) for its queue and for what is in flight, and {available} are to be had: lower rate, delay or queue limit",
        human(*.needed)
    )]
    Memory {
        /// Bytes needed.
        needed: u64,
        /// Bytes to be had.
        available: u64,
    },
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

/// Whole mebibytes, for a glance.
fn human(bytes: u64) -> Size {
    Size::from_bytes(bytes.div_ceil(1 << 20) << 20)
}
