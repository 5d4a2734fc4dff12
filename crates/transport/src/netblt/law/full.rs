//! What shows that a line is full although no queue is seen: as much comes of less as of more.

/// Percent of what was sent before that count as less.
const LESS: u64 = 95;
/// Trials in a row behind which about as much came of less, after which chance does not explain it (a choice).
const TRIALS: u32 = 3;

/// How much came of less than before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Came {
    /// As much: a loss is one for want of room. What a path loses of itself, it loses of less too.
    AsMuch,
    /// About as much: by less than a quarter of the share by which less was sent. That may be chance.
    About,
    /// Less, or not less was sent.
    Less,
}

/// Rates of the latest stretch, and what trials have shown.
#[derive(Debug, Clone, Copy, Default)]
pub struct Full {
    /// Sent and come through, in bytes per second.
    sent: u64,
    through: u64,
    trials: u32,
}

impl Full {
    /// Counts a stretch, by the rates at which packets were sent and came. Returns how much came if more was sent in the stretch before.
    pub fn take(&mut self, sent: u64, through: u64) -> Came {
        let before = std::mem::replace(self, Full { sent, through, ..*self });
        let about = u128::from(before.through) * u128::from(3 * before.sent + sent);
        if sent * 100 > before.sent * LESS {
            Came::Less
        } else if through >= before.through {
            Came::AsMuch
        } else if u128::from(through) * u128::from(4 * before.sent) >= about {
            Came::About
        } else {
            Came::Less
        }
    }

    /// Counts a trial, by whether about as much came of less behind it.
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
        assert_eq!(full.take(1500, 1000), Came::Less);
        assert_eq!(full.take(1200, 1000), Came::AsMuch);
        assert_eq!(full.take(1200, 1000), Came::Less);
        assert_eq!(full.take(1000, 960), Came::About);
        let mut lossy = Full::default();
        assert_eq!(lossy.take(1000, 900), Came::Less);
        assert_eq!(lossy.take(900, 810), Came::Less);
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
