//! Two hosts on one virtual Ethernet pair, with no emulator between them.

use std::net::Ipv4Addr;
use std::time::Duration;
use trunkline_core::{Rate, Seed, Size, Span, Time};
use trunkline_endpoint::{EndPlaces, EndPlan, Flow, FlowPlan, FlowRun, HostThreads, Places, clock};
use trunkline_measure::Keep;
use trunkline_netns::{End, LabError, Namespace, create_veth};
use trunkline_scenario::{Interface, Reply, TcpSettings, Transport, UrpSettings, Workload};

pub const NEAR: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 1);
pub const FAR: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 2);
pub const MTU: u32 = 1500;

/// Two namespaces, joined.
pub struct Hosts {
    pub near: Namespace,
    pub far: Namespace,
}

impl Hosts {
    /// The hosts, or nothing and a message if there is no permission to make namespaces.
    pub fn build(mtu: u32) -> Option<Hosts> {
        match Hosts::try_build(mtu) {
            Ok(hosts) => Some(hosts),
            Err(error) if error.errno() == Some(rustix::io::Errno::PERM.raw_os_error()) => {
                trunkline_skip::skipped(error);
                None
            }
            Err(error) => panic!("{error}"),
        }
    }

    fn try_build(mtu: u32) -> Result<Hosts, LabError> {
        let hosts = Hosts { near: Namespace::create()?, far: Namespace::create()? };
        create_veth(&End::new(&hosts.near, "tl0"), &End::new(&hosts.far, "tl0"), mtu)?;
        for (host, address) in [(&hosts.near, NEAR), (&hosts.far, FAR)] {
            host.set_offloads_off("tl0")?;
            host.add_address("tl0", format!("{address}/24").parse()?)?;
        }
        Ok(hosts)
    }

    /// A flow from the near host to the far one.
    pub fn plan(&self, workload: Workload, transport: &Transport) -> FlowPlan {
        let end = |namespace: &Namespace, address, first| EndPlan {
            namespace: namespace.clone(),
            address,
            transport: transport.clone(),
            interface: Interface::default(),
            places: EndPlaces { host: first, requests: first + 1, transport: first + 2 },
        };
        FlowPlan {
            traffic: 0,
            flow: 0,
            workload,
            source: end(&self.near, NEAR, 0),
            destination: end(&self.far, FAR, 3),
            channel: 1,
            mtu: MTU,
            band: 7,
            program: None,
            places: Places { links: Vec::new(), emulator: 6, path: 7 },
            linger: Span::from_secs(1),
            keep: Keep::default(),
            seed: Seed(1),
        }
    }
}

/// Runs flows from one start until all have ended, or for `most`.
pub fn run(plans: &[FlowPlan], most: Duration) -> Vec<FlowRun> {
    let threads = HostThreads::new();
    let flows = Flow::prepare_all(&threads, plans).unwrap();
    let start = clock::now() + Span::from_millis(5);
    flows.iter().for_each(|flow| flow.start(start));
    let limit = start + Span::from_nanos(most.as_nanos() as u64);
    while !flows.iter().all(Flow::ended) && clock::now() < limit {
        std::thread::sleep(Duration::from_millis(2));
    }
    let finish = |flow: Flow| {
        assert!(flow.ended(), "a flow has not ended");
        let mut run = flow.join();
        run.rebase(start);
        run
    };
    flows.into_iter().map(finish).collect()
}

/// Each measurement's steps sum to its delay, and its times are in order.
pub fn check_sums(run: &FlowRun) {
    for sample in &run.samples {
        let sum: Span = sample.steps.iter().map(|step| step.span).sum();
        assert_eq!(sum, sample.delay(), "{sample:?}");
        assert!(sample.intended <= sample.start && sample.start <= sample.end, "{sample:?}");
        assert!(sample.end > Time::ZERO);
    }
}

/// Every workload, short, with the samples and the bytes that it makes if nothing is lost: `None` if that
/// depends on the machine's speed.
pub fn workloads() -> Vec<(Workload, Option<usize>, Option<u64>)> {
    let milli = Span::from_millis;
    let interactive =
        |reply, every| Workload::Interactive { sizes: vec![1, 64, 1000], repeat: 5, reply, every };
    let bulk = |confirm| Workload::Bulk {
        bytes: Size::from_bytes(50_000),
        repeat: 3,
        write: 1024,
        confirm,
    };
    let all = 5 * (1 + 64 + 1000);
    vec![
        (interactive(Reply::Echo, Span::ZERO), Some(15), Some(2 * all)),
        (interactive(Reply::Bytes(4), milli(2)), Some(15), Some(all + 15 * 4)),
        (bulk(true), Some(3), Some(150_000 + 3 * 4)),
        (bulk(false), Some(3), None),
        (Workload::TimedEcho { sizes: vec![10, 500], duration: milli(50) }, None, None),
        (Workload::TimedTransfer { sizes: vec![100], duration: milli(50) }, None, None),
        (
            Workload::Push {
                bytes: Size::from_bytes(8192),
                repeat: 2,
                write: 1024,
                store: milli(1),
            },
            Some(2),
            Some(2 * (8192 + 4)),
        ),
        (
            Workload::Greedy {
                duration: milli(300),
                warm_up: milli(100),
                interval: milli(50),
                write: 4096,
            },
            Some(4),
            None,
        ),
        (
            Workload::Paced {
                size: 125,
                rate: Rate::from_bits_per_second(1_000_000),
                duration: milli(100),
            },
            Some(100),
            Some(12_500),
        ),
    ]
}

pub fn urp() -> Transport {
    Transport::Urp(UrpSettings { block: 1024, outstanding: 7, ..UrpSettings::default() })
}

pub fn tcp() -> Transport {
    Transport::Tcp(TcpSettings::default())
}
