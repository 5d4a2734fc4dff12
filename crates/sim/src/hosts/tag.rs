//! What a packet of URP means, packed into the 64 bits that a parcel carries.
//!
//! A packet that the path duplicates carries its meaning twice, so nothing has to be looked up or freed.
//! Bits from the lowest: 13 data octets, 24 the low bits of their place in the stream, 2 trailer kind,
//! 3 sequence number, 13 block length, 4 control, 3 its number, 2 the block's transmission. A packet without a trailer
//! may have 16 bits of a number of its own in the place of sequence number and length.

use trunkline_transport::Extent;
use trunkline_transport::urp::{Control, Part, Seq, Trailer, TrailerKind, User};

const LEN: u32 = 13;
const OFFSET: u32 = 24;
const KIND: u32 = 2;
const SEQ: u32 = 3;
const LENGTH: u32 = 13;
const CONTROL: u32 = 4;
/// The rest.
const TRANSMISSION: u32 = 62;

/// `tag` of a packet that ends a block which is sent for this time, modulo 4.
pub(crate) fn with_transmission(tag: u64, transmission: u8) -> u64 {
    tag | u64::from(transmission) << TRANSMISSION
}

/// Which time it was.
pub(crate) fn transmission(tag: u64) -> u8 {
    (tag >> TRANSMISSION) as u8
}

/// `tag` of a packet without a trailer that has this number; 0 for none.
pub(crate) fn with_number(tag: u64, number: u16) -> u64 {
    tag | u64::from(number) << (LEN + OFFSET + KIND)
}

/// The number of a packet without a trailer.
pub(crate) fn number(tag: u64) -> u16 {
    (tag >> (LEN + OFFSET + KIND)) as u16
}

/// Whether a packet carries data and nothing else.
pub(crate) fn is_data(tag: u64) -> bool {
    tag >> (LEN + OFFSET) == 0
}

/// Packs `part`.
pub(crate) fn pack(part: &Part<Extent>) -> u64 {
    let Extent { len, offset } = part.data;
    let trailer = part.trailer.as_ref().map_or(0, |trailer| {
        kind_bits(trailer.kind)
            | u64::from(trailer.seq.get()) << KIND
            | u64::from(trailer.length.unwrap_or(0)) << (KIND + SEQ)
    });
    let control = part.control.map_or(0, control_bits);
    u64::from(len)
        | (offset & mask(OFFSET)) << LEN
        | trailer << (LEN + OFFSET)
        | control << (LEN + OFFSET + KIND + SEQ + LENGTH)
}

/// Unpacks what [`pack`] made; `near` is the receiver's position in the stream.
pub(crate) fn unpack(tag: u64, near: u64) -> Part<Extent> {
    let mut bits = Bits(tag);
    let (len, offset) = (bits.take(LEN) as u32, bits.take(OFFSET));
    let (kind, seq, length) = (bits.take(KIND), Seq::new(bits.take(SEQ) as u8), bits.take(LENGTH));
    let (control, number) = (bits.take(CONTROL), Seq::new(bits.take(SEQ) as u8));
    Part {
        data: if len > 0 { Extent::new(widen(offset, near), len) } else { Extent::default() },
        trailer: trailer_kind(kind).map(|kind| Trailer {
            kind,
            length: Some(length as u16),
            seq,
            crc: None,
        }),
        control: control_of(control, number),
    }
}

/// The place in the stream nearest to `near` whose low bits are `low`.
fn widen(low: u64, near: u64) -> u64 {
    let span = 1 << OFFSET;
    let base = (near & !mask(OFFSET)) | low;
    let candidates = [base.checked_sub(span), Some(base), base.checked_add(span)];
    candidates.into_iter().flatten().min_by_key(|place| place.abs_diff(near)).unwrap_or(base)
}

fn mask(bits: u32) -> u64 {
    (1 << bits) - 1
}

struct Bits(u64);

impl Bits {
    fn take(&mut self, bits: u32) -> u64 {
        let value = self.0 & mask(bits);
        self.0 >>= bits;
        value
    }
}

fn kind_bits(kind: TrailerKind) -> u64 {
    match kind {
        TrailerKind::Bot => 1,
        TrailerKind::Botm => 2,
        TrailerKind::Bots => 3,
    }
}

fn trailer_kind(bits: u64) -> Option<TrailerKind> {
    [None, Some(TrailerKind::Bot), Some(TrailerKind::Botm), Some(TrailerKind::Bots)][bits as usize]
}

/// Controls that carry a number are 1 to 4, the others follow; 0 is none. Express data and user controls but for the
/// end of a message come from no workload.
fn control_bits(control: Control) -> u64 {
    let (code, number) = match control {
        Control::Seq(number) => (1, number),
        Control::Echo(number) => (2, number),
        Control::Rej(number) => (3, number),
        Control::Ack(number) => (4, number),
        Control::Enq => (5, Seq::NONE),
        Control::Check => (6, Seq::NONE),
        Control::InitReq => (7, Seq::NONE),
        Control::Init0 => (8, Seq::NONE),
        Control::Init1 => (9, Seq::NONE),
        Control::Ainit => (10, Seq::NONE),
        Control::User(User::EOT) => (11, Seq::NONE),
        Control::Express(_) | Control::User(_) => (0, Seq::NONE),
    };
    code | u64::from(number.get()) << CONTROL
}

fn control_of(code: u64, number: Seq) -> Option<Control> {
    Some(match code {
        1 => Control::Seq(number),
        2 => Control::Echo(number),
        3 => Control::Rej(number),
        4 => Control::Ack(number),
        5 => Control::Enq,
        6 => Control::Check,
        7 => Control::InitReq,
        8 => Control::Init0,
        9 => Control::Init1,
        10 => Control::Ainit,
        11 => Control::User(User::EOT),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn controls() -> impl Strategy<Value = Option<Control>> {
        (0u64..12, 0u8..8).prop_map(|(code, number)| {
            control_of(code, Seq::new(if (1..5).contains(&code) { number } else { 0 }))
        })
    }

    proptest! {
        #[test]
        fn a_packet_comes_out_as_it_went_in(
            len in 0u32..=4096, offset in 0u64..1 << 40, behind in 0u64..1 << 20,
            trailer in prop::option::of((1u64..4, 0u8..8, 0u16..=4096)), control in controls(), own: u16,
        ) {
            let data = if len == 0 { Extent::default() } else { Extent::new(offset + behind, len) };
            let trailer = trailer.map(|(kind, seq, length)| Trailer {
                kind: trailer_kind(kind).unwrap(),
                length: Some(length),
                seq: Seq::new(seq),
                crc: None,
            });
            let part = Part { data, trailer, control };
            prop_assert_eq!(is_data(pack(&part)), trailer.is_none() && control.is_none());
            for time in 0..4 {
                let tag = with_transmission(pack(&part), time);
                prop_assert_eq!((unpack(tag, offset), transmission(tag)), (part.clone(), time));
            }
            if trailer.is_none() {
                let tag = with_number(pack(&part), own);
                prop_assert_eq!((unpack(tag, offset), number(tag)), (part, own));
            }
        }
    }
}
