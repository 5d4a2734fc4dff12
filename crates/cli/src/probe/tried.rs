//! A fitted scenario in the simulator, beside what was measured.

use trunkline_fit::{Over, Trial};
use trunkline_measure::{Estimator, Quantity, TrafficRun};
use trunkline_probe::client::fitting::Found;
use trunkline_probe::client::rtt::RttResult;
use trunkline_scenario::Scenario;

/// The sizes that the scenario and the measurement have.
///
/// # Errors
/// If the scenario cannot be simulated.
pub fn trials(text: &str, result: &RttResult, found: &Found) -> Result<Vec<Trial>, String> {
    let cells = Scenario::parse(text, "the fitted scenario").map_err(|error| error.to_string())?;
    let cell = cells.first().ok_or("the fitted scenario has no cell")?;
    let run = trunkline_sim::run(cell).map_err(|error| error.to_string())?;
    let median = |traffic: &TrafficRun, size: u64| {
        Some(traffic.estimate(size, Quantity::Delay, Estimator::MEDIAN)?.value)
    };
    let way = |name: String| {
        let traffic = run.traffic(&name)?;
        median(traffic, *traffic.sizes().first()?)
    };
    let simulated = |size: u32| match found.over {
        Over::Udp(_) => Some(way(format!("up-{size}"))? + way(format!("down-{size}"))?),
        Over::Tcp(_) | Over::Urp => median(run.traffic("echo")?, (size + found.head).into()),
    };
    let trial = |size: u32, quick: f64, median: f64| {
        Some(Trial { size, simulated: simulated(size)?, quick, median })
    };
    let measured = result.sizes.iter().filter_map(|size| {
        let spread = size.figures.round_trip_ms?;
        trial(size.size_octets, spread.min, spread.median)
    });
    Ok(measured.collect())
}
