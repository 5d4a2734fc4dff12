//! The admission to a server: who may use it, and how much.

use crate::ProbeError;
use crate::wire::message::UrpSpec;
use ipnet::IpNet;
use std::net::{IpAddr, SocketAddr};
use trunkline_core::{Rate, Span};
use trunkline_handshake::Key;

/// The options of a server.
#[derive(Debug, Clone)]
pub struct Options {
    /// The address at which it listens, TCP and UDP alike.
    pub bind: SocketAddr,
    /// The key that clients must know.
    pub key: Option<Key>,
    /// The networks that clients may come from; empty for anywhere.
    pub allow: Vec<IpNet>,
    /// The most bits per second of a session, both ways together; `None` for no limit.
    pub max_rate: Option<Rate>,
    /// The longest time of a session.
    pub max_duration: Span,
    /// The most sessions at once.
    pub max_sessions: usize,
    /// The time that a connection may take until it has said who it is.
    pub handshake: Span,
    /// The time that a session may say nothing. Longer than a path may be down.
    pub idle: Span,
    /// URP's octets of a block and blocks outstanding if a client leaves them to the server.
    pub window: (u16, u8),
    /// Octets that a connection's receive buffer holds, which bounds TCP's window; `None` for the
    /// system's own, which grows.
    pub receive_buffer: Option<usize>,
    /// Octets of the largest window that its end of TCP offers; `None` for the system's, which grows.
    pub tcp_window: Option<u32>,
    /// The congestion controls of TCP that clients may ask for; empty for those that the kernel has.
    pub congestion: Vec<String>,
}

impl Options {
    /// The options of a server at `bind` if nothing else is said.
    pub fn at(bind: SocketAddr) -> Options {
        Options {
            bind,
            key: None,
            allow: Vec::new(),
            max_rate: None,
            max_duration: Span::from_secs(3600),
            max_sessions: 8,
            handshake: Span::from_secs(5),
            idle: Span::from_secs(120),
            window: (1024, 7),
            receive_buffer: None,
            tcp_window: None,
            congestion: Vec::new(),
        }
    }

    /// Refuses to serve the whole world.
    ///
    /// # Errors
    /// If it listens on other than loopback with neither a key nor a list of addresses.
    pub fn check(&self) -> Result<(), ProbeError> {
        if self.bind.ip().is_loopback() || self.key.is_some() || !self.allow.is_empty() {
            return Ok(());
        }
        Err(ProbeError::WrongUse(format!(
            "a server at {} can be reached by strangers: add --key-file FILE or --allow CIDR, or listen \
             on this host alone with --bind 127.0.0.1",
            self.bind
        )))
    }

    /// Decides what a client leaves open in URP's settings.
    pub fn decide(&self, asked: UrpSpec) -> UrpSpec {
        let (block, outstanding) = self.window;
        UrpSpec {
            block: if asked.block == 0 { block } else { asked.block },
            outstanding: if asked.outstanding == 0 { outstanding } else { asked.outstanding },
            ..asked
        }
    }

    /// Whether a client may come from there.
    pub fn admits(&self, from: IpAddr) -> bool {
        self.allow.is_empty() || self.allow.iter().any(|net| net.contains(&from))
    }
}

/// Reads a network as people write it: `10.0.0.0/8`, or a single address.
///
/// # Errors
/// One line with what was found and what is allowed.
pub fn network(text: &str) -> Result<IpNet, String> {
    let single = |_| text.parse::<IpAddr>().map(IpNet::from);
    let found = text.parse::<IpNet>().or_else(single);
    found.map_err(|_| {
        format!("'{text}' is no network: write one such as 192.168.7.0/24 or fd00::/8")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(bind: &str) -> Options {
        Options::at(bind.parse().unwrap())
    }

    #[test]
    fn strangers_are_kept_out() {
        assert!(options("127.0.0.1:1").check().is_ok() && options("[::1]:1").check().is_ok());
        let complaint = options("0.0.0.0:1").check().unwrap_err().to_string();
        assert!(complaint.contains("--key-file") && complaint.contains("--allow"), "{complaint}");
        assert!(!complaint.contains('\n'));
        let keyed = Options { key: Some(Key::new([1; 32])), ..options("0.0.0.0:1") };
        assert!(keyed.check().is_ok());
        let listed = Options { allow: vec![network("10.1.0.0/16").unwrap()], ..options("[::]:1") };
        assert!(listed.check().is_ok());
        assert!(listed.admits([10, 1, 9, 9].into()) && !listed.admits([10, 2, 0, 1].into()));
        assert!(keyed.admits([10, 2, 0, 1].into()));
    }

    #[test]
    fn what_a_client_leaves_open_the_server_decides() {
        let server = Options { window: (200, 3), ..options("127.0.0.1:1") };
        let asked = |block, outstanding| {
            let spec = UrpSpec { block, outstanding, timeout_ns: 7, datagram: 900 };
            let UrpSpec { block, outstanding, timeout_ns, datagram } = server.decide(spec);
            assert_eq!((timeout_ns, datagram), (7, 900));
            (block, outstanding)
        };
        assert_eq!([asked(0, 0), asked(64, 0), asked(64, 7)], [(200, 3), (64, 3), (64, 7)]);
    }

    #[test]
    fn networks_and_addresses() {
        assert_eq!(network("10.1.2.3").unwrap().to_string(), "10.1.2.3/32");
        assert_eq!(network("fd00::/8").unwrap().prefix_len(), 8);
        assert!(network("10.1.2.3/99").unwrap_err().contains("192.168.7.0/24"));
    }
}
