//! The sender's side: chunks read from its files.

use crate::hash::{hash, root};
use crate::recent::Recent;
use crate::scan::{mtime, open};
use crate::stream::{Piece, Stream};
use crate::{Entry, Halt, Kind, Manifest, TransferError};
use std::fs::{File, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The files that a manifest was scanned from. At most 16 are open.
#[derive(Debug)]
pub struct Source {
    manifest: Manifest,
    /// The path of each entry at the top, behind its number.
    tops: Vec<(u32, PathBuf)>,
    stream: Option<(u32, Stream)>,
    recent: Recent,
    halt: Halt,
}

impl Source {
    pub(crate) fn new(manifest: Manifest, tops: Vec<(u32, PathBuf)>) -> Source {
        Source { manifest, tops, stream: None, recent: Recent::default(), halt: Halt::default() }
    }

    /// The files of a transfer as they stand beneath `directory` under their final names.
    pub(crate) fn standing(directory: &Path, manifest: &Manifest) -> Source {
        let tops = (0..).zip(manifest.list()).filter(|(_, entry)| entry.parent.is_none());
        let place = |name: &[u8]| directory.join(std::ffi::OsStr::from_bytes(name));
        let tops = tops.map(|(number, entry)| (number, place(&entry.name))).collect();
        Source::new(manifest.clone(), tops)
    }

    /// What takes long, as [`Source::unchanged`], ends with [`TransferError::Stopped`] when `halt` says so.
    pub fn heed(&mut self, halt: &Halt) {
        self.halt = halt.clone();
    }

    /// Reads everything. Returns the hash of the whole, BLAKE3 over the hashes of its chunks of `chunk` bytes.
    ///
    /// # Errors
    /// The first file, link or directory that is not as the manifest has it (kind, size, time of change, target) or cannot be
    /// read; chunks of no bytes; a [halt](Source::heed).
    pub(crate) fn root(&mut self, chunk: u32) -> Result<[u8; 32], TransferError> {
        if chunk == 0 {
            return Err(TransferError::NoChunk);
        }
        self.unchanged()?;
        for (number, entry) in (0..).zip(self.manifest.list()) {
            let path = self.path(number);
            let is_same = match &entry.kind {
                Kind::Directory => path.symlink_metadata().is_ok_and(|found| found.is_dir()),
                Kind::Link { target } => {
                    std::fs::read_link(&path).is_ok_and(|it| it.as_os_str().as_bytes() == target)
                }
                Kind::File { .. } => true,
            };
            if !is_same {
                return Err(TransferError::Changed(path));
            }
        }
        let (mut hashes, mut data) = (Vec::new(), Vec::new());
        for index in 0..self.manifest.stream_bytes().div_ceil(chunk.into()) {
            self.halt.check()?;
            hashes.push(self.read(index, chunk, &mut data)?);
        }
        Ok(root(hashes.into_iter()))
    }

    /// Reads chunk `index` of the stream, in chunks of `chunk` bytes, into `into`, which is cleared first. Returns its
    /// BLAKE3.
    ///
    /// # Errors
    /// A file that is shorter than it was, has changed (size or mtime) or cannot be read; a chunk beyond the last;
    /// chunks of no bytes.
    pub fn read(
        &mut self,
        index: u64,
        chunk: u32,
        into: &mut Vec<u8>,
    ) -> Result<[u8; 32], TransferError> {
        into.clear();
        self.append(index, chunk, into)
    }

    /// [`Source::read`] behind what `into` holds.
    ///
    /// # Errors
    /// As those of [`Source::read`].
    pub fn append(
        &mut self,
        index: u64,
        chunk: u32,
        into: &mut Vec<u8>,
    ) -> Result<[u8; 32], TransferError> {
        let before = into.len();
        let pieces = self.pieces(index, chunk)?;
        for piece in pieces {
            self.read_piece(&piece, into)?;
        }
        Ok(hash(&into[before..]))
    }

    fn pieces(&mut self, index: u64, chunk: u32) -> Result<Vec<Piece>, TransferError> {
        if chunk == 0 {
            return Err(TransferError::NoChunk);
        }
        if self.stream.as_ref().is_none_or(|&(cut, _)| cut != chunk) {
            self.stream = Some((chunk, Stream::of(&self.manifest, chunk)));
        }
        let (_, stream) = self.stream.as_ref().expect("it was just made");
        let chunks = stream.chunks();
        match index < chunks {
            true => Ok(stream.pieces(index).collect()),
            false => Err(TransferError::Beyond { index, chunks }),
        }
    }

    fn read_piece(&mut self, piece: &Piece, into: &mut Vec<u8>) -> Result<(), TransferError> {
        let path = self.path(piece.entry);
        let cannot = |error| TransferError::at("read", &path, error);
        let file = self.recent.get(piece.entry, || open(&path))?;
        let before = into.len();
        into.resize(before + piece.length as usize, 0);
        let read = fill(file, &mut into[before..], piece.start);
        // The file is looked at after its data were read, so that a change before that is seen.
        let found = file.metadata().map_err(cannot)?;
        let entry = &self.manifest.list()[piece.entry as usize];
        check(entry, &found, &path)?;
        let read = read.map_err(cannot)? as u64;
        if read < piece.length {
            // Its length is none that its data have, as in /sys.
            let (was, now) = (found.len(), piece.start + read);
            return Err(TransferError::Shorter { path, was, now });
        }
        if is_last(entry, piece) {
            self.recent.close(piece.entry);
        }
        Ok(())
    }

    /// Checks, at the end, that no file and no symbolic link changed since the scan.
    ///
    /// # Errors
    /// The first that is shorter, has changed or cannot be read; a [halt](Source::heed).
    pub fn unchanged(&mut self) -> Result<(), TransferError> {
        for (number, entry) in (0..).zip(self.manifest.list()) {
            self.halt.check()?;
            if entry.kind == Kind::Directory {
                continue;
            }
            let path = self.path(number);
            let found = path.symlink_metadata();
            let found = found.map_err(|error| TransferError::at("read", &path, error))?;
            check(entry, &found, &path)?;
        }
        Ok(())
    }

    /// Returns the path of an entry on this machine.
    fn path(&self, mut number: u32) -> PathBuf {
        let entries = self.manifest.list();
        let mut names = Vec::new();
        while let Some(parent) = entries[number as usize].parent {
            names.push(&entries[number as usize].name);
            number = parent;
        }
        let top = self.tops.partition_point(|&(first, _)| first < number);
        let mut path = self.tops[top].1.clone();
        path.extend(names.iter().rev().map(|name| std::ffi::OsStr::from_bytes(name)));
        path
    }
}

/// Reads data from this place on until they fill all of `into` or end. Returns their bytes.
fn fill(file: &File, into: &mut [u8], start: u64) -> io::Result<usize> {
    let mut read = 0;
    while read < into.len() {
        match file.read_at(&mut into[read..], start + read as u64) {
            Ok(0) => break,
            Ok(count) => read += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(read)
}

/// Whether the piece ends the file's data.
fn is_last(entry: &Entry, piece: &Piece) -> bool {
    let last = entry.extents().last();
    last.is_some_and(|last| piece.start + piece.length == last.start + last.length)
}

/// Compares what is found with what was scanned.
fn check(entry: &Entry, found: &Metadata, path: &Path) -> Result<(), TransferError> {
    let changed = || Err(TransferError::Changed(path.into()));
    match &entry.kind {
        Kind::File { size, .. } => {
            if !found.is_file() {
                return changed();
            }
            if found.len() < *size {
                let (path, was, now) = (path.into(), *size, found.len());
                return Err(TransferError::Shorter { path, was, now });
            }
            if found.len() != *size || mtime(found) != entry.mtime {
                return changed();
            }
        }
        Kind::Link { .. } if !found.is_symlink() || mtime(found) != entry.mtime => {
            return changed();
        }
        _ => {}
    }
    Ok(())
}
