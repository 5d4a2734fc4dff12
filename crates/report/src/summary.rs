//! The figures of one traffic and one size in one run: a row of `cells.csv`, the source of every table.

use crate::report::{Report, Spot};
use std::collections::{BTreeMap, BTreeSet};
use trunkline_core::{Cause, Span};
use trunkline_measure::{
    Engine, Estimate, Estimator, Quantity, Run, Sample, Throughput, TrafficRun,
};

/// Nanoseconds in the millisecond in which estimates of times are given.
const MILLI: f64 = 1e6;

/// One engine, cell, traffic and size.
pub(crate) struct Summary<'a> {
    pub(crate) run: &'a Run,
    pub(crate) traffic: &'a TrafficRun,
    /// `None` for a traffic without samples, which still has its counts.
    pub(crate) size: Option<u64>,
    pub(crate) quantity: Quantity,
    pub(crate) estimator: Estimator,
    /// In the quantity's own unit: nanoseconds, or bytes for each second.
    pub(crate) estimate: Option<Estimate>,
    pub(crate) spread: Option<Spread>,
    pub(crate) throughput: Option<Throughput>,
    /// Mean of each cause over the samples, rounded down, in [`Cause::ALL`]'s order.
    pub(crate) ledger: Vec<(Cause, Span)>,
    pub(crate) count: usize,
}

/// How the delays of all samples are spread, in nanoseconds.
pub(crate) struct Spread {
    pub(crate) min: f64,
    pub(crate) median: f64,
    pub(crate) p90: f64,
    pub(crate) p99: f64,
    pub(crate) max: f64,
    /// 95 % bootstrap interval of the median.
    pub(crate) low: Option<f64>,
    pub(crate) high: Option<f64>,
}

/// A report with its figures, each worked out once: a bootstrap is not free.
pub(crate) struct Digest<'a> {
    pub(crate) report: &'a Report,
    /// Run by run, traffic by traffic, ascending sizes.
    pub(crate) rows: Vec<Summary<'a>>,
    index: BTreeMap<Name<'a>, usize>,
}

/// What a row is found by.
type Name<'a> = (Engine, Spot<'a>, &'a str, Option<u64>);

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
        Digest { report, rows, index }
    }

    /// The figures of `size` bytes of `traffic` in `run`; `None` where it has no sample of that size.
    pub(crate) fn get(&self, run: &Run, traffic: &str, size: u64) -> Option<&Summary<'a>> {
        let name = (run.engine, Spot::of(run), traffic, Some(size));
        self.index.get(&name).map(|at| &self.rows[*at])
    }
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
    let shown = report.shown(&traffic.name);
    let samples: Vec<&Sample> = size.iter().flat_map(|size| traffic.of_size(*size)).collect();
    let estimator = rule(shown.estimator, &samples);
    // A rule made for delays, such as the least of all, would flatter rates.
    let rate_rule = if shown.is_rate() { estimator } else { Estimator::Mean };
    let estimate = size.and_then(|size| traffic.estimate(size, shown.quantity, estimator));
    let estimate = if shown.is_rate() { estimate } else { estimate.map(nanos) };
    Summary {
        run,
        traffic,
        size,
        quantity: shown.quantity,
        estimator,
        estimate: estimate.filter(|estimate| estimate.value.is_finite()),
        spread: spread(&samples),
        throughput: size
            .and_then(|size| traffic.throughput(size, rate_rule))
            .filter(|throughput| throughput.total.is_finite()),
        ledger: ledger(&samples),
        count: samples.len(),
    }
}

/// The rule asked for; where each flow has one measurement, such as a formula's, there are no ends to be
/// dropped, and the figure is their mean.
fn rule(asked: Estimator, samples: &[&Sample]) -> Estimator {
    let flows: BTreeSet<u32> = samples.iter().map(|sample| sample.flow).collect();
    match asked {
        Estimator::HawleyMinimum | Estimator::HawleyAverage | Estimator::DropFirstLast
            if flows.len() == samples.len() =>
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
            Quantity::Rate => self.throughput.map(|rate| (rate.per_conversation, rate.deviation)),
            Quantity::TotalRate => self.throughput.map(|rate| (rate.total, rate.deviation)),
            Quantity::Delay | Quantity::Response => {
                self.estimate.map(|estimate| (estimate.value, estimate.deviation))
            }
        }
    }

    /// The value's unit.
    pub(crate) fn unit(&self) -> &'static str {
        match self.quantity {
            Quantity::Delay | Quantity::Response => "ns",
            Quantity::Rate | Quantity::TotalRate => "B/s",
        }
    }
}

fn nanos(estimate: Estimate) -> Estimate {
    Estimate {
        value: estimate.value * MILLI,
        deviation: estimate.deviation * MILLI,
        threshold: estimate.threshold.map(|value| value * MILLI),
        low: estimate.low.map(|value| value * MILLI),
        high: estimate.high.map(|value| value * MILLI),
        ..estimate
    }
}

fn spread(samples: &[&Sample]) -> Option<Spread> {
    let delays: Vec<f64> = samples.iter().map(|sample| sample.delay().as_nanos() as f64).collect();
    let median = Estimator::MEDIAN.estimate(&delays)?;
    let quantile = |share| trunkline_measure::quantile(&delays, share);
    Some(Spread {
        min: quantile(0.0),
        median: median.value,
        p90: quantile(0.9),
        p99: quantile(0.99),
        max: quantile(1.0),
        low: median.low,
        high: median.high,
    })
}

fn ledger(samples: &[&Sample]) -> Vec<(Cause, Span)> {
    let mean = |cause| {
        let total: Span = samples.iter().map(|sample| sample.booked(cause)).sum();
        (cause, total.scaled(1, samples.len() as u64))
    };
    Cause::ALL.into_iter().map(mean).collect()
}
