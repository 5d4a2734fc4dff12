//! Small scenarios.

use std::collections::BTreeMap;
use trunkline_core::{Rate, Seed, Size, Span};
use trunkline_path::{DisciplineSpec, Framing, Limit, LinkSpec};
use trunkline_scenario::*;

/// A link of `bits` per second.
pub fn link(bits: u64, delay: Span) -> LinkSpec {
    LinkSpec { rate: Some(Rate::from_bits_per_second(bits)), delay, ..LinkSpec::default() }
}

/// A T1 trunk without distance.
pub fn t1(discipline: DisciplineSpec) -> LinkSpec {
    LinkSpec { framing: Framing::T1_LAPD, discipline, ..link(1_544_000, Span::ZERO) }
}

/// A FIFO of 32 kE.
pub fn hardware_fifo() -> DisciplineSpec {
    DisciplineSpec::fifo(Limit::Bytes(32_768))
}

/// A link between two stations, the same both ways.
pub fn wire(from: &str, to: &str, spec: &LinkSpec) -> Wire {
    Wire {
        name: format!("{from}-{to}"),
        from: from.into(),
        to: to.into(),
        forward: spec.clone().into(),
        backward: spec.clone().into(),
    }
}

/// A host that costs nothing.
pub fn host(name: &str) -> Host {
    Host {
        name: name.into(),
        processor: Processor::default().into(),
        interface: Interface::default().into(),
    }
}

/// Hosts, nodes and links, without traffic.
pub fn scenario(hosts: Vec<Host>, nodes: &[&str], links: Vec<Wire>) -> Scenario {
    Scenario {
        name: "test".into(),
        about: String::new(),
        seed: Seed(1),
        cell: BTreeMap::new(),
        hosts,
        nodes: nodes.iter().map(|&name| Node { name: name.into(), backplane: None }).collect(),
        links,
        traffic: Vec::new(),
        clusters: Vec::new(),
        stop_after: Span::from_secs(10_000),
        media: Vec::new(),
        sample_backlog: None,
        samples: Default::default(),
        mtu: 1500,
    }
}

/// URP with blocks of `block` bytes, `outstanding` at once; `packet` as in the settings.
pub fn urp(block: u16, outstanding: u8, packet: u32) -> Transport {
    Transport::Urp(UrpSettings { block, outstanding, packet, ..UrpSettings::default() })
}

/// One flow from the start.
pub fn traffic(
    name: &str,
    ends: (&str, &str),
    workload: Workload,
    transport: &Transport,
) -> Traffic {
    Traffic {
        name: name.into(),
        workload,
        from: ends.0.into(),
        to: ends.1.into(),
        via: Vec::new(),
        count: 1,
        from_each: Vec::new(),
        transport: transport.clone().into(),
        reply_transport: transport.clone().into(),
        start: Start::At(Span::ZERO),
        stagger: Span::ZERO,
        late: Span::ZERO,
        until: None,
        estimator: None,
        band: 7,
        program: None,
    }
}

/// Messages that come back whole.
pub fn echo(sizes: &[u32]) -> Workload {
    let (sizes, reply) = (sizes.to_vec(), Reply::Echo);
    Workload::Interactive { sizes, repeat: 10, reply, every: Span::ZERO }
}

/// A megabyte in writes of `write` bytes, confirmed.
pub fn bulk(write: u32) -> Workload {
    Workload::Bulk { bytes: Size::from_bytes(1_000_000), repeat: 10, write, confirm: true }
}

/// Two hosts on one link.
pub fn pair(spec: &LinkSpec) -> Scenario {
    scenario(vec![host("a"), host("b")], &[], vec![wire("a", "b", spec)])
}
