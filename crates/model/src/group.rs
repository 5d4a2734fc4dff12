//! Transfers that run at once: what each gets, and the queues that they leave standing.

use crate::flow::{Flow, is_bulk};
use crate::formula::general::standing_queue;
use crate::medium;
use crate::share::{Grant, Limit, busy_ppm, fill};
use crate::talk::Talk;
use crate::throughput::Throughput;
use crate::transfer::{CONFIRMATION, Cycle, Written, cycle, whole};
use crate::way::{Resource, bands_differ, line_name};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use trunkline_core::Span;
use trunkline_path::{LinkSpec, Sharing, Standing as Kept};
use trunkline_scenario::{Network, Transport, Workload};

/// Data bytes of a T1 frame: what one channel sends at most before the frame is closed (Hawley 1989 §2.1).
const T1_FRAME_DATA: u32 = 256;

/// Transfers at once, in the long run.
#[derive(Debug)]
pub(crate) struct Group<'a> {
    pub flows: Vec<Flow<'a>>,
    pub cycles: Vec<Cycle>,
    pub grants: Vec<Grant>,
    /// The queues that have been asked for.
    queues: RefCell<BTreeMap<Resource, Option<Standing>>>,
}

/// The queue that stands before a saturated line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Standing {
    /// Sum of what the flows may have under way, in bytes.
    pub windows: u64,
    /// Of that, bytes in the queue or on the line.
    pub queued: u64,
    /// The line's rate for the flows' bytes.
    pub drain: Throughput,
    /// Mean of the flows' answer times without a queue and without the block's own time on the line.
    pub answered: Span,
    /// Time to drain the queue.
    pub time: Span,
}

/// The system writes of a transfer: their sizes, one after the other, and what storing each costs.
pub(crate) fn writes(workload: &Workload) -> (Vec<u32>, Span) {
    match workload {
        Workload::Bulk { write, bytes, .. } => (vec![within(*write, bytes.bytes())], Span::ZERO),
        Workload::Push { write, bytes, store, .. } => (vec![within(*write, bytes.bytes())], *store),
        Workload::TimedTransfer { sizes, .. } => (sizes.clone(), Span::ZERO),
        Workload::Greedy { write, .. } => (vec![*write], Span::ZERO),
        _ => (Vec::new(), Span::ZERO),
    }
}

fn within(write: u32, bytes: u64) -> u32 {
    u32::try_from(bytes).map_or(write, |bytes| write.min(bytes)).max(1)
}

/// The direction of a link.
pub(crate) fn line<'a>(network: &Network<'a>, link: usize, reversed: bool) -> &'a LinkSpec {
    let wire = &network.scenario().links[network.links().index(link)];
    if reversed { &wire.backward } else { &wire.forward }
}

impl<'a> Group<'a> {
    /// The transfers among `traffics`; of number `main`, if given, the writes of one size.
    ///
    /// # Errors
    /// Why no formula covers them.
    pub fn new(
        network: &'a Network<'a>,
        traffics: &[usize],
        main: Option<(usize, u32)>,
    ) -> Result<Group<'a>, String> {
        let mut flows = Vec::new();
        let mut sizes = Vec::new();
        for &traffic in traffics.iter().filter(|&&t| is_bulk(&network.scenario().traffic[t])) {
            let other = &network.scenario().traffic[traffic];
            match &*other.transport {
                Transport::Tcp(_) => return Err(format!("the TCP of {} beside it", other.name)),
                Transport::Listed(_) if main.is_some_and(|(number, _)| number == traffic) => {}
                Transport::Listed(listed) => {
                    return Err(format!("the {} of {} beside it", listed.entry.name, other.name));
                }
                Transport::Urp(_) | Transport::Udp | Transport::Datagram => {}
            }
            let write = match main {
                Some((number, write)) if number == traffic => write,
                _ => only_write(network, traffic)?,
            };
            let all = whole(&other.workload).map_or(u64::MAX, |it| it.bytes);
            let at_once = u32::try_from(all).unwrap_or(u32::MAX);
            for flow in Flow::all(network, traffic)? {
                if let Some(why) = flow.uncovered(network) {
                    return Err(why);
                }
                let flow = flow.answered(network, [at_once, CONFIRMATION])?;
                let speech = flow.there.speech;
                let outstanding = speech.outstanding.map_or(u64::MAX, u64::from);
                flows.push(flow.of_transfer(network, (write.min(speech.block), outstanding))?);
                sizes.push(write);
            }
        }
        let (cycles, grants) = filled(network, &flows, &sizes);
        let group = Group { flows, cycles, grants, queues: RefCell::default() };
        group.check(network).map_or(Ok(()), Err)?;
        let windows = group.windows();
        medium::fits(network, &windows)?;
        medium::unequal(network, &windows).map_or(Ok(()), Err)?;
        Ok(group)
    }

    /// What each flow may have under way.
    fn windows(&self) -> Vec<medium::Window<'_>> {
        let window = |(index, flow)| {
            let packet = self.packet(index).unwrap_or(1);
            let bytes = self.under_way(index).unwrap_or(u64::MAX);
            medium::Window { flow, bytes, packet, heeds_marks: false }
        };
        self.flows.iter().enumerate().map(window).collect()
    }

    /// The reason why no formula covers these transfers together.
    fn check(&self, network: &Network<'_>) -> Option<String> {
        let several = self.interacting(network);
        let lines = || self.full_stages().into_iter().find_map(|r| self.check_line(network, r));
        let trunks = || self.full_stages().into_iter().find_map(|r| full_trunk(network, r));
        several.or_else(trunks).or_else(lines).or_else(|| self.memory(network))
    }

    /// The stages that limit some flow.
    fn full_stages(&self) -> BTreeSet<Resource> {
        full_stages(&self.grants)
    }

    /// Whether a flow crosses a full stage besides the one that limits it.
    fn interacting(&self, network: &Network<'_>) -> Option<String> {
        let full = self.full_stages();
        let crossing = self.cycles.iter().zip(&self.grants).find(|(cycle, grant)| {
            let Limit::Stage(own, _) = grant.limit else { return false };
            full.iter().any(|r| *r != own && cycle.claim.demands.contains_key(r))
        });
        crossing.map(|_| {
            let names: Vec<String> = full.iter().map(|r| stage_name(network, *r)).collect();
            format!("several bottlenecks that act on each other ({})", names.join(", "))
        })
    }

    /// The flows limited by a stage.
    fn limited_by(&self, resource: Resource) -> impl Iterator<Item = usize> {
        let by = move |grant: &Grant| matches!(grant.limit, Limit::Stage(r, _) if r == resource);
        self.grants.iter().enumerate().filter(move |(_, grant)| by(grant)).map(|(index, _)| index)
    }

    fn check_line(&self, network: &Network<'_>, resource: Resource) -> Option<String> {
        let Resource::Line(link, reversed) = resource else { return None };
        let spec = line(network, link, reversed);
        let name = line_name(network, link, reversed);
        let standing = self.standing(network, resource)?;
        let assumed = spec.discipline.assumptions();
        let of = |flow: usize| self.flows[flow].traffic;
        match assumed.early {
            Some(early) if standing.queued > 0 => {
                return Some(format!("{early} at the full line {name}"));
            }
            _ if self.part_timers(resource) => {
                return Some(format!(
                    "windows that leave the full line {name} idle in part, beside others that fill it"
                ));
            }
            None if bands_differ(network, spec, self.across(resource).into_iter().map(of)) => {
                return Some(format!("priority bands at the full line {name}"));
            }
            None if assumed.sharing == Sharing::Arrival && self.unequal(resource) => {
                return Some(format!("windows of unequal size at the full FIFO of {name}"));
            }
            _ => {}
        }
        let limit = spec.discipline.limit();
        let room = limit.most_bytes(self.least_packet(resource));
        (standing.queued > room).then(|| {
            format!(
                "loss: {} bytes of windows overflow the queue of {name} ({limit})",
                standing.windows
            )
        })
    }

    /// The smallest full packet of the flows at a line, for a limit in packets.
    fn least_packet(&self, resource: Resource) -> u32 {
        let packets = self.across(resource).into_iter().filter_map(|index| self.packet(index));
        packets.min().unwrap_or(1)
    }

    /// The bytes of a flow's full packet.
    fn packet(&self, index: usize) -> Option<u32> {
        let packets = self.flows[index].there.speech.packets(self.cycles[index].block);
        packets.first().map(|packet| packet.bytes)
    }

    /// Whether a flow crosses a full line although its own window, and so the line's queue, limits it.
    fn part_timers(&self, resource: Resource) -> bool {
        let mut across = self.across(resource).into_iter();
        across.any(|index| self.grants[index].limit == Limit::Own)
    }

    fn unequal(&self, resource: Resource) -> bool {
        let windows: BTreeSet<_> =
            self.limited_by(resource).map(|index| self.under_way(index)).collect();
        windows.len() > 1
    }

    /// Bytes that a flow may have under way, trailers included; `None` without a window.
    pub fn under_way(&self, index: usize) -> Option<u64> {
        let (flow, cycle) = (&self.flows[index], &self.cycles[index]);
        let blocks = u64::from(flow.there.speech.outstanding?);
        let blocks = match flow.there.from.0.interface.requests {
            // The interface's limit, if that is less than the window.
            Some(requests) => blocks.min(u64::from(requests) * self.request_blocks(index)),
            None => blocks,
        };
        Some(blocks * flow.there.speech.envelopes(cycle.block))
    }

    /// Blocks of the largest request of a flow's write.
    fn request_blocks(&self, index: usize) -> u64 {
        let talk = &self.flows[index].there;
        let write = u32::try_from(self.cycles[index].claim.bytes).unwrap_or(u32::MAX);
        let requests = talk.speech.requests(write, &talk.from.0.interface.split);
        requests.iter().map(Vec::len).max().unwrap_or(1) as u64
    }

    /// The queue before a line that limits flows; `None` for any other stage.
    pub fn standing(&self, network: &Network<'_>, resource: Resource) -> Option<Standing> {
        let mut queues = self.queues.borrow_mut();
        *queues.entry(resource).or_insert_with(|| self.queue(network, resource))
    }

    fn queue(&self, network: &Network<'_>, resource: Resource) -> Option<Standing> {
        let Resource::Line(link, reversed) = resource else { return None };
        line(network, link, reversed).rate?;
        let flows: Vec<usize> = self.limited_by(resource).collect();
        let count = flows.len() as u64;
        let first = *flows.first()?;
        let windows = flows.iter().filter_map(|&index| self.under_way(index)).sum();
        let sent = |index: usize| {
            let (talk, cycle) = (&self.flows[index].there, &self.cycles[index]);
            // What goes over the line for a write: user bytes and a trailer for each block.
            cycle.claim.bytes + cycle.blocks * (talk.speech.envelopes(0))
        };
        let drain = Throughput::over(sent(first), self.cycles[first].claim.demands[&resource]);
        // A block on the line itself is behind the queue, not elsewhere.
        let answers = flows.iter().map(|&index| {
            let (talk, block) = (&self.flows[index].there, self.cycles[index].block);
            let own = talk.demands(block).get(&resource).copied().unwrap_or_default();
            talk.block(block).answered.saturating_sub(own)
        });
        let answered = answers.sum::<Span>().scaled(1, count);
        let queued = standing_queue(windows, drain, answered);
        Some(Standing { windows, queued, drain, answered, time: drain.time_for(queued) })
    }

    /// A flow's cycle and what it gets if a stage takes no time of its own writes.
    pub fn without(&self, index: usize, resource: Resource) -> (Cycle, Grant) {
        let mut cycles = self.cycles.clone();
        cycles[index].claim.demands.remove(&resource);
        let claims: Vec<_> = cycles.iter().map(|cycle| cycle.claim.clone()).collect();
        (cycles.swap_remove(index), fill(&claims)[index])
    }

    /// The line that limits a flow, if one does.
    pub fn full_line(&self, index: usize) -> Option<Resource> {
        match self.grants[index].limit {
            Limit::Stage(resource @ Resource::Line(..), _) => Some(resource),
            _ => None,
        }
    }

    /// The flows whose data cross a stage, by index.
    pub fn across(&self, resource: Resource) -> Vec<usize> {
        let crosses =
            |flow: &Flow<'_>| flow.there.way.stages.iter().any(|s| s.resource == resource);
        (0..self.flows.len()).filter(|&index| crosses(&self.flows[index])).collect()
    }

    /// Whether any flow asks anything of a stage.
    pub fn uses(&self, resource: Resource) -> bool {
        self.cycles.iter().any(|cycle| cycle.claim.demands.contains_key(&resource))
    }

    /// What the formulas leave out of a flow's lines.
    pub fn left_out(&self, network: &Network<'_>, index: usize) -> Vec<String> {
        let in_step = self.in_step(network, index);
        in_step.into_iter().chain(self.bursts(network, index)).collect()
    }

    /// What they leave out of lines on its way: bursts of the windows of all flows there may overflow the queue, or its
    /// discipline drop some of them.
    fn bursts(&self, network: &Network<'_>, index: usize) -> Vec<String> {
        let stages = self.flows[index].there.way.stages.iter().map(|stage| stage.resource);
        stages.filter_map(|resource| self.burst(network, resource)).collect()
    }

    fn burst(&self, network: &Network<'_>, resource: Resource) -> Option<String> {
        let windows = self.across(resource).into_iter().filter_map(|index| self.under_way(index));
        burst(network, resource, windows.sum(), self.least_packet(resource))
    }

    /// What they leave out of windows that are served in turns: those that begin together end together, and the line is idle
    /// while all of them wait for answers. A window of k blocks then takes N s + z.
    fn in_step(&self, network: &Network<'_>, index: usize) -> Option<String> {
        let (flow, cycle, grant) = (&self.flows[index], &self.cycles[index], self.grants[index]);
        let told = grant.cycle.scaled(flow.there.speech.outstanding?.into(), cycle.blocks.max(1));
        let answered = flow.there.block(cycle.block).answered;
        let longest = flow.there.way.stages.iter().filter_map(|stage| {
            let Resource::Line(link, reversed) = stage.resource else { return None };
            line(network, link, reversed).discipline.assumptions().quantum()?;
            let own = cycle.claim.demands.get(&stage.resource)?.scaled(1, cycle.blocks.max(1));
            let others = self.across(stage.resource).len().saturating_sub(1) as u64;
            Some(answered + own.scaled(others, 1))
        });
        let less = 1.0 - told.as_secs_f64() / longest.max()?.as_secs_f64();
        (less > IN_STEP).then(|| {
            format!(
                "windows that are served in turns may end together, and the line is idle until the answers come: the throughput may be lower, by up to {:.0} %",
                100.0 * less
            )
        })
    }

    /// The busy share of a stage in parts per million.
    pub fn busy(&self, resource: Resource) -> u64 {
        let claims: Vec<_> = self.cycles.iter().map(|cycle| cycle.claim.clone()).collect();
        busy_ppm(&claims, &self.grants, resource)
    }

    /// Whether the windows of all flows to a host may overflow its interface's memory.
    fn memory(&self, network: &Network<'_>) -> Option<String> {
        let mut asked: BTreeMap<usize, u64> = BTreeMap::new();
        for (index, flow) in self.flows.iter().enumerate() {
            *asked.entry(flow.there.to.1).or_default() += self.under_way(index).unwrap_or(0);
        }
        asked.into_iter().find_map(|(host, windows)| {
            let host = &network.scenario().hosts[network.hosts().index(host)];
            let memory = host.interface.memory?.bytes();
            (windows > memory).then(|| {
                format!(
                    "loss: {windows} bytes of windows may overflow the {memory} bytes of memory of {}",
                    host.name
                )
            })
        })
    }
}

/// What the formulas leave out if so many bytes of windows, in packets of this size, come to a line at once.
pub(crate) fn burst(
    network: &Network<'_>,
    resource: Resource,
    windows: u64,
    packet: u32,
) -> Option<String> {
    let Resource::Line(link, reversed) = resource else { return None };
    let spec = line(network, link, reversed);
    let (name, limit) = (line_name(network, link, reversed), spec.discipline.limit());
    if windows > limit.most_bytes(packet) {
        return Some(format!(
            "{windows} bytes of windows at once overflow the queue of {name} ({limit}); losses of bursts are left out"
        ));
    }
    let assumed = spec.discipline.assumptions();
    let drains = Throughput::from(spec.rate?).time_for(windows);
    let bears = match assumed.standing {
        Kept::Delay(target) => drains <= target,
        Kept::Bytes(bytes) => windows <= bytes,
        Kept::Limit | Kept::Unknown => false,
    };
    // What a policer's burst has room for passes.
    let bears = bears || (assumed.cap.is_some() && windows <= assumed.burst.into());
    let early = assumed.early.filter(|_| !bears)?;
    Some(format!("what {early} at {name} may drop of bursts of {windows} bytes is left out"))
}

/// The same of one message, on the lines that are slower than those before them.
pub(crate) fn bursts_of(network: &Network<'_>, talk: &Talk<'_>, bytes: u32) -> Vec<String> {
    let block = bytes.min(talk.speech.block);
    let window = u64::from(talk.speech.outstanding.unwrap_or(u32::MAX)) * u64::from(block);
    let blocks = window.min(bytes.into()).div_ceil(u64::from(block.max(1)));
    let under_way = blocks * talk.speech.envelopes(block);
    let packets = talk.speech.packets(block);
    let packet = packets.first().map_or(1, |packet| packet.bytes);
    let mut slowest = Span::ZERO;
    let mut found = Vec::new();
    for stage in &talk.way.stages {
        let busy = stage.busy(&packets);
        if blocks > 1 && busy > slowest {
            found.extend(burst(network, stage.resource, under_way, packet));
        }
        slowest = slowest.max(busy);
    }
    found
}

/// A trunk board's input fifo that stays full loses what comes.
fn full_trunk(network: &Network<'_>, resource: Resource) -> Option<String> {
    let full = matches!(resource, Resource::Trunk(..));
    full.then(|| format!("loss at {}, which is the bottleneck", stage_name(network, resource)))
}

/// The one write size of a transfer that accompanies others.
fn only_write(network: &Network<'_>, traffic: usize) -> Result<u32, String> {
    let description = &network.scenario().traffic[traffic];
    match writes(&description.workload).0.as_slice() {
        [write] => Ok(*write),
        _ => Err(format!("the writes of several sizes of {}", description.name)),
    }
}

/// The share by which a throughput may be lower without a word, if windows end together.
const IN_STEP: f64 = 0.03;

/// The stages that limit some of those who have this.
fn full_stages(grants: &[Grant]) -> BTreeSet<Resource> {
    let limits = grants.iter().filter_map(|grant| match grant.limit {
        Limit::Stage(resource, _) => Some(resource),
        Limit::Own => None,
    });
    limits.collect()
}

/// The cycles of flows, and what they get. Where a line that cuts packets at the end of turns is full a turn goes on from one block
/// to the next.
fn filled(network: &Network<'_>, flows: &[Flow<'_>], sizes: &[u32]) -> (Vec<Cycle>, Vec<Grant>) {
    let filled = |full: &BTreeSet<Resource>| {
        let cycles = cycles(network, flows, sizes, full);
        let claims: Vec<_> = cycles.iter().map(|cycle| cycle.claim.clone()).collect();
        let grants = fill(&claims);
        (cycles, grants)
    };
    let found = filled(&BTreeSet::new());
    let stages = flows.iter().flat_map(|flow| &flow.there.way.stages);
    let cutting = stages.filter(|stage| stage.cut.is_some()).map(|stage| stage.resource);
    let cutting = &full_stages(&found.1) & &cutting.collect();
    if cutting.is_empty() { found } else { filled(&cutting) }
}

/// The cycles of flows, each in its turn on the lines that it shares, behind blocks that wait at those that are `full`.
fn cycles(
    network: &Network<'_>,
    flows: &[Flow<'_>],
    sizes: &[u32],
    full: &BTreeSet<Resource>,
) -> Vec<Cycle> {
    let mut users: BTreeMap<Resource, u64> = BTreeMap::new();
    for stage in flows.iter().flat_map(|flow| &flow.there.way.stages) {
        *users.entry(stage.resource).or_default() += 1;
    }
    let turns = |resource: Resource| {
        let Resource::Line(link, reversed) = resource else { return None };
        let shared = users.get(&resource).is_some_and(|&count| count > 1);
        let piece = line(network, link, reversed).discipline.assumptions().quantum();
        shared.then(|| piece.unwrap_or(T1_FRAME_DATA))
    };
    let written = |flow: &Flow<'_>, &bytes: &u32| {
        let workload = &network.scenario().traffic[flow.traffic].workload;
        let ends = matches!(workload, Workload::TimedTransfer { .. });
        Written { bytes, store: writes(workload).1, ends }
    };
    let both = flows.iter().zip(sizes);
    let full = |resource| full.contains(&resource);
    both.map(|(flow, write)| cycle(&flow.there, written(flow, write), turns, full)).collect()
}

/// A stage's name in notes.
pub(crate) fn stage_name(network: &Network<'_>, resource: Resource) -> String {
    let node_name = |node| &network.scenario().nodes[network.nodes().index(node)].name;
    let host_name = |host| &network.scenario().hosts[network.hosts().index(host)].name;
    match resource {
        Resource::Line(link, reversed) => line_name(network, link, reversed),
        Resource::Trunk(link, reversed) => {
            format!("the trunk board before {}", line_name(network, link, reversed))
        }
        Resource::Backplane(node) => format!("the backplane of {}", node_name(node)),
        Resource::Medium(number) => medium::name(network, number),
        Resource::Port(number, port) => {
            format!("port {port} of {}", medium::name(network, number))
        }
        Resource::Processor(host) => format!("the processor of {}", host_name(host)),
        Resource::Board(host) | Resource::BoardIn(host) => {
            format!("the interface of {}", host_name(host))
        }
    }
}
