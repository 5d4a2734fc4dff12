//! The scenario's flows, each with its two directions, and what no formula covers of them.

use crate::medium;
use crate::shaper;
use crate::speech::Speech;
use crate::talk::Talk;
use crate::way::{Line, Resource, Way, line, line_name};
use std::collections::BTreeSet;
use trunkline_core::Span;
use trunkline_path::LinkSpec;
use trunkline_path::impairment::LossModel;
use trunkline_scenario::{
    Host, Network, Start, TcpSettings, Traffic, Transport, Way as Route, Workload,
};
use trunkline_transport::tcp::{LONGEST_OPENING, Profile, Settings};
use trunkline_transport::urp;

/// A flow of the scenario.
#[derive(Debug, Clone)]
pub(crate) struct Flow<'a> {
    /// Index of its traffic.
    pub traffic: usize,
    pub there: Talk<'a>,
    pub back: Talk<'a>,
    pub route: &'a Route,
}

impl<'a> Flow<'a> {
    /// Flow number `number` of traffic number `traffic`.
    pub fn new(network: &'a Network<'a>, traffic: usize, number: u32) -> Result<Flow<'a>, String> {
        let description = &network.scenario().traffic[traffic];
        let route = network.way(traffic, number);
        medium::known(network, route)?;
        let transports = [&description.transport, &description.reply_transport];
        transports.into_iter().try_for_each(|transport| in_blocks(transport))?;
        if matches!(description.workload, Workload::Push { bytes, .. } if bytes.bytes() == 0) {
            return Err("files of no bytes".into());
        }
        let host = |host: usize| (&network.scenario().hosts[host], network.hosts().rank(host));
        let (from, to) = (host(route.from), host(route.to));
        let there = Way::new(network, &route.there, to);
        let back = Way::new(network, &route.back, from);
        let distance = there.propagation() + back.propagation();
        transports.into_iter().try_for_each(|transport| in_time(transport, distance))?;
        let [ours, theirs] = transports.map(|transport| &**transport);
        established([ours, theirs], distance)?;
        let talk = |from, to, [own, theirs]: [&Transport; 2], way: &Way, back: &Way| Talk {
            from,
            to,
            speech: Speech::of(own, theirs, network.scenario().mtu),
            way: way.clone(),
            back: back.clone(),
        };
        Ok(Flow {
            traffic,
            there: talk(from, to, [ours, theirs], &there, &back),
            back: talk(to, from, [theirs, ours], &back, &there),
            route,
        })
    }

    /// Both directions.
    pub fn talks(&mut self) -> [&mut Talk<'a>; 2] {
        [&mut self.there, &mut self.back]
    }

    /// Every flow of a traffic.
    pub fn all(network: &'a Network<'a>, traffic: usize) -> Result<Vec<Flow<'a>>, String> {
        let count = network.scenario().traffic[traffic].count.max(1);
        (0..count).map(|number| Flow::new(network, traffic, number)).collect()
    }

    /// The stages of both directions at which packets may wait for each other.
    pub fn waits_at(&self) -> BTreeSet<Resource> {
        let both = self.there.way.stages.iter().chain(&self.back.way.stages);
        both.filter(|stage| !stage.is_free()).map(|stage| stage.resource).collect()
    }

    /// The reason why no formula covers this flow, even with nothing else on the path.
    pub fn uncovered(&self, network: &Network<'_>) -> Option<String> {
        let loss = |link: &LinkSpec| (!lossless(link)).then_some("loss");
        self.uncovered_by(network, |link| loss(link).or_else(|| unpredictable(link)))
    }

    /// The same if it follows packets through token buckets.
    pub fn uncovered_but_buckets(&self, network: &Network<'_>) -> Option<String> {
        let loss = |link: &LinkSpec| (!lossless(link)).then_some("loss");
        let held = |link: &LinkSpec| {
            held_back(link).filter(|_| link.discipline.assumptions().cap.is_none())
        };
        self.uncovered_by(network, |link| loss(link).or_else(|| odd(link)).or_else(|| held(link)))
    }

    /// The same if the formula knows of shapers.
    pub fn uncovered_but_shapers(&self, network: &Network<'_>) -> Option<String> {
        let loss = |link: &LinkSpec| (!lossless(link)).then_some("loss");
        let held = |link: &LinkSpec| held_back(link).filter(|_| shaper::shaped(link).is_none());
        self.uncovered_by(network, |link| held(link).or_else(|| odd(link)).or_else(|| loss(link)))
    }

    /// The same if the formula knows of losses that are independent of each other.
    pub fn uncovered_but_loss(&self, network: &Network<'_>) -> Option<String> {
        self.uncovered_by(network, |link| dependent(link).or_else(|| unpredictable(link)))
    }

    /// The same if it also takes the rate of a shaper for that of the line behind it.
    pub fn uncovered_but_loss_and_shapers(&self, network: &Network<'_>) -> Option<String> {
        let held = |link: &LinkSpec| held_back(link).filter(|_| shaper::shaped(link).is_none());
        self.uncovered_by(network, |link| {
            dependent(link).or_else(|| odd(link)).or_else(|| held(link))
        })
    }

    fn uncovered_by(
        &self,
        network: &Network<'_>,
        why: impl Fn(&LinkSpec) -> Option<&'static str>,
    ) -> Option<String> {
        let hops = self.route.there.iter().chain(&self.route.back);
        let mut lines = hops.filter_map(|hop| line(network, hop));
        let line = lines.find_map(|Line { link, reversed, spec }| {
            Some(format!("{} on {}", why(spec)?, line_name(network, link, reversed)))
        });
        let hosts = [self.there.from.0, self.there.to.0];
        line.or_else(|| {
            hosts
                .into_iter()
                .find_map(|host| disturbed(host).or_else(|| deaf(host)).or_else(|| timed(host)))
        })
    }
}

/// Where characters wait for an echo depends on all that was sent before them.
fn in_blocks(transport: &Transport) -> Result<(), String> {
    match transport {
        Transport::Urp(urp) if !urp.mode.has_trailers() => {
            Err(format!("URP in mode '{}'", urp.mode.name()))
        }
        _ => Ok(()),
    }
}

/// An end gives up a peer so far away that no answer can come in time: after all of URP's enquiries, or NETBLT's death timer.
fn in_time(transport: &Transport, distance: Span) -> Result<(), String> {
    let enquiries = u64::from(urp::Settings::default().enquiries);
    let (patience, reason) = match transport {
        Transport::Urp(urp) => {
            let patience = urp.timeout.scaled(enquiries + 1, 1);
            let reason = format!(
                "URP over a round trip of {distance}, for an end gives up after {patience} and {enquiries} enquiries without an answer: give a longer timeout"
            );
            (patience, reason)
        }
        Transport::Listed(listed) => {
            let Some(death) = listed.values.time("death") else { return Ok(()) };
            let name = listed.entry.name;
            let reason = format!(
                "{name} over a round trip of {distance}, for each end counts the other as dead after {death}: give a longer death"
            );
            (death, reason)
        }
        _ => return Ok(()),
    };
    if distance < patience { Ok(()) } else { Err(reason) }
}

/// Both ends of a TCP connection give up if it is not established in time, or if nothing is acknowledged for too long: that depends
/// on the time-out, of which they know nothing if the SYN went again and no time stamps tell which one was answered.
fn established(ends: [&Transport; 2], distance: Span) -> Result<(), String> {
    let tcp = |transport: &Transport| match transport {
        Transport::Tcp(tcp) => Some(tcp.clone()),
        _ => None,
    };
    let [Some(ours), Some(theirs)] = ends.map(tcp) else { return Ok(()) };
    if distance >= LONGEST_OPENING {
        return Err(format!(
            "TCP over a round trip of {distance}, for an end gives up a connection that is not established after {LONGEST_OPENING}: shorten the delay"
        ));
    }
    let habits = |tcp: &TcpSettings| {
        let habits = tcp.profile.parse::<Profile>().map(Settings::of).unwrap_or_default();
        let timestamps = tcp.timestamps.unwrap_or(habits.timestamps);
        Settings { timestamps, min_rto: tcp.min_rto.unwrap_or(habits.min_rto), ..habits }
    };
    let both = [habits(&ours), habits(&theirs)];
    let measured = both.iter().all(|end| end.timestamps || distance <= end.initial_rto);
    let patience = both.iter().map(Settings::patience).min().unwrap_or(LONGEST_OPENING);
    if measured || distance < patience {
        return Ok(());
    }
    Err(format!(
        "TCP over a round trip of {distance} without time stamps, which alone tell how long it is if SYNs go again: an end gives up after {patience} without an acknowledgement; give both ends timestamps"
    ))
}

fn lossless(link: &LinkSpec) -> bool {
    matches!(&link.impairments.loss, LossModel::Bernoulli(chance) if chance.is_never())
}

fn dependent(link: &LinkSpec) -> Option<&'static str> {
    let independent = matches!(link.impairments.loss, LossModel::Bernoulli(_));
    (!independent).then_some("loss in bursts or by a trace")
}

/// The property of a link that no formula knows, loss apart.
fn unpredictable(link: &LinkSpec) -> Option<&'static str> {
    odd(link).or_else(|| held_back(link))
}

/// The same, what its discipline holds back apart.
fn odd(link: &LinkSpec) -> Option<&'static str> {
    let effects = &link.impairments;
    [
        (!effects.bit_errors.is_never(), "bit errors"),
        (!effects.duplicate.is_never(), "duplication"),
        (effects.reorder.is_some(), "reordering"),
        (effects.jitter.is_some(), "jitter"),
        (link.trace.is_some(), "a delivery trace"),
        (!link.schedule.steps.is_empty(), "a schedule of changes"),
    ]
    .into_iter()
    .find_map(|(present, name)| present.then_some(name))
}

/// What a discipline holds back. A shaper lets all pass that the line carries, if its rate is not below the line's; a policer
/// counts what comes.
fn held_back(link: &LinkSpec) -> Option<&'static str> {
    let assumed = link.discipline.assumptions();
    let passes = assumed.early.is_none()
        && assumed.cap.zip(link.rate).is_some_and(|(cap, rate)| cap >= rate);
    assumed.holds_back().filter(|_| !passes)
}

/// What a protocol's timers cost depends on how many run out.
fn timed(host: &Host) -> Option<String> {
    let costs = !host.processor.timer.is_zero();
    costs.then(|| format!("the cost of protocols' timers on {}", host.name))
}

/// An interface that loses what comes while it sends: when that is the formulas do not know.
fn deaf(host: &Host) -> Option<String> {
    host.interface
        .deaf
        .map(|_| format!("the interface of {}, which is deaf while it sends", host.name))
}

fn disturbed(host: &Host) -> Option<String> {
    let other = host.processor.disturbance?;
    let happens = other.probability > 0.0 && !other.mean.is_zero();
    happens.then(|| format!("disturbances by other work on {}", host.name))
}

/// Whether it is a transfer that keeps its window or its bottleneck busy.
pub(crate) fn is_bulk(traffic: &Traffic) -> bool {
    matches!(
        traffic.workload,
        Workload::Bulk { .. }
            | Workload::TimedTransfer { .. }
            | Workload::Push { .. }
            | Workload::Greedy { .. }
    )
}

/// The traffics that may be under way while number `traffic` is: all but those that start after its
/// end or end before its start; in the order of their names.
pub(crate) fn alongside(network: &Network<'_>, traffic: usize) -> Vec<usize> {
    let others = network.traffic().indices();
    let apart = |a: usize, b: usize| starts_after(network, a, b) || starts_after(network, b, a);
    others.filter(|&other| other != traffic && !apart(traffic, other)).collect()
}

/// The same with the traffic itself.
pub(crate) fn together(network: &Network<'_>, traffic: usize) -> Vec<usize> {
    let mut all = alongside(network, traffic);
    let rank = |index: usize| network.traffic().rank(index);
    let place = all.partition_point(|&other| rank(other) < rank(traffic));
    all.insert(place, traffic);
    all
}

/// Whether `later` starts only when `earlier` has ended, directly or by way of others.
fn starts_after(network: &Network<'_>, later: usize, earlier: usize) -> bool {
    let mut at = later;
    // No chain of starts is longer than the list of traffics.
    for _ in 0..network.scenario().traffic.len() {
        let (name, ended) = match &network.scenario().traffic[at].start {
            Start::At(_) => return false,
            Start::AfterBytes(name, _) => (name, false),
            Start::AfterEnd(name) => (name, true),
        };
        let Some(before) = network.scenario().traffic.iter().position(|t| &t.name == name) else {
            return false;
        };
        if ended && before == earlier {
            return true;
        }
        at = before;
    }
    false
}
