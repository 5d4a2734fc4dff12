//! Trees of files, made, looked at and transferred.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};
use trunkline_transfer::{Manifest, Sink, Source, TransferError, root};

/// What a tree has at one path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Node {
    Directory(u32),
    /// Size, data by place, mode.
    File(u64, Vec<(u64, Vec<u8>)>, u32),
    Link(Vec<u8>),
}

/// Makes a node, and sets its time unless it is a link.
pub fn make(path: &Path, node: &Node, seconds: u64) {
    match node {
        Node::Directory(_) => fs::create_dir(path).expect("a directory"),
        Node::File(size, data, mode) => {
            let file = File::create_new(path).expect("a file");
            file.set_len(*size).expect("a size");
            data.iter().for_each(|(at, data)| file.write_all_at(data, *at).expect("written"));
            file.set_permissions(fs::Permissions::from_mode(*mode)).expect("a mode");
            set_time(path, seconds);
        }
        Node::Link(target) => symlink(OsStr::from_bytes(target), path).expect("a link"),
    }
}

/// Sets the time of the last change, with nanoseconds.
pub fn set_time(path: &Path, seconds: u64) {
    let time = UNIX_EPOCH + Duration::new(seconds, 123_456_789);
    File::open(path).and_then(|file| file.set_modified(time)).expect("a time");
}

/// Gives a directory its mode and time, when what it holds is there.
pub fn dress(path: &Path, mode: u32, seconds: u64) {
    set_time(path, seconds);
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("a mode");
}

/// What a tree shows to those who look: mode, time, kind, data, and the places of holes.
#[derive(Debug, PartialEq, Eq)]
pub struct Seen {
    mode: u32,
    time: (i64, i64),
    kind: Shape,
}

#[derive(Debug, PartialEq, Eq)]
enum Shape {
    Directory,
    File { data: Vec<u8>, blocks: u64 },
    Link(PathBuf),
}

/// Returns what stands beneath a path, by relative path; journals are left out.
pub fn look(top: &Path) -> BTreeMap<PathBuf, Seen> {
    let mut seen = BTreeMap::new();
    let mut ahead = vec![PathBuf::new()];
    while let Some(next) = ahead.pop() {
        for entry in fs::read_dir(top.join(&next)).expect("a directory") {
            let path = next.join(entry.expect("an entry").file_name());
            if path.to_string_lossy().starts_with(".trunkline-") {
                continue;
            }
            let found = see(&top.join(&path));
            if found.kind == Shape::Directory {
                ahead.push(path.clone());
            }
            seen.insert(path, found);
        }
    }
    seen
}

fn see(path: &Path) -> Seen {
    let found = path.symlink_metadata().expect("it is there");
    let kind = if found.is_dir() {
        Shape::Directory
    } else if found.is_symlink() {
        Shape::Link(path.read_link().expect("a link"))
    } else {
        Shape::File { data: fs::read(path).expect("data"), blocks: found.blocks() }
    };
    let mode = if found.is_symlink() { 0 } else { found.mode() & 0o1777 };
    Seen { mode, time: (found.mtime(), found.mtime_nsec()), kind }
}

/// Returns what is to be sent.
pub fn scan(path: &Path) -> (Manifest, Source) {
    Manifest::scan(&[path.to_path_buf()], &mut |_, _| {}).expect("a manifest")
}

/// Returns a sink that knows the manifest.
pub fn sink(directory: &Path, manifest: &Manifest, chunk: u32) -> Sink {
    let mut sink = Sink::open(directory, manifest.identity(), chunk).expect("a sink");
    if sink.manifest().is_none() {
        sink.set_manifest(&manifest.encode(), false).expect("room and free names");
    }
    sink
}

/// Returns the sender's root.
pub fn root_of(source: &mut Source, chunks: u64, chunk: u32) -> [u8; 32] {
    let mut data = Vec::new();
    root((0..chunks).map(|index| source.read(index, chunk, &mut data).expect("a chunk")))
}

/// Writes chunks of the source.
pub fn copy(
    source: &mut Source,
    sink: &mut Sink,
    chunk: u32,
    chunks: impl IntoIterator<Item = u64>,
) -> Result<(), TransferError> {
    let mut data = Vec::new();
    for index in chunks {
        source.read(index, chunk, &mut data)?;
        sink.write(index, &data)?;
    }
    Ok(())
}
