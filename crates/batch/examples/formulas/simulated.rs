//! The simulator's figures for a case.

use crate::case::Case;
use anyhow::{Result, ensure};
use trunkline_core::{Span, Time};
use trunkline_engine::Run;
use trunkline_scenario::Scenario;

/// Runs of a steady case.
const RUNS: u32 = 2;
/// Runs of a case of transfers, whose times depend much on chance, since an early loss may cost ten round trips: as
/// many as bring so many transfers, within bounds.
const TRANSFERS: u32 = 200;
const TRANSFER_RUNS: (u32, u32) = (4, 100);
/// The columns of the simulated figures.
pub const COLUMNS: &str = "sim_figure,sim_low,sim_high,sim_queue_ms,sim_retransmitted,sim_timeouts";

/// The simulator's figures of a case, means over its runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Simulated {
    /// Steady: user bytes per second of a flow. Transfers: seconds of one.
    pub figure: f64,
    /// The least and the greatest of the runs.
    pub range: (f64, f64),
    /// The mean wait in the queue while it was measured, in milliseconds; of steady cases.
    pub queue: f64,
    /// Segments sent again, and time-outs, of all runs.
    pub again: u64,
    pub timeouts: u64,
}

/// The number of times that a case is run.
pub fn runs(case: &Case) -> u32 {
    match case.bytes {
        Some(_) => (TRANSFERS / case.flows).clamp(TRANSFER_RUNS.0, TRANSFER_RUNS.1),
        None => RUNS,
    }
}

/// Runs the case.
pub fn simulate(case: &Case) -> Result<Simulated> {
    let (mut figures, mut queues) = (Vec::new(), Vec::new());
    let (mut again, mut timeouts) = (0, 0);
    for number in 0..runs(case) {
        let scenario = case.scenario(number)?;
        let run = trunkline_sim::run(&scenario)?;
        let traffic = &run.traffic[0];
        ensure!(!traffic.samples.is_empty(), "case {} measured nothing", case.number);
        figures.push(if case.bytes.is_some() { seconds(&run) } else { rate(case, &run) });
        queues.push(queue(case, &scenario, &run));
        again += traffic.retransmissions;
        timeouts += traffic.timeouts;
    }
    let low = figures.iter().copied().fold(f64::INFINITY, f64::min);
    let high = figures.iter().copied().fold(0.0, f64::max);
    Ok(Simulated {
        figure: mean(&figures),
        range: (low, high),
        queue: mean(&queues),
        again,
        timeouts,
    })
}

/// The mean.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Bytes per second of a flow in the measured intervals.
fn rate(case: &Case, run: &Run) -> f64 {
    let samples = &run.traffic[0].samples;
    let bytes: u64 = samples.iter().map(|sample| sample.size).sum();
    bytes as f64 / case.seconds as f64 / f64::from(case.flows)
}

fn seconds(run: &Run) -> f64 {
    let times: Vec<f64> =
        run.traffic[0].samples.iter().map(|sample| sample.delay().as_secs_f64()).collect();
    mean(&times)
}

/// The mean backlog after the warm-up as a time at the line's rate, in milliseconds.
fn queue(case: &Case, scenario: &Scenario, run: &Run) -> f64 {
    let from = Time::ZERO + Span::from_secs(case.seconds / 2);
    let to = from + Span::from_secs(case.seconds);
    let line = format!("{}>{}", scenario.links[0].from, scenario.links[0].to);
    let Some(link) = run.links.iter().find(|link| link.name == line) else { return f64::NAN };
    let within = link.backlog.iter().filter(|(at, _)| (from..to).contains(at));
    let bytes: Vec<f64> = within.map(|&(_, bytes)| bytes as f64).collect();
    mean(&bytes) * 8e3 / case.rate as f64
}

impl Simulated {
    /// As fields of CSV.
    pub fn line(&self) -> String {
        let Simulated { figure, range, queue, again, timeouts } = self;
        format!("{figure:.6},{:.6},{:.6},{queue:.4},{again},{timeouts}", range.0, range.1)
    }

    /// From the fields that [`line`](Simulated::line) makes.
    pub fn read(fields: &[&str]) -> Result<Simulated> {
        ensure!(fields.len() >= 6, "found {fields:?}: simulated figures have 6 fields");
        Ok(Simulated {
            figure: fields[0].parse()?,
            range: (fields[1].parse()?, fields[2].parse()?),
            queue: fields[3].parse()?,
            again: fields[4].parse()?,
            timeouts: fields[5].parse()?,
        })
    }
}
