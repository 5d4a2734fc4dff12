//! A port of the machine that leads to a server inside the laboratory.

use crate::Tell;
use crate::flows::{DatagramService, Ways};
use crate::relay::{Once, Service, pass_on, reset, want_of_files};
use rustix::net::sockopt::set_socket_reuseaddr;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::num::NonZeroU16;
use std::str::FromStr;
use std::sync::Arc;
use trunkline_netns::{Namespace, Transport, tell_destinations};

/// A port of the machine and the port inside that it leads to, as `[ADDRESS:]PORT[:PORT][/udp]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Publication {
    /// The machine's address; its loopback addresses if there is none.
    pub address: Option<IpAddr>,
    /// The machine's port.
    pub outside: NonZeroU16,
    /// The port inside.
    pub inside: NonZeroU16,
    /// What is published there.
    pub transport: Transport,
}

impl FromStr for Publication {
    type Err = String;

    fn from_str(text: &str) -> Result<Publication, String> {
        let wrong = || {
            format!(
                "'{text}' is no port to publish: write PORT, such as 8080, or the machine's port and that inside, such as 8080:80, with an address of the machine in front if others shall reach it: 0.0.0.0:8080:80, and /udp behind for UDP: 5353:53/udp"
            )
        };
        let (plain, transport) = match text.split_once('/') {
            Some((plain, "udp")) => (plain, Transport::Udp),
            Some((plain, "tcp")) => (plain, Transport::Tcp),
            Some(_) => return Err(wrong()),
            None => (text, Transport::Tcp),
        };
        let (address, ports) = split_address(plain).ok_or_else(wrong)?;
        let port = |text: &str| text.parse::<NonZeroU16>().map_err(|_| wrong());
        let (outside, inside) = ports.split_once(':').unwrap_or((ports, ports));
        Ok(Publication { address, outside: port(outside)?, inside: port(inside)?, transport })
    }
}

/// The address in front of the ports, if there is one; an IPv6 address is in brackets.
fn split_address(text: &str) -> Option<(Option<IpAddr>, &str)> {
    if let Some(rest) = text.strip_prefix('[') {
        let (address, ports) = rest.split_once("]:")?;
        return Some((Some(address.parse::<Ipv6Addr>().ok()?.into()), ports));
    }
    match text.split_once(':') {
        Some((address, ports)) if address.contains('.') => {
            Some((Some(address.parse::<Ipv4Addr>().ok()?.into()), ports))
        }
        _ => Some((None, text)),
    }
}

/// A publication in force, until this is dropped.
#[derive(Debug)]
pub struct Published {
    _connections: Vec<Service>,
    _datagrams: Vec<DatagramService>,
}

impl Published {
    /// Takes in connections or datagrams to the machine's port and passes them on to `server`, an address inside, from
    /// the host `from`.
    ///
    /// # Errors
    /// If the port is taken or may not be had.
    pub fn start(
        publication: Publication,
        from: &Namespace,
        server: Ipv4Addr,
        tell: &Tell,
    ) -> io::Result<Published> {
        let to = SocketAddr::from((server, publication.inside.get()));
        let inside = Inside { publication, from: from.clone(), to };
        let (connections, datagrams) = match publication.transport {
            Transport::Tcp => (inside.connections(tell)?, Vec::new()),
            Transport::Udp => (Vec::new(), inside.datagrams(tell)?),
        };
        Ok(Published { _connections: connections, _datagrams: datagrams })
    }
}

/// A published server.
#[derive(Clone)]
struct Inside {
    publication: Publication,
    from: Namespace,
    to: SocketAddr,
}

impl Inside {
    fn connections(self, tell: &Tell) -> io::Result<Vec<Service>> {
        let serve = |listener| {
            let once = Arc::new(Once::default());
            let (inside, tell, noted, note) =
                (self.clone(), tell.clone(), Arc::clone(&once), tell.clone());
            let port = self.publication.outside;
            let note = move |line: &str| {
                noted.tell(&note, format!("published port {port}: {line}"));
            };
            Service::start(listener, note, move |client| inside.connect(&client, &once, &tell))
        };
        listeners(self.publication, TcpListener::bind)?.into_iter().map(serve).collect()
    }

    fn connect(&self, client: &TcpStream, once: &Once, tell: &Tell) {
        match self.from.run(|| TcpStream::connect(self.to)) {
            Ok(Ok(server)) => pass_on(client, &server),
            Ok(Err(error)) => {
                reset(client);
                once.tell(tell, self.untaken(&error));
            }
            Err(error) => tracing::warn!("{error}"),
        }
    }

    fn datagrams(self, tell: &Tell) -> io::Result<Vec<DatagramService>> {
        let serve = |listener: UdpSocket| {
            tell_destinations(&listener, listener.local_addr()?.is_ipv6())?;
            // The sockets of flows, which have the same address, need it too. Before, it would have hidden that
            // somebody else has the port.
            set_socket_reuseaddr(&listener, true)?;
            DatagramService::start(listener, self.clone(), tell.clone())
        };
        listeners(self.publication, UdpSocket::bind)?.into_iter().map(serve).collect()
    }

    fn untaken(&self, error: &io::Error) -> String {
        let Publication { outside, inside, transport, .. } = self.publication;
        if let Some(line) = want_of_files(error) {
            return format!("published port {outside}: {line}");
        }
        let (to, what) = match transport {
            Transport::Tcp => (self.to.to_string(), "no connection to"),
            Transport::Udp => (format!("{}/udp", self.to), "nobody takes datagrams at"),
        };
        format!(
            "published port {outside}: {what} {to} inside ({error}): is a server listening at port {inside}, at 0.0.0.0 and not at 127.0.0.1 alone?"
        )
    }
}

impl Ways for Inside {
    fn places(&self, _: SocketAddr) -> Vec<SocketAddr> {
        vec![self.to]
    }

    fn front(&self) -> Option<&Namespace> {
        None
    }

    fn back(&self) -> Option<&Namespace> {
        Some(&self.from)
    }

    fn refused(&self, _: SocketAddr, error: &io::Error) -> Option<String> {
        Some(self.untaken(error))
    }
}

/// Sockets at the machine's port, at its loopback addresses if no other is asked for.
fn listeners<L>(
    publication: Publication,
    bind: impl Fn(SocketAddr) -> io::Result<L>,
) -> io::Result<Vec<L>> {
    let port = publication.outside.get();
    if let Some(address) = publication.address {
        return Ok(vec![bind((address, port).into())?]);
    }
    let mut all = vec![bind((Ipv4Addr::LOCALHOST, port).into())?];
    match bind((Ipv6Addr::LOCALHOST, port).into()) {
        Ok(listener) => all.push(listener),
        // A machine without IPv6.
        Err(error) if error.kind() != io::ErrorKind::AddrInUse => {}
        Err(error) => return Err(error),
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn publications_are_read_as_docker_writes_them() {
        let read = |text: &str| {
            let Publication { address, outside, inside, transport } = text.parse().unwrap();
            assert_eq!(transport == Transport::Udp, text.ends_with("/udp"));
            (address.map(|it| it.to_string()), outside.get(), inside.get())
        };
        assert_eq!(read("8080"), (None, 8080, 8080));
        assert_eq!(read("8080:80/tcp"), (None, 8080, 80));
        assert_eq!(read("0.0.0.0:8080:80"), (Some("0.0.0.0".into()), 8080, 80));
        assert_eq!(read("127.0.0.2:8080"), (Some("127.0.0.2".into()), 8080, 8080));
        assert_eq!(read("[::1]:8080:80"), (Some("::1".into()), 8080, 80));
        assert_eq!(read("53/udp"), (None, 53, 53));
        assert_eq!(read("0.0.0.0:5353:53/udp"), (Some("0.0.0.0".into()), 5353, 53));
        for bad in
            ["", "0", "80:", ":80", "80:0", "70000", "a:b:c", "1.2.3:80", "[::1]80", "53/sctp"]
        {
            assert!(bad.parse::<Publication>().is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[0-9:.\\[\\]/a-z]{0,24}") {
            let _ = text.parse::<Publication>();
        }
    }
}
