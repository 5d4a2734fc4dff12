//! Tables of nf_tables, spoken over netlink (`linux/netfilter/nf_tables.h`).

mod rule;

pub(crate) use rule::Rule;

use crate::message::{Payload, attribute};
use crate::netlink::{Netlink, Request};
use crate::{ForwardDrop, LabError, Namespace};

/// The subsystem's number (`NFNL_SUBSYS_NFTABLES`); message types carry it in their upper byte.
const SUBSYSTEM: u16 = 10;
const BATCH_BEGIN: u16 = 0x10;
const BATCH_END: u16 = 0x11;
const NEW_TABLE: u16 = SUBSYSTEM << 8;
const DELETE_TABLE: u16 = SUBSYSTEM << 8 | 2;
const GET_TABLE: u16 = SUBSYSTEM << 8 | 1;
const NEW_CHAIN: u16 = SUBSYSTEM << 8 | 3;
const GET_CHAIN: u16 = SUBSYSTEM << 8 | 4;
const NEW_RULE: u16 = SUBSYSTEM << 8 | 6;
/// `NFPROTO_IPV4`, and `NFPROTO_INET`, which is that and IPv6.
const IPV4: u8 = 2;
const BOTH: u8 = 1;
/// The hook before routing and the place of destination translation at it (`NF_INET_PRE_ROUTING`,
/// `NF_IP_PRI_NAT_DST`).
const BEFORE_ROUTING: u32 = 0;
const DESTINATION_NAT: u32 = (-100_i32).cast_unsigned();
/// A place after that: what is redirected is no longer for the address that it came for.
const AFTER_REDIRECTION: u32 = (-50_i32).cast_unsigned();
/// The kernel removes the table when the socket that made it closes (`NFT_TABLE_F_OWNER`, Linux 5.12).
const OWNED: u32 = 2;
/// The hook after routing and the place of source translation at it (`NF_INET_POST_ROUTING`,
/// `NF_IP_PRI_NAT_SRC`).
const AFTER_ROUTING: u32 = 4;
const SOURCE_NAT: u32 = 100;
/// The hook for packets that the host sends (`NF_INET_LOCAL_OUT`).
const SENDING: u32 = 3;
/// The hook for packets that are passed on, and the place of filters at it (`NF_INET_FORWARD`, `NF_IP_PRI_FILTER`).
const PASSING_ON: u32 = 2;
const FILTER: u32 = 0;

/// The purpose of a table.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Purpose {
    /// Its rules give packets that leave another source address. It goes with its socket, so with its process.
    Masquerade,
    /// Its rules give packets that arrive, IPv4 and IPv6, this host as their destination. It goes with its socket.
    Redirect,
    /// The same for packets that the host itself sends.
    RedirectOwn,
    /// Its rules hand packets that arrive, IPv4 and IPv6, to a socket of this host as they are. It goes with its socket.
    TakeIn,
    /// Its rules drop packets that would be passed on. It outlives its process: what it guards against does too.
    Guard,
}

impl Purpose {
    /// The chain's name, type, hook and place at the hook.
    fn chain(self) -> (&'static str, &'static str, u32, u32) {
        match self {
            Purpose::Masquerade => ("leaving", "nat", AFTER_ROUTING, SOURCE_NAT),
            Purpose::Redirect => ("arriving", "nat", BEFORE_ROUTING, DESTINATION_NAT),
            Purpose::RedirectOwn => ("own", "nat", SENDING, DESTINATION_NAT),
            Purpose::TakeIn => ("taken-in", "filter", BEFORE_ROUTING, AFTER_REDIRECTION),
            Purpose::Guard => ("passing", "filter", PASSING_ON, FILTER),
        }
    }

    fn family(self) -> u8 {
        match self {
            Purpose::Masquerade | Purpose::Guard => IPV4,
            Purpose::Redirect | Purpose::RedirectOwn | Purpose::TakeIn => BOTH,
        }
    }

    fn flags(self) -> u32 {
        match self {
            Purpose::Guard => 0,
            Purpose::Masquerade | Purpose::Redirect | Purpose::RedirectOwn | Purpose::TakeIn => {
                OWNED
            }
        }
    }
}

/// A table in the namespace that it was made in. It goes when this is dropped.
#[derive(Debug)]
pub(crate) struct Table {
    name: String,
    family: u8,
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
        Table::create_with(namespace, name, &[(purpose, rules)])
    }

    /// The same with several chains, whose purposes have one family.
    pub(crate) fn create_with(
        namespace: &Namespace,
        name: &str,
        chains: &[(Purpose, &[Payload])],
    ) -> Result<Table, LabError> {
        let (family, flags) = chains.first().map_or((IPV4, 0), |(it, _)| (it.family(), it.flags()));
        let mut socket = open(namespace)?;
        let made = match build(&mut socket, name, (family, flags), chains) {
            // Kernels before 5.12 do not know owned tables; there the sweep has to remove it after a kill.
            Err(error) if old_kernel(&error) && flags != 0 => {
                build(&mut socket, name, (family, 0), chains)
            }
            other => other,
        };
        made.map(|()| Table { name: name.to_owned(), family, socket })
    }
}

fn build(
    socket: &mut Netlink,
    name: &str,
    (family, flags): (u8, u32),
    chains: &[(Purpose, &[Payload])],
) -> Result<(), LabError> {
    let mut steps = vec![(NEW_TABLE, header(family).text(1, name).be32(2, flags))];
    for (purpose, rules) in chains {
        let (chain, kind, hook, place) = purpose.chain();
        let at = Payload::default().be32(1, hook).be32(2, place);
        let made = header(family).text(1, name).text(3, chain).nest(4, &at).text(7, kind);
        steps.push((NEW_CHAIN, made));
        let in_chain = |rule| header(family).text(1, name).text(2, chain).nest(4, rule);
        steps.extend(rules.iter().map(|rule| (NEW_RULE, in_chain(rule))));
    }
    let steps: Vec<(u16, &Payload)> = steps.iter().map(|(kind, step)| (*kind, step)).collect();
    let what = format!("make the table {name} of nf_tables");
    batch(socket, &what, &steps, libc::NLM_F_CREATE | libc::NLM_F_APPEND)
}

impl Drop for Table {
    fn drop(&mut self) {
        if let Err(error) = delete(&mut self.socket, self.family, &self.name) {
            tracing::warn!("{error}");
        }
    }
}

impl Namespace {
    /// Tries whether the kernel can masquerade here, and leaves nothing.
    ///
    /// # Errors
    /// If it cannot, or this user may not.
    pub fn can_masquerade(&self) -> Result<(), LabError> {
        let rules = [Rule::default().leaves_by("tl0").masquerade()];
        Table::create(self, "tl-trial", Purpose::Masquerade, &rules).map(drop)
    }

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

impl Namespace {
    /// The first chain of nf_tables that drops IPv4 packets which this namespace passes on.
    pub(crate) fn nft_forward_drop(&self) -> Result<Option<ForwardDrop>, LabError> {
        let (header, flags) = (header(0), libc::NLM_F_DUMP as u16);
        let request = Request { kind: GET_CHAIN, flags, payload: header.bytes() };
        let answers = open(self)?.ask("list the chains of nf_tables", &request)?;
        Ok(answers.iter().find_map(|(_, payload)| read_forward_drop(payload)))
    }
}

/// The chain that an answer tells of, if it drops what is passed on.
pub(crate) fn read_forward_drop(payload: &[u8]) -> Option<ForwardDrop> {
    let attrs = payload.get(4..)?;
    let number = |bytes: &[u8]| Some(u32::from_be_bytes(bytes.try_into().ok()?));
    let hook = number(attribute(attribute(attrs, 4)?, 1)?)?;
    let policy = number(attribute(attrs, 5)?)?;
    let drops = matches!(*payload.first()?, IPV4 | BOTH) && hook == PASSING_ON && policy == 0;
    let text = |kind| Some(String::from_utf8_lossy(attribute(attrs, kind)?).into_owned());
    let trimmed = |kind| Some(text(kind)?.trim_end_matches('\0').to_owned());
    drops.then_some(ForwardDrop { table: trimmed(1)?, chain: trimmed(3)?, set_by: "iptables" })
}

/// The name of the table that an answer tells of.
pub(crate) fn read_table(payload: &[u8]) -> Option<String> {
    let name = attribute(payload.get(4..)?, 1)?;
    Some(String::from_utf8_lossy(name).trim_end_matches('\0').into())
}

fn open(namespace: &Namespace) -> Result<Netlink, LabError> {
    namespace.run(|| Netlink::open(libc::NETLINK_NETFILTER))?
}

/// Removes the IPv4 table `name` of `namespace`; tells whether there was one.
pub(crate) fn delete_table(namespace: &Namespace, name: &str) -> Result<bool, LabError> {
    match delete(&mut open(namespace)?, IPV4, name) {
        Err(error) if error.errno() == Some(libc::ENOENT) => Ok(false),
        other => other.map(|()| true),
    }
}

fn delete(socket: &mut Netlink, family: u8, name: &str) -> Result<(), LabError> {
    let table = header(family).text(1, name);
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
    use std::thread;
    use std::time::{Duration, Instant};

    /// A table as a kernel before 5.12 has it: it outlives its socket.
    pub(crate) fn leave_behind(namespace: &Namespace, name: &str) {
        let mut socket = open(namespace).unwrap();
        let rules = [Rule::default().leaves_by("tl0").masquerade()];
        build(&mut socket, name, (IPV4, 0), &[(Purpose::Masquerade, &rules)]).unwrap();
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
        // Another test's child may have the socket too, until it becomes its program.
        let until = Instant::now() + Duration::from_secs(10);
        while !namespace.nft_tables().unwrap().is_empty() {
            assert!(Instant::now() < until, "the table stays");
            thread::sleep(Duration::from_millis(1));
        }
        assert!(!delete_table(&namespace, "tl-owned").unwrap());
    }
}
