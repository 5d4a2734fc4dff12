//! The reasons why a flow cannot be prepared.

use rustix::io::Errno;
use std::io;
use std::net::Ipv4Addr;
use trunkline_netns::LabError;

/// The reason why a flow cannot be prepared.
#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    /// The namespace of a host cannot be entered.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// A system call was refused.
    #[error("cannot {what} at {address}: {reason}; check the host's address, and run as root")]
    Socket {
        /// The action that failed.
        what: &'static str,
        /// The own address of the socket.
        address: Ipv4Addr,
        /// The system's answer.
        reason: io::Error,
    },
    /// The transport cannot be had on real sockets.
    #[error("{0}")]
    Transport(String),
    /// No thread, no descriptor.
    #[error("cannot start a host's thread: {0}; allow more threads and open files")]
    Thread(io::Error),
    /// The other end did not answer.
    #[error("no connection from {from} to {to} within {seconds} s: see that the path is up")]
    Unreachable {
        /// The address from which it was to begin.
        from: Ipv4Addr,
        /// The address at which it was to end.
        to: Ipv4Addr,
        /// The time waited.
        seconds: u64,
    },
    /// An outside program cannot be started.
    #[error("'{command}' does not run: {reason}; try it by hand in a namespace")]
    Program {
        /// The command.
        command: String,
        /// The cause.
        reason: String,
    },
}

/// Says what was being done when a system call failed.
pub(crate) trait Doing<T> {
    /// Wraps the error.
    fn doing(self, what: &'static str, address: Ipv4Addr) -> Result<T, EndpointError>;
}

impl<T> Doing<T> for Result<T, Errno> {
    fn doing(self, what: &'static str, address: Ipv4Addr) -> Result<T, EndpointError> {
        self.map_err(|reason| EndpointError::Socket { what, address, reason: reason.into() })
    }
}

impl<T> Doing<T> for io::Result<T> {
    fn doing(self, what: &'static str, address: Ipv4Addr) -> Result<T, EndpointError> {
        self.map_err(|reason| EndpointError::Socket { what, address, reason })
    }
}
