//! What is recorded of a link, or of a station of a medium, beyond its counts.

use trunkline_core::{Span, Time};
use trunkline_measure::Times;

/// Times in queue. Packets that did not wait are only counted: most links of a large network have no others, and then
/// there is nothing to be kept, or looked for, elsewhere.
#[derive(Debug, Clone, Default)]
pub(super) struct Queueing {
    recorded: bool,
    at_once: u64,
    waited: Option<Box<Times>>,
}

impl Queueing {
    /// From now on records.
    pub(super) fn begin(&mut self) {
        self.recorded = true;
    }

    /// Whether anything is recorded.
    #[inline(always)]
    pub(super) fn is_recorded(&self) -> bool {
        self.recorded
    }

    /// Records a packet's nanoseconds in queue.
    #[cold]
    #[inline(never)]
    pub(super) fn record(&mut self, queue: u64) {
        match queue {
            0 => self.at_once += 1,
            _ => {
                let waited = self.waited.get_or_insert_with(|| Box::new(Times::small()));
                waited.record(Span::from_nanos(queue));
            }
        }
    }

    /// All times, if they were recorded.
    pub(super) fn times(self) -> Option<Times> {
        let mut times = self.waited.map_or_else(Times::small, |waited| *waited);
        times.record_many(Span::ZERO, self.at_once);
        self.recorded.then_some(times)
    }
}

/// Bytes waiting at regular instants.
#[derive(Debug)]
pub(super) struct Samples {
    every: Span,
    next: Time,
    taken: Vec<(Time, u64)>,
}

impl Samples {
    /// To be taken at `from` and then regularly, at least 1 ns apart.
    pub(super) fn new(from: Time, every: Span) -> Samples {
        Samples { every: every.max(Span::from_nanos(1)), next: from, taken: Vec::new() }
    }

    /// Takes those due before `now`; `backlog` tells what waits at an instant.
    pub(super) fn take(&mut self, now: Time, mut backlog: impl FnMut(Time) -> u64) {
        while self.next < now {
            self.taken.push((self.next, backlog(self.next)));
            self.next += self.every;
        }
    }

    /// Those taken.
    pub(super) fn taken(&self) -> &[(Time, u64)] {
        &self.taken
    }
}
