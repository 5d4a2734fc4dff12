//! Relaxations: functions from a scenario to one in which a single thing is better. What a change does
//! not name it leaves as it is; `docs/explain.md` lists them.

use crate::cluster::Ease;
use crate::media::MediumEase;
use crate::windows::{begin_with, deepen, widen};
use trunkline_core::{Rate, Shared, Span};
use trunkline_path::discipline::{DrrSettings, RoundRobinSettings};
use trunkline_path::impairment::{ImpairmentSpec, Setting};
use trunkline_path::{Change, DisciplineSpec, Limit, LinkSpec};
use trunkline_scenario::{
    Cost, Disturbance, Host, Interface, Listed, Processor, Returns, Scenario, Start, Transport,
    Workload,
};

/// The divisor of a relaxation if nothing at all would let a timed test go on for ever without time
/// passing.
pub const PRACTICALLY_NOTHING: u64 = 1000;
/// Bytes of one channel's turn if a relaxation puts round robin in (Hawley 1989 §1.2).
const QUANTUM: u32 = 64;
/// User bytes of an ATM cell.
const CELL: u64 = 48;
/// More than ever waits.
pub(crate) const NO_LIMIT: u64 = 1 << 30;

/// One direction of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Line {
    /// Index into the scenario's links.
    pub link: usize,
    /// Whether it is the one from the link's second end to its first.
    pub reversed: bool,
}

impl Line {
    /// What the scenario says of it.
    pub fn spec(self, scenario: &Scenario) -> &LinkSpec {
        let wire = &scenario.links[self.link];
        if self.reversed { &wire.backward } else { &wire.forward }
    }

    /// The other direction of the link.
    pub fn twin(self) -> Line {
        Line { reversed: !self.reversed, ..self }
    }
}

/// One thing made better. Hosts, nodes, links, media, clusters and traffics are named by their index in the scenario.
#[derive(Debug, Clone, PartialEq)]
pub enum Relaxation {
    /// The window of a traffic that speaks URP, in both directions if it is smaller: blocks of so many bytes, so
    /// many of them.
    Window {
        /// The traffic.
        traffic: usize,
        /// User bytes of a block.
        block: u16,
        /// Blocks outstanding.
        outstanding: u8,
    },
    /// The buffers of a traffic that speaks TCP, at both ends if they are smaller, with the window scaling that they
    /// need.
    Buffers {
        /// The traffic.
        traffic: usize,
        /// Bytes.
        bytes: u64,
    },
    /// The first window of a traffic that speaks TCP, at both ends if it is smaller.
    InitialWindow {
        /// The traffic.
        traffic: usize,
        /// Segments.
        segments: u32,
    },
    /// A protocol that is chosen by name with other settings, or another such protocol; at both ends, but for one
    /// with settings of its own.
    Settings {
        /// The traffic.
        traffic: usize,
        /// The protocol and its settings.
        listed: Listed,
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
        /// Whether blocks gather until a message ends.
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
        /// The lines.
        lines: Vec<Line>,
        /// How many times.
        factor: u64,
    },
    /// Trunk boards that take no time.
    TrunkBoard {
        /// The lines.
        lines: Vec<Line>,
    },
    /// Backplanes without limit.
    Backplane {
        /// The nodes.
        nodes: Vec<usize>,
    },
    /// Round robin by channel in place of first in, first out.
    RoundRobin {
        /// The lines.
        lines: Vec<Line>,
    },
    /// These traffics do not exist. Who waited for them starts at once.
    Without {
        /// The traffics.
        traffic: Vec<usize>,
    },
    /// Queues that hold more: so many bytes, or whatever comes, and then without a rule that drops before they are
    /// full.
    QueueLimit {
        /// The lines.
        lines: Vec<Line>,
        /// Bytes; `None` for no limit.
        bytes: Option<u64>,
    },
    /// First in, first out where a discipline holds a rate.
    Shaper {
        /// The lines.
        lines: Vec<Line>,
    },
    /// Lines that stay as their schedules have them at the start.
    Steady {
        /// The lines.
        lines: Vec<Line>,
    },
    /// Lines that neither lose, damage, duplicate nor reorder.
    Loss {
        /// The lines.
        lines: Vec<Line>,
    },
    /// Lines and media a thousandth as long, without jitter.
    Distance {
        /// The lines.
        lines: Vec<Line>,
        /// The media.
        media: Vec<usize>,
    },
    /// Media with one thing better.
    Media {
        /// The media.
        media: Vec<usize>,
        /// What is better.
        ease: MediumEase,
    },
    /// A cluster with one thing better.
    Cluster {
        /// The cluster.
        cluster: usize,
        /// What is better.
        ease: Ease,
    },
    /// All of these.
    Several(Vec<Relaxation>),
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
            Relaxation::Buffers { traffic, bytes } => {
                let traffic = &mut it.traffic[*traffic];
                deepen(&mut traffic.transport, *bytes);
                deepen(&mut traffic.reply_transport, *bytes);
            }
            Relaxation::InitialWindow { traffic, segments } => {
                let traffic = &mut it.traffic[*traffic];
                begin_with(&mut traffic.transport, *segments);
                begin_with(&mut traffic.reply_transport, *segments);
            }
            Relaxation::Settings { traffic, listed } => {
                let traffic = &mut it.traffic[*traffic];
                let follows = traffic.reply_transport == traffic.transport
                    || !traffic.reply_transport.understands(&Transport::Listed(listed.clone()));
                traffic.transport = Transport::Listed(listed.clone()).into();
                if follows {
                    traffic.reply_transport = traffic.transport.clone();
                }
            }
            Relaxation::Without { traffic } => remove(it, traffic),
            Relaxation::Cluster { cluster, ease } => ease.apply(&mut it.clusters[*cluster]),
            Relaxation::Several(list) => list.iter().for_each(|one| one.change(it)),
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
            Relaxation::Rate { lines, .. }
            | Relaxation::TrunkBoard { lines }
            | Relaxation::RoundRobin { lines }
            | Relaxation::QueueLimit { lines, .. }
            | Relaxation::Shaper { lines }
            | Relaxation::Steady { lines }
            | Relaxation::Loss { lines } => self.change_lines(it, lines),
            Relaxation::Distance { lines, media } => {
                self.change_lines(it, lines);
                media.iter().for_each(|&at| MediumEase::Distance.apply(&mut it.media[at].spec));
            }
            Relaxation::Media { media, ease } => {
                media.iter().for_each(|&at| ease.apply(&mut it.media[at].spec));
            }
        }
    }

    fn change_lines(&self, it: &mut Scenario, lines: &[Line]) {
        for &Line { link, reversed } in lines {
            let wire = &mut it.links[link];
            self.change_line(if reversed { &mut wire.backward } else { &mut wire.forward });
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

    /// What concerns lines.
    fn change_line(&self, link: &mut LinkSpec) {
        match self {
            Relaxation::Rate { factor, .. } => speed_up(link, *factor),
            Relaxation::TrunkBoard { .. } => link.processor = None,
            Relaxation::RoundRobin { .. } => take_turns(link),
            Relaxation::QueueLimit { bytes: None, .. } => unlimit(link),
            Relaxation::QueueLimit { bytes: Some(bytes), .. } => enlarge(link, *bytes),
            Relaxation::Shaper { .. } if link.discipline.assumptions().cap.is_some() => {
                link.discipline = DisciplineSpec::fifo(link.discipline.limit());
            }
            Relaxation::Steady { .. } => {
                link.schedule.steps.retain(|(at, _)| at.is_zero());
                link.schedule.repeat = None;
            }
            Relaxation::Loss { .. } => perfect(link),
            Relaxation::Distance { .. } => shorten(link),
            _ => {}
        }
    }
}

fn receive_freely(interface: &mut Interface, gather: bool) {
    interface.receive_buffer = None;
    if gather {
        interface.returns = Returns::Message;
    }
}

/// A share of `span`: nothing only of nothing.
pub(crate) fn part(span: Span, factor: u64) -> Span {
    if span.is_zero() { span } else { span.scaled(1, factor).max(Span::from_nanos(1)) }
}

fn cheaper(cost: Cost, factor: u64) -> Cost {
    Cost { fixed: part(cost.fixed, factor), per_byte: cost.per_byte.scaled(1, factor) }
}

fn quicken(host: &mut Host, factor: u64) {
    let now = &*host.processor;
    host.processor = Shared::from(Processor {
        write: cheaper(now.write, factor),
        read: cheaper(now.read, factor),
        request: cheaper(now.request, factor),
        interrupt: cheaper(now.interrupt, factor),
        send_block: cheaper(now.send_block, factor),
        receive_block: cheaper(now.receive_block, factor),
        control: part(now.control, factor),
        timer: part(now.timer, factor),
        disturbance: now.disturbance.map(|it| Disturbance { mean: part(it.mean, factor), ..it }),
        unsteady: part(now.unsteady, factor),
    });
}

fn quicken_board(interface: &mut Interface, factor: u64) {
    interface.send_block = cheaper(interface.send_block, factor);
    interface.receive_block = cheaper(interface.receive_block, factor);
    interface.control = part(interface.control, factor);
    if factor >= PRACTICALLY_NOTHING {
        interface.half_duplex = false;
        interface.deaf = None;
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
    if link.discipline.is_fifo() {
        let limit = link.discipline.limit();
        link.discipline = RoundRobinSettings { limit, quantum: QUANTUM }.into();
    }
}

fn unlimit(link: &mut LinkSpec) {
    let limit = Limit::Bytes(NO_LIMIT);
    let assumed = link.discipline.assumptions();
    // A policer's rate is no limit of its queue.
    if assumed.early.is_some() && assumed.cap.is_none() {
        link.discipline = match assumed.quantum() {
            Some(quantum) => DrrSettings { limit, quantum }.into(),
            None => DisciplineSpec::fifo(limit),
        };
    }
    // Only cells in place of bytes could be refused, and what counts cells is a fifo now.
    let _ = link.discipline.set_limit(limit);
    link.schedule.steps.retain(|(_, change)| !matches!(change, Change::Limit(_)));
}

fn enlarge(link: &mut LinkSpec, bytes: u64) {
    // Cells stay cells, with what holds as many bytes.
    let limit = match link.discipline.limit() {
        Limit::Cells(_) => Limit::Cells(bytes.div_ceil(CELL)),
        _ => Limit::Bytes(bytes),
    };
    let _ = link.discipline.set_limit(limit);
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

/// Whether this workload's messages end, so that an interface can gather them.
pub(crate) fn has_messages(workload: &Workload) -> bool {
    matches!(workload, Workload::Interactive { .. } | Workload::TimedEcho { .. })
}
