//! Receivers that come and go.

use crate::tree::{Node, copy, look, make, root_of, scan, sink};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use tempfile::tempdir;
use trunkline_transfer::journal::{self, Listed};
use trunkline_transfer::{Sink, TransferError};

const CHUNK: u32 = 1000;

#[test]
fn a_second_receiver_is_refused_until_the_first_has_ended() {
    let to = tempdir().unwrap();
    let first = Sink::open(to.path(), [1; 32], CHUNK).unwrap();
    let second = Sink::open(to.path(), [1; 32], CHUNK);
    assert!(matches!(second, Err(TransferError::Busy(_))), "{second:?}");
    Sink::open(to.path(), [2; 32], CHUNK).expect("another transfer");
    drop(first);
    Sink::open(to.path(), [1; 32], CHUNK).expect("the first has ended");
}

#[test]
fn chunks_keep_their_size() {
    let to = tempdir().unwrap();
    drop(Sink::open(to.path(), [1; 32], CHUNK).unwrap());
    let other = Sink::open(to.path(), [1; 32], 2000).expect_err("another size");
    assert!(matches!(other, TransferError::OtherChunk { kept: 1000, asked: 2000 }), "{other:?}");
    let found = journal::find(to.path(), &[1; 32]).unwrap().expect("it was begun");
    assert_eq!((found.chunk, found.name, found.all), (1000, None, 0));
    assert_eq!(journal::find(to.path(), &[2; 32]).unwrap(), None);
}

#[test]
fn unfinished_transfers_are_listed_with_their_share() {
    let (from, to) = (tempdir().unwrap(), tempdir().unwrap());
    for (name, size) in [("a", 2500u64), ("b", 4000)] {
        let node = Node::File(size, vec![(0, vec![1; size as usize])], 0o600);
        make(&from.path().join(name), &node, 1_000_000_000);
        let (manifest, mut source) = scan(&from.path().join(name));
        let mut receiver = sink(to.path(), &manifest, CHUNK);
        copy(&mut source, &mut receiver, CHUNK, 1..3).unwrap();
    }
    // One without a journal, one with something else in its place.
    let torn = ["0123456789abcdef", "1123456789abcdef"];
    let torn = torn.map(|digits| to.path().join(format!(".trunkline-{digits}")));
    torn.iter().for_each(|path| fs::create_dir(path).unwrap());
    fs::write(torn[1].join("journal"), "garbage").unwrap();
    fs::write(to.path().join("a.txt"), "no journal").unwrap();
    let (mut listed, mut unreadable) = (Vec::new(), Vec::new());
    for one in journal::list(to.path()).expect("a list") {
        match one {
            Listed::Unfinished(one) => listed.push(one),
            Listed::Unreadable(path) => unreadable.push(path),
        }
    }
    listed.sort_by_key(|it| it.all);
    let shares: Vec<_> = listed.iter().map(|it| (it.name.as_deref(), it.done, it.all)).collect();
    assert_eq!(shares, [(Some("a"), 1500, 2500), (Some("b"), 2000, 4000)]);
    assert_eq!(unreadable, torn);
}

#[test]
fn a_torn_record_costs_its_chunk_alone() {
    let (from, to) = (tempdir().unwrap(), tempdir().unwrap());
    let path = from.path().join("file");
    make(&path, &Node::File(5000, vec![(0, vec![1; 5000])], 0o600), 1_000_000_000);
    let (manifest, mut source) = scan(&path);
    let mut receiver = sink(to.path(), &manifest, CHUNK);
    copy(&mut source, &mut receiver, CHUNK, 0..3).unwrap();
    let journal = receiver.journal_path().join("journal");
    drop(receiver);
    let whole = fs::metadata(&journal).unwrap().len();
    for lost in 1..48 {
        let before = fs::read(&journal).unwrap();
        File::options().write(true).open(&journal).unwrap().set_len(whole - lost).unwrap();
        let mut receiver = sink(to.path(), &manifest, CHUNK);
        assert_eq!(receiver.missing(), [2..5], "{lost} octets lost");
        copy(&mut source, &mut receiver, CHUNK, [2]).unwrap();
        assert_eq!(receiver.missing(), [3..5]);
        drop(receiver);
        assert_eq!(fs::read(&journal).unwrap(), before);
    }
}

#[test]
fn chunks_that_differ_are_forgotten_and_come_again() {
    let (from, to) = (tempdir().unwrap(), tempdir().unwrap());
    let path = from.path().join("file");
    make(&path, &Node::File(5000, vec![(0, vec![1; 5000])], 0o600), 1_000_000_000);
    let (manifest, mut source) = scan(&path);
    let mut receiver = sink(to.path(), &manifest, CHUNK);
    copy(&mut source, &mut receiver, CHUNK, 0..5).unwrap();
    receiver.write(3, &[9; 1000]).expect("another content");
    let (mut hashes, mut data) = (Vec::new(), Vec::new());
    for index in 0..5 {
        hashes.push(source.read(index, CHUNK, &mut data).unwrap());
    }
    let root = root_of(&mut source, 5, CHUNK);
    assert!(matches!(receiver.finish(&root, &mut |_, _| {}), Err(TransferError::Root)));
    assert_eq!((receiver.forget(&hashes), receiver.missing()), (1, vec![3..4]));
    assert!(matches!(receiver.finish(&root, &mut |_, _| {}), Err(TransferError::Incomplete(1))));
    drop(receiver);
    let mut receiver = sink(to.path(), &manifest, CHUNK);
    assert_eq!(receiver.missing(), [3..4], "also after a restart");
    copy(&mut source, &mut receiver, CHUNK, [3]).unwrap();
    receiver.finish(&root, &mut |_, _| {}).expect("an end");
    assert_eq!(look(to.path()), look(from.path()));
    assert!(matches!(receiver.write(0, &[9; 1000]), Err(TransferError::Finished)));
    assert!(matches!(receiver.finish(&root, &mut |_, _| {}), Err(TransferError::Finished)));
}

#[test]
fn a_part_that_somebody_deleted_comes_again() {
    let (from, to) = (tempdir().unwrap(), tempdir().unwrap());
    let tree = from.path().join("tree");
    make(&tree, &Node::Directory(0o755), 0);
    for name in ["a", "b", "c"] {
        let node = Node::File(1500, vec![(0, name.as_bytes().repeat(1500))], 0o600);
        make(&tree.join(name), &node, 1_000_000_000);
    }
    let (manifest, mut source) = scan(&tree);
    let mut receiver = sink(to.path(), &manifest, CHUNK);
    copy(&mut source, &mut receiver, CHUNK, 0..5).unwrap();
    fs::remove_file(receiver.journal_path().join("parts/2")).unwrap();
    let root = root_of(&mut source, 5, CHUNK);
    let damaged = receiver.finish(&root, &mut |_, _| {});
    assert!(matches!(damaged, Err(TransferError::Vanished { chunks: 2, .. })), "{damaged:?}");
    assert_eq!(receiver.missing(), [1..3], "the chunks of b");
    copy(&mut source, &mut receiver, CHUNK, 1..3).unwrap();
    receiver.finish(&root, &mut |_, _| {}).expect("an end");
    assert_eq!(look(to.path()), look(from.path()));
}

/// Who removes the transfer's directory is told so with the next chunk. (Everything was taken into deleted files, and the end blamed
/// the machine.)
#[test]
fn a_directory_that_somebody_removed_is_named_at_once() {
    let (from, to) = (tempdir().unwrap(), tempdir().unwrap());
    let path = from.path().join("file");
    make(&path, &Node::File(5000, vec![(0, vec![1; 5000])], 0o600), 1_000_000_000);
    let (manifest, mut source) = scan(&path);
    for at_end in [false, true] {
        let mut receiver = sink(to.path(), &manifest, CHUNK);
        copy(&mut source, &mut receiver, CHUNK, 0..if at_end { 5 } else { 3 }).unwrap();
        let own = receiver.journal_path();
        fs::remove_dir_all(&own).unwrap();
        let root = root_of(&mut source, 5, CHUNK);
        let told = match at_end {
            false => copy(&mut source, &mut receiver, CHUNK, [3]).unwrap_err(),
            true => receiver.finish(&root, &mut |_, _| {}).unwrap_err(),
        };
        let said = told.to_string();
        assert!(said.contains(own.to_str().unwrap()) && said.contains("removed"), "{said}");
    }
    assert_eq!(fs::read_dir(to.path()).unwrap().count(), 0);
}

/// A part that goes is lost, and not the machine's stop.
#[test]
fn what_somebody_deleted_is_not_blamed_on_the_machine() {
    let (from, to) = (tempdir().unwrap(), tempdir().unwrap());
    let path = from.path().join("file");
    make(&path, &Node::File(5000, vec![(0, vec![1; 5000])], 0o600), 1_000_000_000);
    let (manifest, mut source) = scan(&path);
    let mut receiver = sink(to.path(), &manifest, CHUNK);
    copy(&mut source, &mut receiver, CHUNK, 0..5).unwrap();
    fs::remove_file(receiver.journal_path().join("parts/0")).unwrap();
    let root = root_of(&mut source, 5, CHUNK);
    let told = receiver.finish(&root, &mut |_, _| {}).unwrap_err().to_string();
    let own = receiver.journal_path();
    assert!(
        told.starts_with("5 chunks are gone from") && told.contains(own.to_str().unwrap()),
        "{told}"
    );
}

/// The receiver's directory may get another name meanwhile, and its path may be as long as paths can be: nothing is left of the
/// transfer but what was sent.
#[test]
fn nothing_is_left_in_a_directory_that_was_renamed() {
    let (from, to) = (tempdir().unwrap(), tempdir().unwrap());
    let path = from.path().join("file");
    make(&path, &Node::File(5000, vec![(0, vec![1; 5000])], 0o600), 1_000_000_000);
    let (manifest, mut source) = scan(&path);
    let (inbox, renamed) = (to.path().join("inbox"), to.path().join("renamed"));
    fs::create_dir(&inbox).unwrap();
    let mut receiver = sink(&inbox, &manifest, CHUNK);
    copy(&mut source, &mut receiver, CHUNK, 0..5).unwrap();
    fs::rename(&inbox, &renamed).unwrap();
    let root = root_of(&mut source, 5, CHUNK);
    receiver.finish(&root, &mut |_, _| {}).expect("an end");
    let left = fs::read_dir(&renamed).unwrap().map(|it| it.unwrap().file_name());
    assert_eq!(left.collect::<Vec<_>>(), ["file"]);
}

/// A part that is gone or cut off has its size again with the next chunk of it. What it has lost comes again.
#[test]
fn a_part_that_goes_before_the_transfer_is_taken_up_comes_again() {
    for (is_cut, lost) in [(false, 0..4), (true, 1..4)] {
        let (from, to) = (tempdir().unwrap(), tempdir().unwrap());
        let path = from.path().join("file");
        make(&path, &Node::File(5000, vec![(0, vec![1; 5000])], 0o600), 1_000_000_000);
        let (manifest, mut source) = scan(&path);
        let mut receiver = sink(to.path(), &manifest, CHUNK);
        copy(&mut source, &mut receiver, CHUNK, 0..3).unwrap();
        let part = receiver.journal_path().join("parts/0");
        drop(receiver);
        match is_cut {
            true => File::options().write(true).open(&part).unwrap().set_len(1500).unwrap(),
            false => fs::remove_file(&part).unwrap(),
        }
        let mut receiver = sink(to.path(), &manifest, CHUNK);
        copy(&mut source, &mut receiver, CHUNK, [4]).unwrap();
        assert_eq!(receiver.missing(), std::slice::from_ref(&lost));
        drop(receiver);
        let mut receiver = sink(to.path(), &manifest, CHUNK);
        assert_eq!(receiver.missing(), std::slice::from_ref(&lost), "also after a restart");
        copy(&mut source, &mut receiver, CHUNK, lost).unwrap();
        let root = root_of(&mut source, 5, CHUNK);
        receiver.finish(&root, &mut |_, _| {}).expect("an end");
        assert_eq!(look(to.path()), look(from.path()));
    }
}

#[test]
fn a_journal_that_is_no_journal_is_begun_anew() {
    let (from, to) = (tempdir().unwrap(), tempdir().unwrap());
    let path = from.path().join("file");
    make(&path, &Node::File(5000, vec![(0, vec![1; 5000])], 0o600), 1_000_000_000);
    let (manifest, mut source) = scan(&path);
    let mut receiver = sink(to.path(), &manifest, CHUNK);
    copy(&mut source, &mut receiver, CHUNK, 0..3).unwrap();
    let journal = receiver.journal_path().join("journal");
    drop(receiver);
    File::options().write(true).open(&journal).unwrap().write_all_at(&[0; 68], 0).unwrap();
    let mut receiver = sink(to.path(), &manifest, CHUNK);
    assert_eq!(receiver.missing(), [0..5]);
    copy(&mut source, &mut receiver, CHUNK, 0..5).unwrap();
    let root = root_of(&mut source, 5, CHUNK);
    receiver.finish(&root, &mut |_, _| {}).expect("an end");
    assert_eq!(look(to.path()), look(from.path()));
}
