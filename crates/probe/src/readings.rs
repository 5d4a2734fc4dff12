//! The common part of senders on connections: how much they write, and when they ask the kernel.

use crate::clock;
use trunkline_core::{Rate, Span, Time};

/// Octets that are written at once.
const CHUNK: usize = 128 * 1024;
/// The shortest interval in which the kernel is asked about a connection.
const SHORTEST: Span = Span::from_millis(20);

/// Octets of a write: at a rate, what it carries in some milliseconds.
pub fn chunk(rate: Option<Rate>) -> usize {
    let Some(rate) = rate else { return CHUNK };
    (rate.bytes_in(Span::from_millis(5)) as usize).clamp(1000, CHUNK)
}

/// When the kernel is to be asked about a connection.
#[derive(Debug)]
pub struct Readings {
    began: Time,
    interval: Span,
    next: Time,
}

impl Readings {
    /// Once in each interval from `began` on.
    pub fn new(began: Time, interval: Span) -> Readings {
        Readings { began, interval: interval.max(SHORTEST), next: began }
    }

    /// The time since the beginning, if a reading is due.
    pub fn due(&mut self) -> Option<Span> {
        let now = clock::now();
        if now < self.next {
            return None;
        }
        self.next = now + self.interval;
        Some(now.since(self.began))
    }
}
