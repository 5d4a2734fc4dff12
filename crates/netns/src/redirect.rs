//! Packets for other hosts that a host of the laboratory takes in itself.

use crate::nft::{Purpose, Rule, Table};
use crate::{IpNet, LabError, Namespace};

/// The destination addresses that a redirection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Destination {
    /// Those of this network.
    In(IpNet),
    /// All others of the network's family.
    NotIn(IpNet),
}

/// A transport protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
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

impl Redirection {
    fn rule(&self) -> Rule {
        let protocol = match self.transport {
            Transport::Tcp => libc::IPPROTO_TCP,
            Transport::Udp => libc::IPPROTO_UDP,
        };
        let rule = self.device.map_or_else(Rule::default, |it| Rule::default().arrives_by(it));
        let rule = rule.of_protocol(protocol as u8);
        let rule = match self.to {
            Destination::In(net) => rule.to(net),
            Destination::NotIn(net) => rule.not_to(net),
        };
        match self.port {
            Some(port) => rule.at_port(port),
            None => rule,
        }
    }
}
