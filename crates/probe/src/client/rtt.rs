//! `probe rtt`: round trips of messages of many sizes.

use super::Connection;
use super::carrier::Carrier;
use super::exchange::{Course, Ended, Event, Exchanged, exchange};
use super::hosts::{self, Hosts};
use super::ledger::Ledger;
use super::tcp_carrier::{Tcp, segment};
use super::udp_carrier::{Datagrams, Udp};
use super::urp_carrier::UrpOver;
use crate::channel::Channel;
use crate::error::Naming;
use crate::pacer::Pace;
use crate::result::{FORMAT, Figures, SizeFigures};
use crate::stamp::TimingError;
use crate::wire::datagram::{self, HEAD};
use crate::wire::envelopes::{self, fitting};
use crate::wire::message::{FlowReport, FlowSpec, Role, Transport, UrpSpec};
use crate::wire::record;
use crate::{ProbeError, clock};
use serde::Serialize;
use std::collections::BTreeSet;
use std::iter::repeat_n;
use trunkline_core::{Seed, Span};
use trunkline_fit::{Clock, Goal, Known, Observations, Opens, PathFit, Pattern, Suspects, Sweep};

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
    /// URP: octets of a block, and blocks outstanding.
    pub window: (u16, u8),
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
            window: (1024, 7),
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
        let quick = quickest(self.observed.round_trips());
        PathFit::of(&quick, self.known, Seed(self.result.seed))
    }
}

/// Of each size the quickest quarter of the round trips, or five. Waiting only ever lengthens one, and on
/// a busy host most of them wait.
fn quickest(samples: Vec<(u32, f64)>) -> Vec<(u32, f64)> {
    let mut sorted = samples;
    sorted.sort_by(|one, other| one.0.cmp(&other.0).then(one.1.total_cmp(&other.1)));
    let each = sorted.chunk_by(|one, other| one.0 == other.0);
    each.flat_map(|all| &all[..all.len().div_ceil(4).max(5).min(all.len())]).copied().collect()
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
        // What is asked for again is counted by what is kept of it.
        let most = sweep.most / 4;
        let sweep = Sweep { suspects: self.suspects.clone(), most, ..sweep.clone() };
        let (began, mut ledger, mut turn) = (clock::now(), Ledger::default(), 0);
        let mut measured = BTreeSet::new();
        let exchanged = loop {
            let samples = quickest(ledger.observations(None, 0, true).round_trips());
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

/// The largest size that is chosen without being asked for: beyond it lie several packets of every kind.
const LARGEST: u32 = 4096;

/// What carries a flow, and what is known of it.
struct Carried {
    flow: u16,
    carrier: Box<dyn Carrier + Send>,
    suspects: Suspects,
    known: Known,
}

fn carry(connection: &Connection, plan: &RttPlan, spec: FlowSpec) -> Result<Carried, ProbeError> {
    match plan.transport {
        Transport::Udp => carry_udp(connection, spec),
        Transport::Tcp => carry_tcp(connection, plan, spec),
        Transport::Urp => carry_urp(connection, plan, spec),
    }
}

fn carry_udp(connection: &Connection, spec: FlowSpec) -> Result<Carried, ProbeError> {
    let flow = connection.flow(spec)?;
    let carrier = Udp(Datagrams::open(connection, flow)?);
    let (mtu, headers) = (carrier.0.mtu(), carrier.overhead());
    let room = mtu.map(|mtu| mtu.saturating_sub(headers));
    let known = Known { block: room, overhead: Some(headers), ..Known::only(Pattern::Echo) };
    let suspects = Suspects { mtu, headers, ..Suspects::default() };
    Ok(Carried { flow, carrier: Box::new(carrier), suspects, known })
}

fn carry_tcp(
    connection: &Connection,
    plan: &RttPlan,
    spec: FlowSpec,
) -> Result<Carried, ProbeError> {
    let flow = connection.flow(spec)?;
    let stream = connection.join(flow, 0, plan.congestion.as_deref())?;
    let segment = segment(&stream);
    let carrier = Tcp::over(stream).naming("use a data connection")?;
    let headers = carrier.overhead() - record::HEAD as u32;
    let known = Known {
        block: segment,
        overhead: Some(headers),
        answer: Some(headers),
        opens: Some(Opens::ByBlock),
        ..Known::only(Pattern::Echo)
    };
    // The record's head is part of the first segment.
    let room = segment.map(|octets| octets.saturating_sub(record::HEAD as u32));
    let suspects = Suspects { segment: room, ..Suspects::default() };
    Ok(Carried { flow, carrier: Box::new(carrier), suspects, known })
}

fn carry_urp(
    connection: &Connection,
    plan: &RttPlan,
    spec: FlowSpec,
) -> Result<Carried, ProbeError> {
    let urp = urp_spec(connection, plan.window)?;
    let flow = connection.flow(FlowSpec { urp: Some(urp), ..spec })?;
    let datagrams = Datagrams::open(connection, flow)?;
    let heads = datagrams.headers() + HEAD as u32;
    let channel = open_channel(&urp)?;
    let block = u32::from(urp.block);
    // A block that is not cut goes in one datagram: data, nine envelopes of trailer, three of them controls.
    let whole = fitting(urp.datagram as usize) as u32 >= block + TRAILER.0;
    let overhead = |(count, controls): (u32, u32)| {
        heads + envelopes::length(count as usize, controls as usize) as u32
    };
    let known = Known {
        block: Some(block),
        overhead: whole.then(|| overhead(TRAILER)),
        answer: Some(overhead((1, 1))),
        opens: Some(Opens::ByBlock),
        ..Known::only(Pattern::Echo)
    };
    let window = block * u32::from(urp.outstanding);
    let suspects = Suspects { segment: Some(block), window: Some(window), ..Suspects::default() };
    Ok(Carried { flow, carrier: Box::new(UrpOver::new(datagrams, channel)), suspects, known })
}

/// Envelopes of a block's trailer with its check sum, and controls among them.
const TRAILER: (u32, u32) = (9, 3);

/// URP's settings, with datagrams that fit the path's packets.
pub fn urp_spec(
    connection: &Connection,
    (block, outstanding): (u16, u8),
) -> Result<UrpSpec, ProbeError> {
    // A socket of no flow, only to ask for the packet size.
    let asked = Datagrams::open(connection, 0)?;
    let mtu = asked.mtu().unwrap_or(1280);
    let datagram = mtu.saturating_sub(asked.headers() + HEAD as u32);
    let timeout_ns = trunkline_transport::urp::Settings::default().timeout.as_nanos();
    Ok(UrpSpec { block, outstanding, timeout_ns, datagram })
}

/// This end of a URP flow.
pub fn open_channel(urp: &UrpSpec) -> Result<Channel, ProbeError> {
    Channel::open(clock::now(), urp).map_err(|error| ProbeError::WrongUse(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_each_size_the_quickest_are_kept() {
        let many = (0..40).rev().map(|value| (64, f64::from(value)));
        let few = [(1, 9.0), (1, 7.0), (1, 8.0)];
        let kept = quickest(many.chain(few).collect());
        assert_eq!(kept[..3], [(1, 7.0), (1, 8.0), (1, 9.0)]);
        let quick: Vec<f64> = kept[3..].iter().map(|&(_, value)| value).collect();
        assert_eq!(quick, (0..10).map(f64::from).collect::<Vec<_>>());
    }
}
