//! A shaper in front of a faster line, as transfers see it that keep its queue from emptying: a FIFO in front of a line of the
//! shaper's rate.
//!
//! After a pause a bucket lets as much go at once as it holds. What waits is as long as in front of such a line from then on, only
//! so much earlier (RFC 2697: no more in any time than the burst and what the rate gives), so that the long run is the same.

use crate::bucket;
use crate::flow::Flow;
use crate::formula::general::serialisation;
use crate::speech::Packet;
use crate::throughput::Throughput;
use crate::way::{Line, Way, line, line_name};
use trunkline_core::{Rate, Span};
use trunkline_path::{Framing, LinkSpec};
use trunkline_scenario::{Crossing, Listed, Network, Workload};

/// Bursts that a transfer is long at least (a choice: what goes at once is left out of its time).
const BURSTS: u64 = 8;

/// The rate to which a discipline holds back what waits for a line that is faster. A policer holds nothing back.
pub(crate) fn shaped(spec: &LinkSpec) -> Option<Rate> {
    let assumed = spec.discipline.assumptions();
    let cap = assumed.cap.filter(|_| assumed.early.is_none())?;
    spec.rate.is_none_or(|rate| cap < rate).then_some(cap)
}

/// The rate at which a queue drains that does not empty, and how its bytes are framed: the line's, or a shaper's, which counts
/// user bytes.
pub(crate) fn drain(spec: &LinkSpec) -> (Option<Rate>, Framing) {
    shaped(spec).map_or((spec.rate, spec.framing), |cap| (Some(cap), Framing::None))
}

/// Whether shapers let packets of so many bytes pass, are slower than their lines with all that framing adds, and let little of a
/// transfer go at once: of `bytes`, or of what comes in `during`.
///
/// # Errors
/// Which of them does not, or is not.
pub(crate) fn covers(
    network: &Network<'_>,
    way: &[Crossing],
    packet: u32,
    (bytes, during): (u64, Span),
) -> Result<(), String> {
    for Line { link, reversed, spec } in way.iter().filter_map(|hop| line(network, hop)) {
        let assumed = spec.discipline.assumptions();
        let name = || line_name(network, link, reversed);
        if let Some(largest) = assumed.largest {
            passes(packet, largest, &name())?;
        }
        let Some(cap) = shaped(spec) else { continue };
        let time = |framing, rate| serialisation(framing, rate, packet, 0);
        if spec.rate.is_some_and(|rate| time(spec.framing, rate) > time(Framing::None, cap)) {
            return Err(format!(
                "a line that its framing makes slower than the rate that the discipline holds on {}",
                name()
            ));
        }
        let at_once = Throughput::from(cap).time_for(assumed.burst.into()).scaled(BURSTS, 1);
        if bytes < BURSTS * u64::from(assumed.burst) || during < at_once {
            return Err(format!(
                "the burst of {} bytes on {}, which is more than an eighth of all",
                assumed.burst,
                name()
            ));
        }
    }
    Ok(())
}

/// The user bytes of a transfer, and the time that it takes, as far as they are given.
pub(crate) fn amount(workload: &Workload) -> (u64, Span) {
    match *workload {
        Workload::Bulk { bytes, .. } | Workload::Push { bytes, .. } => (bytes.bytes(), Span::MAX),
        Workload::Greedy { duration, .. } | Workload::TimedTransfer { duration, .. } => {
            (u64::MAX, duration)
        }
        _ => (u64::MAX, Span::MAX),
    }
}

/// Whether packets of so many bytes pass a discipline that drops all that are larger than `largest`.
///
/// # Errors
/// That they do not.
pub(crate) fn passes(packet: u32, largest: u32, name: &str) -> Result<(), String> {
    (packet <= largest).then_some(()).ok_or_else(|| {
        format!(
            "packets of {packet} bytes on {name}, whose discipline lets none above {largest} pass"
        )
    })
}

/// What is taken for granted of the shapers on the way of units that a window holds back, if formulas know what token buckets do
/// there: those that hold back nothing, or a window without losses.
///
/// # Errors
/// What they do not know.
pub(crate) fn of_windows(
    network: &Network<'_>,
    listed: &Listed,
    flow: &Flow<'_>,
    workload: &Workload,
) -> Result<Vec<String>, String> {
    let Some(why) = flow.uncovered_but_loss(network) else { return Ok(Vec::new()) };
    if listed.entry.connects_for_each {
        return Err(why);
    }
    flow.uncovered_but_shapers(network).map_or(Ok(()), Err)?;
    let shape = (listed.entry.shape)(&listed.values);
    let unit = shape.unit + shape.header;
    covers(network, &flow.route.there, unit, amount(workload))?;
    let longest = |way: &Way, packet| way.stages.iter().map(|it| it.busy(&[packet])).max();
    let answers = longest(&flow.back.way, Packet::acknowledgement(shape.answer));
    for held in bucket::on_way(network, &flow.route.back, shape.answer)? {
        if answers > longest(&flow.there.way, Packet::plain(unit)) {
            return Err(format!("answers that the discipline on {} holds back", held.name));
        }
    }
    Ok(taken(network, &flow.route.there).collect())
}

/// What is taken for granted of the shapers on a way, in words.
pub(crate) fn taken(network: &Network<'_>, way: &[Crossing]) -> impl Iterator<Item = String> {
    let lines = way.iter().filter_map(|hop| line(network, hop));
    lines.filter_map(|Line { link, reversed, spec }| {
        let (cap, burst) = (shaped(spec)?, spec.discipline.assumptions().burst);
        Some(format!(
            "the rate of {cap} that the discipline on {} holds is taken for the line's; its burst of {burst} bytes goes at once, which makes a transfer up to {} shorter",
            line_name(network, link, reversed),
            Throughput::from(cap).time_for(burst.into())
        ))
    })
}
