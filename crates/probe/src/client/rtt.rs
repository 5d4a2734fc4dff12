//! `probe rtt`: round trips of messages of many sizes.

use super::Connection;
use super::carried::{Carried, carry};
use super::carrier::Carrier;
use super::connection::TcpEnd;
use super::exchange::{Course, Ended, Event, Exchanged, exchange};
use super::fitting;
use super::fresh::Fresh;
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
use trunkline_fit::{
    Ask, CannotTell, Clock, Goal, Known, Looking, Observations, Over, PathFit, Suspects, Sweep,
};

/// The plan of the measurement.
#[derive(Debug, Clone)]
pub struct RttPlan {
    /// The carrier of the messages.
    pub transport: Transport,
    /// User octets of the messages; empty for sizes around the path's suspected boundaries.
    pub sizes: Vec<u32>,
    /// Sizes that follow the jumps of delay, in place of these; `count` and `goal` do not matter then.
    pub sweep: Option<Sweep>,
    /// The way in which the messages follow each other.
    pub pace: Pace,
    /// The most messages of each size.
    pub count: u64,
    /// The longest time for which messages are sent.
    pub duration: Span,
    /// The time for which an answer by datagram is waited for.
    pub timeout: Span,
    /// The accuracy to which each size's median is to be known.
    pub goal: Option<Goal>,
    /// Of order and instants.
    pub seed: Seed,
    /// URP: octets of a block, and blocks outstanding; `None` for the server's.
    pub window: Option<(u16, u8)>,
    /// Have datagrams measure the line first, so that a path can be fitted.
    pub line: bool,
    /// TCP: the congestion control of both ends.
    pub congestion: Option<String>,
    /// TCP: octets of the largest window that this end offers, which bounds the answers; `None` for the
    /// system's, which grows.
    pub tcp_window: Option<u32>,
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
            tcp_window: None,
        }
    }

    /// The settings of this end of a data connection.
    pub(super) fn end(&self) -> TcpEnd {
        TcpEnd { congestion: self.congestion.clone(), window: self.tcp_window }
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
    /// The address of the server.
    pub server: String,
    /// The carrier of the messages.
    pub transport: Transport,
    /// The way in which they followed each other.
    pub pace: String,
    /// The seed of order and instants.
    pub seed: u64,
    /// The reason why it ended.
    pub ended: Ended,
    /// Messages sent.
    pub sent: u64,
    /// Answers.
    pub answered: u64,
    /// Messages that the system did not take.
    pub unsent: u64,
    /// The time that it took.
    pub duration_s: f64,
    /// Octets that each message carries beside the user's, IP headers included.
    pub overhead_octets: u32,
    /// The possible error of our own times.
    pub timing_error: TimingError,
    /// The clocks' relation; `None` if the server's stamps are missing.
    pub clock: Option<Clock>,
    /// Of all messages.
    pub all: Figures,
    /// By size.
    pub sizes: Vec<SizeFigures>,
    /// The carrier's counts at this end.
    pub near_counts: serde_json::Value,
    /// The server's counts; `None` if it is gone.
    pub far_counts: Option<FarCounts>,
    /// Both hosts' counters.
    pub hosts: Hosts,
    /// The path, if one was to be fitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<PathFigures>,
}

/// The server's counts.
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

/// The measurements, raw and in figures.
#[derive(Debug)]
pub struct Measured {
    /// The document.
    pub result: RttResult,
    /// The samples.
    pub observed: Observations,
    /// The reason why the measurement is not whole, if it is not.
    pub failure: Option<ProbeError>,
    /// The knowledge of the path before anything is fitted to it.
    pub known: Known,
    /// Octets of each message's head that the sender's window counts with the user's.
    pub head: u32,
    /// The carrier of the messages.
    pub over: Over,
    /// TCP, if a path is to be fitted: octets that a fresh connection sends before it waits.
    pub initial: Option<Result<u32, CannotTell>>,
}

/// Measures round trips; `tell` hears of each message.
///
/// # Errors
/// If nothing could be measured. What ends a measurement that has begun is told beside its result.
pub fn measure(
    connection: &Connection,
    plan: &RttPlan,
    timing: TimingError,
    tell: &mut dyn FnMut(Event),
) -> Result<Measured, ProbeError> {
    let mut flow = Probes::open(connection, plan)?;
    if plan.line {
        flow.known.line = line::measure(connection, &timing, plan.seed)?;
        flow.known.looking = flow.looking(plan);
    }
    let course = flow.course(plan);
    let (done, mut hosts) = hosts::during(connection, || match &plan.sweep {
        Some(sweep) => flow.sweep(connection, &course, sweep, tell),
        None => flow.run(connection, &course, tell),
    });
    let (exchanged, report) = done;
    hosts.warnings.extend(exchanged.ledger.late());
    let initial = match exchanged.ended {
        Ended::Stopped | Ended::ServerGone => None,
        _ => flow.initial_window(connection, plan, &course),
    };
    let forged = report.as_ref().is_some_and(|report| report.forged > 0);
    let failure = match forged || flow.carrier.is_forged() {
        true => Some(ProbeError::forged()),
        false => failure(connection, &exchanged, &*flow.carrier),
    };
    let observed = flow.observed(&exchanged, report.as_ref());
    let result =
        document(connection, plan, &flow, &exchanged, &observed, report.as_ref(), hosts, timing);
    let Probes { known, head, over, .. } = flow;
    Ok(Measured { result, observed, failure, known, head, over, initial })
}

fn failure(
    connection: &Connection,
    exchanged: &Exchanged,
    carrier: &dyn Carrier,
) -> Option<ProbeError> {
    match exchanged.ended {
        Ended::Stopped => None,
        Ended::ServerGone => Some(connection.lost().unwrap_or_else(ProbeError::closed)),
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
    spec: FlowSpec,
    sizes: Vec<u32>,
    suspects: Suspects,
    known: Known,
    head: u32,
    over: Over,
}

impl Probes {
    /// Opens the flow and what carries it.
    ///
    /// # Errors
    /// If the server refuses, or the system gives no socket.
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
        let Carried { flow, carrier, suspects, known, head, over } =
            carry(connection, plan, spec.clone())?;
        let sizes = match plan.sizes.is_empty() {
            true => suspects.sizes(largest),
            false => plan.sizes.clone(),
        };
        Ok(Probes { flow, carrier, spec, sizes, suspects, known, head, over })
    }

    /// The messages to be sent.
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

    /// The same with sizes that follow the jumps of delay, until the sweep or the time is over.
    pub fn sweep(
        &mut self,
        connection: &Connection,
        course: &Course,
        sweep: &Sweep,
        tell: &mut dyn FnMut(Event),
    ) -> (Exchanged, Option<FlowReport>) {
        let sweep = self.fitted(sweep);
        let warm = self.warm_up(&sweep);
        let over = || over(connection);
        let (exchanged, sizes) =
            swept(&mut *self.carrier, course, &sweep, (self.head, warm), &over, tell);
        self.sizes = sizes;
        (exchanged, connection.collect(self.flow).ok())
    }

    fn fitted(&self, sweep: &Sweep) -> Sweep {
        let (known, over, suspects) = (&self.known, &self.over, &self.suspects);
        fitting::Course { known, over, suspects }.sweep(sweep)
    }

    /// Segments with which TCP's congestion window begins to be made large enough for the sizes to come.
    fn warm_up(&self, sweep: &Sweep) -> Option<u32> {
        let adaptive = matches!(self.over, Over::Tcp(_)) && sweep.looking.first_only;
        adaptive.then_some(self.known.block.unwrap_or(1))
    }

    /// The kind of jumps that is looked for with this plan.
    fn looking(&self, plan: &RttPlan) -> Looking {
        plan.sweep.as_ref().map_or_else(Looking::default, |sweep| self.fitted(sweep).looking)
    }

    /// The octets that fresh connections send before they wait: each message has one for itself.
    fn initial_window(
        &self,
        connection: &Connection,
        plan: &RttPlan,
        course: &Course,
    ) -> Option<Result<u32, CannotTell>> {
        let sweep = plan.sweep.as_ref().filter(|_| matches!(self.over, Over::Tcp(_)))?;
        let sweep = Sweep { doubted: Vec::new(), ..self.fitted(sweep) };
        let known = self.known.line.map(|_| self.known)?;
        let mut fresh = Fresh::new(connection, self.spec.clone(), plan.end());
        let over = || over(connection);
        let course = Course { pace: Pace::OneOutstanding, ..course.clone() };
        let (done, _) = swept(&mut fresh, &course, &sweep, (self.head, None), &over, &mut |_| {});
        let samples = done.ledger.observations(None, 0, true).round_trips();
        // A server that is gone is noticed elsewhere.
        let _ = fresh.clear();
        let samples = fitting::with_head(&samples, self.head);
        Some(PathFit::of(&samples, known, plan.seed).window)
    }

    /// The observations, with the server's part.
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

/// Sends messages of the sizes that a sweep asks for, and gives these. Sizes of the sweep are `head` octets
/// longer than the messages. With `warm` octets of a segment, each turn is preceded by messages that make
/// the sender's congestion window large enough for it; they do not count.
fn swept(
    carrier: &mut dyn Carrier,
    course: &Course,
    sweep: &Sweep,
    (head, warm): (u32, Option<u32>),
    over: &dyn Fn() -> Option<Ended>,
    tell: &mut dyn FnMut(Event),
) -> (Exchanged, Vec<u32>) {
    let (began, mut ledger, mut turn) = (clock::now(), Ledger::default(), 0);
    let mut measured = BTreeSet::new();
    loop {
        let samples = ledger.observations(None, 0, true).round_trips();
        let asks = sweep.next(&fitting::with_head(&samples, head));
        let sizes = |ask: &Ask| repeat_n(ask.size.saturating_sub(head).max(1), ask.repeat as usize);
        let each: Vec<u32> = asks.iter().flat_map(sizes).collect();
        measured.extend(each.iter().copied());
        turn += 1;
        let part = Course {
            sizes: each,
            rounds: 1,
            duration: (began + course.duration).since(clock::now()),
            seed: Seed(course.seed.0.wrapping_add(turn)),
            goal: None,
            ..course.clone()
        };
        if let Some(segment) = warm {
            let part = Course { sizes: fitting::warming(&part.sizes, segment), ..part.clone() };
            // Why it ended, if it did, the messages that count will be told as well.
            let _ = exchange(carrier, &part, Ledger::default(), over, &mut |_| {});
        }
        let done = exchange(carrier, &part, ledger, over, tell);
        if asks.is_empty() || done.ended != Ended::Count {
            return (Exchanged { began, ..done }, measured.into_iter().collect());
        }
        ledger = done.ledger;
    }
}
/// The largest size that is chosen without being asked for: beyond it lie several packets of every kind.
const LARGEST: u32 = 4096;
