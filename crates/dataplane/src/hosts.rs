//! The laboratory of `shell` and `verify`: a near host, and far hosts each behind its own path.
//!
//! ```text
//!  near            middle (nobody lives here)            far
//!  tl0 ────────── tl0n ══ emulated path ══ tl0f ────────── tl0
//!  10.77.0.2                                          10.77.0.1
//! ```

use crate::DataplaneError;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use trunkline_netns::{IpNet, LabError, Laboratory, Mac, Namespace};

/// First bytes of the laboratory's addresses: 10.77.K.0/24 and fd00:746c:K::/64 for path K.
const IPV4_PREFIX: [u8; 2] = [10, 77];
const IPV6_PREFIX: [u16; 2] = [0xfd00, 0x746c];

/// The least MTU with which there is IPv6 (RFC 8200 §5).
const IPV6_LEAST_MTU: u32 = 1280;

/// Whether hosts can speak IPv6 over devices of `mtu` bytes.
pub fn carries_ipv6(mtu: u32) -> bool {
    mtu >= IPV6_LEAST_MTU
}

/// A near host, in which the command runs, and the far hosts, in the order of the paths, with nothing emulated yet.
#[derive(Debug)]
pub struct Hosts(Laboratory);

/// The addresses on path `index`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Addresses {
    /// Of the near end.
    pub near: Ipv4Addr,
    /// Of the far end.
    pub far: Ipv4Addr,
    /// Of the near end.
    pub near6: Ipv6Addr,
    /// Of the far end.
    pub far6: Ipv6Addr,
}

/// The addresses on path `index`.
pub fn addresses(index: usize) -> Addresses {
    let number = index as u8;
    let v4 = |host| Ipv4Addr::new(IPV4_PREFIX[0], IPV4_PREFIX[1], number, host);
    let v6 = |host| Ipv6Addr::new(IPV6_PREFIX[0], IPV6_PREFIX[1], number.into(), 0, 0, 0, 0, host);
    Addresses { near: v4(2), far: v4(1), near6: v6(2), far6: v6(1) }
}

/// The networks of all paths, of IPv4 and of IPv6.
pub fn networks() -> (IpNet, IpNet) {
    let v4 = Ipv4Addr::new(IPV4_PREFIX[0], IPV4_PREFIX[1], 0, 0);
    let v6 = Ipv6Addr::new(IPV6_PREFIX[0], IPV6_PREFIX[1], 0, 0, 0, 0, 0, 0);
    (net(v4.into(), 16), net(v6.into(), 32))
}

/// The addresses by which the near host reaches the machine that all this runs on: behind the first path, at its far
/// host.
pub fn machine_addresses() -> (Ipv4Addr, Ipv6Addr) {
    let [a, b] = IPV4_PREFIX;
    let [c, d] = IPV6_PREFIX;
    (Ipv4Addr::new(a, b, 0, 254), Ipv6Addr::new(c, d, 0, 0, 0, 0, 0, 0xfe))
}

/// The device of path `index` in the near host; in every far host it is the one of index 0.
pub fn device(index: usize) -> String {
    format!("tl{index}")
}

/// The emulator's two devices of path `index`.
pub fn inner_devices(index: usize) -> (String, String) {
    (format!("tl{index}n"), format!("tl{index}f"))
}

impl Hosts {
    /// Builds a near host and one far host for each of `mtus`. They have no IPv6 address if the MTU is too
    /// small for one ([`carries_ipv6`]).
    ///
    /// # Errors
    /// If the laboratory cannot be built, for want of permission as a rule.
    pub fn build(mtus: &[u32]) -> Result<Hosts, DataplaneError> {
        let mut laboratory = Laboratory::new()?;
        laboratory.add_host()?;
        let mut hosts = Hosts(laboratory);
        for (index, &mtu) in mtus.iter().enumerate() {
            hosts.add(index, mtu)?;
        }
        Ok(hosts)
    }

    /// The near host.
    pub fn near(&self) -> &Namespace {
        &self.0.hosts()[0]
    }

    /// The far host of path `index`.
    ///
    /// # Panics
    /// If there is no such path.
    pub fn far(&self, index: usize) -> &Namespace {
        &self.0.hosts()[1 + index]
    }

    /// The namespace of the emulator's ends.
    pub fn middle(&self) -> &Namespace {
        self.0.middle()
    }

    /// The namespaces and devices.
    pub fn laboratory(&self) -> &Laboratory {
        &self.0
    }

    /// Gives the first far host the [`machine_addresses`], of IPv6 if it has `v6` at all.
    ///
    /// # Errors
    /// If the addresses cannot be had.
    pub fn add_machine(&self, v6: bool) -> Result<(), LabError> {
        let (machine, machine6) = machine_addresses();
        let far_device = device(0);
        for address in [Some(machine.into()), v6.then_some(machine6.into())].into_iter().flatten() {
            // The far host's own servers answer from its own address.
            self.far(0).add_deprecated_address(&far_device, net(address, prefix(address)))?;
            self.near().add_neighbour(&device(0), address, mac(0, 1))?;
        }
        Ok(())
    }

    fn add(&mut self, index: usize, mtu: u32) -> Result<(), DataplaneError> {
        let number = self.0.add_host()?;
        let (near_device, far_device) = (device(index), device(0));
        let (inner_near, inner_far) = inner_devices(index);
        let (near_mac, far_mac) = (mac(index, 2), mac(index, 1));
        let inner = |name, host| (name, Some(mac(index, host)));
        self.0.join(0, (&near_device, Some(near_mac)), inner(inner_near.as_str(), 3), mtu)?;
        self.0.join(number, (&far_device, Some(far_mac)), inner(inner_far.as_str(), 4), mtu)?;
        let Addresses { near, far: beyond, near6, far6 } = addresses(index);
        let v6 = carries_ipv6(mtu).then_some((near6.into(), far6.into()));
        let pairs = [Some((near.into(), beyond.into())), v6];
        for (near, beyond) in pairs.into_iter().flatten() {
            settle(self.near(), &near_device, near, (beyond, far_mac))?;
            settle(self.far(index), &far_device, beyond, (near, near_mac))?;
        }
        for neighbours in [groups(), everybody()] {
            self.near().add_device_route(&near_device, neighbours, index as u32)?;
            self.far(index).add_device_route(&far_device, neighbours, 0)?;
        }
        Ok(())
    }
}

/// Gives a host an address and its neighbour. Neighbours are permanent: a path with ten seconds of delay is too
/// long for ARP.
fn settle(
    namespace: &Namespace,
    device: &str,
    own: IpAddr,
    (peer, peer_mac): (IpAddr, Mac),
) -> Result<(), LabError> {
    namespace.add_address(device, net(own, prefix(own)))?;
    namespace.add_neighbour(device, peer, peer_mac)
}

/// All multicast groups of IPv4. Without a route of their own they would lead to the world outside, or nowhere; those of
/// IPv6 lead to the neighbours by themselves.
fn groups() -> IpNet {
    net(Ipv4Addr::new(224, 0, 0, 0).into(), 4)
}

/// The broadcast address of the own link (RFC 919 §7), for which the same holds.
fn everybody() -> IpNet {
    net(Ipv4Addr::BROADCAST.into(), 32)
}

/// The prefix of a path's network.
fn prefix(address: IpAddr) -> u8 {
    if address.is_ipv4() { 24 } else { 64 }
}

fn net(address: IpAddr, prefix: u8) -> IpNet {
    IpNet::new(address, prefix).expect("a prefix of the address's family")
}

/// Locally administered Ethernet addresses: "tl", the path, the host.
fn mac(index: usize, host: u8) -> Mac {
    Mac([0x02, b't', b'l', 0, index as u8, host])
}
