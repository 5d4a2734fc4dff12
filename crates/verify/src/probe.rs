//! The probe: a stamped, numbered UDP packet in IPv4, as the LDS report §3.9 uses, in a raw frame.

use std::net::Ipv4Addr;
use trunkline_port::checksum::Sum;

/// Bytes of Ethernet, IPv4 and UDP headers.
const ETHERNET: usize = 14;
const IPV4: usize = 20;
const UDP: usize = 8;
/// The start of the payload.
const PAYLOAD: usize = ETHERNET + IPV4 + UDP;
/// Mark 2, kind 1, zero 1, number 4, stamp 4.
const CONTENT: usize = 12;
/// Marks our probes among other frames.
const MARK: u16 = 0x746c;
/// Both ports. 7 would be "echo"; this one nobody listens to.
const PORT: u16 = 7077;
const TTL: u8 = 64;
const PROTOCOL_UDP: u8 = 17;

/// The smallest probe, in bytes of IPv4 packet: headers and content.
pub const SMALLEST: u32 = (IPV4 + UDP + CONTENT) as u32;

/// The destination's Ethernet address: nobody's, so that the hosts' own stacks pass the probes over
/// and answer none of them; the receiving socket is promiscuous.
const TO: [u8; 6] = [0x02, b't', b'l', 0xff, 0, 1];
const FROM: [u8; 6] = [0x02, b't', b'l', 0xff, 0, 2];

/// The purpose of a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum ProbeKind {
    /// Before the measurement, to warm caches; not counted.
    Warm = 1,
    /// One way.
    Plain = 2,
    /// To be reflected.
    Ping = 3,
    /// The reflection; its stamp is that of the ping.
    Pong = 4,
}

impl ProbeKind {
    fn of(byte: u8) -> Option<ProbeKind> {
        [ProbeKind::Warm, ProbeKind::Plain, ProbeKind::Ping, ProbeKind::Pong]
            .into_iter()
            .find(|k| *k as u8 == byte)
    }
}

/// The contents of a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Content {
    /// Its purpose.
    pub kind: ProbeKind,
    /// Its number, from 0, in its direction.
    pub number: u32,
    /// The sender's clock before it was sent (of a pong: before its ping was): the low 32 bits of
    /// nanoseconds of CLOCK_REALTIME.
    pub stamp: u32,
}

/// A frame of one direction that is filled anew for each probe.
#[derive(Debug, Clone)]
pub struct Template {
    frame: Vec<u8>,
    /// The UDP checksum's sum over all but the content.
    sum: Sum,
}

impl Template {
    /// Probes of `size` bytes of IPv4 packet (at least [`SMALLEST`], at most 65535).
    pub fn new(from: Ipv4Addr, to: Ipv4Addr, size: u32) -> Template {
        let size = size.clamp(SMALLEST, 65_535) as usize;
        let mut frame = vec![0; ETHERNET + size];
        frame[..6].copy_from_slice(&TO);
        frame[6..12].copy_from_slice(&FROM);
        frame[12..14].copy_from_slice(&0x0800u16.to_be_bytes());
        write_ip(&mut frame[ETHERNET..ETHERNET + IPV4], from, to, size as u16);
        let length = (size - IPV4) as u16;
        write_udp(&mut frame[ETHERNET + IPV4..PAYLOAD], length);
        let sum = Sum::default()
            .plus(&from.octets())
            .plus(&to.octets())
            .word(u16::from(PROTOCOL_UDP))
            .word(length)
            .plus(&frame[ETHERNET + IPV4..]);
        Template { frame, sum }
    }

    /// The frame of one probe, its checksum valid.
    pub fn fill(&mut self, content: Content) -> &[u8] {
        let bytes = encode(content);
        let checksum = self.sum.plus(&bytes).checksum_not_zero();
        self.frame[PAYLOAD..PAYLOAD + CONTENT].copy_from_slice(&bytes);
        let field = ETHERNET + IPV4 + 6;
        self.frame[field..field + 2].copy_from_slice(&checksum.to_be_bytes());
        &self.frame
    }

    /// Bytes of IPv4 packet.
    pub fn size(&self) -> u32 {
        (self.frame.len() - ETHERNET) as u32
    }
}

fn write_ip(header: &mut [u8], from: Ipv4Addr, to: Ipv4Addr, size: u16) {
    header[0] = 0x45;
    header[2..4].copy_from_slice(&size.to_be_bytes());
    // May not be fragmented.
    header[6] = 0x40;
    header[8] = TTL;
    header[9] = PROTOCOL_UDP;
    header[12..16].copy_from_slice(&from.octets());
    header[16..20].copy_from_slice(&to.octets());
    let checksum = Sum::default().plus(header).checksum();
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
}

fn write_udp(header: &mut [u8], length: u16) {
    header[..2].copy_from_slice(&PORT.to_be_bytes());
    header[2..4].copy_from_slice(&PORT.to_be_bytes());
    header[4..6].copy_from_slice(&length.to_be_bytes());
}

fn encode(content: Content) -> [u8; CONTENT] {
    let mut bytes = [0; CONTENT];
    bytes[..2].copy_from_slice(&MARK.to_be_bytes());
    bytes[2] = content.kind as u8;
    bytes[4..8].copy_from_slice(&content.number.to_be_bytes());
    bytes[8..].copy_from_slice(&content.stamp.to_be_bytes());
    bytes
}

/// The content of a probe; `None` for other frames.
pub fn read(frame: &[u8]) -> Option<Content> {
    let is_udp = frame.get(12..14)? == [8, 0] && *frame.get(ETHERNET + 9)? == PROTOCOL_UDP;
    let content = frame.get(PAYLOAD..PAYLOAD + CONTENT).filter(|_| is_udp)?;
    if content[..2] != MARK.to_be_bytes() {
        return None;
    }
    let word = |at: usize| u32::from_be_bytes(content[at..at + 4].try_into().unwrap_or_default());
    Some(Content { kind: ProbeKind::of(content[2])?, number: word(4), stamp: word(8) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const A: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);
    const B: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);

    proptest! {
        #[test]
        fn probes_are_valid_udp_and_read_back(
            size in SMALLEST..9181, number: u32, stamp: u32, again: u32,
        ) {
            let mut template = Template::new(A, B, size);
            for number in [number, again] {
                let content = Content { kind: ProbeKind::Ping, number, stamp };
                let frame = template.fill(content);
                prop_assert_eq!(frame.len(), 14 + size as usize);
                prop_assert_eq!(read(frame), Some(content));
                prop_assert_eq!(Sum::default().plus(&frame[14..34]).checksum(), 0);
                let udp = &frame[34..];
                let pseudo = Sum::default().plus(&A.octets()).plus(&B.octets()).word(17);
                prop_assert_eq!(pseudo.word(udp.len() as u16).plus(udp).checksum(), 0);
            }
        }

        #[test]
        fn other_frames_are_no_probes(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            prop_assert_eq!(read(&bytes), None);
        }
    }
}
