//! Round trips of a transfer, counted over a path in this process.

use crate::session::ADDED;
use crate::tests::{There, key, options, places, same};
use crate::words::Answer;
use crate::{Control, PACKETS, Secret, Sending, send};
use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::{Duration, Instant};
use trunkline_handshake::ShortCode;
use trunkline_transport::netblt::wire::{Dialect, Packet, Ports, encode};

/// The path's delay each way: long beside what either end does between two datagrams.
const DELAY: Duration = Duration::from_millis(150);

/// How long a path that goes is away: longer than a sender goes on that is told nothing.
const GONE: Duration = Duration::from_secs(2);

/// A path to one receiver. It counts *trips*: a datagram's number is one more than the greatest of those that its sender had
/// got before.
pub(crate) struct PathTo {
    pub near: SocketAddr,
    trips: Arc<AtomicU32>,
    stop: Arc<AtomicBool>,
    /// Whether its sender is to be seen at another port from now on, and whether it is to go and come back after [`GONE`].
    moves: Arc<AtomicBool>,
    goes: Arc<AtomicBool>,
    /// Octets of the longest datagram that gets to the receiver.
    largest: Arc<AtomicUsize>,
    /// Octets of a datagram whose next that goes back is lost; 0 is none.
    lost: Arc<AtomicUsize>,
    thread: JoinHandle<Vec<u8>>,
}

/// A datagram under way: when it is there, whether it goes to the receiver, its number, and its octets.
struct UnderWay {
    due: Instant,
    forth: bool,
    trip: u32,
    octets: Vec<u8>,
}

impl PathTo {
    /// A path that loses what is sent to the receiver in datagrams of more than `largest` octets, without a word.
    pub fn new(receiver: SocketAddr, largest: usize) -> PathTo {
        let sockets = [0; 2].map(|_| UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap());
        sockets.iter().for_each(|it| it.set_nonblocking(true).unwrap());
        let near = sockets[0].local_addr().unwrap();
        let (trips, stop) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicBool::new(false)));
        let [moves, goes] = [0; 2].map(|_| Arc::new(AtomicBool::new(false)));
        let largest = Arc::new(AtomicUsize::new(largest));
        let (ours, end) = (Arc::clone(&trips), Arc::clone(&stop));
        let turns = [Arc::clone(&moves), Arc::clone(&goes)];
        let lost = Arc::new(AtomicUsize::new(0));
        let limits = [Arc::clone(&largest), Arc::clone(&lost)];
        let thread = spawn(move || carry(sockets, receiver, &limits, &ours, &end, &turns));
        PathTo { near, trips, stop, moves, goes, largest, lost, thread }
    }

    /// Ends it, and answers whether these octets have come by.
    pub fn has_seen(self, octets: &[u8]) -> bool {
        self.seen().windows(octets.len()).any(|it| it == octets)
    }

    /// Ends it, and answers what has come from the sender.
    fn seen(self) -> Vec<u8> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }

    /// Round trips until the sender had what it got last.
    fn end(self) -> f64 {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap();
        f64::from(self.trips.load(Ordering::Relaxed)) / 2.0
    }
}

fn carry(
    mut sockets: [UdpSocket; 2],
    receiver: SocketAddr,
    [largest, lost]: &[Arc<AtomicUsize>; 2],
    trips: &AtomicU32,
    stop: &AtomicBool,
    [moves, goes]: &[Arc<AtomicBool>; 2],
) -> Vec<u8> {
    let mut all = Vec::new();
    let (mut sender, mut at_receiver, mut under_way) = (None, 0, VecDeque::<UnderWay>::new());
    let mut buffer = vec![0; 65_536];
    while !stop.load(Ordering::Relaxed) {
        if moves.swap(false, Ordering::Relaxed) {
            sockets[1] = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            sockets[1].set_nonblocking(true).unwrap();
        }
        if goes.swap(false, Ordering::Relaxed) {
            let near = sockets[0].local_addr().unwrap();
            sockets[0] = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            under_way.clear();
            sleep(GONE);
            sockets[0] = UdpSocket::bind(near).unwrap();
            sockets[0].set_nonblocking(true).unwrap();
        }
        for (socket, forth) in sockets.iter().zip([true, false]) {
            while let Ok((length, from)) = socket.recv_from(&mut buffer) {
                let had = if forth { trips.load(Ordering::Relaxed) } else { at_receiver };
                if forth {
                    sender = Some(from);
                    all.extend_from_slice(&buffer[..length]);
                    if length > largest.load(Ordering::Relaxed) {
                        continue;
                    }
                } else if lost
                    .compare_exchange(length, 0, Ordering::Relaxed, Ordering::Relaxed)
                    .is_ok()
                {
                    continue;
                }
                let (due, trip) = (Instant::now() + DELAY, had + 1);
                under_way.push_back(UnderWay { due, forth, trip, octets: buffer[..length].into() });
            }
        }
        while let Some(it) = under_way.pop_front_if(|it| it.due <= Instant::now()) {
            match it.forth {
                true => {
                    at_receiver = at_receiver.max(it.trip);
                    sockets[1].send_to(&it.octets, receiver).unwrap();
                }
                false => {
                    trips.fetch_max(it.trip, Ordering::Relaxed);
                    let _ = sender.map(|to| sockets[0].send_to(&it.octets, to));
                }
            }
        }
        sleep(Duration::from_millis(1));
    }
    all
}

/// The round trips of a transfer from the sender's first word until it knows that all is in its place. The first datagram of `lost`
/// octets that comes back is lost.
fn rounds(file: &Path, inbox: &Path, secret: &Secret, lost: usize) -> f64 {
    let there = There::start(inbox, secret.clone(), false);
    let path = PathTo::new(there.address, usize::MAX);
    path.lost.store(lost, Ordering::Relaxed);
    send(&options(file, path.near, secret.clone()), &Control::default(), &mut |_| {}).unwrap();
    let rounds = path.end();
    there.control.stop();
    let _ = there.end();
    rounds
}

/// The first words with the offer, and the data, behind which the root goes and is answered by the end: two, and one more for a
/// code's exchange. Without a key nothing seals the offer, which then takes one more. A machine that stands still may add one, so
/// that the least of three counts.
#[test]
fn a_transfer_takes_two_round_trips() {
    let code = Secret::Code(ShortCode::draw().unwrap());
    for (secret, least) in [(key(), 2.0), (code, 3.0), (Secret::None, 3.0)] {
        let tries = (0..3).map(|_| {
            let (_dir, file, inbox) = places(10_000);
            let rounds = rounds(&file, &inbox, &secret, 0);
            same(&file, &inbox);
            rounds
        });
        let tries: Vec<f64> = tries.collect();
        assert!(tries.contains(&least) && tries.iter().all(|&it| it >= least), "{tries:?}");
    }
}

/// The last word is said again before the sender asks for it.
#[test]
fn a_lost_last_word_costs_no_round_trip() {
    let (ports, mut packet) = (Ports { local: 1, foreign: 1 }, Vec::new());
    encode(Dialect::V5, ports, &Packet::Text(Answer::Done.text()), &mut packet);
    let tries = (0..3).map(|_| {
        let (_dir, file, inbox) = places(10_000);
        let rounds = rounds(&file, &inbox, &key(), ADDED + packet.len());
        same(&file, &inbox);
        rounds
    });
    let tries: Vec<f64> = tries.collect();
    assert!(tries.contains(&2.0), "{tries:?}");
}

/// A translator of addresses forgets the sender, and what it sends comes from another port: the receiver answers there. No
/// second session comes about.
#[test]
fn a_sender_may_be_seen_at_another_port() {
    let (_dir, file, inbox) = places(3_000_000);
    let there = There::start(&inbox, key(), false);
    let path = PathTo::new(there.address, usize::MAX);
    let (mut calls, mut has_moved) = (0, false);
    let tell = &mut |what: &Sending| match what {
        Sending::Connect { seconds, .. } if *seconds < 0.5 => calls += 1,
        Sending::Send { confirmed, .. } if *confirmed > 0 && !has_moved => {
            has_moved = true;
            path.moves.store(true, Ordering::Relaxed);
        }
        _ => {}
    };
    send(&options(&file, path.near, key()), &Control::default(), tell).unwrap();
    there.end().unwrap();
    same(&file, &inbox);
    assert!(has_moved && !path.moves.load(Ordering::Relaxed));
    assert_eq!(calls, 1, "one session");
}

/// Where nobody listens the host says so, and a packet now and then is all that goes there: a sender that does not hear it goes on for
/// more than a second (some 700 packets) before it knows how often its receiver speaks.
#[test]
fn a_sender_heeds_its_host_if_nobody_listens() {
    let (_dir, file, inbox) = places(2_500_000);
    let there = There::start(&inbox, key(), false);
    let path = PathTo::new(there.address, usize::MAX);
    let (control, mut has_gone) = (Control::default(), false);
    control.set_cap(Some("8Mbit/s".parse().unwrap())).unwrap();
    let tell = &mut |what: &Sending| {
        if let Sending::Send { confirmed: 1.., .. } = what
            && !has_gone
        {
            has_gone = true;
            path.goes.store(true, Ordering::Relaxed);
        }
    };
    let sent = send(&options(&file, path.near, key()), &control, tell).unwrap();
    there.end().unwrap();
    same(&file, &inbox);
    let vain = (sent.wire - path.seen().len() as u64) / u64::from(PACKETS[0]);
    assert!(has_gone && vain > 0, "it has gone");
    assert!(vain < 100, "{vain} packets in vain");
}

/// A tunnel of 1280 octets on the way, whose words about that do not come back.
#[test]
fn a_path_that_loses_long_datagrams_is_sent_shorter_ones() {
    let (_dir, file, inbox) = places(1_000_000);
    let there = There::start(&inbox, key(), false);
    let path = PathTo::new(there.address, 1280 - 40 - 8);
    let (control, (ended, end)) = (Arc::new(Control::default()), channel::<()>());
    let watched = Arc::clone(&control);
    // It would try for ever.
    let watch = spawn(move || {
        if end.recv_timeout(Duration::from_secs(60)) == Err(RecvTimeoutError::Timeout) {
            watched.stop();
        }
    });
    let sent = send(&options(&file, path.near, key()), &control, &mut |_| {});
    drop(ended);
    watch.join().unwrap();
    let sent = sent.unwrap();
    path.end();
    there.end().unwrap();
    same(&file, &inbox);
    assert!(sent.packets >= 1_000_000 / u64::from(PACKETS[2]), "{sent:?}");
}

/// The path leads through a tunnel from some moment on: what has been confirmed is kept, and the rest goes in shorter packets.
#[test]
fn a_path_that_loses_long_datagrams_later_is_sent_shorter_ones() {
    let (_dir, file, inbox) = places(4_000_000);
    let there = There::start(&inbox, key(), false);
    let path = PathTo::new(there.address, usize::MAX);
    let (control, mut lost) = (Control::default(), 0);
    let begun = Instant::now();
    let tell = &mut |what: &Sending| {
        match what {
            Sending::Send { confirmed, .. } if *confirmed > 0 => {
                path.largest.store(1280 - 40 - 8, Ordering::Relaxed);
            }
            Sending::Lost => lost += 1,
            _ => {}
        }
        // It would try for ever.
        if begun.elapsed() > Duration::from_secs(60) {
            control.stop();
        }
    };
    let sent = send(&options(&file, path.near, key()), &control, tell).unwrap();
    there.end().unwrap();
    same(&file, &inbox);
    assert_eq!((sent.had, lost), (0, 1), "{sent:?}");
}
