//! What the law makes of round trips: the queue, what is none, and how far jitter is to be believed.

use super::{Adaptive, MOST_RATE};
use trunkline_core::Span;

/// Usual turns of the round trip that are no queue yet, that a stretch lasts, and that its ends may be off by (choices: a jitter that is
/// equally likely everywhere is some ten of them wide).
const TURNS_OF_QUEUE: u64 = 10;
const TURNS_OF_STRETCH: u64 = 40;
const TURNS_OF_ENDS: u64 = 3;
/// How many times as long as packets come late a stretch lasts (a choice).
const LATE_OF_STRETCH: u64 = 3;
/// How many times what packets are late by in the mean is no queue, and what part of the round trip at most (choices: round trips are
/// measured by packets that overtook others, so that the shortest is shorter than most).
const USUAL_OF_QUEUE: u64 = 2;
const MOST_OF_QUEUE: u64 = 4;

impl Adaptive {
    /// How much longer the round trip is than the shortest.
    pub(super) fn queue(&self) -> Span {
        match (self.latest, self.shortest.get()) {
            (Some(latest), Some(shortest)) => latest.saturating_sub(shortest),
            _ => Span::ZERO,
        }
    }

    pub(super) fn base(&self) -> Span {
        self.shortest.get().unwrap_or(Span::from_millis(10))
    }

    /// What round trips turn by without a queue; none if that is less than a packet's time or a hundredth of the round trip, as chance
    /// makes of queues (a choice).
    fn jitter(&self) -> Span {
        let packet = Span::from_nanos(self.packet * 1_000_000_000 / self.highest.max(1));
        let least = self.base().scaled(1, 100).max(packet);
        Some(self.jitter.turn()).filter(|turn| *turn >= least).unwrap_or(Span::ZERO)
    }

    /// How long a stretch lasts at least: a third of the round trip, and for so long that jitter makes little of its rate and most of its
    /// packets are known to have come or not, but no more than two round trips.
    pub(super) fn stretch(&self) -> Span {
        let of_jitter = self.jitter().scaled(TURNS_OF_STRETCH, 1);
        let of_order = self.order.late().scaled(LATE_OF_STRETCH, 1);
        let longest = self.base().scaled(2, 1);
        self.base().scaled(1, 3).max(of_jitter.max(of_order).min(longest))
    }

    /// The rate of what came in so much time, if its last packet may have come late by jitter and its first early: no more than was sent
    /// for that, since what queues would have to hold then is seen in round trips.
    pub(super) fn fairly(&self, counted: u64, span: Span) -> u64 {
        let of_jitter = self.jitter().scaled(TURNS_OF_ENDS, 1).max(self.order.usual());
        let late = of_jitter.min(span.scaled(1, 3));
        let on_time = (span - late).as_nanos().max(1);
        let fair = u128::from(counted) * u128::from(span.as_nanos().max(1)) / u128::from(on_time);
        counted.max(u64::try_from(fair).unwrap_or(MOST_RATE).min(self.sent))
    }

    /// A queue that is none: a sixteenth of the round trip, the time of four packets at the highest rate, or what jitter makes of the
    /// round trip, as it turns or as packets come late.
    pub(super) fn tolerated(&self) -> Span {
        let packets = 4 * self.packet * 1_000_000_000 / self.highest.max(1);
        let least = self.base().scaled(1, 16).max(Span::from_nanos(packets));
        let of_order = self.order.usual().scaled(USUAL_OF_QUEUE, 1);
        let of_order = of_order.min(self.base().scaled(1, MOST_OF_QUEUE));
        least.max(Span::from_millis(1)).max(self.jitter().scaled(TURNS_OF_QUEUE, 1)).max(of_order)
    }

    /// The queue that a new offer will meet. The one that is seen is largely from before the offer in force, at which packets come for
    /// a round trip and the third that is looked at: it grows or goes by what that is above or below the rate. Half of that time
    /// is counted (a choice).
    fn coming(&self, queue: Span) -> Span {
        let time = u128::from(self.base().scaled(2, 3).as_nanos());
        let part = |rate: u64| (time * u128::from(rate) / u128::from(self.rate.max(1))) as u64;
        let grows = Span::from_nanos(part(self.sent.saturating_sub(self.rate)));
        let goes = Span::from_nanos(part(self.rate.saturating_sub(self.sent)));
        (queue + grows).saturating_sub(goes)
    }

    /// The rate at which the queue goes within two round trips.
    pub(super) fn drained(&self, queue: Span) -> u64 {
        let over = self.coming(queue).saturating_sub(self.tolerated().scaled(1, 2)).as_nanos();
        let part = (over / (self.base().as_nanos() / 50).max(1)).min(40);
        self.rate * (100 - part) / 100
    }
}
