//! Datagrams at a constant rate through token buckets.

use crate::bucket::{self, Held};
use crate::flow::Flow;
use crate::group;
use crate::prediction::{Figure, Term};
use crate::throughput::Throughput;
use crate::way::{Resource, burst};
use std::collections::BTreeMap;
use trunkline_core::Span;
use trunkline_scenario::{Network, Traffic, Workload};

/// What buckets make of datagrams that come at one instant, or each by itself.
#[derive(Debug, Default)]
pub(crate) struct Through {
    /// What those of one instant wait in the mean behind each other and for tokens. `None` if they wait for no tokens.
    pub waits: Option<Span>,
    pub policed: Option<Policed>,
}

/// A policer that is asked for more than its rate.
#[derive(Debug)]
pub(crate) struct Policed {
    held: Held,
    /// Bytes of a datagram's packet.
    packet: u64,
    interval: Span,
    /// Datagrams that are sent, and that pass.
    counts: [u64; 2],
}

/// What becomes of the datagrams of a traffic, one of each flow in each `interval`. `flows` are as [`bucket::opened`].
///
/// # Errors
/// Why no formula covers them.
pub(crate) fn through(
    network: &Network<'_>,
    traffic: &Traffic,
    flows: &[Flow<'_>],
    interval: Span,
) -> Result<Through, String> {
    let Workload::Paced { size, duration, .. } = traffic.workload else {
        return Err(String::new());
    };
    let mut buckets: BTreeMap<Resource, (Held, u64, u64)> = BTreeMap::new();
    let mut blocks = 1;
    for flow in flows {
        let talk = &flow.there;
        let requests = talk.speech.requests(size, &talk.from.0.interface.split).concat();
        let packets: Vec<_> = requests.iter().flat_map(|&data| talk.speech.packets(data)).collect();
        let bytes = packets.iter().map(|packet| u64::from(packet.bytes)).sum();
        let largest = packets.iter().map(|packet| packet.bytes).max().unwrap_or(0);
        blocks = requests.len() as u64;
        let mut there = bucket::on_way(network, &flow.route.there, largest)?;
        let answer = talk.speech.answer.map_or(0, |answer| answer.bytes);
        let echoes = blocks * u64::from(answer);
        let back = match answer {
            0 => Vec::new(),
            bytes => bucket::on_way(network, &flow.route.back, bytes)?,
        };
        let count = there.len();
        there.extend(back);
        for (place, held) in there.into_iter().enumerate() {
            let entry = buckets.entry(held.resource).or_insert((held, 0, 0));
            entry.1 += if place < count { bytes } else { echoes };
            entry.2 += 1;
        }
    }
    let lone = buckets.len() == 1 && flows.len() == 1 && blocks == 1;
    let mut found = Through::default();
    for (held, bytes, users) in buckets.into_values() {
        if !held.fills(bytes, interval) {
            let all = || {
                format!("overload: more than the rate that the discipline holds on {}", held.name)
            };
            if !(lone && held.polices && held.passes(bytes)) {
                return Err(all());
            }
            found.policed = Some(Policed::new(held, bytes, (interval, duration))?);
        } else if !held.passes(bytes) {
            held.waits(bytes)?;
            let alike = users == flows.len() as u64 && traffic.stagger.is_zero() && blocks == 1;
            found.waits = Some(in_order(network, flows, (&held, size), alike)?);
        }
    }
    Ok(found)
}

/// The mean wait of the datagrams of all flows, which come at one instant, for each other and for tokens.
fn in_order(
    network: &Network<'_>,
    flows: &[Flow<'_>],
    (held, size): (&Held, u32),
    alike: bool,
) -> Result<Span, String> {
    let no = |what: &str| {
        Err(format!("{what} that exceed the burst of {} bytes on {}", held.bucket.depth, held.name))
    };
    let (count, talk) = (flows.len() as u64, &flows[0].there);
    let route = |flow: &Flow<'_>| (flow.route.from, flow.route.there.clone());
    if !alike || flows.iter().any(|flow| route(flow) != route(&flows[0])) {
        return no("datagrams of several ways or instants");
    }
    let is_line = |resource: &Resource| matches!(resource, Resource::Line(..) | Resource::Port(..));
    if !talk.demands_written(size).keys().all(is_line) {
        return no("datagrams of one instant, at hosts or nodes that take time for them,");
    }
    let own = talk.speech.packets(size);
    let bytes: u32 = own.iter().map(|packet| packet.bytes).sum();
    if talk.way.stages.iter().any(|stage| stage.cut.is_some_and(|cut| cut < bytes)) {
        return no("datagrams that are sent in pieces");
    }
    let Resource::Line(link, reversed) = held.resource else { return no("datagrams") };
    let limit = group::line(network, link, reversed).discipline.limit();
    if (count - 1).saturating_mul(limit.weight(bytes)) > limit.amount() {
        return no("datagrams of one instant that overflow the queue and");
    }
    let all: Vec<_> = own.iter().copied().cycle().take(own.len() * flows.len()).collect();
    let arrivals = talk.way.arrivals(&burst(&all));
    let alone = talk.way.arrivals(&burst(&own)).last().copied().unwrap_or_default();
    let ends = arrivals.chunks(own.len().max(1)).filter_map(|it| it.last());
    Ok(ends.map(|&at| at.saturating_sub(alone)).sum::<Span>().scaled(1, count))
}

const POLICED: &str = "RFC 2697 §3: no more than the burst and what the rate gives";

impl Policed {
    fn new(held: Held, packet: u64, (interval, duration): (Span, Span)) -> Result<Policed, String> {
        // What is left when one is dropped, and what comes before the next.
        if interval + held.bucket.rate.time_for(packet)
            > held.bucket.rate.time_for(held.bucket.depth.into())
        {
            return Err(format!(
                "datagrams for which the burst of {} bytes on {} has so little room that tokens are lost in it",
                held.bucket.depth, held.name
            ));
        }
        let sent = duration.as_nanos().div_ceil(interval.as_nanos().max(1));
        let tokens = held.bucket.rate.time_for(1 << 20).as_nanos().max(1);
        let during = u128::from(interval.as_nanos()) * u128::from(sent.saturating_sub(1));
        let filled = during * (1 << 20) / u128::from(tokens) + u128::from(held.bucket.depth);
        let passed = u64::try_from(filled / u128::from(packet.max(1))).unwrap_or(u64::MAX);
        Ok(Policed { held, packet, interval, counts: [sent, passed.min(sent)] })
    }

    /// User bytes of datagrams of `size` that come through in each second of the traffic.
    pub fn carried(&self, size: u32) -> (Throughput, Term) {
        let Policed { held, packet, interval, counts: [sent, passed] } = self;
        let rate = Throughput::over(passed * u64::from(size), interval.scaled(*sent, 1));
        let term = Term {
            name: "what its policer lets pass".into(),
            place: held.name.clone(),
            cause: None,
            formula: "min(all, (burst + rate × time) / packet) datagrams",
            numbers: format!(
                "min({sent}, ({} + {} × {}) / {packet})",
                held.bucket.depth,
                held.bucket.rate,
                interval.scaled(sent.saturating_sub(1), 1)
            ),
            value: Figure::Count(*passed),
            source: POLICED,
        };
        (rate, term)
    }

    /// What is to be said of it.
    pub fn told(&self) -> String {
        let Policed { held, packet, interval, counts: [sent, passed] } = self;
        let share = held.bucket.rate.millibytes_per_second() as f64 * interval.as_secs_f64()
            / (1e3 * *packet as f64);
        let burst = (f64::from(held.bucket.depth) / *packet as f64 / (1.0 - share).max(1e-9))
            .min(*sent as f64);
        format!(
            "{} of {sent} datagrams are dropped by the policer on {}: none of the first {burst:.0}, for which its burst suffices, and {:.2} % of the others; the delay is that of those which pass",
            sent - passed,
            held.name,
            100.0 * (1.0 - share)
        )
    }
}
