//! Journals of transfers that are under way.
//!
//! A transfer keeps everything in one directory beneath that of the receiver, [`PREFIX`] and the first 16 hexadecimal
//! digits of its identity: `journal`, `manifest`, `lock`, and `parts/N`, the data of entry N. The journal is a header
//! and records of equal length, appended after the data of a chunk were written.

mod list;
mod record;

pub use list::{Listed, Unfinished, find, list};
pub use record::{Confirmed, Contents, Header, RECORD, Record, read};

use crate::TransferError;
use rustix::fs::{Mode, OFlags, fdatasync, fsync, ftruncate, openat, renameat};
use rustix::io::Errno;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The beginning of the name of a transfer's own directory.
pub const PREFIX: &str = ".trunkline-";

/// The name of the journal in the transfer's own directory.
pub(crate) const FILE: &str = "journal";

/// Returns the name of the directory that a transfer keeps its journal in.
pub fn directory_name(identity: &[u8; 32]) -> String {
    let digits =
        identity[..8].iter().fold(String::new(), |digits, octet| format!("{digits}{octet:02x}"));
    format!("{PREFIX}{digits}")
}

/// Returns the identity of this run of the machine; `None` if the system does not tell.
pub(crate) fn boot() -> Option<[u8; 16]> {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let digits: String = text.trim().chars().filter(|&digit| digit != '-').collect();
    u128::from_str_radix(&digits, 16).ok().map(u128::to_be_bytes)
}

/// An open journal, and where its next record goes.
#[derive(Debug)]
pub(crate) struct Journal {
    file: File,
    path: PathBuf,
    identity: [u8; 32],
    end: u64,
}

impl Journal {
    /// Opens the journal in `home`, or makes one. Chunks that were confirmed before the machine stopped are in doubt.
    pub fn open(
        home: &OwnedFd,
        path: &Path,
        header: Header,
    ) -> Result<(Journal, Contents), TransferError> {
        let path = path.join(FILE);
        if let Some((file, octets)) = load(home, FILE, &path)?
            && let Some(contents) = read(&octets)
        {
            let end = contents.end as u64;
            let journal = Journal { file, path, identity: header.identity, end };
            return journal.take_up(contents, &header);
        }
        let file = store(home, FILE, &path, &header.encode())?;
        let journal = Journal { file, path, identity: header.identity, end: Header::LENGTH as u64 };
        Ok((journal, Contents::new(header)))
    }

    fn take_up(
        mut self,
        mut contents: Contents,
        header: &Header,
    ) -> Result<(Journal, Contents), TransferError> {
        let kept = contents.header;
        if kept.identity != header.identity {
            return Err(TransferError::Identity);
        }
        if kept.chunk != header.chunk {
            return Err(TransferError::OtherChunk { kept: kept.chunk, asked: header.chunk });
        }
        if contents.boot != header.boot || header.boot.is_none() {
            let record = Record::Boot(header.boot);
            self.append(&record)?;
            contents.apply(&record);
        }
        Ok((self, contents))
    }

    /// Appends a record. If that fails, the journal is as before.
    pub fn append(&mut self, record: &Record) -> Result<(), TransferError> {
        let octets = record.encode(&self.identity);
        if let Err(error) = self.file.write_all_at(&octets, self.end) {
            // What was written of the record fails its check in any case.
            let _ = ftruncate(&self.file, self.end);
            return Err(TransferError::at("write", &self.path, error));
        }
        self.end += octets.len() as u64;
        Ok(())
    }

    /// Waits until the records are on the disk.
    pub fn sync(&self) -> Result<(), TransferError> {
        fdatasync(&self.file).map_err(|error| TransferError::at("write", &self.path, error))
    }
}

/// Returns a file of the transfer's own directory, open for reading and writing, and its octets; `None` if there is
/// none.
pub(crate) fn load(
    home: &OwnedFd,
    name: &str,
    path: &Path,
) -> Result<Option<(File, Vec<u8>)>, TransferError> {
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = match openat(home, name, flags, Mode::empty()) {
        Ok(opened) => File::from(opened),
        Err(Errno::NOENT) => return Ok(None),
        Err(error) => return Err(TransferError::at("read", path, error)),
    };
    let mut octets = Vec::new();
    file.read_to_end(&mut octets).map_err(|error| TransferError::at("read", path, error))?;
    Ok(Some((file, octets)))
}

/// Writes a file of the transfer's own directory: it has its name when it is whole and on the disk.
pub(crate) fn store(
    home: &OwnedFd,
    name: &str,
    path: &Path,
    octets: &[u8],
) -> Result<File, TransferError> {
    let cannot = |error: std::io::Error| TransferError::at("write", path, error);
    let fresh = format!("{name}.new");
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = openat(home, &*fresh, flags, Mode::RUSR | Mode::WUSR);
    let file = File::from(opened.map_err(|error| cannot(error.into()))?);
    file.write_all_at(octets, 0).map_err(cannot)?;
    fsync(file.as_fd()).map_err(|error| cannot(error.into()))?;
    renameat(home, &*fresh, home, name).map_err(|error| cannot(error.into()))?;
    Ok(file)
}
