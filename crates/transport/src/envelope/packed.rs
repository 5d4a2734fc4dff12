//! Envelopes in a datagram: how many, how many of them are controls, the places of these, then the octets. Numbers
//! and places have two octets, big-endian; the datagram's check sums stand for the parity. An octet of user data takes
//! an octet, so that a byte's time on the line is a byte's time.
//!
//! Octets of data at the front may be left out for want of room: then there are fewer octets than envelopes. They
//! count, and read as zeros.

use super::Envelope;

/// The most envelopes in a datagram: a full block with its trailer and a check sum.
pub const MOST: usize = 4096 + 9;
/// The most controls that an end sends in one packet, and one more: a user control, the mark of a check
/// sum, the begin and the end of a trailer.
const CONTROLS: usize = 5;
/// Octets of the two numbers.
const NUMBERS: usize = 4;

/// Octets that envelopes take, of which so many are controls.
pub const fn length(count: usize, controls: usize) -> usize {
    NUMBERS + 2 * controls + count
}

/// The most envelopes of one packet of an end's that fit into `octets`.
pub const fn fitting(octets: usize) -> usize {
    let count = octets.saturating_sub(length(0, CONTROLS));
    if count < MOST { count } else { MOST }
}

/// Appends the envelopes in at most `room` octets, those beyond [`MOST`] left out. Answers how many data at the front
/// are left out too, because there is no room for them.
pub fn write(envelopes: &[Envelope], room: usize, out: &mut Vec<u8>) -> usize {
    let envelopes = &envelopes[..envelopes.len().min(MOST)];
    let is_control = |&(_, one): &(u16, &Envelope)| !one.is_data();
    let controls = || (0..).zip(envelopes).filter(is_control).map(|(at, _)| at);
    let number = controls().count();
    let data = envelopes.iter().take_while(|envelope| envelope.is_data()).count();
    let left_out = length(envelopes.len(), number).saturating_sub(room).min(data);
    out.extend((envelopes.len() as u16).to_be_bytes());
    out.extend((number as u16).to_be_bytes());
    out.extend(controls().flat_map(u16::to_be_bytes));
    out.extend(envelopes[left_out..].iter().map(|envelope| envelope.octet()));
    left_out
}

/// Appends the envelopes to `out`, and answers how many data at the front were left out. `None` if the numbers do not
/// agree with the octets, or the places are not in order.
pub fn read(octets: &[u8], out: &mut Vec<Envelope>) -> Option<usize> {
    let (numbers, rest) = octets.split_first_chunk::<NUMBERS>()?;
    let number = |at: usize| usize::from(u16::from_be_bytes([numbers[at], numbers[at + 1]]));
    let (count, controls) = (number(0), number(2));
    if count > MOST || controls > count {
        return None;
    }
    let left_out = length(count, controls).checked_sub(octets.len())?;
    let (places, values) = rest.split_at_checked(2 * controls)?;
    let first = out.len();
    out.extend((0..left_out).map(|_| Envelope::data(0)));
    out.extend(values.iter().map(|&octet| Envelope::data(octet)));
    let mut next = left_out;
    for place in places.chunks_exact(2) {
        let at = usize::from(u16::from_be_bytes([place[0], place[1]]));
        let Some(one) = out[first..].get_mut(at).filter(|_| at >= next) else {
            out.truncate(first);
            return None;
        };
        *one = Envelope::control(one.octet());
        next = at + 1;
    }
    Some(left_out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn envelope((octet, data): (u8, bool)) -> Envelope {
        if data { Envelope::data(octet) } else { Envelope::control(octet) }
    }

    fn read_all(octets: &[u8]) -> Option<(Vec<Envelope>, usize)> {
        let mut found = Vec::new();
        read(octets, &mut found).map(|left_out| (found, left_out))
    }

    proptest! {
        #[test]
        fn envelopes_read_back(content in prop::collection::vec((any::<u8>(), any::<bool>()), 0..300)) {
            let controls = content.iter().filter(|(_, data)| !data).count();
            let envelopes: Vec<Envelope> = content.into_iter().map(envelope).collect();
            let mut octets = Vec::new();
            prop_assert_eq!(write(&envelopes, usize::MAX, &mut octets), 0);
            prop_assert_eq!(octets.len(), length(envelopes.len(), controls));
            prop_assert_eq!(read_all(&octets), Some((envelopes, 0)));
            octets.push(0);
            prop_assert_eq!(read_all(&octets), None);
        }

        #[test]
        fn data_that_do_not_fit_keep_their_number(data in 0usize..4096, room in 60usize..500) {
            let tail = [(0x28, false), (9, true), (0, true), (9, false)];
            let mut envelopes = vec![Envelope::data(7); data];
            envelopes.extend(tail.map(envelope));
            let mut octets = Vec::new();
            let left_out = write(&envelopes, room, &mut octets);
            prop_assert!(octets.len() <= room);
            prop_assert!(left_out == 0 || octets.len() == room, "more than needed");
            let (found, missing) = read_all(&octets).expect("what was written");
            prop_assert_eq!((found.len(), missing), (envelopes.len(), left_out));
            prop_assert_eq!(&found[left_out..], &envelopes[left_out..]);
            prop_assert!(found[..data].iter().all(|envelope| envelope.is_data()));
        }

        #[test]
        fn whatever_is_read_is_written_the_same(
            count in 0u16..6, controls in 0u16..6, rest in prop::collection::vec(0u8..7, 0..20),
        ) {
            let octets = [&count.to_be_bytes()[..], &controls.to_be_bytes()[..], &rest[..]].concat();
            if let Some((envelopes, left_out)) = read_all(&octets) {
                let mut written = Vec::new();
                prop_assert_eq!(write(&envelopes, octets.len(), &mut written), left_out);
                prop_assert_eq!(written, octets);
            }
        }

        #[test]
        fn as_many_fit_as_say_so(octets in 0usize..5000) {
            let most = fitting(octets);
            prop_assert!(most == 0 || length(most, CONTROLS) <= octets);
            prop_assert!(most == MOST || length(most + 1, CONTROLS) > octets);
        }
    }

    #[test]
    fn places_out_of_order_or_beyond_the_end_are_refused() {
        let count = |octets: &[u8]| read_all(octets).map(|(all, left_out)| (all.len(), left_out));
        assert_eq!(count(&[0, 2, 0, 2, 0, 0, 0, 1, 7, 8]), Some((2, 0)));
        assert_eq!(count(&[0, 2, 0, 2, 0, 1, 0, 0, 7, 8]), None);
        assert_eq!(count(&[0, 2, 0, 2, 0, 1, 0, 1, 7, 8]), None);
        assert_eq!(count(&[0, 2, 0, 1, 0, 2, 7, 8]), None);
        // An octet of data is left out, and none of a control may be.
        assert_eq!(count(&[0, 2, 0, 1, 0, 1, 8]), Some((2, 1)));
        assert_eq!(count(&[0, 2, 0, 1, 0, 0, 8]), None);
    }
}
