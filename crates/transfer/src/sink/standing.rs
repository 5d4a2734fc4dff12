//! A transfer all of which stands under its final names already.

use super::Finished;
use super::dress::dress;
use super::home::Top;
use super::walk::Walk;
use crate::{Halt, Kind, Manifest, Source, TransferError};
use std::path::Path;

/// What stands beneath a directory under the names of a manifest.
#[derive(Debug)]
pub struct Standing {
    top: Top,
    manifest: Manifest,
    source: Source,
    halt: Halt,
}

impl Standing {
    /// Looks whether every file and link of the manifest stands beneath the directory with its size and time; `None` if not. No data
    /// are read. What takes long ends with [`TransferError::Stopped`] when `halt` says so.
    ///
    /// # Errors
    /// A directory that cannot be opened; a halt.
    pub fn find(
        directory: &Path,
        manifest: &Manifest,
        halt: &Halt,
    ) -> Result<Option<Standing>, TransferError> {
        let mut source = Source::standing(directory, manifest);
        source.heed(halt);
        if unless_stopped(source.unchanged())?.is_none() {
            return Ok(None);
        }
        let (top, manifest, halt) = (Top::open(directory)?, manifest.clone(), halt.clone());
        Ok(Some(Standing { top, manifest, source, halt }))
    }

    /// Reads everything. Returns the hash of the whole, BLAKE3 over the hashes of its chunks of `chunk` bytes; `None` if anything is
    /// not as the manifest has it or cannot be read.
    ///
    /// # Errors
    /// A halt.
    pub fn root(&mut self, chunk: u32) -> Result<Option<[u8; 32]>, TransferError> {
        unless_stopped(self.source.root(chunk))
    }

    /// Gives files and directories the modes of the manifest, and directories their times. Those of another user keep their own.
    ///
    /// # Errors
    /// What has gone or is of another kind by now; whatever the system refuses; a halt.
    pub fn dress(&self) -> Result<Finished, TransferError> {
        let mut walk = Walk::new(&self.top, &self.manifest);
        let mut kept = 0;
        // What a directory holds comes before it, as the directory may forbid it then.
        for (number, entry) in self.manifest.list().iter().enumerate().rev() {
            self.halt.check()?;
            if !matches!(entry.kind, Kind::Link { .. }) {
                kept += u64::from(!dress(&mut walk, number as u32)?);
            }
        }
        Ok(Finished::of(&self.manifest, kept))
    }
}

/// What was found, or `None` if it was not as it was to be.
fn unless_stopped<T>(found: Result<T, TransferError>) -> Result<Option<T>, TransferError> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(TransferError::Stopped) => Err(TransferError::Stopped),
        Err(_) => Ok(None),
    }
}
