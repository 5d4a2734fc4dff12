//! What is told of a traffic whose others come and go.

use super::Scenes;
use super::clock::{Course, Member, State, Stretch};
use crate::engine::Found;
use crate::flow::is_bulk;
use crate::prediction::{Figure, Prediction, Term, What};
use crate::tcp::Joins;
use std::collections::BTreeMap;
use trunkline_core::Span;
use trunkline_engine::{Note, NoteKind};
use trunkline_scenario::{Transport, Workload};

/// A share of a work's time below which nothing is told of it (a choice).
const TRIFLE: f64 = 0.05;
/// By how much of a flow's time others of its traffic may differ without a word (a choice).
const ALIKE: f64 = 0.05;
/// Parts of a second into which shares are divided.
const PARTS: u64 = 1_000_000_000;

/// A part of a flow's work in which the same is found of it.
struct Part {
    /// Of the work, or of its time if that is stated.
    share: f64,
    /// Of its time.
    time: f64,
    /// Those beside it, in words.
    beside: String,
    found: Found,
}

impl Part {
    /// Takes in a part of which the same is found: it is known by the longer one, and has the notes of both.
    fn join(&mut self, other: Part) {
        if other.share > self.share {
            self.beside = other.beside;
        }
        self.share += other.share;
        self.time += other.time;
        for note in other.found.notes {
            if !self.found.notes.contains(&note) {
                self.found.notes.push(note);
            }
        }
    }
}

impl Scenes<'_> {
    /// What is found of a traffic along a course; `None` if it is never under way.
    pub(super) fn told(&mut self, traffic: usize, course: &Course) -> Option<Found> {
        let own = (0..self.plans.len()).filter(|&flow| self.plans[flow].traffic == traffic);
        let length = |flow: &usize| course.stretches[*flow].iter().map(|it| it.lasts).sum::<f64>();
        let mut flows: Vec<usize> = own.filter(|flow| length(flow) > 0.0).collect();
        flows.sort_by(|a, b| length(a).total_cmp(&length(b)));
        let flow = *flows.get(flows.len().checked_sub(1)? / 2)?;
        let mut found = self.of_flow(traffic, &course.stretches[flow], course);
        let (least, most) = (length(&flows[0]), length(&flows[flows.len() - 1]));
        if !self.transfers(traffic) || found.list.is_empty() {
            return Some(found);
        }
        if most - least > ALIKE * length(&flow) {
            let [least, most] = [least, most].map(rounded);
            let text = format!(
                "the flow in the middle; they begin apart, and take from {least} to {most}"
            );
            found.notes.push(self.note(traffic, text));
        }
        found.notes.extend(self.behind(traffic, flow, (course, length(&flow))));
        Some(found)
    }

    /// A note if a connection begins while others are filling a queue that it meets.
    fn behind(&self, traffic: usize, flow: usize, (course, lasts): (&Course, f64)) -> Option<Note> {
        let scenario = self.network.scenario();
        if !matches!(*scenario.traffic[traffic].transport, Transport::Tcp(_)) {
            return None;
        }
        let began = course.began[flow]?;
        let earlier = |other: &usize| {
            let first = course.began[*other].is_some_and(|it| began - it > ALIKE * lasts);
            first && is_bulk(&scenario.traffic[self.plans[*other].traffic])
        };
        let first = course.stretches[flow].first()?;
        if first.member.joins == Joins::Behind {
            return None;
        }
        let mut there = course.states[first.state].iter().map(|member| member.flow);
        there.any(|other| earlier(&other)).then(|| {
            let text = "begins when others have been under way for some time: that it waits in their queue, and has less than its share until windows are even, is left out";
            self.note(traffic, text.into())
        })
    }

    /// Whether what is measured of a traffic is the time of one transfer.
    fn transfers(&self, traffic: usize) -> bool {
        matches!(
            self.network.scenario().traffic[traffic].workload,
            Workload::Bulk { repeat: 1, .. } | Workload::Push { repeat: 1, .. }
        )
    }

    fn note(&self, traffic: usize, text: String) -> Note {
        let name = &self.network.scenario().traffic[traffic].name;
        Note::of_traffic(name, NoteKind::Assumed, text)
    }

    /// What is found of each of a flow's works, in their order. What has the size of no work is told of the first.
    fn of_flow(&mut self, traffic: usize, stretches: &[Stretch], course: &Course) -> Found {
        let works = 0..=stretches.iter().map(|it| it.work).max().unwrap_or(0);
        let of = |work| stretches.iter().filter(move |it| it.work == work).copied();
        let mut each: Vec<Found> = works
            .map(|work| self.of_work(traffic, &of(work).collect::<Vec<_>>(), course))
            .collect();
        let notes: Vec<Note> = each.iter().flat_map(|found| found.notes.clone()).collect();
        let mut whole = Found::default();
        for note in notes {
            if !whole.notes.contains(&note) {
                whole.notes.push(note);
            }
        }
        if each.iter().all(|found| found.list == each[0].list) {
            return Found { list: each.swap_remove(0).list, ..whole };
        }
        let sizes = self.sizes(traffic);
        for (work, found) in each.into_iter().enumerate() {
            let is_of_it = |it: &Prediction| match sizes.contains(&it.size) {
                true => sizes.get(work) == Some(&it.size),
                false => work == 0,
            };
            whole.list.extend(found.list.into_iter().filter(is_of_it));
        }
        whole
    }

    /// The sizes of the messages or writes of a traffic's works, if it has several.
    fn sizes(&self, traffic: usize) -> Vec<u64> {
        match &self.network.scenario().traffic[traffic].workload {
            Workload::Interactive { sizes, .. }
            | Workload::TimedEcho { sizes, .. }
            | Workload::TimedTransfer { sizes, .. } => sizes.iter().map(|&it| it.into()).collect(),
            _ => Vec::new(),
        }
    }

    /// What is found of one work.
    fn of_work(&mut self, traffic: usize, stretches: &[Stretch], course: &Course) -> Found {
        if let Some(unknown) = self.unknown(traffic, stretches, course) {
            return unknown;
        }
        let mut parts = self.parts(traffic, stretches, course);
        parts.sort_by(|a, b| b.share.total_cmp(&a.share));
        let Some(Part { share, time, beside, found }) = parts.first() else {
            return Found::default();
        };
        let mut found = found.clone();
        if *time >= 1.0 - TRIFLE {
            return found;
        }
        let blended = if self.transfers(traffic) { blended(&parts) } else { None };
        let text = match blended {
            Some(transfer) => self.put_together(&mut found, transfer, &parts),
            None => format!(
                "as it is {beside}, {} of its time; that others come and go is left out",
                percent(*share)
            ),
        };
        found.notes.push(self.note(traffic, text));
        found
    }

    /// Puts a transfer in the place of what is `found` of its first part, with the notes of all that are told; returns their list in
    /// words.
    fn put_together(&self, found: &mut Found, transfer: Prediction, parts: &[Part]) -> String {
        let told = || parts.iter().filter(|part| part.time >= TRIFLE);
        for note in told().flat_map(|part| &part.found.notes) {
            if !found.notes.contains(note) {
                found.notes.push(note.clone());
            }
        }
        let stop = self.network.scenario().stop_after;
        if transfer.value.time().is_some_and(|time| time <= stop) {
            found.notes.retain(|note| note.kind != NoteKind::Unfinished);
        }
        if let Some(old) = found.list.iter_mut().find(|it| it.what == What::Transfer) {
            *old = transfer;
        }
        let each = told().map(|it| format!("{} of it {}", percent(it.share), it.beside));
        let each: Vec<String> = each.collect();
        format!("a transfer is made up of parts, and all else is of the first: {}", each.join(", "))
    }

    /// What is found of a transfer beside those who are there for a part of it, if that is not how long it takes.
    fn unknown(&mut self, traffic: usize, stretches: &[Stretch], course: &Course) -> Option<Found> {
        let by_share = self.transfers(traffic);
        let still = stretches.iter().find(|it| by_share && it.share == 0.0 && it.lasts > 0.0)?;
        let found = self.found(&course.states[still.state], still.member)?;
        (!found.list.iter().any(|it| it.what == What::Transfer)).then(|| found.clone())
    }

    /// The parts of a work in which something else is found.
    fn parts(&mut self, traffic: usize, stretches: &[Stretch], course: &Course) -> Vec<Part> {
        let warm_up = match self.network.scenario().traffic[traffic].workload {
            Workload::Greedy { warm_up, .. } => warm_up.as_secs_f64(),
            _ => 0.0,
        };
        let by_share = self.transfers(traffic);
        let mut weights: BTreeMap<(usize, Member), (f64, f64)> = BTreeMap::new();
        let mut passed = 0.0;
        for it in stretches {
            let measured = (passed + it.lasts - warm_up).clamp(0.0, it.lasts);
            let (share, time) = weights.entry((it.state, it.member)).or_default();
            *share += if by_share { it.share } else { measured };
            *time += measured;
            passed += it.lasts;
        }
        let whole = weights.values().fold((0.0, 0.0), |sum, it| (sum.0 + it.0, sum.1 + it.1));
        // Of what ends before anything of it is measured any part is as good.
        let of = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 1.0 };
        let mut parts: Vec<Part> = Vec::new();
        for ((state, member), (share, time)) in weights {
            let beside = self.beside(traffic, &course.states[state]);
            let Some(found) = self.found(&course.states[state], member).cloned() else { continue };
            let (share, time) = (of(share, whole.0), of(time, whole.1));
            let part = Part { share, time, beside, found };
            match parts.iter_mut().find(|known| known.found.list == part.found.list) {
                Some(known) => known.join(part),
                None => parts.push(part),
            }
        }
        parts
    }

    /// Who is there besides a flow of a traffic, in words.
    fn beside(&self, traffic: usize, state: &State) -> String {
        let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
        for member in state {
            *counts.entry(self.plans[member.flow].traffic).or_default() += 1;
        }
        let own = counts.remove(&traffic).map_or(0, |count| count - 1);
        let name = |(index, count): (usize, usize)| {
            let name = &self.network.scenario().traffic[index].name;
            if count > 1 { format!("{count} of {name}") } else { name.clone() }
        };
        let mut names: Vec<String> =
            (own > 0).then(|| format!("{own} of its own")).into_iter().collect();
        names.extend(counts.into_iter().map(name));
        if names.is_empty() { "alone".into() } else { format!("beside {}", names.join(", ")) }
    }
}

/// A transfer of which each part passes as found there; `None` if nothing is found of one.
fn blended(parts: &[Part]) -> Option<Prediction> {
    let mut whole: Option<Prediction> = None;
    let mut total = Span::ZERO;
    for part in parts {
        let transfer = part.found.list.iter().find(|it| it.what == What::Transfer)?;
        let share = |span: Span| span.scaled((part.share * PARTS as f64) as u64, PARTS);
        let terms = transfer.terms.iter().filter(|term| term.cause.is_some()).map(|term| {
            let numbers = format!("{} ({}) of {}", percent(part.share), part.beside, term.numbers);
            Term { numbers, value: Figure::Time(share(term.span())), ..term.clone() }
        });
        let terms: Vec<Term> = terms.collect();
        total += terms.iter().map(Term::span).sum::<Span>();
        let whole =
            whole.get_or_insert_with(|| Prediction { terms: Vec::new(), ..transfer.clone() });
        whole.terms.extend(terms);
    }
    whole.map(|whole| Prediction { value: Figure::Time(total), ..whole })
}

fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

/// A time as people write it.
fn rounded(seconds: f64) -> Span {
    Span::from_nanos((seconds * 1e9) as u64).rounded()
}
