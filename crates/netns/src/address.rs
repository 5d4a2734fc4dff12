//! Addresses as the laboratory writes them: an IP address with its prefix, and an Ethernet address.

use crate::LabError;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// An IP address with the length of its network's prefix in bits: `10.77.0.1/24`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct IpNet {
    address: IpAddr,
    prefix: u8,
}

impl IpNet {
    /// `address` in a network of `prefix` bits; `None` if the prefix is longer than the address.
    pub fn new(address: impl Into<IpAddr>, prefix: u8) -> Option<IpNet> {
        let address = address.into();
        (prefix <= bits_of(address)).then_some(IpNet { address, prefix })
    }
    /// Every address of the family: `0.0.0.0/0` or `::/0`.
    pub(crate) fn everything(like: IpAddr) -> IpNet {
        let address = match like {
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        };
        IpNet { address, prefix: 0 }
    }
    /// The address, host bits included.
    pub fn address(self) -> IpAddr {
        self.address
    }
    /// The prefix length in bits.
    pub fn prefix(self) -> u8 {
        self.prefix
    }
    /// The same network with the host bits cleared.
    pub fn network(self) -> IpNet {
        let keep = mask(self.prefix, bits_of(self.address));
        let address = match self.address {
            // The mask of 32 bits has only those 32 bits set.
            IpAddr::V4(v4) => IpAddr::V4(Ipv4Addr::from_bits(v4.to_bits() & keep as u32)),
            IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & keep)),
        };
        IpNet { address, prefix: self.prefix }
    }
    /// Whether `address` lies in this network.
    pub fn contains(self, address: IpAddr) -> bool {
        IpNet::new(address, self.prefix).is_some_and(|other| {
            address.is_ipv4() == self.address.is_ipv4() && other.network() == self.network()
        })
    }
    /// Whether the two networks share an address.
    pub fn overlaps(self, other: IpNet) -> bool {
        let (wide, narrow) =
            if self.prefix <= other.prefix { (self, other) } else { (other, self) };
        wide.contains(narrow.address)
    }
}

/// The bits of an address of this family.
fn bits_of(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// The upper `prefix` bits of a word of `bits` bits.
fn mask(prefix: u8, bits: u8) -> u128 {
    let all = u128::MAX >> (128 - u32::from(bits));
    all & !all.checked_shr(u32::from(prefix)).unwrap_or(0)
}

impl FromStr for IpNet {
    type Err = LabError;
    fn from_str(text: &str) -> Result<IpNet, LabError> {
        let wrong = || LabError::Address(text.to_owned(), "it like 10.77.0.1/24 or fd77::1/64");
        let (address, prefix) = text.split_once('/').ok_or_else(wrong)?;
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        IpNet::new(address, prefix.parse().map_err(|_| wrong())?).ok_or_else(wrong)
    }
}

impl fmt::Display for IpNet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

/// An Ethernet address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Mac(pub [u8; 6]);

impl Mac {
    /// The laboratory's own address number `number`: unicast, locally administered (bit 1 of the first
    /// byte, IEEE 802 §8.4), the same on every machine and in every run.
    pub const fn local(number: u32) -> Mac {
        let [a, b, c, d] = number.to_be_bytes();
        Mac([0x02, b't', a, b, c, d])
    }
}

impl FromStr for Mac {
    type Err = LabError;
    fn from_str(text: &str) -> Result<Mac, LabError> {
        let bytes: Option<Vec<u8>> = text.split(':').map(hex_byte).collect();
        let six = bytes.and_then(|bytes| bytes.try_into().ok());
        six.map(Mac).ok_or_else(|| LabError::Address(text.to_owned(), "it like 02:74:00:00:00:01"))
    }
}

/// Two hexadecimal digits.
fn hex_byte(text: &str) -> Option<u8> {
    let digits = text.len() == 2 && text.bytes().all(|digit| digit.is_ascii_hexdigit());
    digits.then(|| u8::from_str_radix(text, 16).ok()).flatten()
}

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn net(text: &str) -> IpNet {
        text.parse().expect("a network")
    }

    #[test]
    fn networks_contain_and_overlap() {
        assert!(net("10.0.0.9/8").contains("10.255.0.1".parse().unwrap()));
        assert!(!net("10.0.0.0/9").contains("10.128.0.1".parse().unwrap()));
        assert!(net("0.0.0.0/0").overlaps(net("1.2.3.4/32")));
        assert!(!net("::/0").overlaps(net("1.2.3.4/32")));
        assert!(net("fd77::1/64").overlaps(net("fd77::ffff/128")));
        assert_eq!(net("10.77.3.9/30").network(), net("10.77.3.8/30"));
        assert_eq!(net("fd77::1/128").network(), net("fd77::1/128"));
    }

    #[test]
    fn wrong_text_is_refused_with_an_example() {
        for wrong in ["10.0.0.1", "10.0.0.1/33", "::1/129", "x/3", "", "/"] {
            let told = wrong.parse::<IpNet>().unwrap_err().to_string();
            assert!(told.contains("10.77.0.1/24"), "{told}");
        }
        for wrong in
            ["", "02:74:00:00:00", "02:74:00:00:00:0g", "2:74:0:0:0:1", "+2:74:00:00:00:01"]
        {
            assert!(wrong.parse::<Mac>().is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn text_round_trips(bits: u128, prefix in 0u8..=128, bytes: [u8; 6]) {
            let net = IpNet::new(Ipv6Addr::from_bits(bits), prefix).unwrap();
            prop_assert_eq!(net.to_string().parse::<IpNet>().unwrap(), net);
            prop_assert!(net.contains(net.address()) && net.network().overlaps(net));
            prop_assert_eq!(Mac(bytes).to_string().parse::<Mac>().unwrap(), Mac(bytes));
        }
    }
}
