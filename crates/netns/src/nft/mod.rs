//! Tables of nf_tables, spoken over netlink (`linux/netfilter/nf_tables.h`).

mod rule;

pub(crate) use rule::Rule;

use crate::message::{Payload, attribute};
use crate::netlink::{Netlink, Request};
use crate::{LabError, Namespace};

/// The subsystem's number (`NFNL_SUBSYS_NFTABLES`); message types carry it in their upper byte.
const SUBSYSTEM: u16 = 10;
const BATCH_BEGIN: u16 = 0x10;
const BATCH_END: u16 = 0x11;
const NEW_TABLE: u16 = SUBSYSTEM << 8;
const DELETE_TABLE: u16 = SUBSYSTEM << 8 | 2;
const GET_TABLE: u16 = SUBSYSTEM << 8 | 1;
const NEW_CHAIN: u16 = SUBSYSTEM << 8 | 3;
const NEW_RULE: u16 = SUBSYSTEM << 8 | 6;
/// `NFPROTO_IPV4`.
const IPV4: u8 = 2;
/// The kernel removes the table when the socket that made it closes (`NFT_TABLE_F_OWNER`, Linux 5.12).
const OWNED: u32 = 2;
/// The hook after routing and the place of source translation at it (`NF_INET_POST_ROUTING`,
/// `NF_IP_PRI_NAT_SRC`).
const AFTER_ROUTING: u32 = 4;
const SOURCE_NAT: u32 = 100;
/// The hook for packets that are passed on, and the place of filters at it (`NF_INET_FORWARD`, `NF_IP_PRI_FILTER`).
const PASSING_ON: u32 = 2;
const FILTER: u32 = 0;

/// The purpose of a table.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Purpose {
    /// Its rules give packets that leave another source address. It goes with its socket, so with its process.
    Masquerade,
    /// Its rules drop packets that would be passed on. It outlives its process: what it guards against does too.
    Guard,
}

impl Purpose {
    /// The chain's name, type, hook and place at the hook.
    fn chain(self) -> (&'static str, &'static str, u32, u32) {
        match self {
            Purpose::Masquerade => ("leaving", "nat", AFTER_ROUTING, SOURCE_NAT),
            Purpose::Guard => ("passing", "filter", PASSING_ON, FILTER),
        }
    }
    fn flags(self) -> u32 {
        match self {
            Purpose::Masquerade => OWNED,
            Purpose::Guard => 0,
        }
    }
}

/// A table in the namespace that it was made in. It goes when this is dropped.
#[derive(Debug)]
pub(crate) struct Table {
    name: String,
    socket: Netlink,
}

impl Table {
    /// Makes the table `name` in `namespace`, with one chain of `rules`: all of it or nothing.
    pub(crate) fn create(
        namespace: &Namespace,
        name: &str,
        purpose: Purpose,
        rules: &[Payload],
    ) -> Result<Table, LabError> {
        let mut socket = open(namespace)?;
        let made = match build(&mut socket, name, purpose, purpose.flags(), rules) {
            // Kernels before 5.12 do not know owned tables; there the sweep has to remove it after a kill.
            Err(error) if old_kernel(&error) && purpose.flags() != 0 => {
                build(&mut socket, name, purpose, 0, rules)
            }
            other => other,
        };
        made.map(|()| Table { name: name.to_owned(), socket })
    }
}

fn build(
    socket: &mut Netlink,
    name: &str,
    purpose: Purpose,
    flags: u32,
    rules: &[Payload],
) -> Result<(), LabError> {
    let (chain, kind, hook, place) = purpose.chain();
    let at = Payload::default().be32(1, hook).be32(2, place);
    let table = header(IPV4).text(1, name).be32(2, flags);
    let chained = header(IPV4).text(1, name).text(3, chain).nest(4, &at).text(7, kind);
    let rules: Vec<Payload> =
        rules.iter().map(|rule| header(IPV4).text(1, name).text(2, chain).nest(4, rule)).collect();
    let mut steps = vec![(NEW_TABLE, &table), (NEW_CHAIN, &chained)];
    steps.extend(rules.iter().map(|rule| (NEW_RULE, rule)));
    let what = format!("make the table {name} of nf_tables");
    batch(socket, &what, &steps, libc::NLM_F_CREATE | libc::NLM_F_APPEND)
}

impl Drop for Table {
    fn drop(&mut self) {
        if let Err(error) = delete(&mut self.socket, &self.name) {
            tracing::warn!("{error}");
        }
    }
}

impl Namespace {
    /// The names of the IPv4 tables of nf_tables in this namespace, anybody's.
    ///
    /// # Errors
    /// If the kernel has no nf_tables.
    pub fn nft_tables(&self) -> Result<Vec<String>, LabError> {
        let (header, flags) = (header(IPV4), libc::NLM_F_DUMP as u16);
        let request = Request { kind: GET_TABLE, flags, payload: header.bytes() };
        let answers = open(self)?.ask("list the tables of nf_tables", &request)?;
        Ok(answers.iter().filter_map(|(_, payload)| read_table(payload)).collect())
    }
}

/// The name of the table that an answer tells of.
pub(crate) fn read_table(payload: &[u8]) -> Option<String> {
    let name = attribute(payload.get(4..)?, 1)?;
    Some(String::from_utf8_lossy(name).trim_end_matches('\0').into())
}

fn open(namespace: &Namespace) -> Result<Netlink, LabError> {
    namespace.run(|| Netlink::open(libc::NETLINK_NETFILTER))?
}

/// Removes the table `name` of `namespace`; tells whether there was one.
pub(crate) fn delete_table(namespace: &Namespace, name: &str) -> Result<bool, LabError> {
    match delete(&mut open(namespace)?, name) {
        Err(error) if error.errno() == Some(libc::ENOENT) => Ok(false),
        other => other.map(|()| true),
    }
}

fn delete(socket: &mut Netlink, name: &str) -> Result<(), LabError> {
    let table = header(IPV4).text(1, name);
    let what = format!("remove the table {name} of nf_tables");
    batch(socket, &what, &[(DELETE_TABLE, &table)], 0)
}

fn old_kernel(error: &LabError) -> bool {
    matches!(error.errno(), Some(libc::EINVAL | libc::EOPNOTSUPP))
}

/// All steps or none: nf_tables takes changes only between the two ends of a batch.
fn batch(
    socket: &mut Netlink,
    what: &str,
    steps: &[(u16, &Payload)],
    flags: libc::c_int,
) -> Result<(), LabError> {
    // The batch names its subsystem in the header's last field, in network byte order.
    let frame = Payload::new(&[0, 0, 0, SUBSYSTEM as u8]);
    let end = |kind| Request { kind, flags: 0, payload: frame.bytes() };
    let flags = (flags | libc::NLM_F_ACK) as u16;
    let mut requests = vec![end(BATCH_BEGIN)];
    requests.extend(steps.iter().map(|(kind, step)| Request {
        kind: *kind,
        flags,
        payload: step.bytes(),
    }));
    requests.push(end(BATCH_END));
    socket.ask_all(what, &requests).map(drop)
}

/// `struct nfgenmsg`: family, version 0, no resource.
fn header(family: u8) -> Payload {
    Payload::new(&[family, 0, 0, 0])
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A table as a kernel before 5.12 has it: it outlives its socket.
    pub(crate) fn leave_behind(namespace: &Namespace, name: &str) {
        let mut socket = open(namespace).unwrap();
        let rules = [Rule::default().leaves_by("tl0").masquerade()];
        build(&mut socket, name, Purpose::Masquerade, 0, &rules).unwrap();
    }

    #[test]
    fn an_owned_table_goes_with_its_socket() {
        let Some(namespace) = crate::namespace::tests::namespace() else { return };
        let rules = [Rule::default().from("10.77.0.0/30".parse().unwrap()).masquerade()];
        let table = Table::create(&namespace, "tl-owned", Purpose::Masquerade, &rules).unwrap();
        assert_eq!(namespace.nft_tables().unwrap(), ["tl-owned"]);
        let other = delete_table(&namespace, "tl-owned").unwrap_err();
        assert_eq!(other.errno(), Some(libc::EPERM), "somebody else's table: {other}");
        // What a kill does: the socket closes and nobody sends a request.
        let mut table = std::mem::ManuallyDrop::new(table);
        drop(std::mem::replace(&mut table.socket, open(&namespace).unwrap()));
        assert_eq!(namespace.nft_tables().unwrap(), Vec::<String>::new());
        assert!(!delete_table(&namespace, "tl-owned").unwrap());
    }
}
