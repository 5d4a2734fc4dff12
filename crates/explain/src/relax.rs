//! Relaxations: functions from a scenario to one in which a single thing is better. What a change does
//! not name it leaves as it is; `docs/explain.md` lists them.

use trunkline_core::{Rate, Span};
use trunkline_path::impairment::{ImpairmentSpec, Setting};
use trunkline_path::{Change, DisciplineSpec, Limit, LinkSpec};
use trunkline_scenario::{
    Cost, Disturbance, Host, Interface, Processor, Returns, Scenario, Start, Transport,
    UrpSettings, Workload,
};

/// What a relaxation divides by where nothing at all would let a timed test go on for ever without time
/// passing.
pub const PRACTICALLY_NOTHING: u64 = 1000;
/// Bytes of one channel's turn where a relaxation puts round robin in (Hawley 1989 §1.2).
const QUANTUM: u32 = 64;
/// More than ever waits.
const NO_LIMIT: u64 = 1 << 30;

/// One thing made better. Hosts, nodes, links and traffics are named by their index in the scenario.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Relaxation {
    /// A traffic's window, in both directions where it is smaller: blocks of so many bytes, so many of them.
    Window {
        /// The traffic.
        traffic: usize,
        /// User bytes of a block.
        block: u16,
        /// Blocks outstanding.
        outstanding: u8,
    },
    /// Requests that the interfaces of these hosts take; `None` for no limit.
    Requests {
        /// The hosts.
        hosts: Vec<usize>,
        /// How many.
        requests: Option<u32>,
    },
    /// A system write is one request on these hosts.
    Split {
        /// The hosts.
        hosts: Vec<usize>,
    },
    /// Receive buffers without limit; `gather` for one interrupt for each message.
    ReceiveBuffers {
        /// The hosts.
        hosts: Vec<usize>,
        /// Do blocks gather until a message ends?
        gather: bool,
    },
    /// Interfaces with memory without limit.
    Memory {
        /// The hosts.
        hosts: Vec<usize>,
    },
    /// All costs of a host's processor divided.
    Processor {
        /// The host.
        host: usize,
        /// By what.
        factor: u64,
    },
    /// All costs of a host's interface divided; with [`PRACTICALLY_NOTHING`] it also works in both directions at
    /// once and moves data by itself.
    Board {
        /// The host.
        host: usize,
        /// By what.
        factor: u64,
    },
    /// Lines so many times as fast.
    Rate {
        /// The links.
        links: Vec<usize>,
        /// How many times.
        factor: u64,
    },
    /// Trunk boards that take no time.
    TrunkBoard {
        /// The links.
        links: Vec<usize>,
    },
    /// Backplanes without limit.
    Backplane {
        /// The nodes.
        nodes: Vec<usize>,
    },
    /// Round robin by channel in place of first in, first out.
    RoundRobin {
        /// The links.
        links: Vec<usize>,
    },
    /// These traffics do not exist. Who waited for them starts at once.
    Without {
        /// The traffics.
        traffic: Vec<usize>,
    },
    /// Queues that never overflow.
    QueueLimit {
        /// The links.
        links: Vec<usize>,
    },
    /// Lines that neither lose, damage, duplicate nor reorder.
    Loss {
        /// The links.
        links: Vec<usize>,
    },
    /// Lines a thousandth as long, without jitter.
    Distance {
        /// The links.
        links: Vec<usize>,
    },
}

impl Relaxation {
    /// The scenario with this one thing better.
    pub fn apply(&self, scenario: &Scenario) -> Scenario {
        let mut better = scenario.clone();
        self.change(&mut better);
        better
    }

    fn change(&self, it: &mut Scenario) {
        match self {
            Relaxation::Window { traffic, block, outstanding } => {
                let traffic = &mut it.traffic[*traffic];
                widen(&mut traffic.transport, *block, *outstanding);
                widen(&mut traffic.reply_transport, *block, *outstanding);
            }
            Relaxation::Without { traffic } => remove(it, traffic),
            Relaxation::Processor { host, factor } => quicken(&mut it.hosts[*host], *factor),
            Relaxation::Backplane { nodes } => {
                nodes.iter().for_each(|&node| it.nodes[node].backplane = None);
            }
            Relaxation::Requests { hosts, .. }
            | Relaxation::Split { hosts }
            | Relaxation::ReceiveBuffers { hosts, .. }
            | Relaxation::Memory { hosts } => {
                hosts.iter().for_each(|&host| self.change_interface(&mut it.hosts[host].interface));
            }
            Relaxation::Board { host, .. } => {
                self.change_interface(&mut it.hosts[*host].interface);
            }
            Relaxation::Rate { links, .. }
            | Relaxation::TrunkBoard { links }
            | Relaxation::RoundRobin { links }
            | Relaxation::QueueLimit { links }
            | Relaxation::Loss { links }
            | Relaxation::Distance { links } => {
                for &link in links {
                    self.change_link(&mut it.links[link].forward);
                    self.change_link(&mut it.links[link].backward);
                }
            }
        }
    }

    /// What concerns interfaces.
    fn change_interface(&self, interface: &mut Interface) {
        match self {
            Relaxation::Requests { requests, .. } if interface.requests.is_some() => {
                interface.requests = *requests;
            }
            Relaxation::Split { .. } => interface.split.clear(),
            Relaxation::ReceiveBuffers { gather, .. } => receive_freely(interface, *gather),
            Relaxation::Memory { .. } => interface.memory = None,
            Relaxation::Board { factor, .. } => quicken_board(interface, *factor),
            _ => {}
        }
    }

    /// What concerns links.
    fn change_link(&self, link: &mut LinkSpec) {
        match self {
            Relaxation::Rate { factor, .. } => speed_up(link, *factor),
            Relaxation::TrunkBoard { .. } => link.processor = None,
            Relaxation::RoundRobin { .. } => take_turns(link),
            Relaxation::QueueLimit { .. } => unlimit(link),
            Relaxation::Loss { .. } => perfect(link),
            Relaxation::Distance { .. } => shorten(link),
            _ => {}
        }
    }
}

/// User bytes of a transport's window; `None` where it has none.
pub fn window(transport: &Transport) -> Option<u32> {
    match transport {
        Transport::Urp(urp) => Some(u32::from(urp.block) * u32::from(urp.outstanding)),
        Transport::Tcp(tcp) => {
            tcp.window.map(|window| u32::try_from(window.bytes()).unwrap_or(u32::MAX))
        }
        Transport::Datagram | Transport::Udp => None,
    }
}

fn widen(transport: &mut Transport, block: u16, outstanding: u8) {
    let wanted = u32::from(block) * u32::from(outstanding);
    if window(transport).is_some_and(|now| now < wanted)
        && let Transport::Urp(urp) = transport
    {
        *urp = UrpSettings { block, outstanding, ..urp.clone() };
    }
}

fn receive_freely(interface: &mut Interface, gather: bool) {
    interface.receive_buffer = None;
    if gather {
        interface.returns = Returns::Message;
    }
}

/// A share of `span`: nothing only of nothing.
fn part(span: Span, factor: u64) -> Span {
    if span.is_zero() { span } else { span.scaled(1, factor).max(Span::from_nanos(1)) }
}

fn cheaper(cost: Cost, factor: u64) -> Cost {
    Cost { fixed: part(cost.fixed, factor), per_byte: cost.per_byte.scaled(1, factor) }
}

fn quicken(host: &mut Host, factor: u64) {
    let now = &host.processor;
    host.processor = Processor {
        write: cheaper(now.write, factor),
        read: cheaper(now.read, factor),
        request: cheaper(now.request, factor),
        interrupt: cheaper(now.interrupt, factor),
        send_block: cheaper(now.send_block, factor),
        receive_block: cheaper(now.receive_block, factor),
        control: part(now.control, factor),
        disturbance: now.disturbance.map(|it| Disturbance { mean: part(it.mean, factor), ..it }),
        unsteady: part(now.unsteady, factor),
    };
}

fn quicken_board(interface: &mut Interface, factor: u64) {
    interface.send_block = cheaper(interface.send_block, factor);
    interface.receive_block = cheaper(interface.receive_block, factor);
    interface.control = part(interface.control, factor);
    if factor >= PRACTICALLY_NOTHING {
        interface.half_duplex = false;
        interface.programmed = None;
    }
}

fn faster(rate: Rate, factor: u64) -> Rate {
    Rate::from_bits_per_second(rate.bits_per_second().saturating_mul(factor))
}

fn speed_up(link: &mut LinkSpec, factor: u64) {
    link.rate = link.rate.map(|rate| faster(rate, factor));
    for (_, change) in &mut link.schedule.steps {
        if let Change::Rate(Some(rate)) = change {
            *rate = faster(*rate, factor);
        }
    }
}

fn take_turns(link: &mut LinkSpec) {
    if let DisciplineSpec::Fifo { limit } = link.discipline {
        link.discipline = DisciplineSpec::RoundRobin { limit, quantum: QUANTUM };
    }
}

fn unlimit(link: &mut LinkSpec) {
    let limit = match link.discipline {
        DisciplineSpec::Epd { .. } => Limit::Cells(NO_LIMIT),
        _ => Limit::Bytes(NO_LIMIT),
    };
    // Only cells in place of bytes could be refused, and the unit fits.
    let _ = link.discipline.set_limit(limit);
    link.schedule.steps.retain(|(_, change)| !matches!(change, Change::Limit(_)));
}

/// Without impairments but jitter, which belongs to distance.
fn unimpaired(spec: &ImpairmentSpec) -> ImpairmentSpec {
    ImpairmentSpec { jitter: spec.jitter, ..ImpairmentSpec::default() }
}

/// Without what [`Relaxation::Loss`] takes away.
pub(crate) fn perfect(link: &mut LinkSpec) {
    link.impairments = unimpaired(&link.impairments);
    let kept = |change: &Change| match change {
        Change::Setting(setting) => matches!(setting, Setting::Jitter(_)),
        _ => true,
    };
    link.schedule.steps.retain(|(_, change)| kept(change));
    for (_, change) in &mut link.schedule.steps {
        if let Change::Impairments(spec) = change {
            *spec = unimpaired(spec);
        }
    }
}

fn shorten(link: &mut LinkSpec) {
    link.delay = part(link.delay, PRACTICALLY_NOTHING);
    link.impairments.jitter = None;
    let jitter = |change: &Change| matches!(change, Change::Setting(Setting::Jitter(_)));
    link.schedule.steps.retain(|(_, change)| !jitter(change));
    for (_, change) in &mut link.schedule.steps {
        match change {
            Change::Delay(delay) => *delay = part(*delay, PRACTICALLY_NOTHING),
            Change::Impairments(spec) => spec.jitter = None,
            _ => {}
        }
    }
}

/// Takes traffics out, and what refers to them.
pub(crate) fn remove(it: &mut Scenario, gone: &[usize]) {
    let mut index = 0;
    let gone_names: Vec<String> =
        gone.iter().filter_map(|&at| it.traffic.get(at)).map(|it| it.name.clone()).collect();
    it.traffic.retain(|_| {
        index += 1;
        !gone.contains(&(index - 1))
    });
    for traffic in &mut it.traffic {
        let waits_for = match &traffic.start {
            Start::AfterBytes(other, _) | Start::AfterEnd(other) => Some(other),
            Start::At(_) => None,
        };
        if waits_for.is_some_and(|other| gone_names.contains(other)) {
            traffic.start = Start::At(Span::ZERO);
        }
        if traffic.until.as_ref().is_some_and(|other| gone_names.contains(other)) {
            traffic.until = None;
        }
    }
}

/// Do this workload's messages end, so that an interface can gather them?
pub(crate) fn has_messages(workload: &Workload) -> bool {
    matches!(workload, Workload::Interactive { .. } | Workload::TimedEcho { .. })
}
