//! From octets to packets.

use super::{
    Burst, COMMON, Code, Data, Dialect, MOST_TEXT, Message, NullAck, Packet, Parity, Ports, Terms,
};
use crate::checksum::checksum;
use thiserror::Error;

/// What came is no packet of NETBLT, or not as it was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Malformed {
    /// It is shorter than its type or its length field says.
    #[error("a packet that is cut short")]
    Short,
    /// Its version is none that is known.
    #[error("a packet of an unknown version")]
    Version,
    /// Its type is none that the version has.
    #[error("a packet of an unknown type")]
    Type,
    /// Its header is not as it was sent.
    #[error("a packet whose checksum is wrong")]
    Checksum,
    /// A field contradicts another.
    #[error("a packet whose fields contradict each other")]
    Fields,
}

/// A packet as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Read {
    /// Its layout.
    pub dialect: Dialect,
    /// Its ports.
    pub ports: Ports,
    /// The packet.
    pub packet: Packet,
    /// Octets in front of its data.
    pub header: usize,
}

/// Reads a packet at the start of `octets`, of which the data of a data packet need not be there. What follows the
/// packet's length is ignored.
///
/// # Errors
/// If it is none.
pub fn decode(octets: &[u8]) -> Result<Read, Malformed> {
    let common: &[u8; COMMON] = octets.first_chunk().ok_or(Malformed::Short)?;
    let dialect = Dialect::of_version(common[2]).ok_or(Malformed::Version)?;
    let code = Code::of(common[3], dialect).ok_or(Malformed::Type)?;
    let word = |at: usize| u16::from_be_bytes([common[at], common[at + 1]]);
    let length = usize::from(word(4));
    let ports = Ports { local: word(6), foreign: word(8) };
    let is_data = matches!(code, Code::Data | Code::Ldata | Code::Parity);
    let header = if is_data { dialect.data_header() } else { length };
    if header < COMMON || length < header {
        return Err(Malformed::Fields);
    }
    let whole = octets.get(..header).ok_or(Malformed::Short)?;
    if checksum(whole, 0) != 0 {
        return Err(Malformed::Checksum);
    }
    let mut fields = Fields { rest: &whole[COMMON..], dialect };
    let packet = fields.packet(code, length - header)?;
    Ok(Read { dialect, ports, packet, header })
}

/// What is still to be read.
struct Fields<'a> {
    rest: &'a [u8],
    dialect: Dialect,
}

impl Fields<'_> {
    fn packet(&mut self, code: Code, bytes: usize) -> Result<Packet, Malformed> {
        Ok(match code {
            Code::Open => Packet::Open(self.terms()?),
            Code::Response => Packet::Response(self.terms()?),
            Code::Keepalive => Packet::Keepalive,
            Code::Quit => Packet::Quit(self.text()?),
            Code::QuitAck => Packet::QuitAck,
            Code::Abort => Packet::Abort(self.text()?),
            Code::Data => Packet::Data(self.data(false, bytes)?),
            Code::Ldata => Packet::Data(self.data(true, bytes)?),
            Code::NullAck => Packet::NullAck(self.null_ack()?),
            Code::Control => Packet::Control(self.messages()?),
            Code::Refused => Packet::Refused(self.text()?),
            Code::Done => Packet::Done,
            Code::Text => Packet::Text(self.text()?),
            Code::Parity => Packet::Parity(self.parity(bytes)?),
        })
    }

    fn word(&mut self) -> Result<u16, Malformed> {
        let (word, rest) = self.rest.split_first_chunk().ok_or(Malformed::Short)?;
        self.rest = rest;
        Ok(u16::from_be_bytes(*word))
    }

    fn long(&mut self) -> Result<u32, Malformed> {
        Ok(u32::from(self.word()?) << 16 | u32::from(self.word()?))
    }

    fn burst(&mut self) -> Result<Burst, Malformed> {
        Ok(Burst { size: self.word()?, interval: self.word()? })
    }

    fn terms(&mut self) -> Result<Terms, Malformed> {
        let (uid, buffer) = (self.long()?, self.long()?);
        let transfer = if self.dialect.is_classic() { self.long()? } else { 0 };
        let (packet, burst, death) = (self.word()?, self.burst()?, self.word()?);
        let (flags, outstanding) = (self.word()?, self.word()?);
        let (write, checksum) = (flags & 1 != 0, flags & 2 != 0);
        let parity = flags & 4 != 0 && self.dialect == Dialect::V5;
        let text = if self.rest.is_empty() { Vec::new() } else { self.text()? };
        Ok(Terms {
            uid,
            buffer,
            transfer,
            packet,
            burst,
            death,
            checksum,
            write,
            parity,
            outstanding,
            text,
        })
    }

    /// A text up to its NUL, cut if it is longer than one may be.
    fn text(&mut self) -> Result<Vec<u8>, Malformed> {
        let end = self.rest.iter().position(|&octet| octet == 0).ok_or(Malformed::Fields)?;
        Ok(self.rest[..end.min(MOST_TEXT)].to_vec())
    }

    fn data(&mut self, ends_buffer: bool, bytes: usize) -> Result<Data, Malformed> {
        let buffer = self.long()?;
        let touched = if self.dialect.is_classic() { buffer } else { self.long()? };
        let (ack, packet, checksum) = (self.word()?, self.word()?, self.word()?);
        let last = self.word()? & 1 != 0;
        let burst = if self.dialect.is_classic() { Burst::default() } else { self.burst()? };
        let bytes = bytes as u16;
        Ok(Data { ends_buffer, buffer, touched, ack, packet, checksum, last, burst, bytes })
    }

    fn parity(&mut self, bytes: usize) -> Result<Parity, Malformed> {
        let (buffer, touched) = (self.long()?, self.long()?);
        let (ack, row, packets) = (self.word()?, self.word()?, self.word()?);
        let (tail, checksum) = (self.word()?, self.word()?);
        let last = self.word()? & 1 != 0;
        let bytes = bytes as u16;
        Ok(Parity { buffer, touched, ack, row, packets, tail, checksum, last, bytes })
    }

    fn null_ack(&mut self) -> Result<NullAck, Malformed> {
        let touched = if self.dialect.is_classic() { 0 } else { self.long()? };
        let (ack, burst) = (self.word()?, self.burst()?);
        let last = self.word()? & 1 != 0 && !self.dialect.is_classic();
        Ok(NullAck { touched, ack, burst, last })
    }

    fn messages(&mut self) -> Result<Vec<Message>, Malformed> {
        let mut messages = Vec::new();
        while !self.rest.is_empty() {
            let read = Message::decode(self.rest, self.dialect);
            let (message, rest) = read.ok_or(Malformed::Fields)?;
            messages.push(message);
            self.rest = rest;
        }
        Ok(messages)
    }
}
