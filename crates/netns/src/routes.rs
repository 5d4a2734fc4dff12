//! The routes that a namespace has (rtnetlink(7)).

use crate::link::{LINK_HEADER, ROUTE_HEADER, route_header};
use crate::message::{Payload, attribute, u16_at, u32_at};
use crate::netlink::Request;
use crate::{IpNet, LabError, Namespace};
use std::net::IpAddr;

/// The offset of the type in `struct rtmsg`.
const KIND: usize = 7;
/// Bytes of `struct rtnexthop` before its attributes, and the offset of the device in it.
const HOP: usize = 8;
const HOP_DEVICE: usize = 4;

/// One IPv4 route: its destination and its devices. A default route has no destination.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// Its destination.
    pub to: Option<IpNet>,
    /// The kernel's numbers of the devices; none if packets are refused.
    pub devices: Vec<u32>,
}

impl Namespace {
    /// The IPv4 routes of this namespace, in all tables.
    pub(crate) fn routes(&self) -> Result<Vec<Route>, LabError> {
        let payload = Payload::new(&route_header(libc::AF_INET as u8, 0));
        let request = Request {
            kind: libc::RTM_GETROUTE,
            flags: libc::NLM_F_DUMP as u16,
            payload: payload.bytes(),
        };
        let answers = self.ask("list the routes", &request)?;
        Ok(answers.iter().filter_map(|(_, payload)| read_route(payload)).collect())
    }

    /// The names of all devices, with the kernel's numbers.
    pub(crate) fn devices(&self) -> Result<Vec<(u32, String)>, LabError> {
        let payload = Payload::new(&[0; LINK_HEADER]);
        let request = Request {
            kind: libc::RTM_GETLINK,
            flags: libc::NLM_F_DUMP as u16,
            payload: payload.bytes(),
        };
        let answers = self.ask("list the devices", &request)?;
        Ok(answers.iter().filter_map(|(_, payload)| read_name(payload)).collect())
    }
}

pub(crate) fn read_route(payload: &[u8]) -> Option<Route> {
    let prefix = *payload.get(1)?;
    let unicast = *payload.get(KIND)? == libc::RTN_UNICAST;
    let attrs = payload.get(ROUTE_HEADER..)?;
    let to = attribute(attrs, libc::RTA_DST).and_then(|octets| {
        let octets: [u8; 4] = octets.try_into().ok()?;
        IpNet::new(IpAddr::from(octets), prefix).filter(|net| net.prefix() > 0)
    });
    let single = attribute(attrs, libc::RTA_OIF).and_then(|bytes| u32_at(bytes, 0));
    let several = hops(attribute(attrs, libc::RTA_MULTIPATH).unwrap_or_default());
    let devices = single.into_iter().chain(several).filter(|_| unicast).collect();
    Some(Route { to, devices })
}

/// The devices of a route that has several.
fn hops(mut bytes: &[u8]) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let length = usize::from(u16_at(bytes, 0)?);
        let device = u32_at(bytes, HOP_DEVICE).filter(|_| length >= HOP)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(device)
    })
}

pub(crate) fn read_name(payload: &[u8]) -> Option<(u32, String)> {
    let name = attribute(payload.get(LINK_HEADER..)?, libc::IFLA_IFNAME)?;
    let name = String::from_utf8_lossy(name).trim_end_matches('\0').to_owned();
    Some((u32_at(payload, 4)?, name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_answer_is_read_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
            let (_, _) = (read_route(&bytes), read_name(&bytes));
            prop_assert!(hops(&bytes).count() <= bytes.len() / HOP);
        }
    }

    #[test]
    fn routes_of_one_and_of_several_devices_are_read() {
        let header = route_header(libc::AF_INET as u8, 24);
        let single =
            Payload::new(&header).attr(libc::RTA_DST, &[192, 0, 2, 0]).u32(libc::RTA_OIF, 7);
        let read = read_route(single.bytes()).unwrap();
        assert_eq!(read, Route { to: "192.0.2.0/24".parse().ok(), devices: vec![7] });
        let hop = |device: u8| [16, 0, 0, 0, device, 0, 0, 0, 8, 0, 5, 0, 10, 0, 0, 1];
        let several = [hop(3), hop(4)].concat();
        let several =
            Payload::new(&route_header(libc::AF_INET as u8, 0)).attr(libc::RTA_MULTIPATH, &several);
        assert_eq!(read_route(several.bytes()).unwrap(), Route { to: None, devices: vec![3, 4] });
        let mut refused = header;
        refused[KIND] = libc::RTN_BLACKHOLE;
        let refused = Payload::new(&refused).u32(libc::RTA_OIF, 7);
        assert_eq!(read_route(refused.bytes()).unwrap().devices, [0u32; 0]);
    }

    #[test]
    fn the_loopback_device_is_listed() {
        let devices = Namespace::current().unwrap().devices().unwrap();
        assert!(devices.contains(&(1, "lo".into())), "{devices:?}");
    }
}
