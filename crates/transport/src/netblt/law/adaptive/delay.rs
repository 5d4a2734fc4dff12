//! What the law makes of round trips: the queue, what is none, and how far jitter is to be believed.

use super::{Adaptive, MOST_RATE};
use trunkline_core::Span;

/// Usual turns of the round trip that are no queue yet, that a stretch lasts, and that its ends may be off by (choices).
const TURNS_OF_QUEUE: u64 = 5;
const TURNS_OF_STRETCH: u64 = 60;
const TURNS_OF_ENDS: u64 = 2;
/// Round trips that a stretch lasts at most for the sake of jitter, and of order (choices).
const ROUNDS_FOR_JITTER: u64 = 3;
const ROUNDS_FOR_ORDER: u64 = 2;
/// How many times as long as packets come late a stretch lasts (a choice).
const LATE_OF_STRETCH: u64 = 3;
/// How many times what packets are late by in the mean is no queue, and what part of the round trip at most (choices: round trips are
/// measured by packets that overtook others, so that the shortest is shorter than most).
const USUAL_OF_QUEUE: u64 = 2;
const MOST_OF_QUEUE: u64 = 4;
/// How many times what packets are late by in the mean a round trip has at least (a choice).
const LATE_OF_ROUND: u64 = 10;

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

    /// The round trip without a queue as it usually is: the shortest, or what jitter makes of it if that is longer, which the order of packets
    /// shows before round trips do.
    pub(super) fn usual_round(&self) -> Span {
        let of_order = self.order.usual().scaled(LATE_OF_ROUND, 1);
        self.base().max(self.of_jitter()).max(of_order)
    }

    /// What round trips turn by without a queue; none if that is less than a packet's time or a hundredth of the round trip, as chance
    /// makes of queues (a choice).
    fn jitter(&self) -> Span {
        let packet = Span::from_nanos(self.packet * 1_000_000_000 / self.highest.max(1));
        let least = self.base().scaled(1, 100).max(packet);
        Some(self.jitter.usual()).filter(|turn| *turn >= least).unwrap_or(Span::ZERO)
    }

    /// How long a stretch lasts at least: a third of the round trip, and for so long that jitter makes little of its rate and most of its
    /// packets are known to have come or not, but no more than a few round trips.
    pub(super) fn stretch(&self) -> Span {
        let at_most = |rounds: u64, span: Span| span.min(self.usual_round().scaled(rounds, 1));
        let of_jitter = at_most(ROUNDS_FOR_JITTER, self.jitter().scaled(TURNS_OF_STRETCH, 1));
        let of_order = at_most(ROUNDS_FOR_ORDER, self.order.late().scaled(LATE_OF_STRETCH, 1));
        self.usual_round().scaled(1, 3).max(of_jitter).max(of_order)
    }

    /// The rate of what came in so much time, if jitter may have made its ends early or late: what was sent, if it may have been that.
    /// What queues would have to hold then, or to give, is seen in round trips.
    pub(super) fn fairly(&self, counted: u64, span: Span) -> u64 {
        let of_jitter = self.jitter().scaled(TURNS_OF_ENDS, 1);
        let late = of_jitter.max(self.order.usual()).min(span.scaled(1, 3));
        let rate_in = |time: Span| {
            let bytes = u128::from(counted) * u128::from(span.as_nanos().max(1));
            u64::try_from(bytes / u128::from(time.as_nanos().max(1))).unwrap_or(MOST_RATE)
        };
        if counted > self.sent {
            rate_in(span + of_jitter).max(self.sent)
        } else {
            rate_in(span - late).min(self.sent)
        }
    }

    /// A queue that is none: a sixteenth of the round trip, the time of four packets at the highest rate, or what jitter makes of the
    /// round trip, as it turns or as packets come late.
    pub(super) fn tolerated(&self) -> Span {
        let packets = 4 * self.packet * 1_000_000_000 / self.highest.max(1);
        let least = self.base().scaled(1, 16).max(Span::from_nanos(packets));
        let of_order = self.order.usual().scaled(USUAL_OF_QUEUE, 1);
        let of_order = of_order.min(self.usual_round().scaled(1, MOST_OF_QUEUE));
        least.max(Span::from_millis(1)).max(self.of_jitter()).max(of_order)
    }

    /// What jitter makes of the round trip.
    fn of_jitter(&self) -> Span {
        self.jitter().scaled(TURNS_OF_QUEUE, 1)
    }

    /// The queue that a new offer will meet. The one that is seen is largely from before the offer in force, at which packets come for
    /// a round trip and the third that is looked at: it grows or goes by what that is above or below the rate. Half of that time
    /// is counted (a choice).
    fn coming(&self, queue: Span) -> Span {
        let time = u128::from(self.usual_round().scaled(2, 3).as_nanos());
        let part = |rate: u64| (time * u128::from(rate) / u128::from(self.rate.max(1))) as u64;
        let grows = Span::from_nanos(part(self.sent.saturating_sub(self.rate)));
        let goes = Span::from_nanos(part(self.rate.saturating_sub(self.sent)));
        (queue + grows).saturating_sub(goes)
    }

    /// The rate at which the queue goes within two round trips, but for half of what is none, or for all that jitter makes.
    pub(super) fn drained(&self, queue: Span) -> u64 {
        let left = self.tolerated().scaled(1, 2).max(self.of_jitter());
        let over = self.coming(queue).saturating_sub(left).as_nanos();
        let part = (over / (self.usual_round().as_nanos() / 50).max(1)).min(40);
        self.rate * (100 - part) / 100
    }
}
