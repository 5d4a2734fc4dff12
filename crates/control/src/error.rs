//! Errors between a run and those who want to talk to it.

use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// An error between a run and those who want to talk to it.
#[derive(Debug, Error)]
pub enum ControlError {
    /// No run at all.
    #[error("no trunkline is running for this user; start one, or use sudo if root runs it")]
    NoneRunning,
    /// No run as asked for.
    #[error("no trunkline runs as process {pid}; {}", running_words(.running))]
    NotThatOne {
        /// The process asked for.
        pid: String,
        /// Those that do run, one text each.
        running: Vec<String>,
    },
    /// More than one.
    #[error("several trunklines are running: {}; choose one with --pid", .running.join(", "))]
    Several {
        /// One text each.
        running: Vec<String>,
    },
    /// There is no socket.
    #[error("nothing runs at {}: no such socket; start a path first", .0.display())]
    NotRunning(PathBuf),
    /// There is a socket with nobody behind it.
    #[error("the run behind {} is gone; start it again", .0.display())]
    Gone(PathBuf),
    /// Not allowed.
    #[error("{} may not be opened: {cause}; be the user who started the run", .path.display())]
    Permission {
        /// The socket or directory.
        path: PathBuf,
        /// The system's answer.
        cause: io::Error,
    },
    /// Somebody answers there already.
    #[error("{} is in use by another run; stop that run or choose another socket", .0.display())]
    InUse(PathBuf),
    /// Something else lies at the socket's place.
    #[error("{} is not a socket; remove it or choose another place", .0.display())]
    NotASocket(PathBuf),
    /// The path does not fit into a socket address.
    #[error("{} is too long for a socket: at most {limit} bytes; choose a shorter one", .path.display())]
    TooLong {
        /// The path.
        path: PathBuf,
        /// The most bytes.
        limit: usize,
    },
    /// There is no directory for sockets that is this user's alone.
    #[error(transparent)]
    NoDirectory(trunkline_netns::LabError),
    /// The run refused, or said that something was wrong with the request.
    #[error("{message}")]
    Refused {
        /// The HTTP status.
        status: u16,
        /// One line from the run.
        message: String,
    },
    /// What came back is not an answer.
    #[error("the run's answer cannot be understood: {0}; is it of another version?")]
    Answer(String),
    /// The run ended while it was asked.
    #[error("the run behind {} ended before it answered; what was asked of it is void", .0.display())]
    Ended(PathBuf),
    /// The run goes on, but not with this connection.
    #[error("the run behind {} broke the connection off ({cause}); ask again", .path.display())]
    BrokenOff {
        /// The socket.
        path: PathBuf,
        /// The error that ended the connection.
        cause: String,
    },
    /// No answer in time.
    #[error("the run behind {} does not answer; look whether it hangs, or is stopped (then end that with `kill -CONT`){}", .path.display(), may_come(.change))]
    Silent {
        /// The socket.
        path: PathBuf,
        /// Whether it was asked for a change, which it may still make.
        change: bool,
    },
    /// The system refused something else.
    #[error("cannot {what} {}: {cause}", .path.display())]
    System {
        /// The action that was attempted.
        what: &'static str,
        /// On what.
        path: PathBuf,
        /// The system's answer.
        cause: io::Error,
    },
}

fn may_come(change: &bool) -> &'static str {
    if *change {
        "; what was asked of it may still be done when it goes on: `trunkline show` tells"
    } else {
        ""
    }
}

impl ControlError {
    pub(crate) fn system(what: &'static str, path: &Path, cause: io::Error) -> ControlError {
        let path = path.to_owned();
        match cause.kind() {
            io::ErrorKind::PermissionDenied => ControlError::Permission { path, cause },
            _ => ControlError::System { what, path, cause },
        }
    }
}

fn running_words(running: &[String]) -> String {
    match running {
        [] => "none runs for this user".into(),
        some => format!("running: {}", some.join(", ")),
    }
}
