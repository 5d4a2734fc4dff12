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
    /// Fragments asked for again.
    pub requests: u64,
    /// Frames that have come to its message layer.
    pub frames: u64,
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

/// A cluster whose programs do not come on, and cannot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standstill {
    /// It is busy: fragments are refused for want of buffers and sent again.
    Livelock {
        /// For so long, in nanoseconds.
        nanos: u64,
        /// Fragments refused meanwhile.
        refused: u64,
        /// Fragments sent again meanwhile.
        again: u64,
    },
    /// Fragments are asked for again, and no frame comes to any node.
    NothingPasses {
        /// For so long, in nanoseconds.
        nanos: u64,
        /// Fragments asked for again meanwhile.
        requests: u64,
    },
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

    /// Why they stand still, if none of their programs has come on for some seconds while fragments were refused, or while
    /// fragments were asked for and no frame came.
    pub fn standstill(&self) -> Option<Standstill> {
        let still = |it: &Watched| it.latest.at - it.moved.at;
        let nanos = self.nodes.iter().map(still).min().filter(|&nanos| nanos >= STILL)?;
        let sum = |of: fn(&Progress) -> u64| {
            self.nodes.iter().map(|it| of(&it.latest) - of(&it.moved)).sum::<u64>()
        };
        let (refused, again) = (sum(|it| it.refused), sum(|it| it.again));
        let (requests, frames) = (sum(|it| it.requests), sum(|it| it.frames));
        match (refused, requests, frames) {
            (0, 1.., 0) => Some(Standstill::NothingPasses { nanos, requests }),
            (1.., ..) => Some(Standstill::Livelock { nanos, refused, again }),
            _ => None,
        }
    }
}

impl fmt::Display for Standstill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let second = 1_000_000_000;
        match *self {
            Standstill::Livelock { nanos, refused, again } => write!(
                f,
                "livelock: no program has come on for {} s, while {refused} fragments were refused for want of buffers and {again} sent again; give more --buffers and --send-buffers, let less be outstanding, or use --protocol careful",
                nanos / second
            ),
            Standstill::NothingPasses { nanos, requests } => write!(
                f,
                "nothing passes: no frame has come to any node for {} s, while {requests} fragments were asked for again; greetings pass, so give a smaller --frame if long packets are lost, or less of --drop",
                nanos / second
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(node: u16, seconds: u64, done: u64, refused: u64) -> Progress {
        let at = seconds * 1_000_000_000;
        let frames = seconds;
        Progress { node, at, laps: 0, done, refused, again: 2 * refused, requests: 0, frames }
    }

    #[test]
    fn only_refusing_without_coming_on_is_a_livelock() {
        let mut watch = Watch::default();
        assert_eq!(watch.standstill(), None);
        for second in 0..3 {
            watch.note(told(0, second, 7, second));
            watch.note(told(1, second, 9, 10 * second));
            assert_eq!(watch.standstill(), None);
        }
        // Waiting alone is none.
        let mut waits = watch.clone();
        (0..6).for_each(|second| waits.note(told(0, second, 7, 0)));
        waits.ended(1);
        assert_eq!(waits.standstill(), None);
        watch.note(told(0, 4, 7, 4));
        watch.note(told(1, 4, 9, 40));
        let livelock = watch.standstill().unwrap();
        let nanos = 4_000_000_000;
        assert_eq!(livelock, Standstill::Livelock { nanos, refused: 44, again: 88 });
        let text = livelock.to_string();
        assert!(text.contains("livelock: no program has come on for 4 s"), "{text}");
        assert!(text.contains("--send-buffers"), "{text}");
        // One that comes on, and one whose program has ended.
        let mut comes_on = watch.clone();
        comes_on.note(told(1, 5, 10, 50));
        assert_eq!(comes_on.standstill(), None);
        watch.ended(1);
        let nanos = 4_000_000_000;
        let livelock = Standstill::Livelock { nanos, refused: 4, again: 8 };
        assert_eq!(watch.standstill(), Some(livelock));
        assert_eq!(watch.of(0).unwrap().done, 7);
    }

    /// Nothing passes only if no node has had a frame; nodes that ask for nothing just wait.
    #[test]
    fn asking_in_vain_is_told_apart_from_waiting() {
        let told =
            |second, requests, frames| Progress { requests, frames, ..told(0, second, 7, 0) };
        let after = |requests: u64, frames: u64| {
            let mut watch = Watch::default();
            watch.note(told(0, 2, 5));
            watch.note(told(4, 2 + requests, 5 + frames));
            watch.standstill()
        };
        let nanos = 4_000_000_000;
        assert_eq!(after(9, 0), Some(Standstill::NothingPasses { nanos, requests: 9 }));
        assert_eq!((after(0, 0), after(9, 1)), (None, None));
        let said = after(9, 0).unwrap().to_string();
        assert!(
            said.starts_with("nothing passes: no frame has come to any node for 4 s"),
            "{said}"
        );
    }
}
