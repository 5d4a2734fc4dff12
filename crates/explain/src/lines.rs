//! The constraints that lines put on a traffic: limits, losses, rates, distance.

use crate::candidates::{Candidate, Ground, candidate};
use crate::constraint::Constraint;
use crate::decide::ENOUGH;
use crate::relax::{self, Line, Relaxation};
use std::collections::BTreeSet;
use trunkline_core::{DropCause, Rate, Span};
use trunkline_measure::LinkRun;
use trunkline_path::{Limit, LinkSpec};

/// The largest packet if a limit counts packets.
const MTU: u32 = 1500;
/// What a queue drops, by whatever rule.
const OVERFLOWS: [DropCause; 6] = [
    DropCause::QueueLimit,
    DropCause::CoDel,
    DropCause::EarlyDiscard,
    DropCause::PartialPacket,
    DropCause::Pie,
    DropCause::DualPi2,
];

impl Ground<'_> {
    /// Queues that overflow on the way of the data.
    pub(crate) fn queue_limit(&self) -> Option<Candidate> {
        let lines = self.those(&self.data, |line, _| self.overflows(line));
        let limits = lines.iter().map(|&line| self.spec(line).discipline.limit());
        let now = limits.map(|limit| limit.to_string()).next()?;
        let place = self.names_of_lines(&lines);
        let mut rungs = Vec::new();
        if let Some(bytes) = self.a_round_trips_worth(&lines) {
            let larger = Relaxation::QueueLimit { lines: lines.clone(), bytes: Some(bytes) };
            rungs.push((format!("{}, a round trip's worth", Limit::Bytes(bytes)), larger));
        }
        rungs.push(("no limit".into(), Relaxation::QueueLimit { lines, bytes: None }));
        candidate(Constraint::QueueLimit, place, now, rungs)
    }

    /// Disciplines on the way of the data that hold a rate.
    pub(crate) fn shaper(&self) -> Option<Candidate> {
        let cap = |spec: &LinkSpec| spec.discipline.assumptions().cap;
        let lines = self.those(&self.data, |_, spec| cap(spec).is_some());
        let now = lines.iter().filter_map(|&line| cap(self.spec(line))).min()?.to_string();
        let place = self.names_of_lines(&lines);
        candidate(
            Constraint::Shaper,
            place,
            now,
            vec![("none".into(), Relaxation::Shaper { lines })],
        )
    }

    fn overflows(&self, line: Line) -> bool {
        self.run.links.get(2 * line.link + usize::from(line.reversed)).is_some_and(overflows)
    }

    /// Bytes that `lines` carry in a round trip, if that is more than each of them holds.
    fn a_round_trips_worth(&self, lines: &[Line]) -> Option<u64> {
        let rates = lines.iter().filter_map(|&line| self.spec(line).rate);
        let bytes = rates.map(|rate| rate.bytes_in(self.round_trip)).max()?;
        let holds = |line: &Line| self.spec(*line).discipline.limit().most_bytes(MTU);
        let most = lines.iter().map(holds).max()?;
        (bytes > most).then_some(bytes)
    }

    /// Schedules that change lines after the start.
    pub(crate) fn schedule(&self) -> Option<Candidate> {
        let changes = |line: Line| {
            let steps = &self.spec(line).schedule.steps;
            steps.iter().filter(|(at, _)| !at.is_zero()).count()
        };
        let lines: Vec<Line> = self.lines().into_iter().filter(|&it| changes(it) > 0).collect();
        let most = lines.iter().map(|&line| changes(line)).max()?;
        let every = lines.iter().find_map(|&line| self.spec(line).schedule.repeat);
        let again = every.map_or(String::new(), |every| format!(", again every {every}"));
        let plural = if most == 1 { "" } else { "s" };
        let place = self.names_of_lines(&lines);
        let rungs = vec![("as at the start".into(), Relaxation::Steady { lines })];
        candidate(Constraint::Schedule, place, format!("{most} change{plural}{again}"), rungs)
    }

    /// The loss on the way of the data; also on a link's other direction, if that is no better.
    pub(crate) fn loss(&self) -> Option<Candidate> {
        let lines = self.those(&self.data, |_, spec| impaired(spec));
        let lines = self.with_twins(lines, |one, other| one.impairments == other.impairments);
        let place = self.names_of_lines(&lines);
        let some = !lines.is_empty();
        let rungs = some.then(|| ("none".into(), Relaxation::Loss { lines }));
        candidate(Constraint::Loss, place, "impaired".into(), rungs.into_iter().collect())
    }

    /// The slowest lines on the way of the data, with a link's other direction if that has the same rate.
    pub(crate) fn rate(&self) -> Option<Candidate> {
        let (rate, lines) = self.slowest(&self.data)?;
        let lines = self.with_twins(lines, |one, other| one.rate == other.rate);
        let place = self.names_of_lines(&lines);
        let rungs = faster(&lines, ["2 times", "10 times"]);
        candidate(Constraint::Rate, place, rate.to_string(), rungs)
    }

    /// The least rate, and the lines of that rate or so little more that they hide what it costs: with the slowest
    /// alone out of the way they would save no more than [`ENOUGH`].
    fn slowest(&self, lines: &BTreeSet<Line>) -> Option<(Rate, Vec<Line>)> {
        let rate = lines.iter().filter_map(|&line| self.spec(line).rate).min()?;
        let bits = |rate: Rate| rate.bits_per_second() as f64;
        let alike = |other: Rate| bits(other) * (1.0 - ENOUGH) <= bits(rate);
        Some((rate, self.those(lines, |_, spec| spec.rate.is_some_and(alike))))
    }

    /// `lines`, and the other directions of their links on which the answers go and which are `alike`.
    fn with_twins(
        &self,
        mut lines: Vec<Line>,
        alike: impl Fn(&LinkSpec, &LinkSpec) -> bool,
    ) -> Vec<Line> {
        let twins: Vec<Line> = lines
            .iter()
            .map(|line| line.twin())
            .filter(|&twin| self.answers.contains(&twin))
            .filter(|&twin| alike(self.spec(twin), self.spec(twin.twin())))
            .collect();
        lines.extend(twins);
        lines
    }

    /// What is worse on the way of the answers than on that of the data.
    pub(crate) fn ack_path(&self) -> Option<Candidate> {
        let worse = |holds: &dyn Fn(&LinkSpec, &LinkSpec) -> bool| {
            self.those(&self.answers, |line, spec| holds(spec, self.spec(line.twin())))
        };
        let slower = worse(&|back, there| is_slower(back.rate, there.rate));
        let (rate, slow) = self.slowest(&slower.into_iter().collect()).unzip();
        let slow = slow.unwrap_or_default();
        let lossy = worse(&|back, there| impaired(back) && back.impairments != there.impairments);
        let full = self.those(&self.answers, |line, _| self.overflows(line));
        let mut rungs = Vec::new();
        if !slow.is_empty() {
            rungs.extend(faster(&slow, ["twice the rate", "ten times the rate"]));
        }
        if !lossy.is_empty() {
            rungs.push(("no loss".into(), Relaxation::Loss { lines: lossy.clone() }));
        }
        if !full.is_empty() {
            let unlimited = Relaxation::QueueLimit { lines: full.clone(), bytes: None };
            rungs.push(("no queue limit".into(), unlimited));
        }
        if [&slow, &lossy, &full].iter().filter(|lines| !lines.is_empty()).count() > 1 {
            let last = rungs.iter().skip(usize::from(!slow.is_empty())).map(|(_, it)| it.clone());
            rungs.push(("all of it".into(), Relaxation::Several(last.collect())));
        }
        let place = self.names_of_lines(&[slow, lossy, full].concat());
        let now = rate.map_or(String::new(), |rate| rate.to_string());
        candidate(Constraint::AckPath, place, now, rungs)
    }

    pub(crate) fn distance(&self) -> Option<Candidate> {
        let far = |spec: &LinkSpec| !spec.delay.is_zero() || spec.impairments.jitter.is_some();
        let lines: Vec<Line> = self.lines().into_iter().filter(|&it| far(self.spec(it))).collect();
        let links: BTreeSet<usize> = lines.iter().map(|line| line.link).collect();
        let longest = |&link: &usize| {
            let wire = &self.scenario.links[link];
            wire.forward.delay.max(wire.backward.delay)
        };
        let media = self.media_with(|spec| !spec.delay.is_zero());
        let on_media = media.iter().map(|&at| self.scenario.media[at].spec.delay);
        let total: Span = links.iter().map(longest).chain(on_media).sum();
        let some = !lines.is_empty() || !media.is_empty();
        let rungs = some.then(|| ("hardly any".into(), Relaxation::Distance { lines, media }));
        let now = format!("{total} one way");
        candidate(Constraint::Distance, String::new(), now, rungs.into_iter().collect())
    }
}

/// Rungs of lines twice and ten times as fast.
fn faster(lines: &[Line], names: [&str; 2]) -> Vec<(String, Relaxation)> {
    let rung = |(name, factor): (&str, u64)| {
        (name.to_string(), Relaxation::Rate { lines: lines.to_vec(), factor })
    };
    std::iter::zip(names, [2, 10]).map(rung).collect()
}

/// Whether a queue gave up anything for want of room, by whatever rule.
pub(crate) fn overflows(link: &LinkRun) -> bool {
    OVERFLOWS.iter().any(|&cause| link.counts.dropped_by(cause) > 0)
}

fn is_slower(one: Option<Rate>, other: Option<Rate>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => one < other,
        (Some(_), None) => true,
        (None, _) => false,
    }
}

/// Whether a line does anything to packets that [`Relaxation::Loss`] takes away.
fn impaired(link: &LinkSpec) -> bool {
    let mut better = link.clone();
    relax::perfect(&mut better);
    better != *link
}
