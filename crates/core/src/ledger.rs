//! The delay ledger: everything a packet waits for, booked under one cause.

use crate::Span;
use serde::{Deserialize, Serialize};

/// A cause for which a packet waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[repr(u8)]
pub enum Cause {
    /// A host's processor or interface.
    Host,
    /// The sender may not send: the transport's window is closed.
    Window,
    /// Other packets ahead, in a queue or on the line, and the wait for a slot.
    Queue,
    /// The packet's own bits going onto the line, framing included.
    Transmit,
    /// Distance, and whatever the line adds on the way (jitter).
    Propagate,
    /// Waiting for something lost to be sent again.
    Recover,
    /// The lateness of a real-time run against its own schedule.
    Emulator,
}

impl Cause {
    /// Every cause, in booking order.
    pub const ALL: [Cause; 7] = [
        Cause::Host,
        Cause::Window,
        Cause::Queue,
        Cause::Transmit,
        Cause::Propagate,
        Cause::Recover,
        Cause::Emulator,
    ];
}

/// The delay of one packet, split by [`Cause`]. The entries sum exactly to the delay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ledger([Span; Cause::ALL.len()]);

impl Ledger {
    /// Books `span` under `cause`.
    pub fn book(&mut self, cause: Cause, span: Span) {
        self.0[cause as usize] += span;
    }
    /// The time booked under `cause`.
    pub fn get(&self, cause: Cause) -> Span {
        self.0[cause as usize]
    }
    /// The whole delay.
    pub fn total(&self) -> Span {
        self.0.iter().copied().sum()
    }
    /// Each cause with its span.
    pub fn entries(&self) -> impl Iterator<Item = (Cause, Span)> + '_ {
        Cause::ALL.into_iter().map(|cause| (cause, self.get(cause)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_sum_to_the_total() {
        let mut ledger = Ledger::default();
        for (index, cause) in Cause::ALL.into_iter().enumerate() {
            assert_eq!(cause as usize, index);
            ledger.book(cause, Span::from_nanos(1 << index));
        }
        ledger.book(Cause::Queue, Span::from_nanos(1000));
        assert_eq!(ledger.total(), Span::from_nanos(127 + 1000));
        assert_eq!(ledger.entries().map(|(_, span)| span).sum::<Span>(), ledger.total());
    }
}
