//! Why a scenario cannot be run in real time.

use std::io;
use thiserror::Error;
use trunkline_core::Span;
use trunkline_dataplane::DataplaneError;
use trunkline_endpoint::EndpointError;
use trunkline_netns::LabError;
use trunkline_port::PortError;

/// Why a scenario cannot be run in real time: one line with cause and remedy.
#[derive(Debug, Error)]
pub enum EmuError {
    /// There is more to be built than one thread can serve.
    #[error(
        "the scenario has {lanes} directions of links and {circuits} connections of hosts, more than one emulator serves in time ({most} directions, 16384 connections): simulate it, or leave links out"
    )]
    Size {
        /// Directions of links, and backplanes.
        lanes: usize,
        /// Traffic times hosts that it starts at.
        circuits: usize,
        /// Most directions.
        most: usize,
    },
    /// Two traffics, one of them an outside program's, ask for different settings of one host's kernel.
    #[error(
        "host '{host}': traffic '{first}' and '{second}' want different tcp {setting}, which a program takes from its host's kernel as it is; give them hosts of their own"
    )]
    Disagree {
        /// The host's name.
        host: String,
        /// The one.
        first: String,
        /// The other.
        second: String,
        /// The setting's key.
        setting: &'static str,
    },
    /// There is a cluster.
    #[error(
        "cluster '{name}' is not emulated by this engine: `trunkline cluster run` runs its test on real nodes"
    )]
    Cluster {
        /// Its name.
        name: String,
    },
    /// Links whose packets do not fit into memory.
    #[error(
        "the links need {needed} bytes for their queues and for what is in flight, and {available} are to be had: lower rates, delays or limits"
    )]
    Memory {
        /// Bytes needed.
        needed: u64,
        /// Bytes to be had.
        available: u64,
    },
    /// The system does not let the process build a laboratory.
    #[error("{0}")]
    Rights(String),
    /// A flow cannot be prepared.
    #[error("traffic '{traffic}': {source}")]
    Flow {
        /// The traffic's name.
        traffic: String,
        /// Why.
        source: EndpointError,
    },
    /// The laboratory could not be built.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// A device failed.
    #[error(transparent)]
    Port(#[from] PortError),
    /// The dataplane failed.
    #[error(transparent)]
    Emulator(#[from] DataplaneError),
    /// Somebody else's testbed runs on this machine and did not end.
    #[error(
        "another testbed has been at work on this machine for {waited}: two at once would disturb each other; wait for it, or end it"
    )]
    Taken {
        /// How long it was waited for.
        waited: Span,
    },
    /// A system call failed.
    #[error("cannot {what}: {source}")]
    System {
        /// The step.
        what: &'static str,
        /// The system's answer.
        source: io::Error,
    },
    /// The run was broken off.
    #[error("broken off")]
    Cancelled,
}

impl EmuError {
    /// Whether the laboratory cannot be built for want of permission.
    pub fn is_permission(&self) -> bool {
        match self {
            EmuError::Lab(error) => {
                matches!(error, LabError::UserNamespace { .. } | LabError::Threads(_))
                    || error.errno().is_some_and(|errno| {
                        let denied = [rustix::io::Errno::PERM, rustix::io::Errno::ACCESS];
                        denied.iter().any(|other| other.raw_os_error() == errno)
                    })
            }
            EmuError::Rights(_) | EmuError::Port(PortError::Permission { .. }) => true,
            _ => false,
        }
    }
}
