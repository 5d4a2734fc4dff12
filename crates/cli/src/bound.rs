//! The address at which `serve` and `receive` listen.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::str::FromStr;

/// An address of this host. One of a single link of IPv6 (RFC 4291 §2.5.6) has its device behind it: fe80::1%eth0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bound(SocketAddr);

impl Bound {
    /// The address with a port.
    pub fn at(self, port: u16) -> SocketAddr {
        let mut address = self.0;
        address.set_port(port);
        address
    }
}

impl From<IpAddr> for Bound {
    fn from(address: IpAddr) -> Bound {
        Bound((address, 0).into())
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            SocketAddr::V6(it) if it.scope_id() > 0 => write!(f, "{}%{}", it.ip(), it.scope_id()),
            it => it.ip().fmt(f),
        }
    }
}

impl FromStr for Bound {
    type Err = String;

    fn from_str(text: &str) -> Result<Bound, String> {
        let (bare, device) = text.split_once('%').map_or((text, None), |(it, of)| (it, Some(of)));
        if let Ok(whole) = text.parse::<SocketAddr>() {
            return Err(format!("give its port by itself: {} --port {}", whole.ip(), whole.port()));
        }
        let address: IpAddr = bare.parse().map_err(|_| "it is no IP address of this host")?;
        match (address, device) {
            (IpAddr::V6(it), None) => placed(&it, 0).map(|()| address.into()),
            (IpAddr::V4(_), None) => Ok(address.into()),
            (IpAddr::V4(_), Some(_)) => Err("an address of IPv4 has no device behind it".into()),
            (IpAddr::V6(_), Some(device)) => {
                let found = (text, 0).to_socket_addrs().ok().and_then(|mut all| all.next());
                found.map(Bound).ok_or_else(|| format!("this host has no device '{device}'"))
            }
        }
    }
}

/// Whether an address of IPv6 says on which link it is, if it has to.
///
/// # Errors
/// What is to be written.
pub fn placed(address: &Ipv6Addr, scope: u32) -> Result<(), String> {
    match address.is_unicast_link_local() && scope == 0 {
        true => Err(format!(
            "{address} is an address of one link: write its device behind it, as in {address}%eth0"
        )),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_one_link_have_their_device() {
        let read = |text: &str| text.parse::<Bound>();
        let local = read("fe80::1%lo").unwrap().at(9);
        assert!(matches!(local, SocketAddr::V6(it) if it.scope_id() > 0 && it.port() == 9));
        for text in ["0.0.0.0", "127.0.0.1", "::", "2001:db8::1"] {
            assert_eq!(read(text).unwrap().to_string(), text);
        }
        for (text, why) in [
            ("fe80::1", "fe80::1%eth0"),
            ("fe80::1%none", "no device 'none'"),
            ("127.0.0.1%lo", "IPv4"),
            ("lo", "no IP address"),
            ("127.0.0.1:80", "127.0.0.1 --port 80"),
            ("[::1]:80", "::1 --port 80"),
        ] {
            let told = read(text).unwrap_err();
            assert!(told.contains(why), "{text}: {told}");
        }
    }
}
