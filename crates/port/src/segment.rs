//! Cutting a super-frame (GSO, GRO) into the wire frames that it stands for.
//!
//! What changes from piece to piece: the IPv4 total length, identification (one more each) and header
//! checksum, or the IPv6 payload length; the TCP sequence number, FIN and PSH on the last piece only, CWR
//! on the first only (RFC 3168 §6.1.2); the UDP length; the transport checksum. All else is repeated.

use crate::checksum::Sum;
use crate::offload::{Gso, Kind};
use std::fmt;

/// Why a super-frame could not be cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unsegmentable {
    /// The kernel names a kind that this crate does not know.
    Kind(u8),
    /// The frame ends before its headers do.
    Short,
    /// The headers are not those of the kind: a tunnel, most likely.
    Headers,
    /// An IPv4 fragment.
    Fragment,
    /// A piece size of zero, or one that fills more than an IP packet.
    Size,
    /// An unfinished checksum with its field outside the frame.
    Checksum,
}

impl fmt::Display for Unsegmentable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Unsegmentable::Kind(kind) => {
                return write!(
                    f,
                    "super-frame of unknown kind {kind}: switch gso and gro off at its source"
                );
            }
            Unsegmentable::Short => "super-frame ends within its headers",
            Unsegmentable::Headers => {
                "super-frame inside a tunnel or behind unknown headers: switch gso and gro off at its source"
            }
            Unsegmentable::Fragment => "super-frame that is an IPv4 fragment",
            Unsegmentable::Size => "super-frame with an impossible piece size",
            Unsegmentable::Checksum => "unfinished checksum outside the frame",
        };
        f.write_str(text)
    }
}

const ETHERTYPE_AT: usize = 12;
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
/// IEEE 802.1Q customer and 802.1ad service tags.
const VLAN: [u16; 2] = [0x8100, 0x88a8];
const TCP: u8 = 6;
const UDP: u8 = 17;
/// IPv6 extension headers that leave the pseudo-header alone: hop-by-hop and destination options. A
/// routing header does not (RFC 8200 §8.1) and is refused.
const OPTIONS: [u8; 2] = [0, 60];

const FIN: u8 = 0x01;
const PSH: u8 = 0x08;
const CWR: u8 = 0x80;

/// Where the headers of a super-frame begin, in bytes from its start.
#[derive(Debug, Clone, Copy)]
struct Layout {
    network: usize,
    transport: usize,
    payload: usize,
    v6: bool,
    protocol: u8,
}

/// Cuts `frame` (from the Ethernet header on, VLAN tags allowed) and hands each piece to `sink`, in
/// order; returns how many. `scratch` holds the piece; it grows once and is then reused.
///
/// # Errors
/// Where the frame is not what `gso` says. No piece was handed out then.
pub fn segment(
    frame: &[u8],
    gso: Gso,
    scratch: &mut Vec<u8>,
    sink: &mut dyn FnMut(&[u8]),
) -> Result<usize, Unsegmentable> {
    let layout = layout(frame, gso.kind)?;
    let payload = &frame[layout.payload..];
    let size = usize::from(gso.size);
    let fits = layout.payload - layout.network + size.min(payload.len()) <= usize::from(u16::MAX);
    if size == 0 || !fits {
        return Err(Unsegmentable::Size);
    }
    // A super-frame without payload does not occur; one piece is what it would stand for.
    let count = payload.len().div_ceil(size).max(1);
    for index in 0..count {
        let from = index * size;
        let part = &payload[from..(from + size).min(payload.len())];
        scratch.clear();
        scratch.extend_from_slice(&frame[..layout.payload]);
        scratch.extend_from_slice(part);
        let place = Place { index, from, last: index + 1 == count };
        adjust(scratch, layout, place);
        sink(scratch);
    }
    Ok(count)
}

/// Which piece it is.
#[derive(Clone, Copy)]
struct Place {
    index: usize,
    /// Payload bytes in the pieces before.
    from: usize,
    last: bool,
}

fn adjust(piece: &mut [u8], layout: Layout, place: Place) {
    let length = piece.len() - layout.network;
    if layout.v6 {
        // Without the fixed header of 40 bytes (RFC 8200 §3).
        put(piece, layout.network + 4, (length - 40) as u16);
    } else {
        put(piece, layout.network + 2, length as u16);
        let id = be16(piece, layout.network + 4).wrapping_add(place.index as u16);
        put(piece, layout.network + 4, id);
        put(piece, layout.network + 10, 0);
        let sum = Sum::default().plus(&piece[layout.network..layout.transport]).checksum();
        put(piece, layout.network + 10, sum);
    }
    let segment = (piece.len() - layout.transport) as u16;
    let transport = layout.transport;
    if layout.protocol == TCP {
        adjust_tcp(&mut piece[transport..], place);
        put(piece, transport + 16, 0);
        let sum = pseudo(piece, layout, segment).plus(&piece[transport..]).checksum();
        put(piece, transport + 16, sum);
    } else {
        put(piece, transport + 4, segment);
        put(piece, transport + 6, 0);
        let sum = pseudo(piece, layout, segment).plus(&piece[transport..]).checksum_not_zero();
        put(piece, transport + 6, sum);
    }
}

fn adjust_tcp(tcp: &mut [u8], place: Place) {
    let sequence = u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]]);
    let sequence = sequence.wrapping_add(place.from as u32);
    tcp[4..8].copy_from_slice(&sequence.to_be_bytes());
    if place.index > 0 {
        tcp[13] &= !CWR;
    }
    if !place.last {
        tcp[13] &= !(FIN | PSH);
    }
}

/// The sum of the pseudo-header (RFC 9293 §3.1, RFC 8200 §8.1): addresses, length, protocol.
fn pseudo(piece: &[u8], layout: Layout, length: u16) -> Sum {
    let addresses = if layout.v6 {
        &piece[layout.network + 8..layout.network + 40]
    } else {
        &piece[layout.network + 12..layout.network + 20]
    };
    Sum::default().plus(addresses).word(length).word(u16::from(layout.protocol))
}

fn layout(frame: &[u8], kind: Kind) -> Result<Layout, Unsegmentable> {
    let (ethertype, network) = network(frame)?;
    let (wanted, v6_wanted) = match kind {
        Kind::TcpV4 => (TCP, Some(false)),
        Kind::TcpV6 => (TCP, Some(true)),
        Kind::Udp => (UDP, None),
        Kind::Other(kind) => return Err(Unsegmentable::Kind(kind)),
    };
    let v6 = match ethertype {
        IPV4 => false,
        IPV6 => true,
        _ => return Err(Unsegmentable::Headers),
    };
    let (protocol, transport) =
        if v6 { after_v6(frame, network)? } else { after_v4(frame, network)? };
    if protocol != wanted || v6_wanted.is_some_and(|wanted| wanted != v6) {
        return Err(Unsegmentable::Headers);
    }
    let header = if protocol == TCP { tcp_length(frame, transport)? } else { 8 };
    let payload = transport + header;
    if frame.len() < payload {
        return Err(Unsegmentable::Short);
    }
    Ok(Layout { network, transport, payload, v6, protocol })
}

/// The network protocol behind any VLAN tags, and where it starts.
fn network(frame: &[u8]) -> Result<(u16, usize), Unsegmentable> {
    let mut at = ETHERTYPE_AT;
    loop {
        let ethertype = frame.get(at..at + 2).ok_or(Unsegmentable::Short)?;
        let ethertype = u16::from_be_bytes([ethertype[0], ethertype[1]]);
        if !VLAN.contains(&ethertype) {
            return Ok((ethertype, at + 2));
        }
        at += 4;
    }
}

fn after_v4(frame: &[u8], network: usize) -> Result<(u8, usize), Unsegmentable> {
    let header = frame.get(network..network + 20).ok_or(Unsegmentable::Short)?;
    let length = usize::from(header[0] & 0x0f) * 4;
    if header[0] >> 4 != 4 || length < 20 {
        return Err(Unsegmentable::Headers);
    }
    // More fragments, or an offset.
    if be16(header, 6) & 0x3fff != 0 {
        return Err(Unsegmentable::Fragment);
    }
    Ok((header[9], network + length))
}

fn after_v6(frame: &[u8], network: usize) -> Result<(u8, usize), Unsegmentable> {
    let header = frame.get(network..network + 40).ok_or(Unsegmentable::Short)?;
    if header[0] >> 4 != 6 {
        return Err(Unsegmentable::Headers);
    }
    let (mut next, mut at) = (header[6], network + 40);
    while OPTIONS.contains(&next) {
        let extension = frame.get(at..at + 2).ok_or(Unsegmentable::Short)?;
        next = extension[0];
        at += (usize::from(extension[1]) + 1) * 8;
    }
    Ok((next, at))
}

fn tcp_length(frame: &[u8], transport: usize) -> Result<usize, Unsegmentable> {
    let offset = frame.get(transport + 12).ok_or(Unsegmentable::Short)?;
    match usize::from(offset >> 4) * 4 {
        length if length < 20 => Err(Unsegmentable::Headers),
        length => Ok(length),
    }
}

fn be16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn put(bytes: &mut [u8], at: usize, word: u16) {
    bytes[at..at + 2].copy_from_slice(&word.to_be_bytes());
}
