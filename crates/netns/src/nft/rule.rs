//! Rules of nf_tables: lists of expressions, each of which loads, compares or decides
//! (`linux/netfilter/nf_tables.h`).

use crate::IpNet;
use crate::message::Payload;
use std::net::IpAddr;

/// Register 1 of the rule's little machine (`NFT_REG_1`).
const REGISTER: u32 = 1;
/// The register that takes the decision (`NFT_REG_VERDICT`).
const VERDICT: u32 = 0;
/// `NFT_CMP_EQ` and `NFT_CMP_NEQ`.
const EQUAL: u32 = 0;
const UNEQUAL: u32 = 1;
/// Keys of `meta`: names of the devices of arrival and departure, group of the one of departure.
const ARRIVES_BY: u32 = 6;
const LEAVES_BY: u32 = 7;
const GROUP_OF_DEPARTURE: u32 = 22;
/// Further keys of `meta`: the family of addresses and the transport protocol.
const FAMILY: u32 = 15;
const PROTOCOL: u32 = 16;
/// Bases of `payload`: the headers of the network and of the transport.
const NETWORK: u32 = 1;
const TRANSPORT: u32 = 2;
/// `NFT_CT_STATE`, and in it the bits of connections that stand or belong to one that does
/// (`NF_CT_STATE_BIT`).
const STATE: u32 = 0;
const KNOWN: u32 = 2 | 4;
/// `NFT_CT_DIRECTION`, and in it the direction of a connection's first packet (`IP_CT_DIR_ORIGINAL`).
const DIRECTION: u32 = 1;
const ORIGINAL: u8 = 0;
/// `NF_DROP`.
const DROP: u32 = 0;

/// A rule: all of its conditions, then what happens.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rule(Payload);

impl Rule {
    /// The packet came by this device.
    pub(crate) fn arrives_by(self, device: &str) -> Rule {
        self.meta(ARRIVES_BY).compare(EQUAL, &padded(device))
    }

    /// The packet goes by this device.
    pub(crate) fn leaves_by(self, device: &str) -> Rule {
        self.meta(LEAVES_BY).compare(EQUAL, &padded(device))
    }

    /// The packet goes by a device of another group.
    pub(crate) fn leaves_group(self, group: u32) -> Rule {
        self.meta(GROUP_OF_DEPARTURE).compare(UNEQUAL, &group.to_ne_bytes())
    }

    /// The packet is of this transport protocol, by its number.
    pub(crate) fn of_protocol(self, number: u8) -> Rule {
        self.meta(PROTOCOL).compare(EQUAL, &[number])
    }

    /// The packet's transport goes to this port: bytes 2 and 3 of the headers of TCP and UDP.
    pub(crate) fn at_port(self, port: u16) -> Rule {
        self.load(TRANSPORT, 2, 2).compare(EQUAL, &port.to_be_bytes())
    }

    /// The packet's destination address is in this network.
    pub(crate) fn to(self, net: IpNet) -> Rule {
        self.destination(net, EQUAL)
    }

    /// The packet's destination address is of the network's family and not in it.
    pub(crate) fn not_to(self, net: IpNet) -> Rule {
        self.destination(net, UNEQUAL)
    }

    /// The packet's source address is in this network.
    pub(crate) fn from(self, net: IpNet) -> Rule {
        self.source(net, EQUAL)
    }

    /// The packet's source address is not in this network.
    pub(crate) fn not_from(self, net: IpNet) -> Rule {
        self.source(net, UNEQUAL)
    }

    /// The packet belongs to no connection that stands.
    pub(crate) fn new_connection(self) -> Rule {
        let load = Payload::default().be32(1, REGISTER).be32(2, STATE);
        self.then("ct", &load).mask(&KNOWN.to_ne_bytes()).compare(EQUAL, &[0; 4])
    }

    /// The packet goes the way of its connection's first one.
    pub(crate) fn original_direction(self) -> Rule {
        let load = Payload::default().be32(1, REGISTER).be32(2, DIRECTION);
        self.then("ct", &load).compare(EQUAL, &[ORIGINAL])
    }

    /// The packet gets the address of the device that it leaves by.
    pub(crate) fn masquerade(self) -> Payload {
        self.0.nest(1, &Payload::default().text(1, "masq"))
    }

    /// The packet goes to this port of the host itself.
    pub(crate) fn redirect(self, port: u16) -> Payload {
        let load = Payload::default().be32(1, REGISTER).nest(2, &value(&port.to_be_bytes()));
        let to = Payload::default().be32(1, REGISTER);
        self.then("immediate", &load).then("redir", &to).0
    }

    /// The packet goes, as it is, to the transparent socket of this family (`NFPROTO_…`) at this port of the host.
    pub(crate) fn take_in(self, family: i32, port: u16) -> Payload {
        let load = Payload::default().be32(1, REGISTER).nest(2, &value(&port.to_be_bytes()));
        let to = Payload::default().be32(1, family as u32).be32(3, REGISTER);
        self.then("immediate", &load).then("tproxy", &to).0
    }

    /// The packet is dropped.
    pub(crate) fn drop(self) -> Payload {
        let code = Payload::default().be32(1, DROP);
        let decision = Payload::default().nest(2, &code);
        let load = Payload::default().be32(1, VERDICT).nest(2, &decision);
        self.then("immediate", &load).0
    }

    /// The source address is at byte 12 of an IPv4 header (RFC 791 §3.1).
    fn source(self, net: IpNet, how: u32) -> Rule {
        self.load(NETWORK, 12, 4).compare_network(net, how)
    }

    /// The destination address is at byte 16 of an IPv4 header, at byte 24 of an IPv6 one (RFC 8200 §3).
    fn destination(self, net: IpNet, how: u32) -> Rule {
        let (family, at, bytes) = match net.address() {
            IpAddr::V4(_) => (libc::NFPROTO_IPV4, 16, 4),
            IpAddr::V6(_) => (libc::NFPROTO_IPV6, 24, 16),
        };
        let of_family = self.meta(FAMILY).compare(EQUAL, &[family as u8]);
        of_family.load(NETWORK, at, bytes).compare_network(net, how)
    }

    fn load(self, base: u32, at: u32, bytes: u32) -> Rule {
        let load = Payload::default().be32(1, REGISTER).be32(2, base).be32(3, at).be32(4, bytes);
        self.then("payload", &load)
    }

    /// Compares the address in the register with a network.
    fn compare_network(self, net: IpNet, how: u32) -> Rule {
        let prefix = u32::from(net.prefix());
        match net.network().address() {
            IpAddr::V4(v4) => {
                let mask = u32::MAX.checked_shl(32 - prefix).unwrap_or(0);
                self.mask(&mask.to_be_bytes()).compare(how, &v4.octets())
            }
            IpAddr::V6(v6) => {
                let mask = u128::MAX.checked_shl(128 - prefix).unwrap_or(0);
                self.mask(&mask.to_be_bytes()).compare(how, &v6.octets())
            }
        }
    }

    fn meta(self, key: u32) -> Rule {
        self.then("meta", &Payload::default().be32(1, REGISTER).be32(2, key))
    }

    /// Keeps the register's bits that are set in `bits`.
    fn mask(self, bits: &[u8]) -> Rule {
        let operation = Payload::default()
            .be32(1, REGISTER)
            .be32(2, REGISTER)
            .be32(3, bits.len() as u32)
            .nest(4, &value(bits))
            .nest(5, &value(&vec![0; bits.len()]));
        self.then("bitwise", &operation)
    }

    fn compare(self, how: u32, with: &[u8]) -> Rule {
        let operation = Payload::default().be32(1, REGISTER).be32(2, how).nest(3, &value(with));
        self.then("cmp", &operation)
    }

    fn then(self, name: &str, data: &Payload) -> Rule {
        Rule(self.0.nest(1, &Payload::default().text(1, name).nest(2, data)))
    }
}

fn value(bytes: &[u8]) -> Payload {
    Payload::default().attr(1, bytes)
}

/// A device's name as the kernel compares it.
fn padded(device: &str) -> Vec<u8> {
    let mut name = device.as_bytes().to_vec();
    name.resize(crate::sys::NAME_SIZE, 0);
    name
}
