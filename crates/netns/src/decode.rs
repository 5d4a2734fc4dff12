//! The decoders of netlink messages that a laboratory uses, without a socket, for
//! octets from elsewhere.

pub use crate::routes::Route;
use crate::{ForwardDrop, LabError, LinkInfo, firewall, link, netlink, nft, routes};
use std::ops::RangeInclusive;

/// The answer of a datagram to the requests that were asked about.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reply {
    /// Type and payload of each answer, in order.
    pub answers: Vec<(u16, Vec<u8>)>,
    /// Requests that are done with.
    pub ended: usize,
}

/// Reads a datagram of the kernel in answer to the requests of these `numbers`.
///
/// # Errors
/// If the kernel refuses one of them.
pub fn reply(datagram: &[u8], numbers: &RangeInclusive<u32>) -> Result<Reply, LabError> {
    let mut reply = Reply::default();
    reply.ended = netlink::sort("ask the kernel", datagram, numbers, &mut reply.answers)?;
    Ok(reply)
}

/// Reads the payload of `RTM_NEWLINK`.
pub fn link(payload: &[u8]) -> Option<LinkInfo> {
    link::read_link(payload)
}

/// Reads the number and the name of a device in the payload of `RTM_NEWLINK`.
pub fn name(payload: &[u8]) -> Option<(u32, String)> {
    routes::read_name(payload)
}

/// Reads the payload of `RTM_NEWROUTE` of IPv4.
pub fn route(payload: &[u8]) -> Option<Route> {
    routes::read_route(payload)
}

/// Reads the name in the payload of `NFT_MSG_NEWTABLE`.
pub fn table(payload: &[u8]) -> Option<String> {
    nft::read_table(payload)
}

/// Reads the payload of `NFT_MSG_NEWCHAIN`: a chain that drops what is passed on.
pub fn forward_drop(payload: &[u8]) -> Option<ForwardDrop> {
    nft::read_forward_drop(payload)
}

/// Reads what the kernel tells of a table of ip_tables (`struct ipt_getinfo` and the entries): whether it drops what is
/// passed on.
pub fn legacy_forward_drop(info: &[u8], entries: &[u8]) -> Option<ForwardDrop> {
    firewall::read_forward_drop(info, entries)
}
