//! The end of a transfer: from data that are whole to their final names.
//!
//! First all parts are made and brought to the disk, and the journal says so. From then on a part that is not there
//! has its final name already, so that a receiver that was killed goes on where it was.

use super::dress::{dress, ours, set_mode, set_time};
use super::home::{Home, look};
use super::parts::Parts;
use super::walk::Walk;
use super::{Known, Sink};
use crate::journal::Record;
use crate::{Entry, Kind, Manifest, TransferError};
use rustix::fs::{
    AtFlags, Mode, RenameFlags, chmodat, fstat, linkat, mkdirat, renameat, renameat_with, statat,
    unlinkat,
};
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

/// Most parts that are brought to the disk one by one; beyond, the whole file system is.
const MOST_ALONE: usize = 64;

/// The amount that a finished transfer brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Finished {
    /// Directories, files and links.
    pub entries: u64,
    /// Regular files.
    pub files: u64,
    /// Bytes of data, holes left out.
    pub bytes: u64,
    /// Files and directories of another user, which were there and have kept their mode and time.
    pub kept: u64,
}

impl Finished {
    /// All of a manifest.
    pub(super) fn of(manifest: &Manifest, kept: u64) -> Finished {
        let (entries, files) = (manifest.entries() as u64, manifest.files() as u64);
        Finished { entries, files, bytes: manifest.stream_bytes(), kept }
    }
}

/// Asked before each step whether to go on.
type Halt<'a> = &'a mut dyn FnMut() -> Result<(), TransferError>;

impl Sink {
    /// Ends the transfer: with all data there and `root` that of the sender, brings the data to the disk, gives every
    /// file its mode, time and name, then the links, then the directories, and removes the journal. A name appears at
    /// once and only when its file is whole. If the receiver is killed meanwhile, opening and finishing again complete
    /// it. `progress(done, all)` counts entries.
    ///
    /// # Errors
    /// Chunks that are missing, or were lost when the machine stopped or somebody deleted them, and are missing now; another root; names that
    /// were taken meanwhile; whatever the system refuses; a [halt](Sink::heed). All data are kept then.
    pub fn finish(
        &mut self,
        root: &[u8; 32],
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Finished, TransferError> {
        let halt = self.halt.clone();
        self.finish_with(root, progress, &mut || halt.check())
    }

    /// [`Sink::finish`] with a question before each step.
    pub(super) fn finish_with(
        &mut self,
        root: &[u8; 32],
        progress: &mut dyn FnMut(u64, u64),
        halt: Halt<'_>,
    ) -> Result<Finished, TransferError> {
        if self.is_over {
            return Err(TransferError::Finished);
        }
        self.known()?;
        match self.contents.finishing {
            None => self.home.check().and_then(|()| self.seal(root))?,
            Some(kept) if kept != *root => return Err(TransferError::Root),
            Some(_) => {}
        }
        let known = self.known()?;
        let kept = Names { home: &self.home, parts: &self.parts, known }.give(progress, halt)?;
        let finished = Finished::of(&known.manifest, kept);
        halt()?;
        self.home.remove()?;
        self.is_over = true;
        Ok(finished)
    }

    /// Judges the data, brings them to the disk and says so in the journal.
    fn seal(&mut self, root: &[u8; 32]) -> Result<(), TransferError> {
        let missing = self.missing().iter().map(|range| range.end - range.start).sum();
        if missing > 0 {
            return Err(TransferError::Incomplete(missing));
        }
        // A part that was deleted may be open still: it is not to take data once more.
        self.parts.close();
        let damaged = self.verify()?;
        if damaged > 0 {
            // Writing them again gives their parts their size.
            return Err(TransferError::Damaged(damaged));
        }
        let chunks = self.complete()?;
        if chunks > 0 {
            return Err(TransferError::Vanished { chunks, path: self.journal_path() });
        }
        if self.root() != Some(*root) {
            return Err(TransferError::Root);
        }
        let entries = self.known()?.manifest.list();
        let files = (0..).zip(entries).filter(|(_, entry)| matches!(entry.kind, Kind::File { .. }));
        let files: Vec<u32> = files.map(|(number, _)| number).collect();
        if files.len() <= MOST_ALONE {
            files.iter().try_for_each(|&number| self.parts.sync(number))?;
        }
        self.parts.sync_all(files.len() > MOST_ALONE)?;
        self.record(&Record::Finishing(*root))?;
        self.journal.sync()
    }

    /// Makes the parts of entries without data. Returns the number of chunks that are missing again because the part
    /// that held them is not there.
    fn complete(&mut self) -> Result<u64, TransferError> {
        let manifest = self.known()?.manifest.clone();
        let mut lost = 0;
        for (number, entry) in (0..).zip(manifest.list()) {
            if self.parts.complete(number, entry)? {
                continue;
            }
            for index in self.known()?.stream.chunks_of(number) {
                lost += u64::from(self.contents.confirmed.contains_key(&index));
                self.record(&Record::Lost(index))?;
            }
        }
        Ok(lost)
    }
}

/// The giving of names.
struct Names<'a> {
    home: &'a Home,
    parts: &'a Parts,
    known: &'a Known,
}

impl Names<'_> {
    /// Gives all of them. Answers how many directories of others have kept their mode and time.
    fn give(
        &self,
        progress: &mut dyn FnMut(u64, u64),
        halt: Halt<'_>,
    ) -> Result<u64, TransferError> {
        let all = self.known.manifest.entries() as u64;
        let mut done = 0;
        let mut step = |count: u64| {
            done += count;
            progress(done, all);
        };
        self.each(|kind| *kind == Kind::Directory, halt, &mut |walk, number| {
            self.make(walk, number)
        })?;
        self.each(|kind| matches!(kind, Kind::File { .. }), halt, &mut |walk, number| {
            self.place(walk, number).map(|()| step(1))
        })?;
        self.each(|kind| matches!(kind, Kind::Link { .. }), halt, &mut |walk, number| {
            self.place(walk, number).map(|()| step(1))
        })?;
        // What a directory holds has its own mode and time before, as the directory may forbid it then.
        let mut walk = Walk::new(self.home.top(), &self.known.manifest);
        let mut kept = 0;
        for (number, entry) in self.known.manifest.list().iter().enumerate().rev() {
            if entry.kind == Kind::Directory {
                halt()?;
                kept += u64::from(!dress(&mut walk, number as u32)?);
                step(1);
            }
        }
        Ok(kept)
    }

    /// Does something with each entry of a kind, in order.
    fn each(
        &self,
        is_meant: impl Fn(&Kind) -> bool,
        halt: Halt<'_>,
        work: &mut dyn FnMut(&mut Walk<'_>, u32) -> Result<(), TransferError>,
    ) -> Result<(), TransferError> {
        let mut walk = Walk::new(self.home.top(), &self.known.manifest);
        for (number, entry) in (0..).zip(self.known.manifest.list()) {
            if is_meant(&entry.kind) {
                halt()?;
                work(&mut walk, number)?;
            }
        }
        Ok(())
    }

    fn entry(&self, number: u32) -> &Entry {
        &self.known.manifest.list()[number as usize]
    }

    fn path(&self, number: u32) -> PathBuf {
        self.home.top().path().join(self.known.manifest.path(number as usize))
    }

    fn gone(&self, number: Option<u32>) -> TransferError {
        let directory = || self.home.top().path().to_path_buf();
        TransferError::Gone(number.map_or_else(directory, |number| self.path(number)))
    }

    /// Makes a directory that can be written, or makes one writable that is there.
    fn make(&self, walk: &mut Walk<'_>, number: u32) -> Result<(), TransferError> {
        let cannot = |error: Errno| TransferError::at("make", self.path(number), error);
        let entry = self.entry(number);
        let above = walk.above(entry)?.ok_or_else(|| self.gone(entry.parent))?;
        match mkdirat(above, &*entry.name, Mode::RWXU) {
            Ok(()) => return Ok(()),
            Err(Errno::EXIST) => {}
            Err(error) => return Err(cannot(error)),
        }
        let above = above
            .try_clone()
            .map_err(|error| TransferError::at("open", self.path(number), error))?;
        let own = walk.enter(&above, number)?.ok_or_else(|| self.gone(Some(number)))?;
        let mode = fstat(&own).map_err(cannot)?.st_mode & 0o7777;
        match mode & 0o700 {
            0o700 => Ok(()),
            _ => ours(&own, set_mode(&own, mode | 0o700)).map(|_| ()).map_err(cannot),
        }
    }

    /// Gives a file or a link its mode, time and name.
    fn place(&self, walk: &mut Walk<'_>, number: u32) -> Result<(), TransferError> {
        let cannot = |error: Errno| TransferError::at("make", self.path(number), error);
        let entry = self.entry(number);
        let above = walk.above(entry)?.ok_or_else(|| self.gone(entry.parent))?;
        let (parts, part) = (self.parts.directory(), number.to_string());
        if look(parts, &*part).map_err(cannot)?.is_none() {
            let is_named = look(above, &*entry.name).map_err(cannot)?.is_some();
            return is_named.then_some(()).ok_or_else(|| self.gone(Some(number)));
        }
        if matches!(entry.kind, Kind::File { .. }) {
            // The directory of parts is private to this user: nobody puts a link there.
            chmodat(parts, &*part, Mode::from_raw_mode(entry.mode), AtFlags::empty())
                .map_err(cannot)?;
        }
        set_time(parts, part.as_bytes(), entry.mtime).map_err(cannot)?;
        match rename(parts, &part, above, &entry.name, self.known.replace) {
            Ok(()) => Ok(()),
            Err(Errno::EXIST) => Err(TransferError::Exists(self.path(number))),
            Err(Errno::ISDIR | Errno::NOTDIR | Errno::NOTEMPTY) => {
                Err(TransferError::InTheWay(self.path(number)))
            }
            Err(error) => Err(cannot(error)),
        }
    }
}

/// Gives a part its name, at once.
fn rename(
    parts: &OwnedFd,
    part: &str,
    above: &OwnedFd,
    name: &[u8],
    replace: bool,
) -> Result<(), Errno> {
    if replace {
        return renameat(parts, part, above, name);
    }
    match renameat_with(parts, part, above, name, RenameFlags::NOREPLACE) {
        // Some file systems know no renaming that spares what is there; a second name spares it as well.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
            match linkat(parts, part, above, name, AtFlags::empty()) {
                // A receiver was killed between the two names.
                Err(Errno::EXIST) if is_same(parts, part, above, name)? => {}
                linked => linked?,
            }
            unlinkat(parts, part, AtFlags::empty())
        }
        renamed => renamed,
    }
}

/// Whether two names stand for one file.
fn is_same(parts: &OwnedFd, part: &str, above: &OwnedFd, name: &[u8]) -> Result<bool, Errno> {
    let one = statat(parts, part, AtFlags::SYMLINK_NOFOLLOW)?;
    let other = statat(above, name, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok((one.st_dev, one.st_ino) == (other.st_dev, other.st_ino))
}
