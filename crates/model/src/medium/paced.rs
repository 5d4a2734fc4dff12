//! Datagrams at a constant rate over a shared channel.

use super::Channel;
use super::course::{datagram, one_block};
use crate::flow::{Flow, alongside};
use crate::formula::general::utilisation_ppm;
use crate::group::stage_name;
use crate::prediction::{Figure, Prediction, Term, What};
use crate::throughput::Throughput;
use crate::way::Resource;
use std::collections::{BTreeMap, BTreeSet};
use trunkline_core::{Cause, Span, Time};
use trunkline_engine::{Note, NoteKind};
use trunkline_path::medium::{Ask, Saturated};
use trunkline_scenario::{Network, Reply, Traffic, Workload};

/// The share of a delay from which on a range is told.
const TOLD: u64 = 200;

/// Datagrams of one size of a traffic, one in each interval.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paced<'a> {
    pub network: &'a Network<'a>,
    /// Index of the traffic.
    pub index: usize,
    pub size: u32,
    pub interval: Span,
    /// For how long.
    pub duration: Span,
}

/// A station of the channel that sends datagrams.
#[derive(Debug, Clone, Copy)]
struct Sender {
    ask: Ask,
    interval: Span,
}

/// The figures of datagrams over a shared channel.
///
/// # Errors
/// Why no formula covers them.
pub(crate) fn predict(
    paced: Paced<'_>,
    flows: &[Flow<'_>],
    (resource, channel): (Resource, Channel),
    list: &mut Vec<Prediction>,
    notes: &mut Vec<Note>,
) -> Result<(), String> {
    let others = others(paced, flows, resource)?;
    let own = Sender { ask: ask(&flows[0], &channel, paced.size), interval: paced.interval };
    match others.is_empty() {
        true => paced.lone(&flows[0], (resource, channel), own, list, notes),
        false => {
            let senders: Vec<Sender> = [own].into_iter().chain(others).collect();
            paced.among(&flows[0], (resource, channel), &senders, list, notes)
        }
    }
}

/// A datagram as it comes to the channel.
fn ask(flow: &Flow<'_>, channel: &Channel, size: u32) -> Ask {
    channel.ask(Time::ZERO, flow.there.speech.packets(size)[0])
}

/// The other stations that send on the channel, each datagrams of one flow, or the ends of conversations.
///
/// # Errors
/// If anything else is there, or flows meet elsewhere too.
fn others(paced: Paced<'_>, flows: &[Flow<'_>], resource: Resource) -> Result<Vec<Sender>, String> {
    let network = paced.network;
    let mut taken: BTreeSet<usize> = BTreeSet::new();
    let mut elsewhere: BTreeSet<Resource> = BTreeSet::new();
    let mut spoken: BTreeMap<Resource, usize> = BTreeMap::new();
    let mut senders = Vec::new();
    let together = [paced.index].into_iter().chain(alongside(network, paced.index));
    for traffic in together {
        let description = &network.scenario().traffic[traffic];
        let own = traffic == paced.index;
        let all = if own { flows.to_vec() } else { Flow::all(network, traffic)? };
        for (number, flow) in all.iter().enumerate() {
            let Workload::Paced { size, rate, .. } = description.workload else {
                let meets = flow.channel().is_some_and(|(other, _)| other == resource);
                if meets {
                    senders.extend(talkers(description, flow, resource, &mut taken)?);
                }
                let ends =
                    flow.there.demands(1).into_keys().chain(flow.back.demands(1).into_keys());
                spoken.extend(ends.filter(|&it| it != resource).map(|it| (it, traffic)));
                continue;
            };
            let demands: Vec<Resource> = flow.there.demands_alone(size).into_keys().collect();
            let apart = demands.into_iter().filter(|&it| it != resource);
            for stage in apart {
                if !elsewhere.insert(stage) {
                    return Err(met(description));
                }
            }
            let there = flow.there.way.stages.iter().find(|stage| stage.resource == resource);
            let Some(channel) = there.and_then(|stage| stage.channel()) else { continue };
            if !taken.insert(channel.from.0) {
                return Err("several paced flows of one station of a shared medium".into());
            }
            let interval = Throughput::from(rate).time_for(u64::from(size));
            if !(own && number == 0) {
                senders.push(Sender { ask: ask(flow, channel, size), interval });
            }
        }
    }
    match spoken.iter().find(|(stage, _)| elsewhere.contains(stage)) {
        Some((_, &traffic)) => Err(met(&network.scenario().traffic[traffic])),
        None => Ok(senders),
    }
}

fn met(traffic: &Traffic) -> String {
    format!("other traffic on the same lines ({})", traffic.name)
}

/// The ends of a conversation of short messages. In a turn of its own each has a message or an answer, and what the protocol
/// says besides.
///
/// # Errors
/// If it is anything else.
fn talkers(
    traffic: &Traffic,
    flow: &Flow<'_>,
    resource: Resource,
    taken: &mut BTreeSet<usize>,
) -> Result<Vec<Sender>, String> {
    let sizes = |answer: &Reply, size: u32| match answer {
        Reply::Echo => size,
        Reply::Bytes(bytes) => *bytes,
    };
    let (largest, answer) = match &traffic.workload {
        Workload::Interactive { sizes: list, reply, .. } if traffic.count <= 1 => {
            let largest = list.iter().copied().max().unwrap_or(0);
            (largest, list.iter().map(|&size| sizes(reply, size)).max().unwrap_or(0))
        }
        _ => return Err(met(traffic)),
    };
    let mut senders = Vec::new();
    for (talk, bytes) in [(&flow.there, largest), (&flow.back, answer)] {
        one_block(talk, bytes)?;
        let [packet] = talk.speech.packets(bytes)[..] else { return Err(met(traffic)) };
        let stage = talk.way.stages.iter().find(|stage| stage.resource == resource);
        let Some(channel) = stage.and_then(|stage| stage.channel()) else {
            return Err(met(traffic));
        };
        if !taken.insert(channel.from.0) {
            return Err("several flows of one station of a shared medium".into());
        }
        let ask = channel.ask(Time::ZERO, packet);
        senders.extend([Sender { ask, interval: Span::MAX }; 2]);
    }
    Ok(senders)
}

impl Paced<'_> {
    fn traffic(&self) -> &Traffic {
        &self.network.scenario().traffic[self.index]
    }

    fn make(&self, what: What, value: Figure, terms: Vec<Term>) -> Prediction {
        let traffic = self.traffic().name.clone();
        Prediction { traffic, size: u64::from(self.size), what, value, terms }
    }

    fn note(&self, text: String) -> Note {
        Note::of_traffic(&self.traffic().name, NoteKind::Assumed, text)
    }

    /// What a busy stage comes to.
    fn term(
        &self,
        place: &str,
        value: Figure,
        numbers: String,
        (formula, source): (&'static str, &'static str),
    ) -> Term {
        let (name, place) = ("the busiest stage".into(), place.into());
        Term { name, place, cause: None, formula, numbers, value, source }
    }

    /// The figures of datagrams that have the channel to themselves.
    fn lone(
        &self,
        flow: &Flow<'_>,
        (resource, channel): (Resource, Channel),
        own: Sender,
        list: &mut Vec<Prediction>,
        notes: &mut Vec<Note>,
    ) -> Result<(), String> {
        let saturated = channel.alone.saturated(&[own.ask])?;
        let served = (resource, service(&saturated, 0));
        let stages = flow.there.demands_alone(self.size).into_iter();
        let stages = stages.filter(|&(stage, _)| stage != resource).chain([served]);
        let (busiest, longest) = stages.max_by_key(|&(_, span)| span).unwrap_or(served);
        let place = stage_name(self.network, busiest);
        let formula = match busiest == resource {
            true => (saturated.formula, saturated.source),
            false => ("service time", "D/D/1: constant arrivals, constant service"),
        };
        let busy = Figure::Share(utilisation_ppm(longest, self.interval));
        let numbers = format!("{longest} for a datagram / {}", self.interval);
        list.push(self.make(
            What::Utilisation,
            busy,
            vec![self.term(&place, busy, numbers, formula)],
        ));
        if longest > self.interval {
            let rate = Figure::Rate(Throughput::over(self.size.into(), longest));
            let numbers = format!("{} bytes / {longest}", self.size);
            list.push(self.make(
                What::Throughput,
                rate,
                vec![self.term(&place, rate, numbers, formula)],
            ));
            notes
                .extend(saturated.estimate.filter(|_| busiest == resource).map(|it| self.note(it)));
            return Err(format!(
                "the delay in overload: {place} is asked for more than it can carry"
            ));
        }
        let clear = channel.alone.once(&[own.ask])?;
        if clear > self.interval {
            return Err(format!(
                "the wait at {place} for datagrams {} apart, of which not each finds it idle ({clear})",
                self.interval
            ));
        }
        let terms = datagram(&flow.there, self.size)?;
        let total = terms.total();
        list.push(self.make(What::Delay, Figure::Time(total), terms.0));
        notes.extend(self.regular(&channel, own.ask, total));
        Ok(())
    }

    /// The figures of datagrams beside those of other stations; its own is the first of `senders`.
    fn among(
        &self,
        flow: &Flow<'_>,
        (resource, channel): (Resource, Channel),
        senders: &[Sender],
        list: &mut Vec<Prediction>,
        notes: &mut Vec<Note>,
    ) -> Result<(), String> {
        let place = stage_name(self.network, resource);
        let alone = channel.alone;
        let asks: Vec<Ask> = senders.iter().map(|sender| sender.ask).collect();
        let carries = |sender: &Sender| {
            let own = alone.turn(None, sender.ask).map_or(Span::ZERO, |turn| turn.own);
            utilisation_ppm(own, sender.interval)
        };
        let offered = Figure::Share(senders.iter().map(carries).sum());
        let formula =
            ("Σ time of a datagram / interval", "D/D/1: constant arrivals, constant service");
        let numbers = format!(
            "{} stations with datagrams",
            senders.iter().filter(|it| it.interval < Span::MAX).count()
        );
        list.push(self.make(
            What::Utilisation,
            offered,
            vec![self.term(&place, offered, numbers, formula)],
        ));
        let saturated = alone.saturated(&asks)?;
        let full = |index: usize| senders[index].interval < service(&saturated, index);
        if (0..senders.len()).all(full) {
            self.saturated(&place, &saturated, senders.len(), list, notes);
            return Err(format!(
                "the delay in overload: {place} is asked for more than it can carry"
            ));
        }
        let once = alone.once(&asks)?;
        if senders.iter().any(|sender| sender.interval < once) {
            return Err(format!(
                "what {place} carries if some send more often than all can once ({once})"
            ));
        }
        let mut terms = datagram(&flow.there, self.size)?;
        let least = terms.total().saturating_sub(alone.phase().scaled(1, 2));
        let own = alone.once(&asks[..1])?.saturating_sub(alone.phase());
        let most = least + once.saturating_sub(own);
        let text = format!(
            "all is carried, and the mean delay is between {least} and {most}: how long others are waited for depends on how their instants lie"
        );
        let formula = "Σ a turn of each other station, with what goes round between";
        let name = ("others' turns, at most", formula, saturated.source);
        let numbers = format!("all of them once in {once}");
        terms.add(name, &place, Cause::Queue, most.saturating_sub(terms.total()), numbers);
        let total = terms.total();
        list.push(self.make(What::DelayAtMost, Figure::Time(total), terms.0));
        notes.push(self.note(text));
        Ok(())
    }

    /// What each of `count` stations gets that all ask for more.
    fn saturated(
        &self,
        place: &str,
        saturated: &Saturated,
        count: usize,
        list: &mut Vec<Prediction>,
        notes: &mut Vec<Note>,
    ) {
        let each = service(saturated, 0);
        let rate = Figure::Rate(Throughput::over(self.size.into(), each));
        let numbers = format!("{} stations, {} bytes / {each}", count, self.size);
        let formula = (saturated.formula, saturated.source);
        list.push(self.make(
            What::Throughput,
            rate,
            vec![self.term(place, rate, numbers, formula)],
        ));
        notes.extend(saturated.estimate.clone().map(|text| self.note(text)));
    }

    /// A note if the regular instants of the datagrams may leave their mean wait for turns away from the mean over all phases.
    fn regular(&self, channel: &Channel, ask: Ask, total: Span) -> Option<Note> {
        let phase = channel.alone.phase();
        let rule = channel.alone.rule()?;
        let spread = self.spread(channel, ask)?;
        (spread > total.scaled(1, TOLD)).then(|| {
            let (least, most) = (total.saturating_sub(spread), total + spread);
            self.note(format!(
                "datagrams at regular intervals meet only some phases of the medium: of the wait {}, 0 to {phase}, half is counted; the mean delay is between {least} and {most}",
                rule.name
            ))
        })
    }

    /// How far the mean of the waits may be from half a phase. Each wait is by a constant step, modulo the phase, longer than the
    /// one before. If q steps come near p phases, without a common divisor, q waits in turn lie about evenly.
    fn spread(&self, channel: &Channel, ask: Ask) -> Option<Span> {
        let phase = channel.alone.phase().as_nanos() as f64;
        if phase == 0.0 {
            return Some(Span::ZERO);
        }
        let first = channel.alone.turn(None, ask).ok()?;
        let next = Ask { ready: ask.ready + self.interval, ..ask };
        let second = channel.alone.turn(Some(first), next).ok()?;
        let later = second.start.since(next.ready).as_nanos() as f64;
        let step = (later - first.start.since(ask.ready).as_nanos() as f64).rem_euclid(phase);
        let count = (self.duration.as_secs_f64() / self.interval.as_secs_f64()).ceil().max(1.0);
        let most = count.min(10_000.0) as u64;
        let of = |q: u64| {
            let turns = (q as f64 * step / phase).round();
            let apart = (q as f64 * step - turns * phase).abs();
            let lowest = gcd(q, turns as u64) == 1;
            lowest.then_some(phase / q as f64 + apart + q as f64 * phase / (2.0 * count))
        };
        let least = (1..=most).filter_map(of).fold(phase / 2.0, f64::min);
        Some(Span::from_nanos(least as u64))
    }
}

/// The time that station number `index` has for each of its frames.
fn service(saturated: &Saturated, index: usize) -> Span {
    match saturated.frames[index] > 0.0 {
        true => {
            Span::from_nanos((saturated.cycle.as_nanos() as f64 / saturated.frames[index]) as u64)
        }
        false => Span::MAX,
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
