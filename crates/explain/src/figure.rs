//! The figure by which runs are compared.

use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use trunkline_measure::{Run, Sample, TrafficRun, deviation, mean};
use trunkline_scenario::Workload;

/// What matters of a traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// The mean delay of a message.
    Delay,
    /// The bytes that all flows together bring over in a second.
    Throughput,
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
    /// Seconds of a message, a write or a transfer.
    pub seconds: f64,
    /// User bytes in that time, all flows together, for each second.
    pub bytes_per_second: f64,
    /// Standard error of the mean over the mean.
    pub error: f64,
    /// Samples.
    pub samples: usize,
}

impl Figure {
    /// The share of the time that `relaxed` saves: 0.9 where it takes a tenth. Negative where it takes longer.
    pub fn saved_by(&self, relaxed: &Figure) -> f64 {
        1.0 - relaxed.seconds / self.seconds
    }

    /// How large a share chance may have made (two standard errors of the difference).
    pub fn noise(&self, relaxed: &Figure) -> f64 {
        2.0 * self.error.hypot(relaxed.error * relaxed.seconds / self.seconds)
    }
}

/// Batches from whose means a standard error is made.
const BATCHES: usize = 8;

/// In place of a size: everything that a traffic delivered, a byte at a time.
pub(crate) const ALL_OF_IT: u64 = 0;

/// The figures of one traffic by size.
pub(crate) type Figures = BTreeMap<u64, Figure>;

/// The figures of the traffic called `name`. One that runs for as long as another does has only a rate, that of all
/// it delivered.
pub(crate) fn figures(run: &Run, name: &str, accompanies: bool) -> Figures {
    let Some(traffic) = run.traffic(name) else { return Figures::new() };
    if accompanies {
        return accompanying(run, traffic);
    }
    let of = |size| figure(traffic, size).map(|figure| (size, figure));
    traffic.sizes().into_iter().filter_map(of).collect()
}

fn accompanying(run: &Run, traffic: &TrafficRun) -> Figures {
    let elapsed = run.ended.since(trunkline_core::Time::ZERO).as_secs_f64();
    if traffic.delivered_bytes == 0 || elapsed == 0.0 {
        return Figures::new();
    }
    let rate = traffic.delivered_bytes as f64 / elapsed;
    let figure = Figure { seconds: 1.0 / rate, bytes_per_second: rate, error: 0.0, samples: 1 };
    Figures::from([(ALL_OF_IT, figure)])
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

/// Of the mean, from means of batches: what follows each other is alike where a queue comes and goes.
fn standard_error(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return 0.0;
    }
    let size = if values.len() < 2 * BATCHES { 1 } else { values.len() / BATCHES };
    let means: Vec<f64> = values.chunks_exact(size).map(mean).collect();
    deviation(&means) / (means.len() as f64).sqrt()
}

/// The samples of one size without the first tenth of each flow, at least one where there are three.
pub(crate) fn settled(traffic: &TrafficRun, size: u64) -> Vec<&Sample> {
    let mut by_flow: BTreeMap<u32, Vec<&Sample>> = BTreeMap::new();
    for sample in traffic.of_size(size) {
        by_flow.entry(sample.flow).or_default().push(sample);
    }
    let keep = |samples: Vec<_>| {
        let warm_up = if samples.len() < 3 { 0 } else { samples.len().div_ceil(10) };
        samples.into_iter().skip(warm_up)
    };
    by_flow.into_values().flat_map(keep).collect()
}
