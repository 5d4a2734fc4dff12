//! A plan built: namespaces for the hosts, one in the middle for the emulator, the dataplane at work.

use crate::kernel::{metrics, sysctls};
use crate::plan::{Plan, addresses};
use crate::{TestbedError, frame};
use rustix::process::Signal;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use trunkline_core::{Span, Time};
use trunkline_emu::{
    Dataplane, EmuError, Live, Options, Remote, Snapshot, WayPlan, Web, WebPlan, way_mac,
};
use trunkline_lab::{
    End, IpNet, Mac, Namespace, RunState, available_memory, create_veth, kill_processes_in,
};
use trunkline_port::{Backend, Port};
use trunkline_scenario::Scenario;

/// The device in every host.
pub const DEVICE: &str = "tl0";
/// Memory for frames beyond the need; what is not written to costs nothing.
const RESERVE: u64 = 1 << 30;
/// Of the available memory, the part that frames may take, in percent.
const SHARE: u64 = 60;
/// More than this does not wait on one link: hosts send no more than their windows.
const MOST_QUEUED: u64 = 64 << 20;
/// A frame takes this many times the bytes that count on its path: small packets in capsules.
const OVERHEAD: u64 = 2;
/// At most this many samples of a link's backlog are kept.
const MOST_SAMPLES: u64 = 1 << 20;
/// How long programs may take to end before they are killed.
const GRACE: Duration = Duration::from_millis(50);

/// Hosts joined by an emulated network. Removed when dropped.
pub struct Laboratory {
    /// One for each station of the plan.
    pub stations: Vec<Namespace>,
    middle: Namespace,
}

/// The emulated network at work.
pub struct Network {
    remote: Remote,
    live: Arc<Live>,
    thread: Option<JoinHandle<Ended>>,
}

/// What a dataplane gives back.
pub type Ended = (Snapshot, Web, Result<(), EmuError>);

/// The Ethernet address of the device at station `index`.
fn station_mac(index: usize) -> Mac {
    let [high, low] = (index as u16).to_be_bytes();
    Mac([0x02, b't', b'l', b'h', high, low])
}

fn inner_device(index: usize) -> String {
    format!("tl{index}n")
}

impl Laboratory {
    /// Builds the hosts of `plan`.
    ///
    /// # Errors
    /// Where the laboratory cannot be built, for want of permission as a rule.
    pub fn build(
        scenario: &Scenario,
        plan: &Plan,
        state: &RunState,
    ) -> Result<Laboratory, TestbedError> {
        let middle = Namespace::create()?;
        state.note_namespace(&middle)?;
        // Only what the scenario sends shall travel.
        middle.set_sysctl("net/ipv6/conf/default/disable_ipv6", "1")?;
        let mut laboratory = Laboratory { stations: Vec::new(), middle };
        for index in 0..plan.stations.len() {
            laboratory.add_station(scenario, plan, index, state)?;
        }
        for (index, circuit) in plan.circuits.iter().enumerate() {
            let (near, far) = addresses(index);
            let metrics = metrics(scenario, &scenario.traffic[circuit.traffic]);
            let ends = [(circuit.near, near, far), (circuit.far, far, near)];
            for (way, (station, own, other)) in ends.into_iter().enumerate() {
                let namespace = &laboratory.stations[station];
                let net = IpNet::new(own, 32).expect("32 is a prefix length");
                namespace.add_address(DEVICE, net)?;
                namespace.add_direct_route(DEVICE, other.into(), own.into(), &metrics)?;
                namespace.add_neighbour(DEVICE, other.into(), way_mac(2 * index + way))?;
            }
        }
        Ok(laboratory)
    }

    fn add_station(
        &mut self,
        scenario: &Scenario,
        plan: &Plan,
        index: usize,
        state: &RunState,
    ) -> Result<(), TestbedError> {
        let namespace = Namespace::create()?;
        state.note_namespace(&namespace)?;
        for device in ["all", "default"] {
            namespace.set_sysctl(&format!("net/ipv6/conf/{device}/disable_ipv6"), "1")?;
        }
        for (setting, value) in sysctls(scenario, plan, index)? {
            namespace.set_sysctl(&format!("net/ipv4/{setting}"), &value)?;
        }
        let inner = inner_device(index);
        let outer = End::new(&namespace, DEVICE).with_mac(station_mac(index));
        create_veth(&outer, &End::new(&self.middle, &inner), frame::mtu(scenario, plan, index))?;
        namespace.set_offloads_off(DEVICE)?;
        self.middle.set_offloads_off(&inner)?;
        self.stations.push(namespace);
        Ok(())
    }

    /// Takes the hosts' protocol work off the processor `emulator`, if there is another one.
    ///
    /// # Errors
    /// Where the system does not allow it, as in some containers.
    pub fn spare(&self, emulator: usize) -> Result<(), TestbedError> {
        let others: Vec<usize> =
            trunkline_emu::processors().into_iter().filter(|&other| other != emulator).collect();
        if others.is_empty() {
            return Ok(());
        }
        Ok(self.stations.iter().try_for_each(|one| one.steer_receive(DEVICE, &others))?)
    }

    /// Starts the network. Its schedules begin at `origin`.
    ///
    /// # Errors
    /// Where a device cannot be opened, or the links' packets do not fit into memory.
    pub fn start(
        &self,
        scenario: &Scenario,
        plan: &Plan,
        origin: Time,
        cpu: Option<usize>,
    ) -> Result<Network, TestbedError> {
        let open = |index: usize| -> Result<Box<dyn Port>, TestbedError> {
            let device = inner_device(index);
            Ok(self.middle.run(|| trunkline_port::open(&device, Backend::Packet))??)
        };
        let ports = (0..plan.stations.len()).map(open).collect::<Result<_, _>>()?;
        let sample = scenario.sample_backlog.map(|every| {
            let most = scenario.stop_after.as_nanos() / every.as_nanos().max(1) + 2;
            (every, most.min(MOST_SAMPLES) as usize)
        });
        let web = Web::new(WebPlan {
            ports,
            lanes: plan.lanes.clone(),
            ways: ways(plan),
            seed: scenario.seed,
            origin,
            bound: trunkline_emu::accuracy::DEFAULT_BOUND,
            arena: arena(plan)?,
            sample,
        })?;
        let live = web.live();
        let (dataplane, remote) =
            Dataplane::with_work(web, Options { busy: false, cpu, own: cpu.is_some() })?;
        let thread = std::thread::Builder::new()
            .name("dataplane".into())
            .spawn(move || dataplane.run_to_end())
            .map_err(|source| TestbedError::System { what: "start a thread", source })?;
        Ok(Network { remote, live, thread: Some(thread) })
    }
}

/// There and back of each circuit.
fn ways(plan: &Plan) -> Vec<WayPlan> {
    let both = |circuit: &crate::plan::Circuit| {
        let way = |entry, exit, lanes: &[usize]| WayPlan {
            entry,
            lanes: lanes.to_vec(),
            exit,
            mac: station_mac(exit),
        };
        [
            way(circuit.near, circuit.far, &circuit.there),
            way(circuit.far, circuit.near, &circuit.back),
        ]
    };
    plan.circuits.iter().flat_map(both).collect()
}

/// Bytes of memory for frames.
fn arena(plan: &Plan) -> Result<u64, TestbedError> {
    let need = |lane: &trunkline_emu::LanePlan| {
        let queue = lane.spec.discipline.limit().most_bytes(1500).min(MOST_QUEUED);
        let in_flight = lane.spec.in_flight_bytes().unwrap_or(MOST_QUEUED);
        (queue + in_flight).saturating_mul(OVERHEAD)
    };
    let needed = plan.lanes.iter().map(need).fold(0, u64::saturating_add);
    let share = available_memory() / 100 * SHARE;
    match needed <= share {
        true => Ok(needed.saturating_add(RESERVE).min(share)),
        false => Err(TestbedError::Memory { needed, available: share }),
    }
}

impl Laboratory {
    /// Ends whatever runs in the hosts, also what has left the process group in which it was started.
    pub fn end_programs(&self) {
        for signal in [Signal::TERM, Signal::KILL] {
            let kill = |host: &Namespace| kill_processes_in(host.inode(), signal.as_raw());
            let left: usize = self.stations.iter().map(|host| kill(host).unwrap_or(0)).sum();
            if left == 0 {
                return;
            }
            std::thread::sleep(GRACE);
        }
    }
}

impl Drop for Laboratory {
    /// Ends whatever still runs in the hosts. Namespaces and devices go with their last descriptor.
    fn drop(&mut self) {
        self.end_programs();
    }
}

impl Network {
    /// What has become of the frames so far.
    pub fn live(&self) -> &Arc<Live> {
        &self.live
    }

    /// Has the dataplane ended by itself?
    pub fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Ends it and gives what it has to tell.
    pub fn end(mut self) -> Ended {
        self.remote.stop();
        let thread = self.thread.take().expect("it is joined once");
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    /// How late frames were so far, to be asked for now and then only.
    pub fn snapshot(&self) -> Snapshot {
        self.remote.snapshot()
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        self.remote.stop();
        if let Some(thread) = self.thread.take() {
            // Its panic, if any, is not the first thing that went wrong.
            let _ = thread.join();
        }
    }
}

/// How long after the network has been told to begin anew time begins: it does so within a tenth of a second.
pub const LEAD: Span = Span::from_millis(150);
