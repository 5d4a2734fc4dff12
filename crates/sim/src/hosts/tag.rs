//! What a simulated packet means, packed into the 64 bits that a parcel carries.
//!
//! A packet that the path duplicates carries its meaning twice, so nothing has to be looked up or freed.
//! Bits from the lowest: 13 data octets, 24 the low bits of their place in the stream, 2 trailer kind,
//! 3 sequence number, 13 block length, 1 whether a control follows, 8 its octet.

use trunkline_transport::Extent;
use trunkline_transport::urp::{Control, Part, Trailer, TrailerKind};

const LEN: u32 = 13;
const OFFSET: u32 = 24;
const KIND: u32 = 2;
const SEQ: u32 = 3;
const LENGTH: u32 = 13;

/// Packs `part`.
pub(crate) fn pack(part: &Part<Extent>) -> u64 {
    let (len, offset) = part.data.as_ref().map_or((0, 0), |data| (u64::from(data.len), data.offset));
    let trailer = part.trailer.as_ref().map_or(0, |trailer| {
        kind_bits(trailer.kind)
            | u64::from(trailer.seq) << KIND
            | u64::from(trailer.length) << (KIND + SEQ)
    });
    let control = part.control.map_or(0, |control| 1 | u64::from(control.octet()) << 1);
    len | (offset & mask(OFFSET)) << LEN
        | trailer << (LEN + OFFSET)
        | control << (LEN + OFFSET + KIND + SEQ + LENGTH)
}

/// Unpacks what [`pack`] made; `near` is where in the stream the receiver is.
pub(crate) fn unpack(tag: u64, near: u64) -> Part<Extent> {
    let mut bits = Bits(tag);
    let (len, offset) = (bits.take(LEN) as u32, bits.take(OFFSET));
    let (kind, seq, length) = (bits.take(KIND), bits.take(SEQ) as u8, bits.take(LENGTH) as u16);
    let (is_control, octet) = (bits.take(1) == 1, bits.take(8) as u8);
    Part {
        data: (len > 0).then(|| Extent { offset: widen(offset, near), len }),
        trailer: trailer_kind(kind).map(|kind| Trailer { kind, length, seq }),
        control: is_control.then(|| Control::from_octet(octet)).flatten(),
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
