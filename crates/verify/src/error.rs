//! The errors that end a measurement.

use std::io;
use thiserror::Error;
use trunkline_dataplane::{ChangeError, DataplaneError};
use trunkline_netns::LabError;
use trunkline_port::PortError;

/// The reason why a measurement ended without a result.
#[derive(Debug, Error)]
pub enum VerifyError {
    /// The emulator failed.
    #[error(transparent)]
    Emulator(#[from] DataplaneError),
    /// The laboratory could not be built.
    #[error(transparent)]
    Laboratory(#[from] LabError),
    /// A device of the measurement failed.
    #[error(transparent)]
    Port(#[from] PortError),
    /// The delay could not be changed during the run.
    #[error(transparent)]
    Change(#[from] ChangeError),
    /// The path has something that cannot be compared packet by packet.
    #[error(
        "{direction}: {what} cannot be verified packet by packet, because the path draws it at random: leave it out here and see what a run achieved with `trunkline show`"
    )]
    Random {
        /// The direction.
        direction: String,
        /// The setting.
        what: String,
    },
    /// A probe of this size cannot be sent.
    #[error(
        "--sizes {size}: a probe has from {smallest} bytes (headers, number and stamp) to the path's MTU of {mtu}; raise --mtu or choose another size"
    )]
    Size {
        /// The size asked for.
        size: u32,
        /// The smallest probe.
        smallest: u32,
        /// The path's MTU.
        mtu: u32,
    },
    /// A scenario that describes no measurement of one path.
    #[error("a verification needs {what}: describe one path and its probes, nothing else")]
    Scenario {
        /// The thing that is missing.
        what: String,
    },
    /// The machine does not even hold the lowest rate tried.
    #[error(
        "the bare forwarder does not carry {size}-byte probes even at {per_second:.0}/s: the machine is too busy, end other work"
    )]
    TooBusy {
        /// Bytes of a probe.
        size: u32,
        /// Probes per second each way.
        per_second: f64,
    },
    /// The user or the system asked to end.
    #[error("interrupted; the laboratory has been removed")]
    Interrupted,
    /// A thread or the processors could not be had.
    #[error(
        "cannot start the measuring thread: {0}; too many threads, or --cpu names no processor?"
    )]
    Thread(io::Error),
}
