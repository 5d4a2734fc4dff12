//! From packets to octets.

use super::{Burst, Code, Data, Dialect, NullAck, Packet, Parity, Ports, Terms, checksum};

/// Appends a packet to `out`; of a data packet and of parity the header, behind which its [`bytes`](Data::bytes) are to follow.
/// What `dialect` has no place for is left out; a KEEPALIVE is then an empty CONTROL.
pub fn encode(dialect: Dialect, ports: Ports, packet: &Packet, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend([0, 0, dialect.version(), code(packet, dialect), 0, 0]);
    for port in [ports.local, ports.foreign, 0] {
        out.extend(port.to_be_bytes());
    }
    let mut behind = 0;
    match packet {
        Packet::Open(terms) | Packet::Response(terms) => put_terms(terms, dialect, out),
        Packet::Keepalive | Packet::QuitAck | Packet::Done => {}
        Packet::Quit(text) | Packet::Abort(text) | Packet::Refused(text) | Packet::Text(text) => {
            put_text(text, out);
        }
        Packet::Data(data) => {
            put_data(data, dialect, out);
            behind = usize::from(data.bytes);
        }
        Packet::Parity(parity) => {
            put_parity(parity, out);
            behind = usize::from(parity.bytes);
        }
        Packet::NullAck(ack) => put_null_ack(ack, dialect, out),
        Packet::Control(messages) => {
            messages.iter().for_each(|message| message.encode(dialect, out));
        }
    }
    close(&mut out[start..], behind);
}

/// Sets the length and the checksum of a packet behind which so many octets of data follow.
fn close(octets: &mut [u8], behind: usize) {
    let length = (octets.len() + behind) as u16;
    octets[4..6].copy_from_slice(&length.to_be_bytes());
    let sum = checksum(octets, 0);
    octets[..2].copy_from_slice(&sum.to_be_bytes());
}

fn code(packet: &Packet, dialect: Dialect) -> u8 {
    let code = match packet {
        Packet::Open(_) => Code::Open,
        Packet::Response(_) => Code::Response,
        Packet::Keepalive if dialect.is_classic() => Code::Keepalive,
        Packet::Keepalive | Packet::Control(_) => Code::Control,
        Packet::Quit(_) => Code::Quit,
        Packet::QuitAck => Code::QuitAck,
        Packet::Abort(_) => Code::Abort,
        Packet::Data(data) if data.ends_buffer => Code::Ldata,
        Packet::Data(_) => Code::Data,
        Packet::NullAck(_) => Code::NullAck,
        Packet::Refused(_) => Code::Refused,
        Packet::Done => Code::Done,
        Packet::Text(_) => Code::Text,
        Packet::Parity(_) => Code::Parity,
    };
    code.number(dialect)
}

fn put_terms(terms: &Terms, dialect: Dialect, out: &mut Vec<u8>) {
    out.extend(terms.uid.to_be_bytes());
    out.extend(terms.buffer.to_be_bytes());
    if dialect.is_classic() {
        out.extend(terms.transfer.to_be_bytes());
    }
    let parity = terms.parity && dialect == Dialect::V5;
    let flags = u16::from(terms.write) | u16::from(terms.checksum) << 1 | u16::from(parity) << 2;
    let Burst { size, interval } = terms.burst;
    for word in [terms.packet, size, interval, terms.death, flags, terms.outstanding] {
        out.extend(word.to_be_bytes());
    }
    put_text(&terms.text, out);
}

/// A text, the NUL that ends it, and padding.
fn put_text(text: &[u8], out: &mut Vec<u8>) {
    out.extend(text);
    let padding = 4 - text.len() % 4;
    out.extend(std::iter::repeat_n(0, padding));
}

fn put_data(data: &Data, dialect: Dialect, out: &mut Vec<u8>) {
    out.extend(data.buffer.to_be_bytes());
    if !dialect.is_classic() {
        out.extend(data.touched.to_be_bytes());
    }
    for word in [data.ack, data.packet, data.checksum, u16::from(data.last)] {
        out.extend(word.to_be_bytes());
    }
    if !dialect.is_classic() {
        out.extend(data.burst.size.to_be_bytes());
        out.extend(data.burst.interval.to_be_bytes());
    }
}

fn put_parity(parity: &Parity, out: &mut Vec<u8>) {
    out.extend(parity.buffer.to_be_bytes());
    out.extend(parity.touched.to_be_bytes());
    let Parity { ack, row, packets, tail, checksum, last, .. } = *parity;
    for word in [ack, row, packets, tail, checksum, u16::from(last)] {
        out.extend(word.to_be_bytes());
    }
}

fn put_null_ack(ack: &NullAck, dialect: Dialect, out: &mut Vec<u8>) {
    let last = match dialect.is_classic() {
        true => 0,
        false => {
            out.extend(ack.touched.to_be_bytes());
            u16::from(ack.last)
        }
    };
    for word in [ack.ack, ack.burst.size, ack.burst.interval, last] {
        out.extend(word.to_be_bytes());
    }
}
