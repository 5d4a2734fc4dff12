//! One readable line for whatever went wrong, and the exit status that goes with it.

use std::fmt;
use std::process::ExitCode;

/// Why a verb did not do what it was asked to.
#[derive(Debug)]
pub struct Failure {
    status: u8,
    message: String,
}

impl Failure {
    /// The work failed: exit status 1.
    pub fn failed(message: impl fmt::Display) -> Failure {
        Failure { status: 1, message: message.to_string() }
    }

    /// The command line was wrong: exit status 2.
    pub fn wrong_use(message: impl fmt::Display) -> Failure {
        Failure { status: 2, message: message.to_string() }
    }

    /// The line.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Prints the line and gives the exit status.
    pub fn report(self) -> ExitCode {
        eprintln!("trunkline: {}", self.message.replace('\n', " "));
        ExitCode::from(self.status)
    }
}

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Failure {
        Failure::failed(error)
    }
}
