//! The figure by which runs are compared.

use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use trunkline_core::{Span, Time};
use trunkline_engine::Run;
use trunkline_measure::{Sample, TrafficRun, deviation, mean};
use trunkline_scenario::{Traffic, Workload};

/// What matters of a traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// The mean delay of a message.
    Delay,
    /// The bytes that all flows together bring over in a second.
    Throughput,
    /// The mean time of a cluster's lap.
    Lap,
}

impl Measure {
    /// What matters of a workload.
    pub fn of(workload: &Workload) -> Measure {
        match workload {
            Workload::Interactive { .. } | Workload::TimedEcho { .. } | Workload::Paced { .. } => {
                Measure::Delay
            }
            Workload::Bulk { .. }
            | Workload::Push { .. }
            | Workload::TimedTransfer { .. }
            | Workload::Greedy { .. } => Measure::Throughput,
        }
    }
}

/// The mean over the samples of one size, without those of the warm-up.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Figure {
    /// Seconds of a message, a write or a transfer; infinite, and `null` as JSON, if nothing arrives.
    pub seconds: f64,
    /// User bytes in that time, all flows together, for each second.
    pub bytes_per_second: f64,
    /// Standard error of the mean over the mean.
    pub error: f64,
    /// Samples.
    pub samples: usize,
}

impl Figure {
    /// That of a traffic of which nothing arrives, though it sends.
    pub const NOTHING: Figure =
        Figure { seconds: f64::INFINITY, bytes_per_second: 0.0, error: 0.0, samples: 0 };

    /// Whether nothing arrives.
    pub fn is_nothing(&self) -> bool {
        self.seconds.is_infinite()
    }

    /// The figure of a rate in bytes each second: a byte at a time.
    fn of_rate(rate: f64, error: f64, samples: usize) -> Figure {
        Figure { seconds: 1.0 / rate, bytes_per_second: rate, error, samples }
    }

    /// The share of the time that `relaxed` saves: 0.9 if it takes a tenth, all of it if nothing arrives without it. Negative
    /// if it takes longer, without bound if nothing arrives with it.
    pub fn saved_by(&self, relaxed: &Figure) -> f64 {
        if self.is_nothing() && relaxed.is_nothing() {
            return 0.0;
        }
        1.0 - relaxed.seconds / self.seconds
    }

    /// How large a share chance may have made (two standard errors of the difference).
    pub fn noise(&self, relaxed: &Figure) -> f64 {
        2.0 * self.error.hypot(relaxed.error * relaxed.seconds / self.seconds)
    }
}

/// Batches from whose means a standard error is made.
const BATCHES: usize = 8;
/// The least share of what a paced traffic offers that has to arrive in time for its delay to be its figure.
const ARRIVES: f64 = 0.9;

/// In place of a size: everything that a traffic delivered, a byte at a time.
pub(crate) const ALL_OF_IT: u64 = 0;

/// The figures of one traffic by size.
pub(crate) type Figures = BTreeMap<u64, Figure>;

/// How the figures of a traffic are read off a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reading {
    /// The traffic's name.
    pub name: String,
    /// Whether it has only a rate, that of all it delivered.
    pub whole: bool,
}

impl Reading {
    /// The reading of `traffic`, as its unchanged run asks for it: a rate alone if it runs for as long as another
    /// does, if not one transfer ended, and if datagrams do not arrive as they are offered.
    pub fn of(traffic: &Traffic, run: &Run) -> Reading {
        let reading = Reading { name: traffic.name.clone(), whole: false };
        let Some(measured) = run.traffic(&traffic.name) else { return reading };
        let whole = traffic.until.is_some()
            || measured.samples.is_empty()
            || falls_short(traffic, run, measured);
        Reading { whole, ..reading }
    }

    /// What is compared.
    pub fn measure(&self, workload: &Workload) -> Measure {
        if self.whole { Measure::Throughput } else { Measure::of(workload) }
    }
}

/// Whether so many datagrams of a constant rate get lost, or late, that what arrives matters more than when.
fn falls_short(traffic: &Traffic, run: &Run, measured: &TrafficRun) -> bool {
    let Workload::Paced { rate, .. } = traffic.workload else { return false };
    let offered = rate.bits_per_second() as f64 / 8.0 * f64::from(traffic.count);
    rate_of_all(run, measured).is_none_or(|arrives| arrives < ARRIVES * offered)
}

/// The figures of a traffic.
pub(crate) fn figures(run: &Run, reading: &Reading) -> Figures {
    let Some(traffic) = run.traffic(&reading.name) else { return Figures::new() };
    let all = |figure| Figures::from([(ALL_OF_IT, figure)]);
    let nothing = (traffic.packets.sent > 0).then_some(Figure::NOTHING);
    if reading.whole {
        let rate = rate_of_all(run, traffic).map(|rate| Figure::of_rate(rate, 0.0, 1));
        return rate.or(nothing).map(all).unwrap_or_default();
    }
    if traffic.amounts {
        return of_intervals(traffic).or(nothing).map(all).unwrap_or_default();
    }
    let of = |size| figure(traffic, size).map(|figure| (size, figure));
    traffic.sizes().into_iter().filter_map(of).collect()
}

/// Bytes that all flows together delivered in each second of the longest one's life, or until the last measurement
/// if that came later: datagrams go on arriving when their sender has done.
fn rate_of_all(run: &Run, traffic: &TrafficRun) -> Option<f64> {
    let lives = traffic.sender.iter().map(|states| states.values().copied().sum::<Span>());
    let first = traffic.samples.iter().map(|sample| sample.start).min();
    let last = traffic.samples.iter().map(|sample| sample.end).max();
    let measured = last.zip(first).map_or(Span::ZERO, |(last, first)| last.since(first));
    let longest = lives.max().unwrap_or_default().max(measured);
    let whole = run.ended.since(Time::ZERO);
    let seconds = if longest.is_zero() { whole } else { longest }.as_secs_f64();
    let rate = traffic.delivered_bytes as f64 / seconds;
    (rate > 0.0 && rate.is_finite()).then_some(rate)
}

/// The mean rate over the intervals of greedy connections. The error is that of all flows' sums, interval by interval.
fn of_intervals(traffic: &TrafficRun) -> Option<Figure> {
    let mut flows: BTreeMap<u32, (f64, f64)> = BTreeMap::new();
    let mut sums: BTreeMap<u32, f64> = BTreeMap::new();
    for sample in &traffic.samples {
        let (bytes, seconds) = flows.entry(sample.flow).or_default();
        *bytes += sample.size as f64;
        *seconds += sample.delay().as_secs_f64();
        *sums.entry(sample.index).or_default() += sample.size as f64;
    }
    let rate: f64 = flows.values().map(|(bytes, seconds)| bytes / seconds).sum();
    let sums: Vec<f64> = sums.into_values().collect();
    let error = standard_error(&sums) / mean(&sums);
    (rate > 0.0).then(|| Figure::of_rate(rate, error, traffic.samples.len()))
}

fn figure(traffic: &TrafficRun, size: u64) -> Option<Figure> {
    let samples = settled(traffic, size);
    let delays: Vec<f64> = samples.iter().map(|sample| sample.delay().as_secs_f64()).collect();
    let seconds = mean(&delays);
    if delays.is_empty() || seconds <= 0.0 {
        return None;
    }
    let flows: BTreeSet<u32> = samples.iter().map(|sample| sample.flow).collect();
    let error = standard_error(&delays) / seconds;
    let bytes_per_second = size as f64 * flows.len() as f64 / seconds;
    Some(Figure { seconds, bytes_per_second, error, samples: delays.len() })
}

/// The standard error of the mean, from means of batches: successive values are alike if a queue comes and goes.
fn standard_error(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return 0.0;
    }
    let size = if values.len() < 2 * BATCHES { 1 } else { values.len() / BATCHES };
    let means: Vec<f64> = values.chunks_exact(size).map(mean).collect();
    deviation(&means) / (means.len() as f64).sqrt()
}

/// The samples of one size without each flow's warm-up, if it has three or more: the first tenth of them, at
/// least one, and those that ended within the first tenth of their time. (Writes into an empty send buffer return
/// at once, so that by number alone they would outweigh the rest.)
pub(crate) fn settled(traffic: &TrafficRun, size: u64) -> Vec<&Sample> {
    let mut by_flow: BTreeMap<u32, Vec<&Sample>> = BTreeMap::new();
    for sample in traffic.of_size(size) {
        by_flow.entry(sample.flow).or_default().push(sample);
    }
    by_flow.into_values().flat_map(without_warm_up).collect()
}

fn without_warm_up(mut samples: Vec<&Sample>) -> Vec<&Sample> {
    if samples.len() < 3 {
        return samples;
    }
    let (first, last) = (samples[0].start, samples[samples.len() - 1].end);
    let warm = first + last.since(first).scaled(1, 10);
    let early = samples.iter().take_while(|sample| sample.end <= warm).count();
    let count = samples.len().div_ceil(10).max(early).min(samples.len() - 1);
    samples.split_off(count)
}
