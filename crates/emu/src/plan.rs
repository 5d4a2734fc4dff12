//! From a scenario to lanes, stations and circuits: what has to be built, with nothing built yet.

use crate::EmuError;
use crate::kernel::check_segments;
use std::net::Ipv4Addr;
use trunkline_core::Seed;
use trunkline_dataplane::{LanePlan, MediumPlan};
use trunkline_path::medium::StationId;
use trunkline_path::{DisciplineSpec, Framing, Limit, LinkSpec, MediumSpec, Schedule};
use trunkline_scenario::{Hop, Medium, Node, Over, Scenario, Traffic, Wire};

/// More lanes than this one thread does not serve in time; every event looks at each of them.
const MOST_LANES: usize = 512;
/// More circuits than this have no address.
const MOST_CIRCUITS: usize = 16_384;
/// The laboratory's addresses: 10.77.0.0/16, two for each circuit.
const NETWORK: [u8; 2] = [10, 77];
/// Circuits whose addresses differ in the last byte only.
const PER_BYTE: usize = 127;

/// What has to be built.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The links' directions, two for each link of the scenario, then the stations of its media, then the backplanes of
    /// its nodes.
    pub lanes: Vec<LanePlan>,
    /// The media.
    pub media: Vec<MediumPlan>,
    /// The namespaces with an interface each.
    pub stations: Vec<Station>,
    /// One for each traffic and host that it starts at.
    pub circuits: Vec<Circuit>,
}

/// A namespace with one interface. A host that talks to itself has two, so that its packets leave it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Station {
    /// The scenario's host.
    pub host: usize,
    /// Whether it is the second one, in which the far ends of the host's connections with itself live.
    pub second: bool,
}

/// The path of a traffic between two stations, with two addresses of its own: so that its frames are told
/// from those of other traffic, take its way, and have its settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Circuit {
    /// The scenario's traffic.
    pub traffic: usize,
    /// The station of the sending applications.
    pub near: usize,
    /// The station of their peers.
    pub far: usize,
    /// The lanes from near to far.
    pub there: Vec<Crossed>,
    /// And back.
    pub back: Vec<Crossed>,
}

/// A lane on a way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Crossed {
    /// The lane's number.
    pub lane: usize,
    /// The station that hears what crosses it, if it is a station of a medium.
    pub heard_by: Option<StationId>,
}

/// The addresses of circuit `index`: near, far.
pub fn addresses(index: usize) -> (Ipv4Addr, Ipv4Addr) {
    let (third, last) = ((index / PER_BYTE) as u8, (index % PER_BYTE * 2) as u8);
    let [a, b] = NETWORK;
    (Ipv4Addr::new(a, b, third, last + 1), Ipv4Addr::new(a, b, third, last + 2))
}

impl Plan {
    /// What `scenario` needs.
    ///
    /// # Errors
    /// If a traffic has no way, or the scenario is too large.
    pub fn of(scenario: &Scenario) -> Result<Plan, EmuError> {
        let mut lanes: Vec<LanePlan> = {
            let both = |wire: &Wire| directions(wire, scenario.seed);
            scenario.links.iter().flat_map(both).collect()
        };
        let mut stations_from = Vec::new();
        for (number, medium) in scenario.media.iter().enumerate() {
            stations_from.push(lanes.len());
            lanes.extend(stations_of(number, medium, scenario.seed));
        }
        let mut backplanes = Vec::new();
        for node in &scenario.nodes {
            backplanes.push(backplane(node, scenario.seed).map(|lane| {
                lanes.push(lane);
                lanes.len() - 1
            }));
        }
        let stations = (0..scenario.hosts.len()).map(|host| Station { host, second: false });
        let media =
            scenario.media.iter().map(|medium| medium_plan(medium, scenario.seed)).collect();
        let mut plan = Plan { lanes, media, stations: stations.collect(), circuits: Vec::new() };
        let numbers = Numbers { stations_from, backplanes };
        for (index, traffic) in scenario.traffic.iter().enumerate() {
            check_segments(scenario, traffic)?;
            for flow in distinct_sources(traffic) {
                let circuit = plan.circuit(scenario, (index, traffic), flow, &numbers)?;
                plan.circuits.push(circuit);
            }
        }
        plan.fits()
    }

    fn fits(self) -> Result<Plan, EmuError> {
        let (lanes, circuits) = (self.lanes.len(), self.circuits.len());
        match lanes <= MOST_LANES && circuits <= MOST_CIRCUITS {
            true => Ok(self),
            false => Err(EmuError::Size { lanes, circuits, most: MOST_LANES }),
        }
    }

    fn circuit(
        &mut self,
        scenario: &Scenario,
        (index, traffic): (usize, &Traffic),
        flow: u32,
        numbers: &Numbers,
    ) -> Result<Circuit, EmuError> {
        let refused = |reason: String| EmuError::Route { traffic: traffic.name.clone(), reason };
        let way = scenario.route(traffic, flow).map_err(|error| refused(error.to_string()))?;
        let host = |name: &str| {
            let found = scenario.hosts.iter().position(|host| host.name == name);
            found.ok_or_else(|| {
                refused(format!("'{name}' is no host: traffic goes from host to host"))
            })
        };
        let (near, to) = (host(traffic.source(flow))?, host(&traffic.to)?);
        let far = if near == to { self.second(to) } else { to };
        let lanes = |hops: &[Hop]| hops.iter().flat_map(|hop| numbers.crossed(hop)).collect();
        Ok(Circuit { traffic: index, near, far, there: lanes(&way.there), back: lanes(&way.back) })
    }

    /// The second station of a host.
    fn second(&mut self, host: usize) -> usize {
        let wanted = Station { host, second: true };
        let found = self.stations.iter().position(|station| *station == wanted);
        found.unwrap_or_else(|| {
            self.stations.push(wanted);
            self.stations.len() - 1
        })
    }

    /// The circuit of flow number `flow` of a traffic.
    ///
    /// # Panics
    /// If the plan is another scenario's.
    pub fn circuit_of(&self, index: usize, traffic: &Traffic, flow: u32) -> usize {
        let first = self.circuits.iter().position(|circuit| circuit.traffic == index);
        let place = distinct_sources(traffic)
            .position(|other| traffic.source(other) == traffic.source(flow));
        first.zip(place).map(|(first, place)| first + place).expect("every traffic has circuits")
    }
}

/// Where the lanes of media and nodes are.
struct Numbers {
    /// The first station of each medium.
    stations_from: Vec<usize>,
    /// The backplane of each node.
    backplanes: Vec<Option<usize>>,
}

impl Numbers {
    /// What a hop crosses.
    fn crossed(&self, hop: &Hop) -> impl Iterator<Item = Crossed> {
        let over = match hop.over {
            Over::Link { link, reversed } => {
                Crossed { lane: 2 * link + usize::from(reversed), heard_by: None }
            }
            Over::Medium { medium, from, to } => {
                Crossed { lane: self.stations_from[medium] + from, heard_by: Some(StationId(to)) }
            }
        };
        let backplane = hop.node.and_then(|node| self.backplanes[node]);
        let backplane = backplane.map(|lane| Crossed { lane, heard_by: None });
        [Some(over), backplane].into_iter().flatten()
    }
}

/// One flow of each host at which a traffic starts: the first.
fn distinct_sources(traffic: &Traffic) -> impl Iterator<Item = u32> + '_ {
    let rounds = (traffic.from_each.len().max(1) as u32).min(traffic.count);
    let is_first =
        |&flow: &u32| (0..flow).all(|earlier| traffic.source(earlier) != traffic.source(flow));
    (0..rounds).filter(is_first)
}

/// Both directions of a link, with the names that the simulator gives their randomness.
fn directions(wire: &Wire, seed: Seed) -> [LanePlan; 2] {
    let lane = |from: &str, to: &str, spec: &LinkSpec| {
        let name = format!("{from}>{to}");
        let queues = spec.rate.is_some() || spec.trace.is_some();
        let observed = queues || spec.schedule != Schedule::default();
        let stream = format!("{} {name}", wire.name);
        LanePlan { stream, name, seed, spec: spec.clone(), observed, station: None }
    };
    [lane(&wire.from, &wire.to, &wire.forward), lane(&wire.to, &wire.from, &wire.backward)]
}

/// A shared medium.
fn medium_plan(medium: &Medium, seed: Seed) -> MediumPlan {
    let Medium { name, stations, spec } = medium.clone();
    MediumPlan { name, stations, seed, spec }
}

/// The stations of the medium with this number. What they are as links says how much memory they need.
fn stations_of(number: usize, medium: &Medium, seed: Seed) -> impl Iterator<Item = LanePlan> {
    let MediumSpec { rate, framing, delay, ref discipline, .. } = medium.spec;
    let spec =
        LinkSpec { rate, framing, delay, discipline: discipline.clone(), ..LinkSpec::default() };
    (0..medium.stations.len()).map(move |station| LanePlan {
        name: medium.lane_name(station),
        stream: medium.lane_name(station),
        seed,
        spec: spec.clone(),
        observed: rate.is_some(),
        station: Some((number, StationId(station))),
    })
}

/// A node's backplane: every packet that crosses it takes its turn on it.
fn backplane(node: &Node, seed: Seed) -> Option<LanePlan> {
    let spec = LinkSpec {
        rate: Some(node.backplane?),
        framing: Framing::Datakit,
        discipline: DisciplineSpec::fifo(Limit::Bytes(1 << 30)),
        ..LinkSpec::default()
    };
    let stream = format!("{} {}", node.name, node.name);
    let name = node.name.clone();
    Some(LanePlan { name, stream, seed, spec, observed: false, station: None })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::scenario;

    /// The stations of a circuit, and its lanes by their names.
    fn text(plan: &Plan, circuit: &Circuit) -> String {
        let names = |lanes: &[Crossed]| -> String {
            let names: Vec<&str> =
                lanes.iter().map(|it| plan.lanes[it.lane].name.as_str()).collect();
            names.join(" ")
        };
        let Circuit { near, far, there, back, .. } = circuit;
        format!("{near}-{far}: {} | {}", names(there), names(back))
    }

    #[test]
    fn a_way_crosses_links_and_backplanes_both_ways() {
        let scenario = scenario(
            "[[host]]\nname = 'a'\n[[host]]\nname = 'b'\n\
             [[node]]\nname = 'n'\nbackplane = '8Mbit/s'\n[[node]]\nname = 'm'\n\
             [[link]]\nbetween = ['a', 'n']\n[[link]]\nbetween = ['m', 'n']\n\
             [[link]]\nbetween = ['m', 'b']\n\
             [[traffic]]\nname = 't'\nkind = 'paced'\nfrom = 'a'\nto = 'b'\nsize = 100\n\
             rate = '1Mbit/s'\nduration = '1s'\ntransport = { kind = 'udp' }\n",
        );
        let plan = Plan::of(&scenario).unwrap();
        assert_eq!(plan.circuits.len(), 1);
        assert_eq!(text(&plan, &plan.circuits[0]), "0-1: a>n n n>m m>b | b>m m>n n n>a");
        assert_eq!(plan.lanes[6].spec.framing, Framing::Datakit);
    }

    #[test]
    fn a_host_that_talks_to_itself_has_two_stations() {
        let scenario = scenario(
            "[[host]]\nname = 'a'\n[[node]]\nname = 'n'\n[[link]]\nbetween = ['a', 'n']\n\
             [[traffic]]\nname = 't'\nkind = 'paced'\nfrom = 'a'\nto = 'a'\nvia = ['n']\nsize = 100\n\
             rate = '1Mbit/s'\nduration = '1s'\ncount = 2\ntransport = { kind = 'udp' }\n",
        );
        let plan = Plan::of(&scenario).unwrap();
        assert_eq!(plan.stations.len(), 2);
        assert_eq!(text(&plan, &plan.circuits[0]), "0-1: a>n n>a | a>n n>a");
        let traffic = &scenario.traffic[0];
        assert_eq!((plan.circuit_of(0, traffic, 0), plan.circuit_of(0, traffic, 1)), (0, 0));
    }

    #[test]
    fn every_host_of_from_each_has_its_circuit() {
        let scenario = scenario(
            "[[host]]\nname = 'a'\n[[host]]\nname = 'b'\n[[host]]\nname = 'c'\n[[node]]\nname = 'n'\n\
             [[link]]\nbetween = ['a', 'n']\n[[link]]\nbetween = ['b', 'n']\n\
             [[link]]\nbetween = ['n', 'c']\n\
             [[traffic]]\nname = 't'\nkind = 'paced'\nfrom_each = ['a', 'b']\nto = 'c'\nsize = 100\n\
             rate = '1Mbit/s'\nduration = '1s'\ncount = 3\ntransport = { kind = 'udp' }\n",
        );
        let plan = Plan::of(&scenario).unwrap();
        let stations: Vec<usize> = plan.circuits.iter().map(|circuit| circuit.near).collect();
        assert_eq!(stations, [0, 1]);
        let traffic = &scenario.traffic[0];
        let circuits: Vec<usize> = (0..3).map(|flow| plan.circuit_of(0, traffic, flow)).collect();
        assert_eq!(circuits, [0, 1, 0]);
    }

    #[test]
    fn addresses_are_never_used_twice() {
        let mut seen = std::collections::BTreeSet::new();
        for index in 0..MOST_CIRCUITS {
            let (near, far) = addresses(index);
            assert!(seen.insert(near) && seen.insert(far), "{index}");
            assert!(near.octets()[3] > 0 && far.octets()[3] < 255);
        }
    }
}
