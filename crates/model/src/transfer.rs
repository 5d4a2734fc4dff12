//! The time of one system write of a transfer in the long run, and of the whole transfer.

use crate::formula::order::{Round, window_time};
use crate::message::{self, Terms, slowest};
use crate::prediction::{Figure, Term};
use crate::schedule::Blocks;
use crate::serial::held_up;
use crate::share::{Claim, Grant, Limit};
use crate::talk::{Talk, processor_place, request_place, window_place};
use crate::way::{Resource, Stage, burst};
use std::collections::BTreeMap;
use trunkline_core::{Cause, Span};
use trunkline_scenario::Workload;

const LIMITS: &str = "Vande Water 1988 eq. 8 and §3.7.2";
const LINE: &str = "Hawley 1989 §2.1, Vande Water 1988 eq. 2";
const SHARES: &str = "Vande Water 1988 §3.6.2, Hawley 1989 §2.1";

/// What an application writes again and again.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Written {
    pub bytes: u32,
    /// What the receiving application spends on each write.
    pub store: Span,
    /// Whether each write is a message, beyond whose end no read goes.
    pub ends: bool,
}

/// The long run of a flow that writes so many bytes again and again.
#[derive(Debug, Clone)]
pub(crate) struct Cycle {
    /// Time for each write that the window allows: the blocks' answer times / blocks outstanding, and what a single
    /// block outstanding waits for the writer's processor.
    pub window: Span,
    /// The part of it that answers wait for the reader.
    pub reads: Span,
    /// Time for each write that the limit on requests allows.
    pub requests: Span,
    /// What the system calls that read a write are taken to cost.
    pub calls: Span,
    pub claim: Claim,
    /// The largest block.
    pub block: u32,
    /// Blocks of a write.
    pub blocks: u64,
}

/// `turns` says for a line shared in turns how many bytes of one channel it sends at a time, `full` whether blocks wait there.
pub(crate) fn cycle(
    talk: &Talk<'_>,
    written: Written,
    turns: impl Fn(Resource) -> Option<u32>,
    full: impl Fn(Resource) -> bool,
) -> Cycle {
    let requests = talk.speech.requests(written.bytes, &talk.from.0.interface.split);
    let all: Vec<u32> = requests.iter().flatten().copied().collect();
    let calls = calls(talk, written, all.len() as u64);
    let demands = demands(talk, (written, calls), &requests, (turns, full));
    let (window, reads) = window(talk, &all);
    let window = window + reads + alone(talk, written.bytes, &all);
    let requests = request_time(talk, &requests);
    let own = window.max(requests);
    Cycle {
        window,
        reads,
        calls,
        requests,
        claim: Claim { bytes: u64::from(written.bytes), own, demands },
        block: all.iter().copied().max().unwrap_or(0),
        blocks: all.len() as u64,
    }
}

/// Σ answer times / blocks outstanding, more if short blocks wait for long ones, and what answers wait for the reader.
fn window(talk: &Talk<'_>, blocks: &[u32]) -> (Span, Span) {
    let Some(outstanding) = talk.speech.outstanding else { return (Span::ZERO, Span::ZERO) };
    let mut times = Blocks::of(talk);
    let busy = on_slowest_line(talk, blocks);
    let rounds: Vec<Round> = blocks
        .iter()
        .map(|&data| Round { busy: busy(data), answered: times.times(data).answered })
        .collect();
    let reads = blocks.iter().max().map_or(Span::ZERO, |&data| {
        talk.behind_reads(data, u64::from(outstanding), times.times(data).answered)
    });
    let reads = reads.scaled(blocks.len() as u64, 1);
    (window_time(&rounds, outstanding), reads.scaled(1, u64::from(outstanding)))
}

/// What a block takes of the line on the way that is slowest for all of them.
fn on_slowest_line<'a>(talk: &'a Talk<'_>, blocks: &[u32]) -> impl Fn(u32) -> Span + 'a {
    let busy = |stage: &Stage, data| stage.busy(&talk.speech.packets(data));
    let lines = talk.way.stages.iter().filter(|it| matches!(it.resource, Resource::Line(..)));
    let all = |stage: &&Stage| blocks.iter().map(|&data| busy(stage, data)).sum::<Span>();
    let slowest = lines.max_by_key(all);
    move |data| slowest.map_or(Span::ZERO, |stage| busy(stage, data))
}

/// What a write waits for its own processor if one block may be outstanding.
fn alone(talk: &Talk<'_>, write: u32, blocks: &[u32]) -> Span {
    match (talk.speech.outstanding, blocks.first()) {
        (Some(1), Some(&first)) => held_up(talk, write, first, talk.block(first).answered),
        _ => Span::ZERO,
    }
}

/// Σ (request + its blocks until the last is answered + interrupt) / requests that the interface takes.
fn request_time(talk: &Talk<'_>, requests: &[Vec<u32>]) -> Span {
    let limit = talk.from.0.interface.requests.filter(|_| talk.speech.answer.is_some());
    let Some(limit) = limit else { return Span::ZERO };
    let mut blocks = Blocks::answered(talk);
    let each = requests
        .iter()
        .map(|request| blocks.schedule(std::slice::from_ref(request)).answered + talk.done());
    each.sum::<Span>().scaled(1, u64::from(limit.max(1)))
}

/// The system calls that read a write's blocks.
fn calls(talk: &Talk<'_>, written: Written, blocks: u64) -> Span {
    let message = if written.ends { blocks } else { u64::MAX };
    let each = |most: u32| talk.calls(u64::from(most), message);
    talk.speech.outstanding.map_or(Span::ZERO, each).scaled(blocks, 1)
}

fn demands(
    talk: &Talk<'_>,
    (written, calls): (Written, Span),
    requests: &[Vec<u32>],
    (turns, full): (impl Fn(Resource) -> Option<u32>, impl Fn(Resource) -> bool),
) -> BTreeMap<Resource, Span> {
    let mut demands: BTreeMap<Resource, Span> = BTreeMap::new();
    let mut add = |resource, span: Span| {
        if !span.is_zero() {
            *demands.entry(resource).or_default() += span;
        }
    };
    add(Resource::Processor(talk.from.1), talk.writing(written.bytes));
    add(Resource::Processor(talk.to.1), written.store);
    add(Resource::Processor(talk.to.1), calls);
    let mut sizes: BTreeMap<u32, u64> = BTreeMap::new();
    requests.iter().flatten().for_each(|&data| *sizes.entry(data).or_default() += 1);
    for (data, count) in sizes {
        let mut each = talk.demands(data);
        for stage in &talk.way.stages {
            let packets = talk.speech.packets(data);
            // A turn ends with a block behind which none of its channel waits.
            let several = talk.speech.outstanding.is_none_or(|blocks| blocks > 1);
            let waits = several && stage.cut.is_some() && full(stage.resource);
            let in_turns =
                turns(stage.resource).and_then(|piece| stage.busy_in_turns(&packets, piece));
            let busy = in_turns.or_else(|| waits.then(|| stage.busy_in_queue(&packets)));
            busy.map(|span| each.insert(stage.resource, span));
        }
        each.into_iter().for_each(|(resource, span)| add(resource, span.scaled(count, 1)));
    }
    demands
}

/// The terms of the time between two writes.
pub(crate) fn interval_terms(talk: &Talk<'_>, cycle: &Cycle, grant: Grant) -> Terms {
    times_terms(talk, cycle, grant, 1)
}

/// The stage at which a write spends most, or the one that limits, and what it spends there.
pub(crate) fn own_work(talk: &Talk<'_>, cycle: &Cycle, grant: Grant) -> (Resource, Span) {
    let demands = &cycle.claim.demands;
    let (resource, own) = match grant.limit {
        Limit::Stage(resource, _) => (resource, demands.get(&resource).copied()),
        Limit::Own => {
            let longest = demands.iter().max_by_key(|&(_, &span)| span);
            longest.map_or((Resource::Processor(talk.from.1), None), |(&r, &s)| (r, Some(s)))
        }
    };
    (resource, own.unwrap_or_default().min(grant.cycle))
}

/// The terms of `writes` intervals: own work at the slowest stage, then what is waited for.
fn times_terms(talk: &Talk<'_>, cycle: &Cycle, grant: Grant, writes: u64) -> Terms {
    let mut terms = Terms::default();
    let (resource, own) = own_work(talk, cycle, grant);
    let (place, cause) = slowest(talk, resource);
    terms.add(
        ("own work at the slowest stage", "writes × time of the stage for a write", SHARES),
        &place,
        cause,
        own.scaled(writes, 1),
        format!("{writes} × {own} for {} blocks", cycle.blocks),
    );
    let rest = grant.cycle.saturating_sub(own).scaled(writes, 1);
    match grant.limit {
        Limit::Own => terms.add(
            (
                "waiting for answers",
                "writes × (max(Σ answer times / blocks outstanding, request times / requests) − own work)",
                LIMITS,
            ),
            &waiting_place(talk, cycle),
            Cause::Window,
            rest,
            format!("{writes} × (max({}, {}) − {own})", cycle.window, cycle.requests),
        ),
        Limit::Stage(_, flows) => terms.add(
            ("the stage's other users", "writes × (share of the stage − own work)", SHARES),
            &place,
            if cause == Cause::Host { Cause::Host } else { Cause::Queue },
            rest,
            format!("{flows} flows at the stage: {writes} × ({} − {own})", grant.cycle),
        ),
    }
    terms
}

/// User bytes by which the receiver confirms a transfer.
pub(crate) const CONFIRMATION: u32 = 4;

/// A whole transfer's terms.
pub(crate) struct Whole {
    /// User bytes of the transfer.
    pub bytes: u64,
    /// Storing what the last write brought.
    pub store: Span,
    /// The answer at the end, if there is one, with its direction.
    pub answer: Option<u32>,
}

/// A transfer that ends by itself.
pub(crate) fn whole(workload: &Workload) -> Option<Whole> {
    match workload {
        Workload::Bulk { bytes, confirm, .. } => Some(Whole {
            bytes: bytes.bytes(),
            store: Span::ZERO,
            answer: confirm.then_some(CONFIRMATION),
        }),
        Workload::Push { bytes, store, .. } => {
            Some(Whole { bytes: bytes.bytes(), store: *store, answer: Some(CONFIRMATION) })
        }
        _ => None,
    }
}

/// The writes of a transfer of `bytes` beside `others` in step, and whether blocks are left whose answers are not waited for. A
/// last, partial write counts in proportion.
fn writes_terms(
    talk: &Talk<'_>,
    cycle: &Cycle,
    grant: Grant,
    (bytes, others): (u64, u64),
) -> (Terms, bool) {
    let write = cycle.claim.bytes.max(1);
    let (writes, rest) = (bytes / write, bytes % write);
    // With a window of its own, only what has to wait does.
    let own = match grant.limit {
        Limit::Own => Grant { cycle: own_work(talk, cycle, grant).1, ..grant },
        Limit::Stage(..) => grant,
    };
    let mut terms = times_terms(talk, cycle, own, writes);
    let part = own.cycle.scaled(rest, write);
    let (place, cause) = last_place(talk, &terms);
    terms.add(
        ("the last, partial write", "its bytes / write × interval", LIMITS),
        &place,
        cause,
        part,
        format!("{rest} bytes"),
    );
    let open = match grant.limit {
        Limit::Own => {
            let wait = grant.cycle - own.cycle;
            let windows = windows_terms(&mut terms, talk, cycle, (wait, writes, rest));
            in_step_terms(&mut terms, (&place, cause), (own.cycle, others), &windows);
            windows.behind > 0
        }
        Limit::Stage(..) => true,
    };
    (terms, open)
}

/// The blocks, or requests, of a transfer by the windows that they fill.
struct Windows {
    /// Those of a write.
    each: u64,
    /// In whole windows, whose answers are waited for.
    full: u64,
    /// Behind the last whole window.
    behind: u64,
}

/// What a transfer waits for `others` that began with it and have as many blocks under way. In whole windows one's blocks pass
/// while the others wait for answers, but for half of the first ones; behind the last window all have theirs at once.
fn in_step_terms(
    terms: &mut Terms,
    (place, cause): (&str, Cause),
    (own, others): (Span, u64),
    windows: &Windows,
) {
    let halves = 2 * windows.behind + u64::from(windows.full > 0);
    let span = own.scaled(others * halves, 2 * windows.each);
    terms.add(
        (
            "flows in step with it",
            "flows × (blocks behind the last whole window + ½ for those before) × own work of a block",
            SHARES,
        ),
        place,
        if cause == Cause::Host { Cause::Host } else { Cause::Queue },
        span,
        format!("{others} × {halves} / 2 × {own} / {}", windows.each),
    );
}

/// What `writes` and a part of `rest` bytes wait for answers, `wait` each in the long run. What fits into the last window
/// does not wait.
fn windows_terms(
    terms: &mut Terms,
    talk: &Talk<'_>,
    cycle: &Cycle,
    (wait, writes, rest): (Span, u64, u64),
) -> Windows {
    let split = &talk.from.0.interface.split;
    let requests =
        |bytes: u64| talk.speech.requests(u32::try_from(bytes).unwrap_or(u32::MAX), split);
    let by_window = cycle.window >= cycle.requests;
    let units = |bytes| match (bytes, by_window) {
        (0, _) => 0,
        (_, true) => requests(bytes).iter().map(Vec::len).sum::<usize>() as u64,
        (_, false) => requests(bytes).len() as u64,
    };
    let (most, unit) = match by_window {
        true => (talk.speech.outstanding, "blocks"),
        false => (talk.from.0.interface.requests, "requests"),
    };
    let (most, each) = (u64::from(most.unwrap_or(1).max(1)), units(cycle.claim.bytes).max(1));
    let all = writes * each + units(rest);
    let full = all / most * most;
    terms.add(
        (
            "waiting for answers",
            "what fills whole windows × (interval − own work) / that of a write",
            LIMITS,
        ),
        &waiting_place(talk, cycle),
        Cause::Window,
        wait.scaled(full, each),
        format!("{full} of {all} {unit}, {most} at once × {wait} / {each}"),
    );
    Windows { each, full, behind: all - full }
}

/// A transfer of whole and partial writes beside `others` in step, and the answer at its end.
pub(crate) fn whole_terms(
    (there, back): (&Talk<'_>, &Talk<'_>),
    cycle: &Cycle,
    grant: Grant,
    (whole, others): (&Whole, u64),
) -> Terms {
    let (mut terms, open) = writes_terms(there, cycle, grant, (whole.bytes, others));
    let (place, _) = last_place(there, &terms);
    // Of a window that is waited for the last block has come with its answer.
    if open {
        let (full, _) = own_work(there, cycle, grant);
        let counted = if whole.answer.is_some() { beside(there, 0, full) } else { Span::ZERO };
        filling(
            &mut terms,
            &place,
            beside(there, cycle.block, full).saturating_sub(counted),
            cycle.block,
        );
    }
    // If storing is what limits, the last write's is in the intervals.
    let storing =
        matches!(grant.limit, Limit::Stage(full, _) if full == Resource::Processor(there.to.1));
    let store = if storing { Span::ZERO } else { whole.store };
    terms.add(
        ("storing the last write", "store", "Vande Water 1988 §3.7.1"),
        &processor_place(there.to.0),
        Cause::Host,
        store,
        store.to_string(),
    );
    if let Some(answer) = whole.answer {
        let confirmed = message::round_trip(there, back, (0, answer), false);
        terms.0.extend(
            confirmed
                .0
                .into_iter()
                .map(|term| Term { name: format!("confirmation: {}", term.name), ..term }),
        );
    }
    terms
}

/// What the first block takes to the slowest stage, and the last one from there.
pub(crate) fn filling(terms: &mut Terms, place: &str, span: Span, block: u32) {
    terms.add(
        (
            "a block before and behind the slowest stage",
            "Σ D(p, h) − D(p, h−1) of the other stages",
            LINE,
        ),
        place,
        Cause::Transmit,
        span,
        format!("{block} bytes"),
    );
}

/// What a block's last packet spends on the way at other stages than the one that is full: the first block of a transfer
/// has to come there, the last one goes on from there, and neither passes while the stage works.
pub(crate) fn beside(talk: &Talk<'_>, block: u32, full: Resource) -> Span {
    let spent = talk.way.spent(&burst(&talk.speech.packets(block)));
    let stages = talk.way.stages.iter().zip(spent);
    stages.filter(|(stage, _)| stage.resource != full).map(|(_, span)| span).sum()
}

fn last_place(talk: &Talk<'_>, terms: &Terms) -> (String, Cause) {
    let last = terms.0.last().map(|term| (term.place.clone(), term.cause.unwrap_or(Cause::Host)));
    last.unwrap_or_else(|| (processor_place(talk.from.0), Cause::Host))
}

/// The place at which a flow waits that its own window or requests limit.
fn waiting_place(talk: &Talk<'_>, cycle: &Cycle) -> String {
    let by_window = cycle.window >= cycle.requests;
    if by_window { window_place(talk.from.0) } else { request_place(talk.from.0) }
}

/// The limits on a flow's throughput, for information: window, requests and each stage.
pub(crate) fn limit_terms(talk: &Talk<'_>, cycle: &Cycle) -> Vec<Term> {
    let rate = |span| crate::Throughput::over(cycle.claim.bytes, span);
    let bytes = cycle.claim.bytes;
    let term = |name: &str, place: String, formula, span: Span, source| Term {
        name: name.into(),
        place,
        cause: None,
        formula,
        numbers: format!("{bytes} bytes / {span}"),
        value: Figure::Rate(rate(span)),
        source,
    };
    let mut terms = Vec::new();
    if !cycle.window.is_zero() {
        let formula = "write / (Σ answer times / blocks outstanding)";
        terms.push(term("window", window_place(talk.from.0), formula, cycle.window, LIMITS));
    }
    if !cycle.requests.is_zero() {
        let formula = "write / (Σ request times / requests outstanding)";
        terms.push(term("requests", request_place(talk.from.0), formula, cycle.requests, LIMITS));
    }
    for (&resource, &span) in &cycle.claim.demands {
        let (place, _) = slowest(talk, resource);
        let name = match resource {
            Resource::Processor(_) => "processor",
            Resource::Board(_) | Resource::BoardIn(_) => "interface board",
            Resource::Line(..) => "line",
            Resource::Trunk(..) => "trunk board",
            Resource::Backplane(_) => "backplane",
            Resource::Medium(_) => "medium",
            Resource::Port(..) => "port of a fabric",
        };
        terms.push(term(name, place, "write / time of the stage for a write", span, SHARES));
    }
    terms
}
