//! A scenario lowered to what its engines build: lanes, the ways over them, and their names.
//!
//! Every engine reads the same [`Network`], so that what they have to agree on is said once: which lanes a traffic
//! crosses and in which order, the name under which time is booked at each, the name of each stream of randomness, the
//! numbers of virtual circuits, and what is observed.

mod lane;
mod order;
mod places;
mod route;
mod search;

pub use lane::Lane;
pub use order::Order;
pub use places::HostPlace;
pub use route::RouteError;

pub(crate) use route::Over;
pub(crate) use search::Ways;

use crate::{Scenario, Traffic};
use route::{Hop, Route};
use std::collections::HashMap;
use thiserror::Error;
use trunkline_path::medium::StationId;

/// A scenario, lowered. It takes time and memory in proportion to the scenario, and borrows the specifications.
#[derive(Debug, Clone)]
pub struct Network<'a> {
    scenario: &'a Scenario,
    lanes: Vec<Lane<'a>>,
    ways: Vec<Way>,
    /// Of each traffic.
    starts: Vec<Starts>,
    orders: Orders,
}

/// Both directions between two hosts, for one traffic: one for each host at which the traffic starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Way {
    /// Index into [`Scenario::traffic`].
    pub traffic: usize,
    /// The host of the sending applications, an index into [`Scenario::hosts`].
    pub from: usize,
    /// The host of their peers.
    pub to: usize,
    /// The lanes from the one to the other.
    pub there: Vec<Crossing>,
    /// And back.
    pub back: Vec<Crossing>,
}

/// A lane on a way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Crossing {
    /// Index into [`Network::lanes`].
    pub lane: usize,
    /// The station that hears what crosses it, if the lane is a station of a medium.
    pub heard_by: Option<StationId>,
}

/// A traffic that cannot be carried.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("traffic '{traffic}': {reason}")]
pub struct NetworkError {
    /// The traffic.
    pub traffic: String,
    /// The cause, with its remedy.
    pub reason: String,
}

/// The numbers of a traffic's ways and of its virtual circuits.
#[derive(Debug, Clone, Default)]
struct Starts {
    /// The way of each host of `from_each`, or the one way.
    ways: Vec<usize>,
    /// The virtual circuit of its first flow.
    circuit: u64,
}

/// What is declared, in the order of names.
#[derive(Debug, Clone)]
struct Orders {
    hosts: Order,
    nodes: Order,
    links: Order,
    traffic: Order,
}

impl<'a> Network<'a> {
    /// Lowers `scenario`.
    ///
    /// # Errors
    /// If a traffic has no way from host to host.
    pub fn of(scenario: &'a Scenario) -> Result<Network<'a>, NetworkError> {
        let lowered = Lanes::of(scenario);
        let mut network = Network {
            scenario,
            lanes: Vec::new(),
            ways: Vec::new(),
            starts: Vec::with_capacity(scenario.traffic.len()),
            orders: Orders::of(scenario),
        };
        let known = Ways::new(scenario);
        for (index, traffic) in scenario.traffic.iter().enumerate() {
            let starts = network.add_ways(&lowered, &known, (index, traffic))?;
            network.starts.push(Starts { ways: starts, circuit: 0 });
        }
        network.number_circuits();
        network.lanes = lowered.lanes;
        Ok(network)
    }

    /// Adds the ways of a traffic. Returns their numbers, for each host of `from_each` in turn.
    fn add_ways(
        &mut self,
        lanes: &Lanes<'a>,
        known: &Ways<'a>,
        (index, traffic): (usize, &'a Traffic),
    ) -> Result<Vec<usize>, NetworkError> {
        let hosts = (traffic.from_each.len().max(1) as u32).min(traffic.count.max(1));
        let mut first: HashMap<&str, usize> = HashMap::new();
        let mut numbers = Vec::with_capacity(hosts as usize);
        for flow in 0..hosts {
            let source = traffic.source(flow);
            let number = match first.get(source) {
                Some(&number) => number,
                None => {
                    self.ways.push(way(lanes, known, (index, traffic), flow)?);
                    first.insert(source, self.ways.len() - 1);
                    self.ways.len() - 1
                }
            };
            numbers.push(number);
        }
        Ok(numbers)
    }

    /// Numbers the virtual circuits from 1 by the order of the traffics' names, so that declarations decide nothing.
    fn number_circuits(&mut self) {
        let mut next = 1;
        for index in self.orders.traffic.indices() {
            self.starts[index].circuit = next;
            next += u64::from(self.scenario.traffic[index].count);
        }
    }

    /// The scenario that was lowered.
    pub fn scenario(&self) -> &'a Scenario {
        self.scenario
    }

    /// All lanes: two for each link, forward and backward, then the stations of each medium, then the backplanes of
    /// nodes that have one. Their indices are the numbers of the first places of a run.
    pub fn lanes(&self) -> &[Lane<'a>] {
        &self.lanes
    }

    /// All ways, in the order of the traffics' declaration.
    pub fn ways(&self) -> &[Way] {
        &self.ways
    }

    /// The index of the way of a flow.
    ///
    /// # Panics
    /// If there is no such traffic.
    pub fn way_of(&self, traffic: usize, flow: u32) -> usize {
        let ways = &self.starts[traffic].ways;
        ways[flow as usize % ways.len()]
    }

    /// The way of a flow.
    ///
    /// # Panics
    /// If there is no such traffic.
    pub fn way(&self, traffic: usize, flow: u32) -> &Way {
        &self.ways[self.way_of(traffic, flow)]
    }

    /// The number of a flow's virtual circuit, the same in both directions: how disciplines know its packets.
    ///
    /// # Panics
    /// If there is no such traffic.
    pub fn circuit(&self, traffic: usize, flow: u32) -> u64 {
        self.starts[traffic].circuit + u64::from(flow)
    }

    /// The hosts by their names.
    pub fn hosts(&self) -> &Order {
        &self.orders.hosts
    }

    /// The nodes by their names.
    pub fn nodes(&self) -> &Order {
        &self.orders.nodes
    }

    /// The links by their names.
    pub fn links(&self) -> &Order {
        &self.orders.links
    }

    /// The traffics by their names.
    pub fn traffic(&self) -> &Order {
        &self.orders.traffic
    }
}

/// The way of one flow.
fn way<'a>(
    lanes: &Lanes<'a>,
    known: &Ways<'a>,
    (index, traffic): (usize, &Traffic),
    flow: u32,
) -> Result<Way, NetworkError> {
    let refused = |reason| NetworkError { traffic: traffic.name.clone(), reason };
    let Route { there, back } =
        known.route(traffic, flow).map_err(|error| refused(error.to_string()))?;
    let host = |name: &str| {
        let no_host = || refused(format!("'{name}' is no host: traffic goes from host to host"));
        known.host(name).ok_or_else(no_host)
    };
    let (from, to) = (host(traffic.source(flow))?, host(&traffic.to)?);
    Ok(Way { traffic: index, from, to, there: lanes.over(&there), back: lanes.over(&back) })
}

/// The lanes, and the numbers of those that are no link's.
struct Lanes<'a> {
    lanes: Vec<Lane<'a>>,
    /// The first station of each medium.
    stations_from: Vec<usize>,
    /// The backplane of each node.
    backplanes: Vec<Option<usize>>,
}

impl<'a> Lanes<'a> {
    fn of(scenario: &'a Scenario) -> Lanes<'a> {
        let both =
            |(index, wire)| [false, true].map(|reversed| Lane::Link { wire, index, reversed });
        let mut lanes: Vec<Lane<'a>> = scenario.links.iter().enumerate().flat_map(both).collect();
        let mut stations_from = Vec::with_capacity(scenario.media.len());
        for (index, medium) in scenario.media.iter().enumerate() {
            stations_from.push(lanes.len());
            let stations = (0..medium.stations.len()).map(StationId);
            lanes.extend(stations.map(|station| Lane::Station { medium, index, station }));
        }
        let mut backplane = |(index, node): (usize, &'a crate::Node)| {
            node.backplane.map(|rate| {
                lanes.push(Lane::Backplane { node, index, rate });
                lanes.len() - 1
            })
        };
        let backplanes = scenario.nodes.iter().enumerate().map(&mut backplane).collect();
        Lanes { lanes, stations_from, backplanes }
    }

    fn over(&self, hops: &[Hop]) -> Vec<Crossing> {
        let mut crossings: Vec<Crossing> = hops.iter().flat_map(|hop| self.crossed(hop)).collect();
        // There are as many ways as traffics.
        crossings.shrink_to_fit();
        crossings
    }

    /// What a hop crosses: a link or a medium, then the backplane of the node behind it, if it has one.
    fn crossed(&self, hop: &Hop) -> impl Iterator<Item = Crossing> + use<> {
        let over = match hop.over {
            Over::Link { link, reversed } => {
                Crossing { lane: 2 * link + usize::from(reversed), heard_by: None }
            }
            Over::Medium { medium, from, to } => {
                Crossing { lane: self.stations_from[medium] + from, heard_by: Some(StationId(to)) }
            }
        };
        let backplane = hop.node.and_then(|node| self.backplanes[node]);
        let backplane = backplane.map(|lane| Crossing { lane, heard_by: None });
        [Some(over), backplane].into_iter().flatten()
    }
}

impl Orders {
    fn of(scenario: &Scenario) -> Orders {
        Orders {
            hosts: Order::of(scenario.hosts.iter().map(|host| &*host.name)),
            nodes: Order::of(scenario.nodes.iter().map(|node| &*node.name)),
            links: Order::of(scenario.links.iter().map(|link| &*link.name)),
            traffic: Order::of(scenario.traffic.iter().map(|traffic| &*traffic.name)),
        }
    }
}

#[cfg(test)]
mod tests;
