use super::*;
use crate::session::{Door, Secret, tests::meet};
use crate::{CHUNK, Control};
use std::net::{Ipv4Addr, UdpSocket};
use trunkline_transport::netblt::wire::{Burst, Dialect};
use trunkline_transport::netblt::{Habits, Limits, RateLaw};

/// A connection from `flow` that has been let send.
fn connection(flow: &Flow<'_>) -> Connection {
    let now = flow.link.now();
    let mut near = flow.proposed(b"offer").unwrap().connection(now, Span::ZERO, false);
    let Some(Out::Packet(Packet::Open(terms))) = near.transmit(now) else { panic!("no OPEN") };
    let (dialect, cap) = (Dialect::V5, Burst { size: 1, interval: 0 });
    let habits = Habits { dialect, rate: RateLaw::Adaptive, cap };
    let limits = Limits { buffer: CHUNK, parity: true, ..Limits::default() };
    let ports = near.ports().turned();
    let mut there = Connection::accept(now, &terms, ports, habits, &limits).unwrap();
    there.provide(1);
    while let Some(Out::Packet(packet)) = there.transmit(now) {
        near.receive(now, &packet, true);
    }
    near
}

/// As when the receiver tells the end by itself and its word that a buffer has come is lost.
#[test]
fn of_what_was_let_go_nothing_is_sent() {
    let nobody = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let link = Link::bind((Ipv4Addr::LOCALHOST, 0).into(), false).unwrap();
    let control = Control::default();
    let mut flow = Flow::new((link, vec![nobody.local_addr().unwrap()]), false, &control, CHUNK);
    let (mut session, _) = meet(&Secret::None, &mut Door::new(Secret::None, false)).unwrap();
    let mut near = connection(&flow);
    near.sender().unwrap().fill(1000, true);
    let is_due = (0..100).any(|_| {
        assert!(flow.turn(&mut session, &mut near, &mut BTreeMap::new()).unwrap());
        flow.rest(&mut near, NAP);
        near.sender().unwrap().sent.packets > 0
    });
    assert!(is_due, "nothing was to be sent");
}
