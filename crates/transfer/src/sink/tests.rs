//! Receivers that are killed while names are given, and machines that stop.

use super::Sink;
use crate::{Manifest, Source, TransferError, root};
use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use tempfile::tempdir;

const CHUNK: u32 = 1000;
const BOOT: Option<[u8; 16]> = Some([1; 16]);

/// Makes a tree with directories that may not be written, and returns its manifest, its source and its root.
fn sent(top: &Path) -> (Manifest, Source, [u8; 32]) {
    fs::create_dir_all(top.join("a/b")).unwrap();
    for (name, size) in [("a/b/one", 2500), ("a/two", 1), ("three", 1000), ("empty", 0)] {
        fs::write(top.join(name), name.repeat(size)).unwrap();
    }
    symlink("../three", top.join("a/link")).unwrap();
    fs::set_permissions(top.join("three"), Permissions::from_mode(0o400)).unwrap();
    for (name, mode) in [("a/b", 0o500), ("a", 0o500)] {
        fs::set_permissions(top.join(name), Permissions::from_mode(mode)).unwrap();
    }
    let (manifest, mut source) = Manifest::scan(&[top.into()], &mut |_, _| {}).unwrap();
    let (mut hashes, mut data) = (Vec::new(), Vec::new());
    for index in 0..manifest.stream_bytes().div_ceil(CHUNK.into()) {
        hashes.push(source.read(index, CHUNK, &mut data).unwrap());
    }
    (manifest, source, root(hashes.into_iter()))
}

/// Returns a sink, in a given run of the machine, that has what was missing.
fn filled(to: &Path, manifest: &Manifest, source: &mut Source, boot: Option<[u8; 16]>) -> Sink {
    let mut sink = Sink::open_in(to, manifest.identity(), CHUNK, boot).unwrap();
    if sink.manifest().is_none() {
        sink.set_manifest(&manifest.encode(), false).unwrap();
    }
    let mut data = Vec::new();
    for index in sink.missing().into_iter().flatten() {
        source.read(index, CHUNK, &mut data).unwrap();
        sink.write(index, &data).unwrap();
    }
    sink
}

/// Returns mode, time and content by path.
fn look(top: &Path, path: PathBuf, seen: &mut BTreeMap<PathBuf, (u32, i64, Vec<u8>)>) {
    let whole = top.join(&path);
    let found = whole.symlink_metadata().unwrap();
    let content = if found.is_dir() {
        for entry in whole.read_dir().unwrap() {
            look(top, path.join(entry.unwrap().file_name()), seen);
        }
        Vec::new()
    } else if found.is_symlink() {
        whole.read_link().unwrap().into_os_string().into_encoded_bytes()
    } else {
        fs::read(&whole).unwrap()
    };
    seen.insert(path, (found.mode(), found.mtime_nsec(), content));
}

fn seen(top: &Path) -> BTreeMap<PathBuf, (u32, i64, Vec<u8>)> {
    let mut seen = BTreeMap::new();
    look(top, "tree".into(), &mut seen);
    seen
}

#[test]
fn a_receiver_that_is_killed_while_names_are_given_completes_them() {
    let from = tempdir().unwrap();
    let (manifest, mut source, root) = sent(&from.path().join("tree"));
    // Steps: three directories made, four files, one link, three directories dressed, the journal removed.
    for killed in 0..12 {
        let to = tempdir().unwrap();
        let mut sink = filled(to.path(), &manifest, &mut source, BOOT);
        let mut steps = 0;
        let halted = sink.finish_with(&root, &mut |_, _| {}, &mut || {
            steps += 1;
            if steps > killed { Err(TransferError::NoManifest) } else { Ok(()) }
        });
        assert!(matches!(halted, Err(TransferError::NoManifest)), "step {killed}: {halted:?}");
        drop(sink);
        // The machine may have stopped as well: nothing is read again, as all was on the disk.
        let mut sink = Sink::open_in(to.path(), manifest.identity(), CHUNK, Some([2; 16])).unwrap();
        assert_eq!(sink.missing(), []);
        let mut told = Vec::new();
        let finished = sink.finish(&root, &mut |done, all| told.push((done, all)));
        let finished = finished.unwrap_or_else(|error| panic!("step {killed}: {error}"));
        assert_eq!((finished.entries, finished.files), (8, 4));
        assert_eq!(told.last(), Some(&(8, 8)));
        assert_eq!(seen(to.path()), seen(from.path()), "killed at step {killed}");
        assert_eq!(to.path().read_dir().unwrap().count(), 1, "the journal is gone");
    }
}

#[test]
fn a_file_that_vanishes_between_two_ends_is_told() {
    let (from, to) = (tempdir().unwrap(), tempdir().unwrap());
    let (manifest, mut source, root) = sent(&from.path().join("tree"));
    let mut sink = filled(to.path(), &manifest, &mut source, BOOT);
    let mut steps = 0;
    let halted = sink.finish_with(&root, &mut |_, _| {}, &mut || {
        steps += 1;
        if steps > 5 { Err(TransferError::NoManifest) } else { Ok(()) }
    });
    assert!(halted.is_err());
    drop(sink);
    fs::remove_file(to.path().join("tree/a/b/one")).unwrap();
    let mut sink = Sink::open_in(to.path(), manifest.identity(), CHUNK, BOOT).unwrap();
    let other = sink.finish(&[0; 32], &mut |_, _| {});
    assert!(matches!(other, Err(TransferError::Root)), "{other:?}");
    let gone = sink.finish(&root, &mut |_, _| {});
    assert!(
        matches!(&gone, Err(TransferError::Gone(path)) if path.ends_with("a/b/one")),
        "{gone:?}"
    );
}

#[test]
fn after_the_machine_stopped_chunks_are_read_again_at_the_end() {
    for cut in [false, true] {
        let (from, to) = (tempdir().unwrap(), tempdir().unwrap());
        let (manifest, mut source, root) = sent(&from.path().join("tree"));
        let sink = filled(to.path(), &manifest, &mut source, BOOT);
        let number =
            (0..manifest.entries()).find(|&it| manifest.path(it).ends_with("one")).unwrap();
        let part = sink.journal_path().join("parts").join(number.to_string());
        drop(sink);
        // What the disk had not got: octets 1500 on of the first file.
        let data = fs::read(&part).unwrap();
        let lost = if cut {
            data[..1500].to_vec()
        } else {
            [&data[..1500], &vec![0; data.len() - 1500]].concat()
        };
        fs::write(&part, lost).unwrap();

        let mut sink = Sink::open_in(to.path(), manifest.identity(), CHUNK, Some([2; 16])).unwrap();
        assert_eq!(sink.missing(), [], "nothing is read before the first byte");
        let damaged = sink.finish(&root, &mut |_, _| {});
        assert!(matches!(damaged, Err(TransferError::Damaged(_))), "{damaged:?}");
        assert_eq!(sink.missing()[0].start, 1, "the first chunk is good");
        drop(sink);
        let mut sink = filled(to.path(), &manifest, &mut source, Some([2; 16]));
        assert_eq!(sink.verify().unwrap(), 0, "what is good was noted");
        sink.finish(&root, &mut |_, _| {}).unwrap();
        assert_eq!(seen(to.path()), seen(from.path()));
    }
}

#[test]
fn in_the_same_run_of_the_machine_nothing_is_read_again() {
    let (from, to) = (tempdir().unwrap(), tempdir().unwrap());
    let (manifest, mut source, _) = sent(&from.path().join("tree"));
    let doubtful = |boot| {
        let sink = filled(to.path(), &manifest, &mut source, boot);
        sink.contents.confirmed.values().filter(|chunk| chunk.doubtful).count() as u64
    };
    let chunks = manifest.stream_bytes().div_ceil(CHUNK.into());
    assert_eq!([BOOT, BOOT, Some([2; 16]), None].map(doubtful), [0, 0, chunks, chunks]);
}
