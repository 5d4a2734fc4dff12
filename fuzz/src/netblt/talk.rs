//! A body for whole ends of NETBLT, to which a peer says what octets choose.

use super::{answer, connection};
use trunkline_core::{Span, Time};
use trunkline_transport::Extent;
use trunkline_transport::netblt::wire::{
    Burst, Data, Dialect, Message, NullAck, Packet, Parity, Ports, Said, Terms, encode,
};
use trunkline_transport::netblt::{Connection, Habits, NETBLT, RateLaw};
use trunkline_transport::protocol::{Frame, Header, Protocol, Values};

/// Octets that choose a packet and how long it is in coming.
const EACH: usize = 8;
/// The terms of a laboratory's end, small ones.
const SMALL: &str = "frame=100,packets=10,outstanding=4";
/// The same at a fixed rate, in the layout of RFC 998.
const CLASSIC: &str = "frame=100,packets=10,outstanding=4,interval=7ms";
/// Milliseconds from one packet to the next.
const PAUSES: [u64; 8] = [0, 1, 7, 60, 300, 2_000, 20_000, 700_000];
/// Ports of a laboratory's ends: that of a listener, and of the first connections.
const LISTENING: u16 = 1;
const ACTIVE: u16 = 0x4000;

/// Packets near those of a young transfer, to a connection that opens, to two that were opened, and to ends of a laboratory
/// with messages to send. Each comes to rest after every packet, and delivers no more than came, in order.
pub fn converse(data: &[u8]) {
    let mut ends = [connection(true), connection(false), opening()];
    let mut laboratory = [End::new(SMALL), End::new(CLASSIC)];
    let mut now = Time::ZERO;
    laboratory.iter_mut().for_each(|it| it.rest(now));
    for octets in data.chunks_exact(EACH) {
        let octets: &[u8; EACH] = octets.first_chunk().expect("an exact chunk");
        now += Span::from_millis(PAUSES[usize::from(octets[7] % 8)]);
        let packet = packet(octets);
        ends.iter_mut().for_each(|end| answer(end, &packet, now));
        laboratory.iter_mut().for_each(|end| end.hear(now, octets, &packet));
    }
}

/// An active end that sends.
fn opening() -> Connection {
    let cap = Burst { size: 1, interval: 0 };
    let habits = Habits { dialect: Dialect::V5, rate: RateLaw::Adaptive, cap };
    let ports = Ports { local: 1, foreign: 2 };
    let terms = Terms { outstanding: 4, parity: true, ..terms(&[0, 0, 1, 0, 0, 1, 0, 0]) };
    Connection::open(Time::ZERO, terms, ports, habits).leading().expecting(Span::from_millis(100))
}

fn terms(octets: &[u8; EACH]) -> Terms {
    let [_, _, uid, buffer, packet, flags, ..] = *octets;
    Terms {
        uid: uid.into(),
        buffer: if buffer & 15 == 0 { 4000 } else { u32::from(buffer) * 50 },
        packet: if packet & 15 == 0 { 1000 } else { u16::from(packet) * 10 },
        burst: Burst { size: 100, interval: 1 },
        outstanding: (flags >> 3 & 7).into(),
        death: if flags & 4 == 0 { 60 } else { flags.into() },
        write: flags & 1 != 0,
        parity: flags & 2 != 0,
        ..Terms::default()
    }
}

/// The packet that octets choose.
fn packet(octets: &[u8; EACH]) -> Packet {
    let [kind, _, sequence, buffer, packet, flags, bytes, _] = *octets;
    let ack = if flags & 128 != 0 { u16::MAX - u16::from(sequence) } else { sequence.into() };
    let (buffer, last) = (u32::from(buffer), flags & 1 != 0);
    let burst = Burst { size: (flags >> 3 & 7).into(), interval: (flags >> 5 & 3).into() };
    let reason = || vec![b'r'; usize::from(flags & 7)];
    match kind % 13 {
        0 => Packet::Open(terms(octets)),
        1 => Packet::Response(terms(octets)),
        2 => Packet::Quit(reason()),
        3 => Packet::QuitAck,
        4 => Packet::Abort(reason()),
        5 | 6 => Packet::Data(Data {
            ends_buffer: flags & 2 != 0,
            buffer,
            touched: buffer + u32::from(flags >> 3 & 3),
            ack,
            packet: packet.into(),
            last,
            burst,
            bytes: if bytes < 128 { 100 } else { u16::from(bytes) * 8 },
            ..Data::default()
        }),
        7 => Packet::NullAck(NullAck { touched: buffer, ack, burst, last }),
        8 | 9 => Packet::Control(messages(octets, ack, burst)),
        10 => Packet::Refused(reason()),
        11 => Packet::Done,
        _ => Packet::Parity(Parity {
            buffer,
            touched: buffer,
            ack,
            row: (flags >> 3 & 3).into(),
            packets: packet.into(),
            tail: bytes.into(),
            last,
            bytes: 1000,
            ..Parity::default()
        }),
    }
}

/// One message, or a GO and what follows it.
fn messages(octets: &[u8; EACH], sequence: u16, offer: Burst) -> Vec<Message> {
    let [kind, _, _, buffer, packet, flags, bytes, _] = *octets;
    let said = match flags % 3 {
        0 => Said::Go,
        1 => Said::Ok { offer, timer: u16::from(bytes) * 9 },
        _ => Said::Resend {
            offer,
            missing: (0..u16::from(bytes % 9)).map(|it| it * 2 + u16::from(packet)).collect(),
        },
    };
    let one = Message { sequence, buffer: buffer.into(), said };
    let go = Message { sequence: sequence.wrapping_sub(1), said: Said::Go, ..one.clone() };
    if kind % 13 == 8 { vec![one] } else { vec![go, one] }
}

/// An end of a laboratory with messages to send, and what has come of it.
struct End {
    protocol: Box<dyn Protocol>,
    dialect: Dialect,
    came: u64,
    taken: u64,
    units: u64,
}

impl End {
    fn new(values: &str) -> End {
        let is_classic = values == CLASSIC;
        let values = Values::parse("netblt", NETBLT.keys, values).expect("values of the keys");
        let mut protocol = (NETBLT.build)(&values).expect("a possible end");
        for (start, bytes) in [(0, 1), (1, 2500), (2501, 20_000)] {
            protocol.offer(Time::ZERO, Extent::new(start, bytes), true);
        }
        let dialect = if is_classic { Dialect::Classic } else { Dialect::V5 };
        End { protocol, dialect, came: 0, taken: 0, units: 0 }
    }

    fn hear(&mut self, now: Time, octets: &[u8; EACH], packet: &Packet) {
        let far = ACTIVE + u16::from(octets[1] >> 1 & 7);
        let ports = match octets[1] & 1 {
            0 => Ports { local: far, foreign: LISTENING },
            _ => Ports { local: LISTENING, foreign: far },
        };
        let mut header = Vec::new();
        encode(self.dialect, ports, packet, &mut header);
        let bytes = match packet {
            Packet::Data(data) => data.bytes,
            _ => 0,
        };
        let data = Extent::new(self.came, bytes.into());
        self.came += u64::from(bytes);
        self.protocol.receive(now, &Frame { header: Header::new(&header), data });
        self.read(now);
        self.rest(now);
        assert!(self.taken <= self.came, "{} of {}", self.taken, self.came);
        assert!(self.protocol.unsent() + self.protocol.unanswered() <= 22_501);
    }

    fn read(&mut self, now: Time) {
        let before = self.taken;
        while let Some(unit) = self.protocol.take() {
            assert_eq!(unit.number, self.units, "units are counted");
            (self.taken, self.units) = (self.taken + u64::from(unit.data.len), self.units + 1);
        }
        self.protocol.consumed(now, self.taken - before);
    }

    /// It says all it has to say, and then nothing is due any more.
    fn rest(&mut self, now: Time) {
        for _ in 0..9 {
            let said = std::iter::from_fn(|| self.protocol.transmit(now)).take(2000).count();
            assert!(said < 2000, "{said} packets, and perhaps no end");
            if self.protocol.deadline().is_none_or(|at| at > now) {
                return;
            }
            self.protocol.expire(now);
        }
        panic!("its deadline stays at {:?}, and it is {now:?}", self.protocol.deadline());
    }
}
