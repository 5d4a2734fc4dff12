//! The errors, each in one line that names cause and remedy.

use std::io;
use std::net::SocketAddr;
use thiserror::Error;
use trunkline_core::Span;
use trunkline_handshake::{KeyError, Refusal, Unfit};

/// The reason why a server does not start or a probe does not measure.
#[derive(Debug, Error)]
pub enum ProbeError {
    /// The combination of options is not possible.
    #[error("{0}")]
    WrongUse(String),
    /// The key file cannot be used.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The address cannot be listened at.
    #[error("cannot listen at {at}: {cause}; choose another with --bind or --port")]
    Listen {
        /// The address.
        at: SocketAddr,
        /// The system's reason.
        cause: io::Error,
    },
    /// The name of the host says nothing.
    #[error("no address is known for '{host}': {reason}")]
    Resolve {
        /// As it was given.
        host: String,
        /// The cause.
        reason: String,
    },
    /// Nobody answers there.
    #[error("cannot reach {at}: {cause}; is `trunkline serve` running there?")]
    Connect {
        /// The address.
        at: SocketAddr,
        /// The system's reason.
        cause: io::Error,
    },
    /// The server does not take us.
    #[error("the server refused: {0}")]
    Refused(String),
    /// The other end has another key, or none.
    #[error("authentication failed: {0}")]
    Authentication(String),
    /// The control connection is gone.
    #[error("the server is gone ({0}): start it again and repeat the measurement")]
    Gone(String),
    /// What came does not follow the protocol.
    #[error("the other end does not speak this protocol: {0}")]
    Protocol(String),
    /// A system call failed.
    #[error("cannot {what}: {cause}")]
    System {
        /// The action that was tried.
        what: &'static str,
        /// The system's reason.
        cause: io::Error,
    },
    /// Nothing at all came back.
    #[error("nothing came back from {0}: the path loses everything, or a filter drops its {1}")]
    Silence(SocketAddr, &'static str),
}

impl ProbeError {
    /// A data connection has ended before its time.
    pub(crate) fn closed() -> ProbeError {
        ProbeError::Gone("it closed the data connection".into())
    }

    /// Octets of a data connection were none of the other end's.
    pub(crate) fn forged() -> ProbeError {
        ProbeError::Authentication(
            "octets of a data connection were changed on the way; something between the hosts alters them"
                .into(),
        )
    }
}

/// The refusal of what would take longer than the time that is left of a session.
pub(crate) fn too_long(left: Span, asked: &str) -> String {
    format!(
        "the session may last {} more, and {asked} were asked for; ask for less, or start the server with a longer \
         --max-duration",
        left.rounded()
    )
}

/// Gives a failed system call its name.
pub(crate) trait Naming<T> {
    /// Says what was tried.
    fn naming(self, what: &'static str) -> Result<T, ProbeError>;
}

impl<T, E: Into<io::Error>> Naming<T> for Result<T, E> {
    fn naming(self, what: &'static str) -> Result<T, ProbeError> {
        self.map_err(|cause| ProbeError::System { what, cause: cause.into() })
    }
}

impl From<Unfit> for ProbeError {
    fn from(unfit: Unfit) -> ProbeError {
        match unfit {
            Unfit::Refused(Refusal::WrongKey | Refusal::KeyWanted | Refusal::Keyless)
            | Unfit::Unproved => ProbeError::Authentication(unfit.to_string()),
            Unfit::Refused(refusal) => ProbeError::Refused(refusal.to_string()),
            Unfit::Foreign => ProbeError::Protocol(unfit.to_string()),
        }
    }
}
