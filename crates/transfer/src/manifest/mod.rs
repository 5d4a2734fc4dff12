//! Lists of what a transfer holds.

mod codec;
mod rules;

pub(crate) use rules::Rules;
pub use rules::{MOST_DEPTH, MOST_NAME, MOST_PATH};

use crate::hash::hash;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;

/// Time of the last change of an entry, since the Unix epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mtime {
    /// Whole seconds, negative before 1970.
    pub seconds: i64,
    /// Nanoseconds beyond, 0 to 999 999 999.
    pub nanos: u32,
}

/// Bytes of a file that are data, not a hole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// The first byte's place in the file.
    pub start: u64,
    /// Number of bytes, at least 1.
    pub length: u64,
}

/// The kind of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// A directory.
    Directory,
    /// A regular file.
    File {
        /// Bytes, holes included.
        size: u64,
        /// Data in order, with holes between.
        extents: Vec<Extent>,
    },
    /// A symbolic link.
    Link {
        /// The text of the link, 1 to 4095 octets.
        target: Vec<u8>,
    },
}

/// One directory, file or symbolic link of a manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The number of the directory that holds it; `None` at the top.
    pub parent: Option<u32>,
    /// The name in that directory.
    pub name: Vec<u8>,
    /// Rights and the sticky bit, 0 to 0o1777. Set-user-ID and set-group-ID are left out: the owner is not kept.
    pub mode: u32,
    /// Time of the last change.
    pub mtime: Mtime,
    /// Its kind.
    pub kind: Kind,
}

impl Entry {
    /// Returns the extents of its data; none unless it is a file.
    pub fn extents(&self) -> &[Extent] {
        match &self.kind {
            Kind::File { extents, .. } => extents,
            _ => &[],
        }
    }
}

/// The list of what is sent. Directories precede what they hold; names ascend within each directory. A copy
/// shares its entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    entries: Arc<Vec<Entry>>,
}

impl Manifest {
    /// Returns the manifest of these entries. They keep all [`Rules`].
    pub(crate) fn of(entries: Vec<Entry>) -> Manifest {
        Manifest { entries: Arc::new(entries) }
    }

    /// Returns the octets of the manifest: a version, then the entries in order.
    pub fn encode(&self) -> Vec<u8> {
        codec::encode(&self.entries)
    }

    /// Returns the manifest in these octets. What it takes is encoded to the same octets again. Memory is bounded by
    /// a small multiple of the octets.
    ///
    /// # Errors
    /// [`crate::TransferError::Manifest`] with the broken rule: a path that is absolute, has an empty component, `.`,
    /// `..` or NUL, lies beneath a link or a file, comes twice or out of order, is longer than [`MOST_PATH`]; extents
    /// outside their file; more bytes than 64 bits count.
    pub fn decode(octets: &[u8]) -> Result<Manifest, crate::TransferError> {
        codec::decode(octets).map(Manifest::of).map_err(crate::TransferError::Manifest)
    }

    /// Returns the transfer's identity: BLAKE3 of [`Manifest::encode`]. The same files, sizes and times are the same
    /// transfer.
    pub fn identity(&self) -> [u8; 32] {
        hash(&self.encode())
    }

    /// Returns the bytes of the stream: all data, holes left out.
    pub fn stream_bytes(&self) -> u64 {
        let extents = self.entries.iter().flat_map(Entry::extents);
        extents.map(|extent| extent.length).sum()
    }

    /// Returns the number of entries.
    pub fn entries(&self) -> usize {
        self.entries.len()
    }

    /// Returns the number of regular files.
    pub fn files(&self) -> usize {
        self.list().iter().filter(|entry| matches!(entry.kind, Kind::File { .. })).count()
    }

    /// Returns a name for people: the first one at the top, and how many follow there. Control characters are escaped.
    pub fn name(&self) -> String {
        let mut tops = self.entries.iter().filter(|entry| entry.parent.is_none());
        let Some(first) = tops.next() else { return "nothing".into() };
        let name = crate::error::shown(OsStr::from_bytes(&first.name).as_ref());
        match tops.count() {
            0 => name,
            more => format!("{name} and {more} more"),
        }
    }

    /// Returns the entries in order.
    pub fn list(&self) -> &[Entry] {
        &self.entries
    }

    /// Returns the path of an entry beneath the directory of the transfer.
    ///
    /// # Panics
    /// If there is no such entry.
    pub fn path(&self, index: usize) -> PathBuf {
        path_in(&self.entries, index)
    }
}

/// Returns the path of an entry of the list.
pub(crate) fn path_in(entries: &[Entry], index: usize) -> PathBuf {
    let mut names = vec![&entries[index].name];
    let mut parent = entries[index].parent;
    while let Some(above) = parent {
        names.push(&entries[above as usize].name);
        parent = entries[above as usize].parent;
    }
    names.iter().rev().map(|name| OsStr::from_bytes(name)).collect()
}
