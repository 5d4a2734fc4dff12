//! Which relaxations are tried for a traffic: each constraint that the scenario puts on it, with a ladder of
//! realistic steps up to where it is gone.

use crate::constraint::Constraint;
use crate::relax::{self, PRACTICALLY_NOTHING, Relaxation, has_messages, window};
use crate::shorten::rivals;
use std::collections::BTreeSet;
use trunkline_core::{DropCause, Rate};
use trunkline_measure::Run;
use trunkline_path::{DisciplineSpec, LinkSpec};
use trunkline_scenario::{Host, Interface, Processor, Scenario, Traffic, Wire};

/// Windows that were to be had, as user bytes of a block and blocks: the KMC's two (Vande Water 1988 §2.5), Hawley's
/// largest (1989 §4.1), and the largest that URP's numbers and the V10 driver allow.
const WINDOWS: [(u16, u8); 4] = [(252, 3), (1024, 3), (1024, 7), (4096, 7)];

/// A constraint on a traffic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub constraint: Constraint,
    /// Where: a host, a link; empty where there is only one.
    pub place: String,
    /// As it is.
    pub now: String,
    /// Steps, each with what it is called; the last one takes the constraint away.
    pub rungs: Vec<(String, Relaxation)>,
}

/// All of them for the traffic of index `subject`; `run` shows what overflows.
pub(crate) fn candidates(scenario: &Scenario, subject: usize, run: &Run) -> Vec<Candidate> {
    let it = Ground::new(scenario, subject);
    let mut all: Vec<Candidate> = Vec::new();
    all.extend(it.queue());
    all.extend(it.queue_limit(run));
    all.extend(it.window());
    all.extend(it.interface());
    for &host in &it.hosts {
        all.extend(it.processor(host));
        all.extend(it.board(host));
    }
    all.extend(it.trunk_board());
    all.extend(it.backplane());
    all.extend(it.loss());
    all.extend(it.rate());
    all.extend(it.distance());
    all.sort_by_key(|candidate| candidate.constraint);
    all
}

/// What a traffic stands on.
struct Ground<'a> {
    scenario: &'a Scenario,
    subject: usize,
    traffic: &'a Traffic,
    /// Where its flows end, and where they start.
    hosts: BTreeSet<usize>,
    links: BTreeSet<usize>,
    nodes: BTreeSet<usize>,
}

impl<'a> Ground<'a> {
    fn new(scenario: &'a Scenario, subject: usize) -> Ground<'a> {
        let traffic = &scenario.traffic[subject];
        let (mut links, mut nodes, mut hosts) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        let index = |name: &str| scenario.hosts.iter().position(|host| host.name == name);
        for flow in 0..traffic.count {
            hosts.extend(index(traffic.source(flow)));
            // A run has shown that there is a way.
            let Ok(route) = scenario.route(traffic, flow) else { continue };
            for hop in route.there.iter().chain(&route.back) {
                links.insert(hop.link);
                nodes.extend(hop.node);
            }
        }
        hosts.extend(index(&traffic.to));
        Ground { scenario, subject, traffic, hosts, links, nodes }
    }

    fn host(&self, host: usize) -> &'a Host {
        &self.scenario.hosts[host]
    }

    fn hosts_where(&self, holds: impl Fn(&Interface) -> bool) -> Vec<usize> {
        self.hosts.iter().copied().filter(|&host| holds(&self.host(host).interface)).collect()
    }

    fn links_where(&self, holds: impl Fn(&LinkSpec) -> bool) -> Vec<usize> {
        let wire = |link: usize| &self.scenario.links[link];
        let either = |wire: &Wire| holds(&wire.forward) || holds(&wire.backward);
        self.links.iter().copied().filter(|&link| either(wire(link))).collect()
    }

    fn names_of_hosts(&self, hosts: &[usize]) -> String {
        join(hosts.iter().map(|&host| self.host(host).name.as_str()))
    }

    fn names_of_links(&self, links: &[usize]) -> String {
        join(links.iter().map(|&link| self.scenario.links[link].name.as_str()))
    }

    fn queue(&self) -> Option<Candidate> {
        let rivals = rivals(self.scenario, self.subject);
        // What runs for as long as another traffic does cannot be run without it.
        let needed = self.traffic.until.is_some();
        if rivals.is_empty() {
            return None;
        }
        let fifo = |link: &LinkSpec| {
            link.rate.is_some() && matches!(link.discipline, DisciplineSpec::Fifo { .. })
        };
        let links = self.links_where(fifo);
        let names = join(rivals.iter().map(|&at| self.scenario.traffic[at].name.as_str()));
        let mut rungs = Vec::new();
        if !links.is_empty() {
            rungs
                .push(("round robin".to_string(), Relaxation::RoundRobin { links: links.clone() }));
        }
        if !needed {
            rungs.push((format!("without {names}"), Relaxation::Without { traffic: rivals }));
        }
        let now = if links.is_empty() {
            format!("shared with {names}")
        } else {
            format!("fifo, shared with {names}")
        };
        candidate(Constraint::Queue, String::new(), now, rungs)
    }

    fn queue_limit(&self, run: &Run) -> Option<Candidate> {
        let overflows = |link: usize| {
            let directions = run.links.iter().skip(2 * link).take(2);
            directions.map(|link| link.counts.dropped_by(DropCause::QueueLimit)).sum::<u64>() > 0
        };
        let links: Vec<usize> = self.links.iter().copied().filter(|&it| overflows(it)).collect();
        let limits = links.iter().map(|&link| self.scenario.links[link].forward.discipline.limit());
        let now = limits.map(|limit| limit.to_string()).next()?;
        let place = self.names_of_links(&links);
        let rungs = vec![("no limit".into(), Relaxation::QueueLimit { links })];
        candidate(Constraint::QueueLimit, place, now, rungs)
    }

    fn window(&self) -> Option<Candidate> {
        let now = window(&self.traffic.transport)?;
        // The answer's window counts where there is an answer of any length.
        let back =
            window(&self.traffic.reply_transport).filter(|_| has_messages(&self.traffic.workload));
        let least = back.map_or(now, |back| back.min(now));
        let larger = WINDOWS
            .into_iter()
            .filter(|&(block, count)| u32::from(block) * u32::from(count) > least);
        let rung = |(block, outstanding): (u16, u8)| {
            let bytes = u32::from(block) * u32::from(outstanding);
            let traffic = self.subject;
            (format!("{bytes} B"), Relaxation::Window { traffic, block, outstanding })
        };
        let text = match back.filter(|&back| back != now) {
            Some(back) => format!("{now} B (back {back} B)"),
            None => format!("{now} B"),
        };
        candidate(Constraint::Window, String::new(), text, larger.map(rung).collect())
    }

    /// The interface's ways with the host.
    fn interface(&self) -> Vec<Candidate> {
        let parts = [self.requests(), self.split(), self.receive_buffers(), self.memory()];
        parts.into_iter().flatten().collect()
    }

    fn requests(&self) -> Option<Candidate> {
        let hosts = self.hosts_where(|interface| interface.requests.is_some());
        let least = hosts.iter().filter_map(|&host| self.host(host).interface.requests).min()?;
        let place = self.names_of_hosts(&hosts);
        let rung = |requests| Relaxation::Requests { hosts: hosts.clone(), requests };
        let two = (least == 1).then(|| ("two at a time".to_string(), rung(Some(2))));
        let rungs = two.into_iter().chain([("unlimited".to_string(), rung(None))]).collect();
        let now = if least == 1 { "one at a time".into() } else { format!("{least} at a time") };
        candidate(Constraint::Requests, place, now, rungs)
    }

    fn split(&self) -> Option<Candidate> {
        let hosts = self.hosts_where(|interface| !interface.split.is_empty());
        let splits = hosts.iter().flat_map(|&host| &self.host(host).interface.split);
        let pieces: BTreeSet<u32> = splits.map(|split| split.piece).collect();
        let now = format!("pieces of {} B", join(pieces.iter().map(u32::to_string)));
        let place = self.names_of_hosts(&hosts);
        let some = !hosts.is_empty();
        let rungs =
            some.then(|| ("one request for each write".into(), Relaxation::Split { hosts }));
        candidate(Constraint::Split, place, now, rungs.into_iter().collect())
    }

    fn receive_buffers(&self) -> Option<Candidate> {
        let hosts = self.hosts_where(|interface| interface.receive_buffer.is_some());
        let least =
            hosts.iter().filter_map(|&host| self.host(host).interface.receive_buffer).min()?;
        let place = self.names_of_hosts(&hosts);
        // Blocks that gather until a message ends must not wait for their own echo.
        let consumed =
            |host: &usize| self.host(*host).interface.echo == trunkline_scenario::Echo::Consumption;
        let gather = has_messages(&self.traffic.workload) && !hosts.iter().any(consumed);
        let rungs = vec![("unlimited".into(), Relaxation::ReceiveBuffers { hosts, gather })];
        candidate(Constraint::ReceiveBuffers, place, format!("{least} B, one at a time"), rungs)
    }

    fn memory(&self) -> Option<Candidate> {
        let hosts = self.hosts_where(|interface| interface.memory.is_some());
        let least = hosts.iter().filter_map(|&host| self.host(host).interface.memory).min()?;
        let place = self.names_of_hosts(&hosts);
        let rungs = vec![("unlimited".into(), Relaxation::Memory { hosts })];
        candidate(Constraint::Memory, place, format!("{} B", least.bytes()), rungs)
    }

    fn processor(&self, host: usize) -> Option<Candidate> {
        let it = self.host(host);
        let rung = |factor| Relaxation::Processor { host, factor };
        let rungs = match it.processor == Processor::default() {
            true => Vec::new(),
            false => twice_and_free(rung),
        };
        candidate(Constraint::Processor, it.name.clone(), String::new(), rungs)
    }

    fn board(&self, host: usize) -> Option<Candidate> {
        let it = self.host(host);
        let board = &it.interface;
        let ideal = Interface::default();
        let costs = |board: &Interface| (board.send_block, board.receive_block, board.control);
        let rung = |factor| Relaxation::Board { host, factor };
        let rungs = if costs(board) != costs(&ideal) {
            twice_and_free(rung)
        } else if board.programmed.is_some() {
            vec![("with DMA".into(), rung(PRACTICALLY_NOTHING))]
        } else {
            // Two directions that take no time do not get in each other's way.
            Vec::new()
        };
        candidate(Constraint::Board, it.name.clone(), board.name.clone(), rungs)
    }

    fn trunk_board(&self) -> Option<Candidate> {
        let links = self.links_where(|link| link.processor.is_some());
        let place = self.names_of_links(&links);
        let some = !links.is_empty();
        let rungs = some.then(|| ("takes no time".into(), Relaxation::TrunkBoard { links }));
        candidate(Constraint::TrunkBoard, place, String::new(), rungs.into_iter().collect())
    }

    fn backplane(&self) -> Option<Candidate> {
        let limited = |node: &usize| self.scenario.nodes[*node].backplane.is_some();
        let nodes: Vec<usize> = self.nodes.iter().copied().filter(limited).collect();
        let rates = nodes.iter().filter_map(|&node| self.scenario.nodes[node].backplane);
        let slowest = rates.min()?;
        let place = join(nodes.iter().map(|&node| self.scenario.nodes[node].name.as_str()));
        let rungs = vec![("no limit".into(), Relaxation::Backplane { nodes })];
        candidate(Constraint::Backplane, place, slowest.to_string(), rungs)
    }

    fn loss(&self) -> Option<Candidate> {
        let links = self.links_where(impaired);
        let place = self.names_of_links(&links);
        let some = !links.is_empty();
        let rungs = some.then(|| ("none".into(), Relaxation::Loss { links }));
        candidate(Constraint::Loss, place, "impaired".into(), rungs.into_iter().collect())
    }

    fn rate(&self) -> Option<Candidate> {
        let slowest_of = |link: &usize| slowest(&self.scenario.links[*link]);
        let rate = self.links.iter().filter_map(slowest_of).min()?;
        let links: Vec<usize> =
            self.links.iter().copied().filter(|it| slowest_of(it) == Some(rate)).collect();
        let rung = |factor: u64| {
            (format!("{factor} times"), Relaxation::Rate { links: links.clone(), factor })
        };
        let place = self.names_of_links(&links);
        candidate(Constraint::Rate, place, rate.to_string(), vec![rung(2), rung(10)])
    }

    fn distance(&self) -> Option<Candidate> {
        let links =
            self.links_where(|link| !link.delay.is_zero() || link.impairments.jitter.is_some());
        let longest = |link: &usize| {
            let wire = &self.scenario.links[*link];
            wire.forward.delay.max(wire.backward.delay)
        };
        let total: trunkline_core::Span = links.iter().map(longest).sum();
        let some = !links.is_empty();
        let rungs = some.then(|| ("hardly any".into(), Relaxation::Distance { links }));
        candidate(
            Constraint::Distance,
            String::new(),
            format!("{total} one way"),
            rungs.into_iter().collect(),
        )
    }
}

fn candidate(
    constraint: Constraint,
    place: String,
    now: String,
    rungs: Vec<(String, Relaxation)>,
) -> Option<Candidate> {
    (!rungs.is_empty()).then_some(Candidate { constraint, place, now, rungs })
}

fn twice_and_free(rung: impl Fn(u64) -> Relaxation) -> Vec<(String, Relaxation)> {
    vec![("twice as fast".into(), rung(2)), ("takes no time".into(), rung(PRACTICALLY_NOTHING))]
}

/// Does a line do anything to packets that [`Relaxation::Loss`] takes away?
fn impaired(link: &LinkSpec) -> bool {
    let mut better = link.clone();
    relax::perfect(&mut better);
    better != *link
}

fn slowest(wire: &Wire) -> Option<Rate> {
    [wire.forward.rate, wire.backward.rate].into_iter().flatten().min()
}

fn join<T: AsRef<str>>(words: impl IntoIterator<Item = T>) -> String {
    let words: Vec<T> = words.into_iter().collect();
    let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
    words.join(", ")
}
