//! Sources that change, disks that are full, rights that are missing: one clear line each.

use crate::tree::{Node, copy, dress, make, root_of, scan, set_time, sink};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use std::ffi::CStr;
use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use tempfile::{TempDir, tempdir};
use trunkline_transfer::{Halt, Manifest, Sink, Source, Standing, TransferError};

const CHUNK: u32 = 10_000;

/// Returns a directory with one file of so many bytes, and its path.
fn one_file(bytes: usize) -> (TempDir, PathBuf) {
    let from = tempdir().unwrap();
    let path = from.path().join("file");
    let data = (0..bytes).map(|at| (at % 251) as u8).collect();
    make(&path, &Node::File(bytes as u64, vec![(0, data)], 0o640), 1_000_000_000);
    (from, path)
}

fn told<T: std::fmt::Debug>(result: Result<T, TransferError>) -> String {
    let told = result.expect_err("a fault").to_string();
    assert!(!told.contains('\n'), "{told}");
    told
}

#[test]
fn a_source_that_shrinks_or_changes_is_named() {
    let (_from, path) = one_file(30_000);
    let (_, mut source) = scan(&path);
    let mut data = Vec::new();
    source.read(0, CHUNK, &mut data).expect("a chunk");
    assert_eq!(data.len(), 10_000);
    File::options().write(true).open(&path).unwrap().set_len(15_000).unwrap();
    for index in [0, 1, 2] {
        let told = told(source.read(index, CHUNK, &mut data));
        assert!(told.contains("file is shorter than it was: 15000 bytes, was 30000"), "{told}");
    }
    assert!(told(source.unchanged()).contains("is shorter"));

    let (_from, path) = one_file(30_000);
    let (_, mut source) = scan(&path);
    source.unchanged().expect("not yet");
    set_time(&path, 1_000_000_001);
    assert!(told(source.read(1, CHUNK, &mut data)).contains("has changed since"));
    assert!(told(source.unchanged()).contains("has changed since"));
    fs::remove_file(&path).unwrap();
    assert!(told(source.unchanged()).contains("cannot read"));
    assert!(matches!(
        source.read(3, CHUNK, &mut data),
        Err(TransferError::Beyond { chunks: 3, .. })
    ));
}

/// Files that the system makes up as they are read: one of /proc has data and a length of 0, one of /sys has less than a page and the
/// length of a page.
#[test]
fn a_file_of_another_length_than_it_says_is_named() {
    let scanned = |path: &str| Manifest::scan(&[path.into()], &mut |_, _| {});
    let said = told(scanned("/proc/version"));
    assert!(said.starts_with("/proc/version cannot be sent") && said.contains("copy"), "{said}");
    let path = "/sys/kernel/mm/transparent_hugepage/enabled";
    if !Path::new(path).exists() {
        return trunkline_skip::skipped(format_args!("no {path}"));
    }
    let (_, mut source) = scanned(path).expect("a length");
    let said = told(source.read(0, CHUNK, &mut Vec::new()));
    let length = fs::read(path).unwrap().len();
    assert!(said.contains(&format!("is shorter than it was: {length} bytes, was 4096")), "{said}");
}

#[test]
fn a_file_that_became_a_link_or_a_fifo_is_not_read() {
    let (from, path) = one_file(30_000);
    let (_, mut source) = scan(&path);
    fs::rename(&path, from.path().join("other")).unwrap();
    std::os::unix::fs::symlink("other", &path).unwrap();
    assert!(told(source.read(0, CHUNK, &mut Vec::new())).contains("cannot read"));
    fs::remove_file(&path).unwrap();
    let made = rustix::fs::mknodat(
        rustix::fs::CWD,
        &path,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        0,
    );
    made.expect("a FIFO");
    assert!(told(source.read(0, CHUNK, &mut Vec::new())).contains("has changed"));
    let scanned = Manifest::scan(&[from.path().to_path_buf()], &mut |_, _| {});
    assert!(told(scanned).contains("is neither a file"));
}

#[test]
fn chunks_of_the_wrong_length_or_place_are_refused() {
    let (_from, path) = one_file(25_000);
    let (manifest, _) = scan(&path);
    let to = tempdir().unwrap();
    let mut sink = sink(to.path(), &manifest, CHUNK);
    assert!(matches!(sink.write(3, &[]), Err(TransferError::Beyond { index: 3, chunks: 3 })));
    assert!(matches!(sink.write(u64::MAX, &[]), Err(TransferError::Beyond { .. })));
    let short = sink.write(2, &[0; 10_000]);
    assert!(matches!(short, Err(TransferError::Length { due: 5000, is: 10_000, .. })), "{short:?}");
    assert_eq!(sink.missing(), [0..3]);
    assert!(matches!(Sink::open(to.path(), [0; 32], 0), Err(TransferError::NoChunk)));
}

#[test]
fn a_manifest_of_another_transfer_is_refused() {
    let (_from, path) = one_file(25_000);
    let (manifest, _) = scan(&path);
    let to = tempdir().unwrap();
    let mut sink = Sink::open(to.path(), [1; 32], CHUNK).unwrap();
    assert!(matches!(sink.write(0, &[]), Err(TransferError::NoManifest)));
    assert_eq!((sink.root(), sink.chunks()), (None, 0));
    let refused = sink.set_manifest(&manifest.encode(), false);
    assert!(matches!(refused, Err(TransferError::Identity)), "{refused:?}");
}

#[test]
fn too_little_room_is_told_before_the_first_byte() {
    let from = tempdir().unwrap();
    let size = 1u64 << 61;
    let mut octets = b"TLMF\x01\x01\x00\x04file\x80\x03\x00\x00".to_vec();
    let mut rest = size;
    while rest >= 0x80 {
        octets.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    octets.push(rest as u8);
    let manifest = Manifest::decode(&octets).expect("a manifest");
    let mut sink = Sink::open(from.path(), manifest.identity(), CHUNK).unwrap();
    let told = told(sink.set_manifest(&octets, false));
    assert!(told.starts_with("disk full: needs 2305843009213693952 bytes, has "), "{told}");
    assert!(sink.manifest().is_none());
}

/// A small file system of its own, taken away at the end.
struct Small(TempDir);

impl Small {
    /// Returns a file system of so many bytes; `None`, with a note, without the right to make one.
    fn new(size: &CStr) -> Option<Small> {
        let small = tempdir().unwrap();
        match mount("tltest", small.path(), "tmpfs", MountFlags::empty(), Some(size)) {
            Ok(()) => Some(Small(small)),
            Err(error) => {
                trunkline_skip::skipped(format_args!("no file system of its own: {error}"));
                None
            }
        }
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        unmount(self.path(), UnmountFlags::DETACH).expect("it was mounted");
    }
}

#[test]
fn a_disk_that_runs_full_keeps_what_came_and_goes_on() {
    let Some(small) = Small::new(c"size=1m") else { return };
    let (_from, path) = one_file(600_000);
    let (manifest, mut source) = scan(&path);
    let mut receiver = sink(small.path(), &manifest, CHUNK);
    // Somebody else takes the room meanwhile.
    let ballast = small.path().join("ballast");
    fs::write(&ballast, vec![1; 600_000]).unwrap();
    let full = copy(&mut source, &mut receiver, CHUNK, 0..60);
    assert!(matches!(full, Err(TransferError::DiskFull(_))), "{full:?}");
    assert!(
        told(full).ends_with("free space or inodes and run again; what has come is not sent again")
    );
    let missing = receiver.missing();
    assert!((1..60).contains(&missing[0].start), "{missing:?}");
    drop(receiver);
    // Nothing was noted that is not there, and the journal goes on where it was.
    fs::remove_file(&ballast).unwrap();
    let mut receiver = sink(small.path(), &manifest, CHUNK);
    assert_eq!(receiver.missing(), missing);
    copy(&mut source, &mut receiver, CHUNK, missing.into_iter().flatten()).expect("room again");
    let root = root_of(&mut source, 60, CHUNK);
    receiver.finish(&root, &mut |_, _| {}).expect("an end");
    assert_eq!(fs::read(small.path().join("file")).unwrap(), fs::read(&path).unwrap());
}

/// A transfer that cannot even begin leaves nothing behind.
#[test]
fn a_full_disk_keeps_no_empty_journal() {
    let Some(small) = Small::new(c"size=64k") else { return };
    let ballast = small.path().join("ballast");
    fs::write(&ballast, vec![1; 65_536]).unwrap();
    let full = told(Sink::open(small.path(), [7; 32], CHUNK));
    assert!(full.starts_with("disk full"), "{full}");
    assert_eq!(fs::read_dir(small.path()).unwrap().count(), 1);
}

#[test]
fn a_journal_without_room_for_a_record_stays_right() {
    let Some(small) = Small::new(c"size=1m") else { return };
    let (_from, path) = one_file(600_000);
    let (manifest, mut source) = scan(&path);
    let mut receiver = sink(small.path(), &manifest, 1000);
    // The data have their room already: the journal runs out of it, at the end of its page.
    let part = receiver.journal_path().join("parts/0");
    fs::write(&part, vec![0; 600_000]).unwrap();
    let ballast = File::create(small.path().join("ballast")).unwrap();
    let mut taken = 0;
    while std::os::unix::fs::FileExt::write_at(&ballast, &[1; 4096], taken).is_ok() {
        taken += 4096;
    }
    let full = copy(&mut source, &mut receiver, 1000, 0..600);
    assert!(told(full).contains("journal"));
    let missing = receiver.missing();
    drop(receiver);
    assert_eq!(sink(small.path(), &manifest, 1000).missing(), missing);
    assert_eq!(missing, [(4096 - 68) / 48..600]);
}

#[test]
fn missing_rights_and_directories_are_named() {
    let (from, path) = one_file(100);
    let gone = Sink::open(&from.path().join("nowhere"), [1; 32], CHUNK);
    assert!(told(gone).contains("nowhere"));
    let unreadable = Manifest::scan(&[from.path().join("nothing")], &mut |_, _| {});
    assert!(told(unreadable).contains("cannot read"));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o0)).unwrap();
    fs::set_permissions(from.path(), fs::Permissions::from_mode(0o555)).unwrap();
    let directory = from.path().to_path_buf();
    let (unreadable, unwritable) = as_somebody_else(move || {
        let scanned = Manifest::scan(&[path], &mut |_, _| {});
        (told(scanned), told(Sink::open(&directory, [1; 32], CHUNK)))
    });
    assert!(unreadable.starts_with("permission denied: cannot read"), "{unreadable}");
    assert!(unwritable.starts_with("permission denied: cannot make"), "{unwritable}");
}

/// A directory that another user has opened to everybody takes what is sent, and keeps his mode and time.
#[test]
fn what_belongs_to_somebody_else_keeps_its_mode_and_time() {
    if !rustix::process::geteuid().is_root() {
        return trunkline_skip::skipped("only root makes directories of another user");
    }
    let (from, to) = (tempdir().unwrap(), tempdir().unwrap());
    for top in [from.path(), to.path()] {
        make(&top.join("tree"), &Node::Directory(0o755), 0);
        dress(top, 0o777, 1_000_000_000);
    }
    let file = from.path().join("tree/file");
    make(&file, &Node::File(5, vec![(0, b"hello".to_vec())], 0o644), 1_000_000_000);
    make(&from.path().join("tree/own"), &Node::Directory(0o755), 0);
    dress(&from.path().join("tree/own"), 0o750, 1_000_000_003);
    dress(&from.path().join("tree"), 0o755, 1_000_000_001);
    dress(&to.path().join("tree"), 0o777, 1_000_000_002);
    let (path, directory) = (from.path().join("tree"), to.path().to_path_buf());
    let finished = as_somebody_else(move || {
        let (manifest, mut source) = scan(&path);
        let mut sink = sink(&directory, &manifest, CHUNK);
        copy(&mut source, &mut sink, CHUNK, [0]).expect("a chunk");
        sink.finish(&root_of(&mut source, 1, CHUNK), &mut |_, _| {})
    });
    let finished = finished.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((finished.entries, finished.kept), (3, 1));
    assert_eq!(fs::read(to.path().join("tree/file")).unwrap(), b"hello");
    let mode =
        |name: &str| fs::metadata(to.path().join(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("tree"), mode("tree/own")), (0o777, 0o750));
}

/// Who finds all that is sent under its final names gives it the sender's modes, but for what is another user's.
#[test]
fn what_stands_there_and_is_somebody_elses_keeps_its_mode() {
    if !rustix::process::geteuid().is_root() {
        return trunkline_skip::skipped("only root makes files of another user");
    }
    let (from, to) = (tempdir().unwrap(), tempdir().unwrap());
    for (top, mode) in [(from.path(), 0o640), (to.path(), 0o644)] {
        make(&top.join("tree"), &Node::Directory(0o755), 0);
        for name in ["mine", "theirs"] {
            let node = Node::File(5, vec![(0, b"hello".to_vec())], mode);
            make(&top.join("tree").join(name), &node, 1_000_000_000);
            // What is sent may be read by whoever sends it.
            chown(top.join("tree").join(name), Some(65_534), None).unwrap();
        }
        dress(&top.join("tree"), 0o755, 1_000_000_001);
        dress(top, 0o777, 1_000_000_001);
    }
    chown(to.path().join("tree/theirs"), Some(0), None).unwrap();
    let (path, directory) = (from.path().join("tree"), to.path().to_path_buf());
    let finished = as_somebody_else(move || {
        let (manifest, mut source) = scan(&path);
        let standing = Standing::find(&directory, &manifest, &Halt::default());
        let mut standing = standing.expect("no halt").expect("it stands there");
        let root = root_of(&mut source, 1, CHUNK);
        assert_eq!(standing.root(CHUNK).expect("no halt"), Some(root));
        standing.dress()
    });
    let finished = finished.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((finished.entries, finished.files, finished.kept), (3, 2, 1));
    let mode =
        |name: &str| fs::metadata(to.path().join(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("tree/mine"), mode("tree/theirs")), (0o640, 0o644));
}

/// A directory that is there and takes nothing is named before the first chunk, and one that needs to take nothing is not.
#[test]
fn a_directory_that_may_not_be_written_is_named_before_the_first_chunk() {
    if !rustix::process::geteuid().is_root() {
        return trunkline_skip::skipped("only root makes directories of another user");
    }
    let (from, to) = (tempdir().unwrap(), tempdir().unwrap());
    for top in [from.path(), to.path()] {
        make(&top.join("tree"), &Node::Directory(0o755), 0);
        make(&top.join("tree/in"), &Node::Directory(0o755), 0);
        dress(top, 0o777, 1_000_000_000);
    }
    let file = from.path().join("tree/in/file");
    make(&file, &Node::File(5, vec![(0, b"hello".to_vec())], 0o644), 1_000_000_000);
    let receive = |set: fn(&mut Sink, &Manifest) -> Result<(), TransferError>| {
        let (path, directory) = (from.path().join("tree"), to.path().to_path_buf());
        as_somebody_else(move || {
            let (manifest, _) = scan(&path);
            let mut sink = Sink::open(&directory, manifest.identity(), CHUNK).expect("a sink");
            let result = set(&mut sink, &manifest);
            sink.discard().expect("its own directory");
            result
        })
    };
    let denied = told(receive(|sink, manifest| sink.set_manifest(&manifest.encode(), false)));
    let place = to.path().join("tree/in");
    let expected = format!("permission denied: cannot write in {}", place.display());
    assert!(denied.starts_with(&expected), "{denied}");
    dress(&place, 0o777, 1_000_000_000);
    receive(|sink, manifest| sink.set_manifest(&manifest.encode(), false)).expect("it may write");
    fs::write(place.join("file"), "old").unwrap();
    dress(&place, 0o755, 1_000_000_000);
    let denied = told(receive(|sink, manifest| sink.set_manifest(&manifest.encode(), true)));
    assert!(denied.starts_with(&expected), "{denied}");
    // In a directory with the sticky bit nobody replaces what is another's.
    dress(&place, 0o1777, 1_000_000_000);
    let denied = told(receive(|sink, manifest| sink.set_manifest(&manifest.encode(), true)));
    let expected = format!("permission denied: cannot replace {}/file", place.display());
    assert!(denied.starts_with(&expected), "{denied}");
    let nobody = 65_534;
    chown(place.join("file"), Some(nobody), None).unwrap();
    receive(|sink, manifest| sink.set_manifest(&manifest.encode(), true)).expect("its own file");
}

/// Nothing can be renamed into a file system that is mounted below a directory. That is told before the first chunk, if anything goes there.
#[test]
fn a_file_system_below_a_directory_is_named_before_the_first_chunk() {
    let (from, to) = (tempdir().unwrap(), tempdir().unwrap());
    for top in [from.path(), to.path()] {
        make(&top.join("tree"), &Node::Directory(0o755), 0);
        make(&top.join("tree/in"), &Node::Directory(0o755), 0);
    }
    let place = to.path().join("tree/in");
    if let Err(error) = mount("tltest", &place, "tmpfs", MountFlags::empty(), Some(c"size=1m")) {
        return trunkline_skip::skipped(format_args!("no file system of its own: {error}"));
    }
    let set = || {
        let (manifest, _) = scan(&from.path().join("tree"));
        let mut sink = Sink::open(to.path(), manifest.identity(), CHUNK).expect("a sink");
        sink.set_manifest(&manifest.encode(), false)
    };
    let empty = set();
    make(&from.path().join("tree/in/file"), &Node::File(5, vec![(0, vec![7; 5])], 0o644), 0);
    let refused = set();
    unmount(&place, UnmountFlags::DETACH).expect("it was mounted");
    empty.expect("nothing goes there");
    assert!(matches!(&refused, Err(TransferError::Elsewhere(it)) if *it == place), "{refused:?}");
}

/// Runs this as a user without any rights of root's, in a thread of its own: a user of a thread is not that of others.
fn as_somebody_else<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let drop_rights = || {
        if rustix::process::geteuid().is_root() {
            let nobody = rustix::process::Uid::from_raw(65_534);
            rustix::thread::set_thread_res_uid(nobody, nobody, nobody).expect("root may");
        }
    };
    let thread = std::thread::spawn(move || {
        drop_rights();
        work()
    });
    thread.join().expect("no panic")
}

#[test]
fn a_source_keeps_few_files_open() {
    let from = tempdir().unwrap();
    for number in 0..100 {
        let node = Node::File(30_000, vec![(0, vec![number; 30_000])], 0o600);
        make(&from.path().join(number.to_string()), &node, 1_000_000_000);
    }
    let (manifest, mut source) = scan(from.path());
    let mut data = Vec::new();
    let chunks = manifest.stream_bytes().div_ceil(CHUNK.into());
    (0..chunks).step_by(2).for_each(|index| {
        source.read(index, CHUNK, &mut data).expect("a chunk");
    });
    assert!(open_beneath(from.path()) <= 16);
    drop::<Source>(source);
    assert_eq!(open_beneath(from.path()), 0);
}

/// Returns the number of open files beneath a directory.
fn open_beneath(directory: &Path) -> usize {
    let open = fs::read_dir("/proc/self/fd").unwrap();
    open.filter(|it| {
        let target = fs::read_link(it.as_ref().unwrap().path());
        target.is_ok_and(|target| target.starts_with(directory))
    })
    .count()
}
