//! What shows that a line is full although no queue is seen: as much comes of less as of more.

/// Percent of what was sent before that count as less.
const LESS: u64 = 95;
/// Trials in a row behind which as much came of less, after which chance does not explain it (a choice).
const TRIALS: u32 = 3;

/// Rates of the latest stretch, and what trials have shown.
#[derive(Debug, Clone, Copy, Default)]
pub struct Full {
    /// Sent and come through, in bytes per second.
    sent: u64,
    through: u64,
    trials: u32,
}

impl Full {
    /// Counts a stretch, by the rates at which packets were sent and came. Returns whether as much came as in the stretch before, in which
    /// more was sent. Then a loss is one for want of room: what a path loses of itself, it loses of less too.
    pub fn take(&mut self, sent: u64, through: u64) -> bool {
        let before = std::mem::replace(self, Full { sent, through, ..*self });
        sent * 100 <= before.sent * LESS && through >= before.through
    }

    /// Counts a trial, by whether as much came of less behind it.
    pub fn tried(&mut self, is_full: bool) {
        self.trials = if is_full { self.trials + 1 } else { 0 };
    }

    /// Whether so many trials in a row say that the line is full that it is to be looked for a queue.
    pub fn is_certain(&self) -> bool {
        self.trials >= TRIALS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of a line that carries 1000, with and without a tenth that the path loses.
    #[test]
    fn a_line_is_full_if_as_much_comes_of_less() {
        let mut full = Full::default();
        assert!(!full.take(1500, 1000));
        assert!(full.take(1200, 1000));
        assert!(!full.take(1200, 1000));
        let mut lossy = Full::default();
        assert!(!lossy.take(1000, 900));
        assert!(!lossy.take(900, 810));
    }

    #[test]
    fn three_trials_in_a_row_are_certain() {
        let mut full = Full::default();
        for (is_full, certain) in [
            (true, false),
            (true, false),
            (false, false),
            (true, false),
            (true, false),
            (true, true),
        ] {
            full.tried(is_full);
            assert_eq!(full.is_certain(), certain);
        }
    }
}
