//! A way from a laboratory to the world: a device pair to the host and masquerading on both sides.

use crate::forwarding::{self, FORWARD, GROUP};
use crate::link::{End, create_veth};
use crate::nft::{Purpose, Rule, Table};
use crate::state;
use crate::sweep::remove_device;
use crate::{IpNet, LabError, Namespace, RunState, name_servers};
use std::net::{IpAddr, Ipv4Addr};
use std::process;
use std::sync::atomic::{AtomicU16, Ordering};

/// Bytes of network-layer packet on the pair.
const MTU: u32 = 1500;
/// The name of the far end, in the laboratory.
const FAR_DEVICE: &str = "tlout";
/// Networks of two hosts to choose from: private (RFC 1918 §3), then carrier-grade (RFC 6598 §7).
const POOLS: [(Ipv4Addr, u8); 2] =
    [(Ipv4Addr::new(10, 0, 0, 0), 8), (Ipv4Addr::new(100, 64, 0, 0), 10)];
/// The number of networks of a pool that are looked at.
const TRIES: u32 = 4096;

/// The reason why the outside cannot be reached.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Unreachable {
    /// This process may not change the host's network.
    #[error("the host's network may not be changed by this user: run as root to reach the outside")]
    NotPrivileged,
    /// The kernel has no masquerading.
    #[error(
        "the kernel cannot masquerade ({0}): load the modules nf_tables, nft_masq, nft_ct and nft_chain_nat"
    )]
    NoMasquerading(LabError),
    /// Every network looked at is taken.
    #[error(
        "no unused network of two hosts in 10.0.0.0/8 or 100.64.0.0/10: remove a route to one of them"
    )]
    NoNetwork,
    /// A step failed for another reason.
    #[error(transparent)]
    Failed(#[from] LabError),
}

/// A laboratory's connection to the outside, removed at drop.
///
/// A device pair joins the far namespace to the host. What leaves the far namespace by it gets the far
/// end's address, whoever sent it, so the host needs no route into the laboratory; the host gives it its
/// own address in turn. IPv4 only. A server on the host's own loopback address, as systemd-resolved's 127.0.0.53, is not
/// reached, and a firewall of the host that drops forwarded packets (Docker's default) still does.
#[derive(Debug)]
pub struct Outside {
    host: Namespace,
    far: Namespace,
    state: RunState,
    /// Of the host's device and of the tables.
    name: String,
    network: IpNet,
    far_forward: Option<String>,
    tables: Vec<Table>,
    guard: Option<Table>,
}

impl Outside {
    /// Connects `far` to the outside through `host`, and has `far` pass on what comes to it from the
    /// laboratory. `far` must have no default route. What changes on the host is written to `state`
    /// first.
    ///
    /// # Errors
    /// [`Unreachable`] says why not; nothing is left behind then.
    pub fn connect(
        host: &Namespace,
        far: &Namespace,
        state: &RunState,
    ) -> Result<Outside, Unreachable> {
        let lock = state::lock(state.directory())?;
        let network = unused_network(host, far)?;
        let name = unused_name();
        // From here on, drop undoes whatever has been done.
        let mut outside = Outside {
            host: host.clone(),
            far: far.clone(),
            state: state.clone(),
            name,
            network,
            far_forward: None,
            tables: Vec::new(),
            guard: None,
        };
        let made = outside.build().map_err(reason);
        let made = made.and_then(|()| outside.pass_on().map_err(table_reason));
        drop(lock);
        made.map(|()| outside)
    }

    /// The far namespace's address on the pair.
    pub fn far_address(&self) -> Ipv4Addr {
        host_number(self.network, 2)
    }

    /// The host's address on the pair.
    pub fn host_address(&self) -> Ipv4Addr {
        host_number(self.network, 1)
    }

    /// The device's names: in the host's namespace and in the far one.
    pub fn devices(&self) -> (&str, &str) {
        (&self.name, FAR_DEVICE)
    }

    fn build(&mut self) -> Result<(), LabError> {
        self.state.update(|record| {
            record.host_devices.push(self.name.clone());
            record.nft_tables.push(self.name.clone());
        })?;
        let near = End::new(&self.host, &self.name).in_group(GROUP);
        let far = End::new(&self.far, FAR_DEVICE);
        create_veth(&near, &far, MTU)?;
        self.host.add_address(&self.name, with_prefix(self.host_address()))?;
        self.far.add_address(FAR_DEVICE, with_prefix(self.far_address()))?;
        self.far.add_default_route(self.host_address().into())?;
        self.far_forward = Some(self.far.sysctl(FORWARD)?);
        self.far.set_sysctl(FORWARD, "1")
    }

    /// Masquerades on both sides, then has the host pass packets on.
    fn pass_on(&mut self) -> Result<(), LabError> {
        let sides = [
            (&self.far, Rule::default().leaves_by(FAR_DEVICE)),
            (&self.host, Rule::default().from(self.network)),
        ];
        for (side, rule) in sides {
            let rules = [rule.masquerade()];
            self.tables.push(Table::create(side, &self.name, Purpose::Masquerade, &rules)?);
        }
        let (guard, lenders) =
            forwarding::guard(&self.host, &self.state, &self.name, self.network)?;
        self.guard = Some(guard);
        forwarding::lend(&self.host, &self.name, &lenders)
    }

    /// Undoes everything, whatever fails on the way, and tells the first failure.
    fn disconnect(&mut self) -> Result<(), LabError> {
        // Without the lock another run may be in the way; without the rest the host stays changed.
        let lock = state::lock(self.state.directory());
        self.tables.clear();
        let device = remove_device(&self.host, &self.name).map(drop);
        let before = self.far_forward.take();
        let far = before.map_or(Ok(()), |before| self.far.set_sysctl(FORWARD, &before));
        device.and(far).and(self.stop_forwarding()).and(lock.map(drop))
    }

    fn stop_forwarding(&mut self) -> Result<(), LabError> {
        let guard = forwarding::guard_name(&self.name);
        let mut record = self.state.record();
        record.nft_tables.retain(|name| *name != self.name && *name != guard);
        // Another connection of this process may still need it.
        let last = record.nft_tables.is_empty();
        if last {
            let restored = forwarding::restore(&self.host, self.state.directory(), &record);
            if let Err(error) = restored {
                // It has to stay as long as there is something to guard. The next start removes both.
                if let Some(guard) = self.guard.take() {
                    std::mem::forget(guard);
                }
                return Err(error);
            }
        }
        self.guard = None;
        self.state.update(|record| {
            record.host_devices.retain(|name| *name != self.name);
            record.nft_tables.retain(|name| *name != self.name && *name != guard);
            if last {
                record.saved_forwarding.clear();
            }
        })
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        if let Err(error) = self.disconnect() {
            tracing::warn!("{error}");
        }
    }
}

/// A name for the next connection of this process: at most 15 bytes, by process number and count.
fn unused_name() -> String {
    static COUNT: AtomicU16 = AtomicU16::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed) % 10_000;
    format!("tl{}o{count}", process::id())
}

fn reason(error: LabError) -> Unreachable {
    match error.errno() {
        Some(libc::EPERM | libc::EACCES) => Unreachable::NotPrivileged,
        _ => Unreachable::Failed(error),
    }
}

fn table_reason(error: LabError) -> Unreachable {
    match error.errno() {
        Some(libc::EPERM | libc::EACCES) => Unreachable::NotPrivileged,
        Some(libc::EPROTONOSUPPORT | libc::ENOENT | libc::EOPNOTSUPP | libc::EINVAL) => {
            Unreachable::NoMasquerading(error)
        }
        _ => Unreachable::Failed(error),
    }
}

/// A network of two hosts that neither side has a route into, and without a name server, which may
/// well be private and reached by the default route.
fn unused_network(host: &Namespace, far: &Namespace) -> Result<IpNet, Unreachable> {
    let routes = host.routes()?.into_iter().chain(far.routes()?);
    let mut taken: Vec<IpNet> = routes.filter_map(|route| route.to).collect();
    let servers = name_servers().into_iter().map(|server| server.ip());
    taken.extend(servers.filter(IpAddr::is_ipv4).filter_map(|server| IpNet::new(server, 32)));
    choose(&taken, process::id()).ok_or(Unreachable::NoNetwork)
}

/// The first free network at or after the place in each pool that `seed` gives: two runs start at
/// different places.
fn choose(taken: &[IpNet], seed: u32) -> Option<IpNet> {
    let of_pool = |(base, prefix): (Ipv4Addr, u8)| {
        let count = 1u32 << (30 - prefix);
        // Steps of an odd number reach every network and soon leave a block that is taken.
        let at = move |step: u32| seed.wrapping_add(step).wrapping_mul(0x9e37_79b1) % count;
        (0..TRIES).filter_map(move |step| {
            IpNet::new(Ipv4Addr::from_bits(base.to_bits() + 4 * at(step)), 30)
        })
    };
    let mut all = POOLS.into_iter().flat_map(of_pool);
    all.find(|net| !taken.iter().any(|other| other.overlaps(*net)))
}

/// Host `number` of the network.
fn host_number(network: IpNet, number: u32) -> Ipv4Addr {
    match network.address() {
        std::net::IpAddr::V4(base) => Ipv4Addr::from_bits(base.to_bits() + number),
        // `choose` gives IPv4 networks only.
        std::net::IpAddr::V6(_) => Ipv4Addr::UNSPECIFIED,
    }
}

fn with_prefix(address: Ipv4Addr) -> IpNet {
    IpNet::new(address, 30).unwrap_or(IpNet::everything(address.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_chosen_network_is_free(seed: u32, nets in prop::collection::vec((any::<u32>(), 9u8..=32), 0..9)) {
            let taken: Vec<_> = nets.iter().filter_map(|(bits, prefix)| IpNet::new(Ipv4Addr::from_bits(*bits), *prefix)).collect();
            let net = choose(&taken, seed).unwrap();
            prop_assert_eq!(net.network(), net);
            prop_assert!(taken.iter().all(|other| !other.overlaps(net)));
        }
    }

    #[test]
    fn a_taken_pool_leads_to_the_other_and_two_to_none() {
        let ten: IpNet = "10.0.0.0/8".parse().unwrap();
        let carrier: IpNet = "100.64.0.0/10".parse().unwrap();
        assert!(carrier.overlaps(choose(&[ten], 7).unwrap()));
        assert_eq!(choose(&[ten, carrier], 7), None);
    }

    #[test]
    fn neighbours_start_apart() {
        assert_ne!(choose(&[], 7), choose(&[], 8));
    }
}
