//! Files that are open because they were used last.

use crate::TransferError;
use std::collections::VecDeque;
use std::fs::File;

/// Most files that one end keeps open.
const MOST: usize = 16;

/// Open files by the number of their entry, the one used last at the back.
#[derive(Debug, Default)]
pub(crate) struct Recent(VecDeque<(u32, File)>);

impl Recent {
    /// Returns the file of an entry, opened if it is not open; the one used longest ago is closed for it.
    pub fn get(
        &mut self,
        entry: u32,
        open: impl FnOnce() -> Result<File, TransferError>,
    ) -> Result<&File, TransferError> {
        let kept = self.0.iter().position(|&(number, _)| number == entry);
        let file = match kept.and_then(|place| self.0.remove(place)) {
            Some((_, file)) => file,
            None => open()?,
        };
        if self.0.len() == MOST {
            self.0.pop_front();
        }
        self.0.push_back((entry, file));
        Ok(&self.0.back().expect("one was just added").1)
    }

    /// Whether the file of an entry is open.
    pub fn has(&self, entry: u32) -> bool {
        self.0.iter().any(|&(number, _)| number == entry)
    }

    /// Closes the file of an entry.
    pub fn close(&mut self, entry: u32) {
        self.0.retain(|&(number, _)| number != entry);
    }

    /// Closes all files.
    pub fn close_all(&mut self) {
        self.0.clear();
    }
}
