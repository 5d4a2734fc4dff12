//! Cutting super-frames: whatever the headers, the pieces are valid wire frames and carry the same bytes.
//!
//! The verifier here is written on its own, from the RFCs, and shares no code with the crate.

use proptest::collection::vec;
use proptest::prelude::*;
use trunkline_port::offload::{Gso, OffloadKind};
use trunkline_port::segment::{Unsegmentable, segment};

/// The headers around a super-frame.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Tunnel {
    Vxlan,
    /// VXLAN's generic extension, with an IP packet or an Ethernet frame in it.
    Generic {
        ethernet: bool,
    },
    /// With so many words of options.
    Geneve {
        options: u8,
        ethernet: bool,
    },
    /// The IP packet alone in UDP.
    Fou,
    Gre {
        checksum: bool,
        key: bool,
        ethernet: bool,
    },
    /// IP in IP.
    Ip,
}

/// A tunnel, over IPv6 or IPv4, with a checksum over all if it may have one.
#[derive(Debug, Clone, Copy)]
struct Around {
    tunnel: Tunnel,
    v6: bool,
    checksum: bool,
}

fn around() -> impl Strategy<Value = Around> {
    let tunnel = prop_oneof![
        Just(Tunnel::Vxlan),
        any::<bool>().prop_map(|ethernet| Tunnel::Generic { ethernet }),
        (0u8..5, any::<bool>())
            .prop_map(|(options, ethernet)| Tunnel::Geneve { options, ethernet }),
        Just(Tunnel::Fou),
        (any::<bool>(), any::<bool>(), any::<bool>())
            .prop_map(|(checksum, key, ethernet)| Tunnel::Gre { checksum, key, ethernet }),
        Just(Tunnel::Ip),
    ];
    (tunnel, any::<bool>(), any::<bool>()).prop_map(|(tunnel, v6, checksum)| Around {
        tunnel,
        v6,
        checksum,
    })
}

impl Around {
    fn carries_ethernet(self) -> bool {
        match self.tunnel {
            Tunnel::Vxlan => true,
            Tunnel::Generic { ethernet }
            | Tunnel::Geneve { ethernet, .. }
            | Tunnel::Gre { ethernet, .. } => ethernet,
            Tunnel::Fou | Tunnel::Ip => false,
        }
    }

    /// The IP protocol of the tunnel around a packet of IPv6 or IPv4.
    fn protocol(self, v6: bool) -> u8 {
        match self.tunnel {
            Tunnel::Gre { .. } => 47,
            Tunnel::Ip => {
                if v6 {
                    41
                } else {
                    4
                }
            }
            _ => 17,
        }
    }

    /// The header between the outer IP header and what is carried, of the type `inner`; UDP with rubbish for a
    /// length, and for a checksum if it has one.
    fn header(self, inner: [u8; 2]) -> Vec<u8> {
        let udp = |port: u16, rest: &[u8]| {
            let sum = if self.checksum { [0xee, 0xee] } else { [0, 0] };
            [&[0xc0, 1], &port.to_be_bytes()[..], &[0xee, 0xee], &sum, rest].concat()
        };
        let next = match inner {
            [0x08, 0] => 1,
            [0x86, 0xdd] => 2,
            _ => 3,
        };
        match self.tunnel {
            Tunnel::Vxlan => udp(4789, &[8, 0, 0, 0, 0, 0, 7, 0]),
            Tunnel::Generic { .. } => udp(4790, &[0x0c, 0, 0, next, 0, 0, 7, 0]),
            Tunnel::Geneve { options, .. } => {
                let header = [options, 0, inner[0], inner[1], 0, 0, 7, 0];
                udp(6081, &[&header[..], &vec![0x5a; usize::from(options) * 4]].concat())
            }
            Tunnel::Fou => udp(5555, &[]),
            Tunnel::Gre { checksum, key, .. } => {
                let mut header = vec![u8::from(checksum) << 7 | u8::from(key) << 5, 0];
                header.extend(inner);
                header.extend_from_slice(if checksum { &[0xee, 0xee, 0, 0] } else { &[] });
                header.extend_from_slice(if key { &[1, 2, 3, 4] } else { &[] });
                header
            }
            Tunnel::Ip => Vec::new(),
        }
    }

    /// The frame `inner` in the tunnel.
    fn wrap(self, inner: &[u8], id: u16, v6: bool) -> Vec<u8> {
        let kind = if v6 { [0x86, 0xdd] } else { [0x08, 0x00] };
        let packet = &inner[network(inner)..];
        let (kind, carried) =
            if self.carries_ethernet() { ([0x65, 0x58], inner) } else { (kind, packet) };
        let mut frame = vec![0xbb; 12];
        if self.v6 {
            frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0xee, 0xee, self.protocol(v6), 64]);
            frame.extend(100..132);
        } else {
            frame.extend([0x08, 0x00, 0x45, 0, 0xee, 0xee]);
            frame.extend(id.to_be_bytes());
            frame.extend([0, 0, 64, self.protocol(v6), 0xee, 0xee, 192, 0, 2, 1, 192, 0, 2, 2]);
        }
        frame.extend(self.header(kind));
        frame.extend(carried);
        frame
    }

    /// Checks the headers around a piece; returns the outer identification and the frame within, whose
    /// Ethernet header is made up if the tunnel carries none.
    fn unwrap(self, piece: &[u8], v6: bool) -> (Option<u16>, Vec<u8>) {
        let (id, addresses, protocol, rest) = ip(&piece[12..]);
        assert_eq!(protocol, self.protocol(v6));
        let fixed = self.header(if v6 { [0x86, 0xdd] } else { [0x08, 0] }).len();
        match self.tunnel {
            Tunnel::Gre { checksum: true, .. } => assert_eq!(sum(&[rest]), 0xffff, "GRE checksum"),
            Tunnel::Gre { .. } | Tunnel::Ip => {}
            _ => {
                assert_eq!(usize::from(rest[4]) * 256 + usize::from(rest[5]), rest.len());
                let length = (rest.len() as u32).to_be_bytes();
                match self.checksum {
                    true => assert_eq!(sum(&[addresses, &length, &[0, 17], rest]), 0xffff, "outer"),
                    false => assert_eq!(rest[6..8], [0, 0], "no outer checksum was asked for"),
                }
            }
        }
        let kind = if v6 { [0x86, 0xdd] } else { [0x08, 0x00] };
        let made_up =
            if self.carries_ethernet() { vec![] } else { [&[0xaa; 12], &kind[..]].concat() };
        (id, [&made_up, &rest[fixed..]].concat())
    }
}

/// The start of a frame's network header.
fn network(frame: &[u8]) -> usize {
    let tags = frame[12..].chunks(4).take_while(|tag| matches!(tag[..2], [0x81, 0] | [0x88, 0xa8]));
    14 + 4 * tags.count()
}

/// The parts that a super-frame is built from.
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
            (true, false) => OffloadKind::TcpV4,
            (true, true) => OffloadKind::TcpV6,
            (false, _) => OffloadKind::Udp,
        };
        Gso { kind, size: self.size, cwr_once: true }
    }

    /// The super-frame in a tunnel, if its own lengths are right.
    fn wrapped(&self, around: Around) -> Vec<u8> {
        let mut inner = self.frame();
        let at = network(&inner);
        let length = (inner.len() - at - if self.v6 { 40 } else { 0 }) as u16;
        let field = at + if self.v6 { 4 } else { 2 };
        inner[field..field + 2].copy_from_slice(&length.to_be_bytes());
        around.wrap(&inner, self.id ^ 0x5555, self.v6)
    }

    /// The start of what the checksum to be finished covers, in a frame with this payload at its end, and its field.
    fn checksum(&self, frame: &[u8]) -> (usize, usize) {
        let header = if self.tcp { 20 + 4 * self.tcp_options } else { 8 };
        (frame.len() - self.payload.len() - header, if self.tcp { 16 } else { 6 })
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

/// Takes a network packet, its type before it, apart: identification, addresses, protocol and what it carries.
fn ip(packet: &[u8]) -> (Option<u16>, &[u8], u8, &[u8]) {
    let (ethertype, packet) = packet.split_at(2);
    match ethertype {
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
    }
}

/// Takes a wire frame apart, checking every length and checksum in it.
fn verify(frame: &[u8]) -> Piece<'_> {
    let mut packet = &frame[12..];
    while matches!(packet[..2], [0x81, 0x00] | [0x88, 0xa8]) {
        packet = &packet[4..];
    }
    let (id, addresses, protocol, transport) = ip(packet);
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
    cut_at(frame, gso, None)
}

fn cut_at(
    frame: &[u8],
    gso: Gso,
    checksum: Option<(usize, usize)>,
) -> Result<Vec<Vec<u8>>, Unsegmentable> {
    let mut pieces = Vec::new();
    let mut keep = |piece: &[u8]| pieces.push(piece.to_vec());
    let count = segment(frame, gso, checksum, &mut Vec::new(), &mut keep)?;
    assert_eq!(count, pieces.len());
    Ok(pieces)
}

/// The flags that piece `index` of `count` must carry (RFC 3168 §6.1.2 for CWR, 0x80).
fn flags(all: u8, index: usize, count: usize) -> u8 {
    let first = if index == 0 { 0x80 } else { 0 };
    let last = if index + 1 == count { 0x09 } else { 0 };
    all & (0x76 | first | last)
}

/// Whether `pieces` are what wires carry for the super-frame of `recipe`.
fn are_pieces_of(pieces: &[Vec<u8>], recipe: &Recipe) -> Result<(), TestCaseError> {
    let mut sent = 0;
    for (index, bytes) in pieces.iter().enumerate() {
        let piece = verify(bytes);
        let size = usize::from(recipe.size);
        prop_assert!(index + 1 == pieces.len() || piece.payload.len() == size);
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
    Ok(())
}

proptest! {
    #[test]
    fn pieces_are_valid_frames_with_the_same_bytes(recipe in recipe()) {
        let frame = recipe.frame();
        let headers = frame.len() - recipe.payload.len();
        let pieces = cut(&frame, recipe.gso()).unwrap();
        prop_assert_eq!(&cut_at(&frame, recipe.gso(), Some(recipe.checksum(&frame))).unwrap(), &pieces);
        for bytes in &pieces {
            prop_assert_eq!(&bytes[..12 + 4 * recipe.tags.len()], &frame[..12 + 4 * recipe.tags.len()]);
            prop_assert!(bytes.len() <= headers + usize::from(recipe.size));
        }
        are_pieces_of(&pieces, &recipe)?;
    }

    #[test]
    fn pieces_of_a_tunnelled_super_frame_are_valid_inside_and_outside(
        recipe in recipe(), around in around(),
    ) {
        let recipe = Recipe { tags: if around.carries_ethernet() { recipe.tags.clone() } else { vec![] }, ..recipe };
        let recipe = Recipe { payload: recipe.payload[..recipe.payload.len().min(60_000)].to_vec(), ..recipe };
        let frame = recipe.wrapped(around);
        let pieces = cut_at(&frame, recipe.gso(), Some(recipe.checksum(&frame))).unwrap();
        let mut inner = Vec::new();
        for (index, piece) in pieces.iter().enumerate() {
            let (id, frame) = around.unwrap(piece, recipe.v6);
            prop_assert_eq!(id, (!around.v6).then(|| (recipe.id ^ 0x5555).wrapping_add(index as u16)));
            inner.push(frame);
        }
        are_pieces_of(&inner, &recipe)?;
        // Which transport is meant is told by the checksum alone.
        let refused = cut(&frame, recipe.gso());
        prop_assert!(recipe.tcp || around.protocol(recipe.v6) != 17 || refused.is_err());
    }

    /// A checksum that starts anywhere but at a transport header that is there: nothing is cut.
    #[test]
    fn what_is_not_understood_is_refused(
        recipe in recipe(), around in prop::option::of(around()), off in 1usize..120,
    ) {
        let recipe = Recipe { payload: recipe.payload[..recipe.payload.len().min(9000)].to_vec(), tags: vec![], ..recipe };
        let frame = around.map_or_else(|| recipe.frame(), |around| recipe.wrapped(around));
        let (right, field) = recipe.checksum(&frame);
        for start in [right.saturating_sub(off), right + off] {
            let outer = around.is_some_and(|it| !recipe.tcp && start == if it.v6 { 54 } else { 34 });
            prop_assert!(outer || cut_at(&frame, recipe.gso(), Some((start, field))).is_err(), "{start}");
        }
        prop_assert!(cut_at(&frame, recipe.gso(), Some((right, field + 2))).is_err());
    }

    #[test]
    fn damaged_super_frames_never_panic(
        recipe in recipe(), damage in vec((0usize..100, any::<u8>()), 0..6), length in 0usize..200,
        kind in 0u8..8, size in 0u16..2000, around in prop::option::of(around()), start in 0usize..200,
    ) {
        let mut frame = around.map_or_else(|| recipe.frame(), |around| recipe.wrapped(around));
        frame.truncate(length);
        for (at, byte) in damage {
            if let Some(slot) = frame.get_mut(at) {
                *slot = byte;
            }
        }
        let kind = match kind {
            0 => OffloadKind::TcpV4,
            1 => OffloadKind::TcpV6,
            2 => OffloadKind::Udp,
            3 => OffloadKind::Other(3),
            _ => recipe.gso().kind,
        };
        for checksum in [None, Some((start, 16)), Some((start, 6))] {
            if let Ok(pieces) = cut_at(&frame, Gso { kind, size, cwr_once: true }, checksum) {
                prop_assert!(!pieces.is_empty());
            }
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(frame in vec(any::<u8>(), 0..200), size in any::<u16>()) {
        for kind in [OffloadKind::TcpV4, OffloadKind::TcpV6, OffloadKind::Udp, OffloadKind::Other(9)] {
            let _ = cut(&frame, Gso { kind, size, cwr_once: true });
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

/// With AccECN the flags AE, CWR and ECE are a count of marks that each segment repeats (RFC 9768 §3.2.2): the kernel
/// leaves its sign for CWR out, and no piece may lose the bit.
#[test]
fn a_count_of_marks_stands_in_every_piece() {
    let recipe = plain();
    let pieces = cut(&recipe.frame(), Gso { cwr_once: false, ..recipe.gso() }).unwrap();
    let flags: Vec<u8> = pieces.iter().map(|piece| verify(piece).flags).collect();
    assert_eq!(flags, [0xd0, 0xd0, 0xd9]);
}

#[test]
fn what_cannot_be_cut_is_refused_with_a_reason() {
    let recipe = plain();
    let frame = recipe.frame();
    let refusal =
        |frame: &[u8], kind, size| cut(frame, Gso { kind, size, cwr_once: true }).unwrap_err();
    assert_eq!(refusal(&frame, OffloadKind::Other(3), 1448), Unsegmentable::Kind(3));
    assert_eq!(refusal(&frame, OffloadKind::TcpV6, 1448), Unsegmentable::Headers);
    assert_eq!(refusal(&frame, OffloadKind::Udp, 1448), Unsegmentable::Headers);
    assert_eq!(refusal(&frame, OffloadKind::TcpV4, 0), Unsegmentable::Size);
    assert_eq!(refusal(&frame[..50], OffloadKind::TcpV4, 1448), Unsegmentable::Short);
    let mut tunnel = frame.clone();
    tunnel[14 + 9] = 47; // GRE
    assert_eq!(refusal(&tunnel, OffloadKind::TcpV4, 1448), Unsegmentable::Headers);
    let mut fragment = frame.clone();
    fragment[14 + 6] |= 0x20; // more fragments
    assert_eq!(refusal(&fragment, OffloadKind::TcpV4, 1448), Unsegmentable::Fragment);
    let huge = Recipe { payload: vec![0; 70_000], ..recipe }.frame();
    assert_eq!(refusal(&huge, OffloadKind::TcpV4, u16::MAX), Unsegmentable::Size);
    for reason in [Unsegmentable::Kind(3), Unsegmentable::Headers, Unsegmentable::Size] {
        assert!(!reason.to_string().contains('\n') && reason.to_string().len() > 20);
    }
}

/// The headers of VXLAN by hand: QUIC through a tunnel, two datagrams of 1000 bytes in one super-frame.
#[test]
fn one_known_super_frame_in_a_tunnel() {
    let recipe = Recipe { tcp: false, payload: vec![0x5a; 2000], size: 1000, id: 7, ..plain() };
    for checksum in [false, true] {
        let around = Around { tunnel: Tunnel::Vxlan, v6: false, checksum };
        let frame = recipe.wrapped(around);
        // Ethernet 14, IP 20, UDP 8, VXLAN 8, Ethernet 14, IP 20.
        assert_eq!(recipe.checksum(&frame), (84, 6));
        let pieces = cut_at(&frame, recipe.gso(), Some((84, 6))).unwrap();
        assert_eq!(pieces.iter().map(Vec::len).collect::<Vec<_>>(), [84 + 8 + 1000; 2]);
        assert_eq!(pieces[1][38..40], 1058u16.to_be_bytes(), "the outer UDP length");
        assert_eq!(pieces[1][88..90], 1008u16.to_be_bytes(), "the inner one");
    }
}

#[test]
fn numbered_gre_is_refused() {
    let tunnel = Tunnel::Gre { checksum: false, key: true, ethernet: false };
    let mut frame = plain().wrapped(Around { tunnel, v6: false, checksum: false });
    let checksum = Some(plain().checksum(&frame));
    assert_eq!(cut_at(&frame, plain().gso(), checksum).unwrap().len(), 3);
    // A sequence number in the place of the key.
    frame[34] = 0x10;
    assert_eq!(cut_at(&frame, plain().gso(), checksum), Err(Unsegmentable::Headers));
}
