//! A port of the machine that leads to a server inside the laboratory.

use crate::Tell;
use crate::relay::{Once, Service, pass_on, reset};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::num::NonZeroU16;
use std::str::FromStr;
use trunkline_netns::Namespace;

/// A port of the machine and the port inside that it leads to, as `[ADDRESS:]PORT[:PORT]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Publication {
    /// The machine's address; its loopback addresses if there is none.
    pub address: Option<IpAddr>,
    /// The machine's port.
    pub outside: NonZeroU16,
    /// The port inside.
    pub inside: NonZeroU16,
}

impl FromStr for Publication {
    type Err = String;

    fn from_str(text: &str) -> Result<Publication, String> {
        let wrong = || {
            format!(
                "'{text}' is no port to publish: write PORT, such as 8080, or the machine's port and that inside, such as 8080:80, with an address of the machine in front if others shall reach it: 0.0.0.0:8080:80"
            )
        };
        let plain = match text.split_once('/') {
            Some((plain, "tcp")) => plain,
            Some((_, "udp")) => return Err(format!("'{text}': only TCP ports can be published")),
            _ => text,
        };
        let (address, ports) = split_address(plain).ok_or_else(wrong)?;
        let port = |text: &str| text.parse::<NonZeroU16>().map_err(|_| wrong());
        let (outside, inside) = ports.split_once(':').unwrap_or((ports, ports));
        Ok(Publication { address, outside: port(outside)?, inside: port(inside)? })
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
    _services: Vec<Service>,
}

impl Published {
    /// Takes in connections to the machine's port and makes them to `server`, an address inside, from the host `from`.
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
        let mut services = Vec::new();
        for listener in listeners(publication)? {
            let (from, tell, once) = (from.clone(), tell.clone(), Once::default());
            services.push(Service::start(listener, move |client| {
                match from.run(|| TcpStream::connect(to)) {
                    Ok(Ok(server)) => pass_on(&client, &server),
                    Ok(Err(error)) => {
                        reset(&client);
                        once.tell(&tell, untaken(publication, to, &error));
                    }
                    Err(error) => tracing::warn!("{error}"),
                }
            })?);
        }
        Ok(Published { _services: services })
    }
}

fn untaken(publication: Publication, to: SocketAddr, error: &io::Error) -> String {
    let Publication { outside, inside, .. } = publication;
    format!(
        "published port {outside}: no connection to {to} inside ({error}): is a server listening at port {inside}, at 0.0.0.0 and not at 127.0.0.1 alone?"
    )
}

fn listeners(publication: Publication) -> io::Result<Vec<TcpListener>> {
    let port = publication.outside.get();
    if let Some(address) = publication.address {
        return Ok(vec![TcpListener::bind((address, port))?]);
    }
    let mut all = vec![TcpListener::bind((Ipv4Addr::LOCALHOST, port))?];
    match TcpListener::bind((Ipv6Addr::LOCALHOST, port)) {
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
            let Publication { address, outside, inside } = text.parse().unwrap();
            (address.map(|it| it.to_string()), outside.get(), inside.get())
        };
        assert_eq!(read("8080"), (None, 8080, 8080));
        assert_eq!(read("8080:80/tcp"), (None, 8080, 80));
        assert_eq!(read("0.0.0.0:8080:80"), (Some("0.0.0.0".into()), 8080, 80));
        assert_eq!(read("127.0.0.2:8080"), (Some("127.0.0.2".into()), 8080, 8080));
        assert_eq!(read("[::1]:8080:80"), (Some("::1".into()), 8080, 80));
        for bad in
            ["", "0", "80:", ":80", "80:0", "70000", "a:b:c", "1.2.3:80", "[::1]80", "53/udp"]
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
