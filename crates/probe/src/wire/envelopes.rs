//! URP's envelopes in a datagram: how many, how many of them are controls, the places of these, then the
//! octets of all. Numbers and places have two octets, big-endian; the datagram's check sums stand for the
//! parity. An octet of user data takes an octet, so that a byte's time on the line is a byte's time.

use trunkline_transport::envelope::Envelope;

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

/// Appends the envelopes, of which those beyond [`MOST`] are left out.
pub fn write(envelopes: &[Envelope], out: &mut Vec<u8>) {
    let envelopes = &envelopes[..envelopes.len().min(MOST)];
    let is_control = |&(_, one): &(u16, &Envelope)| !one.is_data();
    let controls: Vec<u16> = (0..).zip(envelopes).filter(is_control).map(|(at, _)| at).collect();
    out.extend((envelopes.len() as u16).to_be_bytes());
    out.extend((controls.len() as u16).to_be_bytes());
    out.extend(controls.into_iter().flat_map(u16::to_be_bytes));
    out.extend(envelopes.iter().map(|envelope| envelope.octet()));
}

/// The envelopes; `None` if the numbers do not agree with the octets, or the places are not in order.
pub fn read(octets: &[u8]) -> Option<Vec<Envelope>> {
    let (numbers, rest) = octets.split_first_chunk::<NUMBERS>()?;
    let number = |at: usize| usize::from(u16::from_be_bytes([numbers[at], numbers[at + 1]]));
    let (count, controls) = (number(0), number(2));
    if count > MOST || controls > count || octets.len() != length(count, controls) {
        return None;
    }
    let (places, values) = rest.split_at(2 * controls);
    let mut found: Vec<Envelope> = values.iter().map(|&octet| Envelope::data(octet)).collect();
    let mut next = 0;
    for place in places.chunks_exact(2) {
        let at = usize::from(u16::from_be_bytes([place[0], place[1]]));
        let one = found.get_mut(at).filter(|_| at >= next)?;
        *one = Envelope::control(one.octet());
        next = at + 1;
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn envelopes_read_back(content in prop::collection::vec((any::<u8>(), any::<bool>()), 0..300)) {
            let envelope = |&(octet, data): &(u8, bool)| match data {
                true => Envelope::data(octet),
                false => Envelope::control(octet),
            };
            let envelopes: Vec<Envelope> = content.iter().map(envelope).collect();
            let controls = content.iter().filter(|(_, data)| !data).count();
            let mut octets = Vec::new();
            write(&envelopes, &mut octets);
            prop_assert_eq!(octets.len(), length(envelopes.len(), controls));
            prop_assert_eq!(read(&octets), Some(envelopes));
            octets.push(0);
            prop_assert_eq!(read(&octets), None);
        }

        #[test]
        fn whatever_is_read_is_written_the_same(
            count in 0u16..6, controls in 0u16..6, rest in prop::collection::vec(0u8..7, 0..20),
        ) {
            let octets = [&count.to_be_bytes()[..], &controls.to_be_bytes()[..], &rest[..]].concat();
            if let Some(envelopes) = read(&octets) {
                let mut written = Vec::new();
                write(&envelopes, &mut written);
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
        assert_eq!(read(&[0, 2, 0, 2, 0, 0, 0, 1, 7, 8]).map(|all| all.len()), Some(2));
        assert_eq!(read(&[0, 2, 0, 2, 0, 1, 0, 0, 7, 8]), None);
        assert_eq!(read(&[0, 2, 0, 2, 0, 1, 0, 1, 7, 8]), None);
        assert_eq!(read(&[0, 2, 0, 1, 0, 2, 7, 8]), None);
    }
}
