//! Bodies for the packets of NETBLT, and for connections that hear them.

mod talk;

pub use talk::converse;

use trunkline_core::{Span, Time};
use trunkline_transport::netblt::wire::{
    Burst, Dialect, Packet, Ports, Read, Terms, data_checksum, decode, encode,
};
use trunkline_transport::netblt::{Connection, Habits, Limits, Out, RateLaw, Receiver, parity};

const PORTS: Ports = Ports { local: 1, foreign: 2 };

/// Packets, each behind its length in two octets, with their checksums put right. What is read can be written and is read
/// the same, and neither half of a connection that hears it all says or keeps more than it may.
pub fn hear(data: &[u8]) {
    let mut ends = [connection(true), connection(false)];
    let (mut rest, mut now) = (data, Time::ZERO);
    while let Some((length, behind)) = rest.split_first_chunk() {
        let length = usize::from(u16::from_be_bytes(*length)).min(behind.len());
        let (octets, behind) = behind.split_at(length);
        rest = behind;
        now += Span::from_millis(7);
        let _ = decode(octets);
        if let Ok(read) = decode(&with_sum(octets)) {
            again(&read);
            ends.iter_mut().for_each(|end| answer(end, &read.packet, now));
        }
    }
}

fn connection(write: bool) -> Connection {
    let terms = Terms {
        uid: 1,
        buffer: 4000,
        packet: 1000,
        burst: Burst { size: 100, interval: 1 },
        outstanding: 4,
        write,
        parity: true,
        ..Terms::default()
    };
    let cap = Burst { size: 1, interval: 0 };
    let habits = Habits { dialect: Dialect::V5, rate: RateLaw::Adaptive, cap };
    let limits = Limits { parity: true, ..Limits::default() };
    let accepted = Connection::accept(Time::ZERO, &terms, PORTS, habits, &limits);
    let mut connection = accepted.expect("possible terms");
    connection.provide(8);
    connection
}

/// The octets with the checksum of their header put right.
fn with_sum(octets: &[u8]) -> Vec<u8> {
    let mut octets = octets.to_vec();
    let Some(&[.., version, kind]) = octets.first_chunk::<4>() else { return octets };
    let is_data = matches!((version, kind), (2 | 3, 6 | 7) | (4 | 5, 5 | 6) | (5, 12));
    let stated = octets.get(4..6).map_or(0, |it| usize::from(u16::from_be_bytes([it[0], it[1]])));
    let header = match (is_data, version) {
        (true, 2 | 3) => 24,
        (true, _) => 32,
        (false, _) => stated,
    };
    octets[..2].fill(0);
    let sum = data_checksum(&octets[..header.min(octets.len())]);
    octets[..2].copy_from_slice(&sum.to_be_bytes());
    octets
}

/// What was read is written, and read the same.
fn again(read: &Read) {
    let mut written = Vec::new();
    encode(read.dialect, read.ports, &read.packet, &mut written);
    let again = decode(&written).expect("what was written");
    assert_eq!((&again.packet, again.ports), (&read.packet, read.ports));
}

fn answer(end: &mut Connection, packet: &Packet, now: Time) {
    end.receive(now, packet, true);
    if let Packet::Parity(parity) = packet
        && let Some(buffer) = end.receive_parity(now, parity, true)
        && let Some(half) = end.receiver()
        && let Some(holes) = half.holes(buffer)
    {
        assert!(holes.missing.len() <= 4 && holes.bytes <= 4000);
        half.fill_in(buffer);
    }
    let mut octets = Vec::new();
    for _ in 0..1000 {
        if let Some(sender) = end.sender()
            && sender.wants().is_some()
        {
            sender.fill(sender.buffer_size(), false);
        }
        match end.transmit(now) {
            None => break,
            Some(Out::Packet(packet)) => encode(Dialect::V5, PORTS, &packet, &mut octets),
            Some(Out::Data(sending)) => assert!(sending.offset < 4000),
            Some(Out::Parity(parity, _)) => assert!(usize::from(parity.row) < parity::MOST),
        }
    }
    assert!(octets.len() < 1 << 16, "{} octets for one packet", octets.len());
    while end.receiver().and_then(Receiver::take).is_some() {}
    end.expire(now);
}
