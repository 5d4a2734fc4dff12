//! Receivers that are killed by the system, without a word.
//!
//! A program of its own: between being made and beginning its work a new process holds what its parent has open, the locks
//! of other tests' transfers too.

#[allow(dead_code)]
#[path = "it/tree.rs"]
mod tree;

use crate::tree::{Node, copy, look, make, root_of, scan, sink};
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::tempdir;
use trunkline_transfer::journal;

const CHUNK: u32 = 1000;
/// The directory of a receiver that is to be killed; the test runs itself once more for it.
const PLACE: &str = "TRUNKLINE_TEST_RECEIVER";

/// Receives all that is missing in `place`. Before each chunk it notes that it was sent.
fn receive(place: &Path) {
    let (manifest, mut source) = scan(&place.join("from/tree"));
    let mut receiver = sink(&place.join("to"), &manifest, CHUNK);
    let mut sent = File::options().append(true).create(true).open(place.join("sent")).unwrap();
    for index in receiver.missing().into_iter().flatten() {
        sent.write_all(&index.to_le_bytes()).unwrap();
        copy(&mut source, &mut receiver, CHUNK, [index]).unwrap();
    }
    let root = root_of(&mut source, receiver.chunks(), CHUNK);
    receiver.finish(&root, &mut |_, _| {}).unwrap();
}

fn start() -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "at_most_one_chunk_is_sent_again_after_each_kill"]);
    command.stdout(Stdio::null());
    command
}

/// Kills a receiver once it has noted so many chunks in all.
fn kill_after(receiver: &mut Child, sent: &Path, chunks: u64) {
    let patience = Instant::now() + Duration::from_secs(60);
    while fs::metadata(sent).map_or(0, |it| it.len() / 8) < chunks {
        assert!(receiver.try_wait().unwrap().is_none(), "it ended before it was killed");
        assert!(Instant::now() < patience, "it does not receive");
    }
    receiver.kill().unwrap();
    receiver.wait().unwrap();
}

#[test]
fn at_most_one_chunk_is_sent_again_after_each_kill() {
    if let Some(place) = std::env::var_os(PLACE) {
        return receive(Path::new(&place));
    }
    let place = tempdir().unwrap();
    let top = place.path().join("from/tree");
    fs::create_dir_all(&top).unwrap();
    fs::create_dir(place.path().join("to")).unwrap();
    make(&top.join("large"), &Node::File(4_000_000, vec![(0, vec![7; 4_000_000])], 0o640), 1);
    for number in 0..500u64 {
        let data = number.to_le_bytes().repeat(number as usize);
        make(&top.join(number.to_string()), &Node::File(8 * number, vec![(0, data)], 0o600), 1);
    }
    let (manifest, _) = scan(&top);
    let chunks = manifest.stream_bytes().div_ceil(CHUNK.into());
    let (to, sent) = (place.path().join("to"), place.path().join("sent"));
    let noted = || fs::metadata(&sent).unwrap().len() / 8;
    let mut again = 0;
    for share in [3, 7] {
        let mut receiver = start().env(PLACE, place.path()).spawn().unwrap();
        kill_after(&mut receiver, &sent, chunks * share / 10);
        let found = journal::find(&to, &manifest.identity()).unwrap().expect("it was begun");
        let missing = sink(&to, &manifest, CHUNK).missing();
        let confirmed = chunks - missing.iter().map(|range| range.end - range.start).sum::<u64>();
        // The last chunk alone is shorter.
        assert_eq!(found.done, confirmed * u64::from(CHUNK));
        assert!(noted() - again - confirmed <= 1, "{} sent, {confirmed} confirmed", noted());
        again = noted() - confirmed;
        assert_eq!(look(&to).len(), 0, "no name before the end");
    }
    let ended = start().env(PLACE, place.path()).status().unwrap();
    assert!(ended.success());
    assert!(noted() <= chunks + 2, "{} sent of {chunks}", noted());
    assert_eq!(look(&to), look(&place.path().join("from")));
}
