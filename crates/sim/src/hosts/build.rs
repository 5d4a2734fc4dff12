//! From a scenario to a world at rest.

use super::booking::LinePlaces;
use super::course::Course;
use super::end::{Described, End};
use super::flying::Spare;
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
use std::collections::{HashMap, HashSet, VecDeque};
use trunkline_core::{Channel, Hosts, Recent, Seldom, Time};
use trunkline_measure::{Samples, Trail};
use trunkline_path::{LinkSpec, Schedule};
use trunkline_scenario::{
    Crossing, Host, Interface, Lane, Network as Lowered, Processor, Scenario, Traffic, Transport,
    Workload,
};
use trunkline_transport::tcp;
use trunkline_workload::Application;

impl<'a> World<'a> {
    /// The world that a lowered scenario describes.
    pub fn new(lowered: &'a Lowered<'a>) -> Result<World<'a>, SimError> {
        let scenario = lowered.scenario();
        let mut builder = Builder::new(lowered);
        let hosts = (lowered.lanes().len() as u32..).step_by(HostPlaces::COUNT);
        let hosts = std::iter::zip(hosts, &scenario.hosts);
        let hosts = hosts.map(|(places, host)| builder.host(places, host)).collect();
        let traffic: Vec<Measured> =
            scenario.traffic.iter().map(|traffic| measured(scenario, traffic)).collect();
        let flows: usize = scenario.traffic.iter().map(|traffic| traffic.count as usize).sum();
        let mut ends = Vec::with_capacity(2 * flows);
        let mut course = Course::new(lowered);
        for index in lowered.traffic().indices() {
            let traffic = &scenario.traffic[index];
            let first = ends.len();
            for flow in 0..traffic.count {
                ends.extend(builder.flow(index, traffic, flow, ends.len())?);
            }
            course.has_ends(index, first..ends.len());
        }
        Ok(World {
            scenario,
            lowered,
            net: builder.net,
            hosts,
            ends,
            traffic,
            course,
            jobs: Jobs::default(),
            soon: VecDeque::new(),
            unsettled: Vec::new(),
            lines: builder.lines,
            lanes: builder.lanes,
            arrives_at: builder.arrives_at,
            stopped: false,
            segments: Segments::default(),
            reorders: lowered.lanes().iter().filter_map(Lane::link).any(reorders),
            spare: Spare::default(),
            brought: Vec::new(),
            at_once: Trail::new(Time::ZERO),
            standing: (Time::ZERO, 0),
        })
    }
}

fn measured(scenario: &Scenario, traffic: &Traffic) -> Measured {
    let amounts = traffic.workload.is_greedy();
    let mut samples = Samples::new(scenario.samples, scenario.seed, amounts);
    samples.expect(u64::from(traffic.count).saturating_mul(expected(scenario, traffic)));
    Measured::new(traffic.count, samples)
}

/// Samples of each flow, if the workload tells: the datagrams that a paced one sends.
fn expected(scenario: &Scenario, traffic: &Traffic) -> u64 {
    let Workload::Paced { size, rate, duration } = traffic.workload else { return 0 };
    1 + rate.bytes_in(duration.min(scenario.stop_after)) / u64::from(size.max(1))
}

/// Whether a link can change the order of packets. One that changes may come to.
fn reorders(link: &LinkSpec) -> bool {
    link.impairments.reorders() || link.schedule != Schedule::default()
}

struct Builder<'a> {
    lowered: &'a Lowered<'a>,
    scenario: &'a Scenario,
    net: Network,
    lines: LinePlaces,
    /// By the numbers of the lowered lanes.
    lanes: Vec<LinkId>,
    media: Vec<MediumId>,
    /// Lanes over media from a station to another, by the number of the lowered lane and the station that hears.
    heard: HashMap<Crossing, LinkId>,
    arrives_at: Vec<EndId>,
    /// The settings of TCP that came last.
    lately: Recent<tcp::Settings>,
    /// Hosts on whose processors applications work.
    worked: HashSet<usize>,
}

impl<'a> Builder<'a> {
    fn new(lowered: &'a Lowered<'a>) -> Builder<'a> {
        let scenario = lowered.scenario();
        let mut net = Network::new(scenario.seed);
        net.note_copies();
        let shared = |lane: &&Lane<'_>| matches!(lane, Lane::Station { .. });
        net.expect_links(lowered.lanes().iter().filter(|lane| !shared(lane)).count());
        let mut builder = Builder {
            lowered,
            scenario,
            net,
            lines: LinePlaces::default(),
            lanes: Vec::with_capacity(lowered.lanes().len()),
            media: Vec::new(),
            heard: HashMap::new(),
            arrives_at: Vec::new(),
            lately: Recent::default(),
            worked: worked(lowered),
        };
        for (place, lane) in (0..).zip(lowered.lanes()) {
            let id = builder.lane(place, lane);
            builder.observe(id, lane);
            builder.lanes.push(id);
        }
        builder
    }

    /// What carries a lane out, whose time is booked at `place`.
    fn lane(&mut self, place: u32, lane: &Lane<'a>) -> LinkId {
        let Lane::Station { medium, station, .. } = *lane else {
            self.lines.links.push(place);
            return self.net.add_link(&lane.spec(), &lane.stream());
        };
        if station.0 == 0 {
            let names: Vec<&str> = medium.stations.iter().map(String::as_str).collect();
            self.media.push(self.net.add_medium(&medium.spec, &medium.name, &names));
        }
        // A lane from the station to itself, by which to ask what the station has sent.
        self.lines.lanes.push(place);
        self.net.add_lane(self.media[self.media.len() - 1], station.0, station.0)
    }

    /// What a way crosses, in the network.
    fn crossed(&mut self, crossing: Crossing) -> LinkId {
        let Builder { lowered, net, lanes, media, heard, lines, .. } = self;
        let (own, lane) = (lanes[crossing.lane], &lowered.lanes()[crossing.lane]);
        let (&Lane::Station { index, station, .. }, Some(to)) = (lane, crossing.heard_by) else {
            return own;
        };
        *heard.entry(crossing).or_insert_with(|| {
            // Its time is booked at the lane of its station.
            lines.lanes.push(crossing.lane as u32);
            net.add_lane(media[index], station.0, to.0)
        })
    }

    /// Records what waits at a lane: how long each packet, unless none ever does, and how many bytes at the instants
    /// that the scenario asks for.
    fn observe(&mut self, link: LinkId, lane: &Lane<'_>) {
        if lane.is_recorded() {
            self.net.record_queueing(link);
        }
        if let Some(every) = self.scenario.sample_backlog.filter(|_| lane.is_reported()) {
            self.net.sample_backlog(link, every);
        }
    }

    fn host(&self, first_place: u32, host: &Host) -> HostState {
        HostState {
            processor: Serial::default(),
            working: Seldom::default(),
            memory: 0,
            deaf_until: Time::ZERO,
            overruns: 0,
            chance: host.processor.disturbance.map(|_| {
                let name = format!("{} disturbance", host.name);
                Box::new(self.scenario.seed.stream(&name))
            }),
            first_place,
        }
    }

    /// Both ends of a flow, the first of which gets number `first`.
    fn flow(
        &mut self,
        index: usize,
        traffic: &Traffic,
        flow: u32,
        first: usize,
    ) -> Result<[End<'a>; 2], SimError> {
        let (lowered, scenario) = (self.lowered, self.scenario);
        let way = lowered.way(index, flow);
        let sender = EndId(first as u32);
        // One virtual circuit: its channel number is the same in both directions.
        let channel = Channel(lowered.circuit(index, flow));
        let (from, to) = (way.from, way.to);
        let number = |host: usize| number(&scenario.hosts[host].name);
        let hosts = |from, to| Hosts { source: number(from), destination: number(to) };
        let [hosts, hosts_back] = [hosts(from, to), hosts(to, from)];
        let there = self.route(channel, hosts, &way.there, sender.peer());
        let back = self.route(channel, hosts_back, &way.back, sender);
        [there, back].into_iter().for_each(|route| self.net.set_band(route, traffic.band));
        let [ours, theirs] = [&traffic.transport, &traffic.reply_transport];
        let (app, peer) = Application::pair(&traffic.workload, ours.asks_by_empty_message());
        let name = format!("{} {flow}", traffic.name);
        let habits = [from, to].map(|host| self.habits(host, &name));
        let mut lately = std::mem::take(&mut self.lately);
        let mut end = |host, route, languages: [&Transport; 2], habits, app| {
            let opens = route == there;
            let protocol = ProtocolEnd::new(languages, habits, opens, &traffic.name, &mut lately)?;
            let Host { processor, interface, .. } = &scenario.hosts[host];
            let ideal = is_ideal(processor, interface) && !self.worked.contains(&host);
            let end = End::new(
                (host, Described { processor, interface, ideal }),
                (index, flow),
                route,
                app,
                protocol,
                ProtocolKind::of(languages[1]),
            );
            Ok::<_, SimError>(End { unsteady: self.unsteady(host, &name), ..end })
        };
        let ends = [
            end(from, there, [ours, theirs], &habits[0], app)?,
            end(to, back, [theirs, ours], &habits[1], peer)?,
        ];
        self.lately = lately;
        Ok(ends)
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

    fn route(&mut self, channel: Channel, hosts: Hosts, way: &[Crossing], to: EndId) -> RouteId {
        let links: Vec<LinkId> = way.iter().map(|&crossing| self.crossed(crossing)).collect();
        self.arrives_at.push(to);
        self.net.introduce(channel, hosts, &links);
        self.net.add_route(channel, &links)
    }
}

/// The hosts on whose processors applications work: those that store what they read.
fn worked(lowered: &Lowered<'_>) -> HashSet<usize> {
    let traffic = lowered.scenario().traffic.iter().enumerate();
    let stores = |traffic: &Traffic| matches!(traffic.workload, Workload::Push { store, .. } if !store.is_zero());
    let storing = traffic.filter(|(_, traffic)| stores(traffic));
    let flows = storing.flat_map(|(index, traffic)| (0..traffic.count).map(move |it| (index, it)));
    flows.map(|(index, flow)| lowered.way(index, flow).to).collect()
}

/// Whether a host takes no time and sets no limit, whatever its interface is called.
fn is_ideal(processor: &Processor, interface: &Interface) -> bool {
    let ideal = Interface { name: interface.name.clone(), ..Interface::default() };
    *processor == Processor::default() && *interface == ideal
}

/// A number that tells a host from others whatever the order in which they are declared (FNV-1a).
fn number(name: &str) -> u32 {
    name.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}
