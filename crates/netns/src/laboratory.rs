//! Hosts, and a namespace in the middle to which each is joined: what every emulation in real time is built of.
//!
//! ```text
//!  host ── device pair ── middle (the emulator's ends; nobody lives here) ── device pair ── host
//! ```

use crate::{End, LabError, Mac, Namespace, create_veth, kill_processes_in, raise_open_files};
use std::thread::sleep;
use std::time::Duration;

/// The time that programs may take to end before they are killed.
const GRACE: Duration = Duration::from_millis(100);

/// Namespaces joined by device pairs to one in the middle, with nothing emulated yet.
#[derive(Debug)]
pub struct Laboratory {
    middle: Namespace,
    hosts: Vec<Namespace>,
    /// The hosts' own devices, each with the number of its host.
    devices: Vec<(usize, String)>,
}

impl Laboratory {
    /// A middle without hosts. It has no voice of its own: IPv6 would speak by itself. The process may from now on open
    /// as many files as the system lets it.
    ///
    /// # Errors
    /// If no namespace can be had, for want of permission as a rule.
    pub fn new() -> Result<Laboratory, LabError> {
        raise_open_files();
        let middle = Namespace::create()?;
        middle.set_sysctl("net/ipv6/conf/default/disable_ipv6", "1")?;
        Ok(Laboratory { middle, hosts: Vec::new(), devices: Vec::new() })
    }

    /// Adds a host without devices; returns its number.
    ///
    /// # Errors
    /// As [`Laboratory::new`].
    pub fn add_host(&mut self) -> Result<usize, LabError> {
        self.hosts.push(Namespace::create()?);
        Ok(self.hosts.len() - 1)
    }

    /// Joins a host to the middle by a pair of devices of `mtu` bytes, `outer` at the host and `inner` in the middle,
    /// each with its name and address; `None` leaves the address to the kernel. Both ends send frames of wire size with
    /// finished checksums.
    ///
    /// # Errors
    /// If the devices cannot be made or set up.
    pub fn join(
        &mut self,
        host: usize,
        outer: (&str, Option<Mac>),
        inner: (&str, Option<Mac>),
        mtu: u32,
    ) -> Result<(), LabError> {
        let namespace = &self.hosts[host];
        create_veth(&end(namespace, outer), &end(&self.middle, inner), mtu)?;
        namespace.set_offloads_off(outer.0)?;
        self.middle.set_offloads_off(inner.0)?;
        self.devices.push((host, outer.0.to_string()));
        Ok(())
    }

    /// The namespace of the emulator's ends.
    pub fn middle(&self) -> &Namespace {
        &self.middle
    }

    /// The hosts by their numbers.
    pub fn hosts(&self) -> &[Namespace] {
        &self.hosts
    }

    /// All namespaces, to be written down for the clean-up after a killed run.
    pub fn namespaces(&self) -> impl Iterator<Item = &Namespace> {
        std::iter::once(&self.middle).chain(&self.hosts)
    }

    /// Takes the receivers' protocol work off the processor `emulator`, one of `processors`: there each frame sent
    /// would be received as well before the next is sent. Does nothing if there is no other one.
    ///
    /// # Errors
    /// If the system does not allow it, as in some containers.
    pub fn spare(&self, emulator: usize, processors: &[usize]) -> Result<(), LabError> {
        let others: Vec<usize> =
            processors.iter().copied().filter(|&number| number != emulator).collect();
        if others.is_empty() {
            return Ok(());
        }
        let steer =
            |(host, device): &(usize, String)| self.hosts[*host].steer_receive(device, &others);
        self.devices.iter().try_for_each(steer)
    }

    /// Ends whatever runs in the hosts, also what has left the process group in which it was started.
    pub fn end_programs(&self) {
        for signal in [libc::SIGTERM, libc::SIGKILL] {
            let kill = |host: &Namespace| kill_processes_in(host.inode(), signal);
            let left: usize = self.hosts.iter().map(|host| kill(host).unwrap_or(0)).sum();
            if left == 0 {
                return;
            }
            sleep(GRACE);
        }
    }
}

fn end<'a>(namespace: &'a Namespace, (name, mac): (&'a str, Option<Mac>)) -> End<'a> {
    End { mac, ..End::new(namespace, name) }
}
