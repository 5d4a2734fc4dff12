//! One readable line for whatever went wrong, and the exit status that goes with it.

use crate::{foreign, output, signals};
use clap::error::ErrorKind;
use std::fmt;

/// In whatever error it stands, the limit of this process's open files is behind it (EMFILE).
const TOO_MANY_FILES: &str = "(os error 24)";
const MORE_FILES: &str = "raise the limit, the hard one too: `ulimit -n 65536`, as root";
const MORE_THREADS: &str = "allow more processes (`ulimit -u`, pids.max of the control group) or more memory (`ulimit -v`)";

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

    /// No thread could be started.
    pub fn no_thread(error: impl fmt::Display) -> Failure {
        Failure::failed(format!("cannot start a thread: {error}; {MORE_THREADS}"))
    }

    /// As the same failure with an exit status of its own.
    pub fn with_status(self, status: u8) -> Failure {
        Failure { status, ..self }
    }

    /// The same, which another program tells.
    pub fn told(self) -> Failure {
        Failure { message: String::new(), ..self }
    }

    /// The same with a further remark.
    pub fn with_hint(self, hint: &str) -> Failure {
        Failure { message: format!("{}; {hint}", self.message), ..self }
    }

    /// A signal ended the work: the exit status of which shells tell then.
    pub fn interrupted(signal: i32) -> Failure {
        let name = signal_hook::low_level::signal_name(signal).unwrap_or("a signal");
        let status = u8::try_from(signals::status(signal)).unwrap_or(1);
        Failure::failed(format!("interrupted by {name}")).with_status(status)
    }

    /// Prints what is wrong with the command line in one line, or the help that was asked for.
    pub fn of_usage(error: &clap::Error) -> u8 {
        if !error.use_stderr()
            || error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
        {
            let status = if error.use_stderr() { 2 } else { 0 };
            return output::usage(error).map_or_else(Failure::report, |()| status);
        }
        let text = error.render().to_string();
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        let lines = lines.take_while(|line| !line.starts_with("Usage:"));
        let instead = foreign::instead(error);
        let told = one_line(lines, instead.is_none());
        let told = told.strip_prefix("error: ").unwrap_or(&told);
        let told = told.strip_suffix("For more information, try '--help'.").unwrap_or(told);
        let instead = instead.unwrap_or_else(|| "`--help` shows the usage".into());
        Failure::wrong_use(format!("{}; {instead}", told.trim())).report()
    }

    /// The line.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Says the line, if there is one, and gives the exit status.
    pub fn report(self) -> u8 {
        let limited = self.message.contains(TOO_MANY_FILES) && !self.message.contains("ulimit");
        if limited {
            output::tell(format_args!("{}; {MORE_FILES}", self.message));
        } else if !self.message.is_empty() {
            output::tell(&self.message);
        }
        self.status
    }
}

/// The lines of an error of clap's as one, with its tips if they are wanted.
fn one_line<'a>(lines: impl Iterator<Item = &'a str>, tips: bool) -> String {
    let mut told = String::new();
    for line in lines {
        match line.strip_prefix("tip: ") {
            // How to pass what looks like an option as a value is rarely what was meant.
            Some(tip) if tip.starts_with("to pass") || !tips => {}
            Some(tip) => told.extend(["; ", tip]),
            None if told.is_empty() => told.push_str(line),
            None => told.extend([" ", line]),
        }
    }
    // What the standard library says of numbers that it cannot read.
    told.replace("invalid digit found in string", "it is no whole number")
}

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Failure {
        Failure::failed(error)
    }
}
