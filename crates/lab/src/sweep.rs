//! Undoing what killed runs left behind.

use crate::state::{self, Record};
use crate::{LabError, Namespace, nft, process};
use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

/// Only what bears this prefix is ever removed by name.
const PREFIX: &str = "tl";

/// Undoes, for every record in `directory` whose process is gone: programs left in its namespaces are
/// killed, devices and the masquerading table in `host` removed, forwarding and offloads put back
/// (unless a living run needs forwarding), the control socket and the record deleted. Tells one line
/// for each thing done or impossible; nothing to do gives no lines.
///
/// A record of another host namespace keeps its file while that namespace has processes: only a run there
/// can undo it.
///
/// # Errors
/// Where the directory is not this user's alone.
pub fn sweep(host: &Namespace, directory: &Path) -> Result<Vec<String>, LabError> {
    if !directory.exists() {
        return Ok(Vec::new());
    }
    state::secure(directory)?;
    let _lock = state::lock(directory)?;
    let dead = state::load(directory).into_iter().filter(|record| !record.is_alive());
    Ok(dead.flat_map(|record| undo(host, directory, &record)).collect())
}

/// Undoes one dead run; the caller holds the directory's lock.
pub(crate) fn undo(host: &Namespace, directory: &Path, record: &Record) -> Vec<String> {
    let mut told = Vec::new();
    // A reboot has undone everything but the files.
    if record.boot == state::boot() {
        kill_left_overs(record, host, &mut told);
        if record.host == host.id() {
            restore_host(host, directory, record, &mut told);
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

fn restore_host(host: &Namespace, directory: &Path, record: &Record, told: &mut Vec<String>) {
    for device in record.host_devices.iter().filter(|name| name.starts_with(PREFIX)) {
        tell(told, format!("removed device {device}"), remove_device(host, device));
    }
    for table in record.nft_tables.iter().filter(|name| name.starts_with(PREFIX)) {
        tell(told, format!("removed masquerading table {table}"), nft::delete_table(host, table));
    }
    for saved in &record.saved_offloads {
        let done = host.restore_offloads(saved).map(|()| true);
        tell(told, format!("restored the offloads of {}", saved.device), done);
    }
    let done = restore_forwarding(host, directory, record);
    tell(told, "restored net/ipv4/ip_forward".to_owned(), done);
}

/// Adds a line where something was done or failed.
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

/// Puts forwarding back unless a living run needs it; tells whether it changed anything.
pub(crate) fn restore_forwarding(
    host: &Namespace,
    directory: &Path,
    record: &Record,
) -> Result<bool, LabError> {
    let needed = state::forwarding_of_others(directory, record.pid, record.host).is_some();
    match &record.saved_ip_forward {
        Some(before) if !needed && host.sysctl(FORWARD)? != *before => {
            host.set_sysctl(FORWARD, before).map(|()| true)
        }
        _ => Ok(false),
    }
}

/// The switch that lets a host pass on other hosts' IPv4 packets.
pub(crate) const FORWARD: &str = "net/ipv4/ip_forward";

fn remove_files(directory: &Path, record: &Record, told: &mut Vec<String>) {
    if let Some(path) = &record.control_socket {
        let is_socket = fs::symlink_metadata(path).is_ok_and(|meta| meta.file_type().is_socket());
        if is_socket && fs::remove_file(path).is_ok() {
            told.push(format!("removed socket {}", path.display()));
        }
    }
    if fs::remove_file(state::file_of(directory, record.pid)).is_ok() {
        told.push(format!("removed the record of run {}", record.pid));
    }
}
