//! `probe bulk`: what a path carries.

use super::Connection;
use super::hosts::{self, Hosts};
use super::transfer::{Datagrammed, Direction, Transfer, Transferred, Ways, transfer};
use crate::result::FORMAT;
use crate::tcp::TcpReading;
use crate::wire::message::{Transport, UrpReading};
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
    /// The mean of the runs and its 95 % interval; of one run, that of its intervals.
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

/// One direction of one run.
#[derive(Debug, Clone, Serialize)]
pub struct BulkFigures {
    /// The direction.
    pub direction: Direction,
    /// User octets that the receiver got in the time that counts.
    pub octets: u64,
    /// The time that counts: whole intervals after the warm-up.
    pub counted_s: f64,
    /// User bits received each second of it.
    pub goodput_bit_per_s: f64,
    /// The mean of the intervals that count and its 95 % interval, by batch means; `None` for fewer than
    /// two.
    pub goodput: Option<MeanInterval>,
    /// The same as `goodput_bit_per_s` for each stream.
    pub streams_bit_per_s: Vec<f64>,
    /// All intervals, the warm-up's too.
    pub intervals: Vec<IntervalFigures>,
    /// TCP: the sender's congestion control.
    pub congestion: Option<String>,
    /// TCP: segments sent again, over all streams.
    pub retransmits: Option<u64>,
    /// TCP: for each stream, what the sender's kernel said over time.
    pub tcp: Vec<Vec<TcpReading>>,
    /// UDP: what became of the datagrams.
    pub datagrams: Option<DatagramFigures>,
    /// URP: the sender.
    pub urp_sender: Option<UrpReading>,
    /// URP: the receiver.
    pub urp_receiver: Option<UrpReading>,
}

/// An interval.
#[derive(Debug, Clone, Serialize)]
pub struct IntervalFigures {
    /// When it began, after the first octets.
    pub start_s: f64,
    /// The length of the interval.
    pub length_s: f64,
    /// User octets received.
    pub octets: u64,
    /// The same of each stream.
    pub streams_octets: Vec<u64>,
    /// All of them as bits per second.
    pub goodput_bit_per_s: f64,
    /// Whether it is part of the warm-up.
    pub warmup: bool,
}

/// Counts of the datagrams.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct DatagramFigures {
    /// The counts.
    #[serde(flatten)]
    pub counts: Datagrammed,
    /// Lost on the path.
    pub lost: u64,
    /// The same as a share of those sent, 0 to 1.
    pub lost_share: f64,
    /// Interarrival jitter (RFC 3550).
    pub jitter_ms: Option<f64>,
}

impl From<Datagrammed> for DatagramFigures {
    fn from(counts: Datagrammed) -> DatagramFigures {
        DatagramFigures {
            counts,
            lost: counts.lost(),
            lost_share: counts.lost() as f64 / counts.sent.max(1) as f64,
            jitter_ms: counts.jitter_ns.map(|nanos| nanos as f64 / 1e6),
        }
    }
}

impl BulkFigures {
    /// Of a transfer, its first `warmup` left out.
    pub fn of(done: Transferred, warmup: Span) -> BulkFigures {
        let interval = done.interval.max(Span::from_millis(1));
        let seconds = interval.as_secs_f64();
        let whole = (done.duration.as_nanos() / interval.as_nanos()) as usize;
        let skipped = (warmup.as_nanos().div_ceil(interval.as_nanos()) as usize).min(whole);
        let at = |bins: &[u64], index: usize| bins.get(index).copied().unwrap_or(0);
        let sum = |index: usize| done.bins.iter().map(|bins| at(bins, index)).sum::<u64>();
        let counted: Vec<u64> = (skipped..whole).map(sum).collect();
        let rates: Vec<f64> = counted.iter().map(|&octets| octets as f64 * 8.0 / seconds).collect();
        let (octets, counted_s) = (counted.iter().sum::<u64>(), counted.len() as f64 * seconds);
        let rate =
            |octets: u64| if counted_s > 0.0 { octets as f64 * 8.0 / counted_s } else { 0.0 };
        let stream = |bins: &Vec<u64>| rate((skipped..whole).map(|index| at(bins, index)).sum());
        let figure = |index: usize| IntervalFigures {
            start_s: index as f64 * seconds,
            length_s: seconds,
            octets: sum(index),
            streams_octets: done.bins.iter().map(|bins| at(bins, index)).collect(),
            goodput_bit_per_s: sum(index) as f64 * 8.0 / seconds,
            warmup: index < skipped,
        };
        let last = |list: &Vec<TcpReading>| list.last().map(|last| u64::from(last.retransmits));
        BulkFigures {
            direction: done.direction,
            octets,
            counted_s,
            goodput_bit_per_s: rate(octets),
            goodput: mean_interval(&rates, CONFIDENCE),
            streams_bit_per_s: done.bins.iter().map(stream).collect(),
            intervals: (0..whole).map(figure).collect(),
            congestion: done.congestion,
            retransmits: done.tcp.iter().map(last).sum(),
            tcp: done.tcp,
            datagrams: done.datagrams.map(DatagramFigures::from),
            urp_sender: done.urp.map(|(sender, _)| sender),
            urp_receiver: done.urp.map(|(_, receiver)| receiver),
        }
    }

    /// Whether nothing arrived, in the warm-up neither.
    fn is_empty(&self) -> bool {
        self.intervals.iter().all(|interval| interval.octets == 0)
    }
}

const CONFIDENCE: f64 = 0.95;

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
    let failure = match failure {
        Some(error) if runs.is_empty() => return Err(error),
        None if runs.iter().all(empty) && !connection.is_over() => {
            Some(ProbeError::Silence(connection.server(), "data"))
        }
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

fn values(direction: Direction, runs: &[BulkRun]) -> Vec<f64> {
    let all = runs.iter().flat_map(|run| &run.directions);
    all.filter(|found| found.direction == direction).map(|found| found.goodput_bit_per_s).collect()
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
    let done = all_ways(connection, &with_warmup(&plan.transfer, plan.warmup), plan.ways)?;
    let figures = done.into_iter().map(|done| BulkFigures::of(done, plan.warmup));
    Ok(BulkRun { directions: figures.collect() })
}

/// The transfer with the warm-up in front, in whole intervals: all of the time asked for counts. The slow start is part
/// of what the warm-up leaves out.
pub fn with_warmup(transfer: &Transfer, warmup: Span) -> Transfer {
    let transfer = transfer.clone();
    let interval = transfer.interval.min(transfer.duration).max(Span::from_millis(1));
    let intervals = warmup.as_nanos().div_ceil(interval.as_nanos());
    Transfer { interval, duration: transfer.duration + interval.scaled(intervals, 1), ..transfer }
}

/// Transfers in all these directions at once.
///
/// # Errors
/// The first direction's that fails.
pub fn all_ways(
    connection: &Connection,
    plan: &Transfer,
    ways: Ways,
) -> Result<Vec<Transferred>, ProbeError> {
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
    use super::*;

    fn done(bins: &[&[u64]]) -> Transferred {
        Transferred {
            direction: Direction::Up,
            duration: Span::from_secs(5),
            interval: Span::from_secs(1),
            bins: bins.iter().map(|bins| bins.to_vec()).collect(),
            tcp: Vec::new(),
            congestion: None,
            datagrams: None,
            urp: None,
        }
    }

    #[test]
    fn the_warm_up_and_what_comes_late_do_not_count() {
        let figures = BulkFigures::of(
            done(&[&[1, 2, 1000, 1000, 1000, 500], &[0, 0, 0, 2000]]),
            Span::from_millis(1500),
        );
        assert_eq!((figures.octets, figures.counted_s), (5000, 3.0));
        assert!((figures.goodput_bit_per_s - 40_000.0 / 3.0).abs() < 1e-9);
        assert_eq!(figures.streams_bit_per_s, [8000.0, 16_000.0 / 3.0]);
        assert_eq!(figures.intervals.len(), 5);
        assert!(figures.intervals[1].warmup && !figures.intervals[2].warmup);
        assert_eq!(figures.intervals[3].octets, 3000);
    }

    #[test]
    fn nothing_received_is_a_goodput_of_nothing() {
        let figures = BulkFigures::of(done(&[]), Span::from_secs(9));
        assert_eq!((figures.goodput_bit_per_s, figures.counted_s), (0.0, 0.0));
        assert_eq!(figures.goodput, None);
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
        for (duration, warmup, interval) in
            [(1000, 500, 1000), (300, 1000, 1000), (2000, 0, 1000), (2000, 900, 300), (1, 1, 1000)]
        {
            let mut plan = plan(Repeat::Times(1));
            plan.transfer.duration = Span::from_millis(duration);
            (plan.transfer.interval, plan.warmup) =
                (Span::from_millis(interval), Span::from_millis(warmup));
            let whole = with_warmup(&plan.transfer, plan.warmup);
            let bins = vec![1; (whole.duration.as_nanos() / whole.interval.as_nanos()) as usize];
            let done = Transferred {
                duration: whole.duration,
                interval: whole.interval,
                ..done(&[&bins])
            };
            let figures = BulkFigures::of(done, plan.warmup);
            let (counted, asked) = (figures.counted_s, duration as f64 / 1e3);
            let least = asked - whole.interval.as_secs_f64();
            assert!(counted > least && counted <= asked + 1e-9, "{duration} {warmup}: {counted}");
        }
    }

    #[test]
    fn what_came_in_the_warm_up_is_something() {
        assert!(!BulkFigures::of(done(&[&[7]]), Span::from_secs(2)).is_empty());
        assert!(BulkFigures::of(done(&[&[]]), Span::from_secs(2)).is_empty());
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
