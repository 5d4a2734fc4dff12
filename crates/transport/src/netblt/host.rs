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
    /// What is answered to a packet of no connection.
    answer: Option<(Dialect, Ports, Packet)>,
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
            answer: None,
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
            Err(reason) => {
                let refused = Packet::Refused(reason.as_bytes().to_vec());
                self.answer = Some((dialect, ports, refused));
            }
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
        if let Some((dialect, ports, answer)) = self.answer.take() {
            let frame = frame(dialect, ports, &answer, Extent::default());
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
            if read.dialect == self.habits.dialect
                && !self.outward.receive(now, ports, &read.packet)
                && matches!(read.packet, Packet::Control(_))
            {
                // Its receiver would say the same until its death timer ends.
                let gone = Packet::Abort(b"no such connection".to_vec());
                self.answer = Some((read.dialect, ports, gone));
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
        self.outward.learn(self.inward[index].connection.round());
        let before = self.place_of(index);
        place.map(|place| before + place)
    }

    fn take(&mut self) -> Option<Delivery> {
        self.forget();
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netblt::RateLaw;
    use crate::netblt::wire::{Burst, Data, Message, Said};

    /// A receiver whose sender has gone, because its DONE and then its patience were lost, would ask for ten minutes.
    #[test]
    fn who_speaks_to_a_connection_that_is_gone_is_told_so() {
        let cap = Burst { size: 1, interval: 0 };
        let habits = Habits { dialect: Dialect::V5, rate: RateLaw::Adaptive, cap };
        let mut end = Netblt::new(Terms { buffer: 1000, packet: 100, ..Terms::default() }, habits);
        let ports = Ports { local: LISTENING, foreign: ACTIVE.0 + 7 };
        let go = Message { sequence: 1, buffer: 1, said: Said::Go };
        let mut hears = |packet| {
            let frame = frame(Dialect::V5, ports, &packet, Extent::default());
            assert_eq!(end.receive(Time::ZERO, &frame), None);
            end.transmit(Time::ZERO).map(|it| wire::decode(it.frame.header.octets()).unwrap())
        };
        for _ in 0..2 {
            let told = hears(Packet::Control(vec![go.clone()])).expect("an answer");
            assert_eq!(told.ports, ports.turned());
            assert!(matches!(told.packet, Packet::Abort(_)), "{:?}", told.packet);
        }
        // No ends abort each other for ever.
        assert_eq!(hears(Packet::Abort(Vec::new())), None);
        assert_eq!(hears(Packet::Done), None);
    }
    /// A connection that its sender gave up before anything came does not stay in front of the next.
    #[test]
    fn a_transfer_that_was_given_up_holds_none_up() {
        let cap = Burst { size: 1, interval: 0 };
        let habits = Habits { dialect: Dialect::V5, rate: RateLaw::Adaptive, cap };
        let burst = Burst { size: 5, interval: 1 };
        let terms = Terms { buffer: 1000, packet: 100, burst, outstanding: 4, ..Terms::default() };
        let terms = Terms { death: 60, write: true, ..terms };
        let mut end = Netblt::new(terms.clone(), habits);
        let mut hears = |uid: u16, packet: Packet, data: Extent| {
            let ports = Ports { local: ACTIVE.0 + uid, foreign: LISTENING };
            let place = end.receive(Time::ZERO, &frame(Dialect::V5, ports, &packet, data));
            (place, end.take().map(|it| it.data.len))
        };
        for uid in [1, 2] {
            let open = Packet::Open(Terms { uid: uid.into(), ..terms.clone() });
            assert_eq!(hears(uid, open, Extent::default()), (None, None));
        }
        let last = Data {
            ends_buffer: true,
            buffer: 1,
            touched: 1,
            last: true,
            bytes: 7,
            ..Data::default()
        };
        assert_eq!(hears(2, Packet::Data(last), Extent::new(0, 7)), (Some(0), None));
        assert_eq!(hears(1, Packet::Abort(Vec::new()), Extent::default()), (None, Some(7)));
    }
    /// One byte is not worth five hundred GOs. Where a message's end is not known, all that was agreed on may be under way.
    #[test]
    fn a_short_message_is_allowed_what_it_needs() {
        let cap = Burst { size: 1, interval: 0 };
        let habits = Habits { dialect: Dialect::V5, rate: RateLaw::Adaptive, cap };
        let burst = Burst { size: 5, interval: 1 };
        let terms = Terms { buffer: 1000, packet: 100, burst, ..Terms::default() };
        let proposed = |bytes, end| {
            let terms = Terms { outstanding: 512, ..terms.clone() };
            let mut one = Netblt::new(terms, habits);
            one.offer(Time::ZERO, Extent::new(0, bytes), end);
            let open = one.transmit(Time::ZERO).unwrap();
            match wire::decode(open.frame.header.octets()).unwrap().packet {
                Packet::Open(terms) => terms.outstanding,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(
            [(1, true), (0, true), (2001, true)].map(|(it, end)| proposed(it, end)),
            [1, 1, 3]
        );
        assert_eq!([(1_000_000, true), (1000, false)].map(|(it, end)| proposed(it, end)), [512; 2]);
    }

    /// A small end that listens, and terms that it accepts.
    fn listening() -> (Netblt, Terms) {
        let cap = Burst { size: 1, interval: 0 };
        let habits = Habits { dialect: Dialect::V5, rate: RateLaw::Adaptive, cap };
        let burst = Burst { size: 5, interval: 1 };
        let terms = Terms { buffer: 1000, packet: 100, burst, outstanding: 4, ..Terms::default() };
        let terms = Terms { death: 60, write: true, ..terms };
        (Netblt::new(terms.clone(), habits), terms)
    }

    /// An OPEN that comes late, when others have been since, would deliver its message again.
    #[test]
    fn an_open_of_no_use_opens_nothing() {
        let (mut end, terms) = listening();
        let mut says = |uid: u16, packet: Packet| {
            let ports = Ports { local: ACTIVE.0 + uid, foreign: LISTENING };
            end.receive(Time::ZERO, &frame(Dialect::V5, ports, &packet, Extent::default()));
            assert_eq!(end.take(), None);
            let said = std::iter::from_fn(|| end.transmit(Time::ZERO));
            let read = said.map(|it| wire::decode(it.frame.header.octets()).unwrap().packet);
            read.filter(|it| matches!(it, Packet::Response(_) | Packet::Refused(_))).count()
        };
        let open =
            |uid: u16, write| Packet::Open(Terms { uid: uid.into(), write, ..terms.clone() });
        let impossible = Packet::Open(Terms { uid: 1, packet: 0, ..terms.clone() });
        assert_eq!(says(1, impossible), 1, "it is refused");
        assert_eq!(says(2, open(2, true)), 1);
        assert_eq!((says(1, open(1, true)), says(3, open(3, false))), (0, 0));
        assert_eq!((3..10).map(|uid| says(uid, open(uid, true))).sum::<usize>(), 7);
        assert_eq!(says(10, open(10, true)), 0, "more than are kept");
        assert_eq!(says(2, Packet::Abort(Vec::new())), 0);
        assert_eq!((says(2, open(2, true)), says(10, open(10, true))), (0, 1));
    }

    /// Whoever answers in another layout than it was asked in is not the end that was asked.
    #[test]
    fn an_answer_in_another_layout_is_none() {
        let (mut end, _) = listening();
        end.offer(Time::ZERO, Extent::new(0, 1), true);
        let open = end.transmit(Time::ZERO).unwrap();
        let open = wire::decode(open.frame.header.octets()).unwrap();
        let Packet::Open(terms) = open.packet else { panic!("{:?}", open.packet) };
        let mut held = |dialect| {
            let response = Packet::Response(terms.clone());
            let answer = frame(dialect, open.ports.turned(), &response, Extent::default());
            assert_eq!(end.receive(Time::ZERO, &answer), None);
            end.held(Time::ZERO)
        };
        assert_eq!(held(Dialect::V4), Some(Held::Opening));
        assert_ne!(held(Dialect::V5), Some(Held::Opening));
    }

    /// What has come whole and is confirmed is delivered, though its connection has ended before anybody took it.
    #[test]
    fn what_is_confirmed_outlives_its_connection() {
        let (mut end, terms) = listening();
        let ports = Ports { local: ACTIVE.0 + 1, foreign: LISTENING };
        let last = Data { ends_buffer: true, buffer: 1, touched: 1, ..Data::default() };
        let last = Data { last: true, bytes: 7, ..last };
        let open = Packet::Open(Terms { uid: 1, ..terms });
        for (packet, bytes) in [(open, 0), (Packet::Data(last), 7), (Packet::Abort(Vec::new()), 0)]
        {
            end.receive(Time::ZERO, &frame(Dialect::V5, ports, &packet, Extent::new(0, bytes)));
            end.expire(Time::ZERO);
        }
        assert_eq!(end.take().map(|it| it.data.len), Some(7));
    }

    /// The second message of a stream begins where the first ends.
    #[test]
    fn a_short_message_behind_a_long_one_is_short() {
        let (mut one, terms) = listening();
        let (mut other, mut proposed, mut now) = (listening().0, Vec::new(), Time::ZERO);
        one.offer(now, Extent::new(0, 2001), true);
        one.offer(now, Extent::new(2001, 1), true);
        assert!(terms.outstanding > 3);
        for _ in 0..200 {
            while let Some(Outgoing { frame, .. }) = one.transmit(now) {
                if let Packet::Open(terms) = wire::decode(frame.header.octets()).unwrap().packet {
                    proposed.push(terms.outstanding);
                }
                other.receive(now, &frame);
                while let Some(unit) = other.take() {
                    other.consumed(now, unit.data.len.into());
                }
            }
            while let Some(Outgoing { frame, .. }) = other.transmit(now) {
                one.receive(now, &frame);
            }
            let due = one.deadline().into_iter().chain(other.deadline()).min();
            now = due.map_or(now, |it| it.max(now));
            [&mut one, &mut other].into_iter().for_each(|it| it.expire(now));
        }
        proposed.dedup();
        assert_eq!(proposed, [3, 1]);
    }
}
