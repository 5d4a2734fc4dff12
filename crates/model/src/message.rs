//! A message and its answer: the terms of its delay.

use crate::flow::Flow;
use crate::formula::rounds;
use crate::medium::{Course, answers_wait};
use crate::prediction::{Figure, Term};
use crate::schedule::{Blocks, Schedule};
use crate::slots;
use crate::speech::Packet;
use crate::talk::{Talk, processor_place, protocol_place, request_place, window_place};
use crate::way::{Resource, Stage, Turns, Way, burst};
use trunkline_core::{Cause, Span};
use trunkline_engine::{Note, NoteKind};
use trunkline_scenario::{HostPlace, Traffic};

/// The source of the terms of hosts.
pub(crate) const HOSTS: &str = "Hawley 1989 §4.2.2, Vande Water 1988 §2.6";
const WINDOW: &str = "Vande Water 1988 eq. 4 and §3.7.2, Hawley 1989 §4.2.2";
const LINE: &str = "Hawley 1989 §2.1, Vande Water 1988 eq. 2";
const DISTANCE: &str = "Vande Water 1988 eq. 1";
const QUEUE: &str = "Hawley 1989 §2.2, §4.3.2.1";

/// Terms in order of time.
#[derive(Debug, Default)]
pub(crate) struct Terms(pub Vec<Term>);

impl Terms {
    /// Adds a term, unless it is nothing.
    pub fn add(
        &mut self,
        (name, formula, source): (&str, &'static str, &'static str),
        place: &str,
        cause: Cause,
        span: Span,
        numbers: String,
    ) {
        if span.is_zero() {
            return;
        }
        let (name, place) = (name.to_string(), place.to_string());
        let value = Figure::Time(span);
        self.0.push(Term { name, place, cause: Some(cause), formula, numbers, value, source });
    }

    pub fn total(&self) -> Span {
        self.0.iter().map(Term::span).sum()
    }

    /// The same in a time of so much: each term has its share of it.
    pub fn lasting(mut self, time: Span) -> Terms {
        let (total, mut left) = (self.total(), time);
        let last = self.0.len().saturating_sub(1);
        for (index, term) in self.0.iter_mut().enumerate() {
            let part = time.scaled(term.span().as_nanos(), total.as_nanos().max(1));
            let part = if index == last { left } else { part };
            left = left.saturating_sub(part);
            term.value = Figure::Time(part);
            term.numbers += &format!(", {:.1} times", time.as_secs_f64() / total.as_secs_f64());
        }
        self
    }

    /// The mean of what several flows take: of each term at each place, over all flows.
    pub fn mean(of: Vec<Terms>) -> Terms {
        let count = of.len().max(1) as u64;
        let mut mean: Vec<(Term, Span)> = Vec::new();
        for term in of.into_iter().flat_map(|terms| terms.0) {
            let span = term.span();
            let same = |(other, _): &&mut (Term, Span)| {
                (&other.name, &other.place, other.cause) == (&term.name, &term.place, term.cause)
            };
            match mean.iter_mut().find(same) {
                Some((_, sum)) => *sum += span,
                None => mean.push((term, span)),
            }
        }
        let shared = mean.into_iter().map(|(term, sum)| Term {
            value: Figure::Time(sum.scaled(1, count)),
            numbers: format!("{}; of {count} flows in the mean", term.numbers),
            ..term
        });
        Terms(shared.collect())
    }
}

/// The bytes of each round of a message.
pub(crate) fn rounds_of(talk: &Talk<'_>, bytes: u32) -> Vec<u32> {
    let interface = &talk.from.0.interface;
    let speech = talk.speech;
    let outstanding = speech.outstanding.unwrap_or(u32::MAX);
    let one = interface.requests == Some(1) && speech.answer.is_some();
    rounds::rounds(bytes, &interface.split, one, speech.block, outstanding)
}

/// A message and its answer. A message that goes out `at_once` when the answer to the one before has come finds
/// the protocol's own answer to that ahead of it.
pub(crate) fn round_trip(
    there: &Talk<'_>,
    back: &Talk<'_>,
    (bytes, answer): (u32, u32),
    at_once: bool,
) -> Terms {
    let mut terms = Terms::default();
    if at_once {
        echo_ahead(&mut terms, back, there, (answer, last_block(back, answer), bytes));
    }
    let last = one_way(&mut terms, there, bytes);
    echo_ahead(&mut terms, there, back, (bytes, last, answer));
    one_way(&mut terms, back, answer);
    terms
}

/// User bytes of a message's last block.
pub(crate) fn last_block(talk: &Talk<'_>, bytes: u32) -> u32 {
    let requests = talk.speech.requests(bytes, &talk.from.0.interface.split);
    requests.last().and_then(|blocks| blocks.last()).copied().unwrap_or(0)
}

/// From the start of the system write to the end of the read that takes the last block, whose size it
/// returns.
pub(crate) fn one_way(terms: &mut Terms, talk: &Talk<'_>, bytes: u32) -> u32 {
    one_way_in_turn(terms, talk, bytes, None)
}

/// The same over shared channels, in the course of a conversation there.
pub(crate) fn one_way_in_turn(
    terms: &mut Terms,
    talk: &Talk<'_>,
    bytes: u32,
    course: Option<&mut Course>,
) -> u32 {
    write(terms, talk, bytes);
    let requests = talk.speech.requests(bytes, &talk.from.0.interface.split);
    let mut blocks = Blocks::of(talk);
    let schedule = blocks.schedule(&requests);
    starting(terms, talk, bytes, &schedule, &requests, &mut blocks);
    let caught_up = CaughtUp::of(talk, &schedule);
    carrying(terms, talk, schedule.last, &caught_up.stages, course);
    behind(terms, &processor_place(talk.to.0), caught_up.processor);
    taking(terms, talk, schedule.last);
    schedule.last
}

fn write(terms: &mut Terms, talk: &Talk<'_>, bytes: u32) {
    let host = talk.from.0;
    let cost = host.processor.write;
    terms.add(
        ("system write", "fixed + bytes × per byte", HOSTS),
        &processor_place(host),
        Cause::Host,
        cost.of(u64::from(bytes)),
        format!("{} + {bytes} × {}", cost.fixed, cost.per_byte),
    );
}

/// The blocks that come before the last can start.
fn starting(
    terms: &mut Terms,
    talk: &Talk<'_>,
    bytes: u32,
    schedule: &Schedule,
    requests: &[Vec<u32>],
    blocks: &mut Blocks<'_, '_>,
) {
    let host = talk.from.0;
    let count: usize = requests.iter().map(Vec::len).sum();
    terms.add(
        ("requests handed over", "requests × (request + interrupt when done)", HOSTS),
        &processor_place(host),
        Cause::Host,
        schedule.handing,
        format!("{} requests", requests.len()),
    );
    let first = requests.first().and_then(|request| request.first()).copied().unwrap_or(0);
    let times = blocks.times(first);
    let (place, cause) = slowest(talk, times.slowest);
    terms.add(
        ("blocks ahead of the last", "blocks sent × time of the slowest stage", LINE),
        &place,
        cause,
        schedule.ahead,
        format!("{count} blocks, {} for one of {first} bytes", times.spacing),
    );
    let sent = rounds_of(talk, bytes);
    let numbers =
        format!("{} rounds of {sent:?} bytes, answer after {}", sent.len(), times.answered);
    let block = "t(k) = max(t(k−1) + spacing, answer to block k − w)";
    let name = ("waiting for the window", block, WINDOW);
    terms.add(name, &window_place(host), Cause::Window, schedule.window, numbers.clone());
    let request = "answer to the last block of the request before − its start";
    let name = ("waiting for the request before", request, WINDOW);
    terms.add(name, &request_place(host), Cause::Window, schedule.request, numbers);
}

/// The place and the cause at which the slowest stage spends its time.
pub(crate) fn slowest(talk: &Talk<'_>, resource: Resource) -> (String, Cause) {
    let stages = || talk.way.stages.iter().chain(&talk.back.stages);
    match resource {
        Resource::Line(..)
        | Resource::Trunk(..)
        | Resource::Backplane(_)
        | Resource::Medium(_)
        | Resource::Port(..) => {
            let stage = stages().find(|stage| stage.resource == resource);
            (stage.map_or(String::new(), |stage| stage.place.clone()), cause_at(resource))
        }
        Resource::Processor(host) | Resource::Board(host) | Resource::BoardIn(host) => {
            let host = if host == talk.to.1 { talk.to.0 } else { talk.from.0 };
            let place = match resource {
                Resource::Processor(_) => processor_place(host),
                _ => HostPlace::Interface.of(&host.name),
            };
            (place, Cause::Host)
        }
    }
}

/// The cause under which a packet's own time at a stage is booked. A trunk board's processor belongs to the queue.
fn cause_at(resource: Resource) -> Cause {
    match resource {
        Resource::Line(..) | Resource::Backplane(_) | Resource::Medium(_) | Resource::Port(..) => {
            Cause::Transmit
        }
        Resource::Trunk(..) => Cause::Queue,
        Resource::Processor(_) | Resource::Board(_) | Resource::BoardIn(_) => Cause::Host,
    }
}

/// What a message's last block waits for the one before it. Blocks start as the slowest stage takes them, so equal ones do
/// not meet; a shorter last one catches up with those ahead at every stage that it passes faster.
#[derive(Debug, Default)]
struct CaughtUp {
    /// At each stage of the way.
    stages: Vec<Span>,
    /// At the receiver's processor.
    processor: Span,
}

impl CaughtUp {
    fn of(talk: &Talk<'_>, schedule: &Schedule) -> CaughtUp {
        let last = schedule.last;
        let Some((longer, lead)) = schedule.before.filter(|&(data, _)| data > last) else {
            return CaughtUp::default();
        };
        let preparing = |data| talk.host_send(data) + talk.board_send(data);
        let released = lead + preparing(last);
        let apart = released.saturating_sub(preparing(longer));
        let mut both = burst(&talk.speech.packets(longer));
        let first = talk.way.spent(&both);
        let own = burst(&talk.speech.packets(last));
        let alone = talk.way.spent(&own);
        both.extend(own.into_iter().map(|(_, packet, ends)| (apart, packet, ends)));
        let spent = talk.way.spent(&both);
        let passed = preparing(longer) + first.into_iter().sum::<Span>() + talk.taking(longer);
        let there = released + spent.iter().copied().sum::<Span>();
        let stages = spent.iter().zip(alone).map(|(&with, alone)| with.saturating_sub(alone));
        CaughtUp { stages: stages.collect(), processor: passed.saturating_sub(there) }
    }
}

fn behind(terms: &mut Terms, place: &str, wait: Span) {
    let name =
        ("behind the block ahead", "D(p−1, h) − D(p, h−1), if a longer block is ahead", LINE);
    terms.add(name, place, Cause::Queue, wait, wait.to_string());
}

/// The last block, from the sender's processor to the receiver's board. `waits` are what it waits for the block before.
fn carrying(
    terms: &mut Terms,
    talk: &Talk<'_>,
    data: u32,
    waits: &[Span],
    mut course: Option<&mut Course>,
) {
    let host = talk.from.0;
    let envelopes = talk.speech.envelopes(data);
    let preparing = talk.host_send(data) + talk.board_send(data);
    terms.add(
        ("preparing the last block", "processor + board, for its envelopes", HOSTS),
        &protocol_place(host),
        Cause::Host,
        preparing,
        format!("{} + {} for {envelopes}", talk.host_send(data), talk.board_send(data)),
    );
    let packets = talk.speech.packets(data);
    let spent = talk.way.spent(&burst(&packets));
    let waits = waits.iter().copied().chain(std::iter::repeat(Span::ZERO));
    for ((stage, span), wait) in talk.way.stages.iter().zip(spent).zip(waits) {
        if let Some(course) = &mut course {
            course.turn(terms, stage, &packets);
        }
        queued(terms, stage, &packets);
        behind(terms, &stage.place, wait);
        slot(terms, stage);
        terms.add(
            ("its packets", "D(p, h) = max(D(p−1, h), D(p, h−1)) + bits / rate", LINE),
            &stage.place,
            cause_at(stage.resource),
            span,
            format!("{} packets, {envelopes} envelopes, {}", packets.len(), stage.describe()),
        );
        terms.add(
            ("distance", "distance / speed", DISTANCE),
            &stage.place,
            Cause::Propagate,
            stage.propagate,
            stage.propagate.to_string(),
        );
    }
}

fn queued(terms: &mut Terms, stage: &Stage, packets: &[Packet]) {
    if let Some(rule) = stage.channel().and_then(|channel| channel.alone.rule()) {
        let name = (rule.name, rule.formula, rule.source);
        let wait = stage.wait(packets);
        return terms.add(name, &stage.place, Cause::Queue, wait, wait.to_string());
    }
    let numbers = match stage.turns {
        None => format!("standing queue of {}", stage.queue),
        Some(Turns { others, quantum, time }) => format!(
            "{} of full fifos, then {others} × {time} for each {quantum} bytes",
            stage.queue
        ),
    };
    let formula = match stage.turns {
        None => "bytes ahead / drain rate",
        Some(_) => "fifos / rate + quanta × other channels × quantum / rate",
    };
    let (name, wait) = ("behind other traffic", stage.wait(packets));
    terms.add((name, formula, QUEUE), &stage.place, Cause::Queue, wait, numbers);
}

/// A line with slots that nothing keeps busy.
fn slot(terms: &mut Terms, stage: &Stage) {
    let name = ("for the next slot", "slot / 2, the mean over all phases", LINE);
    terms.add(name, &stage.place, Cause::Queue, stage.to_slot(), stage.describe());
}

/// The last block from the receiver's board to the application.
fn taking(terms: &mut Terms, talk: &Talk<'_>, data: u32) {
    let host = talk.to.0;
    let protocol = talk.host_receive(data) + talk.answering_first();
    terms.add(
        ("taking in the last block", "receive block + answer", HOSTS),
        &processor_place(host),
        Cause::Host,
        protocol,
        format!("{} + {}", talk.host_receive(data), talk.answering_first()),
    );
    terms.add(
        ("interrupt and system read", "interrupts + fixed + bytes × per byte", HOSTS),
        &processor_place(host),
        Cause::Host,
        talk.interrupts(data) + talk.read(data),
        format!("{} + {} for {data} bytes", talk.interrupts(data), talk.read(data)),
    );
}

/// How far the protocol's own answer to what `there` brought is ahead of what `back` sends.
pub(crate) fn lead(there: &Talk<'_>, back: &Talk<'_>, (last, answer): (u32, u32)) -> Span {
    let requests = back.speech.requests(answer, &back.from.0.interface.split);
    let first = requests.first().and_then(|blocks| blocks.first()).copied().unwrap_or(0);
    let request = requests.first().map_or(0, |blocks| blocks.iter().sum());
    let write = back.from.0.processor.write.of(u64::from(answer));
    let sending = back.request(request) + back.host_send(first) + back.board_send(first);
    there.lead(last, write, sending)
}

/// What `back` sends finds the protocol's own answers to what `there` brought before it on the lines: that to the last block, and
/// those before it that have not passed yet.
fn echo_ahead(
    terms: &mut Terms,
    there: &Talk<'_>,
    back: &Talk<'_>,
    (bytes, last, answer): (u32, u32, u32),
) {
    let Some(ahead) = there.speech.answer else { return };
    let requests = there.speech.requests(bytes, &there.from.0.interface.split);
    let mut earlier = Blocks::of(there).schedule(&requests).earlier;
    if earlier.is_empty() {
        earlier.push(Span::ZERO);
    }
    behind_answers(terms, (there, back), (ahead, &earlier), (last, answer));
}

/// The same of each `ahead` that the protocol answers with, so `early` before it could answer the last block; the earliest first.
pub(crate) fn behind_answers(
    terms: &mut Terms,
    (there, back): (&Talk<'_>, &Talk<'_>),
    (ahead, early): (Packet, &[Span]),
    (last, answer): (u32, u32),
) {
    let requests = back.speech.requests(answer, &back.from.0.interface.split);
    let first = requests.first().and_then(|blocks| blocks.first()).copied().unwrap_or(0);
    let lead = lead(there, back, (last, answer));
    let alone = burst(&back.speech.packets(first));
    let begun = early.first().copied().unwrap_or_default();
    let mut behind: Vec<_> = early.iter().map(|&early| (begun - early, ahead, true)).collect();
    behind.extend(alone.iter().map(|&(_, packet, last)| (begun + lead, packet, last)));
    let total = |way: &Way, packets: &[_]| way.spent(packets).into_iter().sum::<Span>();
    let later = total(&back.way, &behind).saturating_sub(total(&back.way, &alone));
    let place = back.way.stages.first().map_or("", |stage| stage.place.as_str());
    terms.add(
        ("behind the protocol's answer", "time of the controls ahead − lead", LINE),
        place,
        Cause::Queue,
        later,
        format!("{} ahead, lead {lead}", early.len()),
    );
}

/// The largest message, and the largest answer.
pub(crate) fn most(sizes: &[u32], answer: impl Fn(u32) -> u32) -> [u32; 2] {
    let largest = sizes.iter().copied().max().unwrap_or(0);
    [largest, sizes.iter().map(|&size| answer(size)).max().unwrap_or(0)]
}

/// Notes on what the round trips leave open, of which the shortest takes `least`.
pub(crate) fn left_open(
    traffic: &Traffic,
    flow: &Flow<'_>,
    (sizes, answer): (&[u32], impl Fn(u32) -> u32),
    least: Option<Span>,
) -> Vec<Note> {
    let smallest = sizes.iter().copied().min().unwrap_or(0);
    let notes = [
        behind_controls(traffic, flow, least),
        read_together(traffic, flow, most(sizes, &answer), least),
        slots::of_messages(traffic, flow, (smallest, answer(smallest)), least),
    ];
    notes.into_iter().flatten().collect()
}

/// A note if what the protocol's own answers cost the hosts may be much of the shortest round trip: each end sends one and
/// hears one, and a message may wait for both.
fn behind_controls(traffic: &Traffic, flow: &Flow<'_>, least: Option<Span>) -> Option<Note> {
    let wait = flow.there.speech.answer.map_or(Span::ZERO, |_| flow.there.acknowledging());
    let wait = wait.scaled(2, 1);
    (wait > least?.scaled(1, 20)).then(|| {
        let text = format!("waits for the control costs of the protocol's answers at both ends are left out in part: a round trip may be up to {} longer", wait.rounded());
        Note::of_traffic(&traffic.name, NoteKind::Assumed, text)
    })
}

/// A note if a reader that is behind may make the longest round trip much shorter, as it takes several blocks with one call.
fn read_together(
    traffic: &Traffic,
    flow: &Flow<'_>,
    most: [u32; 2],
    least: Option<Span>,
) -> Option<Note> {
    let ends = [&flow.there, &flow.back].into_iter().zip(most);
    let less: Span = ends.map(|(talk, bytes)| reads_less(talk, bytes)).sum();
    (less > least?.scaled(1, 20)).then(|| {
        let text = format!("each block is taken with a system read of its own; a reader that is behind takes several: a round trip may be up to {} shorter", less.rounded());
        Note::of_traffic(&traffic.name, NoteKind::Assumed, text)
    })
}

/// How much sooner the last block of a message starts if the reader takes all that has come with one call.
fn reads_less(talk: &Talk<'_>, bytes: u32) -> Span {
    let requests = talk.speech.requests(bytes, &talk.from.0.interface.split);
    let [each, together] = [Blocks::of(talk), Blocks::read_together(talk)].map(|mut blocks| {
        let schedule = blocks.schedule(&requests);
        schedule.ahead + schedule.window + schedule.request
    });
    each.saturating_sub(together)
}

/// A note if an end of a message or of its answer asks before a block of it can be answered.
pub(crate) fn asks_early(
    traffic: &Traffic,
    flow: &Flow<'_>,
    sizes: &[u32],
    (answer, at_once): (impl Fn(u32) -> u32, bool),
) -> Option<Note> {
    let largest = sizes.iter().copied().max()?;
    let back = sizes.iter().map(|&size| answer(size)).max()?;
    let mut waits = [Span::ZERO; 2];
    for &size in sizes {
        let [one, other] = answers_wait(flow, (size, answer(size)), at_once);
        waits = [waits[0].max(one), waits[1].max(other)];
    }
    let ends = [(&flow.there, largest, waits[0]), (&flow.back, back, waits[1])];
    let text = ends.into_iter().find_map(|(talk, bytes, wait)| {
        let block = bytes.min(talk.speech.block);
        talk.asks_early(block, wait, "the round trip is a lower bound")
    });
    text.map(|text| Note::of_traffic(&traffic.name, NoteKind::Assumed, text))
}
