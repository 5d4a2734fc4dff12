//! Which links and nodes a traffic crosses, there and back.

use crate::Traffic;
use thiserror::Error;

/// One step of a way: what is crossed, and what comes behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Hop {
    /// What is crossed.
    pub over: Over,
    /// The node behind it, an index into [`Scenario::nodes`]; `None` if the way ends at a host.
    pub node: Option<usize>,
}

/// What a hop crosses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Over {
    /// A link.
    Link {
        /// Index into [`Scenario::links`].
        link: usize,
        /// Whether it is crossed from [`Wire::to`] to [`Wire::from`], so that [`Wire::backward`] holds.
        reversed: bool,
    },
    /// A shared medium, from one of its stations to another.
    Medium {
        /// Index into [`Scenario::media`].
        medium: usize,
        /// The sending station, an index into [`Medium::stations`](crate::Medium::stations).
        from: usize,
        /// The station that hears it.
        to: usize,
    },
}

impl Over {
    /// The same the other way.
    pub fn back(self) -> Over {
        match self {
            Over::Link { link, reversed } => Over::Link { link, reversed: !reversed },
            Over::Medium { medium, from, to } => Over::Medium { medium, from: to, to: from },
        }
    }
}

/// The way of a flow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Route {
    /// From the sender to its peer.
    pub there: Vec<Hop>,
    /// From the peer to the sender: the same links the other way, in the opposite order.
    pub back: Vec<Hop>,
}

/// Why there is no way.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RouteError {
    /// Sender and peer are one host, and nothing says how far to go.
    #[error("'{host}' would send to itself: give the nodes to be crossed, via = [\"NODE\", …]")]
    NoDistance {
        /// The host.
        host: String,
    },
    /// Two stations that follow each other in `via` are not joined.
    #[error(
        "no link or medium joins '{from}' and '{to}': add one, or name every node of the way in order"
    )]
    NotJoined {
        /// The one.
        from: String,
        /// The other.
        to: String,
    },
    /// No sequence of links and nodes leads there.
    #[error("no links lead from '{from}' to '{to}' over nodes alone: add the missing link")]
    NoWay {
        /// The sender.
        from: String,
        /// The peer.
        to: String,
    },
}

impl Traffic {
    /// The host at which flow number `flow` starts.
    pub fn source(&self, flow: u32) -> &str {
        match self.from_each.len() {
            0 => &self.from,
            hosts => &self.from_each[flow as usize % hosts],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Ways;
    use super::*;
    use crate::{
        Host, Interface, Node, Processor, Scenario, Start, Transport, UrpSettings, Wire, Workload,
    };
    use proptest::prelude::*;
    use std::collections::{BTreeMap, VecDeque};
    use trunkline_core::{Seed, Span};
    use trunkline_path::LinkSpec;

    fn scenario(hosts: &[&str], nodes: &[&str], links: &[(&str, &str)]) -> Scenario {
        let host = |name: &&str| Host {
            name: name.to_string(),
            processor: Processor::default().into(),
            interface: Interface::default().into(),
        };
        let wire = |(index, &(from, to)): (usize, &(&str, &str))| Wire {
            name: format!("link{index}"),
            from: from.into(),
            to: to.into(),
            forward: LinkSpec::default().into(),
            backward: LinkSpec::default().into(),
        };
        Scenario {
            name: "test".into(),
            about: String::new(),
            seed: Seed(1),
            cell: BTreeMap::new(),
            hosts: hosts.iter().map(host).collect(),
            nodes: nodes.iter().map(|&name| Node { name: name.into(), backplane: None }).collect(),
            links: links.iter().enumerate().map(wire).collect(),
            media: Vec::new(),
            traffic: Vec::new(),
            clusters: Vec::new(),
            stop_after: Span::from_secs(1),
            sample_backlog: None,
            samples: Default::default(),
            mtu: 1500,
        }
    }

    fn traffic(from: &str, via: &[&str], to: &str) -> Traffic {
        let urp = Transport::Urp(UrpSettings::default());
        Traffic {
            name: "t".into(),
            workload: Workload::TimedEcho { sizes: vec![1], duration: Span::from_secs(1) },
            from: from.into(),
            to: to.into(),
            via: via.iter().map(|node| node.to_string()).collect(),
            count: 1,
            from_each: Vec::new(),
            transport: urp.clone().into(),
            reply_transport: urp.into(),
            start: Start::At(Span::ZERO),
            stagger: Span::ZERO,
            late: Span::ZERO,
            until: None,
            estimator: None,
            band: 7,
            program: None,
        }
    }

    /// Every search anew, over all links in the order of their names.
    fn searched(net: &Scenario, from: &str, to: &str) -> Option<Vec<Hop>> {
        let mut by_name: Vec<usize> = (0..net.links.len()).collect();
        by_name.sort_by(|&one, &other| net.links[one].name.cmp(&net.links[other].name));
        let mut seen = vec![false; net.nodes.len()];
        let mut ways = VecDeque::from([(from, Vec::new())]);
        while let Some((station, way)) = ways.pop_front() {
            for &link in &by_name {
                let ends = [&net.links[link].from, &net.links[link].to];
                let Some(begin) = ends.iter().position(|end| *end == station) else { continue };
                let (end, reversed) = (ends[1 - begin], begin == 1);
                let node = net.nodes.iter().position(|node| node.name == *end);
                let over = Over::Link { link, reversed };
                let further = [way.as_slice(), &[Hop { over, node }]].concat();
                match node {
                    None if end == to => return Some(further),
                    Some(node) if !std::mem::replace(&mut seen[node], true) => {
                        ways.push_back((end, further));
                    }
                    _ => {}
                }
            }
        }
        None
    }

    proptest! {
        /// An index finds the ways that a search from each host over all links finds.
        #[test]
        fn ways_are_those_of_a_search(
            ends in prop::collection::vec((0..9usize, 0..9usize), 1..24), names in any::<u64>(),
        ) {
            let stations = ["a", "b", "c", "d", "n1", "n2", "n3", "n4", "n5"];
            let ends = ends.into_iter().filter(|(one, other)| one != other);
            let ends: Vec<(&str, &str)> =
                ends.map(|(one, other)| (stations[one], stations[other])).collect();
            let mut net = scenario(&stations[..4], &stations[4..], &ends);
            for (index, link) in net.links.iter_mut().enumerate() {
                link.name = format!("{:x}-{index}", names.rotate_left(5 * index as u32) & 0xff);
            }
            let ways = Ways::new(&net);
            for (from, to) in [("a", "b"), ("b", "a"), ("c", "d"), ("a", "d"), ("d", "b")] {
                let found = ways.route(&traffic(from, &[], to), 0).ok().map(|way| way.there);
                prop_assert_eq!(found, searched(&net, from, to), "{} to {}", from, to);
            }
        }
    }

    /// A way as text: each link with its direction, then the node behind it.
    fn text(scenario: &Scenario, hops: &[Hop]) -> String {
        let mut text = String::new();
        for hop in hops {
            text += &match hop.over {
                Over::Link { link, reversed } => {
                    format!(" {}{link}", if reversed { "-" } else { "+" })
                }
                Over::Medium { medium, from, to } => format!(" m{medium}:{from}>{to}"),
            };
            text +=
                &hop.node.map_or(String::new(), |node| format!(" {}", scenario.nodes[node].name));
        }
        text.trim_start().into()
    }

    #[test]
    fn the_fewest_links_win_and_then_the_first_name() {
        let links =
            [("a", "n1"), ("n1", "n2"), ("n3", "n2"), ("n1", "n4"), ("n4", "b"), ("n2", "b")];
        let net = scenario(&["a", "b"], &["n1", "n2", "n3", "n4"], &links);
        let route = Ways::new(&net).route(&traffic("a", &[], "b"), 0).unwrap();
        assert_eq!(text(&net, &route.there), "+0 n1 +1 n2 +5");
        assert_eq!(text(&net, &route.back), "-5 n2 -1 n1 -0");
        let route = Ways::new(&net).route(&traffic("b", &["n4", "n1"], "a"), 0).unwrap();
        assert_eq!(text(&net, &route.there), "-4 n4 -3 n1 -0");
    }

    /// Hawley's looped path: KMC, node 2, node 1, node 3, T1, node 6, node 1, node 2, KMC.
    #[test]
    fn a_loop_comes_back_to_its_host() {
        let links = [("coma", "n2"), ("n2", "n1"), ("n1", "n3"), ("n3", "n6"), ("n6", "n1")];
        let net = scenario(&["coma"], &["n1", "n2", "n3", "n6"], &links);
        let via = ["n2", "n1", "n3", "n6", "n1", "n2"];
        let route = Ways::new(&net).route(&traffic("coma", &via, "coma"), 0).unwrap();
        assert_eq!(text(&net, &route.there), "+0 n2 +1 n1 +2 n3 +3 n6 +4 n1 -1 n2 -0");
        assert_eq!(text(&net, &route.back), "+0 n2 +1 n1 -4 n6 -3 n3 -2 n1 -1 n2 -0");
        assert!(Ways::new(&net).route(&traffic("coma", &[], "coma"), 0).is_err());
    }

    #[test]
    fn hosts_forward_nothing() {
        let net = scenario(&["a", "b", "c"], &[], &[("a", "b"), ("b", "c")]);
        assert!(Ways::new(&net).route(&traffic("a", &[], "b"), 0).is_ok());
        let error = Ways::new(&net).route(&traffic("a", &[], "c"), 0).unwrap_err();
        assert_eq!(error, RouteError::NoWay { from: "a".into(), to: "c".into() });
    }

    #[test]
    fn via_names_every_node() {
        let links = [("a", "n1"), ("n1", "n2"), ("n2", "b")];
        let net = scenario(&["a", "b"], &["n1", "n2"], &links);
        let error = Ways::new(&net).route(&traffic("a", &["n2"], "b"), 0).unwrap_err();
        assert_eq!(error, RouteError::NotJoined { from: "a".into(), to: "n2".into() });
    }

    #[test]
    fn flows_are_spread_over_the_hosts_of_from_each() {
        let net = scenario(&["a", "b", "c"], &["n"], &[("a", "n"), ("b", "n"), ("n", "c")]);
        let spread =
            Traffic { from_each: vec!["a".into(), "b".into()], count: 3, ..traffic("a", &[], "c") };
        let ways = (0..3).map(|flow| Ways::new(&net).route(&spread, flow).unwrap());
        let first: Vec<String> = ways.map(|way| text(&net, &way.there[..1])).collect();
        assert_eq!(first, ["+0 n", "+1 n", "+0 n"]);
    }

    /// Stations of one medium are one step apart, and a node on it leads on. A link with an earlier name goes first.
    #[test]
    fn a_medium_is_one_step() {
        let mut net = scenario(&["a", "b", "c"], &["n"], &[("n", "c"), ("a", "b")]);
        let stations = ["a", "n", "b"].map(String::from).to_vec();
        let access = trunkline_path::medium::AccessSpec::read("half-duplex", "").unwrap();
        let LinkSpec { rate, framing, delay, discipline, .. } = LinkSpec::default();
        let spec = trunkline_path::MediumSpec { rate, framing, delay, discipline, access };
        net.media.push(crate::Medium { name: "lan".into(), stations, spec });
        let route = Ways::new(&net).route(&traffic("a", &[], "c"), 0).unwrap();
        assert_eq!(text(&net, &route.there), "m0:0>1 n +0");
        assert_eq!(text(&net, &route.back), "-0 n m0:1>0");
        let direct = |net: &Scenario| {
            text(net, &Ways::new(net).route(&traffic("a", &[], "b"), 0).unwrap().there)
        };
        assert_eq!(direct(&net), "m0:0>2");
        net.links[1].name = "a-link".into();
        assert_eq!(direct(&net), "+1");
    }
}
