//! What stands at the final names, and the room for the data, before the first of them come.

use super::home::{Home, look};
use super::walk::Walk;
use crate::{Entry, Kind, Manifest, TransferError};
use rustix::fs::{FileType, fstatvfs};

/// Judges the final names.
///
/// # Errors
/// A file or a link that may not be replaced, or anything of another kind.
pub(super) fn check(home: &Home, manifest: &Manifest, replace: bool) -> Result<(), TransferError> {
    let mut walk = Walk::new(home, manifest);
    for (number, entry) in manifest.list().iter().enumerate() {
        let path = || home.directory().join(manifest.path(number));
        let Some(above) = walk.above(entry)? else { continue };
        let found = look(above, &*entry.name);
        let Some((found, _)) = found.map_err(|error| TransferError::at("read", path(), error))?
        else {
            continue;
        };
        let is_directory = found == FileType::Directory;
        if is_directory != (entry.kind == Kind::Directory) {
            // A file where a directory goes, and the reverse, are never replaced.
            return Err(TransferError::InTheWay(path()));
        }
        if !is_directory && !replace {
            return Err(TransferError::Exists(path()));
        }
    }
    Ok(())
}

/// Judges the room of the file system, with so many bytes of the stream there already.
///
/// # Errors
/// Fewer bytes or inodes than the transfer needs.
pub(super) fn check_room(home: &Home, manifest: &Manifest, here: u64) -> Result<(), TransferError> {
    let path = || home.directory().to_path_buf();
    let room = fstatvfs(home.top()).map_err(|error| TransferError::at("read", path(), error))?;
    let block = room.f_frsize.max(1);
    let files = manifest.list().iter().map(|entry| blocks(entry, block));
    let needs = files.fold(0u64, u64::saturating_add).saturating_mul(block).saturating_sub(here);
    let has = room.f_bavail.saturating_mul(block);
    if needs > has {
        return Err(TransferError::NoRoom { path: path(), needs, has });
    }
    let (needs, has) = (manifest.entries() as u64, room.f_favail);
    // File systems that make inodes as they go say that they have none.
    match room.f_files > 0 && here == 0 && needs > has {
        true => Err(TransferError::NoInodes { path: path(), needs, has }),
        false => Ok(()),
    }
}

/// Returns the blocks that an entry's data take.
fn blocks(entry: &Entry, block: u64) -> u64 {
    let extents = entry.extents().iter();
    extents.map(|extent| extent.length.div_ceil(block)).fold(0, u64::saturating_add)
}
