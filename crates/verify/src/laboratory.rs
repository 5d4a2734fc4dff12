//! Three namespaces, the two ways between their ends, and the threads' places.

use crate::VerifyError;
use crate::generator::{self, Course, Recording, realtime};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use trunkline_dataplane::Awake;
use trunkline_dataplane::hosts::{Hosts, device, inner_devices};
use trunkline_dataplane::{CaptureRequest, Console, Plan, Session, SessionOptions, SessionThread};
use trunkline_netns::{End, Namespace, create_veth};
use trunkline_port::{Backend, Port};
use trunkline_scenario::PathSpec;

use crate::run::Emulator;

/// The device of the direct way at both ends.
const DIRECT: &str = "tldirect";

/// The way that the probes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrangement {
    /// Straight from end to end.
    Direct,
    /// Through the middle, in which an emulator forwards.
    Emulated,
}

/// Near, middle and far host, and the measuring ports at the ends. Removed when dropped.
pub struct Laboratory {
    direct: [Box<dyn Port>; 2],
    emulated: [Box<dyn Port>; 2],
    cpus: Cpus,
    hosts: Hosts,
    console: Arc<Console>,
    /// So that what is measured without the emulator finds the processors as awake as with it.
    _awake: Awake,
}

/// The processors of the threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cpus {
    /// The emulator's processor; `None` if there is only one for both.
    pub emulator: Option<usize>,
    /// The generator's.
    pub generator: Option<usize>,
}

impl Cpus {
    /// The emulator gets `wanted`, or else the last processor that may be used; the generator the
    /// first of the others.
    pub fn choose(allowed: &[usize], wanted: Option<usize>) -> Cpus {
        let emulator = wanted.or(allowed.last().copied());
        let generator = allowed.iter().copied().find(|cpu| Some(*cpu) != emulator);
        match generator {
            Some(_) => Cpus { emulator, generator },
            None => Cpus { emulator: wanted, generator: None },
        }
    }
}

fn allowed_cpus() -> Vec<usize> {
    let set = sched_getaffinity(None).unwrap_or_default();
    (0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect()
}

impl Laboratory {
    /// Builds the laboratory for packets of at most `mtu` bytes; `cpu` is the emulator's processor.
    ///
    /// # Errors
    /// If namespaces, devices or packet sockets cannot be had.
    pub fn build(mtu: u32, cpu: Option<usize>) -> Result<Laboratory, VerifyError> {
        let hosts = Hosts::build(&[mtu])?;
        let (near, far) = (hosts.near(), hosts.far(0));
        for host in [near, far] {
            // The hosts themselves have nothing to say: no neighbour or group messages in between.
            host.set_sysctl("net/ipv6/conf/all/disable_ipv6", "1")?;
            host.set_sysctl("net/ipv6/conf/default/disable_ipv6", "1")?;
        }
        create_veth(&End::new(near, DIRECT), &End::new(far, DIRECT), mtu)?;
        near.set_offloads_off(DIRECT)?;
        far.set_offloads_off(DIRECT)?;
        let direct = [open(near, DIRECT)?, open(far, DIRECT)?];
        let emulated = [open(near, &device(0))?, open(far, &device(0))?];
        let cpus = Cpus::choose(&allowed_cpus(), cpu);
        let (console, _awake) = (Arc::default(), Awake::hold());
        Ok(Laboratory { direct, emulated, cpus, hosts, console, _awake })
    }

    /// Lets `show`, `set` and captures reach what is measured, through `console`.
    pub fn attend(&mut self, console: Arc<Console>) {
        self.console = console;
    }

    /// The register that shows what is measured.
    pub fn console(&self) -> Arc<Console> {
        Arc::clone(&self.console)
    }

    /// The namespaces, to be written down for the next run's clean-up.
    pub fn namespaces(&self) -> impl Iterator<Item = &Namespace> {
        self.hosts.laboratory().namespaces()
    }

    /// The processors of the threads.
    pub fn cpus(&self) -> Cpus {
        self.cpus
    }

    /// Starts the emulator in the middle, with a capture if one is wanted.
    ///
    /// # Errors
    /// If a device cannot be opened or the path does not fit into memory.
    pub fn start(
        &self,
        path: &PathSpec,
        how: &Emulator,
        capture: Option<CaptureRequest>,
    ) -> Result<(Session, SessionThread), VerifyError> {
        let (near, far) = inner_devices(0);
        let namespace = self.hosts.middle();
        let plan = Plan { name: String::new(), path: path.clone(), namespace, near, far };
        let mut options =
            SessionOptions { backend: how.backend, capture, ..SessionOptions::default() };
        options.dataplane.busy = how.busy;
        options.dataplane.cpu = self.cpus.emulator;
        options.dataplane.own = self.cpus.generator.is_some();
        Ok(Session::start(vec![plan], options)?)
    }

    /// Runs a course on the generator's processor, after some probes that are not counted.
    ///
    /// # Errors
    /// If a device fails or `stop` was set.
    pub fn run(
        &mut self,
        arrangement: Arrangement,
        course: &Course,
        stop: &AtomicBool,
    ) -> Result<Recording, VerifyError> {
        let cpu = self.cpus.generator;
        let [near, far] = match arrangement {
            Arrangement::Direct => &mut self.direct,
            Arrangement::Emulated => &mut self.emulated,
        };
        let (near, far) = (near.as_mut(), far.as_mut());
        let thread = trunkline_netns::thread("generator").map_err(VerifyError::Thread)?;
        std::thread::scope(|scope| {
            let handle = thread.spawn_scoped(scope, || {
                settle_on(cpu)?;
                generator::warm(near, far, course.size)?;
                sleep_until(course.start.saturating_sub(EARLY));
                generator::run(near, far, course, stop)
            });
            let handle = handle.map_err(VerifyError::Thread)?;
            handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }
}

/// The generator is at work this long before its first probe.
const EARLY: u64 = 2_000_000;

fn sleep_until(realtime_nanos: u64) {
    let wait = realtime_nanos.saturating_sub(realtime());
    std::thread::sleep(std::time::Duration::from_nanos(wait));
}

fn open(namespace: &Namespace, device: &str) -> Result<Box<dyn Port>, VerifyError> {
    Ok(namespace.run(|| trunkline_port::open(device, Backend::Packet))??)
}

fn settle_on(cpu: Option<usize>) -> Result<(), VerifyError> {
    let Some(cpu) = cpu else { return Ok(()) };
    let mut set = CpuSet::new();
    set.set(cpu);
    sched_setaffinity(None, &set).map_err(|error| VerifyError::Thread(error.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_get_processors_of_their_own() {
        let both = |emulator, generator| Cpus { emulator, generator };
        assert_eq!(Cpus::choose(&[0, 1], None), both(Some(1), Some(0)));
        assert_eq!(Cpus::choose(&[0, 1], Some(0)), both(Some(0), Some(1)));
        assert_eq!(Cpus::choose(&[2, 5, 7], Some(5)), both(Some(5), Some(2)));
        assert_eq!(Cpus::choose(&[3], None), both(None, None), "one for both: no pinning");
        assert_eq!(Cpus::choose(&[3], Some(3)), both(Some(3), None));
    }
}
