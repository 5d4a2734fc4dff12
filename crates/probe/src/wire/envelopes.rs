//! URP's envelopes in a datagram: their number in two octets, the octets of all of them, then a bit for
//! each that is set where it is a control, low bit first. The datagram's check sums stand for the parity.

use trunkline_transport::envelope::Envelope;

/// The most envelopes in a datagram: a full block with its trailer and a check sum.
pub const MOST: usize = 4096 + 9;

/// Octets that `count` envelopes take.
pub const fn length(count: usize) -> usize {
    2 + count + count.div_ceil(8)
}

/// The most envelopes that fit into `octets`.
pub const fn fitting(octets: usize) -> usize {
    let bits = octets.saturating_sub(2) * 8;
    let count = bits / 9;
    if count < MOST { count } else { MOST }
}

/// Appends the envelopes, of which those beyond [`MOST`] are left out.
pub fn write(envelopes: &[Envelope], out: &mut Vec<u8>) {
    let envelopes = &envelopes[..envelopes.len().min(MOST)];
    out.extend((envelopes.len() as u16).to_be_bytes());
    out.extend(envelopes.iter().map(|envelope| envelope.octet()));
    for eight in envelopes.chunks(8) {
        let bits = eight.iter().enumerate().map(|(at, one)| u8::from(!one.is_data()) << at);
        out.push(bits.fold(0, |all, bit| all | bit));
    }
}

/// The envelopes; `None` where their number does not agree with the octets.
pub fn read(octets: &[u8]) -> Option<Vec<Envelope>> {
    let (number, rest) = octets.split_first_chunk()?;
    let count = usize::from(u16::from_be_bytes(*number));
    if count > MOST || octets.len() != length(count) {
        return None;
    }
    let (values, bits) = rest.split_at(count);
    let envelope = |(at, &octet): (usize, &u8)| match bits[at / 8] >> (at % 8) & 1 {
        0 => Envelope::data(octet),
        _ => Envelope::control(octet),
    };
    Some(values.iter().enumerate().map(envelope).collect())
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
            let mut octets = Vec::new();
            write(&envelopes, &mut octets);
            prop_assert_eq!(octets.len(), length(envelopes.len()));
            prop_assert_eq!(read(&octets), Some(envelopes));
            octets.push(0);
            prop_assert_eq!(read(&octets), None);
        }

        #[test]
        fn whatever_comes_is_read_or_refused(octets in prop::collection::vec(any::<u8>(), 0..100)) {
            if let Some(envelopes) = read(&octets) {
                prop_assert_eq!(length(envelopes.len()), octets.len());
            }
        }

        #[test]
        fn as_many_fit_as_say_so(octets in 0usize..5000) {
            let most = fitting(octets);
            prop_assert!(octets < 2 || length(most) <= octets);
            prop_assert!(most == MOST || length(most + 1) > octets);
        }
    }
}
