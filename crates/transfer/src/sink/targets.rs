//! What stands at the final names, and the room for the data, before the first of them come.

use super::home::{Home, look};
use super::walk::Walk;
use crate::{Entry, Kind, Manifest, TransferError};
use rustix::fs::{
    Access, AtFlags, FileType, Mode, StatxFlags, accessat, fstat, fstatvfs, statat, statx,
};
use rustix::io::Errno;
use rustix::process::geteuid;
use rustix::thread::{CapabilitySet, capabilities};
use std::collections::BTreeSet;
use std::os::fd::OwnedFd;

/// Judges the final names, and the directories that are there already and are to take some.
///
/// # Errors
/// A file or a link that may not be replaced, or anything of another kind; a directory that takes no names.
pub(super) fn check(home: &Home, manifest: &Manifest, replace: bool) -> Result<(), TransferError> {
    let mut walk = Walk::new(home.top(), manifest);
    let mut judged = BTreeSet::new();
    for (number, entry) in manifest.list().iter().enumerate() {
        let path = || home.top().path().join(manifest.path(number));
        let Some(above) = walk.above(entry)? else { continue };
        let found = look(above, &*entry.name);
        let found = found.map_err(|error| TransferError::at("read", path(), error))?;
        if let Some((found, _)) = found {
            let is_directory = found == FileType::Directory;
            if is_directory != (entry.kind == Kind::Directory) {
                // A file where a directory goes, and the reverse, are never replaced.
                return Err(TransferError::InTheWay(path()));
            }
            if is_directory {
                continue;
            }
            if !replace {
                return Err(TransferError::Exists(path()));
            }
            may_replace(above, &entry.name)
                .map_err(|error| TransferError::at("replace", path(), error))?;
        }
        // The receiver's own directory takes that of the transfer, and so takes names.
        if let Some(parent) = entry.parent.filter(|&parent| judged.insert(parent)) {
            let place = || home.top().path().join(manifest.path(parent as usize));
            if !is_beside(home.own(), above) {
                return Err(TransferError::Elsewhere(place()));
            }
            takes_names(above).map_err(|error| TransferError::at("write in", place(), error))?;
        }
    }
    Ok(())
}

/// Judges whether a file or a link can be replaced: in a directory with the sticky bit only its owner and the directory's may do that.
fn may_replace(directory: &OwnedFd, name: &[u8]) -> Result<(), Errno> {
    let above = fstat(directory)?;
    if above.st_mode & Mode::SVTX.bits() == 0 {
        return Ok(());
    }
    let owners = [above.st_uid, statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?.st_uid];
    let is_free =
        || capabilities(None).is_ok_and(|it| it.effective.contains(CapabilitySet::FOWNER));
    match owners.contains(&geteuid().as_raw()) || is_free() {
        true => Ok(()),
        false => Err(Errno::PERM),
    }
}

/// Whether a directory is where the parts are, so that they can be renamed into it.
fn is_beside(parts: &OwnedFd, directory: &OwnedFd) -> bool {
    let place = |of: &OwnedFd| {
        let found = statx(of, "", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID).ok()?;
        Some((found.stx_dev_major, found.stx_dev_minor, found.stx_mnt_id))
    };
    place(parts) == place(directory)
}

/// Judges whether names can be given in a directory. One of this user's is made writable at the end, and before that is left as it is.
fn takes_names(directory: &OwnedFd) -> Result<(), Errno> {
    match accessat(directory, ".", Access::WRITE_OK | Access::EXEC_OK, AtFlags::empty()) {
        Err(Errno::ACCESS) if fstat(directory)?.st_uid == geteuid().as_raw() => Ok(()),
        judged => judged,
    }
}

/// Judges the room of the file system, with so many bytes of the stream there already.
///
/// # Errors
/// Fewer bytes or inodes than the transfer needs.
pub(super) fn check_room(home: &Home, manifest: &Manifest, here: u64) -> Result<(), TransferError> {
    let path = || home.top().path().to_path_buf();
    let room =
        fstatvfs(home.top().handle()).map_err(|error| TransferError::at("read", path(), error))?;
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
