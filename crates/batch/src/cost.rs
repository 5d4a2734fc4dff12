//! The time that a scenario probably takes, so that the longest can be begun first.

use trunkline_core::Span;
use trunkline_scenario::{Scenario, Traffic, Workload};

const SECOND: Span = Span::from_secs(1);

/// Rough measure of how long the simulation of `scenario` takes: user bytes to be carried, those of
/// background traffic as many again as of what they wait for.
pub fn cost(scenario: &Scenario) -> u64 {
    let own: u64 = scenario.traffic.iter().filter(|one| one.until.is_none()).map(bytes).sum();
    let background = scenario.traffic.iter().filter(|one| one.until.is_some());
    let flows: u64 = background.map(|one| u64::from(one.count)).sum();
    own.saturating_mul(1 + 10 * flows)
}

/// User bytes that a traffic carries, roughly.
fn bytes(traffic: &Traffic) -> u64 {
    let each = match &traffic.workload {
        Workload::Interactive { sizes, repeat, .. } => messages(sizes) * u64::from(*repeat),
        Workload::Bulk { bytes, repeat, .. } | Workload::Push { bytes, repeat, .. } => {
            bytes.bytes().saturating_mul(u64::from(*repeat))
        }
        Workload::TimedEcho { sizes, duration } | Workload::TimedTransfer { sizes, duration } => {
            // Some twenty rounds a second, whatever the size.
            messages(sizes).saturating_mul(20 * duration.as_nanos() / SECOND.as_nanos())
        }
        // A connection carries perhaps a megabyte each second.
        Workload::Greedy { duration, .. } => duration.as_nanos() / 1000,
        Workload::Paced { rate, duration, .. } => rate.bytes_in(*duration),
    };
    each.saturating_mul(u64::from(traffic.count))
}

fn messages(sizes: &[u32]) -> u64 {
    sizes.iter().map(|&size| u64::from(size) + 64).sum()
}
