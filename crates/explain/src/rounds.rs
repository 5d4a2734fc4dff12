//! In how many rounds a message goes, and why.

use crate::relax::has_messages;
use crate::waterfall::Bar;
use crate::windows::window;
use serde::Serialize;
use trunkline_core::{Cause, Span};
use trunkline_measure::TrafficRun;
use trunkline_scenario::{Scenario, Split, Workload};

/// How a system write crosses the network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Rounds {
    /// User bytes of the write.
    pub bytes: u32,
    /// The bytes of each round: what the sender could send before it had to wait for an answer.
    pub rounds: Vec<u32>,
    /// The requests into which the sending host cuts the write.
    pub requests: Vec<u32>,
    /// How many of them its interface takes before the first is answered for.
    pub outstanding: Option<u32>,
    /// User bytes of the sender's window.
    pub window: Option<u32>,
    /// Whether another write follows at once, so that this one's last answer is waited for too.
    pub transfer: bool,
    /// The queue in which each round waits, if that is much of a message's time.
    pub queue: Option<Queued>,
}

/// A wait in a queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Queued {
    /// The queue's link.
    pub place: String,
    /// Of one round.
    pub span: Span,
}

impl Rounds {
    /// Whether it is several rounds because one request has to be answered for before the next.
    pub fn by_requests(&self) -> bool {
        self.outstanding.is_some() && self.requests.len() > 1
    }

    /// Whether it is several rounds because a request is larger than the window.
    pub fn by_window(&self) -> bool {
        self.requests.iter().any(|&bytes| self.window.is_some_and(|window| bytes > window))
    }
}

/// A queue counts if all rounds together wait in it for this share of the delay.
const MUCH: f64 = 0.3;

/// The rounds of the writes with which `subject` sends a message (or fills a transfer) of `size`.
pub(crate) fn rounds(
    scenario: &Scenario,
    subject: usize,
    run: &TrafficRun,
    size: u64,
    waterfall: &[Bar],
) -> Option<Rounds> {
    let traffic = &scenario.traffic[subject];
    let bytes = match &traffic.workload {
        Workload::Bulk { write, .. } | Workload::Push { write, .. } => *write,
        Workload::Paced { .. } | Workload::Greedy { .. } => return None,
        _ => u32::try_from(size).ok()?,
    };
    let rounds = run.rounds.get(&bytes).filter(|rounds| !rounds.is_empty())?.clone();
    let sender = scenario.hosts.iter().find(|host| host.name == traffic.source(0))?;
    let queue = queued(waterfall, rounds.len());
    let rounds = Rounds {
        bytes,
        rounds,
        requests: requests(&sender.interface.split, bytes),
        outstanding: sender.interface.requests,
        window: window(&traffic.transport),
        transfer: !has_messages(&traffic.workload),
        queue,
    };
    // A transfer that is held up by neither goes on before its first round is answered for.
    let stops = !rounds.transfer || rounds.by_window() || rounds.by_requests();
    stops.then_some(rounds)
}

/// The longest wait in a queue, which a message's record holds once, for the round that completes it: the others
/// appear there as waiting for the window or for earlier requests.
fn queued(waterfall: &[Bar], rounds: usize) -> Option<Queued> {
    let queues = waterfall.iter().filter(|bar| bar.cause == Cause::Queue);
    let longest = queues.max_by_key(|bar| bar.span)?;
    let much = longest.share * rounds as f64 > MUCH;
    much.then(|| Queued { place: longest.place.clone(), span: longest.span })
}

/// The requests into which a write of `bytes` is cut: the first rule whose `below` exceeds it holds.
fn requests(split: &[Split], bytes: u32) -> Vec<u32> {
    let rule = split.iter().find(|rule| rule.below.is_none_or(|below| bytes < below));
    let piece = rule.map_or(bytes, |rule| rule.piece).max(1);
    let count = bytes.div_ceil(piece).max(1);
    (0..count).map(|index| piece.min(bytes - index * piece)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_are_cut_as_the_interface_says() {
        let v9 = [Split { below: Some(512), piece: 64 }, Split { below: None, piece: 1024 }];
        assert_eq!(requests(&v9, 65), [64, 1]);
        assert_eq!(requests(&v9, 511).len(), 8);
        assert_eq!(requests(&v9, 768), [768]);
        assert_eq!(requests(&v9, 1025), [1024, 1]);
        assert_eq!(requests(&[], 9000), [9000]);
        assert_eq!(requests(&[], 0), [0]);
    }
}
