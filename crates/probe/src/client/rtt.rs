//! `probe rtt`: round trips of messages of many sizes.

use super::Connection;
use super::carried::{Carried, carry};
use super::carrier::Carrier;
use super::exchange::{Course, Ended, Event, Exchanged, exchange};
use super::hosts::{self, Hosts};
use super::ledger::Ledger;
use super::line;
use crate::pacer::Pace;
use crate::result::{FORMAT, Figures, PathFigures, SizeFigures};
use crate::stamp::TimingError;
use crate::wire::datagram;
use crate::wire::message::{FlowReport, FlowSpec, Role, Transport};
use crate::wire::record;
use crate::{ProbeError, clock};
use serde::Serialize;
use std::collections::BTreeSet;
use std::iter::repeat_n;
use trunkline_core::{Seed, Span};
use trunkline_fit::{Clock, Goal, Known, Observations, Packets, PathFit, Sweep};

/// What is to be measured.
#[derive(Debug, Clone)]
pub struct RttPlan {
    /// What carries the messages.
    pub transport: Transport,
    /// User octets of the messages; empty for sizes around the path's suspected boundaries.
    pub sizes: Vec<u32>,
    /// Sizes that go where the delay jumps, in place of these; `count` and `goal` do not matter then.
    pub sweep: Option<Sweep>,
    /// How the messages follow each other.
    pub pace: Pace,
    /// The most messages of each size.
    pub count: u64,
    /// How long messages are sent at most.
    pub duration: Span,
    /// How long an answer by datagram is waited for.
    pub timeout: Span,
    /// How well each size's median is to be known.
    pub goal: Option<Goal>,
    /// Of order and instants.
    pub seed: Seed,
    /// URP: octets of a block, and blocks outstanding; `None` for the server's.
    pub window: Option<(u16, u8)>,
    /// Have datagrams measure the line first, so that a path can be fitted.
    pub line: bool,
    /// TCP: the congestion control of both ends.
    pub congestion: Option<String>,
}

impl RttPlan {
    /// One outstanding message, ten of each size, nothing special.
    pub fn new(transport: Transport) -> RttPlan {
        RttPlan {
            transport,
            sizes: Vec::new(),
            sweep: None,
            pace: Pace::OneOutstanding,
            count: 10,
            duration: Span::from_secs(3600),
            timeout: Span::from_secs(2),
            goal: None,
            seed: Seed(1),
            window: None,
            line: false,
            congestion: None,
        }
    }

    /// The largest message that the transport carries.
    pub fn most(&self) -> u32 {
        match self.transport {
            Transport::Udp => datagram::MOST_USER,
            Transport::Tcp | Transport::Urp => record::MOST_USER,
        }
    }
}

/// The document of `probe rtt`.
#[derive(Debug, Clone, Serialize)]
pub struct RttResult {
    /// [`FORMAT`].
    pub format: u32,
    /// `rtt`.
    pub probe: &'static str,
    /// This program's version.
    pub version: &'static str,
    /// Where the server was.
    pub server: String,
    /// What carried the messages.
    pub transport: Transport,
    /// How they followed each other.
    pub pace: String,
    /// The seed of order and instants.
    pub seed: u64,
    /// Why it ended.
    pub ended: Ended,
    /// Messages sent.
    pub sent: u64,
    /// Answers.
    pub answered: u64,
    /// Messages that the system did not take.
    pub unsent: u64,
    /// How long it took.
    pub duration_s: f64,
    /// Octets that each message carries beside the user's, IP headers included.
    pub overhead_octets: u32,
    /// What our own times may be wrong by.
    pub timing_error: TimingError,
    /// The clocks' relation; `None` where the server's stamps are missing.
    pub clock: Option<Clock>,
    /// Of all messages.
    pub all: Figures,
    /// By size.
    pub sizes: Vec<SizeFigures>,
    /// What the carrier counted at this end.
    pub near_counts: serde_json::Value,
    /// What the server counted; `None` where it is gone.
    pub far_counts: Option<FarCounts>,
    /// Both hosts' counters.
    pub hosts: Hosts,
    /// The path, where one was to be fitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<PathFigures>,
}

/// What the server counted.
#[derive(Debug, Clone, Serialize)]
pub struct FarCounts {
    /// Messages that came, copies left out.
    pub received: u64,
    /// Further copies.
    pub duplicates: u64,
    /// Messages that came after a later one.
    pub reordered: u64,
    /// Dropped because they came faster than the server allows.
    pub over_rate: u64,
    /// Answers sent.
    pub sent: u64,
    /// Its end of a URP flow.
    pub urp: Option<crate::wire::message::UrpReading>,
}

impl From<&FlowReport> for FarCounts {
    fn from(report: &FlowReport) -> FarCounts {
        FarCounts {
            received: report.received,
            duplicates: report.duplicates,
            reordered: report.reordered,
            over_rate: report.over_rate,
            sent: report.sent,
            urp: report.urp,
        }
    }
}

/// What was measured, raw and in figures.
#[derive(Debug)]
pub struct Measured {
    /// The document.
    pub result: RttResult,
    /// The samples.
    pub observed: Observations,
    /// Why the measurement is not whole, if it is not.
    pub failure: Option<ProbeError>,
    /// What is known of the path before anything is fitted to it.
    pub known: Known,
}

impl Measured {
    /// The path that the round trips say.
    pub fn fit(&self) -> PathFit {
        PathFit::of(&self.observed.round_trips(), self.known, Seed(self.result.seed))
    }
}

/// Measures round trips; `tell` hears of each message.
///
/// # Errors
/// Where nothing could be measured. What ends a measurement that has begun is told beside its result.
pub fn measure(
    connection: &Connection,
    plan: &RttPlan,
    timing: TimingError,
    tell: &mut dyn FnMut(Event),
) -> Result<Measured, ProbeError> {
    let mut flow = Probes::open(connection, plan)?;
    if plan.line {
        flow.known.line = line::measure(connection, &timing, plan.seed)?;
    }
    let course = flow.course(plan);
    let (done, hosts) = hosts::during(connection, || match &plan.sweep {
        Some(sweep) => flow.sweep(connection, &course, sweep, tell),
        None => flow.run(connection, &course, tell),
    });
    let (exchanged, report) = done;
    let failure = failure(connection, &exchanged, &*flow.carrier);
    let observed = flow.observed(&exchanged, report.as_ref());
    let result =
        document(connection, plan, &flow, &exchanged, &observed, report.as_ref(), hosts, timing);
    Ok(Measured { result, observed, failure, known: flow.known })
}

fn failure(
    connection: &Connection,
    exchanged: &Exchanged,
    carrier: &dyn Carrier,
) -> Option<ProbeError> {
    let closed = || ProbeError::Gone("it closed the data connection".into());
    match exchanged.ended {
        Ended::Stopped => None,
        Ended::ServerGone => Some(connection.lost().unwrap_or_else(closed)),
        _ if exchanged.ledger.answered() == 0 && exchanged.ledger.sent() > 0 => {
            let what = if carrier.is_reliable() { "connections" } else { "datagrams" };
            Some(ProbeError::Silence(connection.server(), what))
        }
        _ => connection.lost(),
    }
}

#[expect(clippy::too_many_arguments, reason = "all that a document says")]
fn document(
    connection: &Connection,
    plan: &RttPlan,
    flow: &Probes,
    exchanged: &Exchanged,
    observed: &Observations,
    report: Option<&FlowReport>,
    hosts: Hosts,
    timing: TimingError,
) -> RttResult {
    let relation = Clock::relate(&observed.exchanges).ok();
    RttResult {
        format: FORMAT,
        probe: "rtt",
        version: env!("CARGO_PKG_VERSION"),
        server: connection.server().to_string(),
        transport: plan.transport,
        pace: plan.pace.to_string(),
        seed: plan.seed.0,
        ended: exchanged.ended,
        sent: exchanged.ledger.sent(),
        answered: exchanged.ledger.answered(),
        unsent: exchanged.ledger.unsent,
        duration_s: clock::now().since(exchanged.began).as_secs_f64(),
        overhead_octets: flow.carrier.overhead(),
        timing_error: TimingError { kernel_stamps: flow.carrier.is_stamped(), ..timing },
        all: Figures::of(observed, relation.as_ref()),
        sizes: by_size(flow, exchanged, observed, relation.as_ref()),
        clock: relation,
        near_counts: flow.carrier.reading(),
        far_counts: report.map(FarCounts::from),
        hosts,
        path: None,
    }
}

fn by_size(
    flow: &Probes,
    exchanged: &Exchanged,
    observed: &Observations,
    relation: Option<&Clock>,
) -> Vec<SizeFigures> {
    let mut sizes = flow.sizes.clone();
    sizes.sort_unstable();
    sizes.dedup();
    let overhead = flow.carrier.overhead();
    let one = |size: u32| {
        let mut figures = SizeFigures::of(size, observed, relation);
        figures.ip_octets = (overhead > 0).then(|| size + overhead);
        figures.goal = exchanged.goal(size);
        figures
    };
    sizes.into_iter().map(one).collect()
}

/// A flow of messages and answers.
pub struct Probes {
    flow: u16,
    carrier: Box<dyn Carrier + Send>,
    sizes: Vec<u32>,
    suspects: Vec<u32>,
    known: Known,
}

impl Probes {
    /// Opens the flow and what carries it.
    ///
    /// # Errors
    /// Where the server refuses, or the system gives no socket.
    pub fn open(connection: &Connection, plan: &RttPlan) -> Result<Probes, ProbeError> {
        let asked =
            plan.sizes.iter().copied().chain(plan.sweep.as_ref().map(|sweep| sweep.largest));
        let largest = asked.max().unwrap_or_else(|| plan.most().min(LARGEST));
        if largest > plan.most() {
            return Err(ProbeError::WrongUse(format!(
                "a message by {} has at most {} octets, not {largest}",
                plan.transport,
                plan.most()
            )));
        }
        let spec = FlowSpec {
            transport: plan.transport,
            role: Role::Echo,
            streams: 1,
            size: largest,
            rate: None,
            duration_ns: 0,
            interval_ns: 1_000_000_000,
            congestion: plan.congestion.clone(),
            urp: None,
        };
        let Carried { flow, carrier, suspects, known } = carry(connection, plan, spec)?;
        let suspects = suspects.sizes(largest);
        let sizes = match plan.sizes.is_empty() {
            true => suspects.clone(),
            false => plan.sizes.clone(),
        };
        Ok(Probes { flow, carrier, sizes, suspects, known })
    }

    /// What is to be sent.
    pub fn course(&self, plan: &RttPlan) -> Course {
        let timeout = match self.carrier.is_reliable() {
            // As long as a path may be down.
            true => Span::from_secs(120),
            false => plan.timeout,
        };
        Course {
            sizes: self.sizes.clone(),
            pace: plan.pace,
            rounds: plan.count,
            duration: plan.duration,
            timeout,
            seed: plan.seed,
            goal: plan.goal,
        }
    }

    /// Sends and listens, then asks the server what it saw.
    pub fn run(
        &mut self,
        connection: &Connection,
        course: &Course,
        tell: &mut dyn FnMut(Event),
    ) -> (Exchanged, Option<FlowReport>) {
        let ledger = Ledger::default();
        let exchanged = exchange(&mut *self.carrier, course, ledger, &|| over(connection), tell);
        (exchanged, connection.collect(self.flow).ok())
    }

    /// The same with sizes that go where the delay jumps, until the sweep or the time is over.
    pub fn sweep(
        &mut self,
        connection: &Connection,
        course: &Course,
        sweep: &Sweep,
        tell: &mut dyn FnMut(Event),
    ) -> (Exchanged, Option<FlowReport>) {
        let sweep = self.fitted(sweep);
        let (began, mut ledger, mut turn) = (clock::now(), Ledger::default(), 0);
        let mut measured = BTreeSet::new();
        let exchanged = loop {
            let samples = ledger.observations(None, 0, true).round_trips();
            let asks = sweep.next(&samples);
            let each = asks.iter().flat_map(|ask| repeat_n(ask.size, ask.repeat as usize));
            measured.extend(asks.iter().map(|ask| ask.size));
            turn += 1;
            let part = Course {
                sizes: each.collect(),
                rounds: 1,
                duration: (began + course.duration).since(clock::now()),
                seed: Seed(course.seed.0.wrapping_add(turn)),
                goal: None,
                ..course.clone()
            };
            let done = exchange(&mut *self.carrier, &part, ledger, &|| over(connection), tell);
            if asks.is_empty() || done.ended != Ended::Count {
                break done;
            }
            ledger = done.ledger;
        };
        self.sizes = measured.into_iter().collect();
        (Exchanged { began, ..exchanged }, connection.collect(self.flow).ok())
    }

    /// The sweep as what is known makes it: where datagrams have told the rate, nothing is repeated for its
    /// sake, and on a long path, where jumps are high, little else.
    fn fitted(&self, sweep: &Sweep) -> Sweep {
        let packets =
            if self.carrier.overhead() == 0 { self.known.packets() } else { Packets::UNKNOWN };
        let suspects = self.suspects.clone();
        let line = self.known.line.filter(|_| packets != Packets::UNKNOWN);
        let Some(line) = line else { return Sweep { suspects, packets, ..sweep.clone() } };
        let block = f64::from(packets.block + packets.overhead);
        let once = TURNS * line.trip.value + BLOCKS * 2.0 * block * line.byte.value;
        let repeat = ((BUDGET_MS / once) as u32).clamp(LEAST, sweep.repeat);
        Sweep { suspects: Vec::new(), packets, repeat, slope: false, ..sweep.clone() }
    }

    /// What was observed, with what the server says of it.
    pub fn observed(&self, exchanged: &Exchanged, report: Option<&FlowReport>) -> Observations {
        let ranges = report.filter(|report| !report.truncated).map(|report| &report.ranges[..]);
        let copies = report.map_or(0, |report| report.duplicates);
        exchanged.ledger.observations(ranges, copies, self.carrier.is_reliable())
    }
}

fn over(connection: &Connection) -> Option<Ended> {
    match (connection.is_gone(), connection.is_stopped()) {
        (true, _) => Some(Ended::ServerGone),
        (_, true) => Some(Ended::Stopped),
        _ => None,
    }
}

/// About how many round trips and blocks' times each way a sweep takes that measures each size once, at worst
/// (a window of seven blocks).
const TURNS: f64 = 26.0;
const BLOCKS: f64 = 73.0;
/// How long such a sweep should take, in milliseconds.
const BUDGET_MS: f64 = 12_000.0;
/// Messages of each size in any case.
const LEAST: u32 = 3;

/// The largest size that is chosen without being asked for: beyond it lie several packets of every kind.
const LARGEST: u32 = 4096;
