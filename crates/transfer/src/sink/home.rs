//! The receiver's directory and, beneath it, that of the transfer.

use crate::TransferError;
use crate::journal::{directory_name, load};
use rustix::fs::{
    AtFlags, FileType, FlockOperation, Mode, OFlags, flock, fstat, mkdirat, open, openat, renameat,
    statat,
};
use rustix::io::Errno;
use rustix::process::geteuid;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

const LOCK: &str = "lock";

/// The receiver's directory.
#[derive(Debug)]
pub(super) struct Top {
    handle: OwnedFd,
    path: PathBuf,
}

impl Top {
    pub fn open(path: &Path) -> Result<Top, TransferError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let handle = open(path, flags, Mode::empty());
        let handle = handle.map_err(|error| TransferError::at("open", path, error))?;
        Ok(Top { handle, path: path.into() })
    }

    pub fn handle(&self) -> &OwnedFd {
        &self.handle
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// The two directories, and the lock that keeps other receivers away.
#[derive(Debug)]
pub(super) struct Home {
    top: Top,
    own: OwnedFd,
    path: PathBuf,
    name: String,
    _lock: OwnedFd,
}

impl Home {
    /// Opens or makes the transfer's directory, and locks it.
    pub fn open(directory: &Path, identity: &[u8; 32]) -> Result<Home, TransferError> {
        let top = Top::open(directory)?;
        let name = directory_name(identity);
        let path = directory.join(&name);
        loop {
            let own = open_own(&top.handle, &name, &path)?;
            let lock = lock(&own, &path)?;
            // A receiver that ended meanwhile took the directory away, lock and all.
            if is_still(&top.handle, &name, &own)
                .map_err(|error| TransferError::at("open", &path, error))?
            {
                let home = Home { top, own, path, name, _lock: lock };
                home.sweep();
                return Ok(home);
            }
        }
    }

    /// Returns the receiver's directory.
    pub fn top(&self) -> &Top {
        &self.top
    }

    /// Returns the transfer's directory.
    pub fn own(&self) -> &OwnedFd {
        &self.own
    }

    /// Returns the path of the transfer's directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Fails if the transfer's directory is not where it was: what is written there is nobody's any more.
    pub fn check(&self) -> Result<(), TransferError> {
        match is_still(&self.top.handle, &self.name, &self.own) {
            Ok(true) => Ok(()),
            Ok(false) => Err(TransferError::Removed(self.path.clone())),
            Err(error) => Err(TransferError::at("look at", &self.path, error)),
        }
    }

    /// Returns the octets of a file in the transfer's directory; `None` if there is none.
    pub fn load(&self, name: &str) -> Result<Option<Vec<u8>>, TransferError> {
        let loaded = load(&self.own, name, &self.path.join(name))?;
        Ok(loaded.map(|(_, octets)| octets))
    }

    /// Takes the transfer's directory away. Its new name is what ends the transfer.
    pub fn remove(&self) -> Result<(), TransferError> {
        let top = &self.top.handle;
        let moved = renameat(top, &*self.name, top, &*self.gone());
        moved.map_err(|error| TransferError::at("remove", &self.path, error))?;
        self.sweep();
        Ok(())
    }

    /// Takes the transfer's directory away as far as that can be done, if it is worth nothing.
    pub fn remove_if(&self, is_worthless: bool) {
        if is_worthless {
            let _ = self.remove();
        }
    }

    /// Deletes what an ended transfer left. What cannot be deleted takes room and harms nothing: the next receiver of
    /// the transfer tries again. The receiver's directory may have another name by now.
    fn sweep(&self) {
        let top = self.top.handle.as_raw_fd();
        let _ = std::fs::remove_dir_all(format!("/proc/self/fd/{top}/{}", self.gone()));
    }

    fn gone(&self) -> String {
        format!("{}.done", self.name)
    }
}

/// Returns the transfer's directory, made if it is not there. It belongs to this user alone.
fn open_own(top: &OwnedFd, name: &str, path: &Path) -> Result<OwnedFd, TransferError> {
    let cannot = |error: Errno| TransferError::at("make", path, error);
    match mkdirat(top, name, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(cannot(error)),
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let own = match openat(top, name, flags, Mode::empty()) {
        Err(Errno::LOOP | Errno::NOTDIR) => return Err(TransferError::NotOurs(path.into())),
        opened => opened.map_err(cannot)?,
    };
    let found = fstat(&own).map_err(cannot)?;
    match found.st_uid == geteuid().as_raw() && found.st_mode & 0o022 == 0 {
        true => Ok(own),
        false => Err(TransferError::NotOurs(path.into())),
    }
}

fn lock(own: &OwnedFd, path: &Path) -> Result<OwnedFd, TransferError> {
    let cannot = |error: Errno| TransferError::at("lock", path, error);
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let lock = openat(own, LOCK, flags, Mode::RUSR | Mode::WUSR).map_err(cannot)?;
    match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(lock),
        Err(Errno::WOULDBLOCK) => Err(TransferError::Busy(path.into())),
        Err(error) => Err(cannot(error)),
    }
}

/// Whether the name still stands for this directory.
fn is_still(top: &OwnedFd, name: &str, own: &OwnedFd) -> Result<bool, Errno> {
    let own = fstat(own)?;
    match statat(top, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(found) => Ok((found.st_dev, found.st_ino) == (own.st_dev, own.st_ino)),
        Err(Errno::NOENT) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Returns the kind of what has a name in a directory, its mode and its size; `None` if nothing has.
pub(super) fn look(
    directory: &OwnedFd,
    name: impl rustix::path::Arg,
) -> Result<Option<(FileType, u64)>, Errno> {
    match statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(found) => Ok(Some((FileType::from_raw_mode(found.st_mode), found.st_size as u64))),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error),
    }
}
