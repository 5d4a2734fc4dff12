//! Constant-rate sources through one bottleneck: workloads B2 and B3.

use super::{Outcome, Switches};
use anyhow::Result;
use trunkline_core::{Channel, Ecn, Rate, Seed, Span, Time};
use trunkline_path::discipline::{FqCodelSettings, Keys};
use trunkline_path::{DisciplineSpec, Limit, LinkSpec};
use trunkline_sim::{Event, LinkId, Network, Parcel, RouteId};

/// Bytes of each packet on the wire.
pub const SIZE: u32 = 1500;
/// Every link's rate, in bits per second.
pub const RATE: u64 = 10_000_000_000;
/// One way between a source and the bottleneck.
pub const ACCESS_DELAY: Span = Span::from_micros(10);
/// What may wait at an access link.
pub const ACCESS_LIMIT: Limit = Limit::Packets(100_000);
/// Packets that wait at the bottleneck at most.
pub const LIMIT: u64 = 1000;
/// Simulated.
pub const LENGTH: Time = Time::from_nanos(1_000_000_000);

/// A load of packets at a constant rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Constant {
    /// Sources, each behind an access link of its own.
    pub sources: usize,
    /// Packets a second from all sources together.
    pub packets_per_second: u64,
    /// One way behind the bottleneck.
    pub delay: Span,
    /// Whether the bottleneck is FQ-CoDel. A FIFO otherwise.
    pub fair: bool,
    /// Simulated.
    pub length: Time,
}

impl Constant {
    /// B2: a load of 0.9 through a FIFO.
    pub const fn fifo(sources: usize) -> Constant {
        let delay = Span::from_millis(1);
        Constant { sources, packets_per_second: 750_000, delay, fair: false, length: LENGTH }
    }

    /// B3: a load of 1.2 through FQ-CoDel.
    pub const fn fq_codel(sources: usize) -> Constant {
        let delay = Span::from_millis(1);
        Constant { sources, packets_per_second: 1_000_000, delay, fair: true, length: LENGTH }
    }

    /// When the packet with this number is sent: source `i` sends those numbered `i`, `i + sources`, …
    pub fn instant(&self, number: u64) -> Time {
        Time::from_nanos(number * 1_000_000_000 / self.packets_per_second)
    }

    fn bottleneck(&self) -> DisciplineSpec {
        let limit = Limit::Packets(LIMIT);
        if !self.fair {
            return DisciplineSpec::fifo(limit);
        }
        FqCodelSettings { limit, ecn: false, ..FqCodelSettings::with_limit(limit) }.into()
    }
}

/// A link at the common rate.
pub fn link(delay: Span, discipline: DisciplineSpec) -> LinkSpec {
    let rate = Some(Rate::from_bits_per_second(RATE));
    LinkSpec { rate, delay, discipline, ..LinkSpec::default() }
}

/// The network with its sources, ready to run.
pub struct Sources {
    what: Constant,
    network: Network,
    links: Vec<LinkId>,
    routes: Vec<RouteId>,
    /// The number of each source's next packet.
    next: Vec<u64>,
}

impl Sources {
    /// Builds it.
    pub fn new(what: Constant, switches: Switches) -> Result<Sources> {
        let mut network = Network::new(Seed(1));
        switches.apply(&mut network)?;
        let bottleneck = network.add_link(&link(what.delay, what.bottleneck()), "bottleneck");
        let access = link(ACCESS_DELAY, DisciplineSpec::fifo(ACCESS_LIMIT));
        let mut links = vec![bottleneck];
        links
            .extend((0..what.sources).map(|source| network.add_link(&access, &source.to_string())));
        let route = |(source, &own): (usize, &LinkId)| {
            network.add_route(Channel(source as u64), &[own, bottleneck])
        };
        let routes = links[1..].iter().enumerate().map(route).collect();
        let next = (0..what.sources as u64).collect();
        Ok(Sources { what, network, links, routes, next })
    }

    /// Runs it to the end.
    pub fn run(&mut self) -> Result<Outcome> {
        for source in 0..self.what.sources as u64 {
            self.network.set_timer(self.what.instant(source), source);
        }
        let mut outcome = Outcome::default();
        while let Some(event) = self.network.next(self.what.length) {
            match event {
                Event::Timer(source) => self.send(source as usize),
                Event::Arrived(_) => outcome.delivered += 1,
                Event::Lost(..) => outcome.dropped += 1,
            }
        }
        self.network.end_record()?;
        outcome.hops = self.links.iter().map(|&it| self.network.counts(it).delivered).sum();
        Ok(outcome)
    }

    fn send(&mut self, source: usize) {
        let route = self.routes[source];
        self.network.inject(Parcel {
            route,
            size: SIZE,
            controls: 0,
            ecn: Ecn::NotEct,
            tag: 0,
            trace: None,
        });
        self.next[source] += self.what.sources as u64;
        self.network.set_timer(self.what.instant(self.next[source]), source as u64);
    }

    /// Packets under way at the bottleneck and behind it.
    pub fn in_flight(&self) -> u64 {
        self.network.in_flight(self.links[0])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trunkline_core::DropCause;

    fn run(what: Constant) -> Outcome {
        let mut sources = Sources::new(what, Switches::default()).unwrap();
        let outcome = sources.run().unwrap();
        let dropped = sources.network.counts(sources.links[0]).dropped_by(DropCause::QueueLimit);
        assert_eq!(outcome.dropped, dropped, "CoDel drops nothing: 1000 packets are 1.2 ms");
        outcome
    }

    /// Three peers agree on this within 0.1 %. It is exact: 750,000 packets less those sent in the last
    /// 1,012,400 ns, which is what a packet takes that never waits.
    #[test]
    fn b2_delivers_what_its_peers_deliver() {
        for sources in [100, 1000] {
            let outcome = run(Constant::fifo(sources));
            assert_eq!((outcome.delivered, outcome.dropped), (749_241, 0), "{sources} sources");
        }
    }

    /// A line that is never idle after its first packet delivers this many in the time it has; the rest
    /// is dropped, waits or is on its way. (One other simulator: 831,105, 0.17 % fewer.)
    #[test]
    fn b3_fills_its_line() {
        let outcome = run(Constant::fq_codel(100));
        let first = 10_000 + 1_200;
        let bits = u64::from(SIZE) * 8;
        let possible = (1_000_000_000 - first - 1_000_000) * RATE / bits / 1_000_000_000;
        assert_eq!(outcome.delivered, possible);
        assert!(outcome.dropped > 1_000_000 - possible - LIMIT - 900, "{outcome:?}");
    }
}
