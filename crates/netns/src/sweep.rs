//! Undoing what killed runs left behind.

use crate::directory::{runtime_dirs_in_use, secure};
use crate::state::{self, Record};
use crate::{LabError, Namespace, forwarding, nft, process};
use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::Path;

/// Only what bears this prefix is ever removed by name.
const PREFIX: &str = "tl";

/// Undoes, for every record in `directory` whose process is gone: programs left in its namespaces are
/// killed, devices and tables of nf_tables in `host` removed, forwarding and offloads put back
/// (unless a living run needs forwarding), the control socket and the record deleted. Tells one line
/// for each thing done or impossible; nothing to do gives no lines.
///
/// A record of another host namespace keeps its file while that namespace has processes: only a run there
/// can undo it.
///
/// # Errors
/// If the directory is not this user's alone.
pub fn sweep(host: &Namespace, directory: &Path) -> Result<Vec<String>, LabError> {
    if !directory.exists() {
        return Ok(Vec::new());
    }
    secure(directory)?;
    let _lock = state::lock(directory)?;
    state::remove_unfinished(directory);
    let dead = state::load(directory).into_iter().filter(|record| !record.is_alive());
    Ok(dead.flat_map(|record| undo(host, directory, &record)).collect())
}

/// The same in every directory that may hold records of this user's runs.
///
/// # Errors
/// If a directory cannot be locked.
pub fn sweep_all(host: &Namespace) -> Result<Vec<String>, LabError> {
    let mut told = Vec::new();
    for directory in runtime_dirs_in_use() {
        told.extend(sweep(host, &directory)?);
    }
    Ok(told)
}

/// Undoes one dead run; the caller holds the directory's lock.
pub(crate) fn undo(host: &Namespace, directory: &Path, record: &Record) -> Vec<String> {
    let mut told = Vec::new();
    // A reboot has undone everything but the files.
    if record.boot == state::boot() {
        kill_left_overs(record, host, &mut told);
        if record.host == host.id() {
            if !restore_host(host, directory, record, &mut told) {
                told.push(format!("the record of run {} stays: start again", record.pid));
                return told;
            }
        } else if !process::processes_in(record.host.inode).is_empty() {
            told.push(format!(
                "left run {} alone: it belongs to another host namespace",
                record.pid
            ));
            return told;
        }
    }
    remove_files(directory, record, &mut told);
    told
}

fn kill_left_overs(record: &Record, host: &Namespace, told: &mut Vec<String>) {
    let inside = record.namespaces.iter().filter(|id| id.inode != host.inode());
    for id in inside {
        if id.cookie.is_none() {
            // Without the cookie the number may be another namespace's by now.
            told.push(format!("cannot prove which processes belong to namespace {}", id.inode));
            continue;
        }
        match process::kill_exactly_in(*id, libc::SIGKILL) {
            Ok(0) => {}
            Ok(count) => told.push(format!("killed {count} processes of namespace {}", id.inode)),
            Err(error) => told.push(error.to_string()),
        }
    }
}

/// Undoes what was changed on the host; tells whether forwarding is back. If it is not, its guard stays too.
fn restore_host(
    host: &Namespace,
    directory: &Path,
    record: &Record,
    told: &mut Vec<String>,
) -> bool {
    for device in record.host_devices.iter().filter(|name| name.starts_with(PREFIX)) {
        tell(told, format!("removed device {device}"), remove_device(host, device));
    }
    for saved in &record.saved_offloads {
        let done = host.restore_offloads(saved).map(|()| true);
        tell(told, format!("restored the offloads of {}", saved.device), done);
    }
    let done = forwarding::restore(host, directory, record);
    let restored = done.is_ok();
    tell(told, "restored the forwarding of the host's devices".to_owned(), done);
    if !restored {
        return false;
    }
    // Last, for one of them guards what is passed on.
    for table in record.nft_tables.iter().filter(|name| name.starts_with(PREFIX)) {
        tell(told, format!("removed table {table} of nf_tables"), nft::delete_table(host, table));
    }
    true
}

/// Adds a line if something was done or failed.
fn tell(told: &mut Vec<String>, line: String, done: Result<bool, LabError>) {
    match done {
        Ok(true) => told.push(line),
        Ok(false) => {}
        Err(error) => told.push(error.to_string()),
    }
}

/// Removes a device; tells whether there was one.
pub(crate) fn remove_device(host: &Namespace, name: &str) -> Result<bool, LabError> {
    match host.delete_link(name) {
        // It may go with its peer's namespace between our look and our request.
        Err(error) if gone(&error) => Ok(false),
        other => other.map(|()| true),
    }
}

fn gone(error: &LabError) -> bool {
    matches!(error, LabError::NoDevice(_)) || error.errno() == Some(libc::ENODEV)
}

fn remove_files(directory: &Path, record: &Record, told: &mut Vec<String>) {
    if let Some(path) = &record.control_socket {
        let is_socket = fs::symlink_metadata(path).is_ok_and(|meta| meta.file_type().is_socket());
        // Who answers there is another process, which has been given the dead one's number.
        let is_left = is_socket && UnixStream::connect(path).is_err();
        if is_left && fs::remove_file(path).is_ok() {
            told.push(format!("removed socket {}", path.display()));
        }
    }
    if fs::remove_file(state::file_of(directory, record.pid)).is_ok() {
        told.push(format!("removed the record of run {}", record.pid));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::namespace::tests::namespace;
    use crate::{End, RunState, SavedForwarding, create_veth};
    use std::os::unix::net::UnixListener;
    use std::path::PathBuf;

    fn scratch(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("tl-sweep-{name}-{}", std::process::id()))
    }

    /// Writes the record of a process that ended: this one's, started a second earlier.
    fn write_dead(directory: &Path, host: &Namespace, change: impl FnOnce(&mut Record)) -> Record {
        let mut record = RunState::create(directory, host).unwrap().record();
        record.started -= 100;
        change(&mut record);
        let text = serde_json::to_vec(&record).unwrap();
        fs::write(state::file_of(directory, record.pid), text).unwrap();
        record
    }

    #[test]
    fn all_that_a_dead_run_left_on_the_host_is_undone() {
        let (Some(host), Some(far)) = (namespace(), namespace()) else { return };
        let directory = scratch("host");
        create_veth(&End::new(&host, "tldead"), &End::new(&far, "tlfar"), 1500).unwrap();
        create_veth(&End::new(&host, "other"), &End::new(&far, "other"), 1500).unwrap();
        nft::tests::leave_behind(&host, "tldead");
        let before = host.offloads("other").unwrap();
        let saved = host.set_offloads_off("other").unwrap();
        host.set_sysctl("net/ipv4/conf/other/forwarding", "1").unwrap();
        write_dead(&directory, &host, |record| {
            record.host_devices = vec!["tldead".into(), "other".into()];
            record.nft_tables = vec!["tldead".into()];
            let (device, zero) = ("other".into(), || "0".to_owned());
            record.saved_forwarding =
                vec![SavedForwarding { device, before: zero(), switch: zero(), merging: false }];
            record.saved_offloads = vec![saved];
            record.control_socket = Some(directory.join("socket"));
        });
        drop(UnixListener::bind(directory.join("socket")).unwrap());
        let told = sweep(&host, &directory).unwrap();
        assert!(matches!(host.link("tldead"), Err(LabError::NoDevice(_))));
        assert!(host.link("other").is_ok(), "not ours by its name");
        assert_eq!(host.nft_tables().unwrap(), Vec::<String>::new());
        assert_eq!(host.offloads("other").unwrap(), before);
        assert_eq!(host.sysctl("net/ipv4/conf/other/forwarding").unwrap(), "0");
        assert!(!directory.join("socket").exists() && state::load(&directory).is_empty());
        assert_eq!(told.len(), 6, "{told:#?}");
        assert_eq!(sweep(&host, &directory).unwrap(), Vec::<String>::new());
        fs::remove_dir_all(&directory).unwrap();
    }

    /// A process that answers at the socket has the number of the dead run, and has taken its place.
    #[test]
    fn a_socket_at_which_somebody_listens_stays() {
        let directory = scratch("socket");
        let host = Namespace::current().unwrap();
        let socket = directory.join("socket");
        write_dead(&directory, &host, |record| record.control_socket = Some(socket.clone()));
        let listener = UnixListener::bind(&socket).unwrap();
        let told = sweep(&host, &directory).unwrap();
        let there = socket.exists();
        drop(listener);
        let left = state::load(&directory);
        fs::remove_dir_all(&directory).unwrap();
        assert!(there && left.is_empty() && told.len() == 1, "{told:#?} {left:#?}");
    }

    /// The kernel gives a dead namespace's number to a new one; the cookie tells them apart.
    #[test]
    fn a_namespace_with_the_same_number_is_not_touched() {
        let (Some(host), Some(other)) = (namespace(), namespace()) else { return };
        let directory = scratch("reused");
        let mut sleep = std::process::Command::new("sleep");
        sleep.arg("30");
        let mut child = crate::spawn(&other, sleep, crate::SpawnOptions::default()).unwrap();
        write_dead(&directory, &host, |record| {
            let mut id = other.id();
            id.cookie = id.cookie.map(|cookie| cookie - 1);
            record.namespaces = vec![id];
        });
        sweep(&host, &directory).unwrap();
        assert_eq!(process::processes_in(other.inode()), [child.id()]);
        write_dead(&directory, &host, |record| record.namespaces = vec![other.id()]);
        let told = sweep(&host, &directory).unwrap();
        let ended = child.wait().unwrap();
        fs::remove_dir_all(&directory).unwrap();
        assert!(!ended.success() && told[0].contains("killed 1"), "{told:#?}");
    }
}
