//! A plan built: namespaces for the hosts, one in the middle for the emulator, the dataplane at work.

use crate::kernel::{metrics, sysctls};
use crate::plan::{Plan, addresses};
use crate::{EmuError, frame};
use std::sync::Arc;
use trunkline_core::{Span, Time};
use trunkline_dataplane::capture::CapturePlan;
use trunkline_dataplane::{
    CaptureRequest, Ended, Live, Options, PlaneLayout, Session, SessionOptions, SessionThread,
    Setup, Snapshot, Takes, WayPlan, accuracy, way_mac,
};
use trunkline_netns::{IpNet, Mac, Namespace, RunState, available_memory};
use trunkline_path::ChannelKey;
use trunkline_port::{Backend, Port};
use trunkline_scenario::{Crossing, PathSpec, Scenario};

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

/// Hosts joined by an emulated network. Removed when dropped.
pub struct Laboratory(trunkline_netns::Laboratory);

/// The emulated network at work.
pub struct Network {
    session: Arc<Session>,
    thread: SessionThread,
}

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
    /// If the laboratory cannot be built, for want of permission as a rule.
    pub fn build(
        scenario: &Scenario,
        plan: &Plan,
        state: &RunState,
    ) -> Result<Laboratory, EmuError> {
        let mut laboratory = Laboratory(trunkline_netns::Laboratory::new()?);
        for index in 0..plan.stations.len() {
            laboratory.add_station(scenario, plan, index)?;
        }
        laboratory.0.namespaces().try_for_each(|namespace| state.note_namespace(namespace))?;
        for (index, circuit) in plan.circuits.iter().enumerate() {
            let (near, far) = addresses(index);
            let metrics = metrics(scenario, &scenario.traffic[circuit.way.traffic]);
            let ends = [(circuit.near, near, far), (circuit.far, far, near)];
            for (way, (station, own, other)) in ends.into_iter().enumerate() {
                let namespace = laboratory.station(station);
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
    ) -> Result<(), EmuError> {
        let host = self.0.add_host()?;
        let namespace = self.station(host);
        for device in ["all", "default"] {
            namespace.set_sysctl(&format!("net/ipv6/conf/{device}/disable_ipv6"), "1")?;
        }
        for (setting, value) in sysctls(scenario, plan, index)? {
            namespace.set_sysctl(&format!("net/ipv4/{setting}"), &value)?;
        }
        let inner = inner_device(index);
        let (outer, inner) = ((DEVICE, Some(station_mac(index))), (inner.as_str(), None));
        Ok(self.0.join(host, outer, inner, frame::mtu(scenario, plan, index))?)
    }

    /// The host of station `index` of the plan.
    ///
    /// # Panics
    /// If there is no such station.
    pub fn station(&self, index: usize) -> &Namespace {
        &self.0.hosts()[index]
    }

    /// Takes the hosts' protocol work off the processor `emulator`, one of `processors`.
    ///
    /// # Errors
    /// If the system does not allow it, as in some containers.
    pub fn spare(&self, emulator: usize, processors: &[usize]) -> Result<(), EmuError> {
        Ok(self.0.spare(emulator, processors)?)
    }

    /// Starts the network. Its schedules begin at `origin`; its frames are captured if that is asked for.
    ///
    /// # Errors
    /// If a device cannot be opened, the links' packets do not fit into memory, or the capture cannot be begun.
    pub fn start(
        &self,
        scenario: &Scenario,
        plan: &Plan,
        (origin, cpu): (Time, Option<usize>),
        capture: Option<CaptureRequest>,
    ) -> Result<Network, EmuError> {
        let open = |index: usize| -> Result<Box<dyn Port>, EmuError> {
            let device = inner_device(index);
            Ok(self.0.middle().run(|| trunkline_port::open(&device, Backend::Packet))??)
        };
        let ports = (0..plan.stations.len()).map(open).collect::<Result<_, _>>()?;
        let sample = scenario.sample_backlog.map(|every| {
            let most = scenario.stop_after.as_nanos() / every.as_nanos().max(1) + 2;
            (every, most.min(MOST_SAMPLES) as usize)
        });
        let bound = accuracy::DEFAULT_BOUND;
        let (lanes, media) = (plan.lanes.clone(), plan.media.clone());
        let (ways, arena) = (ways(plan), arena(plan)?);
        let setup = Setup {
            captured: CapturePlan::of_lanes(lanes.iter().map(|lane| lane.name.as_str())),
            plane: PlaneLayout { ports, lanes, media, ways, origin, bound, arena, sample },
            paths: paths(scenario),
        };
        let dataplane = Options { busy: false, cpu, own: cpu.is_some() };
        let options = SessionOptions { backend: Backend::Packet, dataplane, capture, bound };
        let (session, thread) = Session::over(setup, options)?;
        Ok(Network { session: Arc::new(session), thread })
    }
}

/// The links as paths whose settings can change, by the scenario's names: up is from the first of their ends.
fn paths(scenario: &Scenario) -> Vec<(String, PathSpec)> {
    let path = |wire: &trunkline_scenario::Wire| {
        let spec = PathSpec {
            up: (*wire.forward).clone(),
            down: (*wire.backward).clone(),
            key: ChannelKey::FiveTuple,
            mtu: scenario.mtu,
            seed: scenario.seed,
        };
        (wire.name.clone(), spec)
    };
    scenario.links.iter().map(path).collect()
}

/// There and back of each circuit.
fn ways(plan: &Plan) -> Vec<WayPlan> {
    let both = |circuit: &crate::plan::Circuit| {
        let way = |entry, exit, crossed: &[Crossing]| WayPlan {
            entry,
            lanes: crossed.iter().map(|it| it.lane).collect(),
            heard_by: crossed.iter().map(|it| it.heard_by).collect(),
            exit,
            takes: Takes::Addressed(station_mac(exit)),
        };
        [
            way(circuit.near, circuit.far, &circuit.way.there),
            way(circuit.far, circuit.near, &circuit.way.back),
        ]
    };
    plan.circuits.iter().flat_map(both).collect()
}

/// Bytes of memory for frames.
fn arena(plan: &Plan) -> Result<u64, EmuError> {
    let need = |lane: &trunkline_dataplane::LanePlan| {
        let queue = lane.spec.discipline.limit().most_bytes(1500).min(MOST_QUEUED);
        let in_flight = lane.spec.in_flight_bytes().unwrap_or(MOST_QUEUED);
        (queue + in_flight).saturating_mul(OVERHEAD)
    };
    let needed = plan.lanes.iter().map(need).fold(0, u64::saturating_add);
    let share = available_memory() / 100 * SHARE;
    match needed <= share {
        true => Ok(needed.saturating_add(RESERVE).min(share)),
        false => Err(EmuError::Memory { needed, available: share }),
    }
}

impl Laboratory {
    /// Ends whatever runs in the hosts.
    pub fn end_programs(&self) {
        self.0.end_programs();
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
    pub fn live(&self) -> &Live {
        self.session.live()
    }

    /// The session, to be shown and set.
    pub fn session(&self) -> Arc<Session> {
        Arc::clone(&self.session)
    }

    /// Whether the dataplane has ended by itself.
    pub fn has_ended(&self) -> bool {
        self.thread.is_finished()
    }

    /// Ends it and gives what it has to tell.
    pub fn end(self) -> (Arc<Session>, Ended) {
        self.session.stop();
        (self.session, self.thread.join())
    }

    /// How late frames were so far, to be asked for now and then only.
    pub fn snapshot(&self) -> Snapshot {
        self.session.snapshot()
    }
}

/// How long after the network has been told to begin anew time begins: it does so within a tenth of a second.
pub const LEAD: Span = Span::from_millis(150);
