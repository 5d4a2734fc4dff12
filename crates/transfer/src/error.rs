//! Errors of transfers.

use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The cause for which a transfer cannot go on, and the remedy, in one line.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TransferError {
    /// No path was given.
    #[error("nothing to send: name a file or a directory")]
    Nothing,
    /// A path has no last name, as `/`.
    #[error("{} has no name of its own: send what is in it", shown(.0))]
    NoName(PathBuf),
    /// Two of the paths end in the same name.
    #[error("two of the paths are named {}: send them one after the other", shown(.0))]
    SameName(PathBuf),
    /// A device, a socket or a FIFO.
    #[error("{} is neither a file, a directory nor a symbolic link: leave it out", shown(.0))]
    Special(PathBuf),
    /// A name, a path or a tree that no manifest holds.
    #[error("{} cannot be sent: {why}", shown(path))]
    Unfit {
        /// The entry.
        path: PathBuf,
        /// The limit that it breaks.
        why: &'static str,
    },
    /// A file that has fewer bytes than when it was scanned.
    #[error(
        "{} is shorter than it was: {now} bytes, was {was}: restore it, or send again as it is",
        shown(path)
    )]
    Shorter {
        /// The file.
        path: PathBuf,
        /// Bytes at the scan.
        was: u64,
        /// Bytes now.
        now: u64,
    },
    /// A file, or a symbolic link, that changed after the scan.
    #[error("{} has changed since the transfer began: send again as it is now", shown(.0))]
    Changed(PathBuf),
    /// A manifest that breaks a rule.
    #[error("the manifest is refused: {0}: use the same version at both ends")]
    Manifest(&'static str),
    /// A manifest whose hash is not the identity of the transfer.
    #[error("the manifest is not that of this transfer: begin the transfer anew")]
    Identity,
    /// The manifest has not come yet.
    #[error("the manifest has not come yet: send it before the first chunk")]
    NoManifest,
    /// A size of chunks that cannot be.
    #[error("chunks of no bytes: use at least 1")]
    NoChunk,
    /// The journal counts in chunks of another size.
    #[error("the transfer was begun in chunks of {kept} bytes, not {asked}: go on with {kept}")]
    OtherChunk {
        /// Bytes of the journal's chunks.
        kept: u32,
        /// Bytes asked for.
        asked: u32,
    },
    /// A chunk beyond the last one.
    #[error("chunk {index} is not of the stream, which has {chunks}: begin the transfer anew")]
    Beyond {
        /// The chunk's number.
        index: u64,
        /// Number of chunks of the stream.
        chunks: u64,
    },
    /// A chunk that is too long or too short.
    #[error("chunk {index} has {is} bytes, not {due}: begin the transfer anew")]
    Length {
        /// The chunk's number.
        index: u64,
        /// Bytes that it must have.
        due: u64,
        /// Bytes that it has.
        is: u64,
    },
    /// Too little room for the whole transfer.
    #[error(
        "disk full: needs {needs} bytes, has {has} at {}: free space and run again",
        shown(path)
    )]
    NoRoom {
        /// The directory.
        path: PathBuf,
        /// Bytes still needed.
        needs: u64,
        /// Bytes available.
        has: u64,
    },
    /// Too few inodes for the whole transfer.
    #[error(
        "disk full: needs {needs} inodes, has {has} at {}: delete files and run again",
        shown(path)
    )]
    NoInodes {
        /// The directory.
        path: PathBuf,
        /// Inodes needed.
        needs: u64,
        /// Inodes available.
        has: u64,
    },
    /// The disk ran full, or a quota was reached, during the transfer.
    #[error("disk full at {}: free space or inodes and run again; what has come is not sent again", shown(.0))]
    DiskFull(PathBuf),
    /// A right is missing.
    #[error(
        "permission denied: cannot {doing} {}: change its rights or run as its owner",
        shown(path)
    )]
    Denied {
        /// The attempt, a verb.
        doing: &'static str,
        /// The path.
        path: PathBuf,
    },
    /// A file stands at a final name, and may not be replaced.
    #[error("{} exists: move it away, or receive with --replace", shown(.0))]
    Exists(PathBuf),
    /// What stands at the final names has the sizes and times that it is to have, but other data.
    #[error(
        "{} exists with the same sizes and times and other data: move it away, or receive with --replace",
        shown(.0)
    )]
    Otherwise(PathBuf),
    /// A directory stands where a file goes, or another thing where a directory goes.
    #[error("{} is in the way, of another kind than what is received: move it away", shown(.0))]
    InTheWay(PathBuf),
    /// A directory into which a file system is mounted: parts cannot be renamed across.
    #[error(
        "{} is a file system of its own, into which nothing can be moved: unmount it, or send what goes there by itself",
        shown(.0)
    )]
    Elsewhere(PathBuf),
    /// A journal's directory that another user made or may change.
    #[error("{} is not private to this user: remove it and run again", shown(.0))]
    NotOurs(PathBuf),
    /// Another receiver holds the lock.
    #[error("another receiver is at work in {}: wait for it or end it", shown(.0))]
    Busy(PathBuf),
    /// Chunks are missing.
    #[error("{0} chunks are missing: run again to receive them")]
    Incomplete(u64),
    /// The hash of the whole is not the sender's.
    #[error("the data are not the sender's: run again to receive the chunks that differ")]
    Root,
    /// Chunks on the disk that are not as they were confirmed; they are missing again.
    #[error("{0} chunks were lost when the machine stopped: run again to receive them")]
    Damaged(u64),
    /// Parts that are gone or cut off, whose chunks are missing again.
    #[error(
        "{chunks} chunks are gone from {}: run again to receive them, and leave it alone",
        shown(path)
    )]
    Vanished {
        /// Chunks.
        chunks: u64,
        /// The transfer's own directory.
        path: PathBuf,
    },
    /// The transfer's own directory is not where it was.
    #[error("{} was removed while the transfer went on: run again to receive it anew", shown(.0))]
    Removed(PathBuf),
    /// A file that may be no larger, by a limit of the process or of the file system.
    #[error(
        "{} is larger than a file may be here: raise the limit (ulimit -f), or receive into another file system",
        shown(.0)
    )]
    TooLarge(PathBuf),
    /// A file is gone whose transfer was about to end.
    #[error("{} is gone, though it was whole: send again from the beginning", shown(.0))]
    Gone(PathBuf),
    /// The sink has ended, or is past the last chunk.
    #[error("the transfer is being finished and takes no more chunks: begin it anew")]
    Finished,
    /// It was told to stop.
    #[error("stopped: what came is kept; run again to go on")]
    Stopped,
    /// Anything else that the system refused.
    #[error("cannot {doing} {}: {cause}: mend that and run again", shown(path))]
    Io {
        /// The attempt, a verb.
        doing: &'static str,
        /// The path.
        path: PathBuf,
        /// The system's error.
        cause: io::Error,
    },
}

impl TransferError {
    /// Returns the error of an attempt at a path.
    pub(crate) fn at(
        doing: &'static str,
        path: impl Into<PathBuf>,
        cause: impl Into<io::Error>,
    ) -> Self {
        let (path, cause) = (path.into(), cause.into());
        match cause.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::DiskFull(path),
            io::ErrorKind::FileTooLarge => Self::TooLarge(path),
            io::ErrorKind::PermissionDenied => Self::Denied { doing, path },
            _ => Self::Io { doing, path, cause },
        }
    }
}

/// Returns a path on one line: control characters are escaped.
pub(crate) fn shown(path: &Path) -> String {
    path.to_string_lossy().chars().fold(String::new(), |mut text, letter| {
        match letter.is_control() {
            true => text.extend(letter.escape_default()),
            false => text.push(letter),
        }
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::Errno;

    #[test]
    fn an_error_is_one_line_with_its_remedy() {
        let full = TransferError::at("write", "a\nb", Errno::NOSPC).to_string();
        assert_eq!(
            full,
            r"disk full at a\nb: free space or inodes and run again; what has come is not sent again"
        );
        let quota = TransferError::at("write", "a", Errno::DQUOT);
        assert!(matches!(quota, TransferError::DiskFull(_)), "{quota}");
        let large = TransferError::at("write", "a", Errno::FBIG);
        assert!(matches!(large, TransferError::TooLarge(_)), "{large}");
        let denied = TransferError::at("read", "a", Errno::ACCESS).to_string();
        assert!(denied.starts_with("permission denied: cannot read a:"), "{denied}");
        let other = TransferError::at("read", "a", Errno::IO).to_string();
        assert!(other.starts_with("cannot read a: Input/output error"), "{other}");
    }
}
