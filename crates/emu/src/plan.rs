//! From a scenario to lanes, stations and circuits: what has to be built, with nothing built yet.

use crate::EmuError;
use std::net::Ipv4Addr;
use trunkline_core::Seed;
use trunkline_dataplane::{LanePlan, MediumPlan};
use trunkline_scenario::{Cluster, Lane, Medium, Network, Way};

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
    /// The lanes of the lowered scenario, with its numbers.
    pub lanes: Vec<LanePlan>,
    /// The media.
    pub media: Vec<MediumPlan>,
    /// The namespaces with an interface each.
    pub stations: Vec<Station>,
    /// One for each way of the lowered scenario, with its number.
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
    /// The station of the sending applications.
    pub near: usize,
    /// The station of their peers.
    pub far: usize,
    /// The way of the lowered scenario that it takes; a circuit has its way's number.
    pub way: Way,
}

/// The addresses of circuit `index`: near, far.
pub fn addresses(index: usize) -> (Ipv4Addr, Ipv4Addr) {
    let (third, last) = ((index / PER_BYTE) as u8, (index % PER_BYTE * 2) as u8);
    let [a, b] = NETWORK;
    (Ipv4Addr::new(a, b, third, last + 1), Ipv4Addr::new(a, b, third, last + 2))
}

impl Plan {
    /// What a lowered scenario needs.
    ///
    /// # Errors
    /// If the scenario is too large, or has clusters.
    pub fn of(network: &Network<'_>) -> Result<Plan, EmuError> {
        let scenario = network.scenario();
        if let Some(Cluster { name, .. }) = scenario.clusters.first() {
            return Err(EmuError::Cluster { name: name.clone() });
        }
        let stations = (0..scenario.hosts.len()).map(|host| Station { host, second: false });
        let media = scenario.media.iter().map(|medium| medium_plan(medium, scenario.seed));
        let mut plan = Plan {
            lanes: network.lanes().iter().map(|lane| lane_plan(lane, scenario.seed)).collect(),
            media: media.collect(),
            stations: stations.collect(),
            circuits: Vec::with_capacity(network.ways().len()),
        };
        for way in network.ways() {
            let far = if way.from == way.to { plan.second(way.to) } else { way.to };
            plan.circuits.push(Circuit { near: way.from, far, way: way.clone() });
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

    /// The second station of a host.
    fn second(&mut self, host: usize) -> usize {
        let wanted = Station { host, second: true };
        let found = self.stations.iter().position(|station| *station == wanted);
        found.unwrap_or_else(|| {
            self.stations.push(wanted);
            self.stations.len() - 1
        })
    }
}

fn lane_plan(lane: &Lane<'_>, seed: Seed) -> LanePlan {
    LanePlan {
        name: lane.name(),
        stream: lane.stream(),
        seed,
        spec: lane.spec().into_owned(),
        observed: lane.is_recorded(),
        station: match *lane {
            Lane::Station { index, station, .. } => Some((index, station)),
            Lane::Link { .. } | Lane::Backplane { .. } => None,
        },
    }
}

/// A shared medium.
fn medium_plan(medium: &Medium, seed: Seed) -> MediumPlan {
    let Medium { name, stations, spec } = medium.clone();
    MediumPlan { name, stations, seed, spec }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{plan, scenario};
    use trunkline_path::Framing;
    use trunkline_scenario::Crossing;

    /// The stations of a circuit, and its lanes by their names.
    fn text(plan: &Plan, circuit: &Circuit) -> String {
        let names = |lanes: &[Crossing]| -> String {
            let names: Vec<&str> =
                lanes.iter().map(|it| plan.lanes[it.lane].name.as_str()).collect();
            names.join(" ")
        };
        let Circuit { near, far, way } = circuit;
        format!("{near}-{far}: {} | {}", names(&way.there), names(&way.back))
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
        let plan = plan(&scenario);
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
        let plan = plan(&scenario);
        assert_eq!(plan.stations.len(), 2);
        assert_eq!(text(&plan, &plan.circuits[0]), "0-1: a>n n>a | a>n n>a");
        assert_eq!(plan.circuits.len(), 1);
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
        let plan = plan(&scenario);
        let stations: Vec<usize> = plan.circuits.iter().map(|circuit| circuit.near).collect();
        assert_eq!(stations, [0, 1]);
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
