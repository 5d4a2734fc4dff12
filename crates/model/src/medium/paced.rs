//! Datagrams at a constant rate over a shared channel.

use super::Channel;
use super::course::{datagram, one_block};
use crate::flow::{Flow, alongside};
use crate::formula::general::utilisation_ppm;
use crate::group::stage_name;
use crate::message::Terms;
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
    /// From one datagram's coming to the channel to the next one's.
    interval: Span,
    /// Which of the traffic's own flows it sends. `None` if another traffic's.
    own: Option<usize>,
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
    let senders = senders(paced, flows, resource)?;
    match (&senders[..], flows) {
        (&[own], [flow]) => paced.lone(flow, (resource, channel), own, list, notes),
        _ => paced.among(flows, (resource, channel), &senders, list, notes),
    }
}

/// The stations that send on the channel, the own flows' first: each datagrams of one flow, or the ends of conversations.
///
/// # Errors
/// If anything else is there, or flows meet elsewhere too.
fn senders(
    paced: Paced<'_>,
    flows: &[Flow<'_>],
    resource: Resource,
) -> Result<Vec<Sender>, String> {
    let network = paced.network;
    let mut taken: BTreeSet<usize> = BTreeSet::new();
    let mut elsewhere: BTreeSet<Resource> = BTreeSet::new();
    let mut spoken: BTreeMap<Resource, usize> = BTreeMap::new();
    let (mut senders, mut answers) = (Vec::new(), Vec::new());
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
            let demands: Vec<Resource> = flow.there.demands_written(size).into_keys().collect();
            let apart = demands.into_iter().filter(|&it| it != resource);
            for stage in apart {
                if !elsewhere.insert(stage) {
                    return Err(met(description));
                }
            }
            let interval = Throughput::from(rate).time_for(u64::from(size));
            let own = own.then_some(number);
            senders.extend(sender(flow, resource, (size, interval), own, &mut taken)?);
            answers.extend(answerer(flow, resource, interval));
        }
    }
    // The answer to a datagram goes behind it, and finds the channel as the datagram left it if no other station sends.
    if senders.len() + answers.len() > 2 {
        for answer in answers {
            if !taken.insert(answer.ask.by.0) {
                return Err("answers and datagrams of one station of a shared medium".into());
            }
            senders.push(answer);
        }
    }
    match spoken.iter().find(|(stage, _)| elsewhere.contains(stage)) {
        Some((_, &traffic)) => Err(met(&network.scenario().traffic[traffic])),
        None => Ok(senders),
    }
}

/// The station that sends a flow's datagrams on the channel. `None` if they do not cross it.
///
/// # Errors
/// If it sends another flow's too, or more than one frame for each.
fn sender(
    flow: &Flow<'_>,
    resource: Resource,
    (size, interval): (u32, Span),
    own: Option<usize>,
    taken: &mut BTreeSet<usize>,
) -> Result<Option<Sender>, String> {
    let stages = &flow.there.way.stages;
    let Some(place) = stages.iter().position(|stage| stage.resource == resource) else {
        return Ok(None);
    };
    let Some(channel) = stages[place].channel() else { return Ok(None) };
    if !taken.insert(channel.from.0) {
        return Err("several paced flows of one station of a shared medium".into());
    }
    let demands = flow.there.demands_written(size);
    let hosts = [Resource::Processor(flow.there.from.1), Resource::Board(flow.there.from.1)];
    let before = stages[..place].iter().map(|stage| stage.resource).chain(hosts);
    let held = before.filter_map(|it| demands.get(&it).copied()).max().unwrap_or_default();
    let ask = channel.ask(Time::ZERO, flow.there.speech.packets(size)[0]);
    Ok(Some(Sender { ask, interval: interval.max(held), own }))
}

/// The station that answers a flow's datagrams, if the protocol answers and it does so on the channel.
fn answerer(flow: &Flow<'_>, resource: Resource, interval: Span) -> Option<Sender> {
    let stage = flow.back.way.stages.iter().find(|stage| stage.resource == resource)?;
    let ask = stage.channel()?.ask(Time::ZERO, flow.there.speech.answer?);
    Some(Sender { ask, interval, own: None })
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
        one_block(talk, bytes).map_err(|why| format!("{}, which has {why}", met(traffic)))?;
        let [packet] = talk.speech.packets(bytes)[..] else { return Err(met(traffic)) };
        let stage = talk.way.stages.iter().find(|stage| stage.resource == resource);
        let Some(channel) = stage.and_then(|stage| stage.channel()) else {
            return Err(met(traffic));
        };
        if !taken.insert(channel.from.0) {
            return Err("several flows of one station of a shared medium".into());
        }
        let ask = channel.ask(Time::ZERO, packet);
        senders.extend([Sender { ask, interval: Span::MAX, own: None }; 2]);
    }
    Ok(senders)
}

/// What a datagram of one flow takes.
struct Range {
    least: Span,
    most: Span,
    /// What it is made of if no other station sends.
    terms: Terms,
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
        let stages = flow.there.demands_written(self.size).into_iter();
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

    /// The figures of datagrams of `flows` beside each other, and beside those of other stations.
    fn among(
        &self,
        flows: &[Flow<'_>],
        (resource, channel): (Resource, Channel),
        senders: &[Sender],
        list: &mut Vec<Prediction>,
        notes: &mut Vec<Note>,
    ) -> Result<(), String> {
        let place = stage_name(self.network, resource);
        let alone = channel.alone;
        list.push(self.offered(&place, &channel, senders));
        let asks: Vec<Ask> = senders.iter().map(|sender| sender.ask).collect();
        let saturated = alone.saturated(&asks)?;
        let full = |index: usize| senders[index].interval < service(&saturated, index);
        if (0..senders.len()).all(full) {
            self.saturated(&place, flows, (resource, senders), &saturated, list, notes);
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
        let ranges: Vec<Range> = (0..flows.len())
            .map(|number| self.range(&flows[number], (resource, channel), senders, number))
            .collect::<Result<_, _>>()?;
        let mean = |of: fn(&Range) -> Span| {
            let all: Span = ranges.iter().map(of).sum();
            all.scaled(1, ranges.len() as u64)
        };
        let (least, most) = (mean(|it| it.least), mean(|it| it.most));
        let text = format!(
            "all is carried, and the mean delay is between {least} and {most}: how long others are waited for depends on how their instants lie"
        );
        notes.push(self.note(text));
        let Some(Range { mut terms, most, .. }) = ranges.into_iter().max_by_key(|it| it.most)
        else {
            return Ok(());
        };
        let formula = "Σ a turn of each other station, with what goes round between";
        let name = ("others' turns, at most", formula, saturated.source);
        let numbers = format!("all of them once in {once}");
        terms.add(name, &place, Cause::Queue, most.saturating_sub(terms.total()), numbers);
        let total = terms.total();
        list.push(self.make(What::DelayAtMost, Figure::Time(total), terms.0));
        Ok(())
    }

    /// How busy the datagrams of all stations keep the channel.
    fn offered(&self, place: &str, channel: &Channel, senders: &[Sender]) -> Prediction {
        let carries = |sender: &Sender| {
            let own = channel.alone.turn(None, sender.ask).map_or(Span::ZERO, |turn| turn.own);
            utilisation_ppm(own, sender.interval)
        };
        let offered = Figure::Share(senders.iter().map(carries).sum());
        let formula =
            ("Σ time of a datagram / interval", "D/D/1: constant arrivals, constant service");
        let count = senders.iter().filter(|it| it.interval < Span::MAX).count();
        let numbers = format!("{count} stations with datagrams");
        self.make(What::Utilisation, offered, vec![self.term(place, offered, numbers, formula)])
    }

    /// Between what a datagram of flow `number` takes if it waits for no other station, and if it waits for each once.
    ///
    /// # Errors
    /// Why no formula covers it.
    fn range(
        &self,
        flow: &Flow<'_>,
        (resource, channel): (Resource, Channel),
        senders: &[Sender],
        number: usize,
    ) -> Result<Range, String> {
        let (stage, longest) = longest(flow, self.size, resource);
        if longest > self.interval {
            let place = stage_name(self.network, stage);
            return Err(format!(
                "the delay in overload: {place} is asked for more than it can carry"
            ));
        }
        let terms = datagram(&flow.there, self.size)?;
        let total = terms.total();
        let alone = channel.alone;
        let Some(own) = senders.iter().find(|it| it.own == Some(number)) else {
            return Ok(Range { least: total, most: total, terms });
        };
        if flow.there.speech.packets(self.size).len() > 1 {
            return Err("datagrams of several packets beside others on a shared medium".into());
        }
        let asks: Vec<Ask> = senders.iter().map(|sender| sender.ask).collect();
        let least = total.saturating_sub(alone.phase().scaled(1, 2));
        let own = alone.once(&[own.ask])?.saturating_sub(alone.phase());
        let most = least + alone.once(&asks)?.saturating_sub(own);
        Ok(Range { least, most, terms })
    }

    /// What each of the flows gets if all stations ask for more than the channel carries.
    fn saturated(
        &self,
        place: &str,
        flows: &[Flow<'_>],
        (resource, senders): (Resource, &[Sender]),
        saturated: &Saturated,
        list: &mut Vec<Prediction>,
        notes: &mut Vec<Note>,
    ) {
        let each = |number: usize| {
            let other = longest(&flows[number], self.size, resource).1;
            let index = senders.iter().position(|it| it.own == Some(number));
            other.max(index.map_or(self.interval, |index| service(saturated, index)))
        };
        let rates: Vec<Throughput> = (0..flows.len())
            .map(|number| Throughput::over(self.size.into(), each(number)))
            .collect();
        let sum: u128 = rates.iter().map(|it| u128::from(it.millibytes_per_second())).sum();
        let mean = sum / rates.len().max(1) as u128;
        let mean = Throughput::from_millibytes_per_second(u64::try_from(mean).unwrap_or(u64::MAX));
        let rate = Figure::Rate(mean);
        let numbers = match flows {
            [_] => format!("{} stations, {} bytes / {}", senders.len(), self.size, each(0)),
            _ => format!("{} stations, {} bytes, the mean of its flows", senders.len(), self.size),
        };
        let formula = (saturated.formula, saturated.source);
        list.push(self.make(
            What::Throughput,
            rate,
            vec![self.term(place, rate, numbers, formula)],
        ));
        notes.extend(saturated.estimate.clone().map(|text| self.note(text)));
        if let (Some(least), Some(most)) = (rates.iter().min(), rates.iter().max())
            && least < most
        {
            notes.push(self.note(format!(
                "the throughput is the mean of its flows, which get {least} to {most}"
            )));
        }
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

/// The stage of a flow's way, the channel `but` apart, that a datagram keeps longest, and for how long.
fn longest(flow: &Flow<'_>, size: u32, but: Resource) -> (Resource, Span) {
    let demands = flow.there.demands_written(size).into_iter();
    demands
        .filter(|&(stage, _)| stage != but)
        .max_by_key(|&(_, span)| span)
        .unwrap_or((but, Span::ZERO))
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
