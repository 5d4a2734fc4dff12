//! How long a run has to be for its figure: shorter than the scenario has it only where the figure stays the same.
//!
//! The unchanged scenario is always run at full length. Where that took long, changed ones are tried at a part of
//! their length, and at twice that, until two figures in a row agree, chance has been averaged out and whatever
//! happens rarely has happened often enough. The part is refused for all where it does not give the unchanged
//! scenario's known figure.

use crate::explain::simulated;
use crate::figure::{Figures, Reading, figures};
use crate::focus::leader;
use trunkline_core::{DropCause, Probability, Size, Span};
use trunkline_engine::{Engine, EngineError, Note, NoteKind, Run};
use trunkline_measure::LinkRun;
use trunkline_path::LinkSpec;
use trunkline_path::impairment::ImpairmentSpec;
use trunkline_scenario::{Scenario, Start, Traffic, Transport, Workload};

/// Packets over links up to which a run is never cut: a second or so.
pub(crate) const BUDGET: u64 = 1_000_000;
/// Packets over links beyond which a run is cut whatever its figure does, with a note: a minute or so.
const MOST: u64 = 60_000_000;
/// The shortest part that is tried: one in two to the power of this.
const SHORTEST: u32 = 6;
/// By how many powers of two a run that has been cheap is made longer at once. More would be a leap in the dark: a window
/// may double with each round trip.
const STRIDE: u32 = 3;
/// Figures, and standard errors, within this share of a figure are steady.
const STEADY: f64 = 0.01;
/// How often something that happens by chance has to happen.
const OFTEN: f64 = 100.0;
/// How often a host has to be disturbed: the standard error tells the rest.
const DISTURBED: f64 = 10.0;
/// Messages of a size, and transfers, that are left of more.
const LEAST_MESSAGES: u32 = 8;
const LEAST_TRANSFERS: u32 = 4;
/// Bytes that are left of a transfer.
const LEAST_BYTES: u64 = 64 << 10;

/// What is known of how long runs have to be.
#[derive(Debug, Clone)]
pub(crate) struct Lengths<'a> {
    engine: &'a dyn Engine,
    /// The name of the traffic whose end ends the run.
    leader: String,
    reading: Reading,
    /// Packets over links of the unchanged run.
    hops: u64,
    budget: u64,
    may_cut: bool,
    /// Runs that it took to know.
    pub runs: usize,
}

/// The figures of a changed scenario.
#[derive(Debug, Clone, Default)]
pub(crate) struct Measured {
    pub figures: Figures,
    /// How many runs they took.
    pub runs: usize,
    /// The run was cut to one in so many, and its figure had not become steady.
    pub cut_short: Option<u64>,
    /// It was cut to one in so many, and its figure is steady.
    pub cut: Option<u64>,
}

impl<'a> Lengths<'a> {
    /// Those of `subject` in `scenario`, whose full run is known.
    pub fn new(
        engine: &'a dyn Engine,
        scenario: &Scenario,
        subject: usize,
        reading: &Reading,
        (run, base): (&Run, &Figures),
        budget: u64,
    ) -> Lengths<'a> {
        let leader = leader(scenario, subject);
        let mut lengths = Lengths {
            engine,
            leader: scenario.traffic[leader].name.clone(),
            reading: reading.clone(),
            hops: hops(run),
            budget,
            may_cut: goes_on_alike(scenario, leader),
            runs: 0,
        };
        lengths.may_cut = lengths.may_cut && lengths.try_cutting(scenario, base);
        lengths
    }

    /// Does a part of the unchanged scenario give the figure of the whole?
    fn try_cutting(&mut self, scenario: &Scenario, base: &Figures) -> bool {
        if self.hops <= self.budget {
            return false;
        }
        let Ok(short) = self.measured(scenario) else { return false };
        self.runs = short.runs;
        short.cut.is_some() && agree(base, &short.figures)
    }

    /// The figures of `variant`, from as long a run as they need.
    pub fn measured(&self, variant: &Scenario) -> Result<Measured, EngineError> {
        let (mut shift, mut runs) = (self.first_shift(variant), 0);
        let mut shorter: Option<Figures> = None;
        loop {
            let cut = Cut::new(variant, &self.leader, shift);
            let run = simulated(self.engine, &cut.scenario)?;
            runs += 1;
            let figures = cut.scaled(figures(&run, &self.reading));
            let part = (shift > 0).then_some(1 << shift);
            let steady = self.may_cut
                && shorter.as_ref().is_some_and(|shorter| agree(shorter, &figures))
                && is_steady(&figures)
                && has_seen_enough(&cut.scenario, &run);
            let ahead = hops(&run).saturating_mul(1 << shift);
            if shift == 0 || steady && ahead > self.cheap() {
                return Ok(Measured { figures, runs, cut_short: None, cut: part });
            }
            if ahead > MOST && hops(&run) > MOST >> STRIDE {
                return Ok(Measured { figures, runs, cut_short: part, cut: part });
            }
            let stride = if ahead <= self.cheap() || !self.may_cut { STRIDE } else { 1 };
            shorter = Some(figures);
            shift = self.longer(variant, &cut, shift.saturating_sub(stride));
        }
    }

    /// `shift`, or the next one that leaves more than `cut`: two runs that are the same agree, and show nothing.
    fn longer(&self, variant: &Scenario, cut: &Cut, mut shift: u32) -> u32 {
        while shift > 0 && Cut::new(variant, &self.leader, shift).scenario == cut.scenario {
            shift -= 1;
        }
        shift
    }

    /// Packets over links up to which it is not worth while to cut: what the unchanged run took, and some more.
    fn cheap(&self) -> u64 {
        self.budget.max(self.hops / 4)
    }

    /// Where to begin. What ends after a given amount of work takes about as many packets in any change; what ends after a
    /// given time may do a thousand times as much in it.
    fn first_shift(&self, variant: &Scenario) -> u32 {
        let leader = variant.traffic.iter().find(|traffic| traffic.name == self.leader);
        let known = leader.is_none_or(|leader| !is_timed(&leader.workload));
        let whole = self.budget == u64::MAX || known && !self.may_cut;
        if whole { 0 } else { SHORTEST }
    }
}

/// A scenario cut to a part of its length.
struct Cut {
    scenario: Scenario,
    /// Bytes of a transfer: as they were, and as they are.
    bytes: Option<(u64, u64)>,
}

impl Cut {
    fn new(scenario: &Scenario, leader: &str, shift: u32) -> Cut {
        let mut it = Cut { scenario: scenario.clone(), bytes: None };
        let leader = it.scenario.traffic.iter_mut().find(|traffic| traffic.name == leader);
        if let Some(workload) = leader.map(|leader| &mut leader.workload) {
            let was = transfer(workload);
            cut(workload, shift);
            it.bytes = was.zip(transfer(workload));
        }
        it
    }

    /// The figures of transfers as long as they were.
    fn scaled(&self, figures: Figures) -> Figures {
        let Some((was, is)) = self.bytes.filter(|(was, is)| was != is) else { return figures };
        let factor = was as f64 / is as f64;
        let scaled = |(size, mut figure): (u64, crate::Figure)| {
            if size != is {
                return (size, figure);
            }
            figure.seconds *= factor;
            (was, figure)
        };
        figures.into_iter().map(scaled).collect()
    }
}

fn transfer(workload: &Workload) -> Option<u64> {
    match workload {
        Workload::Bulk { bytes, .. } | Workload::Push { bytes, .. } => Some(bytes.bytes()),
        _ => None,
    }
}

fn cut(workload: &mut Workload, shift: u32) {
    match workload {
        Workload::Interactive { repeat, .. } => *repeat = fewer(*repeat, shift, LEAST_MESSAGES),
        Workload::TimedEcho { duration, .. }
        | Workload::TimedTransfer { duration, .. }
        | Workload::Paced { duration, .. } => *duration = part(*duration, shift),
        Workload::Greedy { duration, warm_up, interval, .. } => {
            let measured = part(duration.saturating_sub(*warm_up), shift);
            *interval = (*interval).min(measured);
            *duration = *warm_up + measured;
        }
        Workload::Bulk { bytes, repeat, .. } | Workload::Push { bytes, repeat, .. } => {
            let was = u64::from(*repeat);
            *repeat = fewer(*repeat, shift, LEAST_TRANSFERS);
            let left = bytes.bytes().saturating_mul(was) >> shift;
            let each = (left / u64::from((*repeat).max(1))).max(LEAST_BYTES);
            *bytes = Size::from_bytes(bytes.bytes().min(each));
        }
    }
}

fn fewer(count: u32, shift: u32, least: u32) -> u32 {
    (count >> shift).max(count.min(least))
}

fn part(span: Span, shift: u32) -> Span {
    span.scaled(1, 1 << shift).max(Span::from_nanos(1))
}

fn is_timed(workload: &Workload) -> bool {
    match workload {
        Workload::TimedEcho { .. }
        | Workload::TimedTransfer { .. }
        | Workload::Greedy { .. }
        | Workload::Paced { .. } => true,
        Workload::Interactive { .. } | Workload::Bulk { .. } | Workload::Push { .. } => false,
    }
}

/// Is the end of a run like its beginning, so that a part can stand for the whole? Not where something is to happen
/// at a stated instant, where other traffic comes or goes, and where TCP moves much: its window is never done.
fn goes_on_alike(scenario: &Scenario, leader: usize) -> bool {
    let mut links = scenario.links.iter().flat_map(|wire| [&*wire.forward, &*wire.backward]);
    let fixed = |link: &LinkSpec| link.schedule.steps.is_empty() && link.trace.is_none();
    let mut traffic = scenario.traffic.iter().enumerate();
    links.all(fixed)
        && traffic.all(|(at, traffic)| {
            !is_tcp_stream(traffic) && (at == leader || lasts(traffic, &scenario.traffic[leader]))
        })
}

fn is_tcp_stream(traffic: &Traffic) -> bool {
    let messages = matches!(
        traffic.workload,
        Workload::Interactive { .. } | Workload::TimedEcho { .. } | Workload::Paced { .. }
    );
    !messages && matches!(*traffic.transport, Transport::Tcp(_))
}

/// Is `other` under way from before the leader starts until it ends?
fn lasts(other: &Traffic, leader: &Traffic) -> bool {
    let began = match (&other.start, &leader.start) {
        (Start::At(one), Start::At(two)) => one <= two,
        (_, Start::AfterBytes(name, _)) => *name == other.name,
        _ => false,
    };
    let endless = match &other.workload {
        Workload::Bulk { repeat, .. } | Workload::Push { repeat, .. } => *repeat >= ENDLESS,
        Workload::Interactive { repeat, .. } => *repeat == u32::MAX,
        Workload::TimedEcho { duration, .. }
        | Workload::TimedTransfer { duration, .. }
        | Workload::Greedy { duration, .. }
        | Workload::Paced { duration, .. } => match time_of(&leader.workload) {
            Some(time) => *duration >= time,
            None => *duration >= Span::from_secs(24 * 3600),
        },
    };
    began && endless
}

/// Transfers that outlast whatever they accompany.
const ENDLESS: u32 = 10_000;

fn time_of(workload: &Workload) -> Option<Span> {
    match workload {
        Workload::TimedEcho { sizes, duration } | Workload::TimedTransfer { sizes, duration } => {
            Some(duration.scaled(sizes.len() as u64, 1))
        }
        Workload::Greedy { duration, .. } | Workload::Paced { duration, .. } => Some(*duration),
        _ => None,
    }
}

/// Packets that entered links.
pub(crate) fn hops(run: &Run) -> u64 {
    run.links.iter().map(|link| link.counts.entered).sum()
}

/// Are the figures of all sizes the same?
pub(crate) fn agree(one: &Figures, other: &Figures) -> bool {
    let near = |(size, figure): (&u64, &crate::Figure)| {
        let other = other.get(size);
        other.is_some_and(|other| {
            let neither = figure.is_nothing() && other.is_nothing();
            neither || (other.seconds / figure.seconds - 1.0).abs() <= STEADY
        })
    };
    !one.is_empty() && one.len() == other.len() && one.iter().all(near)
}

fn is_steady(figures: &Figures) -> bool {
    // What has not come yet may still come.
    figures.values().all(|figure| !figure.is_nothing() && figure.error <= STEADY)
}

/// Has everything that happens by chance happened often?
fn has_seen_enough(scenario: &Scenario, run: &Run) -> bool {
    let specs = scenario.links.iter().flat_map(|wire| [&*wire.forward, &*wire.backward]);
    let samples: usize = run.traffic.iter().map(|traffic| traffic.samples.len()).sum();
    let mut disturbances = scenario.hosts.iter().filter_map(|host| host.processor.disturbance);
    std::iter::zip(specs, &run.links).all(|(spec, link)| impaired_often(&spec.impairments, link))
        && disturbances.all(|it| it.probability * samples as f64 >= DISTURBED)
}

fn impaired_often(spec: &ImpairmentSpec, link: &LinkRun) -> bool {
    let counts = &link.counts;
    if counts.entered == 0 {
        return true;
    }
    let expected = |probability: Probability| probability.as_f64() * counts.entered as f64;
    let lost = counts.dropped_by(DropCause::Loss) as f64;
    let damaged = counts.dropped_by(DropCause::BitError) as f64;
    let held = spec.reorder.map(|reorder| reorder.probability);
    (spec.loss.rate() == 0.0 || lost >= OFTEN)
        && (spec.bit_errors.is_never() || damaged >= OFTEN)
        && (spec.duplicate.is_never() || counts.duplicated as f64 >= OFTEN)
        && held.is_none_or(|held| held.is_never() || expected(held) >= OFTEN)
}

/// What was made shorter, for a reader of the figures.
pub(crate) fn told(measured: &[&Measured]) -> Vec<Note> {
    let steady = measured.iter().filter(|it| it.cut_short.is_none()).filter_map(|it| it.cut).max();
    let unsteady = measured.iter().filter_map(|it| it.cut_short).max();
    let steady = steady.map(|part| {
        format!(
            "changed scenarios were run for as little as 1/{part} of their length, if twice as much \
             gave the same figure; --full runs all of them whole"
        )
    });
    let unsteady = unsteady.map(|part| {
        format!(
            "a changed scenario was too fast to be run whole: its figure is that of its first 1/{part}, \
             which need not be that of the whole"
        )
    });
    steady.into_iter().chain(unsteady).map(|text| Note::new(NoteKind::Cut, text)).collect()
}
