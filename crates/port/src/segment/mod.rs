//! Cutting a super-frame (GSO, GRO) into the wire frames that it stands for.
//!
//! The fields that change from piece to piece: the IPv4 total length, identification (one more each) and header
//! checksum, or the IPv6 payload length; the TCP sequence number, FIN and PSH on the last piece only, CWR
//! on the first only (RFC 3168 §6.1.2), or on all if it is part of a count (RFC 9768 §3.2.2); the UDP length; the
//! transport checksum. In a tunnel (VXLAN, Geneve, GRE, IP in IP) the same holds for the headers around: lengths,
//! identification, and checksums, of which one that is left out stays so. All else is repeated.

mod layers;

use crate::checksum::Sum;
use crate::offload::Gso;
use layers::{Layer, Layers, Wanted, be16};
use std::fmt;

/// The reason why a super-frame could not be cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unsegmentable {
    /// The kernel names a kind that this crate does not know.
    Kind(u8),
    /// The frame ends before its headers do.
    Short,
    /// The headers are not those of the kind, or the transport that the kernel means is not found behind them.
    Headers,
    /// An IPv4 fragment.
    Fragment,
    /// A piece size of zero, or one that fills more than an IP packet.
    Size,
    /// An unfinished checksum with its field outside the frame, or of a protocol that has none.
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
                "super-frame behind headers that are not known: switch gso and gro off at its source"
            }
            Unsegmentable::Fragment => "super-frame that is an IPv4 fragment",
            Unsegmentable::Size => "super-frame with an impossible piece size",
            Unsegmentable::Checksum => {
                "unfinished checksum outside the frame, or of another protocol"
            }
        };
        f.write_str(text)
    }
}

const FIN: u8 = 0x01;
const PSH: u8 = 0x08;
const CWR: u8 = 0x80;

/// Cuts `frame` (from the Ethernet header on, VLAN tags and tunnels allowed) and hands each piece to `sink`, in
/// order. Returns their number. `checksum` is what the sender left to be finished: the start of the covered part,
/// which is the transport header whose payload is to be cut, and the field's offset from there. Without it the
/// outermost transport is meant. `scratch` holds the piece; it grows once and is then reused.
///
/// # Errors
/// If the frame is not what `gso` and `checksum` say. No piece was handed out then.
pub fn segment(
    frame: &[u8],
    gso: Gso,
    checksum: Option<(usize, usize)>,
    scratch: &mut Vec<u8>,
    sink: &mut dyn FnMut(&[u8]),
) -> Result<usize, Unsegmentable> {
    let layers = Layers::of(frame, Wanted::new(gso.kind, checksum)?)?;
    let payload = &frame[layers.payload..];
    let size = usize::from(gso.size);
    let longest = layers.payload - layers.network() + size.min(payload.len());
    if size == 0 || longest > usize::from(u16::MAX) {
        return Err(Unsegmentable::Size);
    }
    // A super-frame without payload does not occur; one piece is what it would stand for.
    let count = payload.len().div_ceil(size).max(1);
    for index in 0..count {
        let from = index * size;
        let part = &payload[from..(from + size).min(payload.len())];
        scratch.clear();
        scratch.extend_from_slice(&frame[..layers.payload]);
        scratch.extend_from_slice(part);
        let last = index + 1 == count;
        let place = Place { index, from, last, cwr: index == 0 || !gso.cwr_once };
        // A header's checksum covers those inside it.
        for (layer, around) in layers.inside_out() {
            adjust(scratch, layer, around, place);
        }
        sink(scratch);
    }
    Ok(count)
}

/// The place of a piece.
#[derive(Clone, Copy)]
struct Place {
    index: usize,
    /// Payload bytes in the pieces before.
    from: usize,
    last: bool,
    /// Whether it may carry CWR.
    cwr: bool,
}

/// Sets one header of a piece; `around` is the one around it.
fn adjust(piece: &mut [u8], layer: Layer, around: Layer, place: Place) {
    match layer {
        Layer::V4 { at, end } => {
            put(piece, at + 2, (piece.len() - at) as u16);
            put(piece, at + 4, be16(piece, at + 4).wrapping_add(place.index as u16));
            put(piece, at + 10, 0);
            let sum = Sum::default().plus(&piece[at..end]).checksum();
            put(piece, at + 10, sum);
        }
        // Without the fixed header of 40 bytes (RFC 8200 §3).
        Layer::V6 { at } => put(piece, at + 4, (piece.len() - at - 40) as u16),
        Layer::Tcp { at } => {
            adjust_tcp(&mut piece[at..], place);
            put(piece, at + 16, 0);
            let sum = pseudo(piece, around, at, 6).plus(&piece[at..]).checksum();
            put(piece, at + 16, sum);
        }
        Layer::Udp { at } => adjust_udp(piece, around, at),
        // A checksum that the tunnel leaves out (RFC 768, RFC 6935) stays so.
        Layer::Carrier { at } if be16(piece, at + 6) == 0 => {
            put(piece, at + 4, (piece.len() - at) as u16);
        }
        Layer::Carrier { at } => adjust_udp(piece, around, at),
        Layer::Gre { at } => {
            put(piece, at + 4, 0);
            let sum = Sum::default().plus(&piece[at..]).checksum();
            put(piece, at + 4, sum);
        }
    }
}

fn adjust_udp(piece: &mut [u8], around: Layer, at: usize) {
    put(piece, at + 4, (piece.len() - at) as u16);
    put(piece, at + 6, 0);
    let sum = pseudo(piece, around, at, 17).plus(&piece[at..]).checksum_not_zero();
    put(piece, at + 6, sum);
}

fn adjust_tcp(tcp: &mut [u8], place: Place) {
    let sequence = u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]]);
    let sequence = sequence.wrapping_add(place.from as u32);
    tcp[4..8].copy_from_slice(&sequence.to_be_bytes());
    if !place.cwr {
        tcp[13] &= !CWR;
    }
    if !place.last {
        tcp[13] &= !(FIN | PSH);
    }
}

/// The sum of the pseudo-header (RFC 9293 §3.1, RFC 8200 §8.1) of the transport at `at` in `network`: addresses,
/// length, protocol.
fn pseudo(piece: &[u8], network: Layer, at: usize, protocol: u16) -> Sum {
    let addresses = match network {
        Layer::V4 { at, .. } => &piece[at + 12..at + 20],
        Layer::V6 { at } => &piece[at + 8..at + 40],
        _ => unreachable!("a transport lies in a network header"),
    };
    Sum::default().plus(addresses).word((piece.len() - at) as u16).word(protocol)
}

fn put(bytes: &mut [u8], at: usize, word: u16) {
    bytes[at..at + 2].copy_from_slice(&word.to_be_bytes());
}
