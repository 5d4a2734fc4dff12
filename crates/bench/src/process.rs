//! Processes that a measurement starts and ends.

use anyhow::{Context, Result, bail, ensure};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// A process that ends with its owner.
pub struct Owned(pub Child);

impl Drop for Owned {
    fn drop(&mut self) {
        // Both fail only if it has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts it; what it says of errors is kept for [`finish`].
pub fn start(mut command: Command) -> Result<Owned> {
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    let name = command.get_program().to_owned();
    let child = command.spawn().with_context(|| format!("cannot start {}", name.display()))?;
    Ok(Owned(child))
}

/// Waits for its end, which has to be a good one.
pub fn finish(mut child: Owned, who: &str) -> Result<()> {
    let status = child.0.wait()?;
    if !status.success() {
        let said = child.0.stderr.take().map(std::io::read_to_string).transpose()?;
        bail!("{who} failed ({status}): {}", said.unwrap_or_default().trim());
    }
    Ok(())
}

/// The command `trunkline` of this build.
pub fn ours() -> Result<PathBuf> {
    let path = std::env::current_exe()?.with_file_name("trunkline");
    ensure!(path.exists(), "{} is not there: cargo build --release -p trunkline", path.display());
    Ok(path)
}
