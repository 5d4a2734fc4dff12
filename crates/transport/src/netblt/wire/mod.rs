//! The packets of NETBLT, typed and as octets.
//!
//! Three layouts are known: that of RFC 998, and versions 4 and 5 of later drafts, which name in each data packet the
//! highest buffer touched and the burst in force. RFC 998 does not say the value of its version octet; 2 is what a
//! later draft assigns it, 3 is read alike. All numbers are big-endian.
//!
//! ```text
//! 0 checksum 2, version 1, type 1, length 2, local port 2, foreign port 2, padding 2
//! ```
//!
//! The checksum of a data packet covers its header alone; the data have one of their own in it, if the ends agreed to.
//! Length counts the data and no padding behind them; of all other packets it counts padding too.

mod control;
mod decode;
mod encode;

pub(super) use control::resend_head;
pub use control::{Message, Said};
pub use decode::{Malformed, Read, decode};
pub use encode::encode;

use crate::checksum::checksum;

/// The number of the protocol in the header of IP (RFC 998 §1).
pub const IP_PROTOCOL: u8 = 30;
/// Octets of the header that all packets share.
pub const COMMON: usize = 12;
/// Octets of a reason or of a client's text at most, without what ends it (a choice; the length field allows more).
pub const MOST_TEXT: usize = 255;

/// The checksum of the data of a packet (RFC 998 §5.3: that of the Internet).
pub fn data_checksum(data: &[u8]) -> u16 {
    checksum(data, 0)
}

/// A layout of packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// RFC 998.
    Classic,
    /// That of MIL-STD-2045-44500, as draft-white-protocol-stack-00 describes it.
    V4,
    /// Of draft-white-tsvwg-netblt-02: version 4 with messages of users.
    V5,
}

impl Dialect {
    /// All of them.
    pub const ALL: [Dialect; 3] = [Dialect::Classic, Dialect::V4, Dialect::V5];

    /// The value of the version octet.
    pub fn version(self) -> u8 {
        match self {
            Dialect::Classic => 2,
            Dialect::V4 => 4,
            Dialect::V5 => 5,
        }
    }

    /// The layout that a version octet names.
    pub fn of_version(version: u8) -> Option<Dialect> {
        match version {
            2 | 3 => Some(Dialect::Classic),
            4 => Some(Dialect::V4),
            5 => Some(Dialect::V5),
            _ => None,
        }
    }

    /// Octets in front of the data of a data packet.
    pub const fn data_header(self) -> usize {
        if self.is_classic() { 24 } else { 32 }
    }

    /// Octets of a NULL-ACK.
    pub fn null_ack(self) -> usize {
        if self.is_classic() { 20 } else { 24 }
    }

    /// The number of the first buffer that a receiver asks for.
    pub fn first_buffer(self) -> u32 {
        u32::from(!self.is_classic())
    }

    /// Whether it is that of RFC 998.
    pub const fn is_classic(self) -> bool {
        matches!(self, Dialect::Classic)
    }
}

/// The ports of the end that sends a packet, and of the one it is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ports {
    /// Of the end that sends it.
    pub local: u16,
    /// Of the end that it is for.
    pub foreign: u16,
}

impl Ports {
    /// Those of what comes back.
    pub fn turned(self) -> Ports {
        Ports { local: self.foreign, foreign: self.local }
    }
}

/// How much goes out in one go, and how often.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Burst {
    /// Data packets.
    pub size: u16,
    /// Milliseconds from the start of one burst to the start of the next; 0 is no limit.
    pub interval: u16,
}

/// What an OPEN proposes, or a RESPONSE settles.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Terms {
    /// The number of the connection.
    pub uid: u32,
    /// Bytes of a buffer.
    pub buffer: u32,
    /// Bytes of the transfer; 0 is not stated. Versions 4 and 5 have no place for it.
    pub transfer: u32,
    /// User bytes of a data packet.
    pub packet: u16,
    /// The burst.
    pub burst: Burst,
    /// After how many seconds of silence whoever says this holds the other end for dead; 0 is never.
    pub death: u16,
    /// Whether the data have a checksum.
    pub checksum: bool,
    /// Whether the active end sends the data; else it gets them.
    pub write: bool,
    /// Whether the data may be followed by parity; version 5 alone.
    pub parity: bool,
    /// Buffers that may be under way at once.
    pub outstanding: u16,
    /// The client's own, without NUL.
    pub text: Vec<u8>,
}

/// The header of DATA or LDATA.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Data {
    /// Whether it is the last packet of its buffer (LDATA).
    pub ends_buffer: bool,
    /// The buffer.
    pub buffer: u32,
    /// The highest buffer of which anything has been sent; versions 4 and 5.
    pub touched: u32,
    /// All control messages up to this number have come.
    pub ack: u16,
    /// The number of the packet in the buffer.
    pub packet: u16,
    /// The checksum of the data; 0 if there is none.
    pub checksum: u16,
    /// Whether the buffer is the last of the transfer.
    pub last: bool,
    /// The burst in force; versions 4 and 5.
    pub burst: Burst,
    /// Bytes of data.
    pub bytes: u16,
}

/// The header of PARITY: a sum of the packets of a buffer (`netblt::parity`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Parity {
    /// The buffer.
    pub buffer: u32,
    /// The highest buffer of which anything has been sent.
    pub touched: u32,
    /// All control messages up to this number have come.
    pub ack: u16,
    /// The number of the row.
    pub row: u16,
    /// Packets of the buffer.
    pub packets: u16,
    /// Bytes of the last of them.
    pub tail: u16,
    /// The checksum of the row; 0 if there is none.
    pub checksum: u16,
    /// Whether the buffer is the last of the transfer.
    pub last: bool,
    /// Bytes of the row.
    pub bytes: u16,
}

/// An acknowledgement of control messages without data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NullAck {
    /// The highest buffer of which anything has been sent; versions 4 and 5.
    pub touched: u32,
    /// All control messages up to this number have come.
    pub ack: u16,
    /// The burst in force.
    pub burst: Burst,
    /// Whether `touched` is the last buffer of the transfer; versions 4 and 5.
    pub last: bool,
}

/// A packet, but for its user data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Packet {
    /// The active end proposes a connection.
    Open(Terms),
    /// The passive end agrees, on these terms.
    Response(Terms),
    /// Nothing but a sign of life; not in versions 4 and 5.
    Keepalive,
    /// A client gives up, for a reason.
    Quit(Vec<u8>),
    /// The answer to it.
    QuitAck,
    /// An end gives up, for a reason.
    Abort(Vec<u8>),
    /// Data.
    Data(Data),
    /// An acknowledgement without data.
    NullAck(NullAck),
    /// Messages of the receiver.
    Control(Vec<Message>),
    /// The passive end does not agree, for a reason.
    Refused(Vec<u8>),
    /// The receiver has everything.
    Done,
    /// A message between users; version 5 alone.
    Text(Vec<u8>),
    /// A sum of packets; version 5 alone, and no draft's.
    Parity(Parity),
}

/// What stands in the type octet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Code {
    Open,
    Response,
    Keepalive,
    Quit,
    QuitAck,
    Abort,
    Data,
    Ldata,
    NullAck,
    Control,
    Refused,
    Done,
    Text,
    Parity,
}

/// The types of RFC 998 in the order of their numbers; those of versions 4 and 5 leave KEEPALIVE out and have one
/// more at the end, version 5 two.
const CODES: [Code; 14] = [
    Code::Open,
    Code::Response,
    Code::Keepalive,
    Code::Quit,
    Code::QuitAck,
    Code::Abort,
    Code::Data,
    Code::Ldata,
    Code::NullAck,
    Code::Control,
    Code::Refused,
    Code::Done,
    Code::Text,
    Code::Parity,
];

impl Code {
    fn number(self, dialect: Dialect) -> u8 {
        let number = self as u8;
        number - u8::from(!dialect.is_classic() && self as u8 > Code::Keepalive as u8)
    }

    fn of(number: u8, dialect: Dialect) -> Option<Code> {
        let later = !dialect.is_classic() && number >= Code::Keepalive as u8;
        let code = *CODES.get(usize::from(number) + usize::from(later))?;
        (!matches!(code, Code::Text | Code::Parity) || dialect == Dialect::V5).then_some(code)
    }
}

#[cfg(test)]
pub(super) mod tests;
