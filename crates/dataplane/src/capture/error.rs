//! Errors of a capture.

use rustix::io::Errno;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// An error of a capture.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CaptureError {
    /// The file cannot be made.
    #[error("cannot create {}: {cause}; give a file that you may write", .path.display())]
    Create {
        /// The file.
        path: PathBuf,
        /// The system's answer.
        cause: String,
    },
    /// The file is a pipe that nobody reads.
    #[error("nobody reads the pipe {}; start its reader first, as with `wireshark -k -i {}`", .path.display(), .path.display())]
    Unread {
        /// The pipe.
        path: PathBuf,
    },
    /// The file cannot be written any further.
    #[error("cannot write {}: {cause}; {remedy}", .path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's answer.
        cause: String,
        /// The remedy.
        remedy: &'static str,
    },
    /// The thread that writes could not be had, or came to grief.
    #[error("cannot capture into {}: {cause}", .path.display())]
    Thread {
        /// The file.
        path: PathBuf,
        /// The cause.
        cause: String,
    },
}

impl CaptureError {
    pub(super) fn create(path: &Path, error: &io::Error) -> CaptureError {
        let path = path.to_owned();
        match error.kind() {
            ErrorKind::NotConnected => CaptureError::Unread { path },
            _ => CaptureError::Create { path, cause: words(error) },
        }
    }

    pub(super) fn write(path: &Path, error: &io::Error) -> CaptureError {
        CaptureError::Write { path: path.to_owned(), cause: words(error), remedy: remedy(error) }
    }

    pub(super) fn thread(path: &Path, cause: &str) -> CaptureError {
        CaptureError::Thread { path: path.to_owned(), cause: cause.to_string() }
    }
}

fn remedy(error: &io::Error) -> &'static str {
    match Errno::from_io_error(error) {
        Some(Errno::NOSPC | Errno::DQUOT) => "free space or capture elsewhere",
        Some(Errno::FBIG) => "raise the limit on file sizes or capture elsewhere",
        Some(Errno::PIPE) => "whoever read the capture has gone",
        _ => "capture elsewhere",
    }
}

/// The system's words, without the number that the standard library adds.
fn words(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_named_with_its_remedy() {
        let error = CaptureError::write(Path::new("x.pcapng"), &Errno::NOSPC.into());
        let wanted = "cannot write x.pcapng: No space left on device; \
                      free space or capture elsewhere";
        assert_eq!(error.to_string(), wanted);
    }
}
