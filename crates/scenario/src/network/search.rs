//! Ways through a scenario, found with an index that is made once.

use super::route::{Hop, Over, Route, RouteError};
use crate::{Scenario, Traffic, Wire};
use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;

/// A host or a node: hosts come first, in the order of their declaration.
type Station = usize;

/// The stations and links of a scenario by name, and the ways that have been looked for.
///
/// Making it takes time in proportion to the scenario, finding a way in proportion to its length and to the links of
/// its ends. Nothing here depends on the order of declarations or of a hash map: maps are only asked for names.
#[derive(Debug)]
pub(crate) struct Ways<'a> {
    scenario: &'a Scenario,
    stations: HashMap<&'a str, Station>,
    /// What joins two stations, from the first to the second: the first link or medium by name.
    joined: HashMap<(Station, Station), Over>,
    /// Of each host its neighbours, of each node those that are nodes, in the order of the names of the links to them,
    /// each once. A node has any number of hosts, to which nothing is forwarded.
    neighbours: Vec<Vec<Station>>,
    /// What lies around the stations that ways begin at.
    around: RefCell<HashMap<Station, Rc<Around>>>,
}

/// The nodes that can be reached from a station over nodes, in the order in which a search comes to them.
#[derive(Debug, Default)]
struct Around {
    /// When the search came to a station, and from which.
    found: HashMap<Station, (usize, Option<Station>)>,
}

impl<'a> Ways<'a> {
    /// An index of `scenario`.
    pub fn new(scenario: &'a Scenario) -> Ways<'a> {
        let hosts = scenario.hosts.iter().map(|host| host.name.as_str());
        let names = hosts.chain(scenario.nodes.iter().map(|node| node.name.as_str()));
        let mut stations = HashMap::with_capacity(scenario.hosts.len() + scenario.nodes.len());
        for (station, name) in names.enumerate() {
            stations.entry(name).or_insert(station);
        }
        let mut ways = Ways {
            scenario,
            neighbours: vec![Vec::new(); scenario.hosts.len() + scenario.nodes.len()],
            stations,
            joined: HashMap::with_capacity(2 * scenario.links.len()),
            around: RefCell::default(),
        };
        ways.join();
        ways
    }

    /// Links and media in the order of their names: the first of several between two stations is the one that ways
    /// take.
    fn join(&mut self) {
        let Scenario { links, media, .. } = self.scenario;
        let links = links.iter().enumerate().map(|(index, link)| (&link.name, Ok(index)));
        let media = media.iter().enumerate().map(|(index, medium)| (&medium.name, Err(index)));
        let mut by_name: Vec<(&String, Result<usize, usize>)> = links.chain(media).collect();
        by_name.sort_by(|one, other| one.0.cmp(other.0));
        for (_, which) in by_name {
            match which {
                Ok(link) => self.join_link(link),
                Err(medium) => self.join_medium(medium),
            }
        }
    }

    fn join_link(&mut self, link: usize) {
        let Wire { from, to, .. } = &self.scenario.links[link];
        if let (Some(from), Some(to)) = (self.station(from), self.station(to)) {
            let over = Over::Link { link, reversed: false };
            self.join_two(from, to, over);
            self.join_two(to, from, over.back());
        }
    }

    fn join_medium(&mut self, medium: usize) {
        let names = &self.scenario.media[medium].stations;
        let stations: Vec<Option<Station>> = names.iter().map(|name| self.station(name)).collect();
        for (from, one) in stations.iter().enumerate() {
            for (to, other) in stations.iter().enumerate() {
                if let (Some(one), Some(other)) = (*one, *other) {
                    self.join_two(one, other, Over::Medium { medium, from, to });
                }
            }
        }
    }

    fn join_two(&mut self, one: Station, other: Station, over: Over) {
        if one != other && !self.joined.contains_key(&(one, other)) {
            self.joined.insert((one, other), over);
            if self.node(one).is_none() || self.node(other).is_some() {
                self.neighbours[one].push(other);
            }
        }
    }

    fn station(&self, name: &str) -> Option<Station> {
        self.stations.get(name).copied()
    }

    /// The index of the host called `name`.
    pub fn host(&self, name: &str) -> Option<usize> {
        self.station(name).filter(|&station| station < self.scenario.hosts.len())
    }

    /// The index of the node that a station is, if it is one.
    fn node(&self, station: Station) -> Option<usize> {
        station.checked_sub(self.scenario.hosts.len())
    }

    /// The way of flow number `flow` of `traffic`: over the nodes of its `via` if it has one, else with the fewest
    /// links. If several ways are equally short, the one whose links' names come first in the alphabet. Hosts forward
    /// nothing.
    ///
    /// # Errors
    /// If there is no such way.
    pub fn route(&self, traffic: &Traffic, flow: u32) -> Result<Route, RouteError> {
        let (from, to) = (traffic.source(flow), traffic.to.as_str());
        let stations = match traffic.via.as_slice() {
            [] => self.shortest(from, to)?,
            via => self.along(from, via, to)?,
        };
        Ok(self.over(&stations))
    }

    /// The stations named, each joined to the next by a link.
    fn along(&self, from: &str, via: &[String], to: &str) -> Result<Vec<Station>, RouteError> {
        let mut stations = Vec::with_capacity(via.len() + 2);
        stations.extend(self.station(from));
        let mut before = from;
        for next in via.iter().map(String::as_str).chain([to]) {
            let not_joined = || RouteError::NotJoined { from: before.into(), to: next.into() };
            let station = self.station(next).ok_or_else(not_joined)?;
            let last = stations.last().ok_or_else(not_joined)?;
            self.joined.get(&(*last, station)).ok_or_else(not_joined)?;
            stations.push(station);
            before = next;
        }
        Ok(stations)
    }

    /// Breadth first over nodes, links in the order of their names: the last station before `to` is the one that the
    /// search comes to first.
    fn shortest(&self, from: &str, to: &str) -> Result<Vec<Station>, RouteError> {
        if from == to {
            return Err(RouteError::NoDistance { host: from.into() });
        }
        let no_way = || RouteError::NoWay { from: from.into(), to: to.into() };
        let start = self.station(from).ok_or_else(no_way)?;
        let end = self.host(to).ok_or_else(no_way)?;
        // The search from a host with one neighbour, a node, is the search from there.
        let only = match self.neighbours[start].as_slice() {
            &[only] if self.node(only).is_some() => Some(only),
            _ => None,
        };
        let around = self.around(only.unwrap_or(start));
        let found = |&station: &Station| around.found.get(&station).map(|it| (it.0, station));
        let last = self.neighbours[end].iter().filter_map(found).min().ok_or_else(no_way)?.1;
        let mut stations = vec![end, last];
        let mut station = last;
        while let Some(&(_, Some(before))) = around.found.get(&station) {
            stations.push(before);
            station = before;
        }
        stations.extend(only.map(|_| start));
        stations.reverse();
        Ok(stations)
    }

    /// What lies around `start`, looked for once.
    fn around(&self, start: Station) -> Rc<Around> {
        if let Some(known) = self.around.borrow().get(&start) {
            return Rc::clone(known);
        }
        let around = Rc::new(self.search(start));
        self.around.borrow_mut().insert(start, Rc::clone(&around));
        around
    }

    fn search(&self, start: Station) -> Around {
        let mut found = HashMap::from([(start, (0, None))]);
        let mut waiting = VecDeque::from([start]);
        while let Some(station) = waiting.pop_front() {
            for &next in &self.neighbours[station] {
                if self.node(next).is_some() && !found.contains_key(&next) {
                    found.insert(next, (found.len(), Some(station)));
                    waiting.push_back(next);
                }
            }
        }
        Around { found }
    }

    /// The hops over `stations`, there and back.
    fn over(&self, stations: &[Station]) -> Route {
        let there: Vec<Hop> = stations.windows(2).map(|pair| self.hop(pair[0], pair[1])).collect();
        let hosts = self.scenario.hosts.len();
        let back = std::iter::zip(&there, stations).rev();
        let back = back
            .map(|(hop, &station)| Hop { over: hop.over.back(), node: station.checked_sub(hosts) });
        Route { back: back.collect(), there }
    }

    fn hop(&self, from: Station, to: Station) -> Hop {
        Hop { over: self.joined[&(from, to)], node: self.node(to) }
    }
}
