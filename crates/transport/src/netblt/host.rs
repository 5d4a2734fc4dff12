//! NETBLT between two hosts of a laboratory: each message is a transfer, with a connection of its own.
//!
//! A host hands over a stream that is cut into messages. The messages go one after the other: the next connection is opened
//! when the last buffer of the one before is confirmed. Data go out when they fill a buffer, or when their message ends. The
//! unit that a host follows is the data packet.

mod inward;
mod outward;

use super::connection::{Connection, Half, Out};
use super::habits::Habits;
use super::terms::Limits;
use super::wire::{self, Dialect, Packet, Ports, Terms};
use crate::protocol::{Delivery, Frame, Header, Outgoing, Protocol};
use crate::{Counters, Endpoint, Extent, Held};
use inward::Inward;
use outward::Outward;
use std::collections::VecDeque;
use trunkline_core::Time;

/// The port at which every end listens.
const LISTENING: u16 = 1;
/// The first port of an active end, and how many there are.
const ACTIVE: (u16, u16) = (0x4000, 0x8000);
/// Transfers of the other end of which the last is still being read or answered for.
const MOST_INWARD: usize = 8;

/// One end.
#[derive(Debug)]
pub(super) struct Netblt {
    habits: Habits,
    limits: Limits,
    outward: Outward,
    inward: VecDeque<Inward>,
    /// The number of the newest connection that the other end has opened.
    newest: u32,
    /// Units of the other end's transfers before the first of `inward`.
    taken: u64,
    /// A connection that is refused, and why.
    refusal: Option<(Dialect, Ports, &'static str)>,
}

impl Netblt {
    pub fn new(terms: Terms, habits: Habits) -> Netblt {
        let limits = Limits { death: terms.death, ..Limits::default() };
        Netblt {
            habits,
            limits,
            outward: Outward::new(terms, habits),
            inward: VecDeque::new(),
            newest: 0,
            taken: 0,
            refusal: None,
        }
    }

    /// The other end opens a connection, in a layout that is its choice.
    fn opened(&mut self, now: Time, terms: &Terms, ports: Ports, dialect: Dialect) {
        let is_new = terms.uid.wrapping_sub(self.newest).wrapping_sub(1) < 1 << 31;
        if !is_new || !terms.write || self.inward.len() >= MOST_INWARD {
            return;
        }
        let habits = Habits { dialect, ..self.habits };
        match Connection::accept(now, terms, ports, habits, &self.limits) {
            Ok(mut connection) => {
                connection.knocked(now, terms);
                self.newest = terms.uid;
                self.inward.push_back(Inward::new(connection));
            }
            Err(reason) => self.refusal = Some((dialect, ports, reason)),
        }
    }

    /// Drops transfers that are over and read.
    fn forget(&mut self) {
        while self.inward.front().is_some_and(Inward::is_over) {
            let Some(inward) = self.inward.pop_front() else { break };
            self.taken += inward.units();
        }
    }

    fn place_of(&self, index: usize) -> u64 {
        self.taken + self.inward.iter().take(index).map(Inward::units).sum::<u64>()
    }
}

/// A packet as it goes out, with the stretch of the stream that it carries.
fn frame(dialect: Dialect, ports: Ports, packet: &Packet, data: Extent) -> Frame {
    let mut octets = Vec::with_capacity(64);
    wire::encode(dialect, ports, packet, &mut octets);
    Frame { header: Header::new(&octets), data }
}

/// What a connection wants to be sent, as a packet.
fn packet(out: Out) -> Packet {
    match out {
        Out::Packet(packet) => packet,
        Out::Data(sending) => Packet::Data(sending.header),
        Out::Parity(parity, _) => Packet::Parity(parity),
    }
}

impl Endpoint for Netblt {
    fn units_of(&self, bytes: u32, end: bool) -> u64 {
        self.outward.units_of(bytes, end)
    }

    fn consumed(&mut self, _now: Time, bytes: u64) {
        let mut left = bytes;
        for inward in &mut self.inward {
            left = inward.consumed(left);
        }
        self.forget();
    }

    fn deadline(&self) -> Option<Time> {
        let inward = self.inward.iter().filter_map(|it| it.connection.deadline()).min();
        inward.into_iter().chain(self.outward.deadline()).min()
    }

    fn expire(&mut self, now: Time) {
        self.outward.expire(now);
        self.inward.iter_mut().for_each(|it| it.connection.expire(now));
        self.forget();
    }

    fn unsent(&self) -> u64 {
        self.outward.unsent()
    }

    fn unanswered(&self) -> u64 {
        self.outward.unanswered()
    }

    fn held(&self, _now: Time) -> Option<Held> {
        self.outward.held()
    }

    fn room(&self) -> u64 {
        self.outward.room()
    }

    fn gathers(&self) -> bool {
        true
    }

    fn dead(&self) -> bool {
        self.outward.is_dead()
    }

    fn counters(&self) -> Counters {
        let mut counters = self.outward.counters();
        for inward in &self.inward {
            if let Some(Half::Receiver(receiver)) = inward.connection.half() {
                counters.timeouts += receiver.received.data_timeouts;
            }
        }
        counters
    }
}

impl Protocol for Netblt {
    fn offer(&mut self, now: Time, data: Extent, end: bool) {
        self.outward.offer(now, data, end);
    }

    fn transmit(&mut self, now: Time) -> Option<Outgoing> {
        if let Some((dialect, ports, reason)) = self.refusal.take() {
            let refused = Packet::Refused(reason.as_bytes().to_vec());
            let frame = frame(dialect, ports, &refused, Extent::default());
            return Some(Outgoing { frame, unit: None });
        }
        for inward in &mut self.inward {
            let connection = &mut inward.connection;
            if let Some(out) = connection.transmit(now) {
                let (dialect, ports) = (connection.dialect(), connection.ports());
                let frame = frame(dialect, ports, &packet(out), Extent::default());
                return Some(Outgoing { frame, unit: None });
            }
        }
        let (ports, out, data, unit) = self.outward.transmit(now)?;
        Some(Outgoing { frame: frame(self.habits.dialect, ports, &packet(out), data), unit })
    }

    fn receive(&mut self, now: Time, frame: &Frame) -> Option<u64> {
        let read = wire::decode(frame.header.octets()).ok()?;
        let ports = read.ports.turned();
        if ports.local != LISTENING {
            if read.dialect == self.habits.dialect {
                self.outward.receive(now, ports, &read.packet);
            }
            return None;
        }
        let known = self.inward.iter().position(|it| it.connection.ports() == ports);
        let Some(index) = known else {
            if let Packet::Open(terms) = &read.packet {
                self.opened(now, terms, ports, read.dialect);
            }
            return None;
        };
        if read.dialect != self.inward[index].connection.dialect() {
            return None;
        }
        if let Packet::Data(data) = &read.packet
            && u32::from(data.bytes) != frame.data.len
        {
            return None;
        }
        let place = self.inward[index].receive(now, &read.packet, frame.data);
        let before = self.place_of(index);
        place.map(|place| before + place)
    }

    fn take(&mut self) -> Option<Delivery> {
        let mut before = self.taken;
        for inward in &mut self.inward {
            if let Some(mut unit) = inward.take() {
                unit.number += before;
                self.forget();
                return Some(unit);
            }
            if !inward.is_read() {
                return None;
            }
            before += inward.units();
        }
        None
    }
}
