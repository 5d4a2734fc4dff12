//! URP on the wire: envelopes, and Datakit's backplane packets of them.
//!
//! An [`Envelope`] is an octet with a bit that tells data from control, and a parity bit (Hawley 1989
//! §1.3). A [`Packet`] is a channel's number in two envelopes and up to sixteen more. [`write()`] turns what
//! an end says into envelopes, a [`Reader`] turns envelopes into what an end hears; whatever comes, it
//! answers, for an envelope lost on the way is the protocol's matter.

pub mod packed;
mod packet;
mod reader;

pub use packet::{MOST_CHANNEL, PACKED, Packet, Refused, WORDS};
pub use reader::Reader;

use crate::Payload;
use crate::urp::{Control, Part, Trailer, User, octet};

/// One octet of data or control, with its parity.
///
/// Held in the coding of the 8th edition's host interface: bits 0 to 7 the octet, 0x0100 set for data,
/// 0x8000 set if the parity is good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Envelope(u16);

const DATA: u16 = 0x0100;
const PARITY_GOOD: u16 = 0x8000;

impl Envelope {
    /// The octet that fills packets; receivers skip it.
    pub const NUL: Envelope = Envelope::control(octet::NUL);

    /// An octet of data, parity good.
    pub const fn data(octet: u8) -> Envelope {
        Envelope(octet as u16 | DATA | PARITY_GOOD)
    }
    /// A control, parity good.
    pub const fn control(octet: u8) -> Envelope {
        Envelope(octet as u16 | PARITY_GOOD)
    }
    /// The same with bad parity: receivers take no notice of it.
    pub const fn damaged(self) -> Envelope {
        Envelope(self.0 & !PARITY_GOOD)
    }
    /// The octet.
    pub const fn octet(self) -> u8 {
        self.0 as u8
    }
    /// Whether it is data.
    pub const fn is_data(self) -> bool {
        self.0 & DATA != 0
    }
    /// Whether its parity is good.
    pub const fn is_good(self) -> bool {
        self.0 & PARITY_GOOD != 0
    }
    /// As a word of the host interface.
    pub const fn word(self) -> u16 {
        self.0
    }
    /// An envelope from a word of the host interface; `None` if the word has bits that an envelope has not, such
    /// as a channel mark.
    pub const fn from_word(word: u16) -> Option<Envelope> {
        if word & !(0xff | DATA | PARITY_GOOD) == 0 { Some(Envelope(word)) } else { None }
    }
}

/// Appends the envelopes of `part` to `out`.
pub fn write<P: Payload>(part: &Part<P>, out: &mut Vec<Envelope>) {
    out.extend((0..part.data.len()).map(|index| Envelope::data(part.data.octet(index))));
    part.control.into_iter().for_each(|control| write_control(control, out));
    part.trailer.into_iter().for_each(|trailer| write_trailer(trailer, out));
}

fn write_control(control: Control, out: &mut Vec<Envelope>) {
    out.push(Envelope::control(octet::write(control)));
    if let Control::Express(octets) = control {
        out.extend(octets.map(Envelope::data));
        out.push(Envelope::control(octet::EOI));
    }
}

/// A length that did not come is not sent either.
fn write_trailer(trailer: Trailer, out: &mut Vec<Envelope>) {
    if let Some(crc) = trailer.crc {
        out.push(Envelope::control(User::CRC.octet()));
        out.extend(crc.to_le_bytes().map(Envelope::data));
    }
    out.push(Envelope::control(trailer.kind.octet()));
    let length = trailer.length.into_iter().flat_map(u16::to_le_bytes);
    out.extend(length.map(Envelope::data));
    out.push(Envelope::control(octet::write(Control::Seq(trailer.seq))));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::urp::{Seq, TrailerKind};

    #[test]
    fn envelopes_have_the_bits_of_the_host_interface() {
        assert_eq!(Envelope::data(0x41).word(), 0x8141);
        assert_eq!(Envelope::control(0x28).word(), 0x8028);
        assert_eq!(Envelope::from_word(0x0141), Some(Envelope::data(0x41).damaged()));
        assert_eq!(Envelope::from_word(0x8341), None);
        assert!(!Envelope::data(1).damaged().is_good() && Envelope::data(1).is_data());
    }

    #[test]
    fn a_block_of_28_octets_ends_as_the_sources_say() {
        let trailer =
            Trailer { kind: TrailerKind::Botm, length: Some(28), seq: Seq::new(1), crc: None };
        let mut out = Vec::new();
        write(&Part { data: vec![7u8; 28], control: None, trailer: Some(trailer) }, &mut out);
        let words: Vec<u16> = out[28..].iter().map(|envelope| envelope.word()).collect();
        assert_eq!(words, [0x8029, 0x811c, 0x8100, 0x8009]);
    }

    #[test]
    fn parts_have_as_many_envelopes_as_they_say() {
        let trailer =
            Trailer { kind: TrailerKind::Bot, length: Some(6), seq: Seq::new(3), crc: Some(9) };
        let part = Part {
            data: vec![1u8],
            control: Some(Control::Express([2, 3])),
            trailer: Some(trailer),
        };
        let mut out = Vec::new();
        write(&part, &mut out);
        assert_eq!(out.len(), part.envelopes() as usize);
        let controls = out.iter().filter(|envelope| !envelope.is_data()).count();
        assert_eq!(controls, part.controls() as usize);
    }
}
