//! The header of a frame.
//!
//! | at | bytes | field |
//! |---:|---:|---|
//! | 0 | 1 | kind: 1 data, 2 answer |
//! | 1 | 1 | lowest bit: a message ends behind the data; the others: how often the frame was sent before, modulo 128,
//! which its answer repeats |
//! | 2 | 2 | octets of data |
//! | 4 | 4 | number: of the data's frame, or what an answer tells; the lowest 32 bits |

use crate::protocol::Header;

/// Its octets.
pub const HEADER: u32 = 8;
/// Octets of data of one frame at most: with the header they fit an IPv4 packet.
pub const MOST_DATA: u64 = 65_000;

/// The kinds of header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Says {
    /// Data follow, so many octets.
    Data { number: u32, octets: u16, end: bool, sending: u8 },
    /// Frames have come: the one of this number, or all before it. The last of them was sent so often before.
    Answer { number: u32, sending: u8 },
}

/// The count up to which earlier sendings of a frame are told apart.
pub(super) const SENDINGS: u8 = 128;

/// Encodes it.
pub(super) fn encode(says: Says) -> Header {
    let (kind, end, octets, number) = match says {
        Says::Data { number, octets, end, sending } => {
            (1, u8::from(end) | sending << 1, octets, number)
        }
        Says::Answer { number, sending } => (2, sending << 1, 0, number),
    };
    let (octets, number) = (octets.to_be_bytes(), number.to_be_bytes());
    let [a, b] = octets;
    let [c, d, e, f] = number;
    Header::new(&[kind, end, a, b, c, d, e, f])
}

/// Decodes it; `None` if it is no such header.
pub(super) fn decode(header: &Header) -> Option<Says> {
    let &[kind, end, a, b, c, d, e, f] = header.octets() else { return None };
    let (octets, number) = (u16::from_be_bytes([a, b]), u32::from_be_bytes([c, d, e, f]));
    let (sending, end) = (end >> 1, end & 1 == 1);
    match kind {
        1 => Some(Says::Data { number, octets, end, sending }),
        2 if octets == 0 && !end => Some(Says::Answer { number, sending }),
        _ => None,
    }
}

/// The number nearest to `near` whose lowest 32 bits are `low`.
pub(super) fn widen(low: u32, near: u64) -> u64 {
    let ahead = low.wrapping_sub(near as u32);
    if ahead < 1 << 31 {
        near.saturating_add(u64::from(ahead))
    } else {
        near.saturating_sub(u64::from(ahead.wrapping_neg()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(number: u32, octets: u16, end: bool, sending in 0..SENDINGS) {
            for says in [Says::Data { number, octets, end, sending }, Says::Answer { number, sending }] {
                prop_assert_eq!(decode(&encode(says)), Some(says));
            }
        }

        #[test]
        fn anything_else_is_refused_or_means_itself(octets in prop::collection::vec(any::<u8>(), 0..20)) {
            let header = Header::new(&octets);
            if let Some(says) = decode(&header) {
                prop_assert_eq!(encode(says), header);
            }
        }

        #[test]
        fn numbers_are_widened(near in 0u64..1 << 40, away in -(1i64 << 30)..1 << 30) {
            let number = near.saturating_add_signed(away);
            prop_assert_eq!(widen(number as u32, near), number);
        }
    }
}
