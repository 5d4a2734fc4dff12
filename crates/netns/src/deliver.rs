//! Datagrams for others that a host takes in, in place of passing them on.

use crate::link::{CREATE, ROUTE_SCOPE, route_header};
use crate::message::Payload;
use crate::{LabError, Namespace};

/// Attributes of rules and what they do (`linux/fib_rules.h`): device of arrival, place among the rules, table,
/// transport protocol; look into a table.
const ARRIVES_BY: u16 = 3;
const PLACE: u16 = 6;
const TABLE: u16 = 15;
const PROTOCOL: u16 = 22;
const LOOK_INTO: u8 = 1;
/// The table of routes, and the rule's place: behind the host's own addresses, before the main table.
const OURS: u8 = 77;
const BEFORE_MAIN: u32 = 1000;
/// The offsets of the table and the type in `struct rtmsg`.
const ROUTE_TABLE: usize = 4;
const ROUTE_KIND: usize = 7;

impl Namespace {
    /// Has UDP that arrives by `device`, of IPv6 or not, delivered to this host, whomever it is for. The sockets that
    /// take it in are [transparent](crate::set_transparent).
    ///
    /// # Errors
    /// If the kernel has no routing by rules, or such a rule is there already.
    pub fn deliver_datagrams(&self, device: &str, v6: bool) -> Result<(), LabError> {
        let family = (if v6 { libc::AF_INET6 } else { libc::AF_INET }) as u8;
        let mut header = route_header(family, 0);
        header[ROUTE_TABLE] = OURS;
        header[ROUTE_SCOPE] = libc::RT_SCOPE_HOST;
        header[ROUTE_KIND] = libc::RTN_LOCAL;
        let route = Payload::new(&header).u32(libc::RTA_OIF, self.link("lo")?.index);
        self.change("deliver datagrams here", libc::RTM_NEWROUTE, CREATE, &route)?;
        // `struct fib_rule_hdr`: family, no prefixes, no table but that of the attribute.
        let rule = Payload::new(&[family, 0, 0, 0, 0, 0, 0, LOOK_INTO, 0, 0, 0, 0])
            .text(ARRIVES_BY, device)
            .attr(PROTOCOL, &[libc::IPPROTO_UDP as u8])
            .u32(TABLE, OURS.into())
            .u32(PLACE, BEFORE_MAIN);
        let what = format!("add a rule for datagrams that arrive by {device}");
        self.change(&what, libc::RTM_NEWRULE, CREATE, &rule).map(drop)
    }
}
