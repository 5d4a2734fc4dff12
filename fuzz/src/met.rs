//! A body for a receiver and a sender that have met: what either seals, and what others send under its name.

use std::collections::BTreeSet;
use trunkline_core::{Span, Time};
use trunkline_mover::incoming::{Current, Stream, Task};
use trunkline_mover::session::{Caller, Door, Knock, Session, unknown};
use trunkline_mover::{Cut, Secret};
use trunkline_transport::netblt::wire::{
    Burst, Data, Dialect, NullAck, Packet, Parity, Ports, Terms, encode,
};
use trunkline_transport::netblt::{Connection, Habits, Limits, Out, RateLaw};

/// Octets of a packet's data, the chunks and buffers of the transfer, and octets of a list that takes a buffer and a half.
const PACKET: u16 = 50;
const CUT: Cut = Cut { chunk: 2 * PACKET as u32, each: 2 };
const BUFFER: u32 = CUT.chunk * CUT.each;
const LIST: u64 = 300;
/// Buffers that may be under way.
const OUTSTANDING: u16 = 4;
const PORTS: Ports = Ports { local: 1, foreign: 2 };
/// Milliseconds from one datagram to the next.
const PAUSES: [u64; 4] = [0, 1, 40, 3000];

/// Datagrams, each behind a kind and its octets' number. What nobody has sealed is not heard, what was sealed is heard once and is what it
/// was, and a receiver hands on nothing that a transfer cannot have, and nothing twice.
pub fn hear(data: &[u8]) {
    let Some((&first, mut rest)) = data.split_first() else { return };
    let (mut near, mut there) = met(first & 1 == 1);
    let mut receiver = End::new(first & 2 == 2, first & 4 == 4);
    while let Some((&[kind, length], behind)) = rest.split_first_chunk() {
        let (octets, behind) = behind.split_at(behind.len().min(length.into()));
        rest = behind;
        receiver.now += Span::from_millis(PAUSES[usize::from(kind >> 6)]);
        strange(&mut there, octets);
        let plain = match kind & 1 {
            0 => octets.to_vec(),
            _ => packet(octets),
        };
        let mut datagram = Vec::new();
        near.seal(&plain, &mut datagram);
        if kind & 2 == 2 {
            damaged(&mut there, &datagram, octets);
        }
        assert!(there.is_meant(&datagram) && near.hear(&datagram).is_none(), "its own word");
        if let Some((read, data)) = there.hear(&datagram) {
            let says = match &read.packet {
                Packet::Data(head) => head.bytes,
                Packet::Parity(head) => head.bytes,
                _ => 0,
            };
            assert!(plain[read.header..].starts_with(data) && data.len() == usize::from(says));
            receiver.take(&read.packet, data);
        }
        assert!(there.hear(&datagram).is_none(), "a copy");
    }
}

/// Both ends of a session, in the clear or not.
fn met(is_clear: bool) -> (Session, Session) {
    let begun = Caller::begin(&Secret::None, is_clear, None, Time::ZERO);
    let mut caller = begun.expect("random numbers");
    let words = caller.say(Time::ZERO).expect("first words").0.to_vec();
    let Ok(Knock::Session(answer, there)) = Door::new(Secret::None, true).knock(&words) else {
        panic!("who needs no secret is let in");
    };
    let met = caller.hear(Time::ZERO, &answer).expect("a good answer").expect("a session");
    (met.session, *there)
}

/// Octets that nobody sealed say nothing, whatever is in front of them.
fn strange(there: &mut Session, octets: &[u8]) {
    assert!(there.hear(octets).is_none());
    assert!(unknown(octets).is_none_or(|answer| answer.len() < octets.len()));
}

/// A datagram with an octet changed: in the clear that may be one of its data, but neither its length nor what stands around them.
fn damaged(there: &mut Session, datagram: &[u8], octets: &[u8]) {
    const IN_FRONT: usize = 5;
    const BEHIND: usize = 16;
    let Some((&at, &by)) = octets.first().zip(octets.get(1)) else { return };
    let mut other = datagram.to_vec();
    let at = match usize::from(at) % (IN_FRONT + BEHIND) {
        at if at < IN_FRONT => at,
        at => other.len() - 1 - (at - IN_FRONT),
    };
    other[at] ^= by.max(1);
    assert!(there.hear(&other).is_none(), "octet {at} of {}", other.len());
}

/// A packet of NETBLT that octets choose, with data behind it that may be fewer or more than it says.
fn packet(octets: &[u8]) -> Vec<u8> {
    let mut fields = [0; 8];
    fields.iter_mut().zip(octets).for_each(|(to, from)| *to = *from);
    let [kind, buffer, number, flags, bytes, ack, ..] = fields;
    let data = octets.get(fields.len()..).unwrap_or_default();
    let (buffer, last) = (buffer.into(), flags & 1 == 1);
    let bytes = if bytes < 128 { PACKET } else { (bytes - 128).into() };
    let touched = buffer + u32::from(flags >> 2 & 3);
    let packet = match kind % 6 {
        0..=2 => Packet::Data(Data {
            ends_buffer: flags & 2 == 2,
            buffer,
            touched,
            ack: ack.into(),
            packet: number.into(),
            last,
            bytes,
            ..Data::default()
        }),
        3 => Packet::Parity(Parity {
            buffer,
            touched,
            row: number.into(),
            packets: (flags >> 4 & 7).into(),
            tail: bytes,
            last,
            bytes: if flags & 2 == 2 { bytes } else { PACKET },
            ..Parity::default()
        }),
        4 => Packet::NullAck(NullAck { touched, ack: ack.into(), last, ..NullAck::default() }),
        _ => Packet::Done,
    };
    let mut plain = Vec::new();
    encode(Dialect::V5, PORTS.turned(), &packet, &mut plain);
    plain.extend(data);
    // Mostly as many as it says.
    let fits = match &packet {
        Packet::Data(head) => usize::from(head.bytes),
        Packet::Parity(head) => usize::from(head.bytes),
        _ => 0,
    };
    if flags & 128 == 0 {
        plain.resize(plain.len() - data.len() + fits, 7);
    }
    plain
}

/// A receiver's connection at work, and what it has handed on.
struct End {
    current: Current,
    now: Time,
    /// Chunks that it was to bring, if not all.
    list: Option<Vec<u64>>,
    written: BTreeSet<u64>,
    has_list: bool,
    has_root: bool,
}

impl End {
    /// One that brings a list, in a last buffer that may be shorter than others, and everything behind it, or some chunks.
    fn new(is_new: bool, is_short: bool) -> End {
        let terms = Terms {
            uid: 1,
            buffer: BUFFER,
            packet: PACKET,
            burst: Burst { size: 100, interval: 1 },
            outstanding: OUTSTANDING,
            death: 60,
            write: true,
            parity: true,
            ..Terms::default()
        };
        let cap = Burst { size: 1, interval: 0 };
        let habits = Habits { dialect: Dialect::V5, rate: RateLaw::Adaptive, cap };
        let limits = Limits { parity: true, ..Limits::default() };
        let made = Connection::accept(Time::ZERO, &terms, PORTS, habits, &limits);
        let list = (!is_new).then(|| vec![3, 4, 7]);
        let stream = match &list {
            None => Stream::everything(CUT, LIST),
            Some(list) => Stream::chunks(CUT, list.clone(), list.len() as u64),
        };
        let mut made = made.expect("possible terms");
        if is_new && is_short {
            let half = made.receiver().expect("it receives");
            half.shorten(LIST / u64::from(BUFFER), LIST as u32 % BUFFER);
        }
        let current = Current::new((1, 1), made, stream, 0, (6, Span::ZERO));
        let (written, now) = (BTreeSet::new(), Time::ZERO);
        End { current, now, list, written, has_list: false, has_root: false }
    }

    /// Takes a packet in, writes what comes of it, and says all that it has to say.
    fn take(&mut self, packet: &Packet, data: &[u8]) {
        let mut tasks = Vec::new();
        self.current.take(self.now, packet, data, &mut |task| tasks.push(task));
        tasks.into_iter().for_each(|task| self.handed_on(task));
        for _ in 0..1000 {
            match self.current.connection.transmit(self.now) {
                None => break,
                Some(Out::Packet(_)) => {}
                Some(_) => panic!("a receiver sends no data"),
            }
        }
        if self.current.connection.deadline().is_some_and(|at| at <= self.now) {
            self.current.connection.expire(self.now);
        }
    }

    fn handed_on(&mut self, task: Task) {
        assert!(!self.has_root, "{task:?} behind the root");
        match task {
            Task::Manifest(octets) => {
                assert!(self.list.is_none() && !self.has_list && octets.len() as u64 == LIST);
                self.has_list = true;
            }
            Task::Chunk(chunk, data) => self.written(chunk, data.len()),
            Task::Buffer(chunks, data) => {
                chunks
                    .into_iter()
                    .for_each(|(chunk, place)| self.written(chunk, data[place].len()));
                self.current.emptied(data, 0);
            }
            Task::Finish(_) => self.has_root = true,
            other => panic!("{other:?} was not asked for"),
        }
    }

    fn written(&mut self, chunk: u64, octets: usize) {
        let is_wanted = self.list.as_ref().is_none_or(|list| list.contains(&chunk));
        assert!(is_wanted && (self.list.is_some() || self.has_list), "chunk {chunk}");
        assert!(self.written.insert(chunk), "chunk {chunk} twice");
        assert!((1..=CUT.chunk as usize).contains(&octets), "{octets} octets");
    }
}
