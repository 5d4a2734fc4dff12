//! Messages over a shared channel: who sends when in a conversation that has it to itself.

use crate::flow::Flow;
use crate::message::{Terms, last_block, lead, one_way_in_turn, round_trip};
use crate::speech::Packet;
use crate::talk::Talk;
use crate::way::{Resource, Stage};
use std::collections::BTreeMap;
use trunkline_core::{Cause, Span, Time};
use trunkline_engine::{Note, NoteKind};
use trunkline_path::medium::Turn;
use trunkline_scenario::{Traffic, Workload};

/// The share of a figure from which on a range is told.
const TOLD: u64 = 100;

/// The course of a conversation: the turns that it has had on its channels.
#[derive(Debug, Default)]
pub(crate) struct Course {
    /// When the terms that are being made begin.
    base: Time,
    /// When the last answer began.
    answered: Time,
    last: BTreeMap<Resource, Turn>,
    /// The protocol's own answer that goes ahead of the message.
    echo: Option<Echo>,
    /// The longest from a message's start to the protocol's own answer to it: of messages one way, and the other.
    silences: [Span; 2],
    /// Why no formula says who sends when.
    trouble: Option<String>,
}

/// The protocol's own answer to a message.
#[derive(Debug, Clone, Copy)]
struct Echo {
    packet: Packet,
    /// How far it is ahead of the message that goes with it.
    lead: Span,
    /// When what it answers began, and whether that was an answer itself.
    asked: (Time, usize),
}

impl Course {
    /// The turns of a message of one block, whose packets have come to `stage` at the end of `terms`.
    pub fn turn(&mut self, terms: &mut Terms, stage: &Stage, packets: &[Packet]) {
        let Some(channel) = stage.channel() else { return };
        let ready = self.base + terms.total();
        if let Some(Echo { packet, lead, asked: (since, which) }) = self.echo.take() {
            let ahead = channel.ask(ready.before(lead), packet);
            let turn = self.take(stage.resource, channel.alone.turn(self.last(stage), ahead));
            let silence = turn.map_or(Span::ZERO, |it| (it.end + channel.distance()).since(since));
            self.silences[which] = self.silences[which].max(silence);
        }
        let (idle, alone) = (self.last(stage).is_none(), channel.alone);
        let phase = if idle { alone.phase() } else { Span::ZERO };
        let (mut end, mut own) = (ready, Span::ZERO);
        for &packet in packets {
            let asked = channel.ask(ready + phase.scaled(1, 2), packet);
            let Some(turn) = self.take(stage.resource, alone.turn(self.last(stage), asked)) else {
                return;
            };
            (end, own) = (turn.end, own + turn.own);
        }
        let Some(rule) = alone.rule() else { return };
        let wait = end.since(ready).saturating_sub(own);
        let least = wait.saturating_sub(phase.scaled(1, 2));
        let numbers = match phase.is_zero() {
            true => wait.to_string(),
            false => format!("{least} to {}", least + phase),
        };
        let name = (rule.name, rule.formula, rule.source);
        terms.add(name, &stage.place, Cause::Queue, wait, numbers);
    }

    fn last(&self, stage: &Stage) -> Option<Turn> {
        self.last.get(&stage.resource).copied()
    }

    fn take(&mut self, channel: Resource, turn: Result<Turn, String>) -> Option<Turn> {
        match turn {
            Ok(turn) => {
                self.last.insert(channel, turn);
                Some(turn)
            }
            Err(why) => {
                self.trouble.get_or_insert(why);
                None
            }
        }
    }

    /// One message and its answer. The one before has had its answer `just` before, or long ago.
    fn lap(
        &mut self,
        (there, back): (&Talk<'_>, &Talk<'_>),
        (bytes, answer): (u32, u32),
        just: bool,
    ) -> Result<Terms, String> {
        let mut terms = Terms::default();
        let echo = |talk: &Talk<'_>, other: &Talk<'_>, sizes, asked| {
            let packet = talk.speech.answer?;
            Some(Echo { packet, lead: lead(talk, other, sizes), asked })
        };
        let answered = (self.answered, 1);
        self.echo = echo(back, there, (last_block(back, answer), bytes), answered).filter(|_| just);
        let last = one_way_in_turn(&mut terms, there, bytes, Some(self));
        self.echo = echo(there, back, (last, answer), (self.base, 0));
        self.answered = self.base + terms.total();
        one_way_in_turn(&mut terms, back, answer, Some(self));
        self.base += terms.total();
        self.trouble.take().map_or(Ok(terms), Err)
    }
}

/// Datagrams of one size, one way, each of which finds the channel idle.
///
/// # Errors
/// Why no formula covers them.
pub(super) fn datagram(talk: &Talk<'_>, bytes: u32) -> Result<Terms, String> {
    one_block(talk, bytes)?;
    let (mut terms, mut course) = (Terms::default(), Course::default());
    one_way_in_turn(&mut terms, talk, bytes, Some(&mut course));
    course.trouble.map_or(Ok(terms), Err)
}

/// A message and its answer, as [`round_trip`], where they may take turns on a shared channel. If the next message goes out
/// `at_once` each but the first finds its phase set by the one before: the terms are those of a later one.
///
/// # Errors
/// Why no formula covers them.
pub(crate) fn conversation(
    flow: &Flow<'_>,
    sizes: (u32, u32),
    (at_once, echoes): (bool, bool),
) -> Result<Terms, String> {
    let (there, back) = (&flow.there, &flow.back);
    if flow.channel().is_none() {
        return Ok(round_trip(there, back, sizes, at_once && echoes));
    }
    one_block(there, sizes.0)?;
    one_block(back, sizes.1)?;
    laps(flow, sizes, at_once).map(|(terms, _)| terms)
}

/// A message and its answer on a shared channel, as [`conversation`], and the course that they have taken.
fn laps(flow: &Flow<'_>, sizes: (u32, u32), at_once: bool) -> Result<(Terms, Course), String> {
    let ends = (&flow.there, &flow.back);
    let mut course = Course::default();
    let mut terms = course.lap(ends, sizes, false)?;
    // The first turn depends on a phase, the second on how the first one came; from then on all is the same.
    for _ in 0..if at_once { 2 } else { 0 } {
        terms = course.lap(ends, sizes, true)?;
    }
    Ok((terms, course))
}

/// How long the turns on a shared channel keep the protocol's own answers to a message and to its answer, beside the time
/// that these take of themselves.
pub(crate) fn answers_wait(flow: &Flow<'_>, sizes: (u32, u32), at_once: bool) -> [Span; 2] {
    let [there, back] = [(&flow.there, sizes.0), (&flow.back, sizes.1)].map(|(talk, bytes)| {
        let block = bytes.min(talk.speech.block);
        talk.block(block).answered
    });
    let course = flow.channel().and_then(|_| laps(flow, sizes, at_once).ok());
    let [one, other] = course.map_or([Span::ZERO; 2], |(_, mut course)| {
        // What answers the last answer goes ahead of another message, which may wait for it or not.
        let [message, _] = course.silences;
        let _ = course.lap((&flow.there, &flow.back), sizes, true);
        [message, course.silences[1]]
    });
    [one.saturating_sub(there), other.saturating_sub(back)]
}

/// Whether each message finds the answer to the one before it come, if they are sent at intervals.
///
/// # Errors
/// That not each does, on a shared channel.
pub(crate) fn in_time(traffic: &Traffic, flow: &Flow<'_>, total: Span) -> Result<(), String> {
    match (&traffic.workload, flow.channel()) {
        (Workload::Interactive { every, repeat, .. }, Some((_, channel)))
            if *repeat > 1 && !every.is_zero() && *every < total + channel.alone.phase() =>
        {
            Err(format!(
                "messages every {every} on a shared medium, where an answer may take longer"
            ))
        }
        _ => Ok(()),
    }
}

/// Answers of the protocol take turns with the blocks of longer messages.
pub(super) fn one_block(talk: &Talk<'_>, bytes: u32) -> Result<(), String> {
    let requests = talk.speech.requests(bytes, &talk.from.0.interface.split);
    let blocks: Vec<u32> = requests.into_iter().flatten().collect();
    if blocks.len() > 1 {
        return Err(format!(
            "messages of {bytes} bytes, {} blocks, on a shared medium",
            blocks.len()
        ));
    }
    let packets = talk.speech.packets(blocks.first().copied().unwrap_or(0)).len();
    let first = talk.way.stages.iter().position(|stage| stage.channel().is_some());
    match first {
        Some(place) if place > 0 && (talk.speech.answer.is_some() || packets > 1) => {
            Err("several packets, or answers of the protocol, that come to a shared medium over other lines".into())
        }
        _ => Ok(()),
    }
}

/// A note if the wait of a message for its turn on an idle channel is much of a figure of `total`: it depends on the instant.
pub(crate) fn phase_note(traffic: &Traffic, flow: &Flow<'_>, total: Option<Span>) -> Option<Note> {
    let (_, channel) = flow.channel()?;
    let (phase, rule) = (channel.alone.phase(), channel.alone.rule()?);
    let half = phase.scaled(1, 2);
    (half > total?.scaled(1, TOLD)).then(|| {
        let text = format!(
            "the wait {} of what finds the medium idle depends on the instant: half of {phase} is counted, the mean over all, and at regular intervals it may stay up to {half} below or above",
            rule.name
        );
        Note::of_traffic(&traffic.name, NoteKind::Assumed, text)
    })
}
