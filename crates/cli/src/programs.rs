//! Programs at the ends of a path: started in their namespaces, waited for, and ended.

use crate::failure::Failure;
use rustix::fs::Access;
use rustix::process::{Pid, Signal, getpgrp, kill_process, kill_process_group};
use rustix::termios::tcgetpgrp;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;
use trunkline_core::{Rate, Span};
use trunkline_netns::{Namespace, Patience, Replacements, SpawnOptions, listening, spawn};

/// A program that runs in a namespace.
pub struct Program {
    pid: Pid,
    own_group: bool,
}

impl Program {
    /// Starts `command` in `namespace`, in the terminal's foreground group or in a group of its own, with these files in
    /// place of the machine's, and calls `ended` on another thread when it has.
    pub fn start(
        namespace: &Namespace,
        mut command: Command,
        (own_group, files): (bool, Replacements),
        ended: impl FnOnce(io::Result<ExitStatus>) + Send + 'static,
    ) -> Result<Program, Failure> {
        let name = command.get_program().to_owned();
        if own_group {
            command.stdin(Stdio::null());
        }
        let options = SpawnOptions { own_group, files, ..SpawnOptions::default() };
        let mut child: Child =
            spawn(namespace, command, options).map_err(|error| not_started(&name, &error))?;
        let pid = Pid::from_child(&child);
        trunkline_netns::thread("program")
            .and_then(|it| it.spawn(move || ended(child.wait())))
            .map_err(Failure::no_thread)?;
        Ok(Program { pid, own_group })
    }

    /// Sends `signal` to the program, and to all of its group if it has its own.
    pub fn signal(&self, signal: Signal) {
        // A program that has ended needs no signal.
        let _ = match self.own_group {
            true => kill_process_group(self.pid, signal),
            false => kill_process(self.pid, signal),
        };
    }
}

fn not_started(name: &OsStr, error: &trunkline_netns::LabError) -> Failure {
    let path = Path::new(name);
    let name = &*name.to_string_lossy();
    match error.errno() {
        Some(errno)
            if errno == rustix::io::Errno::NOENT.raw_os_error()
                || (errno == rustix::io::Errno::ACCESS.raw_os_error() && !is_anywhere(path)) =>
        {
            not_found(name)
        }
        Some(errno) if errno == rustix::io::Errno::ACCESS.raw_os_error() => not_run(name),
        _ => Failure::failed(error),
    }
}

/// Fails if there is no program of that name, before anything is built for it.
pub fn is_there(name: impl AsRef<OsStr>) -> Result<(), Failure> {
    let path = Path::new(name.as_ref());
    let name = &*name.as_ref().to_string_lossy();
    match name.contains('/') {
        false if is_anywhere(path) => Ok(()),
        true if path.is_dir() => {
            Err(Failure::failed(format!("command '{name}' is a directory: name the program in it")))
        }
        true if path.exists() => {
            rustix::fs::access(path, Access::EXEC_OK).map_err(|_| not_run(name))
        }
        _ => Err(not_found(name)),
    }
}

fn not_found(name: &str) -> Failure {
    let remedy = option_for(name).unwrap_or_else(|| "check its spelling, or install it".to_owned());
    Failure::failed(format!("command '{name}' not found: {remedy}"))
}

/// What to write instead of a quantity that stands where a program is expected.
fn option_for(word: &str) -> Option<String> {
    let option = if word.parse::<Span>().is_ok() {
        "--delay"
    } else if word.parse::<Rate>().is_ok() {
        "--rate"
    } else if word.ends_with('%') {
        "--loss"
    } else {
        return None;
    };
    Some(format!("write {option} {word}, if that is what it is"))
}

fn not_run(name: &str) -> Failure {
    Failure::failed(format!(
        "command '{name}' may not be run: it is not executable (chmod +x), or its file system forbids it"
    ))
}

/// Whether there is a file of that name, as far as this user may look. execvp(3) forbids a command that is nowhere if
/// it may not look into one directory of `PATH`.
fn is_anywhere(name: &Path) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    name.as_os_str().as_bytes().contains(&b'/')
        || std::env::split_paths(&path).any(|directory| directory.join(name).exists())
}

/// The outcome that `status` stands for: nothing if the program succeeded, else one line.
pub fn outcome(name: &str, status: io::Result<ExitStatus>) -> Result<(), Failure> {
    let status = status?;
    match (status.code(), status.signal()) {
        (Some(0), _) => Ok(()),
        (Some(code), _) => Err(Failure::failed(format!("{name} ended with status {code}"))),
        (_, Some(signal)) => Err(Failure::failed(format!(
            "{name} was killed by signal {signal} ({})",
            signal_hook::low_level::signal_name(signal).unwrap_or("unknown")
        ))),
        _ => Err(Failure::failed(format!("{name} ended in an unknown way: {status}"))),
    }
}

/// The exit status by which a shell would tell how a program ended, if it did not end well.
pub fn own_status(status: &ExitStatus) -> Option<u8> {
    let told = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    told.and_then(|status| u8::try_from(status).ok()).filter(|&status| status != 0)
}

/// Whether the terminal sends its signal to our programs too, because we are its foreground group.
pub fn terminal_reaches_programs() -> bool {
    File::open("/dev/tty").is_ok_and(|tty| tcgetpgrp(tty).is_ok_and(|group| group == getpgrp()))
}

/// Waits until some program in `namespace` listens for TCP or has a UDP socket, as long as there is patience with it, or
/// until `given_up` says that it will not. Ports of `ours` do not count. Answers whether one listens.
pub fn wait_for_listener(
    namespace: &Namespace,
    ours: &[u16],
    mut given_up: impl FnMut() -> bool,
) -> Result<bool, Failure> {
    let mut patience = Patience::begin(namespace);
    while patience.lasts() {
        if listening(namespace)?.iter().any(|port| !ours.contains(port)) {
            return Ok(true);
        }
        if given_up() {
            return Ok(false);
        }
        thread::sleep(Duration::from_millis(10));
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_in_place_of_a_program_are_told_their_option() {
        let option = |word| option_for(word).map(|text| text[..13].to_owned());
        assert_eq!(option("50ms").as_deref(), Some("write --delay"));
        assert_eq!(option("10mbit").as_deref(), Some("write --rate "));
        assert_eq!(option("1%").as_deref(), Some("write --loss "));
        assert_eq!(option("ping"), None);
    }
}
