//! The shares of greedy connections in the stages that they have in common.

use super::connection::Law;
use super::crowd::{Crowd, Saw};
use super::flow::Greedy;
use crate::formula::tcp;
use crate::group::{line, stage_name};
use crate::share::{Grant, Limit, fill};
use crate::throughput::Throughput;
use crate::way::{Resource, bands_differ};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use trunkline_core::Span;
use trunkline_path::{Sharing, Standing};
use trunkline_scenario::Network;

/// The limit of a connection.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Regime {
    /// Its own window.
    Window,
    /// The losses of the path.
    Loss,
    /// A stage that it has to itself, or that serves its users in turn.
    Stage(Resource),
    /// A line whose buffer takes all windows, so that nothing is lost.
    Standing(Resource),
    /// A line whose buffer overflows: users that are not alike lose packets with this probability.
    Overflow(Resource, Option<f64>),
}

/// The rate of a connection.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Share {
    /// User bytes per second.
    pub rate: Throughput,
    pub regime: Regime,
    /// The mean wait in the queue of the line that limits it.
    pub queue: Span,
    /// Users of the stage that limits it, itself included.
    pub users: usize,
    /// The saw-tooth of a line that overflows.
    pub saw: Option<Saw>,
}

/// Connections that run at once.
pub(crate) struct Flows<'a> {
    list: Vec<Greedy<'a>>,
    /// The numbers of those that use a stage.
    users: BTreeMap<Resource, Vec<usize>>,
    /// The number of each traffic's first.
    first: BTreeMap<usize, usize>,
}

impl<'a> Flows<'a> {
    /// In this order.
    pub fn new(list: Vec<Greedy<'a>>) -> Flows<'a> {
        let (mut users, mut first) = (BTreeMap::<Resource, Vec<usize>>::new(), BTreeMap::new());
        for (number, flow) in list.iter().enumerate() {
            first.entry(flow.flow.traffic).or_insert(number);
            flow.demands.keys().for_each(|&stage| users.entry(stage).or_default().push(number));
        }
        Flows { list, users, first }
    }

    /// The numbers of those that use a stage.
    pub fn users(&self, resource: Resource) -> &[usize] {
        self.users.get(&resource).map_or(&[], Vec::as_slice)
    }

    /// How long a stage has to do with one transfer of each of its users: no queue before it is longer.
    pub fn drains_in(&self, resource: Resource) -> Span {
        let users = self.users(resource).iter().map(|&user| &self.list[user]);
        // Spans saturate.
        users.fold(Span::ZERO, |sum, it| sum + it.capacity(resource).time_for(it.bytes))
    }

    /// The number of a traffic's first connection.
    pub fn first_of(&self, traffic: usize) -> Option<usize> {
        self.first.get(&traffic).copied()
    }

    /// The stages that are used.
    pub fn resources(&self) -> impl Iterator<Item = Resource> + '_ {
        self.users.keys().copied()
    }
}

impl<'a> Deref for Flows<'a> {
    type Target = [Greedy<'a>];

    fn deref(&self) -> &[Greedy<'a>] {
        &self.list
    }
}

/// The shares of connections that run at once.
///
/// # Errors
/// Why no formula covers them.
pub(crate) fn shares(network: &Network<'_>, flows: &Flows<'_>) -> Result<Vec<Share>, String> {
    let claims: Vec<_> = flows.iter().map(Greedy::claim).collect();
    if let Some(free) = claims.iter().find(|claim| claim.own.is_zero() && claim.demands.is_empty())
    {
        return Err(format!("connections that nothing limits ({} bytes)", free.bytes));
    }
    let grants = fill(&claims);
    one_bottleneck_each(network, flows, &grants)?;
    let mut shares: Vec<Option<Share>> = vec![None; flows.len()];
    for index in 0..flows.len() {
        if shares[index].is_some() {
            continue;
        }
        match grants[index].limit {
            Limit::Own => {
                let alone = || (vec![index], vec![own(&flows[index])]);
                let lossy = own(&flows[index]).regime == Regime::Loss;
                let below = if lossy { below_the_line(network, flows, index) } else { None };
                let (users, given) = below.unwrap_or_else(alone);
                users.into_iter().zip(given).for_each(|(user, share)| shares[user] = Some(share));
            }
            Limit::Stage(resource, _) => {
                let users = flows.users(resource);
                let given = at_stage(network, flows, &grants, users, resource)?;
                users
                    .iter()
                    .copied()
                    .zip(given)
                    .for_each(|(user, share)| shares[user] = Some(share));
            }
        }
    }
    Ok(shares.into_iter().flatten().collect())
}

/// A connection that nobody else limits: by its window, or by losses before a line that swings above its rate.
fn own(flow: &Greedy<'_>) -> Share {
    let rate = flow.rate();
    let by_window = rate == tcp::window_limit(flow.tcp.window, flow.round_trip, Span::ZERO);
    let regime = if by_window { Regime::Window } else { Regime::Loss };
    Share { rate, regime, queue: Span::ZERO, users: 1, saw: None }
}

/// The packets' bytes that a line has room for, if it queues all alike.
pub(super) fn room(
    network: &Network<'_>,
    flow: &Greedy<'_>,
    flows: &Flows<'_>,
    resource: Resource,
) -> Option<u64> {
    let packet = flow.tcp.payload + flow.tcp.header;
    let is_line = matches!(resource, Resource::Line(..));
    match treatment(network, resource, (packet, flows.users(resource).len())).ok()? {
        Treatment::Queue(bytes) | Treatment::Managed(bytes, _) => Some(bytes).filter(|_| is_line),
        Treatment::InTurn => None,
    }
}

/// The slowest of a connection's lines that queues all alike, with its buffer in packets' bytes.
fn narrowest(
    network: &Network<'_>,
    flow: &Greedy<'_>,
    flows: &Flows<'_>,
) -> Option<(Resource, u64)> {
    let packet = flow.tcp.payload + flow.tcp.header;
    let queues = flow.demands.iter().filter_map(|(&resource, &demand)| {
        match treatment(network, resource, (packet, flows.users(resource).len())).ok()? {
            Treatment::Queue(bytes) if matches!(resource, Resource::Line(..)) => {
                Some((demand, resource, bytes))
            }
            _ => None,
        }
    });
    let slowest =
        queues.max_by_key(|&(demand, resource, _)| (demand, std::cmp::Reverse(resource)))?;
    Some((slowest.1, slowest.2))
}

/// The shares of the users of a line that none of them fills in the mean: losses leave just under it, and
/// their peaks overflow its buffer.
fn below_the_line(
    network: &Network<'_>,
    flows: &Flows<'_>,
    index: usize,
) -> Option<(Vec<usize>, Vec<Share>)> {
    let (resource, bytes) = narrowest(network, &flows[index], flows)?;
    let users = flows.users(resource);
    let same = |user: &usize| {
        let flow = &flows[*user];
        flow.tcp.law != Law::Bbr
            && narrowest(network, flow, flows).is_some_and(|(other, _)| other == resource)
    };
    if !users.iter().all(same) {
        return None;
    }
    let line = Crowd::new(flows, users, resource, bytes);
    let shares = line.shares(network).ok()?;
    Some((users.to_vec(), shares))
}

/// Whether a connection crosses a second stage that is full.
fn one_bottleneck_each(
    network: &Network<'_>,
    flows: &[Greedy<'_>],
    grants: &[Grant],
) -> Result<(), String> {
    let full = |grant: &Grant| match grant.limit {
        Limit::Stage(resource, _) => Some(resource),
        Limit::Own => None,
    };
    let all: BTreeSet<Resource> = grants.iter().filter_map(full).collect();
    for (flow, grant) in flows.iter().zip(grants) {
        let mut crossed = flow.demands.keys().copied();
        let other = crossed.find(|stage| all.contains(stage) && full(grant) != Some(*stage));
        if let (Some(own), Some(other)) = (full(grant), other) {
            let names = [own, other].map(|resource| stage_name(network, resource));
            return Err(format!("two full stages on one way ({})", names.join(", ")));
        }
    }
    Ok(())
}

/// The way in which a full line treats its users.
enum Treatment {
    /// Each in its turn.
    InTurn,
    /// All alike, in a queue of so many bytes.
    Queue(u64),
    /// All alike, in a queue of so many bytes that is kept to this length.
    Managed(u64, Span),
}

fn treatment(
    network: &Network<'_>,
    resource: Resource,
    (packet, users): (u32, usize),
) -> Result<Treatment, String> {
    let Resource::Line(link, reversed) = resource else { return Ok(Treatment::InTurn) };
    let spec = line(network, link, reversed);
    let (assumed, limit) =
        (spec.discipline.assumptions(), spec.discipline.limit().most_bytes(packet));
    // One that is full before it is so long drops nothing early.
    let is_short =
        |target| spec.rate.is_some_and(|rate| Throughput::from(rate).time_for(limit) <= target);
    // Who is alone has the queue to itself, and fills it as without turns.
    let in_turn = matches!(assumed.sharing, Sharing::Rounds { .. } | Sharing::Turns { .. });
    match (assumed.sharing, assumed.standing) {
        _ if in_turn && users > 1 => Ok(Treatment::InTurn),
        (Sharing::Unknown, _) | (_, Standing::Unknown) => {
            Err(format!("the discipline of the full line {}", stage_name(network, resource)))
        }
        (_, Standing::Limit) => Ok(Treatment::Queue(limit)),
        (_, Standing::Bytes(bytes)) => Ok(Treatment::Queue(bytes)),
        (_, Standing::Delay(target)) if is_short(target) => Ok(Treatment::Queue(limit)),
        (_, Standing::Delay(target)) => Ok(Treatment::Managed(limit, target)),
    }
}

/// The shares of the users of a full stage.
fn at_stage(
    network: &Network<'_>,
    flows: &[Greedy<'_>],
    grants: &[Grant],
    users: &[usize],
    resource: Resource,
) -> Result<Vec<Share>, String> {
    let packet = users.iter().map(|&user| flows[user].tcp.payload + flows[user].tcp.header).max();
    let data = |&user: &usize| {
        let stages = &flows[user].flow.there.way.stages;
        stages.iter().any(|stage| stage.resource == resource)
    };
    if matches!(resource, Resource::Line(..)) && !users.iter().all(data) {
        let name = stage_name(network, resource);
        return Err(format!("acknowledgements on the full line {name}"));
    }
    let of = |&user: &usize| flows[user].flow.traffic;
    if let Resource::Line(link, reversed) = resource
        && bands_differ(network, line(network, link, reversed), users.iter().map(of))
    {
        return Err(format!("priority bands at the full line {}", stage_name(network, resource)));
    }
    let treatment = treatment(network, resource, (packet.unwrap_or(1), users.len()))?;
    if !matches!(treatment, Treatment::InTurn) && unequal(flows, users) {
        let name = stage_name(network, resource);
        return Err(format!("segments of unequal size in one full queue at {name}"));
    }
    match treatment {
        Treatment::InTurn => Ok(in_turn(flows, grants, users, resource)),
        Treatment::Managed(_, target) => {
            Crowd::managed(flows, users, resource, target).shares(network)
        }
        Treatment::Queue(bytes) => Crowd::new(flows, users, resource, bytes).shares(network),
    }
}

/// The greatest packet over the least from which on a queue treats connections too unequally for the formulas.
const UNEQUAL: f64 = 1.25;

/// Whether connections have packets of very different sizes.
fn unequal(flows: &[Greedy<'_>], users: &[usize]) -> bool {
    let packets = users.iter().map(|&user| flows[user].tcp.payload + flows[user].tcp.header);
    let (least, most) =
        packets.fold((u32::MAX, 0), |(least, most), it| (least.min(it), most.max(it)));
    f64::from(most) > UNEQUAL * f64::from(least)
}

/// Equal shares of a stage, but for those whom their own window or losses limit: on a line of its time, since turns count bytes
/// with their headers, elsewhere of what is done there.
fn in_turn(
    flows: &[Greedy<'_>],
    grants: &[Grant],
    users: &[usize],
    resource: Resource,
) -> Vec<Share> {
    let alike = users.iter().all(|&user| flows[user].tcp.payload == flows[users[0]].tcp.payload);
    let by_time = matches!(resource, Resource::Line(..)) && !alike;
    let part = time_of_each(flows, grants, users, resource);
    let each = users.iter().map(|&user| match grants[user].limit {
        Limit::Own => own(&flows[user]),
        Limit::Stage(..) => {
            let rate = match by_time {
                true => part_of(flows[user].capacity(resource), part),
                false => Throughput::over(flows[user].claim().bytes, grants[user].cycle),
            };
            let regime = Regime::Stage(resource);
            Share { rate, regime, queue: Span::ZERO, users: users.len(), saw: None }
        }
    });
    each.collect()
}

fn part_of(rate: Throughput, part: f64) -> Throughput {
    Throughput::from_millibytes_per_second((rate.millibytes_per_second() as f64 * part) as u64)
}

/// The part of a stage's time that each of those has whom the stage limits.
fn time_of_each(
    flows: &[Greedy<'_>],
    grants: &[Grant],
    users: &[usize],
    resource: Resource,
) -> f64 {
    let own_limit = |user: &&usize| grants[**user].limit == Limit::Own;
    let (limited, others): (Vec<_>, Vec<_>) = users.iter().partition(own_limit);
    let busy = |user: &&usize| {
        let [own, all] = [own(&flows[**user]).rate, flows[**user].capacity(resource)];
        own.millibytes_per_second() as f64 / all.millibytes_per_second().max(1) as f64
    };
    (1.0 - limited.iter().map(|user| busy(&user)).sum::<f64>()).max(0.0)
        / others.len().max(1) as f64
}
