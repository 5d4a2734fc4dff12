//! Whatever can go wrong with a move, cause and remedy in one line.

use crate::words::UNKNOWN;
use std::io;
use std::net::SocketAddr;
use thiserror::Error;
use trunkline_core::Rate;
use trunkline_handshake::hello::{Refusal, Unfit};
use trunkline_transfer::TransferError;

/// What helps against a reason of the other end, if that does not say it itself.
fn advice(reason: &str) -> &'static str {
    if reason == UNKNOWN {
        "; it is of an earlier version: use the same trunkline at both ends"
    } else {
        ""
    }
}

/// The reason why a transfer did not end well.
#[derive(Debug, Error)]
pub enum MoverError {
    /// The files of this end.
    #[error(transparent)]
    Files(TransferError),
    /// The system refused something.
    #[error("{what}: {cause}")]
    System {
        /// What was tried.
        what: String,
        /// What the system said.
        cause: io::Error,
    },
    /// Another receiver listens there, and there are no ports.
    #[error("{0}: another receiver is there: end it, or give --bind another address")]
    Taken(String),
    /// The other end does not let this one in.
    #[error("the receiver does not let this end in: {0}")]
    Unfit(String),
    /// The other end gave up, for this reason.
    #[error("the other end gave up: {0}{advice}", advice = advice(.0))]
    Gone(String),
    /// The other end said what no end of ours says.
    #[error("the other end broke the protocol ({0}): use the same trunkline at both ends")]
    Broken(&'static str),
    /// Somebody tried too many codes.
    #[error(
        "{0} wrong codes were tried, so that this one is worth nothing any more: run `trunkline receive` again for another"
    )]
    Guessed(u32),
    /// Nobody has been heard for too long.
    #[error("{0}")]
    Silent(String),
    /// A cap that packets cannot keep to.
    #[error("a rate of {slow} cannot be kept: give at least {least}, a packet in 65 seconds")]
    TooSlow {
        /// The cap.
        slow: Rate,
        /// The least that there is.
        least: Rate,
    },
    /// The receiver has no address.
    #[error("the receiver has no address: name it")]
    Nowhere,
    /// The user stopped it.
    #[error("stopped; the same command goes on from what has come")]
    Stopped,
}

/// Whoever stopped the work on the files stopped the transfer.
impl From<TransferError> for MoverError {
    fn from(error: TransferError) -> MoverError {
        match error {
            TransferError::Stopped => MoverError::Stopped,
            error => MoverError::Files(error),
        }
    }
}

impl MoverError {
    /// The system refused `what`.
    pub(crate) fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> MoverError {
        let what = what.into();
        move |cause| MoverError::System { what, cause }
    }

    /// There is no listening at this address of IP's protocol 30.
    pub(crate) fn taken(at: SocketAddr, cause: io::Error) -> MoverError {
        let what = format!("cannot listen at {} (IP protocol 30)", at.ip());
        match cause.kind() {
            io::ErrorKind::AddrInUse => MoverError::Taken(what),
            _ => MoverError::System { what, cause },
        }
    }

    /// The receiver sends a sender away.
    pub(crate) fn unfit(unfit: Unfit) -> MoverError {
        MoverError::Unfit(match unfit {
            Unfit::Refused(Refusal::WrongKey) => {
                "wrong code or key: give the code that `trunkline receive` printed, or its --key-file".into()
            }
            Unfit::Refused(Refusal::KeyWanted) => {
                "it asks for a code or a key: send to CODE@HOST, or give its --key-file".into()
            }
            Unfit::Refused(Refusal::Keyless) => {
                "it asks for nothing, and so cannot prove who it is: give --no-key if you trust it all the same".into()
            }
            Unfit::Refused(Refusal::Clear) => {
                "it takes encrypted data only: give --plaintext to both ends, or to none".into()
            }
            other => other.to_string(),
        })
    }
}
