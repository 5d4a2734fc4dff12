//! What of a traffic is compared: delays for each size, goodput, and loss.

use serde::Serialize;
use std::fmt;
use trunkline_measure::{Estimator, Quantity, TrafficRun, mean_interval};
use trunkline_scenario::Workload;

/// Which figure of a traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case", tag = "what")]
pub enum What {
    /// Median time from a message to its answer, for messages of so many user bytes; in milliseconds.
    RoundTrip {
        /// User bytes.
        size: u64,
    },
    /// Mean time from one write's return to the next one's, for most return at once and few wait; in milliseconds.
    Interval {
        /// User bytes of a write.
        size: u64,
    },
    /// Median time of a datagram from sender to receiver; in milliseconds.
    OneWay,
    /// User bytes that all flows together deliver in a second.
    Goodput,
    /// Share of all packets, both directions together, that were lost.
    Loss,
}

impl What {
    /// The unit of its values; a share has none.
    pub fn unit(self) -> &'static str {
        match self {
            What::RoundTrip { .. } | What::Interval { .. } | What::OneWay => "ms",
            What::Goodput => "B/s",
            What::Loss => "",
        }
    }

    /// The group of samples that it is made of.
    pub(crate) fn size(self, run: &TrafficRun) -> Option<u64> {
        match self {
            What::RoundTrip { size } | What::Interval { size } => Some(size),
            What::OneWay | What::Goodput => run.sizes().first().copied(),
            What::Loss => None,
        }
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            What::RoundTrip { size } => write!(f, "round trip, {size} B"),
            What::Interval { size } => write!(f, "write interval, {size} B"),
            What::OneWay => write!(f, "one-way delay"),
            What::Goodput => write!(f, "goodput"),
            What::Loss => write!(f, "packets lost"),
        }
    }
}

/// A value with its 95 % confidence interval, if the samples allow one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Figure {
    /// In the unit of its [`What`].
    pub value: f64,
    /// Lower end of the interval.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// How many samples, or packets, it is made of.
    pub count: u64,
    /// Whether it is of a run that must not be used.
    pub invalid: bool,
}

impl Figure {
    /// Whether chance explains the distance of the two: their intervals overlap; one without an interval is a
    /// point.
    pub fn overlaps(&self, other: &Figure) -> bool {
        let ends = |figure: &Figure| {
            (figure.low.unwrap_or(figure.value), figure.high.unwrap_or(figure.value))
        };
        let ((low, high), (other_low, other_high)) = (ends(self), ends(other));
        low <= other_high && other_low <= high
    }
}

/// Every figure of a traffic's run, in the order in which they are shown.
pub fn figures(workload: &Workload, run: &TrafficRun) -> Vec<(What, Figure)> {
    let delays = |what: fn(u64) -> What, estimator: Estimator| -> Vec<(What, Figure)> {
        run.sizes()
            .into_iter()
            .filter_map(|size| Some((what(size), delay(run, size, estimator)?)))
            .collect()
    };
    let mut found = match workload {
        Workload::Interactive { .. } | Workload::TimedEcho { .. } => {
            delays(|size| What::RoundTrip { size }, Estimator::MEDIAN)
        }
        Workload::TimedTransfer { .. } => delays(|size| What::Interval { size }, Estimator::Mean),
        Workload::Paced { .. } => delays(|_| What::OneWay, Estimator::MEDIAN),
        Workload::Bulk { .. } | Workload::Push { .. } | Workload::Greedy { .. } => {
            goodput(run).map(|figure| (What::Goodput, figure)).into_iter().collect()
        }
    };
    found.extend(loss(run).map(|figure| (What::Loss, figure)));
    found
}

fn delay(run: &TrafficRun, size: u64, estimator: Estimator) -> Option<Figure> {
    let estimate = run.estimate(size, Quantity::Delay, estimator)?;
    let count = run.count(size);
    let (value, low, high) = (estimate.value, estimate.low, estimate.high);
    Some(Figure { value, low, high, count, invalid: false })
}

/// What all flows together deliver; the halves of the flows' own intervals add as independent errors do.
fn goodput(run: &TrafficRun) -> Option<Figure> {
    let size = *run.sizes().first()?;
    let flows = run.by_flow(size, Quantity::Rate);
    let value = run.total_rate(size)?;
    let half = |flow: &Vec<f64>| mean_interval(flow, 0.95).map(|it| it.ends.high - it.mean);
    let halves: Option<Vec<f64>> = flows.iter().map(half).collect();
    let half = halves.map(|halves| halves.iter().map(|half| half * half).sum::<f64>().sqrt());
    let count = flows.iter().map(Vec::len).sum::<usize>() as u64;
    let (low, high) = half.map(|half| (value - half, value + half)).unzip();
    value.is_finite().then_some(Figure { value, low, high, count, invalid: false })
}

/// The lost share of all packets, with the interval of Wilson 1927 for independent losses.
fn loss(run: &TrafficRun) -> Option<Figure> {
    let packets = run.packets;
    let (value, count) = (packets.lost()?, packets.sent + packets.duplicated);
    let (low, high) = wilson(packets.dropped as f64, count as f64);
    Some(Figure { value, low: Some(low), high: Some(high), count, invalid: false })
}

/// The 95 % score interval of a share of `of` trials.
fn wilson(hits: f64, of: f64) -> (f64, f64) {
    const Z: f64 = 1.959_964;
    let (share, spread) = (hits / of, Z * Z / of);
    let middle = (share + spread / 2.0) / (1.0 + spread);
    let half = (share * (1.0 - share) * spread + spread * spread / 4.0).sqrt() / (1.0 + spread);
    ((middle - half).max(0.0), (middle + half).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wilsons_interval_is_that_of_the_tables() {
        // 10 of 100: 5.52 % to 17.44 % (Newcombe 1998, method 3).
        let (low, high) = wilson(10.0, 100.0);
        assert!((low - 0.0552).abs() < 1e-4 && (high - 0.1744).abs() < 1e-4, "{low} {high}");
        let (low, high) = wilson(0.0, 100.0);
        assert!(low == 0.0 && (high - 0.0370).abs() < 1e-4, "{high}");
    }

    #[test]
    fn points_overlap_where_they_are_equal() {
        let point = |value| Figure { value, low: None, high: None, count: 1, invalid: false };
        assert!(point(1.0).overlaps(&point(1.0)) && !point(1.0).overlaps(&point(1.1)));
        let wide = Figure { low: Some(0.9), high: Some(1.2), ..point(1.0) };
        assert!(wide.overlaps(&point(1.1)) && point(1.2).overlaps(&wide));
    }
}
