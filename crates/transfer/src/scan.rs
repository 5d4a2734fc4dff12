//! Reading what is to be sent.

use crate::manifest::Rules;
use crate::{Entry, Extent, Halt, Kind, Manifest, Mtime, Source, TransferError};
use rustix::fs::{OFlags, SeekFrom, seek};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata, OpenOptions};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Entries between two calls of `progress`.
const STEP: u64 = 256;
/// Rights and the sticky bit.
pub(crate) const MODES: u32 = 0o1777;

impl Manifest {
    /// Reads what is to be sent: files, symbolic links (as such) and directories with all that they hold. Each path's
    /// last name is an entry at the top. `progress(entries, bytes)` is called now and then and at the end; bytes are
    /// those of data, holes left out.
    ///
    /// # Errors
    /// No path, a path without a name, two of the same name; an entry that cannot be read, is a device, a socket or a
    /// FIFO, or fits in no manifest.
    pub fn scan(
        paths: &[PathBuf],
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<(Manifest, Source), TransferError> {
        Manifest::scan_heeding(&Halt::default(), paths, progress)
    }

    /// [`Manifest::scan`], which ends with [`TransferError::Stopped`] when `halt` says so. The source heeds it too.
    ///
    /// # Errors
    /// Those of [`Manifest::scan`], and a halt.
    pub fn scan_heeding(
        halt: &Halt,
        paths: &[PathBuf],
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<(Manifest, Source), TransferError> {
        let mut tops =
            paths.iter().map(|path| Ok((name_of(path)?, path))).collect::<Result<Vec<_>, _>>()?;
        tops.sort();
        if let Some(two) = tops.windows(2).find(|two| two[0].0 == two[1].0) {
            return Err(TransferError::SameName(two[0].0.clone().into()));
        }
        let (rules, entries) = (Rules::new(), Vec::new());
        let mut scan = Scan { halt, rules, entries, bytes: 0, progress };
        let mut places = Vec::new();
        for (name, path) in tops {
            places.push((scan.entries.len() as u32, path.clone()));
            scan.add(path, name)?;
        }
        (scan.progress)(scan.entries.len() as u64, scan.bytes);
        if scan.entries.is_empty() {
            return Err(TransferError::Nothing);
        }
        let manifest = Manifest::of(scan.entries);
        let mut source = Source::new(manifest.clone(), places);
        source.heed(halt);
        Ok((manifest, source))
    }
}

/// Returns the last name of a path; `.` and `..` are resolved for it.
fn name_of(path: &Path) -> Result<OsString, TransferError> {
    if let Some(name) = path.file_name() {
        return Ok(name.to_owned());
    }
    let whole = path.canonicalize().map_err(|error| TransferError::at("read", path, error))?;
    whole.file_name().map(OsStr::to_owned).ok_or_else(|| TransferError::NoName(path.into()))
}

struct Scan<'a> {
    halt: &'a Halt,
    rules: Rules,
    entries: Vec<Entry>,
    bytes: u64,
    progress: &'a mut dyn FnMut(u64, u64),
}

impl Scan<'_> {
    /// Adds what is at a path, and all that it holds.
    fn add(&mut self, path: &Path, name: OsString) -> Result<(), TransferError> {
        self.halt.check()?;
        let cannot = |error| TransferError::at("read", path, error);
        let found = path.symlink_metadata().map_err(cannot)?;
        if found.is_dir() {
            self.push(path, name, &found, Kind::Directory)?;
            for name in names_in(path)? {
                self.add(&path.join(&name), name)?;
            }
            self.rules.leave();
            return Ok(());
        }
        if found.is_symlink() {
            let target = path.read_link().map_err(cannot)?.into_os_string().into_vec();
            return self.push(path, name, &found, Kind::Link { target });
        }
        if !found.is_file() {
            return Err(TransferError::Special(path.into()));
        }
        let file = open(path)?;
        let found = file.metadata().map_err(cannot)?;
        if !found.is_file() {
            return Err(TransferError::Special(path.into()));
        }
        if found.size() == 0 && file.read_at(&mut [0], 0).map_err(cannot)? > 0 {
            let why = "it has data and a length of 0: copy it, and send the copy";
            return Err(TransferError::Unfit { path: path.into(), why });
        }
        let extents = extents(&file, found.size()).map_err(|error| cannot(error.into()))?;
        self.bytes += extents.iter().map(|extent| extent.length).sum::<u64>();
        self.push(path, name, &found, Kind::File { size: found.size(), extents })
    }

    fn push(
        &mut self,
        path: &Path,
        name: OsString,
        found: &Metadata,
        kind: Kind,
    ) -> Result<(), TransferError> {
        let (parent, mode, mtime) = (self.rules.parent(), found.mode() & MODES, mtime(found));
        let entry = Entry { parent, name: name.into_vec(), mode, mtime, kind };
        let added = self.rules.add(&mut self.entries, entry);
        added.map_err(|why| TransferError::Unfit { path: path.into(), why })?;
        let count = self.entries.len() as u64;
        if count.is_multiple_of(STEP) {
            (self.progress)(count, self.bytes);
        }
        Ok(())
    }
}

/// Returns the names in a directory, ascending octet by octet.
fn names_in(directory: &Path) -> Result<Vec<OsString>, TransferError> {
    let cannot = |error| TransferError::at("read", directory, error);
    let mut names = Vec::new();
    for entry in directory.read_dir().map_err(cannot)? {
        names.push(entry.map_err(cannot)?.file_name());
    }
    names.sort_by(|one, other| one.as_bytes().cmp(other.as_bytes()));
    Ok(names)
}

/// Opens a file for reading: no link is followed, and a FIFO is not waited for.
pub(crate) fn open(path: &Path) -> Result<File, TransferError> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
    let opened = OpenOptions::new().read(true).custom_flags(flags).open(path);
    opened.map_err(|error| TransferError::at("read", path, error))
}

/// Returns the time of the last change.
pub(crate) fn mtime(found: &Metadata) -> Mtime {
    Mtime { seconds: found.mtime(), nanos: found.mtime_nsec() as u32 }
}

/// Returns the data of a file of this size. A file system that knows no holes has data throughout.
fn extents(file: &File, size: u64) -> Result<Vec<Extent>, Errno> {
    let (mut extents, mut at) = (Vec::new(), 0);
    while at < size {
        let start = match seek(file, SeekFrom::Data(at)) {
            Ok(start) => start,
            Err(Errno::NXIO) => break,
            Err(Errno::INVAL | Errno::OPNOTSUPP) => at,
            Err(error) => return Err(error),
        };
        // The file may have grown since its size was asked for.
        if start >= size {
            break;
        }
        let end = match seek(file, SeekFrom::Hole(start)) {
            Ok(end) => end.min(size),
            Err(Errno::NXIO | Errno::INVAL | Errno::OPNOTSUPP) => size,
            Err(error) => return Err(error),
        };
        join(&mut extents, Extent { start, length: end - start });
        at = end;
    }
    Ok(extents)
}

/// Adds an extent; one that touches the last is part of it.
fn join(extents: &mut Vec<Extent>, next: Extent) {
    match extents.last_mut() {
        Some(last) if last.start + last.length >= next.start => last.length += next.length,
        _ if next.length > 0 => extents.push(next),
        _ => {}
    }
}
