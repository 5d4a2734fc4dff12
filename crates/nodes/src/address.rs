//! Where nodes are.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4};
use std::str::FromStr;
use trunkline_netns::Mac;

/// Where a node is: `ADDRESS:PORT` for datagrams, `02:74:00:00:00:01` for Ethernet frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Address {
    /// A UDP socket.
    Udp(SocketAddr),
    /// An Ethernet device.
    Ethernet(Mac),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Udp(address) => address.fmt(f),
            Address::Ethernet(mac) => mac.fmt(f),
        }
    }
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Address, String> {
        let mac = || text.parse().map(Address::Ethernet);
        text.parse().map(Address::Udp).or_else(|_| mac()).map_err(|_| {
            format!(
                "'{text}' is neither ADDRESS:PORT nor an Ethernet address like 02:74:00:00:00:01"
            )
        })
    }
}

impl TryFrom<String> for Address {
    type Error = String;

    fn try_from(text: String) -> Result<Address, String> {
        text.parse()
    }
}

impl From<Address> for String {
    fn from(address: Address) -> String {
        address.to_string()
    }
}

/// What a node listens on: an address for datagrams, or a device for Ethernet frames.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// A UDP socket at this address.
    Udp(SocketAddr),
    /// A UDP socket that hears this port at all addresses, and a multicast group for what is sent to all. It is known by this
    /// address, whose device the group is on.
    Group(SocketAddrV4, Ipv4Addr),
    /// Frames of [`ETHERTYPE`](crate::ETHERTYPE) on this device.
    Device(String),
}

impl FromStr for Place {
    type Err = String;

    /// A text with a colon is no device, as the kernel allows none in a name.
    fn from_str(text: &str) -> Result<Place, String> {
        let Some((address, group)) = text.split_once('@').filter(|_| text.contains(':')) else {
            return match text.parse() {
                Ok(address) => Ok(Place::Udp(address)),
                Err(_) if text.contains(':') || text.parse::<IpAddr>().is_ok() => {
                    Err(listening_at(text))
                }
                Err(_) => Ok(Place::Device(text.to_owned())),
            };
        };
        let address = address.parse().map_err(|_| listening_at(address))?;
        let group = group.parse().ok().filter(Ipv4Addr::is_multicast).ok_or_else(|| {
            format!(
                "'{group}' is no IPv4 multicast group: give one of 224.0.0.0 to 239.255.255.255"
            )
        })?;
        Ok(Place::Group(address, group))
    }
}

/// Why a text is no address to listen at.
fn listening_at(text: &str) -> String {
    format!(
        "'{text}' is neither ADDRESS:PORT nor a device: give an IP address of this machine and a port up to 65535, like 0.0.0.0:7714"
    )
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Udp(address) => address.fmt(f),
            Place::Group(address, group) => write!(f, "{address}@{group}"),
            Place::Device(device) => device.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_they_are_written() {
        for text in ["127.0.0.1:7714", "[::1]:7714", "02:74:00:00:00:01"] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
        }
        assert!("eth0".parse::<Address>().unwrap_err().contains("neither ADDRESS:PORT"));
        assert_eq!("eth0".parse(), Ok(Place::Device("eth0".into())));
        assert_eq!("127.0.0.1:1".parse(), Ok(Place::Udp(([127, 0, 0, 1], 1).into())));
        let place: Place = "10.0.0.1:7@239.1.2.3".parse().unwrap();
        assert!(matches!(place, Place::Group(..)) && place.to_string() == "10.0.0.1:7@239.1.2.3");
    }

    #[test]
    fn what_is_neither_an_address_nor_a_device_is_told_apart() {
        for (text, says) in [
            ("10.0.0.1:7@10.0.0.2", "'10.0.0.2' is no IPv4 multicast group"),
            ("10.0.0.1:7@300.1.1.1", "'300.1.1.1' is no IPv4 multicast group"),
            ("10.0.0.1:70000@239.1.2.3", "'10.0.0.1:70000' is neither"),
            ("10.0.0.1:70000", "a port up to 65535"),
            ("localhost:7714", "give an IP address"),
            ("10.0.0.1", "neither ADDRESS:PORT nor a device"),
        ] {
            let error = text.parse::<Place>().unwrap_err();
            assert!(error.contains(says), "{text}: {error}");
        }
        assert_eq!("wg@home".parse(), Ok(Place::Device("wg@home".into())));
    }
}
