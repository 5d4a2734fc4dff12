//! The plan of a leaf-spine fabric: which port leads where, and which way a frame takes.

use crate::medium::StationId;
use crate::medium::transit::Destination;
use std::ops::Range;

/// A port that sends, numbered over the whole fabric: those of stations first, then those of leaf switches to stations, of
/// leaf switches to spine switches, and of spine switches to leaf switches.
pub type PortId = usize;

/// Two levels of switches. Every leaf has a cable to every spine.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    stations: usize,
    hosts_per_leaf: usize,
    leaves: usize,
    /// None if there is one leaf only.
    spines: usize,
}

/// Where the cable of a port begins and ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cable {
    /// From a station to its leaf.
    Host { leaf: usize },
    /// From a leaf to a station.
    Down { station: usize },
    /// From a leaf to a spine.
    Up { leaf: usize, spine: usize },
    /// From a spine to a leaf.
    Across { leaf: usize },
}

impl Plan {
    /// The stations fill one leaf after the other in their order.
    pub fn new(stations: usize, hosts_per_leaf: u32, spines: u32) -> Plan {
        let hosts_per_leaf = hosts_per_leaf as usize;
        let leaves = stations.div_ceil(hosts_per_leaf);
        let spines = if leaves > 1 { spines as usize } else { 0 };
        Plan { stations, hosts_per_leaf, leaves, spines }
    }

    /// The number of ports.
    pub fn ports(&self) -> usize {
        2 * self.stations + 2 * self.leaves * self.spines
    }

    /// Whether a port sends from one switch to another.
    pub fn is_trunk(&self, port: PortId) -> bool {
        port >= 2 * self.stations
    }

    /// The cable of a port.
    pub fn cable(&self, port: PortId) -> Cable {
        let first_up = 2 * self.stations;
        let first_across = first_up + self.leaves * self.spines;
        if port < self.stations {
            Cable::Host { leaf: self.leaf(port) }
        } else if port < first_up {
            Cable::Down { station: port - self.stations }
        } else if port < first_across {
            let place = port - first_up;
            Cable::Up { leaf: place / self.spines, spine: place % self.spines }
        } else {
            Cable::Across { leaf: (port - first_across) % self.leaves }
        }
    }

    /// The ports by which a frame of `from` leaves the switch that it has come to over the cable of `input`. None behind a
    /// cable that ends at a station.
    pub fn outputs(
        &self,
        input: PortId,
        from: StationId,
        to: Destination,
        outputs: &mut Vec<PortId>,
    ) {
        match (self.cable(input), to) {
            (Cable::Host { leaf }, Destination::One(to)) if leaf != self.leaf(to.0) => {
                outputs.push(self.up(leaf, self.spine(from, self.leaf(to.0))));
            }
            (Cable::Host { .. } | Cable::Across { .. }, Destination::One(to)) => {
                outputs.push(self.down(to.0));
            }
            (Cable::Host { leaf }, Destination::All) => {
                let others = self.hosts(leaf).filter(|&host| host != from.0);
                outputs.extend(others.map(|host| self.down(host)));
                let serves = |&spine: &usize| self.served(from, spine).next().is_some();
                outputs.extend((0..self.spines).filter(serves).map(|spine| self.up(leaf, spine)));
            }
            (Cable::Across { leaf }, Destination::All) => {
                outputs.extend(self.hosts(leaf).map(|host| self.down(host)));
            }
            (Cable::Up { spine, .. }, Destination::One(to)) => {
                outputs.push(self.across(spine, self.leaf(to.0)));
            }
            (Cable::Up { spine, .. }, Destination::All) => {
                outputs.extend(self.served(from, spine).map(|leaf| self.across(spine, leaf)));
            }
            (Cable::Down { .. }, _) => {}
        }
    }

    /// The stations that hear a frame of `from` by way of a port: of one for all stations those behind it, else one.
    pub fn hearers(&self, output: PortId, from: StationId, to: Destination) -> usize {
        match (to, self.cable(output)) {
            (Destination::All, Cable::Across { leaf }) => self.hosts(leaf).len(),
            (Destination::All, Cable::Up { spine, .. }) => {
                self.served(from, spine).map(|leaf| self.hosts(leaf).len()).sum()
            }
            _ => 1,
        }
    }

    fn leaf(&self, station: usize) -> usize {
        station / self.hosts_per_leaf
    }

    /// The stations of a leaf.
    fn hosts(&self, leaf: usize) -> Range<usize> {
        let first = leaf * self.hosts_per_leaf;
        first..(first + self.hosts_per_leaf).min(self.stations)
    }

    fn down(&self, station: usize) -> PortId {
        self.stations + station
    }

    fn up(&self, leaf: usize, spine: usize) -> PortId {
        2 * self.stations + leaf * self.spines + spine
    }

    fn across(&self, spine: usize, leaf: usize) -> PortId {
        2 * self.stations + (self.spines + spine) * self.leaves + leaf
    }

    /// The other leaves to which frames of `from` come by `spine`.
    fn served(&self, from: StationId, spine: usize) -> impl Iterator<Item = usize> + '_ {
        let own = self.leaf(from.0);
        (0..self.leaves).filter(move |&leaf| leaf != own && self.spine(from, leaf) == spine)
    }

    /// The spine of all frames of a station to those of a leaf, whether for one or for all, so that they keep their order; by
    /// the finaliser of SplitMix64 (Steele, Lea and Flood 2014, §5).
    fn spine(&self, from: StationId, leaf: usize) -> usize {
        let mut hash = (from.0 as u64) << 32 | leaf as u64;
        hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((hash ^ (hash >> 31)) % self.spines as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From every station to every other the way ends at the other, and one for all ends at each other station once.
    #[test]
    fn every_way_ends_where_it_is_to() {
        for (stations, per_leaf, spines) in [(7, 3, 2), (4, 1, 3), (5, 8, 2), (16, 4, 1)] {
            let plan = Plan::new(stations, per_leaf, spines);
            for from in 0..stations {
                for to in (0..stations).filter(|&to| to != from) {
                    let ends = ends(&plan, from, Destination::One(StationId(to)));
                    assert_eq!(ends, [to], "{stations} {per_leaf} {spines} {from}");
                }
                let others: Vec<usize> = (0..stations).filter(|&to| to != from).collect();
                assert_eq!(ends(&plan, from, Destination::All), others);
            }
        }
    }

    /// The stations at which a frame ends. It goes up at most once and then down.
    fn ends(plan: &Plan, from: usize, to: Destination) -> Vec<usize> {
        let mut ends = Vec::new();
        let mut under_way = vec![(from, 0)];
        while let Some((port, steps)) = under_way.pop() {
            assert!(port < plan.ports() && steps <= 3);
            if let Cable::Down { station } = plan.cable(port) {
                ends.push(station);
            }
            let mut outputs = Vec::new();
            plan.outputs(port, StationId(from), to, &mut outputs);
            let source = StationId(from);
            let heard: usize = outputs.iter().map(|&it| plan.hearers(it, source, to)).sum();
            let here = usize::from(outputs.is_empty());
            let expected = if steps == 0 { 0 } else { plan.hearers(port, source, to) };
            assert!(steps == 0 || heard + here == expected, "{port}");
            under_way.extend(outputs.into_iter().map(|output| (output, steps + 1)));
        }
        ends.sort_unstable();
        ends
    }

    /// Stations and leaves spread over the spines: none has much more than its part.
    #[test]
    fn ways_spread_over_the_spines() {
        let plan = Plan::new(256, 32, 8);
        let mut ways = [0u32; 8];
        for from in 0..256 {
            for leaf in 0..8 {
                ways[plan.spine(StationId(from), leaf)] += 1;
            }
        }
        assert!(ways.iter().all(|&ways| (192..320).contains(&ways)), "{ways:?}");
    }
}
