//! Messages and their answers through token buckets.
//!
//! A message, its answer and what acknowledges them are a lap. Buckets that are full again before the next lap hold up none of
//! one block each way. Laps that follow each other at once, and ask for more than the rate of a bucket, empty it: from then on each
//! takes as long as the bucket needs for its bytes. (Of all circuits that a lap waits for, the slowest one counts in the long run:
//! its own way round, or the bucket's bytes over its rate.)

use crate::bucket::{self, Held};
use crate::flow::{Flow, alongside, is_bulk};
use crate::message::Terms;
use crate::speech::Packet;
use crate::talk::Talk;
use crate::way::Resource;
use trunkline_core::{Cause, Span};
use trunkline_engine::{Note, NoteKind};
use trunkline_scenario::{Network, Traffic, Workload};

/// Bursts that laps send at least (a choice, as of transfers: what goes at once is left out of their time).
const BURSTS: u64 = 8;

const LAPS: &str = "RFC 2697 §3; the slowest circuit of a cycle, Baccelli et al. 1992 §2.4";

/// A message and its answer, in bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lap {
    pub message: u32,
    pub answer: u32,
    /// What acknowledges segments by itself; URP answers each block.
    pub acknowledgement: Option<Packet>,
    /// Whether it does so even if an answer, or the next message, could carry it.
    pub apart: bool,
    /// Whether the next lap begins when this one ends.
    pub follows: bool,
    /// How much later than its own time it may end before something goes again.
    pub patience: Span,
}

impl Lap {
    /// Of a message over URP, and its answer, that take `own`.
    pub fn of_urp(flow: &Flow<'_>, (message, answer): (u32, u32), follows: bool, own: Span) -> Lap {
        let timeouts = [&flow.there, &flow.back].into_iter().filter_map(|it| it.speech.timeout);
        let patience = timeouts.min().unwrap_or_default().saturating_sub(own);
        Lap { message, answer, acknowledgement: None, apart: true, follows, patience }
    }
}

/// What a lap sends one way, or the other.
#[derive(Debug, Clone, Copy)]
struct Load {
    bytes: u64,
    /// The largest packet.
    packet: u32,
    blocks: usize,
}

impl Load {
    fn of(talk: &Talk<'_>, bytes: u32) -> Load {
        let requests = talk.speech.requests(bytes, &talk.from.0.interface.split).concat();
        let packets = || requests.iter().flat_map(|&data| talk.speech.packets(data));
        Load {
            bytes: packets().map(|packet| u64::from(packet.bytes)).sum(),
            packet: packets().map(|packet| packet.bytes).max().unwrap_or(0),
            blocks: requests.len(),
        }
    }

    /// With what acknowledges the `other` way's blocks.
    fn with(self, other: Load, each: Option<Packet>) -> Load {
        let each = each.map_or(0, |packet| packet.bytes);
        let bytes = self.bytes + other.blocks as u64 * u64::from(each);
        Load { bytes, packet: self.packet.max(each), ..self }
    }
}

/// What a lap of `terms` waits for tokens, if it does; it is added to the terms. `flow` is as [`bucket::opened`].
///
/// # Errors
/// Why no formula covers it.
pub(crate) fn waits(
    network: &Network<'_>,
    index: usize,
    flow: &Flow<'_>,
    lap: Lap,
    terms: &mut Terms,
) -> Result<Option<Note>, String> {
    let traffic = &network.scenario().traffic[index];
    let [there, back] = [(&flow.there, lap.message), (&flow.back, lap.answer)]
        .map(|(talk, bytes)| Load::of(talk, bytes));
    let single = there.blocks.max(back.blocks) <= 1;
    let carried = single && lap.follows && !lap.apart;
    let alone = lap.acknowledgement.filter(|_| !carried);
    let each = flow.there.speech.answer.or(alone);
    let loads = [there.with(back, each), back.with(there, each)];
    let period = match traffic.workload {
        Workload::Interactive { repeat: 1, ref sizes, .. } if sizes.len() == 1 => Span::MAX,
        Workload::Interactive { every, .. } => every.max(terms.total()),
        _ => terms.total(),
    };
    let mut longest: Option<Emptied> = None;
    for (way, load) in [&flow.route.there, &flow.route.back].into_iter().zip(loads) {
        for held in bucket::on_way(network, way, load.packet)? {
            if !held.polices && waits_behind(flow, held.resource) {
                continue;
            }
            alone_at(network, index, &held)?;
            if !held.passes(load.bytes) {
                return Err(format!(
                    "messages that send {} bytes over {}, more than the burst of {}",
                    load.bytes, held.name, held.bucket.depth
                ));
            }
            let takes = held.bucket.rate.time_for(load.bytes);
            let slower = longest.as_ref().is_none_or(|it| takes > it.takes);
            if !held.fills(load.bytes, period) {
                held.waits(load.bytes)?;
                longest = if slower { Some(Emptied { held, load, takes }) } else { longest };
            }
        }
    }
    let Some(emptied) = longest else { return Ok(None) };
    let reason = if single { emptied.uncovered(traffic, lap, terms.total()) } else { Some(BLOCKS) };
    match reason {
        Some(why) => {
            Err(format!("messages through the token bucket on {}, {why}", emptied.held.name))
        }
        None => Ok(Some(emptied.counted(traffic, terms))),
    }
}

const BLOCKS: &str = "of several blocks, for which it has too few tokens";

/// A bucket that laps empty, what they send through it, and how long it needs for that.
struct Emptied {
    held: Held,
    load: Load,
    takes: Span,
}

impl Emptied {
    /// Why no formula covers laps of one block each way that take `own` without it.
    fn uncovered(&self, traffic: &Traffic, lap: Lap, own: Span) -> Option<&'static str> {
        let laps = match traffic.workload {
            Workload::TimedEcho { duration, .. } => {
                duration.as_nanos() / self.takes.as_nanos().max(1)
            }
            Workload::Interactive { repeat, .. } => u64::from(repeat),
            _ => 0,
        };
        let early =
            laps.saturating_mul(self.load.bytes) < BURSTS * u64::from(self.held.bucket.depth);
        let reasons = [
            (!lap.follows, "at intervals in which it has too few tokens"),
            (self.takes >= own + lap.patience, "for longer than their time-out"),
            (early, "of which its burst is more than an eighth"),
        ];
        reasons.into_iter().find_map(|(holds, why)| holds.then_some(why))
    }

    /// Adds the wait to a lap's `terms`. Returns what is to be said of it.
    fn counted(&self, traffic: &Traffic, terms: &mut Terms) -> Note {
        let Emptied { held, load, takes } = self;
        let (bucket, own) = (held.bucket, terms.total());
        let numbers = format!("{} bytes / {} - {own}", load.bytes, bucket.rate);
        let name = ("for tokens", "bytes of a round trip / rate − round trip", LAPS);
        terms.add(name, &held.name, Cause::Queue, takes.saturating_sub(own), numbers);
        let lacking = takes.saturating_sub(own).as_nanos().max(1);
        let first = bucket.rate.time_for(bucket.depth.into()).as_nanos().div_ceil(lacking);
        let text = format!(
            "the token bucket on {} is empty after the first messages, about {first}, which take {own}",
            held.name
        );
        Note::of_traffic(&traffic.name, NoteKind::Assumed, text)
    }
}

/// Whether a queue of other traffic stands in front of a line.
fn waits_behind(flow: &Flow<'_>, line: Resource) -> bool {
    let mut stages = flow.there.way.stages.iter().chain(&flow.back.way.stages);
    stages.any(|stage| stage.resource == line && !stage.queue.is_zero())
}

/// Fails if anything else asks for the tokens of a bucket.
fn alone_at(network: &Network<'_>, index: usize, held: &Held) -> Result<(), String> {
    let traffic = &network.scenario().traffic;
    if traffic[index].count > 1 {
        return Err("conversations that wait for each other".into());
    }
    for other in alongside(network, index) {
        let only_data = is_bulk(&traffic[other]);
        for flow in Flow::all(network, other)? {
            let asks = crosses(&flow.back, held) && !(only_data && trickles(&flow, held));
            if crosses(&flow.there, held) || asks {
                let name = &traffic[other].name;
                return Err(format!("waiting for {name}, which needs tokens on {} too", held.name));
            }
        }
    }
    Ok(())
}

fn crosses(talk: &Talk<'_>, held: &Held) -> bool {
    talk.way.stages.iter().any(|stage| stage.resource == held.resource)
}

/// The part of a bucket's rate that the acknowledgements of a transfer may have for it to be as if they were not there (a choice).
const TRICKLE: u64 = 4;

/// Whether a flow's answers are acknowledgements that need little of a bucket's rate, however fast its data come.
fn trickles(flow: &Flow<'_>, held: &Held) -> bool {
    let talk = &flow.there;
    if !talk.speech.of_host || talk.speech.block == u32::MAX {
        return false;
    }
    let data = talk.speech.packets(talk.speech.block);
    let slowest = talk.way.stages.iter().map(|stage| stage.busy(&data)).max().unwrap_or_default();
    let answer = u64::from(talk.speech.packets(0).iter().map(|packet| packet.bytes).sum::<u32>());
    held.bucket.rate.time_for(answer).scaled(TRICKLE, 1) <= slowest
}
