//! Data of files that are not whole yet.
//!
//! `parts/N` has the data of entry N. It is made when the first of them come, at its full size, so that what is never
//! written stays a hole.

use super::home::look;
use crate::recent::Recent;
use crate::stream::{Piece, Stream};
use crate::{Entry, Kind, Manifest, TransferError};
use rustix::fs::{FileType, Mode, OFlags, fstat, ftruncate, mkdirat, openat, symlinkat};
use rustix::io::Errno;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

const DIRECTORY: &str = "parts";

/// The directory of the parts, and those that are open.
#[derive(Debug)]
pub(super) struct Parts {
    directory: OwnedFd,
    path: PathBuf,
    recent: Recent,
}

impl Parts {
    /// Opens or makes the directory of parts.
    pub fn open(own: &OwnedFd, path: &Path) -> Result<Parts, TransferError> {
        let path = path.join(DIRECTORY);
        let cannot = |error: Errno| TransferError::at("make", &path, error);
        match mkdirat(own, DIRECTORY, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(cannot(error)),
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let directory = openat(own, DIRECTORY, flags, Mode::empty()).map_err(cannot)?;
        Ok(Parts { directory, path, recent: Recent::default() })
    }

    /// Returns the directory.
    pub fn directory(&self) -> &OwnedFd {
        &self.directory
    }

    /// Returns the path of an entry's part.
    pub fn path(&self, entry: u32) -> PathBuf {
        self.path.join(entry.to_string())
    }

    /// Writes data at their place.
    pub fn write(
        &mut self,
        manifest: &Manifest,
        piece: &Piece,
        data: &[u8],
    ) -> Result<(), TransferError> {
        let listed = &manifest.list()[piece.entry as usize];
        let path = self.path(piece.entry);
        let cannot = |error| TransferError::at("write", &path, error);
        let file = self.recent.get(piece.entry, || {
            create(&self.directory, piece.entry, size(listed)).map_err(|error| cannot(error.into()))
        })?;
        let written = file.write_all_at(data, piece.start).map_err(cannot);
        // Small files are many, and written at once. Of a file with many holes the extents are not to be counted each time.
        if matches!(listed.extents(), [only] if only.length == piece.length) {
            self.recent.close(piece.entry);
        }
        written
    }

    /// Reads a chunk. Returns whether all its data are there.
    pub fn read(
        &self,
        stream: &Stream,
        index: u64,
        into: &mut Vec<u8>,
    ) -> Result<bool, TransferError> {
        into.clear();
        for piece in stream.pieces(index) {
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let name = piece.entry.to_string();
            let file = match openat(&self.directory, name, flags, Mode::empty()) {
                Ok(opened) => File::from(opened),
                Err(Errno::NOENT) => return Ok(false),
                Err(error) => return Err(TransferError::at("read", self.path(piece.entry), error)),
            };
            let before = into.len();
            into.resize(before + piece.length as usize, 0);
            match file.read_exact_at(&mut into[before..], piece.start) {
                Ok(()) => {}
                Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
                    return Ok(false);
                }
                Err(error) => return Err(TransferError::at("read", self.path(piece.entry), error)),
            }
        }
        Ok(true)
    }

    /// Makes the part of a link or of a file without data. Returns whether the part of any other entry is there at its
    /// full size.
    pub fn complete(&mut self, number: u32, entry: &Entry) -> Result<bool, TransferError> {
        let cannot = |error: Errno| TransferError::at("make", self.path(number), error);
        match &entry.kind {
            Kind::Directory => Ok(true),
            Kind::Link { target } => {
                match symlinkat(&**target, &self.directory, number.to_string()) {
                    Ok(()) | Err(Errno::EXIST) => Ok(true),
                    Err(error) => Err(cannot(error)),
                }
            }
            Kind::File { size, extents } if extents.is_empty() => {
                create(&self.directory, number, *size).map_err(cannot)?;
                Ok(true)
            }
            Kind::File { size, .. } => Ok(self.length(number)? == Some(*size)),
        }
    }

    /// Returns the bytes of the part of a file; `None` if it is not there.
    fn length(&self, number: u32) -> Result<Option<u64>, TransferError> {
        let found = look(&self.directory, number.to_string());
        let found = found.map_err(|error| TransferError::at("read", self.path(number), error))?;
        Ok(found.filter(|(kind, _)| *kind == FileType::RegularFile).map(|(_, size)| size))
    }

    /// Returns the bytes of a part that are there, if it is to be made or made longer before it is written; otherwise `None`.
    pub fn cut(&self, manifest: &Manifest, number: u32) -> Result<Option<u64>, TransferError> {
        if self.recent.has(number) {
            return Ok(None);
        }
        let length = self.length(number)?.unwrap_or_default();
        Ok((length < size(&manifest.list()[number as usize])).then_some(length))
    }

    /// Waits until the part of a file is on the disk.
    pub fn sync(&self, number: u32) -> Result<(), TransferError> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&self.directory, number.to_string(), flags, Mode::empty());
        let synced = file.and_then(rustix::fs::fsync);
        synced.map_err(|error| TransferError::at("write", self.path(number), error))
    }

    /// Waits until the directory of parts or, with `whole`, its whole file system is on the disk.
    pub fn sync_all(&self, whole: bool) -> Result<(), TransferError> {
        let synced = match whole {
            true => rustix::fs::syncfs(&self.directory),
            false => rustix::fs::fsync(&self.directory),
        };
        synced.map_err(|error| TransferError::at("write", &self.path, error))
    }

    /// Closes all parts.
    pub fn close(&mut self) {
        self.recent.close_all();
    }
}

fn size(entry: &Entry) -> u64 {
    match entry.kind {
        Kind::File { size, .. } => size,
        _ => 0,
    }
}

/// Opens or makes the part of an entry, at its full size.
fn create(directory: &OwnedFd, number: u32, size: u64) -> Result<File, Errno> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat(directory, number.to_string(), flags, Mode::RUSR | Mode::WUSR)?;
    if fstat(&file)?.st_size as u64 != size {
        ftruncate(&file, size)?;
    }
    Ok(File::from(file))
}
