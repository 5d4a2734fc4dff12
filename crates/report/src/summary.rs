//! The figures of one traffic and one size in one run: a row of `cells.csv`, the source of every table.

use crate::report::{Report, Shown, Spot, is_rate};
use std::cell::OnceCell;
use std::collections::BTreeMap;
use trunkline_core::{Cause, Span};
use trunkline_engine::{EngineName, Run};
use trunkline_measure::{Estimate, Estimator, Interval, Quantity, Spread, Throughput, TrafficRun};

/// Nanoseconds in the millisecond in which estimates of times are given.
const MILLI: f64 = 1e6;

/// One engine, cell, traffic and size.
pub(crate) struct Summary<'a> {
    pub(crate) run: &'a Run,
    pub(crate) traffic: &'a TrafficRun,
    /// `None` for a traffic without samples, which still has its counts.
    pub(crate) size: Option<u64>,
    /// What its cell asks for.
    asked: Shown,
    pub(crate) quantity: Quantity,
    pub(crate) estimator: Estimator,
    /// In the quantity's own unit: nanoseconds, or bytes for each second. Its interval stands apart.
    pub(crate) estimate: Option<Estimate>,
    pub(crate) count: u64,
    throughput: OnceCell<Option<Throughput>>,
    intervals: OnceCell<Intervals>,
}

/// 95 % confidence intervals in the units of the figures, worked out when first asked for: a bootstrap is not free,
/// and the terminal and the page show none.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Intervals {
    pub(crate) estimate: Option<Interval>,
    /// Of the median of the delays.
    pub(crate) median: Option<Interval>,
}

/// A report with its figures, each worked out once.
pub(crate) struct Digest<'a> {
    pub(crate) report: &'a Report,
    /// Run by run, traffic by traffic, ascending sizes.
    pub(crate) rows: Vec<Summary<'a>>,
    index: BTreeMap<Name<'a>, usize>,
    /// By traffic.
    drawn: BTreeMap<&'a str, Drawn>,
}

/// What the charts of a traffic over cells show: one quantity, for cells whose figure is another have no place on
/// their axis.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Drawn {
    pub(crate) quantity: Quantity,
    /// The rule, if all cells have the same.
    pub(crate) estimator: Option<Estimator>,
}

/// What a row is found by.
type Name<'a> = (EngineName, Spot<'a>, &'a str, Option<u64>);

impl<'a> Digest<'a> {
    /// Works all figures out.
    pub(crate) fn of(report: &'a Report) -> Digest<'a> {
        let of_run = |run: &'a Run| {
            run.traffic.iter().flat_map(move |traffic| of_traffic(report, run, traffic))
        };
        let rows: Vec<Summary<'a>> = report.runs.iter().flat_map(of_run).collect();
        let name = |row: &Summary<'a>| {
            (row.run.engine, Spot::of(row.run), row.traffic.name.as_str(), row.size)
        };
        let index = rows.iter().enumerate().map(|(at, row)| (name(row), at)).collect();
        let drawn = drawn(&rows);
        Digest { report, rows, index, drawn }
    }

    /// What charts show of `traffic`; `None` if no run has it.
    pub(crate) fn drawn(&self, traffic: &str) -> Option<Drawn> {
        self.drawn.get(traffic).copied()
    }

    /// The figures of `size` bytes of `traffic` in `run`; `None` if it has no sample of that size.
    pub(crate) fn get(&self, run: &Run, traffic: &str, size: u64) -> Option<&Summary<'a>> {
        let name = (run.engine, Spot::of(run), traffic, Some(size));
        self.index.get(&name).map(|at| &self.rows[*at])
    }
}

/// The quantity of each traffic's first figure, and the rule that its figures have in common.
fn drawn<'a>(rows: &[Summary<'a>]) -> BTreeMap<&'a str, Drawn> {
    let mut drawn: BTreeMap<&str, Drawn> = BTreeMap::new();
    for row in rows {
        let Shown { quantity, estimator } = row.asked;
        let first = Drawn { quantity, estimator: Some(estimator) };
        let known = drawn.entry(&row.traffic.name).or_insert(first);
        if known.quantity == quantity {
            known.estimator = known.estimator.filter(|rule| *rule == estimator);
        }
    }
    drawn
}

fn of_traffic<'a>(report: &Report, run: &'a Run, traffic: &'a TrafficRun) -> Vec<Summary<'a>> {
    let sizes = traffic.sizes();
    if sizes.is_empty() {
        return vec![summary(report, run, traffic, None)];
    }
    sizes.into_iter().map(|size| summary(report, run, traffic, Some(size))).collect()
}

fn summary<'a>(
    report: &Report,
    run: &'a Run,
    traffic: &'a TrafficRun,
    size: Option<u64>,
) -> Summary<'a> {
    let shown = report.shown.at(Spot::of(run), &traffic.name);
    let count = size.map_or(0, |size| traffic.count(size));
    let flows = size.map_or(0, |size| traffic.flows(size));
    let estimator = rule(shown.estimator, flows as u64 == count);
    let estimate = size.and_then(|size| traffic.point(size, shown.quantity, estimator));
    let estimate = estimate.map(|estimate| in_unit(estimate, shown.quantity));
    Summary {
        run,
        traffic,
        size,
        asked: shown,
        quantity: shown.quantity,
        estimator,
        estimate: estimate.filter(|estimate| estimate.value.is_finite()),
        count,
        throughput: OnceCell::new(),
        intervals: OnceCell::new(),
    }
}

/// An estimate in the unit that figures of `quantity` are shown in.
fn in_unit(estimate: Estimate, quantity: Quantity) -> Estimate {
    match quantity {
        Quantity::Delay | Quantity::Response => estimate.scaled(MILLI),
        Quantity::Rate | Quantity::TotalRate => estimate,
    }
}

/// The rule asked for; if each flow has one measurement, such as a formula's, there are no ends to be
/// dropped, and the figure is their mean.
fn rule(asked: Estimator, one_each: bool) -> Estimator {
    match asked {
        Estimator::HawleyMinimum | Estimator::HawleyAverage | Estimator::DropFirstLast
            if one_each =>
        {
            Estimator::Mean
        }
        asked => asked,
    }
}

impl Summary<'_> {
    /// The value shown, with its deviation.
    pub(crate) fn value(&self) -> Option<(f64, f64)> {
        self.value_of(self.quantity)
    }

    /// The same for a quantity of the same kind.
    pub(crate) fn value_of(&self, quantity: Quantity) -> Option<(f64, f64)> {
        match quantity {
            Quantity::Rate => self.throughput().map(|rate| (rate.per_conversation, rate.deviation)),
            Quantity::TotalRate => {
                let deviation = self.throughput().map_or(0.0, |rate| rate.deviation);
                self.total().map(|total| (total, deviation))
            }
            Quantity::Delay | Quantity::Response => {
                self.estimate.map(|estimate| (estimate.value, estimate.deviation))
            }
        }
    }

    /// The flows' own rates, worked out when first asked for. The terminal shows none beside delays.
    pub(crate) fn throughput(&self) -> Option<Throughput> {
        *self.throughput.get_or_init(|| {
            // A rule made for delays, such as the least of all, would flatter rates.
            let rule = if is_rate(self.quantity) { self.estimator } else { Estimator::Mean };
            let found = self.size.and_then(|size| self.traffic.throughput(size, rule));
            found.filter(|throughput| throughput.sum.is_finite())
        })
    }

    /// The rate of all flows together, in bytes per second.
    pub(crate) fn total(&self) -> Option<f64> {
        self.size.and_then(|size| self.traffic.total_rate(size))
    }

    /// How far its figures can be trusted.
    pub(crate) fn intervals(&self) -> Intervals {
        *self.intervals.get_or_init(|| {
            let (traffic, quantity) = (self.traffic, self.quantity);
            let shown = self.size.filter(|_| self.estimate.is_some());
            let of_size = |size| match quantity {
                Quantity::Rate | Quantity::TotalRate => {
                    traffic.throughput_interval(size, self.estimator)
                }
                Quantity::Delay | Quantity::Response => {
                    let estimate = traffic.estimate(size, quantity, self.estimator)?;
                    in_unit(estimate, quantity).interval()
                }
            };
            Intervals {
                estimate: shown.and_then(of_size),
                median: self.size.and_then(|size| traffic.median_interval(size)),
            }
        })
    }

    /// The spread of the delays. The terminal shows none.
    pub(crate) fn spread(&self) -> Option<Spread> {
        self.size.and_then(|size| self.traffic.spread(size))
    }

    /// Mean of each cause over the samples, rounded down, in [`Cause::ALL`]'s order. The terminal shows none.
    pub(crate) fn ledger(&self) -> Vec<(Cause, Span)> {
        let booked = |size| Cause::ALL.map(|cause| self.traffic.booked(size, cause));
        let totals = self.size.map_or([Span::ZERO; Cause::ALL.len()], booked);
        let mean = |(cause, total): (Cause, Span)| (cause, total.scaled(1, self.count));
        std::iter::zip(Cause::ALL, totals).map(mean).collect()
    }

    /// The value's unit.
    pub(crate) fn unit(&self) -> &'static str {
        match self.quantity {
            Quantity::Delay | Quantity::Response => "ns",
            Quantity::Rate | Quantity::TotalRate => "B/s",
        }
    }
}
