//! The times of a message, place by place and cause by cause.

use crate::figure::settled;
use serde::Serialize;
use std::collections::BTreeMap;
use trunkline_core::{Cause, Span};
use trunkline_engine::Run;
use trunkline_measure::{SenderState, Step, TrafficRun};

/// A stretch of the waterfall.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Bar {
    /// The place, as the simulator names it: `coma processor`, `n3>n6`.
    pub place: String,
    /// The cause.
    pub cause: Cause,
    /// Mean over the samples or blocks.
    pub span: Span,
    /// Share of the whole, 0 to 1.
    pub share: f64,
}

/// How long senders were in a state.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct StateShare {
    /// The state.
    pub state: SenderState,
    /// All flows together.
    pub span: Span,
    /// Share of the whole, 0 to 1.
    pub share: f64,
}

/// The waterfall of the messages of one size, in order of time.
pub(crate) fn of_messages(run: &Run, traffic: &TrafficRun, size: u64) -> Vec<Bar> {
    let samples = settled(traffic, size);
    let steps = samples.iter().flat_map(|sample| sample.steps.iter());
    bars(run, steps, samples.len() as u64)
}

/// The waterfall of the data blocks, longest first: blocks overlap, and their order is that of no single one.
pub(crate) fn of_blocks(run: &Run, traffic: &TrafficRun) -> Vec<Bar> {
    let mut bars = bars(run, traffic.blocks.iter().copied(), traffic.block_count);
    bars.sort_by_key(|bar| std::cmp::Reverse(bar.span));
    bars
}

/// `steps` of so many samples, summed by place and cause in the order in which they first occur.
fn bars(run: &Run, steps: impl Iterator<Item = Step>, count: u64) -> Vec<Bar> {
    let mut order: Vec<(u32, Cause)> = Vec::new();
    let mut sums: BTreeMap<(u32, usize), Span> = BTreeMap::new();
    for step in steps.filter(|step| !step.span.is_zero()) {
        let sum = sums.entry((step.place, step.cause as usize)).or_insert_with(|| {
            order.push((step.place, step.cause));
            Span::ZERO
        });
        *sum += step.span;
    }
    let total = sums.values().copied().sum::<Span>().as_secs_f64();
    let bar = |(place, cause): (u32, Cause)| {
        let sum = sums[&(place, cause as usize)];
        let place = run.places.get(place as usize).map_or("?", String::as_str).to_string();
        Bar { place, cause, span: sum.scaled(1, count), share: sum.as_secs_f64() / total }
    };
    order.into_iter().map(bar).collect()
}

/// The time of a cluster's laps by place and cause, longest first.
pub(crate) fn of_laps(run: &Run, traffic: &TrafficRun) -> Vec<Bar> {
    let steps = traffic.samples.iter().flat_map(|sample| sample.steps.iter());
    let mut bars = bars(run, steps, traffic.samples.len() as u64);
    bars.sort_by_key(|bar| std::cmp::Reverse(bar.span));
    bars
}

/// The senders' states, longest first.
pub(crate) fn of_senders(traffic: &TrafficRun) -> Vec<StateShare> {
    let mut sums: BTreeMap<SenderState, Span> = BTreeMap::new();
    for (state, span) in traffic.sender.iter().flatten() {
        *sums.entry(*state).or_default() += *span;
    }
    let total = sums.values().copied().sum::<Span>().as_secs_f64();
    let share = |(state, span): (SenderState, Span)| StateShare {
        state,
        span,
        share: span.as_secs_f64() / total,
    };
    let mut states: Vec<StateShare> = sums.into_iter().map(share).collect();
    states.sort_by_key(|state| std::cmp::Reverse(state.span));
    states
}
