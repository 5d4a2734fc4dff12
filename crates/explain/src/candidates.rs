//! The relaxations that are tried for a traffic: each constraint that the scenario puts on it, with a ladder of
//! realistic steps up to its absence.

use crate::constraint::Constraint;
use crate::focus::{leader, rivals};
use crate::relax::{Line, PRACTICALLY_NOTHING, Relaxation, has_messages};
use crate::waterfall;
use crate::windows::{initial_window, receive_buffer, send_buffer, window};
use std::collections::BTreeSet;
use trunkline_core::Span;
use trunkline_engine::Run;
use trunkline_path::LinkSpec;
use trunkline_scenario::{
    Crossing, Host, Interface, Lane, Listed, Network, Processor, Scenario, TcpSettings, Traffic,
    Transport, Way, Workload,
};
use trunkline_transport::restraint::{Bounds, Step};

/// Windows that were to be had, as user bytes of a block and blocks: the KMC's two (Vande Water 1988 §2.5), Hawley's
/// largest (1989 §4.1), and the largest that URP's numbers and the V10 driver allow.
const WINDOWS: [(u16, u8); 4] = [(252, 3), (1024, 3), (1024, 7), (4096, 7)];

/// Windows of TCP: the largest without scaling (RFC 7323), and fourfold from there to the largest of all.
const BUFFERS: [u64; 8] =
    [65_535, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20, 256 << 20, 1 << 30];
/// Bytes under way that are taken to be enough if it is not known what a round trip holds.
const UNKNOWN: u64 = 64 << 20;
/// First windows of TCP: that of RFC 6928, and larger ones.
const FIRST_WINDOWS: [u32; 3] = [10, 40, 160];

/// A constraint on a traffic.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Candidate {
    pub constraint: Constraint,
    /// The host or the link; empty if there is only one.
    pub place: String,
    /// As it is.
    pub now: String,
    /// Steps, each with what it is called; the last one takes the constraint away.
    pub rungs: Vec<(String, Relaxation)>,
}

/// All of them for the traffic of index `subject`; `run` shows what overflows.
pub(crate) fn candidates(scenario: &Scenario, subject: usize, run: &Run) -> Vec<Candidate> {
    let it = Ground::new(scenario, subject, run);
    let mut all: Vec<Candidate> = Vec::new();
    all.extend(it.queue());
    all.extend(it.queue_limit());
    all.extend(it.station_limit());
    all.extend(it.shaper());
    all.extend(it.window());
    all.extend(it.pace());
    all.extend(it.initial_window());
    all.extend(it.interface());
    for &host in &it.hosts {
        all.extend(it.processor(host));
        all.extend(it.board(host));
    }
    all.extend(it.trunk_board());
    all.extend(it.backplane());
    all.extend(it.turns());
    all.extend(it.medium_rate());
    all.extend(it.schedule());
    all.extend(it.loss());
    all.extend(it.ack_path());
    all.extend(it.rate());
    all.extend(it.distance());
    all.sort_by_key(|candidate| candidate.constraint);
    all
}

/// What a traffic stands on.
pub(crate) struct Ground<'a> {
    pub scenario: &'a Scenario,
    pub subject: usize,
    pub traffic: &'a Traffic,
    pub run: &'a Run,
    /// The hosts at which its flows end, and at which they start.
    pub hosts: BTreeSet<usize>,
    /// The lines that its data cross.
    pub data: BTreeSet<Line>,
    /// The lines that answers alone cross.
    pub answers: BTreeSet<Line>,
    /// The nodes with a backplane that packets cross.
    pub backplanes: BTreeSet<usize>,
    /// The shared media that its packets cross.
    pub media: BTreeSet<usize>,
    /// The longest way there and back, without any waiting.
    pub round_trip: Span,
}

impl<'a> Ground<'a> {
    fn new(scenario: &'a Scenario, subject: usize, run: &'a Run) -> Ground<'a> {
        let traffic = &scenario.traffic[subject];
        let mut it = Ground {
            scenario,
            subject,
            traffic,
            run,
            hosts: BTreeSet::new(),
            data: BTreeSet::new(),
            answers: BTreeSet::new(),
            backplanes: BTreeSet::new(),
            media: BTreeSet::new(),
            round_trip: Span::ZERO,
        };
        // A run has shown that there are ways.
        if let Ok(network) = Network::of(scenario) {
            let own = network.ways().iter().filter(|way| way.traffic == subject);
            own.for_each(|way| it.add(&network, way));
        }
        it.answers = it.answers.difference(&it.data).copied().collect();
        it
    }

    /// Adds the way of a flow. Messages are answered by messages, and datagrams by nothing.
    fn add(&mut self, network: &Network<'_>, way: &Way) {
        self.hosts.extend([way.from, way.to]);
        let line = |it: &Crossing| match network.lanes()[it.lane] {
            Lane::Link { index, reversed, .. } => Some(Line { link: index, reversed }),
            Lane::Station { .. } | Lane::Backplane { .. } => None,
        };
        self.data.extend(way.there.iter().filter_map(line));
        if has_messages(&self.traffic.workload) {
            self.data.extend(way.back.iter().filter_map(line));
        } else if !matches!(self.traffic.workload, Workload::Paced { .. }) {
            self.answers.extend(way.back.iter().filter_map(line));
        }
        let crossed = || way.there.iter().chain(&way.back);
        self.backplanes.extend(crossed().filter_map(|it| match network.lanes()[it.lane] {
            Lane::Backplane { index, .. } => Some(index),
            Lane::Link { .. } | Lane::Station { .. } => None,
        }));
        self.media.extend(crossed().filter_map(|it| match network.lanes()[it.lane] {
            Lane::Station { index, .. } => Some(index),
            Lane::Link { .. } | Lane::Backplane { .. } => None,
        }));
        let way = crossed().filter_map(line).map(|line| line.spec(self.scenario).delay).sum();
        self.round_trip = self.round_trip.max(way);
    }

    /// Every line that packets of the traffic cross.
    pub fn lines(&self) -> Vec<Line> {
        self.data.union(&self.answers).copied().collect()
    }

    pub fn spec(&self, line: Line) -> &'a LinkSpec {
        line.spec(self.scenario)
    }

    fn host(&self, host: usize) -> &'a Host {
        &self.scenario.hosts[host]
    }

    fn hosts_where(&self, holds: impl Fn(&Interface) -> bool) -> Vec<usize> {
        self.hosts.iter().copied().filter(|&host| holds(&self.host(host).interface)).collect()
    }

    /// Of `lines` those of which something holds.
    pub fn those(
        &self,
        lines: &BTreeSet<Line>,
        holds: impl Fn(Line, &LinkSpec) -> bool,
    ) -> Vec<Line> {
        lines.iter().copied().filter(|&line| holds(line, self.spec(line))).collect()
    }

    fn names_of_hosts(&self, hosts: &[usize]) -> String {
        join(hosts.iter().map(|&host| self.host(host).name.as_str()))
    }

    pub fn names_of_lines(&self, lines: &[Line]) -> String {
        let links: BTreeSet<usize> = lines.iter().map(|line| line.link).collect();
        join(links.iter().map(|&link| self.scenario.links[link].name.as_str()))
    }

    fn queue(&self) -> Option<Candidate> {
        let rivals = rivals(self.scenario, self.subject);
        if rivals.is_empty() {
            return None;
        }
        let lines: Vec<Line> =
            self.lines().into_iter().filter(|&it| self.takes_turns(it)).collect();
        let names = self.names_of_traffic(&rivals);
        let mut rungs = Vec::new();
        if !lines.is_empty() {
            rungs
                .push(("round robin".to_string(), Relaxation::RoundRobin { lines: lines.clone() }));
        }
        // What runs for as long as another traffic does cannot be run without it.
        let leader = leader(self.scenario, self.subject);
        let others: Vec<usize> = rivals.into_iter().filter(|&rival| rival != leader).collect();
        if !others.is_empty() {
            let to = format!("without {}", self.names_of_traffic(&others));
            rungs.push((to, Relaxation::Without { traffic: others }));
        }
        let fifo = if lines.is_empty() { "" } else { "fifo, " };
        candidate(Constraint::Queue, String::new(), format!("{fifo}shared with {names}"), rungs)
    }

    fn takes_turns(&self, line: Line) -> bool {
        let spec = self.spec(line);
        spec.rate.is_some() && spec.discipline.is_fifo()
    }

    fn names_of_traffic(&self, traffic: &[usize]) -> String {
        join(traffic.iter().map(|&at| self.scenario.traffic[at].name.as_str()))
    }

    fn window(&self) -> Option<Candidate> {
        match (&*self.traffic.transport, &*self.traffic.reply_transport) {
            (Transport::Urp(_), _) => self.blocks(),
            (Transport::Tcp(ours), Transport::Tcp(theirs)) => self.buffers(ours, theirs),
            _ => self.restrained(Bounds::Window, Constraint::Window),
        }
    }

    fn pace(&self) -> Option<Candidate> {
        self.restrained(Bounds::Rate, Constraint::Pace)
    }

    /// What a protocol that is chosen by name says that its settings hold back.
    fn restrained(&self, bounds: Bounds, constraint: Constraint) -> Option<Candidate> {
        let Transport::Listed(listed) = &*self.traffic.transport else { return None };
        let restraints = (listed.entry.restraints)(&listed.values, self.enough());
        let found = restraints.into_iter().find(|it| it.bounds == bounds)?;
        let rung = |Step { to, entry, values }| {
            let traffic = self.subject;
            (to, Relaxation::Settings { traffic, listed: Listed { entry, values } })
        };
        let rungs = found.steps.into_iter().map(rung).collect();
        candidate(constraint, String::new(), found.now, rungs)
    }

    /// The window of URP.
    fn blocks(&self) -> Option<Candidate> {
        let now = window(&self.traffic.transport)?;
        // The answer's window counts if there is an answer of any length.
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

    /// The buffers of TCP: what the sender keeps and what the receiver takes. The ladder ends with the first step that
    /// holds twice what the line carries in a round trip, if that is known.
    fn buffers(&self, ours: &TcpSettings, theirs: &TcpSettings) -> Option<Candidate> {
        let way = |from: &TcpSettings, to: &TcpSettings| send_buffer(from).min(receive_buffer(to));
        let there = way(ours, theirs);
        let back = has_messages(&self.traffic.workload).then(|| way(theirs, ours));
        let least = back.map_or(there, |back| back.min(there));
        let enough = self.enough();
        let larger = BUFFERS.into_iter().filter(|&bytes| bytes > least);
        let too_much =
            larger.clone().position(|bytes| bytes >= enough).map_or(usize::MAX, |at| at + 1);
        let rung =
            |bytes: u64| (binary(bytes), Relaxation::Buffers { traffic: self.subject, bytes });
        let rungs = larger.take(too_much).map(rung).collect();
        let sides = [("sender", send_buffer(ours)), ("receiver", receive_buffer(theirs))];
        let text = match back.filter(|&back| back != there) {
            Some(back) => format!("{} (back {})", binary(there), binary(back)),
            None if sides[0].1 == sides[1].1 => binary(there),
            None => {
                let side = sides.iter().min_by_key(|side| side.1).map_or("", |side| side.0);
                format!("{} of the {side}", binary(there))
            }
        };
        candidate(Constraint::Window, String::new(), text, rungs)
    }

    /// Bytes under way that are taken to be enough: twice what the slowest line carries in a round trip.
    fn enough(&self) -> u64 {
        self.in_a_round_trip().map_or(UNKNOWN, |bytes| 2 * bytes)
    }

    /// Bytes that the slowest line or medium carries in a round trip.
    fn in_a_round_trip(&self) -> Option<u64> {
        let lines = self.data.iter().filter_map(|&line| self.spec(line).rate);
        let media = self.media.iter().filter_map(|&at| self.scenario.media[at].spec.rate);
        Some(lines.chain(media).min()?.bytes_in(self.round_trip + self.on_media()))
    }

    /// What a round trip over media takes: only the run tells how long a turn is waited for. It is what a block took there and its
    /// answer back, if that took as long.
    fn on_media(&self) -> Span {
        let Some(run) = self.run.traffic(&self.traffic.name).filter(|_| !self.media.is_empty())
        else {
            return Span::ZERO;
        };
        let of_blocks: Span = waterfall::of_blocks(self.run, run).iter().map(|bar| bar.span).sum();
        of_blocks.scaled(2, 1)
    }

    fn initial_window(&self) -> Option<Candidate> {
        let (Transport::Tcp(ours), Transport::Tcp(theirs)) =
            (&*self.traffic.transport, &*self.traffic.reply_transport)
        else {
            return None;
        };
        let back = has_messages(&self.traffic.workload).then(|| initial_window(theirs));
        let least = back.unwrap_or(u32::MAX).min(initial_window(ours));
        let rung = |segments| {
            let relaxation = Relaxation::InitialWindow { traffic: self.subject, segments };
            (format!("{segments} segments"), relaxation)
        };
        let rungs = FIRST_WINDOWS.into_iter().filter(|&it| it > least).map(rung).collect();
        let plural = if least == 1 { "" } else { "s" };
        let now = format!("{least} segment{plural}");
        candidate(Constraint::InitialWindow, String::new(), now, rungs)
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
        let rungs = match *it.processor == Processor::default() {
            true => Vec::new(),
            false => twice_and_free(rung),
        };
        candidate(Constraint::Processor, it.name.clone(), String::new(), rungs)
    }

    fn board(&self, host: usize) -> Option<Candidate> {
        let it = self.host(host);
        let board = &*it.interface;
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
        let lines: Vec<Line> =
            self.lines().into_iter().filter(|&it| self.spec(it).processor.is_some()).collect();
        let place = self.names_of_lines(&lines);
        let some = !lines.is_empty();
        let rungs = some.then(|| ("takes no time".into(), Relaxation::TrunkBoard { lines }));
        candidate(Constraint::TrunkBoard, place, String::new(), rungs.into_iter().collect())
    }

    fn backplane(&self) -> Option<Candidate> {
        let nodes: Vec<usize> = self.backplanes.iter().copied().collect();
        let rates = nodes.iter().filter_map(|&node| self.scenario.nodes[node].backplane);
        let slowest = rates.min()?;
        let place = join(nodes.iter().map(|&node| self.scenario.nodes[node].name.as_str()));
        let rungs = vec![("no limit".into(), Relaxation::Backplane { nodes })];
        candidate(Constraint::Backplane, place, slowest.to_string(), rungs)
    }
}

pub(crate) fn candidate(
    constraint: Constraint,
    place: String,
    now: String,
    rungs: Vec<(String, Relaxation)>,
) -> Option<Candidate> {
    (!rungs.is_empty()).then_some(Candidate { constraint, place, now, rungs })
}

pub(crate) fn twice_and_free(rung: impl Fn(u64) -> Relaxation) -> Vec<(String, Relaxation)> {
    vec![("twice as fast".into(), rung(2)), ("takes no time".into(), rung(PRACTICALLY_NOTHING))]
}

/// Bytes in the largest binary unit of which they are a whole number.
fn binary(bytes: u64) -> String {
    match bytes {
        _ if bytes > 0 && bytes.is_multiple_of(1 << 20) => format!("{} MiB", bytes >> 20),
        _ if bytes > 0 && bytes.is_multiple_of(1 << 10) => format!("{} KiB", bytes >> 10),
        _ => format!("{bytes} B"),
    }
}

pub(crate) fn join<T: AsRef<str>>(words: impl IntoIterator<Item = T>) -> String {
    let words: Vec<T> = words.into_iter().collect();
    let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
    words.join(", ")
}
