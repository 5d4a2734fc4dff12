//! The part of a scenario that one traffic's explanation needs: the traffic and those that overlap
//! with it, as short as a steady figure allows.

use crate::relax;
use trunkline_core::{Size, Span};
use trunkline_scenario::{Scenario, Start, Workload};

/// Messages of a size where nothing happens by chance.
const STEADY: u32 = 6;
/// Messages of a size where other traffic is in the way.
const VARIED: u32 = 40;
/// Messages of a size where something rare happens now and then: a packet is lost, other work gets in the way.
const RARE: u32 = 150;
/// Bytes of a transfer: nine of the largest windows of URP (7 blocks of 4096).
const TRANSFER: Size = Size::from_bytes(256_000);
/// Transfers.
const TRANSFERS: u32 = 3;
/// Of a timed test, for each size.
const TIMED: Span = Span::from_secs(5);
/// How much other traffic has to have delivered before a traffic starts that waits for it: nine of the largest
/// windows too, so that queues stand.
const LEAD: Size = TRANSFER;
/// A transfer that outlasts every run.
const ENDLESS: Size = Size::from_bytes(1 << 50);

/// The traffic of index `subject` with those that overlap with it, and its new index.
pub(crate) fn focus(scenario: &Scenario, subject: usize) -> (Scenario, usize) {
    let rivals = rivals(scenario, subject);
    let others = (0..scenario.traffic.len()).filter(|at| *at != subject && !rivals.contains(at));
    let others: Vec<usize> = others.collect();
    let before = others.iter().filter(|&&other| other < subject).count();
    let mut focused = scenario.clone();
    relax::remove(&mut focused, &others);
    (focused, subject - before)
}

/// The traffics that may be under way together with `subject`.
pub(crate) fn rivals(scenario: &Scenario, subject: usize) -> Vec<usize> {
    let apart =
        |other: usize| follows(scenario, subject, other) || follows(scenario, other, subject);
    (0..scenario.traffic.len()).filter(|&other| other != subject && !apart(other)).collect()
}

/// Does `later` start only when `earlier` has ended?
fn follows(scenario: &Scenario, later: usize, earlier: usize) -> bool {
    let mut at = later;
    // No chain is longer than there are traffics; one that bites its tail never starts.
    for _ in 0..scenario.traffic.len() {
        let Start::AfterEnd(name) = &scenario.traffic[at].start else { return false };
        let Some(next) = index_of(scenario, name) else { return false };
        if next == earlier {
            return true;
        }
        at = next;
    }
    false
}

fn index_of(scenario: &Scenario, name: &str) -> Option<usize> {
    scenario.traffic.iter().position(|traffic| traffic.name == name)
}

/// The traffic whose end ends the run that explains `subject`: itself, or the one that it accompanies.
pub(crate) fn leader(scenario: &Scenario, subject: usize) -> usize {
    let mut at = subject;
    for _ in 0..scenario.traffic.len() {
        let until = scenario.traffic[at].until.as_deref();
        match until.and_then(|name| index_of(scenario, name)) {
            Some(next) => at = next,
            None => return at,
        }
    }
    at
}

/// The scenario cut down to what a steady figure of `subject` needs: everything ends with it.
pub(crate) fn shorten(scenario: &Scenario, subject: usize) -> Scenario {
    let mut short = scenario.clone();
    let leader = leader(scenario, subject);
    let name = scenario.traffic[leader].name.clone();
    let messages = messages(scenario);
    for (at, traffic) in short.traffic.iter_mut().enumerate() {
        if let Start::AfterBytes(_, bytes) = &mut traffic.start {
            *bytes = (*bytes).min(LEAD);
        }
        if at == leader {
            cut(&mut traffic.workload, messages);
        } else {
            traffic.until.get_or_insert_with(|| name.clone());
            keep_up(&mut traffic.workload);
        }
    }
    short
}

/// How many messages of a size a steady mean takes.
fn messages(scenario: &Scenario) -> u32 {
    let mut links = scenario.links.iter().flat_map(|wire| [&wire.forward, &wire.backward]);
    let mut disturbed = scenario.hosts.iter().map(|host| host.processor.disturbance.is_some());
    if links.any(|link| link.impairments != Default::default() || !link.schedule.steps.is_empty()) {
        RARE
    } else if scenario.traffic.len() > 1 {
        VARIED
    } else if disturbed.any(|it| it) {
        RARE
    } else {
        STEADY
    }
}

/// Background load does not pause: the ends of long transfers are rare, and a short run that meets one would see
/// little else.
fn keep_up(workload: &mut Workload) {
    if let Workload::Bulk { bytes, .. } | Workload::Push { bytes, .. } = workload
        && *bytes >= TRANSFER
    {
        *bytes = ENDLESS;
    }
}

fn cut(workload: &mut Workload, messages: u32) {
    match workload {
        Workload::Interactive { repeat, .. } => *repeat = (*repeat).min(messages),
        Workload::TimedEcho { duration, .. }
        | Workload::TimedTransfer { duration, .. }
        | Workload::Greedy { duration, .. }
        | Workload::Paced { duration, .. } => *duration = (*duration).min(TIMED),
        Workload::Bulk { bytes, repeat, .. } | Workload::Push { bytes, repeat, .. } => {
            *bytes = (*bytes).min(TRANSFER);
            *repeat = (*repeat).min(TRANSFERS);
        }
    }
}

/// What was made shorter, for a reader of the figures; `None` where nothing was.
pub(crate) fn difference(long: &Workload, short: &Workload) -> Option<String> {
    let text = match (long, short) {
        (Workload::Interactive { repeat: was, .. }, Workload::Interactive { repeat: is, .. }) => {
            format!("{is} messages of each size instead of {was}")
        }
        (Workload::TimedEcho { duration: was, .. }, Workload::TimedEcho { duration: is, .. })
        | (
            Workload::TimedTransfer { duration: was, .. },
            Workload::TimedTransfer { duration: is, .. },
        )
        | (Workload::Greedy { duration: was, .. }, Workload::Greedy { duration: is, .. })
        | (Workload::Paced { duration: was, .. }, Workload::Paced { duration: is, .. }) => {
            format!("{is} of each size instead of {was}")
        }
        (
            Workload::Bulk { bytes: was, repeat: times, .. }
            | Workload::Push { bytes: was, repeat: times, .. },
            Workload::Bulk { bytes: is, repeat, .. } | Workload::Push { bytes: is, repeat, .. },
        ) => format!(
            "{repeat} transfers of {} bytes instead of {times} of {}",
            is.bytes(),
            was.bytes()
        ),
        _ => return None,
    };
    (long != short).then_some(text)
}
