//! Modes and times of what stands under its final name.

use super::walk::Walk;
use crate::scan::{MODES, mtime};
use crate::{Kind, Mtime, TransferError};
use rustix::fs::{
    AtFlags, Mode, OFlags, Timespec, Timestamps, UTIME_OMIT, chmod, fstat, openat, utimensat,
};
use rustix::io::Errno;
use rustix::process::geteuid;
use std::fs::{File, Metadata};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;

/// Gives a file or a directory that stands under its final name the mode of its entry, and a directory the time too, as far as they
/// differ. Answers whether it has them: another user's keeps its own.
pub(super) fn dress(walk: &mut Walk<'_>, number: u32) -> Result<bool, TransferError> {
    let path = walk.path(number);
    let cannot = |error: Errno| TransferError::at("change", &path, error);
    let entry = walk.entry(number);
    let above = walk.above(entry)?.ok_or_else(|| TransferError::Gone(path.clone()))?;
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let own = match openat(above, &*entry.name, flags, Mode::empty()) {
        Ok(own) => File::from(own),
        Err(Errno::NOENT) => return Err(TransferError::Gone(path)),
        Err(error) => return Err(cannot(error)),
    };
    let found = own.metadata().map_err(|error| TransferError::at("read", &path, error))?;
    let is_directory = entry.kind == Kind::Directory;
    let is_of_its_kind = if is_directory { found.is_dir() } else { found.is_file() };
    if !is_of_its_kind {
        return Err(TransferError::InTheWay(path));
    }
    let own = OwnedFd::from(own);
    let timed = match is_directory && mtime(&found) != entry.mtime {
        true => set_time(above, &entry.name, entry.mtime),
        false => Ok(()),
    };
    let dressed = timed.and_then(|()| match found.mode() & MODES == entry.mode {
        true => Ok(()),
        false => set_mode(&own, entry.mode | inherited(&found)),
    });
    ours(&own, dressed).map_err(cannot)
}

/// The bit by which what is made in a directory has the directory's group. It is this end's, as the group is.
fn inherited(found: &Metadata) -> u32 {
    if found.is_dir() { found.mode() & Mode::SGID.bits() } else { 0 }
}

/// Whether something could be changed: what is another user's may forbid it, and is used as it is.
pub(super) fn ours(own: &OwnedFd, changed: Result<(), Errno>) -> Result<bool, Errno> {
    match changed {
        Ok(()) => Ok(true),
        Err(Errno::PERM) if fstat(own)?.st_uid != geteuid().as_raw() => Ok(false),
        Err(error) => Err(error),
    }
}

/// Sets the mode of what a handle without rights stands for.
pub(super) fn set_mode(handle: &OwnedFd, mode: u32) -> Result<(), Errno> {
    chmod(format!("/proc/self/fd/{}", handle.as_raw_fd()), Mode::from_raw_mode(mode))
}

/// Sets the time of the last change, of a link itself if it is one.
pub(super) fn set_time(directory: &OwnedFd, name: &[u8], mtime: Mtime) -> Result<(), Errno> {
    let last_access = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
    let last_modification = Timespec { tv_sec: mtime.seconds, tv_nsec: mtime.nanos.into() };
    let times = Timestamps { last_access, last_modification };
    utimensat(directory, name, &times, AtFlags::SYMLINK_NOFOLLOW)
}
