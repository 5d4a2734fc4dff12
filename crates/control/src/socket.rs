//! The socket in the file system: claimed by one run, replaced if an earlier one has left it.

use crate::ControlError;
use rustix::fs::{FlockOperation, Mode, OFlags, fchmod, flock, open};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with,
};
use std::fs::{DirBuilder, symlink_metadata};
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf, absolute};
use std::thread::sleep;
use std::time::Duration;

/// Longest path in a socket address: sun_path without its final NUL (unix(7)).
const LONGEST_PATH: usize = 107;
/// Connections that wait to be accepted.
const BACKLOG: i32 = 128;
/// The number of tries for the lock on a directory, and the time between them. It is held for microseconds.
const TRIES: u32 = 200;
const BETWEEN_TRIES: Duration = Duration::from_millis(10);

/// The kind of answer that a socket gives.
#[derive(Debug)]
pub enum Probe {
    /// A run; the connection is open.
    Alive(UnixStream),
    /// Nobody: its run was killed.
    Stale,
    /// Nothing is there.
    Absent,
}

/// Looks who answers at `path`.
pub fn probe(path: &Path) -> Result<Probe, ControlError> {
    match symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Probe::Absent),
        Err(error) => return Err(ControlError::system("look at", path, error)),
        // Connecting to another kind of file is refused, too; that would look like a stale socket.
        Ok(found) if !found.file_type().is_socket() => {
            return Err(ControlError::NotASocket(path.to_owned()));
        }
        Ok(_) => {}
    }
    match UnixStream::connect(path) {
        Ok(stream) => Ok(Probe::Alive(stream)),
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => Ok(Probe::Stale),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Probe::Absent),
        Err(error) => Err(ControlError::system("connect to", path, error)),
    }
}

/// A lock on a directory of sockets. Between the making of a socket and the first accepted connection
/// it looks stale; who removes stale ones must not look just then.
#[derive(Debug)]
pub struct DirectoryLock {
    /// Closing it gives the lock back.
    _directory: OwnedFd,
}

impl DirectoryLock {
    pub fn take(path: &Path) -> Result<DirectoryLock, ControlError> {
        let system = |error: Errno| ControlError::system("lock", path, error.into());
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = open(path, flags, Mode::empty()).map_err(system)?;
        for _ in 0..TRIES {
            match flock(&directory, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(DirectoryLock { _directory: directory }),
                Err(Errno::WOULDBLOCK | Errno::INTR) => sleep(BETWEEN_TRIES),
                Err(error) => return Err(system(error)),
            }
        }
        Err(system(Errno::TIMEDOUT))
    }
}

/// A socket that is ours. Dropping it removes the socket, unless another has taken its place.
#[derive(Debug)]
pub struct Claim {
    path: PathBuf,
    identity: Option<(u64, u64)>,
}

impl Claim {
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if self.identity.is_some() && identity(&self.path) == self.identity {
            remove(&self.path);
        }
    }
}

/// Claims `path` and listens there. The mode is 0600 from the first moment.
pub fn claim(path: &Path) -> Result<(Claim, UnixListener), ControlError> {
    if path.as_os_str().len() > LONGEST_PATH {
        return Err(ControlError::TooLong { path: path.to_owned(), limit: LONGEST_PATH });
    }
    let system = |error: io::Error| ControlError::system("listen on", path, error);
    let whole = absolute(path).map_err(system)?;
    let directory = whole.parent().unwrap_or(Path::new("/"));
    let made = DirBuilder::new().recursive(true).mode(0o700).create(directory);
    made.map_err(|error| ControlError::system("create", directory, error))?;
    let _lock = DirectoryLock::take(directory)?;
    match probe(path)? {
        Probe::Alive(_) => return Err(ControlError::InUse(path.to_owned())),
        Probe::Stale => remove(path),
        Probe::Absent => {}
    }
    let listener = listen_at(path).map_err(|error| system(error.into()))?;
    let identity = identity(&whole);
    Ok((Claim { path: whole, identity }, listener))
}

/// The mode set on the socket before it is bound is the one that its file gets (unix_bind_bsd in the
/// kernel's net/unix/af_unix.c), so that nobody can slip in before a chmod.
fn listen_at(path: &Path) -> Result<UnixListener, Errno> {
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
    bind(&socket, &SocketAddrUnix::new(path)?)?;
    listen(&socket, BACKLOG)?;
    Ok(UnixListener::from(socket))
}

/// Device and inode of what lies at `path`.
fn identity(path: &Path) -> Option<(u64, u64)> {
    symlink_metadata(path).ok().map(|found| (found.dev(), found.ino()))
}

/// Removes a socket that nobody listens on any more.
pub fn remove(path: &Path) {
    if let Err(error) = std::fs::remove_file(path) {
        tracing::debug!(%error, "{} stays", path.display());
    }
}
