//! What the disk has done.

use super::End;
use crate::desk::Done;

impl End {
    /// All that has been done since the last time. What has been written meanwhile waits no more, so that a batch is no sign of a slow disk.
    pub(super) fn done(&mut self) -> Vec<Done> {
        let done: Vec<Done> = std::iter::from_fn(|| self.desk.done()).collect();
        let is_emptied = |it: &&Done| matches!(it, Done::Emptied(_));
        self.writing -= done.iter().filter(is_emptied).count() as u64;
        done
    }

    /// A buffer has been written: another may come in its place.
    pub(super) fn emptied(&mut self, buffer: Vec<u8>) {
        if let Some(current) = &mut self.current {
            current.emptied(buffer, self.writing);
        }
    }
}
