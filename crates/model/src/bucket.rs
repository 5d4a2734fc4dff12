//! Token buckets as messages and datagrams meet them: full when these come, for there is time to fill them in between.
//!
//! A bucket of depth B that fills at rate r lacks b bytes after b bytes have passed, and has them back after b/r. So what comes
//! every T with b ≤ rT finds it full each time, and waits for tokens only for what exceeds B.

use crate::flow::Flow;
use crate::formula::general::paced_wait;
use crate::group;
use crate::shaper;
use crate::throughput::Throughput;
use crate::way::{Line, Resource, Way, line, line_name};
use trunkline_core::Span;
use trunkline_scenario::{Crossing, Network};

/// A bucket in front of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bucket {
    pub rate: Throughput,
    pub depth: u32,
    /// Whether its rate counts in the long run, for more comes than it has tokens for.
    pub sustains: bool,
}

impl Bucket {
    /// When a packet of so many bytes that is there at `ready` has its tokens, and when the bucket is full again, if it is
    /// full at `full` without it.
    pub fn pass(self, full: Span, ready: Span, bytes: u32) -> (Span, Span) {
        let early = self.rate.time_for(self.depth.saturating_sub(bytes).into());
        let start = ready.max(full.saturating_sub(early));
        (start, full.max(start) + self.rate.time_for(bytes.into()))
    }
}

/// A bucket on a way.
#[derive(Debug, Clone)]
pub(crate) struct Held {
    pub resource: Resource,
    pub bucket: Bucket,
    /// Whether what lacks tokens is dropped.
    pub polices: bool,
    /// Whether a second bucket of less depth keeps what is not more than its own from leaving at once.
    peaks: bool,
    pub name: String,
}

/// The buckets that hold back, or drop, what the lines on a way would carry, if packets of so many bytes pass.
///
/// # Errors
/// Which one no such packet passes.
pub(crate) fn on_way(
    network: &Network<'_>,
    way: &[Crossing],
    packet: u32,
) -> Result<Vec<Held>, String> {
    let mut found = Vec::new();
    for Line { link, reversed, spec } in way.iter().filter_map(|hop| line(network, hop)) {
        let assumed = spec.discipline.assumptions();
        let (Some(cap), Some(depth)) = (assumed.cap, assumed.largest) else { continue };
        let name = line_name(network, link, reversed);
        shaper::passes(packet, depth, &name)?;
        let polices = assumed.early.is_some();
        if polices || shaper::shaped(spec).is_some() {
            let bucket = Bucket { rate: cap.into(), depth, sustains: false };
            let peaks = depth < assumed.burst;
            let resource = Resource::Line(link, reversed);
            found.push(Held { resource, bucket, polices, peaks, name });
        }
    }
    Ok(found)
}

/// `flow` with the buckets on its ways in front of lines of these lines' own rates, for what finds them full each time.
pub(crate) fn opened<'a>(network: &Network<'a>, flow: Flow<'a>) -> Flow<'a> {
    with_buckets(network, flow, false)
}

/// The same for a window that is sent on and on. Of what a unit waits for, the slowest circuit counts in the long run: its own way
/// round, at the lines' rates, or the units of a window over the bucket's rate.
pub(crate) fn sustained<'a>(network: &Network<'a>, flow: Flow<'a>) -> Flow<'a> {
    with_buckets(network, flow, true)
}

fn with_buckets<'a>(network: &Network<'a>, mut flow: Flow<'a>, sustains: bool) -> Flow<'a> {
    let ways: [&mut Way; 4] =
        [&mut flow.there.way, &mut flow.there.back, &mut flow.back.way, &mut flow.back.back];
    for stage in ways.into_iter().flat_map(|way| &mut way.stages) {
        let Resource::Line(link, reversed) = stage.resource else { continue };
        // Behind a queue a packet waits for its own tokens too: the shaper is the line.
        if !stage.queue.is_zero() {
            continue;
        }
        let spec = group::line(network, link, reversed);
        let assumed = spec.discipline.assumptions();
        if let (Some(cap), Some(depth)) = (shaper::shaped(spec), assumed.largest) {
            stage.open(spec, Bucket { rate: cap.into(), depth, sustains });
        }
    }
    flow
}

impl Held {
    /// Whether it is full again whenever so many bytes come, every `period`.
    pub fn fills(&self, bytes: u64, period: Span) -> bool {
        paced_wait(self.bucket.rate.time_for(bytes), period).is_some()
    }

    /// Whether so many bytes pass at once.
    pub fn passes(&self, bytes: u64) -> bool {
        bytes <= self.bucket.depth.into()
    }

    /// Whether what does not pass at once waits for tokens of this bucket alone.
    ///
    /// # Errors
    /// If it is dropped, or waits for others.
    pub fn waits(&self, bytes: u64) -> Result<(), String> {
        let Held { polices, peaks, name, bucket, .. } = self;
        match (polices, peaks) {
            (true, _) => Err(format!(
                "{bytes} bytes at once on {name}, whose policer lets {} pass",
                bucket.depth
            )),
            (_, true) => Err(format!("{bytes} bytes at once behind the peak rate on {name}")),
            _ => Ok(()),
        }
    }
}
