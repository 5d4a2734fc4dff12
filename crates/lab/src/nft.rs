//! Masquerading with nf_tables, spoken over netlink (`linux/netfilter/nf_tables.h`).

use crate::message::{Payload, attribute};
use crate::netlink::{Netlink, Request};
use crate::{IpNet, LabError, Namespace};
use std::net::IpAddr;

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
/// Register 1 of the rule's little machine (`NFT_REG_1`).
const REGISTER: u32 = 1;
const CHAIN: &str = "leaving";

/// Which packets get the address of the device that they leave by.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Masquerade<'a> {
    /// Those with a source address in this IPv4 network.
    From(IpNet),
    /// Those that leave by this device.
    LeavingBy(&'a str),
}

/// A table that masquerades, in the namespace where it was made. It goes when this is dropped or the
/// process ends.
#[derive(Debug)]
pub(crate) struct Table {
    name: String,
    socket: Netlink,
}

impl Table {
    /// Makes the table `name` in `namespace`.
    pub(crate) fn create(
        namespace: &Namespace,
        name: &str,
        which: Masquerade<'_>,
    ) -> Result<Table, LabError> {
        let mut table = Table { name: name.to_owned(), socket: open(namespace)? };
        let made = table.build(which, OWNED);
        // Kernels before 5.12 do not know owned tables; there the sweep has to remove it after a kill.
        match made {
            Err(error) if old_kernel(&error) => table.build(which, 0).map(|()| table),
            other => other.map(|()| table),
        }
    }

    fn build(&mut self, which: Masquerade<'_>, flags: u32) -> Result<(), LabError> {
        let table = header(IPV4).text(1, &self.name).be32(2, flags);
        let hook = Payload::default().be32(1, AFTER_ROUTING).be32(2, SOURCE_NAT);
        let chain = header(IPV4).text(1, &self.name).text(3, CHAIN).nest(4, &hook).text(7, "nat");
        let rule = header(IPV4).text(1, &self.name).text(2, CHAIN).nest(4, &expressions(which));
        let steps = [(NEW_TABLE, &table), (NEW_CHAIN, &chain), (NEW_RULE, &rule)];
        let what = format!("make the masquerading table {}", self.name);
        batch(&mut self.socket, &what, &steps, libc::NLM_F_CREATE)
    }
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
    /// Where the kernel has no nf_tables.
    pub fn nft_tables(&self) -> Result<Vec<String>, LabError> {
        let (header, flags) = (header(IPV4), libc::NLM_F_DUMP as u16);
        let request = Request { kind: GET_TABLE, flags, payload: header.bytes() };
        let answers = open(self)?.ask("list the tables of nf_tables", &request)?;
        let names = answers.iter().filter_map(|(_, payload)| attribute(payload.get(4..)?, 1));
        Ok(names.map(|name| String::from_utf8_lossy(name).trim_end_matches('\0').into()).collect())
    }
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
    let what = format!("remove the masquerading table {name}");
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

/// The rule: load, compare, masquerade.
fn expressions(which: Masquerade<'_>) -> Payload {
    let list = match which {
        Masquerade::From(net) => from_network(net),
        Masquerade::LeavingBy(device) => leaving_by(device),
    };
    list.nest(1, &Payload::default().text(1, "masq"))
}

/// Source address, masked, equals the network. The source address is at byte 12 of an IPv4 header
/// (RFC 791 §3.1); base 1 is the network header.
fn from_network(net: IpNet) -> Payload {
    let load = Payload::default().be32(1, REGISTER).be32(2, 1).be32(3, 12).be32(4, 4);
    let mask = u32::MAX.checked_shl(32 - u32::from(net.prefix())).unwrap_or(0);
    let bits = Payload::default()
        .be32(1, REGISTER)
        .be32(2, REGISTER)
        .be32(3, 4)
        .nest(4, &value(&mask.to_be_bytes()))
        .nest(5, &value(&[0; 4]));
    let octets = match net.network().address() {
        IpAddr::V4(v4) => v4.octets().to_vec(),
        IpAddr::V6(v6) => v6.octets().to_vec(),
    };
    let list = expression(Payload::default(), "payload", &load);
    expression(expression(list, "bitwise", &bits), "cmp", &equals(&octets))
}

/// The name of the device (`NFT_META_OIFNAME` = 7), padded with zeros, equals this one.
fn leaving_by(device: &str) -> Payload {
    let mut name = device.as_bytes().to_vec();
    name.resize(crate::sys::NAME_SIZE, 0);
    let load = Payload::default().be32(1, REGISTER).be32(2, 7);
    expression(expression(Payload::default(), "meta", &load), "cmp", &equals(&name))
}

fn expression(list: Payload, name: &str, data: &Payload) -> Payload {
    list.nest(1, &Payload::default().text(1, name).nest(2, data))
}

fn equals(bytes: &[u8]) -> Payload {
    Payload::default().be32(1, REGISTER).be32(2, 0).nest(3, &value(bytes))
}

fn value(bytes: &[u8]) -> Payload {
    Payload::default().attr(1, bytes)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A table as a kernel before 5.12 has it: it outlives its socket.
    pub(crate) fn leave_behind(namespace: &Namespace, name: &str) {
        let mut table = Table { name: name.to_owned(), socket: open(namespace).unwrap() };
        table.build(Masquerade::LeavingBy("tl0"), 0).unwrap();
        std::mem::forget(table);
    }

    #[test]
    fn an_owned_table_goes_with_its_socket() {
        let Some(namespace) = crate::namespace::tests::namespace() else { return };
        let network = "10.77.0.0/30".parse().unwrap();
        let table = Table::create(&namespace, "tl-owned", Masquerade::From(network)).unwrap();
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
