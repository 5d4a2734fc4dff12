//! How far nodes have come while they run, and whether their cluster comes on.

use serde::{Deserialize, Serialize};
use std::fmt;

/// How far a node has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Progress {
    /// The node.
    pub node: u16,
    /// Nanoseconds since its program began.
    pub at: u64,
    /// Laps that have ended.
    pub laps: u64,
    /// Fragments that its program has sent and received.
    pub done: u64,
    /// Fragments refused for want of buffers.
    pub refused: u64,
    /// Fragments sent again.
    pub again: u64,
}

/// What the nodes of a cluster, or some of them, have told of their progress.
#[derive(Debug, Clone, Default)]
pub struct Watch {
    nodes: Vec<Watched>,
}

/// A node whose program has not ended.
#[derive(Debug, Clone, Copy)]
struct Watched {
    /// What it told last.
    latest: Progress,
    /// What it told when its program had last come on.
    moved: Progress,
}

/// A cluster that is busy, and whose programs do not come on: fragments are refused for want of buffers and sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Livelock {
    /// For so long, in nanoseconds.
    pub nanos: u64,
    /// Fragments refused meanwhile.
    pub refused: u64,
    /// Fragments sent again meanwhile.
    pub again: u64,
}

/// Programs that have not come on for so long, in nanoseconds, stand still (a choice: three times the longest time-out that
/// a node has if nothing else is said).
const STILL: u64 = 3_000_000_000;

impl Watch {
    /// A node has told how far it has come.
    pub fn note(&mut self, told: Progress) {
        match self.nodes.iter_mut().find(|it| it.latest.node == told.node) {
            Some(known) => {
                known.latest = told;
                if told.done != known.moved.done {
                    known.moved = told;
                }
            }
            None => self.nodes.push(Watched { latest: told, moved: told }),
        }
    }

    /// A node's program has ended.
    pub fn ended(&mut self, node: u16) {
        self.nodes.retain(|it| it.latest.node != node);
    }

    /// What a node told last, if its program has not ended.
    pub fn of(&self, node: u16) -> Option<Progress> {
        self.nodes.iter().map(|it| it.latest).find(|it| it.node == node)
    }

    /// The livelock that they are in, if none of their programs has come on for some seconds while fragments were refused.
    pub fn livelock(&self) -> Option<Livelock> {
        let still = |it: &Watched| it.latest.at - it.moved.at;
        let nanos = self.nodes.iter().map(still).min().filter(|&nanos| nanos >= STILL)?;
        let sum = |of: fn(&Progress) -> u64| {
            self.nodes.iter().map(|it| of(&it.latest) - of(&it.moved)).sum::<u64>()
        };
        let (refused, again) = (sum(|it| it.refused), sum(|it| it.again));
        (refused > 0).then_some(Livelock { nanos, refused, again })
    }
}

impl fmt::Display for Livelock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Livelock { nanos, refused, again } = *self;
        let seconds = nanos / 1_000_000_000;
        write!(
            f,
            "livelock: no program has come on for {seconds} s, while {refused} fragments were refused for want of buffers and {again} sent again; give more --buffers, let less be outstanding, or use --protocol careful"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(node: u16, seconds: u64, done: u64, refused: u64) -> Progress {
        let at = seconds * 1_000_000_000;
        Progress { node, at, laps: 0, done, refused, again: 2 * refused }
    }

    #[test]
    fn only_refusing_without_coming_on_is_a_livelock() {
        let mut watch = Watch::default();
        assert_eq!(watch.livelock(), None);
        for second in 0..3 {
            watch.note(told(0, second, 7, second));
            watch.note(told(1, second, 9, 10 * second));
            assert_eq!(watch.livelock(), None);
        }
        // Waiting alone is none.
        let mut waits = watch.clone();
        (0..6).for_each(|second| waits.note(told(0, second, 7, 0)));
        waits.ended(1);
        assert_eq!(waits.livelock(), None);
        watch.note(told(0, 4, 7, 4));
        watch.note(told(1, 4, 9, 40));
        let livelock = watch.livelock().unwrap();
        assert_eq!((livelock.nanos, livelock.refused, livelock.again), (4_000_000_000, 44, 88));
        assert!(livelock.to_string().contains("livelock: no program has come on for 4 s"));
        // One that comes on, and one whose program has ended.
        let mut comes_on = watch.clone();
        comes_on.note(told(1, 5, 10, 50));
        assert_eq!(comes_on.livelock(), None);
        watch.ended(1);
        assert_eq!(watch.livelock().unwrap().refused, 4);
        assert_eq!(watch.of(0).unwrap().done, 7);
    }
}
