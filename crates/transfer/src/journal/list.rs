//! Unfinished transfers of a directory.

use super::{Contents, FILE, PREFIX, directory_name, read};
use crate::sink::kept_manifest;
use crate::stream::Stream;
use crate::{Manifest, TransferError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// A transfer that was begun and has not ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unfinished {
    /// Its identity.
    pub identity: [u8; 32],
    /// Bytes of its chunks.
    pub chunk: u32,
    /// Its name for people; `None` before its manifest has come.
    pub name: Option<String>,
    /// Bytes of data that came.
    pub done: u64,
    /// Bytes of data in all; 0 before its manifest has come.
    pub all: u64,
    /// The directory that holds its journal and its data.
    pub path: PathBuf,
}

/// What a journal's directory holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listed {
    /// A transfer.
    Unfinished(Unfinished),
    /// No journal that can be read, in the directory of this path.
    Unreadable(PathBuf),
}

/// Returns what is unfinished beneath a directory, by name of the journals' directories.
///
/// # Errors
/// A directory that cannot be read.
pub fn list(directory: &Path) -> Result<Vec<Listed>, TransferError> {
    let cannot = |error| TransferError::at("read", directory, error);
    let mut names = Vec::new();
    for entry in directory.read_dir().map_err(cannot)? {
        let name = entry.map_err(cannot)?.file_name();
        names.extend(name.to_str().filter(|name| is_journals(name)).map(str::to_owned));
    }
    names.sort();
    let all = names.iter().filter_map(|name| {
        let path = directory.join(name);
        match look(&path) {
            Ok(Some(found)) => Some(Listed::Unfinished(found)),
            // A transfer that has ended meanwhile has taken its directory away.
            _ => path.is_dir().then_some(Listed::Unreadable(path)),
        }
    });
    Ok(all.collect())
}

/// Returns the unfinished transfer of this identity; `None` if there is none.
///
/// # Errors
/// A journal that cannot be read.
pub fn find(directory: &Path, identity: &[u8; 32]) -> Result<Option<Unfinished>, TransferError> {
    look(&directory.join(directory_name(identity)))
}

fn is_journals(name: &str) -> bool {
    let digits = name.strip_prefix(PREFIX);
    digits
        .is_some_and(|digits| digits.len() == 16 && digits.bytes().all(|it| it.is_ascii_hexdigit()))
}

/// Returns the transfer whose journal is in this directory; `None` without a journal that has begun.
fn look(path: &Path) -> Result<Option<Unfinished>, TransferError> {
    let Some(contents) = octets(&path.join(FILE))?.and_then(|octets| read(&octets)) else {
        return Ok(None);
    };
    let kept = octets(&path.join(crate::sink::MANIFEST))?;
    let manifest = kept.and_then(|kept| kept_manifest(&kept, &contents.header.identity));
    let manifest = manifest.map(|(manifest, _)| manifest);
    Ok(Some(shown(&contents, manifest.as_ref(), path)))
}

fn shown(contents: &Contents, manifest: Option<&Manifest>, path: &Path) -> Unfinished {
    let header = contents.header;
    let stream = manifest.map(|manifest| Stream::of(manifest, header.chunk));
    let length = |index: &u64| match &stream {
        Some(stream) => stream.length(*index),
        None => header.chunk.into(),
    };
    Unfinished {
        identity: header.identity,
        chunk: header.chunk,
        name: manifest.map(Manifest::name),
        done: contents.confirmed.keys().map(length).sum(),
        all: manifest.map_or(0, Manifest::stream_bytes),
        path: path.into(),
    }
}

fn octets(path: &Path) -> Result<Option<Vec<u8>>, TransferError> {
    match std::fs::read(path) {
        Ok(octets) => Ok(Some(octets)),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(error) => Err(TransferError::at("read", path, error)),
    }
}
