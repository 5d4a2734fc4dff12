//! First words with an OPEN as a receiver gets them from somebody who only says them again, or too late.

use crate::link::Link;
use crate::session::{ADDED, Caller, Early, Met, Session};
use crate::tests::{There, key, options, places, same};
use crate::words::{Ask, Offer};
use crate::{CHUNK, Control, Cut, HEADER, PACKET, Sending, send};
use std::fs;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{sleep, spawn};
use std::time::Duration;
use trunkline_core::{Span, Time};
use trunkline_transport::netblt::wire::{Burst, Dialect, Packet, Ports, Terms, encode};

const PORTS: Ports = Ports { local: 7, foreign: 1 };
/// Octets of a buffer: few, so that the receiver has room for hundreds, and would say much.
const BUFFER: u32 = CHUNK / 16;
/// Octets of datagrams that show that the path takes the data.
const FULL: usize = ADDED + HEADER + PACKET as usize;

/// A caller that offers a transfer with its first words, in datagrams of so many octets and buffers of so many.
fn caller(number: u8, length: usize, buffer: u32) -> Caller {
    let cut = Cut { chunk: buffer, each: 1 };
    let offer = Offer { identity: [number; 32], manifest: 100, cut, unfilled: false };
    let terms = Terms {
        uid: number.into(),
        buffer,
        packet: PACKET,
        burst: Burst { size: 1000, interval: 1 },
        outstanding: 500,
        death: 60,
        write: true,
        text: Ask::Offer(offer).text(),
        ..Terms::default()
    };
    let mut packet = Vec::new();
    encode(Dialect::V5, PORTS, &Packet::Open(terms), &mut packet);
    let early = Early { packet, length, copies: 1 };
    Caller::begin(&key(), false, Some(early), Time::ZERO).unwrap()
}

fn socket() -> UdpSocket {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    socket
}

/// All that comes until nothing comes for a while.
fn heard(socket: &UdpSocket) -> Vec<Vec<u8>> {
    let mut buffer = [0; 2000];
    let next = || socket.recv(&mut buffer).ok().map(|length| buffer[..length].to_vec());
    std::iter::from_fn(next).collect()
}

/// Words are answered with no more octets than they have, however often they come, and nothing is made on the disk. They are
/// answered without the OPEN if they are shorter than the data that they propose.
#[test]
fn words_with_an_open_are_answered_with_less() {
    let (_dir, _, inbox) = places(0);
    let there = There::start(&inbox, key(), false);
    let mut answers = Vec::new();
    for (length, buffer) in [(FULL, BUFFER), (FULL, CHUNK), (FULL - 1, BUFFER)] {
        let socket = socket();
        let words = caller(1, length, buffer).say(Time::ZERO).unwrap().0.to_vec();
        assert_eq!(words.len(), length);
        let (mut sent, mut got) = (0, 0);
        for copies in [1, 1, 2, 20] {
            for _ in 0..copies {
                sent += socket.send_to(&words, there.address).unwrap();
            }
            let come = heard(&socket);
            got += come.iter().map(Vec::len).sum::<usize>();
            assert!(got <= sent, "{got} octets for {sent}");
            answers.extend(come.iter().map(|it| it[..2].to_vec()));
        }
        assert_eq!(answers[0], [8, u8::from(length == FULL)]);
        // Behind one copy come the RESPONSE and GOs.
        assert_eq!(
            answers.get(1..3).is_some_and(|it| it.iter().all(|it| it[0] == 5)),
            length == FULL
        );
        answers.clear();
    }
    assert_eq!(fs::read_dir(&inbox).unwrap().count(), 0);
    there.control.stop();
    there.end().unwrap_err();
}

/// Old words that offer another transfer, again and again and from many places, disturb none that is at work or begins.
#[test]
fn words_said_again_disturb_no_transfer() {
    let (_dir, file, inbox) = places(3_000_000);
    let there = There::start(&inbox, key(), false);
    let words = caller(1, FULL, BUFFER).say(Time::ZERO).unwrap().0.to_vec();
    let (stop, to) = (Arc::new(AtomicBool::new(false)), there.address);
    let end = Arc::clone(&stop);
    let stranger = spawn(move || {
        let sockets: Vec<UdpSocket> = (0..8).map(|_| socket()).collect();
        for at in (0..sockets.len()).cycle() {
            let _ = sockets[at].send_to(&words, to);
            if end.load(Ordering::Relaxed) {
                return;
            }
            sleep(Duration::from_millis(1));
        }
    });
    sleep(Duration::from_millis(100));
    let mut lost = 0;
    let tell = &mut |what: &Sending| lost += u32::from(*what == Sending::Lost);
    let sent = send(&options(&file, there.address, key()), &Control::default(), tell);
    stop.store(true, Ordering::Relaxed);
    stranger.join().unwrap();
    assert_eq!((sent.unwrap().had, lost), (0, 0));
    there.end().unwrap();
    same(&file, &inbox);
}

/// Meets the receiver by words with an OPEN, which it answers.
fn meet(link: &mut Link, to: SocketAddr, caller: &mut Caller) -> Session {
    let words = caller.say(Time::ZERO).unwrap().0.to_vec();
    link.put(to, |out| out.extend(words));
    link.flush();
    let mut met = None;
    while met.is_none() {
        link.wait(link.now() + Span::from_secs(5));
        link.receive(|_, _, datagram| {
            met = met.take().or_else(|| caller.hear(Time::ZERO, datagram).unwrap());
        })
        .unwrap();
    }
    let Met { session, opened, .. } = met.unwrap();
    assert_eq!(opened, Some(Time::ZERO));
    session
}

/// Two have got an answer to their OPENs. Whoever shows first that it is there gets the receiver; the other is told to begin again.
#[test]
fn of_two_that_are_answered_the_first_is_taken() {
    let (_dir, _, inbox) = places(0);
    let there = There::start(&inbox, key(), false);
    let to = there.address;
    let mut links = [(); 2].map(|()| Link::bind((Ipv4Addr::LOCALHOST, 0).into(), false).unwrap());
    let [first, second] = &mut links;
    let mut one = meet(first, to, &mut caller(1, FULL, BUFFER));
    let mut other = meet(second, to, &mut caller(2, FULL, BUFFER));
    one.say(first, to, PORTS, &Packet::Keepalive, &[]);
    first.flush();
    sleep(Duration::from_millis(200));
    let mut is_unknown = false;
    for _ in 0..20 {
        other.say(second, to, PORTS, &Packet::Keepalive, &[]);
        second.flush();
        second.wait(second.now() + Span::from_millis(100));
        second.receive(|_, _, datagram| is_unknown |= other.is_unknown(datagram)).unwrap();
    }
    assert!(is_unknown);
    let mut is_known = true;
    first.receive(|_, _, datagram| is_known &= !one.is_unknown(datagram)).unwrap();
    assert!(is_known);
    there.control.stop();
    there.end().unwrap_err();
}
