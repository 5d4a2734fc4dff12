//! Transfers from a sender to a receiver through the loopback interface, as threads.

use crate::{
    CHUNK, Control, Got, Manner, MoverError, ReceiveOptions, Receiving, Secret, SendOptions,
    Sending, Sent, keep_receiving, receive, rounds::PathTo, send,
};
use std::fs::{self, Permissions};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::{JoinHandle, spawn};
use std::time::{Duration, UNIX_EPOCH};
use trunkline_handshake::{Key, ShortCode};

/// A receiver on a thread of its own.
pub(crate) struct There {
    pub address: SocketAddr,
    pub control: Arc<Control>,
    thread: JoinHandle<Result<Got, MoverError>>,
}

impl There {
    pub fn start(directory: &Path, secret: Secret, replace: bool) -> There {
        There::at(local(), directory, secret, replace)
    }

    pub fn at(listen: SocketAddr, directory: &Path, secret: Secret, replace: bool) -> There {
        There::with(receiving(listen, directory, secret, replace))
    }

    fn with(options: ReceiveOptions) -> There {
        let control = Arc::new(Control::default());
        let (to, address) = channel();
        let ours = Arc::clone(&control);
        let thread = spawn(move || receive(options, &ours, &mut |what| listens(&to, what)));
        There { address: address.recv().unwrap(), control, thread }
    }

    pub fn end(self) -> Result<Got, MoverError> {
        self.thread.join().unwrap()
    }
}

pub(crate) fn local() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 0).into()
}

pub(crate) fn receiving(
    listen: SocketAddr,
    directory: &Path,
    secret: Secret,
    replace: bool,
) -> ReceiveOptions {
    let (directory, manner) = (directory.to_path_buf(), Manner::default());
    let memory = 20 * u64::from(CHUNK);
    ReceiveOptions { directory, listen, secret, manner, memory, replace }
}

pub(crate) fn listens(to: &Sender<SocketAddr>, what: &Receiving) {
    if let Receiving::Listen { address } = what {
        to.send(*address).unwrap();
    }
}

pub(crate) fn options(path: &Path, to: SocketAddr, secret: Secret) -> SendOptions {
    let (paths, to) = (vec![path.to_path_buf()], vec![to]);
    SendOptions { paths, to, secret, manner: Manner::default() }
}

fn sends(path: &Path, to: SocketAddr, secret: Secret) -> Result<Sent, MoverError> {
    send(&options(path, to, secret), &Control::default(), &mut |_| {})
}

pub(crate) fn key() -> Secret {
    Secret::Key(Key::new([5; 32]))
}

/// A place to send from, with a file of so many octets, and one to receive in.
pub(crate) fn places(octets: usize) -> (tempfile::TempDir, PathBuf, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let (file, inbox) = (dir.path().join("file"), dir.path().join("inbox"));
    let mut data = vec![0; octets];
    blake3::Hasher::new().update(&octets.to_be_bytes()).finalize_xof().fill(&mut data);
    fs::write(&file, data).unwrap();
    (dir, file, inbox)
}

pub(crate) fn same(file: &Path, inbox: &Path) {
    assert!(fs::read(file).unwrap() == fs::read(inbox.join("file")).unwrap());
    let left: Vec<_> = fs::read_dir(inbox).unwrap().map(|it| it.unwrap().file_name()).collect();
    assert_eq!(left, ["file"]);
}

#[test]
fn files_of_all_lengths_come_whole_under_every_secret() {
    let chunk = CHUNK as usize;
    let code = Secret::Code(ShortCode::draw().unwrap());
    let cases = [(0, key()), (1, code), (chunk, Secret::None), (3 * chunk + 5, key())];
    for (octets, secret) in cases {
        let (_dir, file, inbox) = places(octets);
        let there = There::start(&inbox, secret.clone(), false);
        let sent = sends(&file, there.address, secret).unwrap();
        let got = there.end().unwrap();
        same(&file, &inbox);
        assert_eq!((sent.bytes, sent.had, sent.files), (octets as u64, 0, 1));
        assert_eq!((got.bytes, got.moved, got.files), (octets as u64, octets as u64, 1));
    }
}

/// Nothing of a transfer that stands there already is received, although some of it comes before its sender knows.
#[test]
fn what_stands_there_is_not_received() {
    let (_dir, file, inbox) = places(100_000);
    for moved in [100_000, 0] {
        let there = There::start(&inbox, key(), false);
        sends(&file, there.address, key()).unwrap();
        let got = there.end().unwrap();
        assert_eq!((got.moved, got.bytes), (moved, 100_000));
    }
    same(&file, &inbox);
}

/// What stands there with the same data gets the sender's modes, and its directories their times, without being sent again.
#[test]
fn what_stands_there_gets_the_senders_modes() {
    let dir = tempfile::tempdir().unwrap();
    let (tree, inbox) = (dir.path().join("tree"), dir.path().join("inbox"));
    fs::create_dir_all(tree.join("in")).unwrap();
    fs::write(tree.join("in/key"), "secret").unwrap();
    let looks = |top: &Path| {
        let found = ["", "in", "in/key"].map(|it| fs::metadata(top.join(it)).unwrap());
        found.map(|it| (it.mode() & 0o7777, it.mtime(), it.mtime_nsec()))
    };
    for (directory, file, moved) in [(0o755, 0o644, 6), (0o700, 0o600, 0), (0o750, 0o755, 0)] {
        for (path, mode) in [("", directory), ("in", directory), ("in/key", file)] {
            fs::set_permissions(tree.join(path), Permissions::from_mode(mode)).unwrap();
        }
        let time = UNIX_EPOCH + Duration::new(1_000_000_000 + u64::from(directory), 7);
        fs::File::open(tree.join("in")).unwrap().set_modified(time).unwrap();
        let there = There::start(&inbox, key(), false);
        sends(&tree, there.address, key()).unwrap();
        let got = there.end().unwrap();
        assert_eq!((got.moved, got.kept), (moved, 0));
        assert_eq!(looks(&inbox.join("tree")), looks(&tree), "{file:o}");
    }
}

/// In the clear, of a file with octets that are easily found; a sender that wants them sealed gets that from the same receiver.
#[test]
fn data_go_in_the_clear_if_both_ends_want_it() {
    let octets = 5 * CHUNK as usize;
    for clear in [true, false] {
        let (_dir, file, inbox) = places(octets);
        let manner = Manner { clear: true, raw: false };
        let there =
            There::with(ReceiveOptions { manner, ..receiving(local(), &inbox, key(), false) });
        let path = PathTo::new(there.address, usize::MAX);
        let options = options(&file, path.near, key());
        let options = SendOptions { manner: Manner { clear, raw: false }, ..options };
        send(&options, &Control::default(), &mut |_| {}).unwrap();
        there.end().unwrap();
        same(&file, &inbox);
        let data = fs::read(&file).unwrap();
        assert_eq!(path.has_seen(&data[..64]), clear);
    }
}

/// A receiver that goes on takes one transfer after another, from senders that wait for no pause; one that fails ends no other.
#[test]
fn a_receiver_may_take_more_than_one_transfer() {
    let (dir, file, inbox) = places(3000);
    let other = dir.path().join("other");
    fs::write(&other, vec![7; 400_000]).unwrap();
    let (to, address) = channel();
    let (results, result) = channel();
    let control = Arc::new(Control::default());
    let (ours, options) = (Arc::clone(&control), receiving(local(), &inbox, key(), false));
    let there = spawn(move || {
        let each = &mut |got: Result<Got, MoverError>| results.send(got).unwrap();
        keep_receiving(options, &ours, &mut |what| listens(&to, what), each)
    });
    let address = address.recv().unwrap();
    sends(&file, address, key()).unwrap();
    sends(&other, address, key()).unwrap();
    assert_eq!(result.recv().unwrap().unwrap().name, "file");
    assert_eq!(result.recv().unwrap().unwrap().name, "other");
    // The same once more is there; others under its name are refused, and no end.
    sends(&file, address, key()).unwrap();
    assert_eq!(result.recv().unwrap().unwrap().bytes, 3000);
    fs::write(&file, "something else").unwrap();
    let refused = sends(&file, address, key()).unwrap_err().to_string();
    assert!(refused.contains("exists"), "{refused}");
    assert!(result.recv().unwrap().unwrap_err().to_string().contains("--replace"));
    fs::rename(&file, dir.path().join("third")).unwrap();
    sends(&dir.path().join("third"), address, key()).unwrap();
    assert_eq!(result.recv().unwrap().unwrap().name, "third");
    control.stop();
    there.join().unwrap().unwrap();
    assert_eq!(fs::read_dir(&inbox).unwrap().count(), 3);
}

/// More files than a packet of the manifest can name.
#[test]
fn many_small_files_are_one_stream() {
    let (dir, _, inbox) = places(0);
    let tree = dir.path().join("tree");
    for number in 0..3000 {
        let place = tree.join(format!("{}", number % 7));
        fs::create_dir_all(&place).unwrap();
        fs::write(
            place.join(format!("a file with a long name, of number {number}")),
            format!("{number}"),
        )
        .unwrap();
    }
    let there = There::start(&inbox, key(), false);
    let sent = sends(&tree, there.address, key()).unwrap();
    assert_eq!((there.end().unwrap().files, sent.files), (3000, 3000));
    for number in [0, 1, 2999] {
        let name = format!("tree/{}/a file with a long name, of number {number}", number % 7);
        assert_eq!(fs::read_to_string(inbox.join(name)).unwrap(), number.to_string());
    }
}

/// A name may have more addresses than one, of both families: the receiver is found wherever it listens, by every secret.
#[test]
fn addresses_are_called_in_turn() {
    let nobody: SocketAddr = ([127, 0, 0, 9], 9).into();
    let nobody6: SocketAddr = (std::net::Ipv6Addr::LOCALHOST, 9).into();
    let code = Secret::Code(ShortCode::draw().unwrap());
    for (secret, before) in [(key(), [nobody; 2]), (code, [nobody6, nobody]), (key(), [nobody6; 2])]
    {
        let (_dir, file, inbox) = places(10_000);
        let there = There::start(&inbox, secret.clone(), false);
        let mut options = options(&file, there.address, secret);
        options.to.splice(0..0, before);
        // It would wait for ever.
        let (control, begun) = (Control::default(), std::time::Instant::now());
        let tell = &mut |_: &Sending| {
            if begun.elapsed().as_secs() > 20 {
                control.stop();
            }
        };
        send(&options, &control, tell).unwrap();
        there.end().unwrap();
        same(&file, &inbox);
    }
}

#[test]
fn nobody_without_the_secret_gets_in() {
    let (_dir, file, inbox) = places(10);
    let there = There::start(&inbox, key(), false);
    let wrong = Secret::Key(Key::new([6; 32]));
    let refused = sends(&file, there.address, wrong).unwrap_err().to_string();
    assert!(refused.contains("wrong code or key"), "{refused}");
    let refused = sends(&file, there.address, Secret::None).unwrap_err().to_string();
    assert!(refused.contains("asks for a code or a key"), "{refused}");
    sends(&file, there.address, key()).unwrap();
    there.end().unwrap();
    same(&file, &inbox);
}

#[test]
fn three_wrong_codes_end_a_receiver() {
    let (_dir, file, inbox) = places(10);
    let code = |text: &str| Secret::Code(text.parse().unwrap());
    let there = There::start(&inbox, code("abc-234"), false);
    for wrong in ["abc-235", "abc-236", "abc-237"] {
        let told = sends(&file, there.address, code(wrong)).unwrap_err().to_string();
        assert!(told.contains("wrong code"), "{told}");
    }
    assert!(matches!(there.end(), Err(MoverError::Guessed(3))));
}

/// Stops one end when so much has been confirmed, starts it again, and so on to the end. Answers how much was moved in all.
fn with_stops(octets: usize, stops: &[f64], is_sender: bool) -> u64 {
    let (_dir, file, inbox) = places(octets);
    let mut there = There::start(&inbox, key(), false);
    let mut moved = 0;
    for stop in stops {
        let (control, confirmed_stop) = (Arc::new(Control::default()), *stop * octets as f64);
        let (ours, other) = (Arc::clone(&control), Arc::clone(&there.control));
        let (address, path) = (there.address, file.clone());
        let run = spawn(move || {
            let mut most = 0;
            let tell = &mut |what: &Sending| {
                if let Sending::Send { confirmed, moved, .. } = what {
                    most = *moved;
                    if *confirmed as f64 >= confirmed_stop {
                        other.stop();
                        ours.stop();
                    }
                }
            };
            (send(&options(&path, address, key()), &control, tell).map(|_| ()), most)
        });
        let (ended, sent) = run.join().unwrap();
        moved += sent;
        if ended.is_ok() {
            break;
        }
        // Whoever was to go has gone; both were stopped, so that a slow machine stops them alike.
        there.control.stop();
        assert!(matches!(
            there.thread.join().unwrap(),
            Err(MoverError::Stopped | MoverError::Gone(_))
        ));
        there = There::start(&inbox, key(), false);
    }
    if !inbox.join("file").exists() {
        let sent = sends(&file, there.address, key()).unwrap();
        moved += sent.bytes - sent.had;
        let got = there.end().unwrap();
        assert!(got.moved <= octets as u64);
        assert!(is_sender || got.bytes == octets as u64);
    }
    same(&file, &inbox);
    moved
}

/// What has been confirmed is not sent again: all in all little more is moved than there is.
#[test]
fn what_is_there_is_not_sent_again() {
    let octets = 400 * CHUNK as usize;
    let moved = with_stops(octets, &[0.2, 0.5, 0.8], true);
    assert!(moved < octets as u64 * 11 / 10, "{moved} of {octets}");
}

#[test]
fn a_receiver_may_come_after_its_sender() {
    let (_dir, file, inbox) = places(1000);
    // A port that was free a moment ago.
    let address = There::start(&inbox, key(), false);
    let (place, control) = (address.address, Arc::clone(&address.control));
    control.stop();
    address.end().unwrap_err();
    let path = file.clone();
    let sender = spawn(move || sends(&path, place, key()));
    std::thread::sleep(std::time::Duration::from_millis(300));
    let there = There::at(place, &inbox, key(), false);
    sender.join().unwrap().unwrap();
    there.end().unwrap();
    same(&file, &inbox);
}

#[test]
fn what_stands_there_is_replaced_only_if_that_is_asked_for() {
    let (_dir, file, inbox) = places(1000);
    fs::create_dir(&inbox).unwrap();
    fs::write(inbox.join("file"), "mine").unwrap();
    let there = There::start(&inbox, key(), false);
    let refused = sends(&file, there.address, key()).unwrap_err().to_string();
    assert!(refused.contains("exists"), "{refused}");
    assert!(there.end().unwrap_err().to_string().contains("--replace"));
    assert_eq!(fs::read_to_string(inbox.join("file")).unwrap(), "mine");
    assert_eq!(fs::read_dir(&inbox).unwrap().count(), 1, "nothing is left of what was refused");
    let there = There::start(&inbox, key(), true);
    sends(&file, there.address, key()).unwrap();
    there.end().unwrap();
    assert!(fs::read(&file).unwrap() == fs::read(inbox.join("file")).unwrap());
}

/// A sender that was killed when the receiver had everything hears at its next start that all is there, and only if the data are
/// the same.
#[test]
fn what_is_complete_already_is_told_so() {
    let octets = 30 * CHUNK as usize + 7;
    let (_dir, file, inbox) = places(octets);
    let there = There::start(&inbox, key(), false);
    sends(&file, there.address, key()).unwrap();
    there.end().unwrap();
    let again = There::start(&inbox, key(), false);
    let sent = sends(&file, again.address, key()).unwrap();
    let got = again.end().unwrap();
    same(&file, &inbox);
    assert_eq!((sent.had, sent.bytes), (octets as u64, octets as u64));
    assert_eq!((got.bytes, got.files), (octets as u64, 1));
    // The same length and time, and one octet that differs.
    let theirs = inbox.join("file");
    let time = fs::metadata(&theirs).unwrap().modified().unwrap();
    let mut data = fs::read(&theirs).unwrap();
    data[octets / 2] ^= 1;
    fs::write(&theirs, &data).unwrap();
    fs::File::options().write(true).open(&theirs).unwrap().set_modified(time).unwrap();
    let there = There::start(&inbox, key(), false);
    sends(&file, there.address, key()).unwrap_err();
    there.end().unwrap_err();
    assert!(fs::read(&theirs).unwrap() == data);
}

/// A source that changes, or is cut, while it is sent ends both ends with one line, and nothing gets its name.
#[test]
fn a_source_that_changes_is_told() {
    for (cut, word) in [(Some(10), "shorter"), (None, "changed")] {
        let octets = 200 * CHUNK as usize;
        let (_dir, file, inbox) = places(octets);
        let there = There::start(&inbox, key(), false);
        let mut is_changed = false;
        let tell = &mut |what: &Sending| {
            if matches!(what, Sending::Connect { .. }) && !is_changed {
                is_changed = true;
                match cut {
                    Some(length) => fs::OpenOptions::new()
                        .write(true)
                        .open(&file)
                        .unwrap()
                        .set_len(length)
                        .unwrap(),
                    None => fs::write(&file, vec![1; octets]).unwrap(),
                }
            }
        };
        let failed = send(&options(&file, there.address, key()), &Control::default(), tell);
        assert!(failed.unwrap_err().to_string().contains(word));
        there.control.stop();
        there.end().unwrap_err();
        assert!(!inbox.join("file").exists());
    }
}

/// Room that a slow sender leaves unused is not the receiver's disk.
#[test]
fn a_cap_of_the_senders_is_no_fault_of_the_receivers() {
    let (_dir, file, inbox) = places(40 * CHUNK as usize);
    let there = There::start(&inbox, key(), false);
    let control = Control::default();
    control.set_cap(Some("32Mbit/s".parse().unwrap())).unwrap();
    send(&options(&file, there.address, key()), &control, &mut |_| {}).unwrap();
    let disk = there.end().unwrap().disk;
    assert!(disk < 0.5, "{disk} of the time, where each chunk takes 44 ms to come");
}

#[test]
fn a_cap_holds_and_can_be_lifted() {
    let (_dir, file, inbox) = places(40 * CHUNK as usize);
    let there = There::start(&inbox, key(), false);
    let control = Control::default();
    control.set_cap(Some("8Mbit/s".parse().unwrap())).unwrap();
    let mut lifted = None;
    let tell = &mut |what: &Sending| {
        if let Sending::Send { moved, seconds, .. } = what
            && *seconds > 1.0
            && lifted.is_none()
        {
            lifted = Some(*moved as f64 / *seconds);
            control.set_cap(None).unwrap();
        }
    };
    send(&options(&file, there.address, key()), &control, tell).unwrap();
    there.end().unwrap();
    // 1 MB/s; a slow machine is below, nothing is above but for rounding and what was confirmed at once.
    assert!(lifted.unwrap() < 1.25e6, "{lifted:?}");
}

/// The end of a list fills no buffer up: of one file it takes a packet. (It took a whole buffer, one in 256 of a transfer.)
#[test]
fn a_list_takes_no_more_packets_than_it_needs() {
    let (_dir, file, inbox) = places(30 * CHUNK as usize);
    let there = There::start(&inbox, key(), false);
    let sent = sends(&file, there.address, key()).unwrap();
    there.end().unwrap();
    same(&file, &inbox);
    // The list, 256 chunks of 15 packets, and the root behind them.
    assert_eq!(sent.packets - sent.again, 1 + 256 * 15 + 1, "{sent:?}");
}
