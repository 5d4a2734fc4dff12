//! Packets for other hosts that a host of the laboratory takes in itself.

use crate::message::Payload;
use crate::nft::{Purpose, Rule, Table};
use crate::{IpNet, LabError, Namespace};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The destination addresses that a redirection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Destination {
    /// Those of this network.
    In(IpNet),
    /// All others of the network's family, without those of neighbours: packets for these never leave their link.
    NotIn(IpNet),
}

/// The addresses of neighbours alone: multicast and broadcast of IPv4 (RFC 919 §7), multicast and link-local addresses of
/// IPv6. Groups of a wider scope are among them, since nothing here passes multicast on.
const NEIGHBOURS: [(IpAddr, u8); 4] = [
    (IpAddr::V4(Ipv4Addr::new(224, 0, 0, 0)), 4),
    (IpAddr::V4(Ipv4Addr::BROADCAST), 32),
    (IpAddr::V6(Ipv6Addr::new(0xff00, 0, 0, 0, 0, 0, 0, 0)), 8),
    (IpAddr::V6(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0)), 10),
];

/// A transport protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

/// Datagrams that a host takes in at a port of its own as they are.
/// [`receive_taken`](crate::receive_taken) tells whom each was for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TakenIn {
    /// The device that they arrive by; without one, they are the host's own.
    pub device: Option<&'static str>,
    /// Their destination.
    pub to: Destination,
    /// The port at which they are taken in.
    pub taken_at: u16,
}

/// New connections that a host takes in at a port of its own. [`original_destination`](crate::original_destination)
/// tells whom a TCP connection was for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Redirection {
    /// The device that they arrive by; without one, they are the host's own.
    pub device: Option<&'static str>,
    /// Their transport.
    pub transport: Transport,
    /// Their destination.
    pub to: Destination,
    /// Their destination port; any, if there is none.
    pub port: Option<u16>,
    /// The port at which they are taken in.
    pub taken_at: u16,
}

/// Redirections in force, until this is dropped.
#[derive(Debug)]
pub struct Redirections {
    _table: Table,
}

impl Redirections {
    /// Puts `list` into force in `namespace`, as the table `name` of nf_tables. The first that fits a packet decides.
    ///
    /// # Errors
    /// If the kernel has no nf_tables, or no redirection in it.
    pub fn create(
        namespace: &Namespace,
        name: &str,
        list: &[Redirection],
    ) -> Result<Redirections, LabError> {
        let rules = |own| -> Vec<_> {
            let chosen = list.iter().filter(|one| one.device.is_none() == own);
            chosen.map(|one| one.rule().redirect(one.taken_at)).collect()
        };
        let (arriving, own) = (rules(false), rules(true));
        let chains: [(Purpose, &[_]); 2] =
            [(Purpose::Redirect, &arriving), (Purpose::RedirectOwn, &own)];
        let table = Table::create_with(namespace, name, &chains)?;
        Ok(Redirections { _table: table })
    }
}

impl Redirections {
    /// Has the datagrams of `list` taken in in `namespace`, as the table `name` of nf_tables, by a
    /// [transparent](crate::set_transparent) socket.
    ///
    /// # Errors
    /// If the kernel has no nf_tables, or cannot hand packets to such sockets (`nft_tproxy`).
    pub fn take_in(
        namespace: &Namespace,
        name: &str,
        list: &[TakenIn],
    ) -> Result<Redirections, LabError> {
        let rules: Vec<_> = list.iter().map(|one| one.rule()).collect();
        let table = Table::create(namespace, name, Purpose::TakeIn, &rules)?;
        Ok(Redirections { _table: table })
    }
}

impl Destination {
    fn is_ipv4(self) -> bool {
        let (Destination::In(net) | Destination::NotIn(net)) = self;
        net.address().is_ipv4()
    }

    fn applied(self, rule: Rule) -> Rule {
        match self {
            Destination::In(net) => rule.to(net),
            Destination::NotIn(net) => {
                let of_family = |(address, _): &(IpAddr, u8)| address.is_ipv4() == self.is_ipv4();
                let neighbours = NEIGHBOURS.into_iter().filter(of_family);
                let neighbours = neighbours.filter_map(|(base, prefix)| IpNet::new(base, prefix));
                neighbours.fold(rule.not_to(net), Rule::not_to)
            }
        }
    }
}

impl TakenIn {
    /// The rule. What a host sends to itself arrives by its loopback device. Answers, which come from the taken-in
    /// address, may be for it as well: they go the other way of their connection.
    fn rule(&self) -> Payload {
        let rule = Rule::default().arrives_by(self.device.unwrap_or("lo"));
        let rule = self.to.applied(rule.of_protocol(libc::IPPROTO_UDP as u8));
        let family = if self.to.is_ipv4() { libc::NFPROTO_IPV4 } else { libc::NFPROTO_IPV6 };
        rule.original_direction().take_in(family, self.taken_at)
    }
}

impl Redirection {
    fn rule(&self) -> Rule {
        let protocol = match self.transport {
            Transport::Tcp => libc::IPPROTO_TCP,
            Transport::Udp => libc::IPPROTO_UDP,
        };
        let rule = self.device.map_or_else(Rule::default, |it| Rule::default().arrives_by(it));
        let rule = rule.of_protocol(protocol as u8);
        let rule = self.to.applied(rule);
        match self.port {
            Some(port) => rule.at_port(port),
            None => rule,
        }
    }
}
