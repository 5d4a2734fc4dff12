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
/// `NFT_CT_STATE`, and in it the bits of connections that stand or belong to one that does
/// (`NF_CT_STATE_BIT`).
const STATE: u32 = 0;
const KNOWN: u32 = 2 | 4;
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

    /// The packet gets the address of the device that it leaves by.
    pub(crate) fn masquerade(self) -> Payload {
        self.0.nest(1, &Payload::default().text(1, "masq"))
    }

    /// The packet is dropped.
    pub(crate) fn drop(self) -> Payload {
        let code = Payload::default().be32(1, DROP);
        let decision = Payload::default().nest(2, &code);
        let load = Payload::default().be32(1, VERDICT).nest(2, &decision);
        self.then("immediate", &load).0
    }

    /// The source address is at byte 12 of an IPv4 header (RFC 791 §3.1); base 1 is the network header.
    fn source(self, net: IpNet, how: u32) -> Rule {
        let load = Payload::default().be32(1, REGISTER).be32(2, 1).be32(3, 12).be32(4, 4);
        let mask = u32::MAX.checked_shl(32 - u32::from(net.prefix())).unwrap_or(0);
        let octets = match net.network().address() {
            IpAddr::V4(v4) => v4.octets().to_vec(),
            IpAddr::V6(v6) => v6.octets().to_vec(),
        };
        self.then("payload", &load).mask(&mask.to_be_bytes()).compare(how, &octets)
    }

    fn meta(self, key: u32) -> Rule {
        self.then("meta", &Payload::default().be32(1, REGISTER).be32(2, key))
    }

    /// Keeps the register's bits that are set in `bits`.
    fn mask(self, bits: &[u8; 4]) -> Rule {
        let operation = Payload::default()
            .be32(1, REGISTER)
            .be32(2, REGISTER)
            .be32(3, 4)
            .nest(4, &value(bits))
            .nest(5, &value(&[0; 4]));
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
