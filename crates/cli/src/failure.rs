//! One readable line for whatever went wrong, and the exit status that goes with it.

use crate::{foreign, output};
use clap::error::ErrorKind;
use std::fmt;

/// The reason why a verb did not do what it was asked to.
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

    /// As the same failure with an exit status of its own.
    pub fn with_status(self, status: u8) -> Failure {
        Failure { status, ..self }
    }

    /// A signal ended the work.
    pub fn interrupted(signal: i32) -> Failure {
        let name = signal_hook::low_level::signal_name(signal).unwrap_or("a signal");
        Failure::failed(format!("interrupted by {name}"))
    }

    /// Prints what is wrong with the command line in one line, or the help that was asked for.
    pub fn of_usage(error: &clap::Error) -> u8 {
        if !error.use_stderr()
            || error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
        {
            output::usage(error);
            return if error.use_stderr() { 2 } else { 0 };
        }
        let text = error.render().to_string();
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        let lines = lines.take_while(|line| !line.starts_with("Usage:"));
        // How to pass what looks like an option as a value is rarely what was meant.
        let told: Vec<&str> = lines.filter(|line| !line.starts_with("tip: to pass")).collect();
        let told = told.join(" ");
        let told = told.strip_prefix("error: ").unwrap_or(&told);
        let told = told.strip_suffix("For more information, try '--help'.").unwrap_or(told);
        let instead = foreign::instead(error).unwrap_or_else(|| "`--help` shows the usage".into());
        Failure::wrong_use(format!("{}; {instead}", told.trim())).report()
    }

    /// The line.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Says the line and gives the exit status.
    pub fn report(self) -> u8 {
        output::tell(&self.message);
        self.status
    }
}

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Failure {
        Failure::failed(error)
    }
}
