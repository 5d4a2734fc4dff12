//! Which figure is made of a traffic's measurements.

use trunkline_measure::{Estimator, Quantity};
use trunkline_report::Shown;
use trunkline_scenario::{Traffic, Workload};

/// How `traffic` is summarised: by the estimator that it names, else by the median. Transfers are
/// shown as rates, messages and datagrams by their delay, timed transfers by the time from one write to
/// the next.
pub fn shown(traffic: &Traffic) -> Shown {
    let quantity = match traffic.workload {
        Workload::Bulk { .. } | Workload::Push { .. } | Workload::Greedy { .. } => Quantity::Rate,
        Workload::Interactive { .. }
        | Workload::TimedEcho { .. }
        | Workload::TimedTransfer { .. }
        | Workload::Paced { .. } => Quantity::Delay,
    };
    let named = traffic.estimator.as_deref().and_then(|name| name.parse().ok());
    Shown { quantity, estimator: named.unwrap_or(Estimator::MEDIAN) }
}
