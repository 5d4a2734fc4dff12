//! Transfers that end, or begin anew, by what happens at the other end or on the disk.

use crate::desk::{Desk, Done, Task};
use crate::tests::{There, key, listens, local, options, places, receiving, same};
use crate::words::{Answer, Offer};
use crate::{
    CHUNK, Control, Cut, Got, MoverError, ReceiveOptions, Receiving, Secret, SendOptions, Sending,
    Sent, keep_receiving, receive, send,
};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread::spawn;
use std::time::Duration;
use trunkline_transfer::{Manifest, Sink, TransferError, root};

/// The names in a directory.
fn names(directory: &Path) -> Vec<String> {
    let all = fs::read_dir(directory).unwrap().map(|it| it.unwrap().file_name());
    all.map(|it| it.into_string().unwrap()).collect()
}

/// What is refused when its list has come leaves nothing behind but what was there.
#[test]
fn a_refused_transfer_leaves_nothing() {
    for replace in [false, true] {
        let (_dir, file, inbox) = places(1000);
        fs::create_dir_all(inbox.join("file")).unwrap();
        let there = There::start(&inbox, key(), replace);
        let sent = send(&options(&file, there.address, key()), &Control::default(), &mut |_| {});
        assert!(sent.unwrap_err().to_string().contains("is in the way"));
        assert!(there.end().unwrap_err().to_string().contains("is in the way"));
        assert_eq!(names(&inbox), ["file"]);
    }
}

/// A path may be longer than a refusal: the sender is told the cause and what to do all the same.
#[test]
fn a_refusal_of_a_long_path_has_its_cause() {
    let (dir, ..) = places(0);
    let (tree, inbox) = (dir.path().join("tree"), dir.path().join("inbox"));
    let below = Path::new(&"d".repeat(200)).join("e".repeat(200));
    for (top, data) in [(&tree, "mine"), (&inbox.join("tree"), "another's")] {
        fs::create_dir_all(top.join(&below)).unwrap();
        fs::write(top.join(&below).join("file"), data).unwrap();
    }
    let there = There::start(&inbox, key(), false);
    let sent = send(&options(&tree, there.address, key()), &Control::default(), &mut |_| {});
    let told = there.end().unwrap_err().to_string();
    let (_, cause) = told.split_once("/file ").unwrap();
    let heard = sent.unwrap_err().to_string();
    assert!(heard.ends_with(&format!("/file {cause}")), "{heard}");
}

/// Where nobody listens the host says so, and whoever waits is told that, not only that nobody has answered.
#[test]
fn who_calls_a_closed_port_is_told_so() {
    let (_dir, file, _) = places(1);
    let closed = std::net::UdpSocket::bind(local()).unwrap();
    let to = closed.local_addr().unwrap();
    drop(closed);
    let (control, mut told) = (Control::default(), None);
    let tell = &mut |what: &Sending| {
        if let Sending::Connect { seconds, why } = what
            && (why.is_some() || *seconds > 20.0)
        {
            told.clone_from(why);
            control.stop();
        }
    };
    send(&options(&file, to, key()), &control, tell).unwrap_err();
    let why = told.expect("a reason");
    assert!(why.contains("refused"), "{why}");
}

/// Who mends the cause of a refusal and sends again is served by a receiver that goes on, however soon that is. (Until the refusal
/// was forgotten it was told again, and nothing was looked at.)
#[test]
fn a_refusal_ends_with_its_cause() {
    let (_dir, file, inbox) = places(1000);
    fs::create_dir(&inbox).unwrap();
    fs::write(inbox.join("file"), "mine").unwrap();
    let (to, address) = channel();
    let (results, result) = channel();
    let control = Arc::new(Control::default());
    let (ours, options_there) = (Arc::clone(&control), receiving(local(), &inbox, key(), false));
    let there = spawn(move || {
        let each = &mut |got: Result<Got, MoverError>| results.send(got.is_ok()).unwrap();
        keep_receiving(options_there, &ours, &mut |what| listens(&to, what), each)
    });
    let options = options(&file, address.recv().unwrap(), key());
    let refused = send_within(&options, &mut |_| {}).unwrap_err().to_string();
    assert!(refused.contains("exists"), "{refused}");
    fs::remove_file(inbox.join("file")).unwrap();
    send_within(&options, &mut |_| {}).unwrap();
    control.stop();
    there.join().unwrap().unwrap();
    assert_eq!(result.iter().collect::<Vec<_>>(), [false, true]);
    same(&file, &inbox);
}

/// A receiver whose disk fails does not say that its sender has gone and is waited for: it was sent away.
#[test]
fn who_fails_does_not_wait_for_its_sender() {
    let (dir, file, inbox) = places(4 * CHUNK as usize);
    let tree = dir.path().join("tree");
    fs::create_dir(&tree).unwrap();
    (0..10).for_each(|it| _ = fs::copy(&file, tree.join(it.to_string())).unwrap());
    let ((to, heard), options_there) = (channel(), receiving(local(), &inbox, key(), false));
    let receiver = spawn(move || {
        receive(options_there, &Control::default(), &mut |what| to.send(what.clone()).unwrap())
    });
    let Ok(Receiving::Listen { address }) = heard.recv() else { panic!("it does not listen") };
    let control = Control::default();
    control.set_cap(Some("20Mbit/s".parse().unwrap())).unwrap();
    let tell = &mut |what: &Sending| {
        if let Sending::Send { moved: 1.., .. } = what {
            names(&inbox).iter().for_each(|it| fs::remove_dir_all(inbox.join(it)).unwrap());
        }
    };
    let sent = send(&options(&tree, address, key()), &control, tell);
    // While it is removed the parts' directory may have gone first.
    let is_told = |why: String| why.contains("was removed") || why.contains("cannot write");
    assert!(is_told(sent.unwrap_err().to_string()));
    assert!(is_told(receiver.join().unwrap().unwrap_err().to_string()));
    let told: Vec<Receiving> = heard.iter().collect();
    assert!(!told.contains(&Receiving::Away), "{told:?}");
}

/// Who stops a receiver that has failed, and stays for its sender's sake, is told why it failed.
#[test]
fn a_failure_is_told_although_it_is_stopped() {
    let (_dir, file, inbox) = places(1000);
    fs::create_dir_all(inbox.join("file")).unwrap();
    let there = There::start(&inbox, key(), false);
    let sent = send(&options(&file, there.address, key()), &Control::default(), &mut |_| {});
    assert!(sent.unwrap_err().to_string().contains("is in the way"));
    there.control.stop();
    let told = there.end().unwrap_err().to_string();
    assert!(told.contains("is in the way"), "{told}");
}

/// Both ends know to the octet what was there before, whether the short last chunk was or not, and however many gaps there are.
#[test]
fn both_ends_count_what_was_there_before() {
    let octets = 100 * 10_944 - 3000;
    assert_eq!(Cut::of(octets), Cut { chunk: 10_944, each: 1 });
    // The chunks that are there, and their octets.
    let alternate: Vec<u64> = (0..99).step_by(2).collect();
    for (there, had) in [(vec![1], 10_944), (vec![99], 7944), (alternate, 50 * 10_944)] {
        let (_dir, file, inbox) = places(octets as usize);
        fs::create_dir(&inbox).unwrap();
        let (manifest, mut source) =
            Manifest::scan(std::slice::from_ref(&file), &mut |_, _| {}).unwrap();
        let mut sink = Sink::open(&inbox, manifest.identity(), 10_944).unwrap();
        sink.set_manifest(&manifest.encode(), false).unwrap();
        let mut data = Vec::new();
        for number in there {
            source.read(number, 10_944, &mut data).unwrap();
            sink.write(number, &data).unwrap();
        }
        drop(sink);
        let there = There::start(&inbox, key(), false);
        let sent = send_within(&options(&file, there.address, key()), &mut |_| {}).unwrap();
        let got = there.end().unwrap();
        same(&file, &inbox);
        assert_eq!((sent.had, got.bytes - got.moved), (had, had));
    }
}

/// A receiver that is stopped while it puts many files in place does not go on with that until they all are, and tells its sender,
/// which would wait for it; both begun again, the rest gets there. On a busy machine all may be in place before.
#[test]
fn who_is_stopped_while_files_are_put_in_place_says_so() {
    const FILES: usize = 1500;
    let (dir, _, _) = places(0);
    let tree = dir.path().join("tree");
    fs::create_dir(&tree).unwrap();
    (0..FILES).for_each(|it| fs::write(tree.join(it.to_string()), "data").unwrap());
    let inbox = (0..8).map(|it| dir.path().join(format!("inbox {it}"))).find(|inbox| {
        let there = There::start(inbox, key(), false);
        let receiver = Arc::clone(&there.control);
        let tell = &mut |what: &Sending| {
            if matches!(what, Sending::Place { .. }) {
                receiver.stop();
            }
        };
        let sent = send_within(&options(&tree, there.address, key()), tell);
        let got = there.end();
        assert_eq!(sent.is_ok(), got.is_ok());
        let Err(sent) = sent else { return false };
        assert!(sent.to_string().contains("the receiver was stopped"), "{sent}");
        assert!(matches!(got, Err(MoverError::Stopped)), "{got:?}");
        true
    });
    let inbox = inbox.expect("it was never stopped before all was in place");
    assert!(names(&inbox.join("tree")).len() < FILES);
    let there = There::start(&inbox, key(), false);
    let sent = send_within(&options(&tree, there.address, key()), &mut |_| {});
    assert_eq!(sent.unwrap().had, 4 * FILES as u64);
    assert_eq!(there.end().unwrap().moved, 0);
    assert_eq!((names(&inbox), names(&inbox.join("tree")).len()), (vec!["tree".into()], FILES));
}

/// A sender that is stopped while it looks at what is to be sent does not look at all of it first.
#[test]
fn who_is_stopped_while_it_looks_says_so() {
    let (dir, _, _) = places(0);
    let tree = dir.path().join("tree");
    fs::create_dir(&tree).unwrap();
    (0..1000).for_each(|it| fs::write(tree.join(it.to_string()), "").unwrap());
    let (control, mut seen) = (Control::default(), 0);
    let options = options(&tree, ([127, 0, 0, 1], 9).into(), key());
    let sent = send(&options, &control, &mut |what| {
        if let Sending::Scan { entries, .. } = what {
            control.stop();
            seen = *entries;
        }
    });
    assert!(matches!(sent, Err(MoverError::Stopped)), "{sent:?}");
    assert!(seen < 1000, "{seen} entries");
}

/// Sends, and is stopped after 20 seconds if it waits for ever.
fn send_within(options: &SendOptions, tell: &mut dyn FnMut(&Sending)) -> Result<Sent, MoverError> {
    let control = Arc::new(Control::default());
    let (watched, (ended, end)) = (Arc::clone(&control), channel::<()>());
    let watch = spawn(move || {
        if end.recv_timeout(Duration::from_secs(20)) == Err(RecvTimeoutError::Timeout) {
            watched.stop();
        }
    });
    let sent = send(options, &control, tell);
    drop(ended);
    watch.join().unwrap();
    sent
}

/// Of two senders of different files the later one is served, and the other is told so, and does not wait in silence.
#[test]
fn who_is_pushed_aside_is_told() {
    let (dir, file, inbox) = places(40 * CHUNK as usize);
    let other = dir.path().join("other");
    fs::write(&other, "first of all").unwrap();
    let there = There::start(&inbox, key(), false);
    let address = there.address;
    let control = Arc::new(Control::default());
    control.set_cap(Some("4Mbit/s".parse().unwrap())).unwrap();
    let mut pusher = None;
    let tell = &mut |what: &Sending| {
        if let Sending::Send { moved: 1.., .. } = what
            && pusher.is_none()
        {
            let options = options(&other, address, key());
            pusher = Some(spawn(move || send(&options, &Control::default(), &mut |_| {})));
        }
    };
    let aside = send(&options(&file, address, key()), &control, tell).unwrap_err().to_string();
    assert!(aside.contains("another sender"), "{aside}");
    pusher.unwrap().join().unwrap().unwrap();
    assert_eq!(there.end().unwrap().name, "other");
}

/// A directory that is none, or may not be written, is told before anybody is waited for.
#[test]
fn a_directory_of_no_use_is_told_at_once() {
    let (_dir, file, _) = places(10);
    let options = ReceiveOptions {
        directory: file,
        listen: ([127, 0, 0, 1], 0).into(),
        secret: Secret::None,
        manner: crate::Manner::default(),
        memory: 1 << 20,
        replace: false,
    };
    let told = receive(options, &Control::default(), &mut |what| panic!("{what:?}")).unwrap_err();
    assert!(told.to_string().contains("it is no directory"), "{told}");
}

/// What was given to the disk before its refusal was heard begins nothing anew, and what is offered afterwards does.
#[test]
fn what_was_on_its_way_to_the_disk_is_refused_too() {
    let (_dir, file, inbox) = places(1000);
    fs::create_dir(&inbox).unwrap();
    fs::write(inbox.join("file"), "mine").unwrap();
    let (manifest, _) = Manifest::scan(&[file], &mut |_, _| {}).unwrap();
    let list = manifest.encode();
    let offer = Offer {
        identity: manifest.identity(),
        manifest: list.len() as u64,
        cut: Cut { chunk: CHUNK, each: 1 },
        unfilled: false,
    };
    let behind = [
        Task::Buffer(vec![(0, 0..1000)], vec![1; 1000]),
        Task::Finish([0; 32]),
        Task::Offer(offer),
    ];
    let desk = Desk::start(inbox.clone(), false).unwrap();
    let tasks = [Task::Offer(offer), Task::Manifest(list)].into_iter().chain(behind);
    tasks.for_each(|task| desk.give(task));
    desk.give(Task::Look(offer));
    let done: Vec<Done> = std::iter::from_fn(|| desk.next()).take(4).collect();
    let [Done::Wanted(_), Done::Failed(_), Done::Emptied(_), Done::Looked(true)] = &done[..] else {
        panic!("{} answers", done.len())
    };
    assert_eq!(names(&inbox), ["file"]);
    desk.give(Task::Renew);
    desk.give(Task::Offer(offer));
    assert!(matches!(desk.next(), Some(Done::Wanted(_))));
}

/// Whoever is told that a name was taken meanwhile may allow that it is replaced, and the end goes on with that.
#[test]
fn what_came_into_the_way_may_be_replaced_later() {
    let (_dir, file, inbox) = places(1000);
    let (manifest, _) = Manifest::scan(std::slice::from_ref(&file), &mut |_, _| {}).unwrap();
    let (list, data) = (manifest.encode(), fs::read(&file).unwrap());
    let offer = Offer {
        identity: manifest.identity(),
        manifest: list.len() as u64,
        cut: Cut { chunk: CHUNK, each: 1 },
        unfilled: false,
    };
    let root = root([*blake3::hash(&data).as_bytes()].into_iter());
    let ends = |replace: bool, tasks: Vec<Task>| {
        let desk = Desk::start(inbox.clone(), replace).unwrap();
        tasks.into_iter().for_each(|task| desk.give(task));
        let mut done = std::iter::from_fn(|| desk.next());
        done.find(|it| matches!(it, Done::Failed(_) | Done::Finished(_))).unwrap()
    };
    fs::create_dir(&inbox).unwrap();
    let desk = Desk::start(inbox.clone(), false).unwrap();
    desk.give(Task::Offer(offer));
    desk.give(Task::Manifest(list));
    desk.give(Task::Buffer(vec![(0, 0..data.len())], data.clone()));
    let _: Vec<Done> = std::iter::from_fn(|| desk.next()).take(4).collect();
    drop(desk);
    fs::write(inbox.join("file"), "mine").unwrap();
    for replace in [false, true] {
        match ends(replace, vec![Task::Offer(offer), Task::Finish(root)]) {
            Done::Failed(TransferError::Exists(_)) => assert!(!replace, "it may be replaced"),
            Done::Finished(_) => assert!(replace, "it may not"),
            other => panic!("{other:?}"),
        }
    }
    assert!(fs::read(inbox.join("file")).unwrap() == data);
}

/// A directory with an old file, and one below it or not.
fn make_tree(at: &Path, is_whole: bool) {
    fs::create_dir_all(at.join("tree")).unwrap();
    let mut file = fs::File::create(at.join("tree/file")).unwrap();
    file.write_all(b"data").unwrap();
    file.set_modified(std::time::UNIX_EPOCH).unwrap();
    if is_whole {
        fs::create_dir(at.join("tree/below")).unwrap();
    }
}

/// What a sender of that directory says of it.
fn offer_of_tree(at: &Path) -> (Offer, Vec<u8>) {
    make_tree(at, true);
    let (manifest, _) = Manifest::scan(&[at.join("tree")], &mut |_, _| {}).unwrap();
    let list = manifest.encode();
    let (identity, length) = (manifest.identity(), list.len() as u64);
    (
        Offer { identity, manifest: length, cut: Cut { chunk: CHUNK, each: 1 }, unfilled: false },
        list,
    )
}

/// A receiver that is stopped while it reads what stands there already was stopped, and nothing is in the way.
#[test]
fn who_is_stopped_while_it_reads_what_stands_there_says_so() {
    let (dir, _, inbox) = places(0);
    let (offer, list) = offer_of_tree(dir.path());
    make_tree(&inbox, true);
    let desk = Desk::start(inbox, false).unwrap();
    desk.halt();
    let tasks = [Task::Offer(offer), Task::Manifest(list), Task::Look(offer)];
    tasks.into_iter().for_each(|task| desk.give(task));
    let done: Vec<Done> = std::iter::from_fn(|| desk.next()).take(3).collect();
    let [_, Done::Failed(why), Done::Looked(_)] = &done[..] else { panic!("{done:?}") };
    assert!(matches!(why, TransferError::Stopped), "{why}");
}

/// Who sends what stands there already is told so before it is read: what it sends meanwhile is in vain. If it turns out to be something
/// else it is refused after all.
#[test]
fn what_stands_there_is_told_before_it_is_read() {
    let (dir, _, inbox) = places(0);
    let (offer, list) = offer_of_tree(dir.path());
    for is_same in [true, false] {
        let inbox = inbox.join(is_same.to_string());
        make_tree(&inbox, is_same);
        let desk = Desk::start(inbox, false).unwrap();
        let tasks = [Task::Offer(offer), Task::Manifest(list.clone()), Task::Finish([0; 32])];
        tasks.into_iter().for_each(|task| desk.give(task));
        let done: Vec<Done> = std::iter::from_fn(|| desk.next()).take(4).collect();
        let [_, Done::Known { .. }, Done::Root(Answer::Whole), Done::Failed(why)] = &done[..]
        else {
            panic!("{} answers", done.len())
        };
        // Nobody's root is zero.
        assert_eq!(matches!(why, TransferError::Otherwise(_)), is_same, "{why}");
    }
}
