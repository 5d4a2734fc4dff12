//! From a scenario to a world at rest.

use super::course::Course;
use super::end::End;
use super::jobs::{EndId, Jobs};
use super::measured::Measured;
use super::protocol::{ProtocolEnd, ProtocolKind};
use super::segments::Segments;
use super::serial::Serial;
use super::settings::Habits;
use super::unsteady::Unsteady;
use super::world::{HostPlaces, HostState, World};
use crate::SimError;
use crate::network::{LinkId, MediumId, Network, RouteId};
use std::collections::{HashMap, VecDeque};
use trunkline_core::{Channel, Hosts, Time};
use trunkline_measure::Samples;
use trunkline_path::{DisciplineSpec, Framing, Limit, LinkSpec, Schedule};
use trunkline_scenario::{Hop, Host, Medium, Node, Over, Scenario, Traffic, Transport, Ways, Wire};
use trunkline_workload::Application;

impl<'a> World<'a> {
    /// The world that `scenario` describes.
    pub fn new(scenario: &'a Scenario) -> Result<World<'a>, SimError> {
        let mut builder = Builder::new(scenario);
        let hosts = scenario.hosts.iter().map(|host| builder.host(host)).collect();
        let traffic: Vec<Measured> =
            scenario.traffic.iter().map(|traffic| measured(scenario, traffic)).collect();
        let flows: usize = scenario.traffic.iter().map(|traffic| traffic.count as usize).sum();
        let mut ends = Vec::with_capacity(2 * flows);
        let mut course = Course::new(scenario);
        for index in course.in_order() {
            let traffic = &scenario.traffic[index];
            let first = ends.len();
            for flow in 0..traffic.count {
                ends.extend(builder.flow(index, traffic, flow, ends.len())?);
            }
            course.has_ends(index, first..ends.len());
        }
        Ok(World {
            scenario,
            net: builder.net,
            hosts,
            ends,
            traffic,
            course,
            jobs: Jobs::default(),
            soon: VecDeque::new(),
            places: builder.places,
            link_places: builder.link_places,
            lane_places: builder.lane_places,
            wires: builder.wires,
            stations: builder.stations,
            arrives_at: builder.arrives_at,
            stopped: false,
            segments: Segments::default(),
            frames: Segments::default(),
            reorders: scenario.links.iter().any(reorders),
            spare: Vec::new(),
            standing: (Time::ZERO, 0),
        })
    }
}

fn measured(scenario: &Scenario, traffic: &Traffic) -> Measured {
    let amounts = traffic.workload.is_greedy();
    Measured::new(traffic.count, Samples::new(scenario.samples, scenario.seed, amounts))
}

/// Whether a link can change the order of packets. One that changes may come to.
fn reorders(wire: &Wire) -> bool {
    let may = |link: &LinkSpec| link.impairments.reorders() || link.schedule != Schedule::default();
    may(&wire.forward) || may(&wire.backward)
}

struct Builder<'a> {
    scenario: &'a Scenario,
    ways: Ways<'a>,
    net: Network,
    places: Vec<String>,
    link_places: Vec<u32>,
    lane_places: Vec<u32>,
    wires: Vec<[LinkId; 2]>,
    media: Vec<MediumId>,
    stations: Vec<Vec<LinkId>>,
    lanes: HashMap<Over, LinkId>,
    backplanes: Vec<Option<LinkId>>,
    arrives_at: Vec<EndId>,
    /// For each host one that works as it does.
    alike: Vec<usize>,
}

/// For each host the first of those in a row that are described alike.
fn alike(hosts: &[Host]) -> Vec<usize> {
    let mut first = 0;
    (0..hosts.len())
        .map(|index| {
            if hosts[index].processor != hosts[first].processor
                || hosts[index].interface != hosts[first].interface
            {
                first = index;
            }
            first
        })
        .collect()
}

impl<'a> Builder<'a> {
    fn new(scenario: &'a Scenario) -> Builder<'a> {
        let mut net = Network::new(scenario.seed);
        net.note_copies();
        let mut builder = Builder {
            scenario,
            ways: Ways::new(scenario),
            net,
            places: Vec::new(),
            link_places: Vec::new(),
            lane_places: Vec::new(),
            wires: Vec::new(),
            media: Vec::new(),
            stations: Vec::new(),
            lanes: HashMap::new(),
            backplanes: Vec::new(),
            arrives_at: Vec::new(),
            alike: alike(&scenario.hosts),
        };
        for wire in &scenario.links {
            let names =
                [format!("{}>{}", wire.from, wire.to), format!("{}>{}", wire.to, wire.from)];
            let specs = [&wire.forward, &wire.backward];
            let directions = [0, 1].map(|way| builder.link(specs[way], &wire.name, &names[way]));
            std::iter::zip(directions, specs).for_each(|(link, spec)| builder.observe(link, spec));
            builder.wires.push(directions);
        }
        for medium in &scenario.media {
            builder.medium(medium);
        }
        for node in &scenario.nodes {
            let backplane = builder.backplane(node);
            builder.backplanes.push(backplane);
        }
        builder
    }

    fn place(&mut self, name: String) -> u32 {
        self.places.push(name);
        (self.places.len() - 1) as u32
    }

    /// A link whose randomness is named after the wire and whose time is booked to the direction.
    fn link(&mut self, spec: &LinkSpec, wire: &str, direction: &str) -> LinkId {
        let id = self.net.add_link(spec, &format!("{wire} {direction}"));
        let place = self.place(direction.to_string());
        self.link_places.push(place);
        id
    }

    /// A shared medium, with a lane from each station by which to ask what it has sent.
    fn medium(&mut self, medium: &Medium) {
        let names: Vec<&str> = medium.stations.iter().map(String::as_str).collect();
        let (index, id) =
            (self.media.len(), self.net.add_medium(&medium.spec, &medium.name, &names));
        self.media.push(id);
        let first = self.places.len() as u32;
        self.places.extend((0..names.len()).map(|station| medium.lane_name(station)));
        let lane = |station: usize| {
            let over = Over::Medium { medium: index, from: station, to: station };
            let lane = self.net.add_lane(id, station, station);
            self.lane_places.push(first + station as u32);
            self.lanes.insert(over, lane);
            lane
        };
        let lanes: Vec<LinkId> = (0..names.len()).map(lane).collect();
        for &lane in &lanes {
            if medium.spec.rate.is_some() {
                self.net.record_queueing(lane);
            }
            if let Some(every) = self.scenario.sample_backlog {
                self.net.sample_backlog(lane, every);
            }
        }
        self.stations.push(lanes);
    }

    /// What a hop crosses, in the network.
    fn crossed(&mut self, over: Over) -> LinkId {
        match over {
            Over::Link { link, reversed } => self.wires[link][usize::from(reversed)],
            Over::Medium { medium, from, to } => {
                let Builder { net, media, stations, lane_places, .. } = self;
                *self.lanes.entry(over).or_insert_with(|| {
                    // Its time is booked at the lane of its station.
                    let own = stations[medium][from].lane().unwrap_or_default();
                    lane_places.push(lane_places[own as usize]);
                    net.add_lane(media[medium], from, to)
                })
            }
        }
    }

    /// Records what waits at a wire's link: how long each packet, unless none ever does, and how many bytes
    /// at the instants that the scenario asks for.
    fn observe(&mut self, link: LinkId, spec: &LinkSpec) {
        let queues = spec.rate.is_some() || spec.trace.is_some();
        if queues || spec.schedule != Schedule::default() {
            self.net.record_queueing(link);
        }
        if let Some(every) = self.scenario.sample_backlog {
            self.net.sample_backlog(link, every);
        }
    }

    /// A node's backplane: every packet that crosses it takes its turn on it.
    fn backplane(&mut self, node: &Node) -> Option<LinkId> {
        let rate = node.backplane?;
        let spec = LinkSpec {
            rate: Some(rate),
            framing: Framing::Datakit,
            discipline: DisciplineSpec::fifo(Limit::Bytes(1 << 30)),
            ..LinkSpec::default()
        };
        Some(self.link(&spec, &node.name, &node.name))
    }

    fn host(&mut self, host: &Host) -> HostState {
        let mut place = |what: &str| self.place(format!("{} {what}", host.name));
        let places = HostPlaces {
            processor: place("processor"),
            board: place("interface"),
            requests: place("interface, earlier request"),
            window: place("transport"),
            congestion: place("transport, congestion window"),
            paced: place("transport, pacing"),
        };
        HostState {
            processor: Serial::default(),
            promised: VecDeque::new(),
            board: Serial::default(),
            board_in: Serial::default(),
            memory: 0,
            overruns: 0,
            chance: host.processor.disturbance.map(|_| {
                let name = format!("{} disturbance", host.name);
                Box::new(self.scenario.seed.stream(&name))
            }),
            places,
        }
    }

    /// Both ends of a flow, the first of which gets number `first`.
    fn flow(
        &mut self,
        index: usize,
        traffic: &Traffic,
        flow: u32,
        first: usize,
    ) -> Result<[End; 2], SimError> {
        let way = self.ways.route(traffic, flow).map_err(|error| SimError::Route {
            traffic: traffic.name.clone(),
            reason: error.to_string(),
        })?;
        let sender = EndId(first as u32);
        // One virtual circuit: its channel number is the same in both directions.
        let channel = Channel(u64::from(sender.0) / 2 + 1);
        let [from, to] = [
            self.host_named(traffic.source(flow), traffic)?,
            self.host_named(&traffic.to, traffic)?,
        ];
        let number = |host: usize| number(&self.scenario.hosts[host].name);
        let hosts = |from, to| Hosts { source: number(from), destination: number(to) };
        let [hosts, hosts_back] = [hosts(from, to), hosts(to, from)];
        let there = self.route(channel, hosts, &way.there, sender.peer());
        let back = self.route(channel, hosts_back, &way.back, sender);
        [there, back].into_iter().for_each(|route| self.net.set_band(route, traffic.band));
        let [ours, theirs] = [&traffic.transport, &traffic.reply_transport];
        let (app, peer) = Application::pair(&traffic.workload, ours.is_stream());
        let name = format!("{} {flow}", traffic.name);
        let habits = [from, to].map(|host| self.habits(host, &name));
        let end = |host, route, languages: [&Transport; 2], habits, app| {
            let protocol = ProtocolEnd::new(languages, habits, route == there, &traffic.name)?;
            let hosts = [host, self.alike[host]];
            let end = End::new(
                hosts,
                (index, flow),
                route,
                app,
                protocol,
                ProtocolKind::of(languages[1]),
            );
            Ok(End { unsteady: self.unsteady(host, &name), ..end })
        };
        Ok([
            end(from, there, [ours, theirs], &habits[0], app)?,
            end(to, back, [theirs, ours], &habits[1], peer)?,
        ])
    }

    /// How much later packets of a flow leave a host.
    fn unsteady(&self, host: usize, flow: &str) -> Option<Box<Unsteady>> {
        let Scenario { hosts, seed, .. } = self.scenario;
        let Host { name, processor, .. } = &hosts[host];
        let most = processor.unsteady;
        let stream = || seed.stream(&format!("{name} unsteady {flow}"));
        (!most.is_zero()).then(|| Box::new(Unsteady::new(most, stream())))
    }

    /// What the protocol of a flow has from its host.
    fn habits(&self, host: usize, flow: &str) -> Habits {
        let Scenario { mtu, seed, .. } = *self.scenario;
        let Host { name, interface, .. } = &self.scenario.hosts[host];
        Habits { echo: interface.echo, mtu, seed, host: name.clone(), flow: flow.into() }
    }

    fn host_named(&self, name: &str, traffic: &Traffic) -> Result<usize, SimError> {
        self.ways.host(name).ok_or_else(|| SimError::Route {
            traffic: traffic.name.clone(),
            reason: format!("'{name}' is no host: traffic goes from host to host"),
        })
    }

    fn route(&mut self, channel: Channel, hosts: Hosts, hops: &[Hop], to: EndId) -> RouteId {
        let mut links = Vec::new();
        for hop in hops {
            links.push(self.crossed(hop.over));
            links.extend(hop.node.and_then(|node| self.backplanes[node]));
        }
        self.arrives_at.push(to);
        self.net.introduce(channel, hosts, &links);
        self.net.add_route(channel, &links)
    }
}

/// A number that tells a host from others whatever the order in which they are declared (FNV-1a).
fn number(name: &str) -> u32 {
    name.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}
