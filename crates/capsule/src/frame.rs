//! Capsules in Ethernet frames.

use crate::bytes::{put, u16_at};
use crate::header::is_capsule;
use std::ops::Range;

/// The UDP port of one end of every flow of capsules: the letters "tl". It lies in no system's range of
/// ports for outgoing connections.
pub const PORT: u16 = 0x746c;

const TYPE: usize = 12;
const VLAN_TYPES: [u16; 2] = [0x8100, 0x88a8];
const IPV4: u16 = 0x0800;
const UDP: u8 = 17;
const UDP_HEADER: usize = 8;
/// Offset of the checksum in UDP's header (RFC 768).
const CHECKSUM: usize = 6;

/// The range of the capsule in an Ethernet frame: UDP over IPv4, whole, from or to [`PORT`], and a capsule by its
/// first bytes. VLAN tags are skipped.
pub fn find(frame: &[u8]) -> Option<Range<usize>> {
    let udp = find_udp(frame)?;
    let header = frame.get(udp..udp + UDP_HEADER)?;
    let length = usize::from(u16_at(header, 4));
    if u16_at(header, 0) != PORT && u16_at(header, 2) != PORT {
        return None;
    }
    let payload = udp + UDP_HEADER..udp.checked_add(length)?;
    frame.get(payload.clone()).filter(|payload| is_capsule(payload)).map(|_| payload)
}

/// Sets the UDP checksum of the capsule at `payload` to zero, which says that there is none (RFC 768), so
/// that the ledger can be written into it.
///
/// # Panics
/// If `payload` is not what [`find`] returned for this frame.
pub fn without_checksum(frame: &mut [u8], payload: &Range<usize>) {
    put(frame, payload.start - UDP_HEADER + CHECKSUM, &[0, 0]);
}

/// The offset of the UDP header of an IPv4 packet that is no fragment.
fn find_udp(frame: &[u8]) -> Option<usize> {
    let mut at = TYPE;
    while VLAN_TYPES.contains(&ether_type(frame, at)?) {
        at += 4;
    }
    if ether_type(frame, at)? != IPV4 {
        return None;
    }
    let packet = at + 2;
    let ip = frame.get(packet..packet + 20)?;
    let header = usize::from(ip[0] & 0x0f) * 4;
    // More fragments, or not the first (RFC 791).
    let fragment = u16_at(ip, 6) & 0x3fff != 0;
    (ip[0] >> 4 == 4 && header >= 20 && !fragment && ip[9] == UDP).then_some(packet + header)
}

fn ether_type(frame: &[u8], at: usize) -> Option<u16> {
    (frame.len() >= at + 2).then(|| u16_at(frame, at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::header::tests::headers;
    use crate::{Capsule, HEADER, Header};
    use proptest::prelude::*;

    /// A frame with a capsule, some VLAN tags, and IPv4 options.
    fn frame(header: &Header, vlans: usize, options: usize, ports: (u16, u16)) -> Vec<u8> {
        let mut payload = vec![5; HEADER + 9];
        header.write(&mut payload);
        let mut frame = vec![2; TYPE];
        (0..vlans).for_each(|_| frame.extend([0x81, 0, 0, 7]));
        let total = 20 + options * 4 + UDP_HEADER + payload.len();
        frame.extend([8, 0, 0x45 + options as u8, 0]);
        frame.extend((total as u16).to_be_bytes());
        frame.extend([0, 0, 0x40, 0, 64, UDP, 0, 0, 10, 77, 0, 1, 10, 77, 0, 2]);
        frame.extend(vec![1; options * 4]);
        frame.extend(ports.0.to_be_bytes());
        frame.extend(ports.1.to_be_bytes());
        frame.extend(((UDP_HEADER + payload.len()) as u16).to_be_bytes());
        frame.extend([0xbe, 0xef]);
        frame.extend(payload);
        frame
    }

    proptest! {
        #[test]
        fn a_capsule_is_found_in_its_frame(
            header in headers(), vlans in 0usize..3, options in 0usize..=10, back: bool,
            padding in 0usize..20,
        ) {
            let ports = if back { (PORT, 40_000) } else { (40_000, PORT) };
            let mut frame = frame(&header, vlans, options, ports);
            frame.extend(vec![0; padding]);
            let at = find(&frame).unwrap();
            prop_assert_eq!(Capsule::parse(&frame[at.clone()]).unwrap().header, header);
            prop_assert_eq!(frame.len() - at.end, padding);
            let before = frame.clone();
            without_checksum(&mut frame, &at);
            prop_assert_eq!(&frame[at.start - 2..at.start], [0, 0]);
            prop_assert_eq!(&frame[..at.start - 2], &before[..at.start - 2]);
            prop_assert_eq!(&frame[at.start..], &before[at.start..]);
        }

        #[test]
        fn a_cut_or_damaged_frame_does_no_harm(cut in 0usize..400, at in 0usize..60, octet: u8) {
            let mut bytes = frame(&Header::default(), 1, 1, (PORT, PORT));
            bytes[at] = octet;
            bytes.truncate(cut);
            if let Some(range) = find(&bytes) {
                prop_assert!(Capsule::parse(&bytes[range]).is_some());
            }
        }
    }

    #[test]
    fn other_traffic_is_left_alone() {
        let good = frame(&Header::default(), 0, 0, (PORT, 9));
        assert!(find(&good).is_some());
        assert_eq!(find(&frame(&Header::default(), 0, 0, (8, 9))), None);
        for (at, octet) in [(13, 6), (20, 0x20), (23, 6), (42, 0)] {
            let mut other = good.clone();
            other[at] = octet;
            assert_eq!(find(&other), None, "{at}");
        }
        assert_eq!(find(&good[..good.len() - 1]), None);
    }
}
