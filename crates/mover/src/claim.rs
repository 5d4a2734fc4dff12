//! A receiver's claim to its address where there are no ports.
//!
//! The system hands what comes for an address by IP's protocol 30 to every socket that is bound to it, and refuses none. Two
//! receivers would both answer each sender and tear each other's transfers apart. So each holds a name that nobody else in its
//! network namespace can have: a socket of no file (unix(7), "abstract"), which goes with its process.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net;

/// What the names of all claims begin with.
const NAME: &str = "trunkline-receive-30/";

/// An address that no other receiver has, as long as this lives.
#[derive(Debug)]
pub(crate) struct Claim {
    _socket: net::UnixDatagram,
}

impl Claim {
    /// Claims this address, whatever its port.
    ///
    /// # Errors
    /// If another receiver has it, or one that means it by `0.0.0.0` or `::`.
    pub fn take(at: SocketAddr) -> io::Result<Claim> {
        let own = name(at);
        let place = net::SocketAddr::from_abstract_name(format!("{NAME}{own}"))?;
        let socket = net::UnixDatagram::bind_addr(&place)?;
        // Of two that begin at once each sees the other, and both are refused.
        match is_taken(&std::fs::read_to_string("/proc/thread-self/net/unix")?, &own) {
            true => Err(io::ErrorKind::AddrInUse.into()),
            false => Ok(Claim { _socket: socket }),
        }
    }
}

/// The address as it stands in a name. Those of one link differ by their devices.
fn name(mut at: SocketAddr) -> String {
    at.set_port(0);
    at.to_string()
}

/// Whether the kernel's table of sockets has a claim that overlaps with `own`: of the same family, and one of the two means all
/// addresses.
fn is_taken(table: &str, own: &str) -> bool {
    let claims = table.lines().filter_map(|line| line.split_once(NAME));
    let mut others = claims.map(|(_, other)| other.trim()).filter(|&other| other != own);
    let Some(own) = address(own) else { return false };
    others.any(|other| {
        address(other).is_some_and(|other| {
            let is_all = own.is_unspecified() || other.is_unspecified();
            own.is_ipv4() == other.is_ipv4() && is_all
        })
    })
}

fn address(name: &str) -> Option<IpAddr> {
    name.parse().ok().map(|it: SocketAddr| it.ip())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_one_receiver() {
        // Of this process alone: claims are the whole machine's.
        let [_, _, high, low] = std::process::id().to_be_bytes();
        let at = |last, port| SocketAddr::from(([127, high, low, last], port));
        let first = Claim::take(at(1, 1818)).unwrap();
        let second = Claim::take(at(1, 99)).unwrap_err();
        assert_eq!(second.kind(), io::ErrorKind::AddrInUse);
        let _other = Claim::take(at(2, 1818)).unwrap();
        drop(first);
        Claim::take(at(1, 1818)).unwrap();
    }

    #[test]
    fn all_addresses_are_each_of_them() {
        let table = |name: &str| format!("Num RefCount\n0000: 2 0 0 2 1 7 @{NAME}{name}\n");
        for (other, own, is) in [
            ("0.0.0.0:0", "10.0.0.1:0", true),
            ("10.0.0.1:0", "0.0.0.0:0", true),
            ("[::]:0", "[fe80::1%2]:0", true),
            ("10.0.0.2:0", "10.0.0.1:0", false),
            ("[::]:0", "10.0.0.1:0", false),
            ("[fe80::1%3]:0", "[fe80::1%2]:0", false),
        ] {
            assert_eq!(is_taken(&table(other), own), is, "{other} {own}");
        }
    }
}
