//! `probe load`: interactive messages while the path is idle, while it carries bulk transfers, and
//! afterwards.

use super::Connection;
use super::bulk::{BulkFigures, all_ways, with_warmup};
use super::exchange::{Ended, Event, Exchanged};
use super::hosts::{self, Hosts};
use super::rtt::{Probes, RttPlan};
use super::transfer::{Transfer, Transferred, Ways};
use crate::ProbeError;
use crate::pacer::Pace;
use crate::result::{FORMAT, Figures};
use crate::stamp::TimingError;
use crate::wire::message::Transport;
use serde::Serialize;
use std::thread;
use trunkline_core::{Rate, Seed, Span};
use trunkline_fit::{Clock, Degradation, Observations, Stamp};

/// The plan of the measurement.
#[derive(Debug, Clone)]
pub struct LoadPlan {
    /// The carrier of the messages: `udp`, or another.
    pub transport: Transport,
    /// Octets of a message.
    pub size: u32,
    /// The way in which the messages follow each other.
    pub pace: Pace,
    /// The time for which the idle path is measured, before and afterwards.
    pub idle: Span,
    /// The time after the transfers' beginning from which messages count.
    pub warmup: Span,
    /// The transfers; their time is that for which the loaded path is measured.
    pub transfer: Transfer,
    /// The ways.
    pub ways: Ways,
    /// Of the instants and the intervals.
    pub seed: Seed,
}

/// A part of the measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Before the transfers.
    Before,
    /// While they last.
    Loaded,
    /// After them.
    After,
}

impl Phase {
    /// All, in order.
    pub const ALL: [Phase; 3] = [Phase::Before, Phase::Loaded, Phase::After];

    /// As in results.
    pub const fn name(self) -> &'static str {
        match self {
            Phase::Before => "before",
            Phase::Loaded => "loaded",
            Phase::After => "after",
        }
    }
}

/// The document of `probe load`.
#[derive(Debug, Clone, Serialize)]
pub struct LoadResult {
    /// [`FORMAT`].
    pub format: u32,
    /// `load`.
    pub probe: &'static str,
    /// This program's version.
    pub version: &'static str,
    /// The address of the server.
    pub server: String,
    /// The carrier of the messages.
    pub transport: Transport,
    /// The carrier of the transfers.
    pub load_transport: Transport,
    /// The ways of the transfers.
    pub ways: Ways,
    /// Parallel connections each way.
    pub streams: u16,
    /// The rate asked for.
    pub rate_bit_per_s: Option<u64>,
    /// User octets of a message.
    pub size_octets: u32,
    /// The way in which the messages followed each other.
    pub pace: String,
    /// The seed of the instants and of the intervals.
    pub seed: u64,
    /// The possible error of our own times.
    pub timing_error: TimingError,
    /// The messages before, during and after the transfers.
    pub phases: Vec<PhaseFigures>,
    /// The degradation under load, against the idle path before; `None` if a part is missing.
    /// Times in milliseconds.
    pub worse: Option<Degradation>,
    /// The time that the transfers had lasted when the messages beside them began to count.
    pub warmup_s: f64,
    /// The transfers, from the end of the warm-up on.
    pub transfers: Vec<BulkFigures>,
    /// Whether it came to its end.
    pub whole: bool,
    /// Both hosts' counters.
    pub hosts: Hosts,
}

/// The messages of a part.
#[derive(Debug, Clone, Serialize)]
pub struct PhaseFigures {
    /// The phase.
    pub phase: Phase,
    /// The reason why it ended.
    pub ended: Ended,
    /// When it began, its warm-up included, in nanoseconds of this host's clock.
    pub began_ns: u64,
    /// Messages that count.
    pub sent: u64,
    /// Its figures.
    #[serde(flatten)]
    pub figures: Figures,
}

/// The measurements, raw and in figures.
#[derive(Debug)]
pub struct LoadMeasured {
    /// The document.
    pub result: LoadResult,
    /// The samples of each part.
    pub observed: Vec<(Phase, Observations)>,
    /// The reason why the measurement is not whole, if it is not.
    pub failure: Option<ProbeError>,
}

/// Hears what happens in which part.
pub type Tell<'a> = dyn FnMut(Phase, Event) + Send + 'a;

struct Part {
    phase: Phase,
    exchanged: Exchanged,
    observed: Observations,
    /// Messages meant to be sent before this do not count.
    from: Stamp,
}

impl Part {
    /// The observations that count.
    fn counted(&self) -> Observations {
        let (exchanges, lost) = (self.observed.exchanges.iter(), self.observed.lost.iter());
        Observations {
            exchanges: exchanges.filter(|one| one.intended >= self.from).copied().collect(),
            lost: lost.filter(|one| one.sent >= self.from).copied().collect(),
            ..self.observed
        }
    }
}

struct Work<'a> {
    connection: &'a Connection,
    plan: &'a LoadPlan,
    parts: Vec<Part>,
    transfers: Vec<Transferred>,
}

/// Measures.
///
/// # Errors
/// If nothing could be measured.
pub fn measure(
    connection: &Connection,
    plan: &LoadPlan,
    timing: TimingError,
    tell: &mut Tell<'_>,
) -> Result<LoadMeasured, ProbeError> {
    let mut work = Work { connection, plan, parts: Vec::new(), transfers: Vec::new() };
    let (done, mut hosts) = hosts::during(connection, || work.all(tell));
    let late =
        |part: &Part| Some(format!("{}: {}", part.phase.name(), part.exchanged.ledger.late()?));
    hosts.warnings.extend(work.parts.iter().filter_map(late));
    let short = work.transfers.iter().any(|one| !one.is_whole()) && !connection.is_over();
    let closed = || short.then(ProbeError::closed);
    let failure = done.err().or_else(|| connection.lost()).or_else(closed);
    match failure {
        Some(error) if work.parts.is_empty() => Err(error),
        failure => Ok(work.document(timing, hosts, failure)),
    }
}

impl Work<'_> {
    fn all(&mut self, tell: &mut Tell<'_>) -> Result<(), ProbeError> {
        self.messages(Phase::Before, self.plan.idle, tell)?;
        self.loaded(tell)?;
        self.messages(Phase::After, self.plan.idle, tell)
    }

    /// One part; nothing if it is over already.
    fn messages(
        &mut self,
        phase: Phase,
        duration: Span,
        tell: &mut Tell<'_>,
    ) -> Result<(), ProbeError> {
        if self.connection.is_over() {
            return Ok(());
        }
        let part = self.part(phase, duration, Span::ZERO, tell)?;
        let silent = part.exchanged.ledger.answered() == 0 && !self.connection.is_over();
        self.parts.push(part);
        if silent && phase == Phase::Before {
            return Err(ProbeError::Silence(self.connection.server(), "datagrams"));
        }
        Ok(())
    }

    /// Messages for so long, the first of which only warm up.
    fn part(
        &self,
        phase: Phase,
        duration: Span,
        warmup: Span,
        tell: &mut Tell<'_>,
    ) -> Result<Part, ProbeError> {
        let plan = RttPlan {
            sizes: vec![self.plan.size],
            pace: self.plan.pace,
            count: u64::MAX,
            duration,
            seed: Seed(self.plan.seed.0.wrapping_add(phase as u64)),
            ..RttPlan::new(self.plan.transport)
        };
        let mut probes = Probes::open(self.connection, &plan)?;
        let course = probes.course(&plan);
        let (exchanged, report) =
            probes.run(self.connection, &course, &mut |event| tell(phase, event));
        let observed = probes.observed(&exchanged, report.as_ref());
        let from = (exchanged.began + warmup).as_nanos() as Stamp;
        Ok(Part { phase, exchanged, observed, from })
    }

    fn loaded(&mut self, tell: &mut Tell<'_>) -> Result<(), ProbeError> {
        let (connection, plan) = (self.connection, self.plan);
        if connection.is_over() {
            return Ok(());
        }
        let whole = with_warmup(&plan.transfer, plan.warmup).duration;
        let (part, transfers) = thread::scope(|scope| {
            let bulk = scope.spawn(|| all_ways(connection, &plan.transfer, plan.warmup, plan.ways));
            // Messages go while the transfers find their rate, but do not count.
            let part = self.part(Phase::Loaded, whole, plan.warmup, tell);
            let gone = || Err(ProbeError::Gone("a transfer stopped".into()));
            (part, bulk.join().unwrap_or_else(|_| gone()))
        });
        self.parts.push(part?);
        self.transfers = transfers?;
        Ok(())
    }

    fn document(
        self,
        timing: TimingError,
        hosts: Hosts,
        failure: Option<ProbeError>,
    ) -> LoadMeasured {
        let (plan, connection) = (self.plan, self.connection);
        let result = LoadResult {
            format: FORMAT,
            probe: "load",
            version: env!("CARGO_PKG_VERSION"),
            server: connection.server().to_string(),
            transport: plan.transport,
            load_transport: plan.transfer.transport,
            ways: plan.ways,
            streams: plan.transfer.streams,
            rate_bit_per_s: plan.transfer.rate.map(Rate::bits_per_second),
            size_octets: plan.size,
            pace: plan.pace.to_string(),
            seed: plan.seed.0,
            timing_error: timing,
            phases: self.parts.iter().map(figures).collect(),
            worse: self.worse(),
            warmup_s: plan.warmup.as_secs_f64(),
            whole: failure.is_none() && !connection.is_over(),
            transfers: self
                .transfers
                .into_iter()
                .map(|one| BulkFigures::of(one, plan.warmup))
                .collect(),
            hosts,
        };
        let observed = self.parts.into_iter().map(|part| (part.phase, part.observed)).collect();
        LoadMeasured { result, observed, failure }
    }

    fn worse(&self) -> Option<Degradation> {
        let of = |phase: Phase| {
            let part = self.parts.iter().find(|part| part.phase == phase)?;
            let sent = part.counted().in_order_of_sending();
            Some(sent.iter().map(|one| one.response() as f64 / 1e6).collect::<Vec<f64>>())
        };
        Degradation::of(&of(Phase::Before)?, &of(Phase::Loaded)?, self.plan.seed)
    }
}

fn figures(part: &Part) -> PhaseFigures {
    let relation = Clock::relate(&part.observed.exchanges).ok();
    let counted = part.counted();
    PhaseFigures {
        phase: part.phase,
        ended: part.exchanged.ended,
        began_ns: part.exchanged.began.as_nanos(),
        sent: counted.sent(),
        figures: Figures::of(&counted, relation.as_ref()),
    }
}
