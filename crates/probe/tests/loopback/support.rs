//! A server of one's own, and sessions at it.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use trunkline_core::Span;
use trunkline_probe::Key;
use trunkline_probe::client::{Connection, Target};
use trunkline_probe::server::{Options, Server};

pub const KEY: &[u8] = &[7; 32];

pub fn options() -> Options {
    Options {
        key: Some(Key::new([7; 32])),
        handshake: Span::from_millis(300),
        ..Options::at("127.0.0.1:0".parse().unwrap())
    }
}

pub fn target(server: &Server, key: Option<&[u8]>) -> Target {
    Target {
        host: server.address().ip().to_string(),
        port: server.address().port(),
        key: key.map(|key| Key::new(key.try_into().unwrap())),
    }
}

pub fn connect(server: &Server) -> Connection {
    Connection::open(&target(server, Some(KEY)), &Arc::new(AtomicBool::new(false))).unwrap()
}
