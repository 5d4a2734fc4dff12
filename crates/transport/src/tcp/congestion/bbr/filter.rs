//! The largest bandwidth of the last ten round trips.

/// Round trips that a sample counts for: a whole cycle of probing and two more (BBR draft §4.1.1.2,
/// BtlBwFilterLen).
pub(super) const ROUNDS: usize = 10;

/// An exact maximum over the last [`ROUNDS`] rounds.
#[derive(Debug, Clone, Default)]
pub(super) struct MaxFilter {
    round: u64,
    best: [u64; ROUNDS],
    largest: u64,
}

impl MaxFilter {
    /// The largest of the samples that still count.
    pub(super) fn largest(&self) -> u64 {
        self.largest
    }

    /// Goes on to `round`, which forgets what is older than the window.
    pub(super) fn advance(&mut self, round: u64) {
        for passed in (self.round + 1..=round).take(ROUNDS) {
            self.best[passed as usize % ROUNDS] = 0;
        }
        if round > self.round + ROUNDS as u64 {
            self.best = [0; ROUNDS];
        }
        self.round = self.round.max(round);
        self.largest = self.best.iter().copied().max().unwrap_or(0);
    }

    /// Takes a sample of the present round.
    pub(super) fn put(&mut self, sample: u64) {
        let best = &mut self.best[self.round as usize % ROUNDS];
        *best = sample.max(*best);
        self.largest = sample.max(self.largest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_the_maximum_of_the_last_ten_rounds(
            samples in prop::collection::vec((0u64..4, 0u64..100), 1..200),
        ) {
            let mut filter = MaxFilter::default();
            let mut all: Vec<(u64, u64)> = Vec::new();
            let mut round = 0;
            for (step, sample) in samples {
                round += if step == 3 { 7 } else { step };
                filter.advance(round);
                filter.put(sample);
                all.push((round, sample));
                let counts = all.iter().filter(|(at, _)| at + ROUNDS as u64 > round);
                prop_assert_eq!(Some(filter.largest()), counts.map(|&(_, sample)| sample).max());
            }
        }
    }
}
