//! The headers of a super-frame: from the Ethernet header, through tunnels, to the payload that is to be cut.

use super::Unsegmentable;
use crate::offload::OffloadKind;

const ADDRESSES: usize = 12;
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
/// An Ethernet frame inside another protocol (IANA, EtherType "Trans Ether Bridging").
const ETHERNET: u16 = 0x6558;
/// IEEE 802.1Q customer and 802.1ad service tags.
const VLAN: [u16; 2] = [0x8100, 0x88a8];
const TCP: u8 = 6;
const UDP: u8 = 17;
/// IPv4 and IPv6 within IP (RFC 2003, RFC 4213), and GRE (RFC 2784).
const IPV4_WITHIN: u8 = 4;
const IPV6_WITHIN: u8 = 41;
const GRE: u8 = 47;
/// IPv6 extension headers that leave the pseudo-header alone: hop-by-hop and destination options. A
/// routing header does not (RFC 8200 §8.1) and is refused.
const OPTIONS: [u8; 2] = [0, 60];
/// The offset of a TCP checksum in its header.
const TCP_FIELD: usize = 16;
const UDP_FIELD: usize = 6;
/// Networks within each other: more than any system stacks, and few enough to look through.
const MOST_NETWORKS: usize = 4;
/// Each with what carries the next, or with the transport.
const MOST: usize = 2 * MOST_NETWORKS;

/// A header that differs from piece to piece, by its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layer {
    /// IPv4, up to its end.
    V4 {
        at: usize,
        end: usize,
    },
    V6 {
        at: usize,
    },
    Tcp {
        at: usize,
    },
    Udp {
        at: usize,
    },
    /// UDP around a tunnel, whose checksum may be left out (RFC 768).
    Carrier {
        at: usize,
    },
    /// GRE with a checksum.
    Gre {
        at: usize,
    },
}

/// The stated kind of a super-frame.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    protocol: u8,
    v6: Option<bool>,
    /// The start of its transport header, if the kernel tells.
    transport: Option<usize>,
}

impl Wanted {
    /// A super-frame of `kind` whose sender left a checksum to be finished: its start, and its field's place.
    pub fn new(
        kind: OffloadKind,
        checksum: Option<(usize, usize)>,
    ) -> Result<Wanted, Unsegmentable> {
        let (protocol, v6, field) = match kind {
            OffloadKind::TcpV4 => (TCP, Some(false), TCP_FIELD),
            OffloadKind::TcpV6 => (TCP, Some(true), TCP_FIELD),
            OffloadKind::Udp => (UDP, None, UDP_FIELD),
            OffloadKind::Other(kind) => return Err(Unsegmentable::Kind(kind)),
        };
        if checksum.is_some_and(|(_, other)| other != field) {
            return Err(Unsegmentable::Checksum);
        }
        Ok(Wanted { protocol, v6, transport: checksum.map(|(start, _)| start) })
    }
}

/// The headers that differ from piece to piece, outermost first, and the start of the payload.
#[derive(Debug)]
pub(super) struct Layers {
    layers: [Layer; MOST],
    count: usize,
    pub payload: usize,
}

impl Layers {
    /// Finds the headers of `frame`.
    pub fn of(frame: &[u8], wanted: Wanted) -> Result<Layers, Unsegmentable> {
        let mut found = Layers { layers: [Layer::V6 { at: 0 }; MOST], count: 0, payload: 0 };
        let (ethertype, at) = network(frame, 0)?;
        found.walk(frame, wanted, ethertype, at)?;
        Ok(found)
    }

    /// The headers, innermost first, each with the one around it.
    pub fn inside_out(&self) -> impl Iterator<Item = (Layer, Layer)> + '_ {
        (0..self.count)
            .rev()
            .map(|index| (self.layers[index], self.layers[index.saturating_sub(1)]))
    }

    /// The start of the outermost network header.
    pub fn network(&self) -> usize {
        match self.layers[0] {
            Layer::V4 { at, .. } | Layer::V6 { at } => at,
            _ => 0,
        }
    }

    fn push(&mut self, layer: Layer) -> Result<(), Unsegmentable> {
        let place = self.layers.get_mut(self.count).ok_or(Unsegmentable::Headers)?;
        *place = layer;
        self.count += 1;
        Ok(())
    }

    /// Looks through a network header of type `ethertype` at `at` and all that it carries.
    fn walk(
        &mut self,
        frame: &[u8],
        wanted: Wanted,
        ethertype: u16,
        at: usize,
    ) -> Result<(), Unsegmentable> {
        let v6 = match ethertype {
            IPV4 => false,
            IPV6 => true,
            _ => return Err(Unsegmentable::Headers),
        };
        let (protocol, next) = if v6 { after_v6(frame, at)? } else { after_v4(frame, at)? };
        // Within a tunnel bytes are headers only if they agree with what follows.
        if self.count > 0 && !reaches_the_end(frame, at, v6) {
            return Err(Unsegmentable::Headers);
        }
        self.push(if v6 { Layer::V6 { at } } else { Layer::V4 { at, end: next } })?;
        let here = wanted.transport.map_or(protocol == wanted.protocol, |start| start == next);
        if !here {
            return self.carried(frame, wanted, protocol, next);
        }
        if protocol != wanted.protocol || wanted.v6.is_some_and(|wanted| wanted != v6) {
            return Err(Unsegmentable::Headers);
        }
        if wanted.transport.is_none() && self.is_carrier(frame, wanted, next) {
            // Either of the two could be meant.
            return Err(Unsegmentable::Headers);
        }
        self.transport(frame, protocol, next)
    }

    fn transport(&mut self, frame: &[u8], protocol: u8, at: usize) -> Result<(), Unsegmentable> {
        let length = if protocol == TCP { tcp_length(frame, at)? } else { 8 };
        self.payload = at + length;
        if frame.len() < self.payload {
            return Err(Unsegmentable::Short);
        }
        self.push(if protocol == TCP { Layer::Tcp { at } } else { Layer::Udp { at } })
    }

    /// Looks through a tunnel of IP protocol `protocol` whose header starts at `at`.
    fn carried(
        &mut self,
        frame: &[u8],
        wanted: Wanted,
        protocol: u8,
        at: usize,
    ) -> Result<(), Unsegmentable> {
        match protocol {
            IPV4_WITHIN => self.walk(frame, wanted, IPV4, at),
            IPV6_WITHIN => self.walk(frame, wanted, IPV6, at),
            GRE => {
                let (ethertype, next) = self.gre(frame, at)?;
                self.inner(frame, wanted, ethertype, next)
            }
            UDP => {
                self.push(Layer::Carrier { at })?;
                let before = self.count;
                for (ethertype, next) in tunnels(frame, at + 8).into_iter().flatten() {
                    if self.inner(frame, wanted, ethertype, next).is_ok() {
                        return Ok(());
                    }
                    self.count = before;
                }
                Err(Unsegmentable::Headers)
            }
            _ => Err(Unsegmentable::Headers),
        }
    }

    /// Looks through what a tunnel carries: a network packet, or an Ethernet frame around one.
    fn inner(
        &mut self,
        frame: &[u8],
        wanted: Wanted,
        ethertype: u16,
        at: usize,
    ) -> Result<(), Unsegmentable> {
        let (ethertype, at) =
            if ethertype == ETHERNET { network(frame, at)? } else { (ethertype, at) };
        self.walk(frame, wanted, ethertype, at)
    }

    /// Whether the UDP header at `at` carries a tunnel with a transport such as the one wanted in it.
    fn is_carrier(&self, frame: &[u8], wanted: Wanted, at: usize) -> bool {
        let mut within = Layers { layers: self.layers, count: self.count, payload: 0 };
        wanted.protocol == UDP && within.carried(frame, wanted, UDP, at).is_ok()
    }

    /// The type and the start of what a GRE header (RFC 2784, keys RFC 2890) carries. Numbered packets cannot be
    /// made from one: nobody knows which numbers are free.
    fn gre(&mut self, frame: &[u8], at: usize) -> Result<(u16, usize), Unsegmentable> {
        const CHECKSUM: u16 = 0x8000;
        const KEY: u16 = 0x2000;
        let header = frame.get(at..at + 4).ok_or(Unsegmentable::Short)?;
        let (flags, ethertype) = (be16(header, 0), be16(header, 2));
        if flags & !(CHECKSUM | KEY) != 0 {
            return Err(Unsegmentable::Headers);
        }
        let field = |flag| if flags & flag == 0 { 0 } else { 4 };
        let next = at + 4 + field(CHECKSUM) + field(KEY);
        if flags & CHECKSUM != 0 {
            frame.get(at..next).ok_or(Unsegmentable::Short)?;
            self.push(Layer::Gre { at })?;
        }
        Ok((ethertype, next))
    }
}

/// The possible contents of a UDP payload at `at`, each with its type and its start: VXLAN (RFC
/// 7348) with or without a group policy, its generic extension, Geneve (RFC 8926), an IP packet alone (FOU).
fn tunnels(frame: &[u8], at: usize) -> [Option<(u16, usize)>; 4] {
    let Some(header) = frame.get(at..at + 8) else { return [None; 4] };
    let flags = header[0];
    let vxlan = (flags & 0x7f == 0x08).then_some((ETHERNET, at + 8));
    let generic = [(1, IPV4), (2, IPV6), (3, ETHERNET)].into_iter();
    let generic = generic.filter(|_| flags & 0xfe == 0x0c).find(|&(next, _)| next == header[3]);
    let options = usize::from(flags & 0x3f) * 4;
    let geneve = (flags >> 6 == 0).then(|| (be16(header, 2), at + 8 + options));
    let bare = match flags >> 4 {
        4 => Some((IPV4, at)),
        6 => Some((IPV6, at)),
        _ => None,
    };
    [vxlan, generic.map(|(_, ethertype)| (ethertype, at + 8)), geneve, bare]
}

/// Whether the network header at `at` is that of a packet that ends with the frame. A length of zero stands for one
/// that does not fit into the field.
fn reaches_the_end(frame: &[u8], at: usize, v6: bool) -> bool {
    let length = usize::from(be16(frame, at + if v6 { 4 } else { 2 }));
    let left = frame.len() - at;
    length == 0 || length == if v6 { left - 40 } else { left }
}

/// The network protocol of the Ethernet frame that starts at `start`, behind any VLAN tags, and the start of its
/// header.
fn network(frame: &[u8], start: usize) -> Result<(u16, usize), Unsegmentable> {
    let mut at = start + ADDRESSES;
    loop {
        let ethertype = be16(frame.get(at..at + 2).ok_or(Unsegmentable::Short)?, 0);
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
    if frame.len() < network + length {
        return Err(Unsegmentable::Short);
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

pub(super) fn be16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}
