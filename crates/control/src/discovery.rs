//! The places of the sockets of running paths, and the choice among them.

use crate::ControlError;
use crate::socket::{DirectoryLock, Probe, probe, remove};
use std::fs::read_dir;
use std::path::{Path, PathBuf};

/// Longest command line that is shown, in characters.
const LONGEST_NAME: usize = 60;

/// A running path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Running {
    /// The process.
    pub pid: u32,
    /// Its command line, shortened; `trunkline` if it cannot be read.
    pub name: String,
    /// Its socket.
    pub socket: PathBuf,
}

impl Running {
    fn words(&self) -> String {
        format!("{} ({})", self.pid, self.name)
    }
}

/// The directory for the socket of a new run of this user; made with mode 0700 if it is missing.
///
/// [`trunkline_netns::runtime_dirs`] tells where it may be. A run of an ordinary user is root in a user namespace of its
/// own; what counts is who it is outside.
///
/// # Errors
/// If no place is this user's alone, or can be made so.
pub fn runtime_dir() -> Result<PathBuf, ControlError> {
    trunkline_netns::runtime_dir().map_err(ControlError::NoDirectory)
}

/// The path of this process's socket.
///
/// # Errors
/// As [`runtime_dir`].
pub fn socket_path() -> Result<PathBuf, ControlError> {
    Ok(runtime_dir()?.join(format!("{}.sock", std::process::id())))
}

/// The running paths of this user, by process number. Sockets of killed runs are removed.
///
/// # Errors
/// If a directory cannot be read.
pub fn sockets() -> Result<Vec<Running>, ControlError> {
    let places = trunkline_netns::runtime_dirs_in_use();
    let found: Result<Vec<_>, _> = places.iter().map(|place| sockets_in(place)).collect();
    let mut running = found?.concat();
    running.sort_by_key(|run| run.pid);
    Ok(running)
}

/// The running paths with sockets in `directory`.
///
/// # Errors
/// If the directory cannot be read.
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
/// If none runs, several do and `which` does not say, or not the one that it says.
pub fn find(which: Option<&str>) -> Result<PathBuf, ControlError> {
    match which {
        Some(path) if path.contains('/') => Ok(PathBuf::from(path)),
        _ => choose(sockets()?, which),
    }
}

/// The same among the sockets in `directory`.
///
/// # Errors
/// As [`find`].
pub fn find_in(directory: &Path, which: Option<&str>) -> Result<PathBuf, ControlError> {
    choose(sockets_in(directory)?, which)
}

fn choose(mut running: Vec<Running>, which: Option<&str>) -> Result<PathBuf, ControlError> {
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
