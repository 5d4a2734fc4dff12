//! Where the sockets of running paths lie, and which of them is meant.

use crate::ControlError;
use crate::socket::{DirectoryLock, Probe, probe, remove};
use rustix::process::geteuid;
use std::fs::{DirBuilder, Permissions, read_dir, set_permissions, symlink_metadata};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Longest command line that is shown, in characters.
const LONGEST_NAME: usize = 60;

/// A running path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Running {
    /// The process.
    pub pid: u32,
    /// Its command line, shortened; `trunkline` where it cannot be read.
    pub name: String,
    /// Its socket.
    pub socket: PathBuf,
}

impl Running {
    fn words(&self) -> String {
        format!("{} ({})", self.pid, self.name)
    }
}

/// The directory for sockets of this user's runs; made with mode 0700 where it is missing.
///
/// `/run/trunkline` for root, else `$XDG_RUNTIME_DIR/trunkline`, else `/tmp/trunkline-<uid>`. A run of an
/// ordinary user is root in a user namespace of its own; what counts is who it is outside.
///
/// # Errors
/// Where the directory belongs to somebody else or is a link, or cannot be made.
pub fn runtime_dir() -> Result<PathBuf, ControlError> {
    let own = geteuid().as_raw();
    let map = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    let session = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let directory = directory_of(uid_outside(own, &map), session);
    prepare(&directory, own)?;
    Ok(directory)
}

fn directory_of(uid: u32, session: Option<PathBuf>) -> PathBuf {
    // The XDG base directory specification wants relative paths ignored.
    match session.filter(|path| path.is_absolute()) {
        _ if uid == 0 => PathBuf::from("/run/trunkline"),
        Some(session) => session.join("trunkline"),
        None => PathBuf::from(format!("/tmp/trunkline-{uid}")),
    }
}

/// Who `own` is outside of the user namespace that a run makes for an ordinary user. That one has a
/// map of one user; in others, such as a container's, everybody is who they are inside.
fn uid_outside(own: u32, map: &str) -> u32 {
    let numbers: Vec<u32> = map.split_whitespace().flat_map(str::parse).collect();
    match numbers[..] {
        [inside, outside, 1] if inside == own => outside,
        _ => own,
    }
}

/// Makes `path` a directory that only the user `uid` can look into.
fn prepare(path: &Path, uid: u32) -> Result<(), ControlError> {
    let system = |error| ControlError::system("create", path, error);
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(system(error)),
        _ => {}
    }
    let found = symlink_metadata(path).map_err(system)?;
    let untrusted = |why| Err(ControlError::Untrusted { path: path.to_owned(), why });
    if found.is_symlink() {
        return untrusted("it is a symbolic link");
    }
    if !found.is_dir() {
        return untrusted("it is not a directory");
    }
    if found.uid() != uid {
        return untrusted("it belongs to another user");
    }
    if found.mode() & 0o777 != 0o700 {
        set_permissions(path, Permissions::from_mode(0o700)).map_err(system)?;
    }
    Ok(())
}

/// Where this process's socket belongs.
///
/// # Errors
/// As [`runtime_dir`].
pub fn socket_path() -> Result<PathBuf, ControlError> {
    Ok(runtime_dir()?.join(format!("{}.sock", std::process::id())))
}

/// The running paths of this user, by process number. Sockets of killed runs are removed.
///
/// # Errors
/// As [`runtime_dir`], and where the directory cannot be read.
pub fn sockets() -> Result<Vec<Running>, ControlError> {
    sockets_in(&runtime_dir()?)
}

/// The running paths with sockets in `directory`.
///
/// # Errors
/// Where the directory cannot be read.
pub fn sockets_in(directory: &Path) -> Result<Vec<Running>, ControlError> {
    let system = |error| ControlError::system("read", directory, error);
    let _lock = DirectoryLock::take(directory)?;
    let mut running = Vec::new();
    for entry in read_dir(directory).map_err(system)? {
        let socket = entry.map_err(system)?.path();
        let Some(pid) = pid_of(&socket) else { continue };
        match probe(&socket) {
            Ok(Probe::Alive(_)) => running.push(Running { pid, name: name_of(pid), socket }),
            Ok(Probe::Stale) => remove(&socket),
            Ok(Probe::Absent) => {}
            Err(error) => tracing::warn!("{error}"),
        }
    }
    running.sort_by_key(|run| run.pid);
    Ok(running)
}

/// The process number in `<pid>.sock`.
fn pid_of(socket: &Path) -> Option<u32> {
    let pid = socket.file_name()?.to_str()?.strip_suffix(".sock")?;
    pid.bytes().all(|digit| digit.is_ascii_digit()).then(|| pid.parse().ok())?
}

fn name_of(pid: u32) -> String {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    shortened(&String::from_utf8_lossy(&line))
}

/// A command line on one line; its words come with a NUL behind each.
fn shortened(line: &str) -> String {
    let words: Vec<&str> =
        line.split(|c: char| c.is_control()).filter(|word| !word.is_empty()).collect();
    let line = words.join(" ");
    if line.is_empty() {
        return "trunkline".into();
    }
    if line.chars().count() <= LONGEST_NAME {
        return line;
    }
    line.chars().take(LONGEST_NAME - 1).chain(['…']).collect()
}

/// The socket of the run that is meant: the one of process `which`, or the only one. A `which` with a
/// slash is the socket's own path.
///
/// # Errors
/// Where none runs, several do and `which` does not say, or not the one that it says.
pub fn find(which: Option<&str>) -> Result<PathBuf, ControlError> {
    match which {
        Some(path) if path.contains('/') => Ok(PathBuf::from(path)),
        _ => find_in(&runtime_dir()?, which),
    }
}

/// The same among the sockets in `directory`.
///
/// # Errors
/// As [`find`].
pub fn find_in(directory: &Path, which: Option<&str>) -> Result<PathBuf, ControlError> {
    let mut running = sockets_in(directory)?;
    let words = |running: &[Running]| running.iter().map(Running::words).collect();
    if let Some(pid) = which {
        let found = running.iter().position(|run| run.pid.to_string() == pid.trim());
        let Some(found) = found else {
            return Err(ControlError::NotThatOne { pid: pid.into(), running: words(&running) });
        };
        return Ok(running.swap_remove(found).socket);
    }
    match (running.len(), running.pop()) {
        (1, Some(only)) => Ok(only.socket),
        (_, None) => Err(ControlError::NoneRunning),
        (_, Some(last)) => {
            running.push(last);
            Err(ControlError::Several { running: words(&running) })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn each_user_has_a_place() {
        let place = |uid, session: Option<&str>| directory_of(uid, session.map(PathBuf::from));
        assert_eq!(place(7, Some("/run/user/7")), Path::new("/run/user/7/trunkline"));
        assert_eq!(place(7, None), Path::new("/tmp/trunkline-7"));
        assert_eq!(place(7, Some("here")), Path::new("/tmp/trunkline-7"));
        assert_eq!(place(0, Some("/run/user/0")), Path::new("/run/trunkline"));
    }

    #[test]
    fn root_of_a_namespace_for_one_is_the_user_outside() {
        assert_eq!(uid_outside(0, "         0       1000          1\n"), 1000);
        assert_eq!(uid_outside(0, "         0          0 4294967295\n"), 0);
        assert_eq!(uid_outside(1000, "         0          0 4294967295\n"), 1000);
        assert_eq!(uid_outside(0, "0 1000 1\n1 100000 65536\n"), 0, "a container");
        assert_eq!(uid_outside(5, ""), 5);
    }

    #[test]
    fn a_directory_is_made_narrowed_and_mistrusted() {
        let base = tempfile::tempdir().unwrap();
        let uid = geteuid().as_raw();
        let path = base.path().join("sockets");
        let mode = || symlink_metadata(&path).unwrap().mode() & 0o777;
        prepare(&path, uid).unwrap();
        assert_eq!(mode(), 0o700);
        set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        prepare(&path, uid).unwrap();
        assert_eq!(mode(), 0o700);
        let complaint = |path: &Path, uid| prepare(path, uid).unwrap_err().to_string();
        assert!(complaint(&path, uid + 1).contains("belongs to another user"));
        let link = base.path().join("link");
        symlink(&path, &link).unwrap();
        assert!(complaint(&link, uid).contains("is a symbolic link"));
        let file = base.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert!(complaint(&file, uid).contains("is not a directory"));
    }

    #[test]
    fn names_fit_on_a_line() {
        assert_eq!(
            shortened("trunkline\0shell\0--delay\x00300ms\0"),
            "trunkline shell --delay 300ms"
        );
        assert_eq!(shortened(""), "trunkline");
        assert_eq!(shortened(&"ä".repeat(200)).chars().count(), LONGEST_NAME);
        assert_eq!(shortened("a\nb\u{1b}[2J"), "a b [2J");
    }
}
