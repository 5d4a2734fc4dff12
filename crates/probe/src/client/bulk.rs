//! `probe bulk`: what a path carries.

use super::Connection;
use super::goodput::CONFIDENCE;
pub use super::goodput::{BulkFigures, DatagramFigures, IntervalFigures};
use super::hosts::{self, Hosts};
use super::transfer::{Direction, Transfer, Transferred, Ways, transfer};
use crate::error::too_long;
use crate::result::FORMAT;
use crate::wire::message::Transport;
use crate::{ProbeError, clock};
use serde::Serialize;
use std::thread;
use trunkline_core::{Rate, Span};
use trunkline_fit::{Center, Goal, Look, Progress, Stopping};
use trunkline_measure::{MeanInterval, mean_interval};

/// The plan of the measurement.
#[derive(Debug, Clone)]
pub struct BulkPlan {
    /// Each transfer.
    pub transfer: Transfer,
    /// The ways.
    pub ways: Ways,
    /// The part of each transfer's beginning that is left out.
    pub warmup: Span,
    /// The number of repetitions.
    pub repeat: Repeat,
}

/// The number of repetitions.
#[derive(Debug, Clone, Copy)]
pub enum Repeat {
    /// So often.
    Times(u32),
    /// Until the mean of all runs is known so well.
    Until(Goal),
}

/// The document of `probe bulk`.
#[derive(Debug, Clone, Serialize)]
pub struct BulkResult {
    /// [`FORMAT`].
    pub format: u32,
    /// `bulk`.
    pub probe: &'static str,
    /// This program's version.
    pub version: &'static str,
    /// The address of the server.
    pub server: String,
    /// The carrier of the transfers.
    pub transport: Transport,
    /// The ways.
    pub ways: Ways,
    /// Parallel connections.
    pub streams: u16,
    /// The rate asked for.
    pub rate_bit_per_s: Option<u64>,
    /// The time that each transfer was to last.
    pub duration_s: f64,
    /// The time left out at its beginning.
    pub warmup_s: f64,
    /// The runs, one after the other.
    pub runs: Vec<BulkRun>,
    /// Over the runs, for each direction: the mean goodput and its interval.
    pub goodput: Vec<Goodput>,
    /// Whether it is whole: neither the user nor the server ended it before its time.
    pub whole: bool,
    /// Both hosts' counters.
    pub hosts: Hosts,
}

/// The goodput of a direction over all runs.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Goodput {
    /// The direction.
    pub direction: Direction,
    /// The mean of the whole runs and its 95 % interval; of one run, that of its intervals.
    pub bit_per_s: Option<MeanInterval>,
    /// The result of the repetition until a stated confidence.
    pub known_bit_per_s: Option<Look>,
    /// Whether the goal was reached. `None` without one.
    pub reached: Option<bool>,
}

/// One run.
#[derive(Debug, Clone, Serialize)]
pub struct BulkRun {
    /// The directions, which go at once.
    pub directions: Vec<BulkFigures>,
}

/// The measurements, and the reason why there are no more.
#[derive(Debug)]
pub struct BulkMeasured {
    /// The document.
    pub result: BulkResult,
    /// The reason why the measurement is not whole, if it is not.
    pub failure: Option<ProbeError>,
}

/// Measures; `tell` hears of each run when it is over.
///
/// # Errors
/// If nothing could be measured.
pub fn measure(
    connection: &Connection,
    plan: &BulkPlan,
    tell: &mut dyn FnMut(&BulkRun),
) -> Result<BulkMeasured, ProbeError> {
    let (found, hosts) = hosts::during(connection, || runs(connection, plan, tell));
    let (runs, failure) = found;
    let empty = |run: &BulkRun| run.directions.iter().all(BulkFigures::is_empty);
    let short = |run: &BulkRun| run.directions.iter().any(|found| !found.whole);
    let failure = match failure {
        Some(error) if runs.is_empty() => return Err(error),
        None if runs.iter().all(empty) && !connection.is_over() => {
            Some(ProbeError::Silence(connection.server(), "data"))
        }
        None if runs.iter().any(short) && !connection.is_over() => Some(ProbeError::closed()),
        other => other,
    };
    let whole = failure.is_none() && !connection.is_over();
    let each = |direction: &Direction| goodput(*direction, &runs, plan);
    let result = BulkResult {
        format: FORMAT,
        probe: "bulk",
        version: env!("CARGO_PKG_VERSION"),
        server: connection.server().to_string(),
        transport: plan.transfer.transport,
        ways: plan.ways,
        streams: plan.transfer.streams,
        rate_bit_per_s: plan.transfer.rate.map(Rate::bits_per_second),
        duration_s: plan.transfer.duration.as_secs_f64(),
        warmup_s: plan.warmup.as_secs_f64(),
        goodput: plan.ways.list().iter().map(each).collect(),
        runs,
        whole,
        hosts,
    };
    Ok(BulkMeasured { result, failure })
}

fn runs(
    connection: &Connection,
    plan: &BulkPlan,
    tell: &mut dyn FnMut(&BulkRun),
) -> (Vec<BulkRun>, Option<ProbeError>) {
    let mut runs: Vec<BulkRun> = Vec::new();
    while goes_on(plan, &runs) && (runs.is_empty() || !connection.is_over()) {
        match run(connection, plan) {
            Ok(done) => {
                tell(&done);
                runs.push(done);
            }
            Err(error) => return (runs, Some(error)),
        }
    }
    (runs, connection.lost())
}

/// Whether one more run is to be made. The looks are fixed by the runs' number, so that the same runs give the
/// same answer.
fn goes_on(plan: &BulkPlan, runs: &[BulkRun]) -> bool {
    match plan.repeat {
        Repeat::Times(times) => runs.len() < times as usize,
        Repeat::Until(goal) => {
            plan.ways.list().iter().any(|&way| matches!(look(goal, way, runs), Progress::More(_)))
        }
    }
}

/// The goodputs of the whole runs: one that was cut short has fewer intervals, and is not to weigh as much.
fn values(direction: Direction, runs: &[BulkRun]) -> Vec<f64> {
    let all = runs.iter().flat_map(|run| &run.directions);
    let all = all.filter(|found| found.direction == direction && found.whole);
    all.filter_map(|found| found.goodput_bit_per_s).collect()
}

/// All looks again, up to the first that ends it.
fn look(goal: Goal, direction: Direction, runs: &[BulkRun]) -> Progress {
    let values = values(direction, runs);
    let mut stopping = Stopping::new(Goal { center: Center::Mean, ..goal });
    let mut progress = Progress::More(0);
    for count in 0..=values.len() {
        progress = stopping.look(&values[..count]);
        if !matches!(progress, Progress::More(_)) {
            break;
        }
    }
    progress
}

fn goodput(direction: Direction, runs: &[BulkRun], plan: &BulkPlan) -> Goodput {
    let values = values(direction, runs);
    let single = || runs.first()?.directions.iter().find(|one| one.direction == direction)?.goodput;
    let (known, reached) = match plan.repeat {
        Repeat::Times(_) => (None, None),
        Repeat::Until(goal) => match look(goal, direction, runs) {
            Progress::Reached(known) => (Some(known), Some(true)),
            Progress::NotReached(known) => (Some(known), Some(false)),
            Progress::More(_) => (None, Some(false)),
        },
    };
    let bit_per_s = if values.len() > 1 { mean_interval(&values, CONFIDENCE) } else { single() };
    Goodput { direction, bit_per_s, known_bit_per_s: known, reached }
}

fn run(connection: &Connection, plan: &BulkPlan) -> Result<BulkRun, ProbeError> {
    let done = all_ways(connection, &plan.transfer, plan.warmup, plan.ways)?;
    let figures = done.into_iter().map(|done| BulkFigures::of(done, plan.warmup));
    Ok(BulkRun { directions: figures.collect() })
}

/// The transfer with the warm-up in front, each made up to whole intervals: all of the time asked for counts, and a shorter
/// interval does not stand among equal ones. The slow start is part of what the warm-up leaves out.
pub fn with_warmup(transfer: &Transfer, warmup: Span) -> Transfer {
    let transfer = transfer.clone();
    let interval = transfer.interval.min(transfer.duration).max(Span::from_millis(1));
    let intervals = |span: Span| span.as_nanos().div_ceil(interval.as_nanos());
    let all = intervals(warmup) + intervals(transfer.duration);
    Transfer { interval, duration: interval.scaled(all, 1), ..transfer }
}

/// Fails if a transfer with its warm-up takes longer than the session. The server would refuse it too, but knows of no
/// warm-up.
fn check_time(connection: &Connection, whole: Span, warmup: Span) -> Result<(), ProbeError> {
    let left = connection.left();
    if whole <= left {
        return Ok(());
    }
    let asked = match warmup.is_zero() {
        true => format!("{whole} in all"),
        false => format!("{whole} in all, {warmup} of it warm-up,"),
    };
    Err(ProbeError::Refused(too_long(left, &asked)))
}

/// Transfers in all these directions at once, behind a warm-up.
///
/// # Errors
/// The first direction's that fails.
pub fn all_ways(
    connection: &Connection,
    asked: &Transfer,
    warmup: Span,
    ways: Ways,
) -> Result<Vec<Transferred>, ProbeError> {
    let plan = &with_warmup(asked, warmup);
    check_time(connection, plan.duration, warmup)?;
    let began = clock::now();
    thread::scope(|scope| {
        let start = |&way: &Direction| scope.spawn(move || transfer(connection, plan, way));
        let running: Vec<_> = ways.list().iter().map(start).collect();
        let after = clock::now().since(began);
        let gone = || ProbeError::Gone(format!("a transfer stopped after {}", after.rounded()));
        running.into_iter().map(|one| one.join().unwrap_or_else(|_| Err(gone()))).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::super::goodput::tests::{cut_short, done};
    use super::*;

    #[test]
    fn a_run_cut_short_does_not_weigh_as_much_as_whole_ones() {
        let run = |done: Transferred| BulkRun {
            directions: vec![BulkFigures::of(done, Span::from_secs(1))],
        };
        let cut = |lasted| run(cut_short(&[&[9; 5]], Span::from_millis(lasted)));
        let two = [run(done(&[&[1000; 5]])), cut(2500)];
        let plan = plan(Repeat::Times(2));
        let mean = |runs: &[BulkRun]| {
            goodput(Direction::Up, runs, &plan).bit_per_s.map(|found| found.mean)
        };
        assert_eq!(
            (mean(&two), mean(&[cut(3500)]), mean(&[cut(900)])),
            (Some(8e3), Some(72.0), None)
        );
    }

    fn plan(repeat: Repeat) -> BulkPlan {
        BulkPlan {
            transfer: Transfer {
                transport: Transport::Tcp,
                streams: 1,
                size: None,
                rate: None,
                duration: Span::from_secs(5),
                interval: Span::from_secs(1),
                congestion: None,
                window: (1024, 7),
            },
            ways: Ways::Up,
            warmup: Span::ZERO,
            repeat,
        }
    }

    /// Of a second behind a warm-up of half a one no whole interval was left.
    #[test]
    fn the_time_asked_for_counts_whatever_warm_up_and_intervals_are() {
        for (duration, warmup, interval) in [
            (1000, 500, 1000),
            (300, 1000, 1000),
            (2000, 0, 1000),
            (2000, 900, 300),
            (1, 1, 1000),
            (3000, 1000, 2000),
        ] {
            let mut plan = plan(Repeat::Times(1));
            plan.transfer.duration = Span::from_millis(duration);
            (plan.transfer.interval, plan.warmup) =
                (Span::from_millis(interval), Span::from_millis(warmup));
            let whole = with_warmup(&plan.transfer, plan.warmup);
            let bins = vec![1; (whole.duration.as_nanos() / whole.interval.as_nanos()) as usize];
            let done = Transferred {
                duration: whole.duration,
                lasted: whole.duration,
                interval: whole.interval,
                ..done(&[&bins])
            };
            let figures = BulkFigures::of(done, plan.warmup);
            let (counted, asked) = (figures.counted_s, duration as f64 / 1e3);
            let more = counted - asked;
            let most = whole.interval.as_secs_f64() - 1e-9;
            assert!((-1e-9..most).contains(&more), "{duration} {warmup}: {counted}");
        }
    }

    #[test]
    fn runs_are_repeated_until_their_mean_is_known() {
        let run = |octets: u64| BulkRun {
            directions: vec![BulkFigures::of(done(&[&[octets; 5]]), Span::ZERO)],
        };
        let runs: Vec<BulkRun> = (0..12).map(|index| run(100_000 + index % 3)).collect();
        assert!(
            goes_on(&plan(Repeat::Times(13)), &runs) && !goes_on(&plan(Repeat::Times(12)), &runs)
        );
        let goal = Goal { relative: 0.02, least: 10, most: 30, ..Goal::default() };
        let until = plan(Repeat::Until(goal));
        assert!(goes_on(&until, &runs[..9]) && !goes_on(&until, &runs));
        assert_eq!(goodput(Direction::Up, &runs, &until).reached, Some(true));
        let wild: Vec<BulkRun> = (0..12).map(|index| run(1 + 1000 * index)).collect();
        assert!(goes_on(&until, &wild));
    }
}
