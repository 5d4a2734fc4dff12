//! What greedy connections get of the stages that they share.

use super::connection::Law;
use super::flow::Greedy;
use crate::formula::tcp;
use crate::group::{line, stage_name};
use crate::share::{Grant, Limit, fill};
use crate::throughput::Throughput;
use crate::way::Resource;
use trunkline_core::Span;
use trunkline_path::DisciplineSpec;
use trunkline_scenario::Scenario;

/// What limits a connection.
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
    /// A line whose buffer overflows: its users lose packets with this probability.
    Overflow(Resource, f64),
}

/// What a connection gets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Share {
    /// User bytes per second.
    pub rate: Throughput,
    pub regime: Regime,
    /// The mean wait in the queue of the line that limits it.
    pub queue: Span,
    /// Users of the stage that limits it, itself included.
    pub users: usize,
}

/// The shares of connections that run at once.
///
/// # Errors
/// Why no formula covers them.
pub(crate) fn shares(scenario: &Scenario, flows: &[Greedy<'_>]) -> Result<Vec<Share>, String> {
    let claims: Vec<_> = flows.iter().map(Greedy::claim).collect();
    if let Some(free) = claims.iter().find(|claim| claim.own.is_zero() && claim.demands.is_empty())
    {
        return Err(format!("connections that nothing limits ({} bytes)", free.bytes));
    }
    let grants = fill(&claims);
    one_bottleneck_each(scenario, flows, &grants)?;
    let mut shares: Vec<Option<Share>> = vec![None; flows.len()];
    for index in 0..flows.len() {
        if shares[index].is_some() {
            continue;
        }
        match grants[index].limit {
            Limit::Own => shares[index] = Some(own_before(scenario, flows, index)),
            Limit::Stage(resource, _) => {
                let users = users(flows, resource);
                let given = at_stage(scenario, flows, &grants, &users, resource)?;
                users.into_iter().zip(given).for_each(|(user, share)| shares[user] = Some(share));
            }
        }
    }
    Ok(shares.into_iter().flatten().collect())
}

fn own(flow: &Greedy<'_>) -> Share {
    let rate = flow.rate(Span::ZERO, flow.loss);
    let by_window = rate == tcp::window_limit(flow.tcp.window, flow.round_trip, Span::ZERO);
    let regime = if by_window { Regime::Window } else { Regime::Loss };
    Share { rate, regime, queue: Span::ZERO, users: 1 }
}

/// The same before lines that overflow: what losses leave just under a line overflows its buffer with its
/// peaks.
fn own_before(scenario: &Scenario, flows: &[Greedy<'_>], index: usize) -> Share {
    let share = own(&flows[index]);
    match (share.regime, saw_tooth(scenario, flows, index)) {
        (Regime::Loss, Some(most)) => Share { rate: share.rate.min(most), ..share },
        _ => share,
    }
}

/// What a connection that is alone on its lines would get by overflowing their buffers; `None` where it shares
/// them, or no saw-tooth is made.
fn saw_tooth(scenario: &Scenario, flows: &[Greedy<'_>], index: usize) -> Option<Throughput> {
    let flow = &flows[index];
    let packet = flow.tcp.payload + flow.tcp.header;
    let line = |resource: &Resource| {
        let Treatment::Queue(bytes) = treatment(scenario, *resource, packet).ok()? else {
            return None;
        };
        let buffer = bytes * u64::from(flow.tcp.payload) / u64::from(packet);
        Some(Line::new(flows, &[index], *resource).saw_tooth(flow, buffer))
    };
    let alone = |resource: &&Resource| users(flows, **resource) == [index];
    flow.demands.keys().filter(alone).filter_map(line).min()
}

fn users(flows: &[Greedy<'_>], resource: Resource) -> Vec<usize> {
    (0..flows.len()).filter(|&index| flows[index].demands.contains_key(&resource)).collect()
}

/// Does a connection cross a second stage that is full?
fn one_bottleneck_each(
    scenario: &Scenario,
    flows: &[Greedy<'_>],
    grants: &[Grant],
) -> Result<(), String> {
    let full = |grant: &Grant| match grant.limit {
        Limit::Stage(resource, _) => Some(resource),
        Limit::Own => None,
    };
    for (flow, grant) in flows.iter().zip(grants) {
        let others = grants.iter().filter_map(full).filter(|other| full(grant) != Some(*other));
        let mut crossed = others.filter(|other| flow.demands.contains_key(other));
        if let (Some(own), Some(other)) = (full(grant), crossed.next()) {
            let names = [own, other].map(|resource| stage_name(scenario, resource));
            return Err(format!("two full stages on one way ({})", names.join(", ")));
        }
    }
    Ok(())
}

/// How a full line treats its users.
enum Treatment {
    /// Each in its turn.
    InTurn,
    /// All alike, in a queue of so many bytes.
    Queue(u64),
    /// All alike, in a queue that is kept to this length.
    Managed(Span),
}

fn treatment(scenario: &Scenario, resource: Resource, packet: u32) -> Result<Treatment, String> {
    let Resource::Line(link, reversed) = resource else { return Ok(Treatment::InTurn) };
    let discipline = &line(scenario, link, reversed).discipline;
    match *discipline {
        DisciplineSpec::RoundRobin { .. }
        | DisciplineSpec::TwoLists { .. }
        | DisciplineSpec::Drr { .. }
        | DisciplineSpec::FqCodel { .. }
        | DisciplineSpec::Sfq(_) => Ok(Treatment::InTurn),
        DisciplineSpec::Fifo { limit } | DisciplineSpec::Priority { limit, .. } => {
            Ok(Treatment::Queue(limit.most_bytes(packet)))
        }
        DisciplineSpec::Epd { threshold, .. } => Ok(Treatment::Queue(threshold * 48)),
        DisciplineSpec::Codel { target, .. } => Ok(Treatment::Managed(target)),
        DisciplineSpec::Pie(pie) => Ok(Treatment::Managed(pie.target)),
        DisciplineSpec::DualPi2(_) => {
            Err(format!("the discipline of the full line {}", stage_name(scenario, resource)))
        }
    }
}

/// The shares of the users of a full stage.
fn at_stage(
    scenario: &Scenario,
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
        let name = stage_name(scenario, resource);
        return Err(format!("acknowledgements on the full line {name}"));
    }
    let line = Line::new(flows, users, resource);
    match treatment(scenario, resource, packet.unwrap_or(1))? {
        Treatment::InTurn => Ok(in_turn(flows, grants, users, resource)),
        Treatment::Managed(target) => line.overflowing(scenario, target),
        Treatment::Queue(bytes) => {
            let wire = packet
                .map_or(1.0, |packet| f64::from(packet) / f64::from(flows[users[0]].tcp.payload));
            line.with_buffer(scenario, (bytes as f64 / wire) as u64)
        }
    }
}

/// Equal shares, but for those whom their own window or losses limit.
fn in_turn(
    flows: &[Greedy<'_>],
    grants: &[Grant],
    users: &[usize],
    resource: Resource,
) -> Vec<Share> {
    let each = users.iter().map(|&user| match grants[user].limit {
        Limit::Own => own(&flows[user]),
        Limit::Stage(..) => {
            let bytes = flows[user].claim().bytes;
            let rate = Throughput::over(bytes, grants[user].cycle);
            let regime = Regime::Stage(resource);
            Share { rate, regime, queue: Span::ZERO, users: users.len() }
        }
    });
    each.collect()
}

/// The probability of loss above which congestion avoidance hardly happens: a window of four segments.
const MOST_LOSS: f64 = 0.1;

/// A full line and its users.
struct Line<'f, 'a> {
    users: Vec<&'f Greedy<'a>>,
    resource: Resource,
    /// User bytes per second.
    capacity: Throughput,
}

impl<'f, 'a> Line<'f, 'a> {
    fn new(flows: &'f [Greedy<'a>], users: &[usize], resource: Resource) -> Line<'f, 'a> {
        let users: Vec<&Greedy<'_>> = users.iter().map(|&user| &flows[user]).collect();
        let capacity = users.iter().map(|user| user.capacity(resource)).min();
        Line { users, resource, capacity: capacity.unwrap_or(Throughput::UNLIMITED) }
    }

    fn share(&self, rate: Throughput, regime: Regime, queue: Span) -> Share {
        Share { rate, regime, queue, users: self.users.len() }
    }

    /// A queue of `buffer` user bytes: the windows fit, or they overflow it.
    fn with_buffer(&self, scenario: &Scenario, buffer: u64) -> Result<Vec<Share>, String> {
        let windows: Vec<(u64, Span)> =
            self.users.iter().map(|user| (user.tcp.window, user.round_trip)).collect();
        let queue = tcp::window_queue(&windows, self.capacity);
        let drain = self.capacity.time_for(buffer);
        let fits = queue <= drain && self.users.iter().all(|user| user.tcp.law != Law::Bbr);
        if fits && self.users.iter().all(|user| user.loss == 0.0) {
            let regime = Regime::Standing(self.resource);
            let rate = |user: &&Greedy<'_>| user.rate(queue, 0.0);
            return Ok(self.users.iter().map(|u| self.share(rate(u), regime, queue)).collect());
        }
        if let [only] = self.users[..] {
            let busy = || self.capacity.min(only.rate(Span::ZERO, only.loss));
            let regime = Regime::Stage(self.resource);
            return Ok(vec![match fits {
                true => self.share(busy(), regime, Span::ZERO),
                false => self.alone(only, buffer, drain),
            }]);
        }
        // The queue moves between nothing and the whole buffer; half is the mean.
        self.overflowing(scenario, drain.scaled(1, 2))
    }

    /// One connection that overflows a buffer: what its saw-tooth leaves of the line.
    fn alone(&self, user: &Greedy<'_>, buffer: u64, drain: Span) -> Share {
        let line = self.saw_tooth(user, buffer);
        let queue = match user.tcp.law {
            Law::Bbr => Span::ZERO,
            _ => drain.scaled(1, 2),
        };
        let rate = line.min(user.rate(queue, user.loss));
        self.share(rate, Regime::Overflow(self.resource, 0.0), queue)
    }

    /// What the saw-tooth of one connection leaves of the line.
    fn saw_tooth(&self, user: &Greedy<'_>, buffer: u64) -> Throughput {
        let pipe = crate::formula::general::bandwidth_delay_product(self.capacity, user.round_trip);
        let used = match user.tcp.law {
            Law::Reno | Law::ConstantRate => tcp::reno_utilisation(pipe, buffer),
            Law::Cubic => tcp::cubic_utilisation(pipe, buffer),
            Law::Bbr => tcp::BBR_UTILISATION * (1.0 - user.loss),
        };
        let bytes = self.capacity.millibytes_per_second() as f64 * used;
        Throughput::from_millibytes_per_second(bytes as u64)
    }

    /// Everybody loses with one probability, the one at which together they fill the line; each by its own
    /// law, at its round trip with the queue.
    fn overflowing(&self, scenario: &Scenario, queue: Span) -> Result<Vec<Share>, String> {
        if self.users.iter().any(|user| user.tcp.law == Law::Bbr) {
            return self.bbr(scenario);
        }
        let rates = |loss: f64| -> Vec<Throughput> {
            self.users.iter().map(|user| user.rate_at(queue, loss)).collect()
        };
        let sum = |loss: f64| -> u128 {
            rates(loss).iter().map(|rate| u128::from(rate.millibytes_per_second())).sum()
        };
        let loss = balance(|loss| sum(loss) > u128::from(self.capacity.millibytes_per_second()));
        if loss > MOST_LOSS {
            return self.crowded(scenario, queue, loss);
        }
        let regime = Regime::Overflow(self.resource, loss);
        Ok(rates(loss).into_iter().map(|rate| self.share(rate, regime, queue)).collect())
    }

    /// Windows of a few segments live by time-outs, of which the laws know nothing; connections that are all
    /// alike share equally all the same.
    fn crowded(&self, scenario: &Scenario, queue: Span, loss: f64) -> Result<Vec<Share>, String> {
        let alike = |user: &&&Greedy<'_>| {
            let first = self.users[0];
            user.tcp == first.tcp && user.round_trip == first.round_trip && user.loss == first.loss
        };
        if !self.users.iter().all(|user| alike(&user)) {
            let name = stage_name(scenario, self.resource);
            return Err(format!("windows of so few segments that time-outs decide, at {name}"));
        }
        let each = self.capacity.millibytes_per_second() / self.users.len() as u64;
        let rate = Throughput::from_millibytes_per_second(each);
        let share = self.share(rate, Regime::Overflow(self.resource, loss), queue);
        Ok(vec![share; self.users.len()])
    }

    /// BBR beside BBR with the same round trip has an equal share; anything else has no closed formula.
    fn bbr(&self, scenario: &Scenario) -> Result<Vec<Share>, String> {
        let first = self.users[0];
        let alike = |user: &&&Greedy<'_>| {
            user.tcp.law == Law::Bbr
                && user.round_trip == first.round_trip
                && user.loss == first.loss
        };
        if !self.users.iter().all(|user| alike(&user)) {
            let name = stage_name(scenario, self.resource);
            return Err(format!("BBR beside other connections, or other round trips, at {name}"));
        }
        let bytes = self.capacity.millibytes_per_second() as f64 / self.users.len() as f64;
        let rate = bytes * tcp::BBR_UTILISATION * (1.0 - first.loss);
        let line = Throughput::from_millibytes_per_second(rate as u64);
        let rate = |user: &&Greedy<'_>| line.min(user.rate(Span::ZERO, user.loss));
        let regime = Regime::Stage(self.resource);
        Ok(self.users.iter().map(|user| self.share(rate(user), regime, Span::ZERO)).collect())
    }
}

/// The smallest probability, to a part in 10¹², at which it is no longer too much, by halving the interval of
/// exponents between 2⁻⁴⁰ and 1.
fn balance(too_much: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (-40.0f64, -0.01f64);
    for _ in 0..48 {
        let middle = (low + high) / 2.0;
        if too_much(libm::exp2(middle)) { low = middle } else { high = middle }
    }
    libm::exp2(high)
}
