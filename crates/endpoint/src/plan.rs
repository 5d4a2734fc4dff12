//! The plan of a flow, before it is prepared.

use std::net::Ipv4Addr;
use trunkline_core::{Seed, Span};
use trunkline_measure::{Keep, Samples};
use trunkline_netns::Namespace;
use trunkline_scenario::{Interface, Program, Transport, Workload};

/// A flow of a scenario's traffic between two hosts.
#[derive(Debug, Clone)]
pub struct FlowPlan {
    /// Index of the traffic in the scenario.
    pub traffic: u16,
    /// Index of the flow in the traffic.
    pub flow: u32,
    /// The workload of its applications.
    pub workload: Workload,
    /// The end that starts.
    pub source: EndPlan,
    /// Its peer.
    pub destination: EndPlan,
    /// The channel (virtual circuit) by which disciplines tell it apart.
    pub channel: u64,
    /// The largest network-layer packet that the hosts' devices send, in bytes. A capsule's body is cut to
    /// it; the emulated path counts the whole.
    pub mtu: u32,
    /// Its priority band, 0 the most urgent, to 7.
    pub band: u8,
    /// The outside program that makes this flow instead of `workload`.
    pub program: Option<Program>,
    /// The places under which time is booked that is no host's.
    pub places: Places,
    /// The time that datagrams are waited for after the last was sent: the longest that the path can keep one.
    pub linger: Span,
    /// The number of its measurements that are kept.
    pub keep: Keep,
    /// The seed by which those are drawn.
    pub seed: Seed,
}

impl FlowPlan {
    /// No measurements yet.
    pub(crate) fn samples(&self) -> Samples {
        Samples::new(self.keep, self.seed, self.workload.is_greedy())
    }
}

/// One end of a flow.
#[derive(Debug, Clone)]
pub struct EndPlan {
    /// The host's namespace.
    pub namespace: Namespace,
    /// The host's address on this flow's path.
    pub address: Ipv4Addr,
    /// The protocol in which it sends.
    pub transport: Transport,
    /// The host's interface: how it splits writes, how many requests it takes, when it echoes. Its costs
    /// are not imitated, for the host is a real one.
    pub interface: Interface,
    /// The places under which this host's time is booked.
    pub places: EndPlaces,
}

/// Places of one host, indices into [`Run::places`](trunkline_engine::Run::places).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EndPlaces {
    /// Application, sockets, kernel, device.
    pub host: u32,
    /// An earlier request that the interface has not done with.
    pub requests: u32,
    /// The transport: its window, and the repair of losses.
    pub transport: u32,
}

/// Places between the hosts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Places {
    /// Of each link, by the number under which the emulator books it.
    pub links: Vec<u32>,
    /// The emulator's lateness.
    pub emulator: u32,
    /// The place for what cannot be told apart: kernel TCP with the path, and hops beyond those of a capsule.
    pub path: u32,
}

impl Places {
    /// The place of a link.
    pub(crate) fn link(&self, number: u16) -> u32 {
        self.links.get(usize::from(number)).copied().unwrap_or(self.path)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use trunkline_scenario::Reply;

    /// A flow of the machine with itself.
    pub(crate) fn plan() -> FlowPlan {
        let end = EndPlan {
            namespace: Namespace::current().expect("the own namespace"),
            address: Ipv4Addr::LOCALHOST,
            transport: Transport::Udp,
            interface: Interface::default(),
            places: EndPlaces::default(),
        };
        let sizes = vec![1];
        let (reply, every) = (Reply::Echo, Span::ZERO);
        FlowPlan {
            traffic: 0,
            flow: 0,
            workload: Workload::Interactive { sizes, repeat: 1, reply, every },
            source: end.clone(),
            destination: end,
            channel: 1,
            mtu: 1500,
            band: 7,
            program: None,
            places: Places::default(),
            linger: Span::ZERO,
            keep: Keep::default(),
            seed: Seed(1),
        }
    }

    #[test]
    fn an_unknown_link_is_the_path() {
        let places = Places { links: vec![4, 5], emulator: 6, path: 7 };
        assert_eq!([places.link(1), places.link(2), places.link(u16::MAX)], [5, 7, 7]);
    }
}
