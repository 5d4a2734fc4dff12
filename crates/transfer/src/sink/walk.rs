//! Directories of the transfer, opened one beneath the other and never through a symbolic link.

use super::home::Top;
use crate::{Entry, Manifest, TransferError};
use rustix::fs::{Mode, OFlags, openat};
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

/// The directories above the entry that was looked at last, open.
#[derive(Debug)]
pub(super) struct Walk<'a> {
    top: &'a Top,
    manifest: &'a Manifest,
    /// Each directory's number; `None` in place of one that is not there.
    open: Vec<(u32, Option<OwnedFd>)>,
}

impl<'a> Walk<'a> {
    pub fn new(top: &'a Top, manifest: &'a Manifest) -> Walk<'a> {
        Walk { top, manifest, open: Vec::new() }
    }

    /// Returns the directory that holds an entry; `None` if it is not there.
    pub fn above(&mut self, entry: &Entry) -> Result<Option<&OwnedFd>, TransferError> {
        let mut wanted = Vec::new();
        let mut parent = entry.parent;
        while let Some(number) = parent {
            wanted.push(number);
            parent = self.manifest.list()[number as usize].parent;
        }
        wanted.reverse();
        let same =
            self.open.iter().zip(&wanted).take_while(|(open, wanted)| open.0 == **wanted).count();
        self.open.truncate(same);
        for &number in &wanted[same..] {
            let opened = match self.last() {
                Some(above) => self.enter(above, number)?,
                None => None,
            };
            self.open.push((number, opened));
        }
        Ok(self.last())
    }

    fn last(&self) -> Option<&OwnedFd> {
        self.open.last().map_or(Some(self.top.handle()), |(_, open)| open.as_ref())
    }

    /// Returns a directory entry itself; `None` if it is not there.
    pub fn enter(&self, above: &OwnedFd, number: u32) -> Result<Option<OwnedFd>, TransferError> {
        let name = &*self.manifest.list()[number as usize].name;
        // A handle without rights opens directories that may not be read.
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match openat(above, name, flags, Mode::empty()) {
            Ok(opened) => Ok(Some(opened)),
            Err(Errno::NOENT) => Ok(None),
            Err(Errno::LOOP | Errno::NOTDIR) => Err(TransferError::InTheWay(self.path(number))),
            Err(error) => Err(TransferError::at("open", self.path(number), error)),
        }
    }

    /// Returns an entry.
    pub fn entry(&self, number: u32) -> &'a Entry {
        &self.manifest.list()[number as usize]
    }

    /// Returns the path of an entry.
    pub fn path(&self, number: u32) -> PathBuf {
        self.top.path().join(self.manifest.path(number as usize))
    }
}
