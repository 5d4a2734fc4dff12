//! Random trees come over as they are, in any order of chunks and over any number of restarts.

use crate::tree::{Node, copy, dress, look, make, root_of, scan, sink};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use trunkline_transfer::{Kind, Manifest};

/// Times of last changes, in seconds.
const TIME: u64 = 1_000_000_000;

fn node() -> impl Strategy<Value = Node> {
    let piece =
        (0u64..40, vec(any::<u8>(), 1..9000)).prop_map(|(block, data)| (block * 4096, data));
    let file = (vec(piece, 0..4), 0u64..50_000, 0o400u32..0o1000).prop_map(|(data, more, mode)| {
        let end = data.iter().map(|(at, data)| at + data.len() as u64).max().unwrap_or(0);
        Node::File(end + more, data, mode)
    });
    let link = vec(1u8..=255, 1..30).prop_map(Node::Link);
    prop_oneof![
        2 => (0o700u32..0o1000).prop_map(Node::Directory),
        5 => file,
        1 => link,
    ]
}

/// Nodes with the directory that each goes to, by choice among those before.
fn nodes() -> impl Strategy<Value = Vec<(prop::sample::Index, String, Node)>> {
    vec((any::<prop::sample::Index>(), "[a-c é\u{1}.-]{1,4}", node()), 1..14)
}

/// Makes the tree in `top`.
fn plant(top: &Path, nodes: &[(prop::sample::Index, String, Node)]) {
    std::fs::create_dir(top).expect("a directory");
    let mut directories = vec![(top.to_path_buf(), 0o755)];
    let mut taken: BTreeMap<PathBuf, ()> = BTreeMap::new();
    for (place, name, node) in nodes {
        let path = directories[place.index(directories.len())].0.join(name);
        if matches!(&**name, "." | "..") || taken.insert(path.clone(), ()).is_some() {
            continue;
        }
        make(&path, node, TIME + taken.len() as u64);
        if let Node::Directory(mode) = node {
            directories.push((path, *mode));
        }
    }
    directories.iter().rev().for_each(|(path, mode)| dress(path, *mode, TIME));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_tree_comes_over_as_it_is(
        nodes in nodes(),
        chunk in prop_oneof![Just(1000u32), Just(4096), Just(60_000)],
        order in vec(any::<prop::sample::Index>(), 0..60),
        restarts in vec(any::<bool>(), 60),
    ) {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        plant(&from.path().join("tree"), &nodes);
        let (manifest, mut source) = scan(&from.path().join("tree"));
        let decoded = Manifest::decode(&manifest.encode()).expect("what was encoded");
        prop_assert_eq!(&decoded, &manifest);

        let mut receiver = sink(to.path(), &manifest, chunk);
        let chunks = receiver.chunks();
        prop_assert_eq!(chunks, manifest.stream_bytes().div_ceil(chunk.into()));
        for (index, restart) in order.iter().zip(restarts) {
            if restart {
                drop(receiver);
                receiver = sink(to.path(), &manifest, chunk);
            }
            if chunks > 0 {
                let index = index.index(chunks as usize) as u64;
                copy(&mut source, &mut receiver, chunk, [index]).expect("written");
                prop_assert!(receiver.missing().iter().all(|range| !range.contains(&index)));
            }
        }
        prop_assert_eq!(look(to.path()).len(), 0, "no name before the end");
        let missing = receiver.missing();
        prop_assert_eq!(receiver.root().is_some(), missing.is_empty());
        copy(&mut source, &mut receiver, chunk, missing.into_iter().flatten()).expect("written");
        source.unchanged().expect("nothing changed");
        let root = root_of(&mut source, chunks, chunk);
        prop_assert_eq!(receiver.root(), Some(root));
        let finished = receiver.finish(&root, &mut |_, _| {}).expect("an end");
        prop_assert_eq!(finished.entries, manifest.entries() as u64);
        prop_assert_eq!(finished.bytes, manifest.stream_bytes());
        prop_assert_eq!(look(to.path()), look(from.path()));
        let left: Vec<_> = to.path().read_dir().unwrap().map(|it| it.unwrap().file_name()).collect();
        prop_assert_eq!(left, ["tree"], "the journal is gone");
    }
}

#[test]
fn holes_are_not_sent() {
    let from = tempfile::tempdir().unwrap();
    let (start, size) = (1 << 30, 3 << 30);
    make(&from.path().join("sparse"), &Node::File(size, vec![(start, vec![7; 4096])], 0o600), TIME);
    let (manifest, _) = scan(&from.path().join("sparse"));
    let [entry] = manifest.list() else { panic!("{manifest:?}") };
    let Kind::File { size: listed, extents } = &entry.kind else { panic!("{entry:?}") };
    assert_eq!((*listed, extents.len()), (size, 1));
    assert!(manifest.stream_bytes() < 1 << 20, "{} bytes", manifest.stream_bytes());
}

#[test]
fn several_paths_are_one_transfer_in_one_order() {
    let from = tempfile::tempdir().unwrap();
    let paths = ["b", "a", "c"].map(|name| from.path().join(name));
    paths.iter().for_each(|path| make(path, &Node::File(3, vec![(0, vec![1; 3])], 0o600), TIME));
    let scan = |paths: &[PathBuf]| Manifest::scan(paths, &mut |_, _| {}).expect("a manifest").0;
    let manifest = scan(&paths);
    assert_eq!((manifest.name(), manifest.files()), ("a and 2 more".into(), 3));
    let again = scan(&[paths[2].clone(), paths[1].clone(), paths[0].clone()]);
    assert_eq!(again.identity(), manifest.identity());
    let twice = Manifest::scan(&[paths[0].clone(), paths[0].clone()], &mut |_, _| {});
    let told = twice.expect_err("two of a name").to_string();
    assert!(told.contains("named b"), "{told}");
    assert!(Manifest::scan(&[], &mut |_, _| {}).is_err());
}
