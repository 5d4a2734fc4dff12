//! How an end sends, and the law that it lets the other send by.

use super::law::{Adaptive, Fixed, Law};
use super::pace::{Spacing, Start};
use super::wire::{Burst, Dialect, Terms};
use trunkline_core::Span;

/// Packets that go at once before anything is known of the path (ten of TCP's, RFC 6928, and a few that tell its rate).
pub(super) const TRAIN: u16 = 16;

/// How an end sends, and by what law it lets the other send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Habits {
    /// The layout of its packets.
    pub dialect: Dialect,
    /// The law for the rate.
    pub rate: RateLaw,
    /// The fastest that it sends, whatever it is offered; an interval of 0 is no limit.
    pub cap: Burst,
}

/// A law for the rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RateLaw {
    /// The burst that was agreed on, sent as RFC 998 has it.
    Fixed,
    /// The receiver measures the path, and packets are evenly spaced.
    Adaptive,
}

impl RateLaw {
    /// Whether an end makes use of more than RFC 998 and RFC 1030 say. One with their fixed burst is as they measured it.
    pub(super) fn is_ours(self) -> bool {
        self == RateLaw::Adaptive
    }

    pub(super) fn law(self, terms: &Terms, dialect: Dialect) -> Box<dyn Law> {
        match self {
            RateLaw::Fixed => Box::new(Fixed(terms.burst)),
            RateLaw::Adaptive => Box::new(Adaptive::new(terms, dialect)),
        }
    }

    /// How a sender begins if the first round trip took so long.
    pub(super) fn start(self, terms: &Terms, round: Option<Span>) -> Start {
        match self {
            RateLaw::Fixed => Start { spacing: Spacing::Bursts, burst: terms.burst, train: 0 },
            RateLaw::Adaptive => {
                Start { spacing: Spacing::Even, burst: first_burst(round), train: TRAIN }
            }
        }
    }
}

/// The burst of an end that knows nothing of the path but how long the first round trip took: a train in each.
pub(super) fn first_burst(round: Option<Span>) -> Burst {
    let round = round.unwrap_or(Span::from_millis(200)).as_nanos() / 1_000_000;
    Burst { size: TRAIN, interval: round.clamp(10, 2000) as u16 }
}
