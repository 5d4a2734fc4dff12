//! Devices, addresses, routes and neighbours of a namespace, over rtnetlink (rtnetlink(7)).

use crate::error::Step;
use crate::message::{Payload, attribute, u32_at};
use crate::netlink::{Answer, Request};
use crate::{IpNet, LabError, Mac, Namespace, RouteMetrics, sys};
use std::net::IpAddr;
use std::thread;
use std::time::{Duration, Instant};

/// The attribute of a veth's data that describes its peer (`VETH_INFO_PEER`).
const VETH_INFO_PEER: u16 = 1;
/// `IF_OPER_UP` of `linux/if.h`: the device's queue is running.
const OPERATING: u8 = 6;
/// `IFLA_OPERSTATE` of `linux/if_link.h`.
const OPERSTATE: u16 = 16;
/// The time that a new pair may take to start its queues; it takes about a millisecond.
const START_LIMIT: Duration = Duration::from_secs(2);
/// Bytes of `struct ifinfomsg`, `struct rtmsg`.
pub(crate) const LINK_HEADER: usize = 16;
pub(crate) const ROUTE_HEADER: usize = 12;
/// The offset of the scope in it.
pub(crate) const ROUTE_SCOPE: usize = 6;

/// One end of a virtual Ethernet pair.
#[derive(Debug, Clone, Copy)]
pub struct End<'a> {
    /// The namespace that it lives in.
    pub namespace: &'a Namespace,
    /// Its name there.
    pub name: &'a str,
    /// Its Ethernet address; the kernel draws one at random if there is none.
    pub mac: Option<Mac>,
    /// The group of devices that it is in (ip-link(8)); 0 is the one that all are in.
    pub group: u32,
}

impl<'a> End<'a> {
    /// An end with a random Ethernet address.
    pub fn new(namespace: &'a Namespace, name: &'a str) -> End<'a> {
        End { namespace, name, mac: None, group: 0 }
    }
    /// The same end with this Ethernet address.
    pub fn with_mac(self, mac: Mac) -> End<'a> {
        End { mac: Some(mac), ..self }
    }
    /// The same end in this group of devices.
    pub fn in_group(self, group: u32) -> End<'a> {
        End { group, ..self }
    }
}

/// The properties of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkInfo {
    /// The kernel's number of it in its namespace.
    pub index: u32,
    /// Largest network-layer packet in bytes.
    pub mtu: u32,
    /// Whether it is switched on.
    pub up: bool,
    /// Whether it carries frames: switched on, with a peer that is.
    pub operating: bool,
    /// Its Ethernet address; `None` for devices without one.
    pub mac: Option<Mac>,
    /// Whether it is an Ethernet interface: neither the loopback nor one of bare packets, as tunnels have.
    pub ethernet: bool,
    /// The number of the device that it is a part of, such as a bridge of which it is a port.
    pub master: Option<u32>,
}

/// Makes a virtual Ethernet pair with each end directly in its namespace, switches both on, and waits
/// until both carry frames. `mtu` is in bytes of network-layer packet, 68 to 65535.
///
/// # Errors
/// If a name is taken or cannot be one, the MTU is out of range, or a namespace is not ours to change.
pub fn create_veth(a: &End<'_>, b: &End<'_>, mtu: u32) -> Result<(), LabError> {
    check_name(a.name)?;
    check_name(b.name)?;
    let mut peer = end_payload(b, mtu);
    // Descriptors are never negative.
    let home = std::os::fd::AsRawFd::as_raw_fd(&b.namespace.fd()) as u32;
    peer = peer.u32(libc::IFLA_NET_NS_FD, home);
    let data = Payload::default().attr(VETH_INFO_PEER, peer.bytes());
    let info =
        Payload::default().text(libc::IFLA_INFO_KIND, "veth").nest(libc::IFLA_INFO_DATA, &data);
    let payload = end_payload(a, mtu).nest(libc::IFLA_LINKINFO, &info);
    let what = format!("make the device pair {} and {} with MTU {mtu}", a.name, b.name);
    a.namespace.change(&what, libc::RTM_NEWLINK, CREATE, &payload)?;
    a.namespace.set_up(a.name)?;
    b.namespace.set_up(b.name)?;
    a.namespace.wait_operating(a.name)?;
    b.namespace.wait_operating(b.name)
}

/// The attribute of a bridge that says whether it sends multicast only where it was asked for (`linux/if_link.h`).
const BRIDGE_MULTICAST_SNOOPING: u16 = 23;
/// The flags of a request that makes something new.
pub(crate) const CREATE: libc::c_int = libc::NLM_F_CREATE | libc::NLM_F_EXCL;
/// The flags of a request that makes something or changes it.
const REPLACE: libc::c_int = libc::NLM_F_CREATE | libc::NLM_F_REPLACE;

/// `struct ifa_cacheinfo` of `linux/if_addr.h`: preferred for 0 s, valid for ever, and two instants that the kernel tells.
const NEVER_PREFERRED: [u8; 16] = [0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0];

fn end_payload(end: &End<'_>, mtu: u32) -> Payload {
    Payload::new(&link_header(0, 0, 0))
        .text(libc::IFLA_IFNAME, end.name)
        .u32(libc::IFLA_MTU, mtu)
        .u32(libc::IFLA_GROUP, end.group)
        .maybe(libc::IFLA_ADDRESS, end.mac.as_ref().map(|mac| &mac.0[..]))
}

impl Namespace {
    /// Makes a bridge of the name `name`, which hands frames from one of its ports to the others by their addresses, and
    /// switches it on. Multicast goes to all ports. `mtu` is in bytes of network-layer packet.
    ///
    /// # Errors
    /// If the name is taken or cannot be one, or the kernel has no bridges.
    pub fn create_bridge(&self, name: &str, mtu: u32) -> Result<(), LabError> {
        check_name(name)?;
        let data = Payload::default().attr(BRIDGE_MULTICAST_SNOOPING, &[0]);
        let info = Payload::default()
            .text(libc::IFLA_INFO_KIND, "bridge")
            .nest(libc::IFLA_INFO_DATA, &data);
        let payload = Payload::new(&link_header(0, 0, 0))
            .text(libc::IFLA_IFNAME, name)
            .u32(libc::IFLA_MTU, mtu)
            .nest(libc::IFLA_LINKINFO, &info);
        self.change(&format!("make the bridge {name}"), libc::RTM_NEWLINK, CREATE, &payload)?;
        self.set_up(name)
    }

    /// Makes the device `name` a port of the bridge `bridge`.
    ///
    /// # Errors
    /// If there is no such device or bridge.
    pub fn add_port(&self, bridge: &str, name: &str) -> Result<(), LabError> {
        let header = link_header(self.link(name)?.index, 0, 0);
        let master = self.link(bridge)?.index;
        let payload = Payload::new(&header).u32(libc::IFLA_MASTER, master);
        let what = format!("make {name} a port of the bridge {bridge}");
        self.change(&what, libc::RTM_NEWLINK, 0, &payload).map(drop)
    }

    /// The properties of the device `name`.
    ///
    /// # Errors
    /// [`LabError::NoDevice`] if there is none of that name.
    pub fn link(&self, name: &str) -> Result<LinkInfo, LabError> {
        check_name(name)?;
        let payload = Payload::new(&link_header(0, 0, 0)).text(libc::IFLA_IFNAME, name);
        let what = format!("look at the device {name}");
        let none = || LabError::NoDevice(name.to_owned());
        let answers = self
            .change(&what, libc::RTM_GETLINK, 0, &payload)
            .map_err(|error| if error.errno() == Some(libc::ENODEV) { none() } else { error })?;
        answers.iter().find_map(|(_, payload)| read_link(payload)).ok_or_else(none)
    }

    /// Removes the device `name`; of a virtual Ethernet pair, both ends go.
    ///
    /// # Errors
    /// [`LabError::NoDevice`] if there is none of that name.
    pub fn delete_link(&self, name: &str) -> Result<(), LabError> {
        let payload = Payload::new(&link_header(self.link(name)?.index, 0, 0));
        self.change(&format!("remove the device {name}"), libc::RTM_DELLINK, 0, &payload).map(drop)
    }

    /// Switches the device on.
    ///
    /// # Errors
    /// [`LabError::NoDevice`] if there is none of that name.
    pub fn set_up(&self, name: &str) -> Result<(), LabError> {
        self.switch(name, libc::IFF_UP as u32)
    }

    /// Switches the device off.
    ///
    /// # Errors
    /// [`LabError::NoDevice`] if there is none of that name.
    pub fn set_down(&self, name: &str) -> Result<(), LabError> {
        self.switch(name, 0)
    }

    fn switch(&self, name: &str, up: u32) -> Result<(), LabError> {
        let header = link_header(self.link(name)?.index, up, libc::IFF_UP as u32);
        let what = format!("switch the device {name} {}", if up == 0 { "off" } else { "on" });
        self.change(&what, libc::RTM_NEWLINK, 0, &Payload::new(&header)).map(drop)
    }

    /// Sets the largest network-layer packet of the device, in bytes.
    ///
    /// # Errors
    /// If there is no such device or it does not take this size.
    pub fn set_mtu(&self, name: &str, mtu: u32) -> Result<(), LabError> {
        let header = link_header(self.link(name)?.index, 0, 0);
        let payload = Payload::new(&header).u32(libc::IFLA_MTU, mtu);
        let what = format!("set the MTU of {name} to {mtu}");
        self.change(&what, libc::RTM_NEWLINK, 0, &payload).map(drop)
    }

    /// Gives the device an address. IPv6 addresses work at once: they are not checked for duplicates.
    ///
    /// # Errors
    /// If there is no such device or it has the address already.
    pub fn add_address(&self, name: &str, net: IpNet) -> Result<(), LabError> {
        self.new_address(name, net, None)
    }

    /// The same for an address from which nothing is sent, unless a program asks for it: it is deprecated from the
    /// beginning (RFC 4862 §5.5.4).
    ///
    /// # Errors
    /// If there is no such device or it has the address already.
    pub fn add_deprecated_address(&self, name: &str, net: IpNet) -> Result<(), LabError> {
        self.new_address(name, net, Some(&NEVER_PREFERRED))
    }

    fn new_address(
        &self,
        name: &str,
        net: IpNet,
        lifetimes: Option<&[u8]>,
    ) -> Result<(), LabError> {
        let index = self.link(name)?.index.to_ne_bytes();
        let mut header = vec![family(net.address()), net.prefix(), libc::IFA_F_NODAD as u8, 0];
        header.extend_from_slice(&index);
        let octets = octets(net.address());
        let payload = Payload::new(&header)
            .attr(libc::IFA_LOCAL, &octets)
            .attr(libc::IFA_ADDRESS, &octets)
            .maybe(libc::IFA_CACHEINFO, lifetimes);
        let what = format!("give {name} the address {net}");
        self.change(&what, libc::RTM_NEWADDR, CREATE, &payload).map(drop)
    }

    /// Sends what is for `destination` by way of `gateway`.
    ///
    /// # Errors
    /// If the gateway cannot be reached directly or there is such a route already.
    pub fn add_route(&self, destination: IpNet, gateway: IpAddr) -> Result<(), LabError> {
        let to = destination.network();
        let header = route_header(family(to.address()), to.prefix());
        let given = (to.prefix() > 0).then(|| octets(to.address()));
        let payload = Payload::new(&header)
            .maybe(libc::RTA_DST, given.as_deref())
            .attr(libc::RTA_GATEWAY, &octets(gateway));
        let what = format!("add a route to {to} through {gateway}");
        self.change(&what, libc::RTM_NEWROUTE, CREATE, &payload).map(drop)
    }

    /// Sends everything without a route of its own by way of `gateway`.
    ///
    /// # Errors
    /// If the gateway cannot be reached directly or there is a default route already.
    pub fn add_default_route(&self, gateway: IpAddr) -> Result<(), LabError> {
        self.add_route(IpNet::everything(gateway), gateway)
    }

    /// Sends what is for `destination` out of the device `name`, to whoever is behind it. Of several devices for one
    /// destination the one with the least `metric` counts.
    ///
    /// # Errors
    /// If there is no such device, or a route to `destination` with this metric already.
    pub fn add_device_route(
        &self,
        name: &str,
        destination: IpNet,
        metric: u32,
    ) -> Result<(), LabError> {
        let to = destination.network();
        let mut header = route_header(family(to.address()), to.prefix());
        header[ROUTE_SCOPE] = libc::RT_SCOPE_LINK;
        let payload = Payload::new(&header)
            .attr(libc::RTA_DST, &octets(to.address()))
            .u32(libc::RTA_OIF, self.link(name)?.index)
            .u32(libc::RTA_PRIORITY, metric);
        let what = format!("add a route to {to} through {name}");
        self.change(&what, libc::RTM_NEWROUTE, CREATE, &payload).map(drop)
    }

    /// Sends what is for the address `to` out of the device `name`, from `source`. The other end is
    /// reached directly, with `metrics` for the protocols above.
    ///
    /// # Errors
    /// If there is no such device, `source` is not one of its addresses, or there is such a route already.
    pub fn add_direct_route(
        &self,
        name: &str,
        to: IpAddr,
        source: IpAddr,
        metrics: &RouteMetrics,
    ) -> Result<(), LabError> {
        let mut header = route_header(family(to), if to.is_ipv4() { 32 } else { 128 });
        header[ROUTE_SCOPE] = libc::RT_SCOPE_LINK;
        let inner = metrics.payload();
        let mut payload = Payload::new(&header)
            .attr(libc::RTA_DST, &octets(to))
            .attr(libc::RTA_PREFSRC, &octets(source))
            .u32(libc::RTA_OIF, self.link(name)?.index);
        if !inner.bytes().is_empty() {
            payload = payload.nest(libc::RTA_METRICS, &inner);
        }
        let what = format!("add a route to {to} through {name}");
        self.change(&what, libc::RTM_NEWROUTE, CREATE, &payload).map(drop)
    }

    /// Tells the device the Ethernet address of `address` for good, so that nobody has to ask on the wire.
    ///
    /// # Errors
    /// If there is no such device.
    pub fn add_neighbour(&self, name: &str, address: IpAddr, mac: Mac) -> Result<(), LabError> {
        let index = self.link(name)?.index.to_ne_bytes();
        let mut header = vec![family(address), 0, 0, 0];
        header.extend_from_slice(&index);
        header.extend_from_slice(&libc::NUD_PERMANENT.to_ne_bytes());
        header.extend_from_slice(&[0, 0]);
        let payload = Payload::new(&header)
            .attr(libc::NDA_DST, &octets(address))
            .attr(libc::NDA_LLADDR, &mac.0);
        let what = format!("note that {address} is at {mac} on {name}");
        self.change(&what, libc::RTM_NEWNEIGH, REPLACE, &payload).map(drop)
    }

    /// Tells the bridge of the port `name` for good that `mac` is behind it, so that nothing for it goes to all ports.
    ///
    /// # Errors
    /// If there is no such device, or it is no port of a bridge.
    pub fn add_behind_port(&self, name: &str, mac: Mac) -> Result<(), LabError> {
        let index = self.link(name)?.index.to_ne_bytes();
        let mut header = vec![libc::AF_BRIDGE as u8, 0, 0, 0];
        header.extend_from_slice(&index);
        // A permanent one would be the bridge's own.
        header.extend_from_slice(&libc::NUD_NOARP.to_ne_bytes());
        header.extend_from_slice(&[libc::NTF_MASTER, 0]);
        let payload = Payload::new(&header).attr(libc::NDA_LLADDR, &mac.0);
        let what = format!("note that {mac} is behind the port {name}");
        self.change(&what, libc::RTM_NEWNEIGH, REPLACE, &payload).map(drop)
    }

    /// Waits until the kernel has started the device's queues: before, it drops what is sent.
    fn wait_operating(&self, name: &str) -> Result<(), LabError> {
        let end = Instant::now() + START_LIMIT;
        while !self.link(name)?.operating {
            if Instant::now() > end {
                return Err(std::io::Error::from(std::io::ErrorKind::TimedOut))
                    .step(|| format!("bring {name} into operation"));
            }
            thread::sleep(Duration::from_micros(500));
        }
        Ok(())
    }

    pub(crate) fn change(
        &self,
        what: &str,
        kind: u16,
        flags: libc::c_int,
        payload: &Payload,
    ) -> Result<Vec<Answer>, LabError> {
        let flags = (flags | libc::NLM_F_ACK) as u16;
        self.ask(what, &Request { kind, flags, payload: payload.bytes() })
    }
}

/// Whether Linux takes `name` for a device (`dev_valid_name` of the kernel).
pub(crate) fn check_name(name: &str) -> Result<(), LabError> {
    let odd = |byte: u8| byte == b'/' || byte == b':' || byte == 0 || byte.is_ascii_whitespace();
    let wrong = name.is_empty()
        || name.len() >= sys::NAME_SIZE
        || matches!(name, "." | "..")
        || name.bytes().any(odd);
    if wrong { Err(LabError::DeviceName(name.to_owned())) } else { Ok(()) }
}

/// `struct ifinfomsg`: family, type, index, flags, and which flags are meant.
fn link_header(index: u32, flags: u32, change: u32) -> [u8; LINK_HEADER] {
    let mut header = [0; LINK_HEADER];
    header[4..8].copy_from_slice(&index.to_ne_bytes());
    header[8..12].copy_from_slice(&flags.to_ne_bytes());
    header[12..].copy_from_slice(&change.to_ne_bytes());
    header
}

/// `struct rtmsg` of a unicast route in the main table.
pub(crate) fn route_header(family: u8, prefix: u8) -> [u8; ROUTE_HEADER] {
    let (table, origin) = (libc::RT_TABLE_MAIN, libc::RTPROT_STATIC);
    let (scope, kind) = (libc::RT_SCOPE_UNIVERSE, libc::RTN_UNICAST);
    [family, prefix, 0, 0, table, origin, scope, kind, 0, 0, 0, 0]
}

pub(crate) fn read_link(payload: &[u8]) -> Option<LinkInfo> {
    let attrs = payload.get(LINK_HEADER..)?;
    let mac = attribute(attrs, libc::IFLA_ADDRESS).and_then(|bytes| bytes.try_into().ok());
    let kind = u16::from_ne_bytes(payload.get(2..4)?.try_into().ok()?);
    Some(LinkInfo {
        index: u32_at(payload, 4)?,
        mtu: u32_at(attribute(attrs, libc::IFLA_MTU)?, 0)?,
        up: u32_at(payload, 8)? & libc::IFF_UP as u32 != 0,
        operating: attribute(attrs, OPERSTATE) == Some(&[OPERATING]),
        mac: mac.map(Mac),
        ethernet: kind == libc::ARPHRD_ETHER,
        master: attribute(attrs, libc::IFLA_MASTER).and_then(|bytes| u32_at(bytes, 0)),
    })
}

fn family(address: IpAddr) -> u8 {
    // Both families' numbers are below 256.
    (if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 }) as u8
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(v4) => v4.octets().to_vec(),
        IpAddr::V6(v6) => v6.octets().to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_names_are_checked() {
        for wrong in ["", ".", "..", "a/b", "a b", "a:b", "sixteen-bytes-16"] {
            assert!(check_name(wrong).is_err(), "{wrong}");
        }
        assert!(check_name("fifteen-bytes15").is_ok());
    }

    #[test]
    fn loopback_is_read_and_absence_is_named() {
        let own = Namespace::current().unwrap();
        let lo = own.link("lo").unwrap();
        assert_eq!((lo.index, lo.ethernet, lo.master), (1, false, None));
        let told = own.link("tl-none").unwrap_err();
        assert!(matches!(told, LabError::NoDevice(_)), "{told}");
    }

    #[test]
    fn cut_answers_are_no_links() {
        for length in 0..LINK_HEADER + 8 {
            assert_eq!(read_link(&vec![0; length]), None);
        }
    }
}
