//! How much round trips vary without a queue.

use super::window::Least;
use std::cmp::Reverse;
use trunkline_core::Span;

/// Turns of which the middle counts, and as many as have to be seen for that (choices).
const KEPT: usize = 16;
const ENOUGH: usize = 6;

/// What the round trip turns by: of two differences in a row with opposite signs the lesser, and nothing if their signs are the same. A
/// queue grows and goes over several round trips; what chance adds to each turns about with most of them. On a path that keeps order it
/// does not always: jitter changes slowly there, and round trips shorter than its memory go on in one direction for a while. So the turn
/// that is usual can be kept, and the greatest that was kept lately counts.
#[derive(Debug, Clone, Default)]
pub struct Jitter {
    last: Option<Span>,
    /// The latest difference, and whether the round trip became longer.
    step: Option<(Span, bool)>,
    turns: [Span; KEPT],
    /// Turns that have been seen.
    count: usize,
    /// The middle one of them.
    usual: Span,
    /// The greatest that was kept lately.
    kept: Least<Reverse<Span>>,
}

impl Jitter {
    /// Counts a round trip.
    pub fn take(&mut self, round: Span) {
        let Some(last) = self.last.replace(round) else { return };
        let is_longer = round > last;
        let size = if is_longer { round - last } else { last - round };
        let Some((before, was_longer)) = self.step.replace((size, is_longer)) else { return };
        let turn = if is_longer == was_longer { Span::ZERO } else { size.min(before) };
        self.turns[self.count % KEPT] = turn;
        self.count += 1;
        let seen = self.count.min(KEPT);
        if seen >= ENOUGH {
            let mut turns = self.turns;
            turns[..seen].sort_unstable();
            self.usual = turns[seen / 2];
        }
    }

    /// Round trips change for another reason: what comes next is not held against what came before.
    pub fn interrupt(&mut self) {
        (self.last, self.step) = (None, None);
    }

    /// The turn that is usual counts for this period and the next.
    pub fn keep(&mut self) {
        self.kept.take(Reverse(self.usual));
    }

    /// A period ends.
    pub fn turn(&mut self) {
        self.kept.turn();
    }

    /// The turn that is usual, or was and is kept, if that is greater; none before a few have been seen.
    pub fn usual(&self) -> Span {
        self.kept.get().map_or(self.usual, |Reverse(turn)| turn.max(self.usual))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usual(rounds: impl IntoIterator<Item = u64>) -> Span {
        let mut jitter = Jitter::default();
        rounds.into_iter().for_each(|it| jitter.take(Span::from_millis(it)));
        jitter.usual()
    }

    #[test]
    fn a_queue_that_grows_and_goes_is_no_jitter() {
        let saw = (0..40).map(|at| 50 + [0, 4, 8, 12, 16, 12, 8, 4][at % 8]);
        assert_eq!(usual(saw), Span::ZERO);
    }

    #[test]
    fn what_turns_about_is_jitter() {
        assert_eq!(usual((0..40).map(|at| 50 + 7 * (at % 2))), Span::from_millis(7));
        // A third of the differences go on.
        let jitter = usual((0..40).map(|at| 50 + [0, 9, 3, 6, 15, 5][at % 6]));
        assert!(jitter >= Span::from_millis(3), "{jitter}");
        // Five turns are too few, six are enough.
        assert_eq!(usual([50, 90, 50, 90, 50, 90, 50]), Span::ZERO);
        assert_eq!(usual([50, 90, 50, 90, 50, 90, 50, 90]), Span::from_millis(40));
    }

    /// Round trips that change little for a while are those of a path with jitter still, but not for ever.
    #[test]
    fn jitter_is_remembered_for_two_periods() {
        let mut jitter = Jitter::default();
        let vary = |jitter: &mut Jitter| {
            (0..40).for_each(|at| jitter.take(Span::from_millis(50 + 7 * (at % 2))));
        };
        vary(&mut jitter);
        jitter.keep();
        for left in [7, 7, 0] {
            (0..40).for_each(|_| jitter.take(Span::from_millis(50)));
            jitter.keep();
            assert_eq!(jitter.usual(), Span::from_millis(left));
            jitter.turn();
        }
        vary(&mut jitter);
        assert_eq!(jitter.usual(), Span::from_millis(7));
        (0..40).for_each(|_| jitter.take(Span::from_millis(50)));
        assert_eq!(jitter.usual(), Span::ZERO, "it was not kept");
    }

    #[test]
    fn an_interruption_joins_nothing() {
        let mut jitter = Jitter::default();
        for _ in 0..40 {
            jitter.take(Span::from_millis(50));
            jitter.take(Span::from_millis(90));
            jitter.interrupt();
        }
        assert_eq!(jitter.usual(), Span::ZERO);
    }
}
