//! A URP packet as the body of a capsule: its envelopes, octets first, then a bit for each that is a control.
//!
//! | at | bytes | field |
//! |---:|---:|---|
//! | 0 | 2 | envelopes |
//! | 2 | 2 | octets of data left out at the front, because the body had no room for them |
//! | 4 | n | octets of the others |
//! | 4 + n | (n + 7) / 8 | bit i of each 8 set if envelope i is a control, lowest bit first |

use trunkline_transport::envelope::Envelope;

/// The two counts.
const COUNTS: usize = 4;
/// Envelopes of the largest packet: a block of 4096, its check sum and trailer, and some room.
const MOST: usize = 4096 + 64;

/// Bytes that `count` envelopes take.
const fn size(count: usize) -> usize {
    COUNTS + count + count.div_ceil(8)
}

/// Writes the envelopes to `out`, which is cleared first, in at most `room` bytes. Octets of data at the
/// front for which there is no room are left out, which tells how many; they mean nothing to the protocol
/// but their number.
pub(super) fn encode(envelopes: &[Envelope], room: usize, out: &mut Vec<u8>) -> usize {
    let data = envelopes.iter().take_while(|envelope| envelope.is_data()).count();
    let mut left_out = 0;
    while size(envelopes.len() - left_out) > room && left_out < data {
        left_out += 1;
    }
    let carried = &envelopes[left_out..];
    out.clear();
    out.extend((envelopes.len() as u16).to_be_bytes());
    out.extend((left_out as u16).to_be_bytes());
    out.extend(carried.iter().map(|envelope| envelope.octet()));
    for eight in carried.chunks(8) {
        let bits = eight.iter().enumerate();
        out.push(
            bits.fold(0, |sum, (index, envelope)| sum | u8::from(!envelope.is_data()) << index),
        );
    }
    left_out
}

/// Reads what [`encode`] wrote into `out`, with zeros for the octets left out. Returns how many these are, or
/// nothing if it is no such body.
pub(super) fn decode(body: &[u8], out: &mut Vec<Envelope>) -> Option<usize> {
    out.clear();
    let (counts, rest) = body.split_at_checked(COUNTS)?;
    let count = usize::from(u16::from_be_bytes([counts[0], counts[1]]));
    let left_out = usize::from(u16::from_be_bytes([counts[2], counts[3]]));
    let carried = count.checked_sub(left_out).filter(|_| count <= MOST)?;
    if rest.len() != size(carried) - COUNTS {
        return None;
    }
    let (octets, controls) = rest.split_at(carried);
    out.extend((0..left_out).map(|_| Envelope::data(0)));
    out.extend(octets.iter().enumerate().map(|(index, &octet)| {
        match controls[index / 8] >> (index % 8) & 1 {
            0 => Envelope::data(octet),
            _ => Envelope::control(octet),
        }
    }));
    Some(left_out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn envelope((octet, data): (u8, bool)) -> Envelope {
        if data { Envelope::data(octet) } else { Envelope::control(octet) }
    }

    proptest! {
        #[test]
        fn what_fits_comes_out_as_it_went_in(
            content in prop::collection::vec((any::<u8>(), any::<bool>()), 0..200),
        ) {
            let envelopes: Vec<Envelope> = content.into_iter().map(envelope).collect();
            let (mut body, mut read) = (Vec::new(), Vec::new());
            prop_assert_eq!(encode(&envelopes, 400, &mut body), 0);
            prop_assert_eq!(body.len(), size(envelopes.len()));
            prop_assert_eq!(decode(&body, &mut read), Some(0));
            prop_assert_eq!(read, envelopes);
        }

        #[test]
        fn data_that_do_not_fit_keep_their_number(data in 0usize..4096, room in 60usize..500) {
            let tail = [(0x28, false), (9, true), (0, true), (9, false)];
            let mut envelopes = vec![Envelope::data(7); data];
            envelopes.extend(tail.map(envelope));
            let (mut body, mut read) = (Vec::new(), Vec::new());
            let left_out = encode(&envelopes, room, &mut body);
            prop_assert!(body.len() <= room);
            prop_assert!(left_out == 0 || body.len() + 2 >= room, "more than needed");
            prop_assert_eq!(decode(&body, &mut read), Some(left_out));
            prop_assert_eq!(read.len(), envelopes.len());
            prop_assert_eq!(&read[data..], &envelopes[data..]);
            prop_assert!(read[..data].iter().all(|envelope| envelope.is_data()));
        }

        #[test]
        fn anything_is_read_or_refused(body in prop::collection::vec(any::<u8>(), 0..60)) {
            let mut read = Vec::new();
            if decode(&body, &mut read).is_some() {
                prop_assert!(read.len() <= MOST);
            }
        }
    }
}
