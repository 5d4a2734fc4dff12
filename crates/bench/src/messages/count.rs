//! Instructions of a process, counted by callgrind: the same on a busy machine as on an idle one.

use anyhow::{Context, Result};
use std::path::Path;
use std::process::Command;

/// The command under which `program` is counted into `file`: all of it, or what happens within functions of a name.
pub fn counting(program: &Path, file: &Path, within: Option<&str>) -> Command {
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
    command.arg(format!("--log-file={}", file.display()));
    command.args(within.map(|name| format!("--toggle-collect={name}")));
    command.arg(program);
    command
}

/// The instructions in such a file.
pub fn counted(file: &Path) -> Result<u64> {
    counted_within(file)?.context("callgrind counted nothing")
}

/// The instructions in such a file; `None` if no function of the name was called, as one that the compiler has put into its
/// callers is not.
pub fn counted_within(file: &Path) -> Result<Option<u64>> {
    let told = std::fs::read_to_string(file)?;
    let count = told.lines().find_map(|line| line.split("Collected : ").nth(1));
    let count = count.context("callgrind said no count")?.trim().parse().ok();
    Ok(count.filter(|&count: &u64| count > 0))
}

/// Instructions of one more message, of `total(n)`, which counts a run with so many.
pub fn per_message(few: u32, total: impl Fn(u32) -> Result<u64>) -> Result<f64> {
    let (shorter, longer) = (total(few)?, total(2 * few)?);
    Ok(longer.saturating_sub(shorter) as f64 / f64::from(few))
}
