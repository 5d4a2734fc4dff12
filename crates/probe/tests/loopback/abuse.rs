//! Strangers, liars, and those who open and never close.

use crate::support::{KEY, connect, options, target};
use std::io::{Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use trunkline_core::Span;
use trunkline_probe::ProbeError;
use trunkline_probe::client::Connection;
use trunkline_probe::client::rtt::{RttPlan, measure};
use trunkline_probe::server::{Options, Server, network};
use trunkline_probe::stamp::calibrate;
use trunkline_probe::wire::message::Transport;

fn open(server: &Server, key: Option<&[u8]>) -> Result<Connection, ProbeError> {
    Connection::open(&target(server, key), &Arc::new(AtomicBool::new(false)))
}

fn until(what: &str, mut done: impl FnMut() -> bool) {
    let limit = Instant::now() + Duration::from_secs(20);
    while !done() {
        assert!(Instant::now() < limit, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn the_wrong_key_no_key_and_a_key_too_many() {
    let server = Server::start(options()).unwrap();
    for (key, words) in [(Some(&[8; 32][..]), "wrong key"), (None, "asks for a key")] {
        let complaint = open(&server, key).unwrap_err().to_string();
        assert!(complaint.contains(words) && !complaint.contains('\n'), "{complaint}");
    }
    assert_eq!((server.statistics().refused_keys, server.sessions()), (2, 0));
    let open_server = Server::start(Options { key: None, ..options() }).unwrap();
    let complaint = open(&open_server, Some(KEY)).unwrap_err().to_string();
    assert!(complaint.contains("cannot prove"), "{complaint}");
    assert!(open(&open_server, None).is_ok());
}

#[test]
fn addresses_that_are_not_allowed_and_sessions_too_many() {
    let allow = vec![network("10.1.0.0/16").unwrap()];
    let server = Server::start(Options { allow, ..options() }).unwrap();
    let complaint = open(&server, Some(KEY)).unwrap_err().to_string();
    assert!(complaint.contains("--allow"), "{complaint}");
    assert_eq!(server.statistics().refused_addresses, 1);
    let server = Server::start(Options { max_sessions: 1, ..options() }).unwrap();
    let first = open(&server, Some(KEY)).unwrap();
    let complaint = open(&server, Some(KEY)).unwrap_err().to_string();
    assert!(complaint.contains("--max-sessions"), "{complaint}");
    drop(first);
    until("the place is free again", || open(&server, Some(KEY)).is_ok());
}

#[test]
fn garbage_is_counted_and_does_no_harm() {
    let server = Server::start(options()).unwrap();
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    stranger.connect(server.address()).unwrap();
    stranger.set_nonblocking(true).unwrap();
    let connection = connect(&server);
    let ended = AtomicBool::new(false);
    let stop = &ended;
    let done = std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut sent = 0u32;
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                let size = (sent % 1400) as usize;
                let _ = stranger.send(&vec![sent as u8; size]);
                sent += 1;
                std::thread::sleep(Duration::from_micros(300));
            }
            // Not one of them was answered.
            assert!(stranger.recv(&mut [0; 8]).is_err());
        });
        let plan = RttPlan { sizes: vec![64], count: 200, ..RttPlan::new(Transport::Udp) };
        let done = measure(&connection, &plan, calibrate(), &mut |_| {});
        until("garbage is counted", || server.statistics().garbage_datagrams > 100);
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        done
    });
    let done = done.unwrap();
    assert_eq!((done.result.sent, done.result.answered), (200, 200));
    assert!(done.failure.is_none());
}

#[test]
fn who_opens_and_says_nothing_or_nonsense_is_sent_away() {
    let server = Server::start(options()).unwrap();
    let mut silent: Vec<TcpStream> =
        (0..100).map(|_| TcpStream::connect(server.address()).unwrap()).collect();
    // While they sit there, who knows the key gets in.
    let connection = connect(&server);
    for stream in &mut silent {
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        assert!(matches!(stream.read(&mut [0]), Ok(0) | Err(_)));
    }
    let mut foreign = TcpStream::connect(server.address()).unwrap();
    foreign.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    assert!(matches!(foreign.read(&mut [0]), Ok(0) | Err(_)));
    until("all are counted", || {
        let seen = server.statistics();
        seen.silent > 0 && seen.foreign == 1 && seen.connections == 102
    });
    assert!(connection.host().is_ok());
}

#[test]
fn a_session_that_says_nothing_is_closed() {
    let idle = Span::from_millis(400);
    let server = Server::start(Options { idle, ..options() }).unwrap();
    let connection = connect(&server);
    assert_eq!(server.sessions(), 1);
    // Its signs of life come every five seconds, which is too seldom for this server.
    until("it is closed", || server.sessions() == 0);
    until("the client notices", || connection.is_gone());
    assert!(connection.host().unwrap_err().to_string().contains("gone"));
}

#[test]
fn a_session_ends_when_its_time_is_over() {
    let most = Span::from_millis(500);
    let server = Server::start(Options { max_duration: most, ..options() }).unwrap();
    let connection = connect(&server);
    until("the client hears why", || connection.is_gone());
    assert!(connection.lost().unwrap().to_string().contains("--max-duration"));
    until("it is forgotten", || server.sessions() == 0);
}

#[test]
fn strangers_are_kept_out_and_ports_taken_are_said() {
    let error = Server::start(Options::at("0.0.0.0:0".parse().unwrap())).unwrap_err();
    assert!(matches!(error, ProbeError::WrongUse(_)));
    let server = Server::start(options()).unwrap();
    let taken = Options { bind: server.address(), ..options() };
    let complaint = Server::start(taken).unwrap_err().to_string();
    assert!(complaint.contains("--port") && !complaint.contains('\n'), "{complaint}");
}
