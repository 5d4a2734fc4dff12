//! Something between the hosts changes what goes over TCP: no figure comes of it.

use crate::support::{KEY, options, target};
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use trunkline_core::{Rate, Span};
use trunkline_probe::client::bulk::{self, BulkPlan, Repeat};
use trunkline_probe::client::rtt::{RttPlan, measure};
use trunkline_probe::client::transfer::{Transfer, Ways};
use trunkline_probe::client::{Connection, Target};
use trunkline_probe::server::Server;
use trunkline_probe::stamp::calibrate;
use trunkline_probe::wire::message::Transport;

/// Octets that are read at once; what fills them is a transfer's, and is changed.
const MANY: usize = 3000;

/// A path to `server` that changes the last octet of what is many, one way.
fn altering(server: SocketAddr, up: bool) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let near = listener.local_addr().unwrap();
    thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let Ok(far) = TcpStream::connect(server) else { break };
            let (from, to) = (client.try_clone().unwrap(), far.try_clone().unwrap());
            thread::spawn(move || carry(from, to, up));
            thread::spawn(move || carry(far, client, !up));
        }
    });
    near
}

fn carry(mut from: TcpStream, mut to: TcpStream, alters: bool) {
    let mut buffer = [0; MANY];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        buffer[count - 1] ^= u8::from(alters && count == MANY);
        if to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
    let _ = from.shutdown(Shutdown::Both);
}

fn through(server: &Server, up: bool) -> Connection {
    let at = altering(server.address(), up);
    let aim = Target { host: at.ip().to_string(), port: at.port(), ..target(server, Some(KEY)) };
    Connection::open(&aim, &Arc::new(AtomicBool::new(false))).unwrap()
}

#[test]
fn no_transfer_comes_of_changed_octets() {
    for up in [true, false] {
        let server = Server::start(options()).unwrap();
        let connection = through(&server, up);
        let transfer = Transfer {
            transport: Transport::Tcp,
            streams: 1,
            size: None,
            rate: Some(Rate::from_bits_per_second(50_000_000)),
            duration: Span::from_millis(500),
            interval: Span::from_millis(100),
            congestion: None,
            window: (1024, 7),
        };
        let ways = if up { Ways::Up } else { Ways::Down };
        let plan = BulkPlan { transfer, ways, warmup: Span::ZERO, repeat: Repeat::Times(1) };
        let told = match bulk::measure(&connection, &plan, &mut |_| {}) {
            Ok(done) => done.failure.map(|failure| failure.to_string()),
            Err(error) => Some(error.to_string()),
        };
        assert!(told.as_ref().is_some_and(|told| told.contains("changed on the way")), "{told:?}");
    }
}

#[test]
fn no_round_trip_comes_of_changed_octets() {
    for up in [true, false] {
        let server = Server::start(options()).unwrap();
        let connection = through(&server, up);
        let plan = RttPlan {
            sizes: vec![20_000],
            count: 5,
            timeout: Span::from_millis(500),
            ..RttPlan::new(Transport::Tcp)
        };
        let done = measure(&connection, &plan, calibrate(), &mut |_| {}).unwrap();
        let told = done.failure.map(|failure| failure.to_string());
        assert!(told.as_ref().is_some_and(|told| told.contains("changed on the way")), "{told:?}");
        assert_eq!(done.result.answered, 0);
    }
}
