//! A fat-tree under windows of packets: workload B4.

use super::constant::{SIZE, link};
use super::{Outcome, Switches};
use anyhow::Result;
use trunkline_core::{Channel, Ecn, Seed, Span, Time};
use trunkline_path::{DisciplineSpec, Limit};
use trunkline_sim::{Event, LinkId, Network, Parcel, RouteId};

/// Ports of a switch.
const PORTS: usize = 8;
/// Ports up or down, switches of a kind in a pod, hosts at an edge switch.
pub const HALF: usize = PORTS / 2;
/// Edge switches, and as many above them.
const EDGES: usize = PORTS * HALF;
/// Hosts.
pub const HOSTS: usize = EDGES * HALF;
/// Most links of a route.
pub const MOST_HOPS: usize = 6;
/// One way of every link.
pub const DELAY: Span = Span::from_micros(1);
const LIMIT: Limit = Limit::Packets(1000);
/// Bytes of an acknowledgement; the workload's description leaves them open. That of a bare TCP/IP header.
pub const ACK: u32 = 40;
/// Packets on the way at first, and at most.
pub const FIRST_WINDOW: u32 = 10;
/// See [`FIRST_WINDOW`].
pub const MOST_WINDOW: u32 = 64;
/// Between the starts of two hosts.
pub const STAGGER: u64 = 100;
/// Simulated.
pub const LENGTH: Time = Time::from_nanos(10_000_000);

/// Whom a host sends to.
pub fn partner(host: usize) -> usize {
    (37 * host + 5) % HOSTS
}

/// The links of a fat-tree by number: up then down, from the hosts to the core.
pub const LINKS: usize = 6 * HOSTS;

/// The numbers of the links from `from` to `to`: up by `to mod 4`, then by `(to / 4) mod 4`.
pub fn way(from: usize, to: usize) -> Vec<usize> {
    let (edge, pod) = (|host: usize| host / HALF, |host: usize| host / HALF / HALF);
    let (first, second) = (to % HALF, to / HALF % HALF);
    // A port of an edge switch, and of one above it, in six banks of as many as there are hosts.
    let port = |bank: usize, switch: usize, port: usize| bank * HOSTS + switch * HALF + port;
    let above = |host: usize| pod(host) * HALF + first;
    let mut way = vec![from];
    if edge(from) != edge(to) {
        way.push(port(1, edge(from), first));
        if pod(from) != pod(to) {
            way.push(port(2, above(from), second));
            way.push(port(3, above(to), second));
        }
        way.push(port(4, above(to), edge(to) % HALF));
    }
    way.push(5 * HOSTS + to);
    way
}

/// A sender's state.
#[derive(Debug, Clone, Copy)]
struct Flow {
    data: RouteId,
    acks: RouteId,
    window: u32,
    under_way: u32,
}

/// The tree with its hosts, ready to run.
pub struct Fabric {
    network: Network,
    links: Vec<LinkId>,
    flows: Vec<Flow>,
    length: Time,
}

impl Fabric {
    /// Builds it.
    pub fn new(length: Time, switches: Switches) -> Result<Fabric> {
        let mut network = Network::new(Seed(1));
        switches.apply(&mut network)?;
        let spec = link(DELAY, DisciplineSpec::fifo(LIMIT));
        let links: Vec<LinkId> =
            (0..LINKS).map(|number| network.add_link(&spec, &number.to_string())).collect();
        let mut route = |channel: usize, from, to| {
            let hops: Vec<LinkId> = way(from, to).into_iter().map(|link| links[link]).collect();
            network.add_route(Channel(channel as u64), &hops)
        };
        let flow = |host| Flow {
            data: route(2 * host, host, partner(host)),
            acks: route(2 * host + 1, partner(host), host),
            window: FIRST_WINDOW,
            under_way: 0,
        };
        let flows = (0..HOSTS).map(flow).collect();
        Ok(Fabric { network, links, flows, length })
    }

    /// Runs it to the end.
    pub fn run(&mut self) -> Result<Outcome> {
        for host in 0..HOSTS as u64 {
            self.network.set_timer(Time::from_nanos(host * STAGGER), host);
        }
        let mut outcome = Outcome::default();
        while let Some(event) = self.network.next(self.length) {
            match event {
                Event::Timer(host) => self.fill(host as usize),
                Event::Arrived(parcel) if parcel.size == SIZE => {
                    outcome.delivered += 1;
                    let route = self.flows[parcel.tag as usize].acks;
                    self.network.inject(Parcel { route, size: ACK, ..parcel });
                }
                Event::Arrived(parcel) => self.acknowledge(parcel.tag as usize),
                Event::Lost(..) => outcome.dropped += 1,
            }
        }
        self.network.end_record()?;
        outcome.hops = self.links.iter().map(|&it| self.network.counts(it).delivered).sum();
        Ok(outcome)
    }

    fn acknowledge(&mut self, host: usize) {
        let flow = &mut self.flows[host];
        flow.window = (flow.window + 1).min(MOST_WINDOW);
        flow.under_way -= 1;
        self.fill(host);
    }

    fn fill(&mut self, host: usize) {
        let flow = &mut self.flows[host];
        let more = flow.window - flow.under_way;
        flow.under_way = flow.window;
        let (route, tag) = (flow.data, host as u64);
        for _ in 0..more {
            self.network.inject(Parcel {
                route,
                size: SIZE,
                controls: 0,
                ecn: Ecn::NotEct,
                tag,
                trace: None,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn routes_go_up_as_far_as_they_must() {
        let lengths: BTreeSet<usize> = [(0, 1), (0, 4), (0, 127), (127, 0)]
            .map(|(from, to)| way(from, to).len())
            .into_iter()
            .collect();
        assert_eq!(lengths, BTreeSet::from([2, 4, MOST_HOPS]));
        // Hosts 3 and 5 to hosts of other pods: by different switches, to the right last ones.
        assert_eq!(way(3, 17), [3, 129, 2 * 128 + 4, 3 * 128 + 20, 4 * 128 + 20, 5 * 128 + 17]);
        assert_eq!(way(5, 0), [5, 132, 4 * 128, 5 * 128]);
    }

    #[test]
    fn the_pairs_are_a_permutation_without_fixed_points() {
        let partners: BTreeSet<usize> = (0..HOSTS).map(partner).collect();
        assert_eq!(partners.len(), HOSTS);
        assert!((0..HOSTS).all(|host| partner(host) != host));
    }

    /// One peer delivers 1,024,926 packets in 11.63 million hops without a drop. The description leaves
    /// the size of an acknowledgement open, which moves the figure by some per cent.
    #[test]
    fn b4_delivers_about_what_its_peer_delivers() {
        let outcome = Fabric::new(LENGTH, Switches::default()).unwrap().run().unwrap();
        assert_eq!(outcome.dropped, 0);
        let near = |found: u64, peer: u64| found.abs_diff(peer) * 100 < peer * 3;
        assert!(
            near(outcome.delivered, 1_024_926) && near(outcome.hops, 11_630_000),
            "{outcome:?}"
        );
    }
}
