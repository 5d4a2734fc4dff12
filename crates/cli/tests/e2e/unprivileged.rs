//! As somebody who is not root.

use crate::support::{Host, installed, is_forbidden, skipped};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

/// `nobody` on Debian and most others.
const NOBODY: &str = "65534";

/// A copy of the command that everybody may read; removed at the end.
struct Copy(tempfile::TempDir);

impl Copy {
    fn make() -> Copy {
        let directory = tempfile::Builder::new().prefix("tl-nobody-").tempdir().unwrap();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let program = directory.path().join("trunkline");
        fs::copy(env!("CARGO_BIN_EXE_trunkline"), &program).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        Copy(directory)
    }
}

#[test]
fn nobody_can_ping_over_a_path() {
    let host = Host::beside();
    if !rustix::process::geteuid().is_root() {
        return skipped("only root can become another user; the other tests ran as this one");
    }
    if !installed(&["setpriv", "ping"]) {
        return;
    }
    let copy = Copy::make();
    let mut command = Command::new("setpriv");
    command.args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", "--"]);
    command.arg(copy.0.path().join("trunkline")).args([
        "shell",
        "--delay",
        "50ms",
        "--best-effort",
        "--json",
    ]);
    command.args(["--", "ping", "-n", "-c", "3", "-i", "0.2", "{peer}"]);
    command.env_remove("XDG_RUNTIME_DIR").current_dir("/");
    let outcome = host.start_command(command).finish();
    host.assert_nothing_left(outcome.pid);
    let left = Path::new("/tmp/trunkline-65534").join(format!("{}.json", outcome.pid));
    assert!(!left.exists());
    if is_forbidden(&outcome.stderr) && !outcome.status.success() {
        return skipped(&outcome.stderr);
    }
    assert!(outcome.status.success(), "{outcome:#?}");
    assert!(outcome.stderr.contains("the world outside is reached by TCP"), "{outcome:#?}");
    let times = outcome.ping_times();
    assert!(times.len() == 3 && times.iter().all(|&time| time >= 100.0), "{outcome:#?}");
}

/// A directory that another user has made in the common place. Nobody may pass for the user whose name it bears.
struct Squatted(std::path::PathBuf);

impl Drop for Squatted {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_directory_of_somebody_elses_blocks_nobody() {
    /// A user that the machine has no other use for.
    const USER: &str = "54321";
    let host = Host::beside();
    if !rustix::process::geteuid().is_root() {
        return skipped("only root can become another user");
    }
    if !installed(&["setpriv"]) {
        return;
    }
    let copy = Copy::make();
    let home = copy.0.path().join("home");
    fs::create_dir(&home).unwrap();
    std::os::unix::fs::chown(&home, Some(54321), Some(54321)).unwrap();
    let squatted = Squatted(Path::new("/tmp").join(format!("trunkline-{USER}")));
    fs::create_dir(&squatted.0).unwrap();
    fs::set_permissions(&squatted.0, fs::Permissions::from_mode(0o777)).unwrap();
    let command = |arguments: &[&str]| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", USER, "--regid", USER, "--clear-groups", "--"]);
        command.arg(copy.0.path().join("trunkline")).args(arguments);
        command.env_remove("XDG_RUNTIME_DIR").env("HOME", &home).current_dir("/");
        command
    };
    let script = "echo ready >&2; exec sleep 30";
    let mut running = host.start_command(command(&[
        "shell",
        "--best-effort",
        "--delay",
        "7ms",
        "--",
        "sh",
        "-c",
        script,
    ]));
    if !running.await_line_or_end("ready") {
        let outcome = running.finish();
        assert!(is_forbidden(&outcome.stderr), "{outcome:#?}");
        return skipped(&outcome.stderr);
    }
    let pid = running.pid().to_string();
    let shown = host.start_command(command(&["show", "--pid", &pid])).finish();
    assert!(shown.status.success() && shown.stdout.contains("7ms"), "{shown:#?}");
    assert_eq!(fs::read_dir(&squatted.0).unwrap().count(), 0, "something was put into it");
    running.signal(rustix::process::Signal::TERM);
    let outcome = running.finish();
    host.assert_nothing_left(outcome.pid);
    let left = fs::read_dir(home.join(".cache/trunkline/run")).unwrap();
    let left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["lock"], "{outcome:#?}");
}
