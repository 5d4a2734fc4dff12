//! A shaper in front of a faster line, as transfers see it that keep its queue from emptying: a FIFO in front of a line of the
//! shaper's rate.
//!
//! After a pause a bucket lets as much go at once as it holds. What waits is as long as in front of such a line from then on, only
//! so much earlier (RFC 2697: no more in any time than the burst and what the rate gives), so that the long run is the same.

use crate::formula::general::serialisation;
use crate::throughput::Throughput;
use crate::way::{Line, line, line_name};
use trunkline_core::{Rate, Span};
use trunkline_path::{Framing, LinkSpec};
use trunkline_scenario::{Crossing, Network};

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
        if let Some(largest) = assumed.largest.filter(|&largest| largest < packet) {
            return Err(format!(
                "packets of {packet} bytes on {}, whose discipline lets none above {largest} pass",
                name()
            ));
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
