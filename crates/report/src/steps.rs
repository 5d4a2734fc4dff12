//! Steps summed by place and cause, in the order in which they first occur.

use std::collections::BTreeMap;
use trunkline_core::{Cause, Span};
use trunkline_engine::Run;
use trunkline_measure::Step;

/// The time booked at one place under one cause, over `count` samples or blocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StepSum<'a> {
    pub(crate) place: &'a str,
    pub(crate) cause: Cause,
    pub(crate) total: Span,
    pub(crate) count: u64,
}

impl StepSum<'_> {
    /// The mean over all samples or blocks, those without this step included; rounded down.
    pub(crate) fn mean(&self) -> Span {
        self.total.scaled(1, self.count)
    }
}

/// What a place without a name is called.
const NOWHERE: &str = "?";

/// Sums `steps` of `count` samples or blocks of `run`.
pub(crate) fn step_sums<'a>(
    run: &'a Run,
    steps: impl Iterator<Item = Step>,
    count: u64,
) -> Vec<StepSum<'a>> {
    let mut order: BTreeMap<(u32, usize), usize> = BTreeMap::new();
    let mut sums: Vec<StepSum<'a>> = Vec::new();
    for step in steps.filter(|step| !step.span.is_zero()) {
        let place = run.places.get(step.place as usize).map_or(NOWHERE, String::as_str);
        let key = (step.place, step.cause as usize);
        let index = *order.entry(key).or_insert_with(|| {
            sums.push(StepSum { place, cause: step.cause, total: Span::ZERO, count });
            sums.len() - 1
        });
        sums[index].total += step.span;
    }
    sums
}
