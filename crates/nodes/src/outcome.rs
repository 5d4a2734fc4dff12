//! What a node says when its program has ended.

use serde::{Deserialize, Serialize};
use trunkline_cluster::trace::Record;
use trunkline_core::Span;

/// What a node's run came to. Times are in nanoseconds.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Outcome {
    /// The node.
    pub node: u16,
    /// Its laps, and the user bytes of each.
    pub laps: Vec<(u64, u64)>,
    /// What is wrong with what it computed or received.
    pub wrong: Option<String>,
    /// Why its message layer could not go on.
    pub failure: Option<String>,
    /// Whether that is another node's failure, of which it was told.
    #[serde(default)]
    pub told: bool,
    /// Datagrams sent.
    pub sent: u64,
    /// Datagrams received.
    pub received: u64,
    /// Datagrams dropped on arrival because it was asked to.
    pub dropped: u64,
    /// Datagrams that the kernel dropped for want of memory, if it tells.
    pub kernel_dropped: Option<u64>,
    /// Fragments refused for want of buffers.
    pub refused: u64,
    /// Fragments asked for again.
    pub requests: u64,
    /// Fragments sent again.
    pub again: u64,
    /// Receive buffers in use at most.
    pub buffers: u32,
    /// Bytes copied out of receive buffers at most at once.
    pub copied: u64,
    /// Bytes of state about peers.
    pub state: u64,
    /// When its own time began, in nanoseconds of the host's monotonic clock, if its acts were recorded.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub began: u64,
    /// What its program did, if that was asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub records: Vec<Record>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The records of the nodes of one host by their numbers, on one time: that of the first to begin. A node that has no
/// outcome, or recorded nothing, has none.
pub fn together(outcomes: &[Outcome]) -> Vec<Vec<Record>> {
    let count = outcomes.iter().map(|it| usize::from(it.node) + 1).max().unwrap_or(0);
    let mut nodes = vec![Vec::new(); count];
    let recorded = || outcomes.iter().filter(|it| it.began > 0);
    let first = recorded().map(|it| it.began).min().unwrap_or(0);
    for it in recorded() {
        let later = Span::from_nanos(it.began - first);
        let shifted = it.records.iter().map(|record| Record { at: record.at + later, ..*record });
        nodes[usize::from(it.node)] = shifted.collect();
    }
    nodes
}

#[cfg(test)]
mod tests {
    use super::*;
    use trunkline_cluster::trace::Act;
    use trunkline_core::Time;

    #[test]
    fn records_of_nodes_that_began_at_different_times_are_laid_on_one() {
        let node = |node, began, at| {
            let records = vec![Record { at: Time::ZERO + Span::from_nanos(at), act: Act::Begin }];
            Outcome { node, began, records, ..Outcome::default() }
        };
        let nodes = together(&[node(1, 5_000, 10), node(0, 5_300, 20)]);
        let times: Vec<u64> = nodes.iter().map(|it| it[0].at.as_nanos()).collect();
        assert_eq!(times, [320, 10]);
        // Node 0 has no outcome, and node 1 has recorded nothing: their places are kept, and the time is not theirs.
        let nodes = together(&[node(2, 5_000, 10), Outcome { node: 1, ..Outcome::default() }]);
        assert!(nodes[0].is_empty() && nodes[1].is_empty());
        assert_eq!(nodes[2][0].at.as_nanos(), 10);
        assert!(together(&[]).is_empty());
    }
}
