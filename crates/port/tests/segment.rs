//! Cutting super-frames: whatever the headers, the pieces are valid wire frames and carry the same bytes.
//!
//! The verifier here is written on its own, from the RFCs, and shares no code with the crate.

use proptest::collection::vec;
use proptest::prelude::*;
use trunkline_port::offload::{Gso, Kind};
use trunkline_port::segment::{Unsegmentable, segment};

/// What a super-frame is built from.
#[derive(Debug, Clone)]
struct Recipe {
    v6: bool,
    tcp: bool,
    tags: Vec<[u8; 4]>,
    /// IPv4 options or IPv6 extension headers, in units of 4 or 8 bytes.
    extra: usize,
    tcp_options: usize,
    id: u16,
    sequence: u32,
    flags: u8,
    addresses: Vec<u8>,
    payload: Vec<u8>,
    size: u16,
}

fn recipe() -> impl Strategy<Value = Recipe> {
    let tag = prop_oneof![Just([0x81, 0, 0, 7]), Just([0x88, 0xa8, 0xe0, 1])];
    let shape = (any::<bool>(), any::<bool>(), vec(tag, 0..3), 0usize..3, 0usize..11);
    let values = (any::<u16>(), any::<u32>(), any::<u8>(), vec(any::<u8>(), 32));
    let length = prop_oneof![0usize..200, 2000usize..9000, 60_000usize..65_000];
    (shape, values, length.prop_flat_map(|n| vec(any::<u8>(), n)), 1u16..9000).prop_map(
        |((v6, tcp, tags, extra, tcp_options), (id, sequence, flags, addresses), payload, size)| {
            // No more than some thousand pieces.
            let size = size.max((payload.len() / 2000) as u16);
            let extra = if v6 { extra } else { extra * 5 };
            Recipe {
                v6,
                tcp,
                tags,
                extra,
                tcp_options,
                id,
                sequence,
                flags,
                addresses,
                payload,
                size,
            }
        },
    )
}

impl Recipe {
    fn gso(&self) -> Gso {
        let kind = match (self.tcp, self.v6) {
            (true, false) => Kind::TcpV4,
            (true, true) => Kind::TcpV6,
            (false, _) => Kind::Udp,
        };
        Gso { kind, size: self.size }
    }

    /// The super-frame, its lengths and checksums full of rubbish as far as cutting sets them.
    fn frame(&self) -> Vec<u8> {
        let mut frame = vec![0xaa; 12];
        frame.extend(self.tags.concat());
        if self.v6 {
            frame.extend([0x86, 0xdd, 0x61, 2, 3, 4, 0xee, 0xee]);
            frame.extend([if self.extra > 0 { 0 } else { self.protocol() }, 64]);
            frame.extend(&self.addresses);
            for left in (0..self.extra).rev() {
                let next = if left > 0 { 60 } else { self.protocol() };
                frame.extend([next, 0, 1, 4, 0, 0, 0, 0]); // PadN of six
            }
        } else {
            frame.extend([0x08, 0x00, 0x45 + self.extra as u8, 0x10, 0xee, 0xee]);
            frame.extend(self.id.to_be_bytes());
            frame.extend([0x40, 0, 63, self.protocol(), 0xee, 0xee]);
            frame.extend(&self.addresses[..8]);
            frame.resize(frame.len() + 4 * self.extra, 1);
        }
        frame.extend([0x12, 0x34, 0x56, 0x78]);
        if self.tcp {
            frame.extend(self.sequence.to_be_bytes());
            frame.extend([9, 8, 7, 6, (5 + self.tcp_options as u8) << 4, self.flags]);
            frame.extend([0x20, 0, 0xee, 0xee, 0, 0]);
            frame.resize(frame.len() + 4 * self.tcp_options, 1);
        } else {
            frame.extend([0xee, 0xee, 0xee, 0xee]);
        }
        frame.extend(&self.payload);
        frame
    }

    fn protocol(&self) -> u8 {
        if self.tcp { 6 } else { 17 }
    }
}

/// One's complement sum, word by word, folded at the end: 0xffff means a valid checksum.
fn sum(parts: &[&[u8]]) -> u16 {
    let bytes = parts.concat();
    let words =
        bytes.chunks(2).map(|w| u64::from(w[0]) * 256 + w.get(1).map_or(0, |&b| u64::from(b)));
    let total: u64 = words.sum();
    let once = total % 65536 + total / 65536;
    (once % 65536 + once / 65536) as u16
}

/// A piece taken apart.
#[derive(Debug)]
struct Piece<'a> {
    id: Option<u16>,
    sequence: Option<u32>,
    flags: u8,
    payload: &'a [u8],
}

/// Takes a wire frame apart, checking every length and checksum in it.
fn verify(frame: &[u8]) -> Piece<'_> {
    let mut packet = &frame[12..];
    while matches!(packet[..2], [0x81, 0x00] | [0x88, 0xa8]) {
        packet = &packet[4..];
    }
    let (ethertype, packet) = packet.split_at(2);
    let (id, addresses, protocol, transport) = match ethertype {
        [0x08, 0x00] => {
            let header = usize::from(packet[0] & 15) * 4;
            assert_eq!(usize::from(packet[2]) * 256 + usize::from(packet[3]), packet.len());
            assert_eq!(sum(&[&packet[..header]]), 0xffff, "IPv4 header checksum");
            let id = u16::from_be_bytes([packet[4], packet[5]]);
            (Some(id), &packet[12..20], packet[9], &packet[header..])
        }
        [0x86, 0xdd] => {
            assert_eq!(usize::from(packet[4]) * 256 + usize::from(packet[5]), packet.len() - 40);
            let (mut next, mut rest) = (packet[6], &packet[40..]);
            while matches!(next, 0 | 60) {
                (next, rest) = (rest[0], &rest[8..]);
            }
            (None, &packet[8..40], next, rest)
        }
        other => panic!("ethertype {other:?}"),
    };
    let length = (transport.len() as u32).to_be_bytes();
    assert_eq!(sum(&[addresses, &length, &[0, protocol], transport]), 0xffff, "transport checksum");
    if protocol == 6 {
        let sequence = u32::from_be_bytes(transport[4..8].try_into().unwrap());
        let header = usize::from(transport[12] >> 4) * 4;
        Piece { id, sequence: Some(sequence), flags: transport[13], payload: &transport[header..] }
    } else {
        assert_eq!(usize::from(transport[4]) * 256 + usize::from(transport[5]), transport.len());
        assert_ne!(transport[6..8], [0, 0], "UDP without a checksum");
        Piece { id, sequence: None, flags: 0, payload: &transport[8..] }
    }
}

fn cut(frame: &[u8], gso: Gso) -> Result<Vec<Vec<u8>>, Unsegmentable> {
    let mut pieces = Vec::new();
    let count = segment(frame, gso, &mut Vec::new(), &mut |piece| pieces.push(piece.to_vec()))?;
    assert_eq!(count, pieces.len());
    Ok(pieces)
}

/// The flags that piece `index` of `count` must carry (RFC 3168 §6.1.2 for CWR, 0x80).
fn flags(all: u8, index: usize, count: usize) -> u8 {
    let first = if index == 0 { 0x80 } else { 0 };
    let last = if index + 1 == count { 0x09 } else { 0 };
    all & (0x76 | first | last)
}

proptest! {
    #[test]
    fn pieces_are_valid_frames_with_the_same_bytes(recipe in recipe()) {
        let frame = recipe.frame();
        let headers = frame.len() - recipe.payload.len();
        let pieces = cut(&frame, recipe.gso()).unwrap();
        let mut sent = 0;
        for (index, bytes) in pieces.iter().enumerate() {
            let piece = verify(bytes);
            prop_assert_eq!(&bytes[..12 + 4 * recipe.tags.len()], &frame[..12 + 4 * recipe.tags.len()]);
            prop_assert!(bytes.len() <= headers + usize::from(recipe.size));
            prop_assert!(index + 1 == pieces.len() || piece.payload.len() == usize::from(recipe.size));
            prop_assert_eq!(piece.payload, &recipe.payload[sent..sent + piece.payload.len()]);
            if recipe.tcp {
                prop_assert_eq!(piece.sequence, Some(recipe.sequence.wrapping_add(sent as u32)));
                prop_assert_eq!(piece.flags, flags(recipe.flags, index, pieces.len()));
            }
            if let Some(id) = piece.id {
                prop_assert_eq!(id, recipe.id.wrapping_add(index as u16));
            }
            sent += piece.payload.len();
        }
        prop_assert_eq!(sent, recipe.payload.len());
    }

    #[test]
    fn damaged_super_frames_never_panic(
        recipe in recipe(), damage in vec((0usize..100, any::<u8>()), 0..6), length in 0usize..200,
        kind in 0u8..8, size in 0u16..2000,
    ) {
        let mut frame = recipe.frame();
        frame.truncate(length);
        for (at, byte) in damage {
            if let Some(slot) = frame.get_mut(at) {
                *slot = byte;
            }
        }
        let kind = match kind {
            0 => Kind::TcpV4,
            1 => Kind::TcpV6,
            2 => Kind::Udp,
            3 => Kind::Other(3),
            _ => recipe.gso().kind,
        };
        if let Ok(pieces) = cut(&frame, Gso { kind, size }) {
            prop_assert!(!pieces.is_empty());
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(frame in vec(any::<u8>(), 0..200), size in any::<u16>()) {
        for kind in [Kind::TcpV4, Kind::TcpV6, Kind::Udp, Kind::Other(9)] {
            let _ = cut(&frame, Gso { kind, size });
        }
    }
}

fn plain() -> Recipe {
    Recipe {
        v6: false,
        tcp: true,
        tags: Vec::new(),
        extra: 0,
        tcp_options: 3,
        id: 0xfffe,
        sequence: u32::MAX - 1000,
        flags: 0xd9, // CWR, ECE, ACK, PSH, FIN
        addresses: (1..33).collect(),
        payload: vec![0x5a; 4000],
        size: 1448,
    }
}

#[test]
fn one_known_super_frame() {
    let pieces = cut(&plain().frame(), plain().gso()).unwrap();
    let lengths: Vec<_> = pieces.iter().map(Vec::len).collect();
    assert_eq!(lengths, [1514, 1514, 14 + 20 + 32 + 4000 - 2 * 1448]);
    let parts: Vec<_> = pieces.iter().map(|piece| verify(piece)).collect();
    assert_eq!(parts.iter().map(|p| p.flags).collect::<Vec<_>>(), [0xd0, 0x50, 0x59]);
    assert_eq!(parts.iter().map(|p| p.id.unwrap()).collect::<Vec<_>>(), [0xfffe, 0xffff, 0]);
    assert_eq!(parts[1].sequence, Some(447));
}

#[test]
fn what_cannot_be_cut_is_refused_with_a_reason() {
    let recipe = plain();
    let frame = recipe.frame();
    let refusal = |frame: &[u8], kind, size| cut(frame, Gso { kind, size }).unwrap_err();
    assert_eq!(refusal(&frame, Kind::Other(3), 1448), Unsegmentable::Kind(3));
    assert_eq!(refusal(&frame, Kind::TcpV6, 1448), Unsegmentable::Headers);
    assert_eq!(refusal(&frame, Kind::Udp, 1448), Unsegmentable::Headers);
    assert_eq!(refusal(&frame, Kind::TcpV4, 0), Unsegmentable::Size);
    assert_eq!(refusal(&frame[..50], Kind::TcpV4, 1448), Unsegmentable::Short);
    let mut tunnel = frame.clone();
    tunnel[14 + 9] = 47; // GRE
    assert_eq!(refusal(&tunnel, Kind::TcpV4, 1448), Unsegmentable::Headers);
    let mut fragment = frame.clone();
    fragment[14 + 6] |= 0x20; // more fragments
    assert_eq!(refusal(&fragment, Kind::TcpV4, 1448), Unsegmentable::Fragment);
    let huge = Recipe { payload: vec![0; 70_000], ..recipe }.frame();
    assert_eq!(refusal(&huge, Kind::TcpV4, u16::MAX), Unsegmentable::Size);
    for reason in [Unsegmentable::Kind(3), Unsegmentable::Headers, Unsegmentable::Size] {
        assert!(!reason.to_string().contains('\n') && reason.to_string().len() > 20);
    }
}
