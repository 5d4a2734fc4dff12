//! Notes of tests that could not be run.
//!
//! A test that needs a program or a right calls [`skipped`] when it is missing, and returns. The note goes to
//! standard error and, as one line, to the file that `TRUNKLINE_SKIP_LOG` names; `scripts/test.py` counts these
//! lines at its end. With `TRUNKLINE_NO_SKIP=1`, as in `.ci/run`, the test fails instead.
//! `tests/it/early_returns.rs` looks through the workspace for tests that return early without a note.

use std::ffi::OsString;
use std::fmt::Display;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The variable that names the file of notes. The file exists already, writable for every user that tests become.
pub const LOG: &str = "TRUNKLINE_SKIP_LOG";
/// The variable that forbids skipping, unless it is empty or 0.
pub const FORBID: &str = "TRUNKLINE_NO_SKIP";

/// Notes that the calling test, or a part of it, was not run.
///
/// # Panics
/// If skipping is forbidden, or the note cannot be written.
pub fn skipped(reason: impl Display) {
    let reason = one_line(&reason.to_string());
    let test = test_name();
    let forbidden = std::env::var(FORBID).is_ok_and(|value| !matches!(value.as_str(), "" | "0"));
    assert!(!forbidden, "{test} cannot be run, and {FORBID} forbids to skip it: {reason}");
    eprintln!("SKIPPED: {reason}");
    if let Some(log) = std::env::var_os(LOG).filter(|log| !log.is_empty()) {
        note(Path::new(&log), &reason, &test);
    }
}

/// Looks for programs on `PATH` and in the directories of administrators' programs. Notes the first that is missing.
pub fn installed(programs: &[&str]) -> bool {
    let missing = programs.iter().find(|program| !is_installed(program));
    if let Some(missing) = missing {
        skipped(format_args!("{missing} is not installed: scripts/needs.sh test"));
    }
    missing.is_none()
}

fn is_installed(program: &str) -> bool {
    let own = std::env::var_os("PATH").unwrap_or_default();
    let mut directories: Vec<PathBuf> = std::env::split_paths(&own).collect();
    directories.extend(["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from));
    directories.iter().any(|directory| directory.join(program).is_file())
}

/// One write, so that the lines of tests at work at the same time stay whole. The file is not created here: a
/// test that became another user may not do that everywhere.
fn note(log: &Path, reason: &str, test: &str) {
    let line = format!("{reason}\t{test}\n");
    let written = OpenOptions::new()
        .append(true)
        .open(log)
        .and_then(|mut file| file.write_all(line.as_bytes()));
    if let Err(error) = written {
        panic!("cannot note in {} that {test} was skipped: {error}", log.display());
    }
}

fn one_line(reason: &str) -> String {
    reason.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The program and, as the test harness names its threads, the test.
fn test_name() -> String {
    let program = std::env::current_exe().unwrap_or_default();
    let program = program.file_stem().map(OsString::from).unwrap_or_default();
    let program = program.to_string_lossy();
    // Cargo ends the names of test programs with a hash.
    let program = program.rsplit_once('-').map_or(&*program, |(name, _)| name);
    format!("{program}::{}", std::thread::current().name().unwrap_or("?"))
}
