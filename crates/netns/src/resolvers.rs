//! The machine's name servers (resolv.conf(5)).

use std::fs;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6};

/// The file that names them.
pub const RESOLVERS: &str = "/etc/resolv.conf";
/// The port of name servers.
const PORT: u16 = 53;

/// The machine's name servers now, in their order: they change when it moves to another network.
pub fn name_servers() -> Vec<SocketAddr> {
    named(&fs::read_to_string(RESOLVERS).unwrap_or_default())
}

fn named(text: &str) -> Vec<SocketAddr> {
    let lines = text.lines().filter_map(|line| line.trim().strip_prefix("nameserver"));
    lines.filter_map(|rest| address(rest.split_whitespace().next()?)).collect()
}

/// An address, which may have the device behind it that it is reached by: `fe80::1%eth0`.
fn address(word: &str) -> Option<SocketAddr> {
    let Some((address, device)) = word.split_once('%') else {
        return Some((word.parse::<IpAddr>().ok()?, PORT).into());
    };
    let address: Ipv6Addr = address.parse().ok()?;
    let number = || fs::read_to_string(format!("/sys/class/net/{device}/ifindex")).ok();
    let scope = device.parse().ok().or_else(|| number()?.trim().parse().ok())?;
    Some(SocketAddrV6::new(address, PORT, 0, scope).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_servers_are_found() {
        let text = "# nameserver 9.9.9.9\nsearch a b\nnameserver 127.0.0.53\n nameserver ::1 # x\n\
            nameserver nonsense\nnameserver fe80::1%1\n";
        let expected: [SocketAddr; 3] = [
            "127.0.0.53:53".parse().unwrap(),
            "[::1]:53".parse().unwrap(),
            SocketAddrV6::new("fe80::1".parse().unwrap(), 53, 0, 1).into(),
        ];
        assert_eq!(named(text), expected);
        assert_eq!(named("search a"), []);
    }
}
