//! Finding the channel, the size and the priority of a raw Ethernet frame.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use trunkline_core::Channel;

/// What tells one channel from another.
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

/// What a path needs to know of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Class {
    /// User bytes: all that follows the 14 bytes of Ethernet header, VLAN tags included.
    pub size: u32,
    /// The channel under the chosen key.
    pub channel: Channel,
    /// Priority band: 7 less the IP precedence (the upper three bits of the DSCP), so that network
    /// control is band 0 and best effort band 7.
    pub band: u8,
}

const ETHERNET_HEADER: usize = 14;
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
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
    }
}

/// The fields of a frame that keys are made of.
#[derive(Default)]
struct View<'a> {
    vlan: u16,
    ether_type: u16,
    dscp: u8,
    protocol: u8,
    addresses: &'a [u8],
    ports: Option<[u8; 4]>,
}

impl<'a> View<'a> {
    fn of(frame: &'a [u8]) -> View<'a> {
        let mut view = View::default();
        let mut at = 12;
        while let Some(kind) = be16(frame, at) {
            view.ether_type = kind;
            at += 2;
            if !VLAN_TYPES.contains(&kind) {
                break;
            }
            view.vlan = be16(frame, at).unwrap_or(0) & 0x0fff;
            at += 2;
        }
        let packet = frame.get(at..).unwrap_or(&[]);
        match view.ether_type {
            IPV4 => view.read_ipv4(packet),
            IPV6 => view.read_ipv6(packet),
            _ => view.addresses = frame.get(..12).unwrap_or(frame),
        }
        view
    }

    fn read_ipv4(&mut self, packet: &'a [u8]) {
        let Some(header) = packet.get(..20) else { return };
        self.dscp = header[1] >> 2;
        self.protocol = header[9];
        self.addresses = &header[12..20];
        let fragment = u16::from_be_bytes([header[6], header[7]]) & 0x3fff != 0;
        if !fragment {
            self.read_ports(packet, usize::from(header[0] & 0x0f) * 4);
        }
    }

    fn read_ipv6(&mut self, packet: &'a [u8]) {
        let Some(header) = packet.get(..40) else { return };
        self.dscp = (u16::from_be_bytes([header[0], header[1]]) >> 6) as u8 & 0x3f;
        self.protocol = header[6];
        self.addresses = &header[8..40];
        self.read_ports(packet, 40);
    }

    fn read_ports(&mut self, packet: &[u8], at: usize) {
        if WITH_PORTS.contains(&self.protocol) {
            self.ports = packet.get(at..at + 4).and_then(|ports| ports.try_into().ok());
        }
    }
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

    proptest! {
        #[test]
        fn any_bytes_classify(frame in prop::collection::vec(any::<u8>(), 0..100)) {
            for (key, _) in NAMES {
                let class = classify(&frame, key);
                prop_assert!(class.band < 8 && class.size as usize <= frame.len());
            }
        }
    }
}
