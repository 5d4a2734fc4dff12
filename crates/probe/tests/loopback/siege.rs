//! Who may ask is served while others attack, over paths of 1 ms and of 100 ms there and back.

#[path = "../../examples/siege/attack.rs"]
mod attack;

use crate::support::{KEY, options, target};
use attack::{Attack, Siege, attacks};
use std::io::{Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};
use trunkline_core::Span;
use trunkline_handshake::Initiator;
use trunkline_probe::Key;
use trunkline_probe::client::{Connection, Target};
use trunkline_probe::server::{Options, Server, network};
use trunkline_probe::wire::keys::CONTROL;

/// Times that a client asks under each attack.
const TRIES: usize = 20;

/// A path to `server` that takes `delay` each way: what connects here is connected there.
fn path(server: SocketAddr, delay: Duration) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let near = listener.local_addr().unwrap();
    thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            thread::spawn(move || {
                thread::sleep(delay);
                let Ok(far) = TcpStream::connect(server) else { return };
                let (from, to) = (client.try_clone().unwrap(), far.try_clone().unwrap());
                thread::spawn(move || carry(from, to, delay));
                carry(far, client, delay);
            });
        }
    });
    near
}

/// Carries octets, each chunk as late as its delay says.
fn carry(mut from: TcpStream, mut to: TcpStream, delay: Duration) {
    let (sender, receiver) = channel::<(Instant, Vec<u8>)>();
    let writer = thread::spawn(move || {
        for (due, octets) in receiver {
            thread::sleep(due.saturating_duration_since(Instant::now()));
            if to.write_all(&octets).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Both);
    });
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        let _ = sender.send((Instant::now() + delay, buffer[..count].to_vec()));
    }
    drop(sender);
    let _ = writer.join();
}

/// The number of tries that were served.
fn served(at: SocketAddr, server: &Server, key: Option<&[u8]>) -> usize {
    let (next, good) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let aim = Target { host: at.ip().to_string(), port: at.port(), ..target(server, key) };
    let ask = || {
        while next.fetch_add(1, Ordering::Relaxed) < TRIES {
            let asked = Connection::open(&aim, &Arc::new(AtomicBool::new(false)))
                .and_then(|connection| connection.host());
            match asked {
                Ok(_) => drop(good.fetch_add(1, Ordering::Relaxed)),
                Err(error) => eprintln!("not served: {error}"),
            }
        }
    };
    thread::scope(|scope| (0..10).for_each(|_| drop(scope.spawn(ask))));
    good.into_inner()
}

fn withstand(options: &Options, attack: &Attack) {
    let many = Options { max_sessions: 100, handshake: Span::from_secs(5), ..options.clone() };
    for delay in [Duration::from_micros(500), Duration::from_millis(50)] {
        let server = Server::start(many.clone()).unwrap();
        let siege = Siege::begin(server.address(), attack);
        // It is under way before anybody asks.
        thread::sleep(Duration::from_millis(500));
        let key = many.key.is_some().then_some(KEY);
        let good = served(path(server.address(), delay), &server, key);
        let seen = server.statistics();
        eprintln!(
            "{}: {good} of {TRIES} at {delay:?}; {} attacks; {seen:?}",
            attack.name,
            siege.made()
        );
        assert_eq!(good, TRIES, "{} at {delay:?} each way: {seen:?}", attack.name);
        assert!(siege.made() > 0 && seen.connections > TRIES as u64);
    }
}

fn addresses(count: u8) -> Vec<IpAddr> {
    (1..=count).map(|last| [127, 0, 1, last].into()).collect()
}

/// The first words of somebody with the key.
fn overheard() -> Vec<u8> {
    Initiator::begin(Some(&Key::new([7; 32])), CONTROL, &[]).unwrap().1
}

#[test]
fn a_host_that_is_not_allowed_stops_nobody() {
    let allowed = Options { allow: vec![network("127.0.0.1").unwrap()], ..options() };
    let attack =
        Attack { name: "not allowed", from: addresses(1), rate: 2, words: Vec::new(), held: 100 };
    withstand(&allowed, &attack);
    withstand(&allowed, &Attack { rate: 300, ..attack });
}

/// From the client's own address, and from 200 others.
#[test]
fn strangers_stop_nobody() {
    for from in [Vec::new(), addresses(200)] {
        for attack in attacks(&from, &overheard()) {
            withstand(&options(), &attack);
        }
    }
}

/// Whoever may come without a key can also shake hands: he only cannot crowd the others out.
#[test]
fn handshakes_without_a_key_stop_nobody() {
    let words = Initiator::begin(None, CONTROL, &[]).unwrap().1;
    let open = Options { key: None, ..options() };
    for from in [Vec::new(), addresses(200)] {
        let words = words.clone();
        withstand(&open, &Attack { name: "handshakes", from, rate: 1000, words, held: 4000 });
    }
}
