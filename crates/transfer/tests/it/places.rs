//! Final names: what stands there, and links that somebody plants.

use crate::tree::{Node, copy, look, make, root_of, scan, sink};
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use tempfile::{TempDir, tempdir};
use trunkline_transfer::{Manifest, Sink, Source, TransferError};

const CHUNK: u32 = 1000;

/// Returns a tree `top` with a directory, a file in it, and a link.
fn tree() -> (TempDir, PathBuf) {
    let from = tempdir().unwrap();
    let top = from.path().join("top");
    make(&top, &Node::Directory(0o755), 0);
    make(&top.join("in"), &Node::Directory(0o755), 0);
    make(&top.join("in/file"), &Node::File(2500, vec![(0, vec![7; 2500])], 0o640), 1_000_000_000);
    make(&top.join("link"), &Node::Link(b"in/file".to_vec()), 0);
    (from, top)
}

fn set(to: &Path, manifest: &Manifest, replace: bool) -> Result<Sink, TransferError> {
    let mut sink = Sink::open(to, manifest.identity(), CHUNK)?;
    sink.set_manifest(&manifest.encode(), replace)?;
    Ok(sink)
}

fn end(mut receiver: Sink, source: &mut Source) -> Result<(), TransferError> {
    copy(source, &mut receiver, CHUNK, 0..3)?;
    let root = root_of(source, 3, CHUNK);
    receiver.finish(&root, &mut |_, _| {}).map(|_| ())
}

#[test]
fn a_name_that_is_taken_is_refused_or_replaced() {
    let (from, top) = tree();
    let (manifest, mut source) = scan(&top);
    for taken in ["file", "link"] {
        let to = tempdir().unwrap();
        let path = to.path().join("top").join(if taken == "file" { "in/file" } else { "link" });
        fs::create_dir_all(to.path().join("top/in")).unwrap();
        fs::write(&path, "old").unwrap();
        fs::write(to.path().join("top/other"), "kept").unwrap();
        let refused = set(to.path(), &manifest, false);
        assert!(matches!(&refused, Err(TransferError::Exists(it)) if *it == path), "{refused:?}");
        let receiver = set(to.path(), &manifest, true).expect("it may be replaced");
        assert_eq!(fs::read(&path).unwrap(), b"old", "not before the end");
        end(receiver, &mut source).expect("an end");
        assert_eq!(fs::read(to.path().join("top/other")).unwrap(), b"kept");
        fs::remove_file(to.path().join("top/other")).unwrap();
        let restored = top.symlink_metadata().unwrap().modified().unwrap();
        fs::File::open(to.path().join("top")).unwrap().set_modified(restored).unwrap();
        assert_eq!(look(to.path()), look(from.path()));
    }
}

/// What is made in a directory with the bit inherits it, and a directory that is there keeps it.
#[test]
fn the_receivers_set_group_id_bit_stays() {
    let (_from, top) = tree();
    let (manifest, mut source) = scan(&top);
    let to = tempdir().unwrap();
    let paths = ["top", "top/in"].map(|it| to.path().join(it));
    fs::set_permissions(to.path(), Permissions::from_mode(0o2775)).unwrap();
    for before in ["none is there", "all are there"] {
        let receiver = set(to.path(), &manifest, true).expect("it may be replaced");
        end(receiver, &mut source).expect("an end");
        for path in &paths {
            let mode = path.metadata().unwrap().mode() & 0o7777;
            assert_eq!(mode, 0o2755, "{before}: {}", path.display());
            fs::set_permissions(path, Permissions::from_mode(0o2775)).unwrap();
        }
    }
}

#[test]
fn whether_names_may_be_replaced_is_kept() {
    let (_from, top) = tree();
    let (manifest, mut source) = scan(&top);
    let to = tempdir().unwrap();
    fs::create_dir_all(to.path().join("top/in")).unwrap();
    fs::write(to.path().join("top/in/file"), "old").unwrap();
    drop(set(to.path(), &manifest, true).expect("it may be replaced"));
    end(sink(to.path(), &manifest, CHUNK), &mut source).expect("an end");
    assert_eq!(fs::read(to.path().join("top/in/file")).unwrap(), [7; 2500]);
}

#[test]
fn another_kind_is_never_replaced() {
    let (_from, top) = tree();
    let (manifest, _) = scan(&top);
    let to = tempdir().unwrap();
    fs::create_dir_all(to.path().join("top/in/file")).unwrap();
    let refused = set(to.path(), &manifest, true);
    assert!(matches!(refused, Err(TransferError::InTheWay(_))), "{refused:?}");
    let to = tempdir().unwrap();
    fs::write(to.path().join("top"), "a file").unwrap();
    let refused = set(to.path(), &manifest, true);
    assert!(matches!(refused, Err(TransferError::InTheWay(_))), "{refused:?}");
}

#[test]
fn a_name_that_is_taken_meanwhile_is_spared() {
    let (from, top) = tree();
    let (manifest, mut source) = scan(&top);
    let to = tempdir().unwrap();
    let receiver = set(to.path(), &manifest, false).expect("free names");
    fs::create_dir_all(to.path().join("top/in")).unwrap();
    fs::write(to.path().join("top/in/file"), "mine").unwrap();
    let refused = end(receiver, &mut source);
    assert!(matches!(refused, Err(TransferError::Exists(_))), "{refused:?}");
    assert_eq!(fs::read(to.path().join("top/in/file")).unwrap(), b"mine");
    fs::remove_file(to.path().join("top/in/file")).unwrap();
    end(sink(to.path(), &manifest, CHUNK), &mut source).expect("the name is free again");
    assert_eq!(look(to.path()), look(from.path()));
}

#[test]
fn a_planted_link_leads_nowhere() {
    let (_from, top) = tree();
    let (manifest, mut source) = scan(&top);
    let (to, outside) = (tempdir().unwrap(), tempdir().unwrap());
    let receiver = set(to.path(), &manifest, true).expect("free names");
    fs::create_dir(to.path().join("top")).unwrap();
    symlink(outside.path(), to.path().join("top/in")).unwrap();
    let refused = set(tempdir().unwrap().path(), &manifest, true);
    assert!(refused.is_ok(), "elsewhere it is free");
    let (refused, planted) = (end(receiver, &mut source), to.path().join("top/in"));
    assert!(matches!(&refused, Err(TransferError::InTheWay(it)) if *it == planted), "{refused:?}");
    assert_eq!(outside.path().read_dir().unwrap().count(), 0);
    let again = Sink::open(to.path(), manifest.identity(), CHUNK).expect("the transfer is kept");
    assert_eq!(again.missing(), []);
    drop(again);

    // A link at a file's own name is replaced, not followed.
    fs::remove_file(to.path().join("top/in")).unwrap();
    fs::create_dir(to.path().join("top/in")).unwrap();
    fs::write(outside.path().join("victim"), "unharmed").unwrap();
    symlink(outside.path().join("victim"), to.path().join("top/in/file")).unwrap();
    end(sink(to.path(), &manifest, CHUNK), &mut source).expect("an end");
    assert_eq!(fs::read(outside.path().join("victim")).unwrap(), b"unharmed");
    assert!(to.path().join("top/in/file").symlink_metadata().unwrap().is_file());
}

#[test]
fn a_planted_journal_is_refused() {
    let (_from, top) = tree();
    let (manifest, _) = scan(&top);
    let (to, outside) = (tempdir().unwrap(), tempdir().unwrap());
    let name = trunkline_transfer::journal::directory_name(&manifest.identity());
    symlink(outside.path(), to.path().join(&name)).unwrap();
    let refused = Sink::open(to.path(), manifest.identity(), CHUNK);
    assert!(matches!(refused, Err(TransferError::NotOurs(_))), "{refused:?}");
    assert_eq!(outside.path().read_dir().unwrap().count(), 0);
}
