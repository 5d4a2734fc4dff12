//! Finding the channel, the size and the priority of a raw Ethernet frame.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use trunkline_core::{Channel, Ecn, Hosts};

/// The key that tells one channel from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChannelKey {
    /// Protocol, addresses and ports of IPv4 or IPv6 (fragments and other protocols: addresses only).
    #[default]
    FiveTuple,
    /// Source and destination address.
    SourceDestination,
    /// VLAN identifier; untagged frames are one channel.
    Vlan,
    /// Differentiated services code point; what is not IP counts as code point 0.
    Dscp,
    /// All frames are one channel.
    One,
}

const NAMES: [(ChannelKey, &str); 5] = [
    (ChannelKey::FiveTuple, "five-tuple"),
    (ChannelKey::SourceDestination, "source-destination"),
    (ChannelKey::Vlan, "vlan"),
    (ChannelKey::Dscp, "dscp"),
    (ChannelKey::One, "one"),
];

impl fmt::Display for ChannelKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(NAMES.iter().find(|(key, _)| key == self).map_or("?", |&(_, name)| name))
    }
}

impl FromStr for ChannelKey {
    type Err = String;

    fn from_str(text: &str) -> Result<ChannelKey, String> {
        NAMES.iter().find(|&&(_, name)| name == text).map(|&(key, _)| key).ok_or_else(|| {
            let names: Vec<&str> = NAMES.iter().map(|&(_, name)| name).collect();
            format!("'{text}' is no channel key: use one of {}", names.join(", "))
        })
    }
}

/// The part of a frame that a path needs to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Class {
    /// User bytes: all that follows the 14 bytes of Ethernet header, VLAN tags included.
    pub size: u32,
    /// The channel under the chosen key.
    pub channel: Channel,
    /// Priority band: 7 less the IP precedence (the upper three bits of the DSCP), so that network
    /// control is band 0 and best effort band 7.
    pub band: u8,
    /// The addresses of IPv4 or IPv6 that it goes between, folded to 32 bits each; else those of Ethernet.
    pub hosts: Hosts,
    /// The congestion bits of IPv4 or IPv6; what is not IP cannot be marked.
    pub ecn: Ecn,
}

const ETHERNET_HEADER: usize = 14;
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const IPV4_HEADER: usize = 20;
const IPV6_HEADER: usize = 40;
const VLAN_TYPES: [u16; 2] = [0x8100, 0x88a8];
/// TCP, UDP, DCCP, SCTP, UDP-Lite: ports are the first four bytes.
const WITH_PORTS: [u8; 5] = [6, 17, 33, 132, 136];

/// Classifies `frame`, which starts at its Ethernet header. Never fails: what cannot be read counts
/// as one channel by its Ethernet type.
pub fn classify(frame: &[u8], key: ChannelKey) -> Class {
    let view = View::of(frame);
    let channel = match key {
        ChannelKey::One => 0,
        ChannelKey::Vlan => u64::from(view.vlan),
        ChannelKey::Dscp => u64::from(view.dscp),
        ChannelKey::SourceDestination => hash(0, view.addresses, view.ether_type),
        ChannelKey::FiveTuple => {
            let ports = view.ports.map_or(0, |ports| u64::from(u32::from_be_bytes(ports)) + 1);
            hash(ports << 8 | u64::from(view.protocol), view.addresses, view.ether_type)
        }
    };
    Class {
        size: frame.len().saturating_sub(ETHERNET_HEADER) as u32,
        channel: Channel(channel),
        band: 7 - (view.dscp >> 3),
        hosts: view.hosts(),
        ecn: view.ecn,
    }
}

/// Sets the congestion bits of `frame`, which starts at its Ethernet header, to "congestion experienced" if
/// they say that its sender can take that. Returns whether it is marked now.
///
/// Only IP's own header changes. Its checksum in IPv4, which is complete even if a checksum behind it was
/// left to a device, is corrected by what has changed (RFC 1624 §3, equation 3), so that a wrong one stays
/// wrong. No other checksum covers these bits.
pub fn mark_frame(frame: &mut [u8]) -> bool {
    let Network { ether_type, at, .. } = Network::of(frame);
    match (ether_type, frame.get_mut(at..)) {
        (IPV4, Some(packet)) if packet.len() >= IPV4_HEADER => mark_ipv4(packet),
        (IPV6, Some(packet)) if packet.len() >= IPV6_HEADER => mark_ipv6(packet),
        _ => false,
    }
}

fn mark_ipv4(header: &mut [u8]) -> bool {
    let old = u16::from_be_bytes([header[0], header[1]]);
    let ecn = Ecn::from_bits(header[1]);
    header[1] |= ecn.marked().bits();
    let new = u16::from_be_bytes([header[0], header[1]]);
    if new != old {
        let sum = u16::from_be_bytes([header[10], header[11]]);
        header[10..12].copy_from_slice(&corrected(sum, old, new).to_be_bytes());
    }
    ecn.is_capable()
}

/// The traffic class lies across the first two octets; its congestion bits are bits 4 and 5 of the second
/// (RFC 8200 §3).
fn mark_ipv6(header: &mut [u8]) -> bool {
    let ecn = Ecn::from_bits(header[1] >> 4);
    header[1] |= ecn.marked().bits() << 4;
    ecn.is_capable()
}

/// The checksum of a header in which the 16 bits `old` have become `new` (RFC 1624 §3, equation 3):
/// HC' = ~(~HC + ~m + m').
fn corrected(sum: u16, old: u16, new: u16) -> u16 {
    let wide = u32::from(!sum) + u32::from(!old) + u32::from(new);
    let once = (wide & 0xffff) + (wide >> 16);
    !((once & 0xffff) + (once >> 16)) as u16
}

/// The packet behind a frame's addresses and VLAN tags.
#[derive(Default)]
struct Network {
    /// The last tag's identifier.
    vlan: u16,
    ether_type: u16,
    /// The offset at which the packet begins.
    at: usize,
}

impl Network {
    fn of(frame: &[u8]) -> Network {
        let mut network = Network { at: 12, ..Network::default() };
        while let Some(kind) = be16(frame, network.at) {
            network.ether_type = kind;
            network.at += 2;
            if !VLAN_TYPES.contains(&kind) {
                break;
            }
            network.vlan = be16(frame, network.at).unwrap_or(0) & 0x0fff;
            network.at += 2;
        }
        network
    }
}

/// The fields of a frame that keys are made of.
#[derive(Default)]
struct View<'a> {
    vlan: u16,
    ether_type: u16,
    dscp: u8,
    ecn: Ecn,
    protocol: u8,
    addresses: &'a [u8],
    ports: Option<[u8; 4]>,
}

impl<'a> View<'a> {
    fn of(frame: &'a [u8]) -> View<'a> {
        let Network { vlan, ether_type, at } = Network::of(frame);
        let mut view = View { vlan, ether_type, ..View::default() };
        let packet = frame.get(at..).unwrap_or(&[]);
        match view.ether_type {
            IPV4 => view.read_ipv4(packet),
            IPV6 => view.read_ipv6(packet),
            _ => view.addresses = frame.get(..12).unwrap_or(frame),
        }
        view
    }

    /// Source first in IP, behind the destination in Ethernet.
    fn hosts(&self) -> Hosts {
        let (first, second) = self.addresses.split_at(self.addresses.len() / 2);
        match self.ether_type {
            IPV4 | IPV6 => Hosts { source: fold(first), destination: fold(second) },
            _ => Hosts { source: fold(second), destination: fold(first) },
        }
    }

    fn read_ipv4(&mut self, packet: &'a [u8]) {
        let Some(header) = packet.get(..IPV4_HEADER) else { return };
        (self.dscp, self.ecn) = (header[1] >> 2, Ecn::from_bits(header[1]));
        self.protocol = header[9];
        self.addresses = &header[12..20];
        let fragment = u16::from_be_bytes([header[6], header[7]]) & 0x3fff != 0;
        let behind = usize::from(header[0] & 0x0f) * 4;
        // A header that says it is shorter than any has no ports behind it.
        if !fragment && behind >= IPV4_HEADER {
            self.read_ports(packet, behind);
        }
    }

    fn read_ipv6(&mut self, packet: &'a [u8]) {
        let Some(header) = packet.get(..IPV6_HEADER) else { return };
        self.dscp = (u16::from_be_bytes([header[0], header[1]]) >> 6) as u8 & 0x3f;
        self.ecn = Ecn::from_bits(header[1] >> 4);
        self.protocol = header[6];
        self.addresses = &header[8..40];
        self.read_ports(packet, IPV6_HEADER);
    }

    fn read_ports(&mut self, packet: &[u8], at: usize) {
        if WITH_PORTS.contains(&self.protocol) {
            self.ports = packet.get(at..at + 4).and_then(|ports| ports.try_into().ok());
        }
    }
}

/// An address in 32 bits: itself in IPv4, in which it is as long; the exclusive or of its parts elsewhere.
fn fold(address: &[u8]) -> u32 {
    let words = address.chunks(4).map(|chunk| {
        let mut word = [0; 4];
        word[..chunk.len()].copy_from_slice(chunk);
        u32::from_be_bytes(word).rotate_left(chunk.len() as u32 % 4)
    });
    words.fold(0, |folded, word| folded.rotate_left(5) ^ word)
}

fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2).map(|pair| u16::from_be_bytes([pair[0], pair[1]]))
}

/// Mixes 64 bits at a time (multiply and fold). Good enough to tell flows apart; not for adversaries.
fn hash(start: u64, bytes: &[u8], kind: u16) -> u64 {
    const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;
    let mix = |hash: u64, word: u64| {
        let wide = u128::from(hash ^ word.wrapping_add(MULTIPLIER)) * u128::from(MULTIPLIER | 1);
        (wide >> 64) as u64 ^ wide as u64
    };
    let start = mix(start, u64::from(kind));
    bytes.chunks(8).fold(start, |hash, chunk| {
        let mut word = [0u8; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        mix(hash, u64::from_le_bytes(word))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn udp(source_port: u16, tos: u8, vlan: Option<u16>) -> Vec<u8> {
        let mut frame = vec![2; 12];
        if let Some(id) = vlan {
            frame.extend([0x81, 0x00]);
            frame.extend(id.to_be_bytes());
        }
        frame.extend([
            0x08, 0x00, 0x45, tos, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
        ]);
        frame.extend(source_port.to_be_bytes());
        frame.extend([0, 53, 0, 8, 0, 0]);
        frame
    }

    #[test]
    fn each_key_sees_what_it_should() {
        let channel = |frame: &[u8], key| classify(frame, key).channel;
        let (a, b) = (udp(1000, 0, None), udp(1001, 0xb8, Some(7)));
        assert_ne!(channel(&a, ChannelKey::FiveTuple), channel(&b, ChannelKey::FiveTuple));
        assert_eq!(
            channel(&a, ChannelKey::SourceDestination),
            channel(&b, ChannelKey::SourceDestination)
        );
        assert_eq!(channel(&b, ChannelKey::Vlan), Channel(7));
        assert_eq!(channel(&b, ChannelKey::Dscp), Channel(46));
        assert_eq!(channel(&b, ChannelKey::One), channel(&a, ChannelKey::One));
        assert_eq!(classify(&a, ChannelKey::One).size, 28);
        assert_eq!(
            (classify(&a, ChannelKey::One).band, classify(&b, ChannelKey::One).band),
            (7, 2)
        );
    }

    #[test]
    fn fragments_stay_with_their_flow_of_addresses() {
        let mut first = udp(1000, 0, None);
        first[20] = 0x20;
        let mut second = udp(4242, 0, None);
        second[21] = 5;
        let key = ChannelKey::FiveTuple;
        assert_eq!(classify(&first, key).channel, classify(&second, key).channel);
    }

    #[test]
    fn a_header_shorter_than_any_has_no_ports() {
        // With a length of no words its own first octets, which marking changes, would be the ports.
        for words in 0..5 {
            let mut frame = udp(1000, 2, None);
            frame[14] = 0x40 | words;
            let before = classify(&frame, ChannelKey::FiveTuple);
            assert!(mark_frame(&mut frame));
            let marked = Class { ecn: Ecn::Ce, ..before };
            assert_eq!(classify(&frame, ChannelKey::FiveTuple), marked, "{words} words");
        }
    }

    /// A UDP packet of the textbooks (192.168.0.1 to 192.168.0.199, 115 bytes), whose header sums to 0xb861
    /// while its second octet is zero.
    const IPV4_UDP: [u8; 20] = [
        0x45, 0x00, 0x00, 0x73, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11, 0xb8, 0x61, 0xc0, 0xa8, 0x00,
        0x01, 0xc0, 0xa8, 0x00, 0xc7,
    ];

    fn tagged(tags: &[u8], kind: u16, packet: &[u8]) -> Vec<u8> {
        [&[2; 12], tags, &kind.to_be_bytes(), packet].concat()
    }

    /// The sum of RFC 1071 over a header, its checksum included: 0xffff if that is right.
    fn sum(header: &[u8]) -> u32 {
        let words = header.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1]));
        let wide: u32 = words.sum();
        // The first carry may bring another.
        let once = (wide & 0xffff) + (wide >> 16);
        (once & 0xffff) + (once >> 16)
    }

    #[test]
    fn an_ipv4_header_is_marked_and_its_checksum_corrected() {
        assert_eq!(sum(&IPV4_UDP), 0xffff);
        // The second octet with AF11 and ECT(0) or ECT(1): 0x2a and 0x29 less in the sum.
        for (tos, low) in [(0x2au8, 0x37u8), (0x29, 0x38)] {
            let mut packet = IPV4_UDP;
            (packet[1], packet[11]) = (tos, low);
            assert_eq!(sum(&packet), 0xffff);
            for tags in [&[][..], &[0x81, 0, 0, 7], &[0x88, 0xa8, 0, 9, 0x81, 0, 0, 7]] {
                let mut frame = tagged(tags, IPV4, &packet);
                let class = classify(&frame, ChannelKey::Dscp);
                assert_eq!((class.channel, class.ecn), (Channel(10), Ecn::from_bits(tos)));
                assert!(mark_frame(&mut frame) && mark_frame(&mut frame), "twice is once");
                assert_eq!(classify(&frame, ChannelKey::Dscp).ecn, Ecn::Ce);
                assert_eq!(classify(&frame, ChannelKey::Dscp).channel, class.channel);
                let header = &frame[14 + tags.len()..];
                assert_eq!((header[1], header[11], sum(header)), (0x2b, 0x36, 0xffff));
            }
        }
    }

    #[test]
    fn an_ipv6_header_is_marked_without_a_checksum() {
        // Traffic class 0xb9 (EF, ECT(1)), flow label 0x54321.
        let mut packet = [0u8; 48];
        packet[..8].copy_from_slice(&[0x6b, 0x95, 0x43, 0x21, 0, 8, 17, 64]);
        let mut frame = tagged(&[0x81, 0, 0, 7], IPV6, &packet);
        let class = classify(&frame, ChannelKey::Dscp);
        assert_eq!((class.channel, class.ecn), (Channel(46), Ecn::Ect1));
        assert!(mark_frame(&mut frame));
        let mut expected = tagged(&[0x81, 0, 0, 7], IPV6, &packet);
        expected[19] = 0xb5;
        assert_eq!(frame, expected);
        assert_eq!(classify(&frame, ChannelKey::Dscp).ecn, Ecn::Ce);
    }

    #[test]
    fn what_cannot_be_marked_stays_as_it_is() {
        let arp = tagged(&[], 0x0806, &[3; 28]);
        let short = tagged(&[], IPV4, &[0x45, 2, 0, 0]);
        for frame in [tagged(&[], IPV4, &IPV4_UDP), arp, short, vec![0x81; 12], vec![]] {
            let mut after = frame.clone();
            assert!(!mark_frame(&mut after));
            assert_eq!((after, classify(&frame, ChannelKey::One).ecn), (frame, Ecn::NotEct));
        }
    }

    proptest! {
        #[test]
        fn any_bytes_classify(frame in prop::collection::vec(any::<u8>(), 0..100)) {
            for (key, _) in NAMES {
                let class = classify(&frame, key);
                prop_assert!(class.band < 8 && class.size as usize <= frame.len());
                let mut after = frame.clone();
                prop_assert_eq!(mark_frame(&mut after), class.ecn.is_capable());
                prop_assert_eq!(classify(&after, key), Class { ecn: class.ecn.marked(), ..class });
            }
        }

        /// A right checksum stays right, whatever the header.
        #[test]
        fn checksums_stay_right(mut header: [u8; 20], ecn in 1u8..3) {
            header[1] = header[1] & 0xfc | ecn;
            header[10..12].fill(0);
            let checksum = !(sum(&header) as u16);
            header[10..12].copy_from_slice(&checksum.to_be_bytes());
            let mut frame = tagged(&[], IPV4, &header);
            prop_assert!(mark_frame(&mut frame));
            prop_assert_eq!(sum(&frame[14..]), 0xffff);
        }
    }
}
