//! When enough has been measured.
//!
//! Who looks after every measurement and stops at the first interval that is narrow enough stops at the
//! lucky ones too: the interval then covers the truth less often than it says (optional stopping). Here
//! the looks are fixed in advance, at counts that grow by half, and each spends its part of what the
//! confidence leaves: look `k` is made at `alpha / (k (k + 1))`, which sums to `alpha` over all looks
//! (alpha spending in the manner of Lan and DeMets 1983, with the parts simply added, so that it holds
//! whatever the looks have in common). Whenever it stops, the interval covers the truth at least as often
//! as it says.

use serde::Serialize;
use trunkline_measure::{Interval, mean_interval, order_interval, quantile};

/// Of what the interval is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Center {
    /// The median, by the order of the values; several count as one if they resemble their neighbours.
    Median,
    /// The mean, by batch means.
    Mean,
}

/// The accuracy to which something is to be known.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Goal {
    /// The figure that is to be known.
    pub center: Center,
    /// Half the interval's width, for each unit of the center: 0.01 for one percent.
    pub relative: f64,
    /// The share of intervals that are to cover the truth: 0.95.
    pub confidence: f64,
    /// Fewest measurements; the first look is made here. At least 10 are taken.
    pub least: usize,
    /// Most measurements; the last look is made here.
    pub most: usize,
}

impl Default for Goal {
    fn default() -> Goal {
        Goal { center: Center::Median, relative: 0.01, confidence: 0.95, least: 30, most: 10_000 }
    }
}

/// The result of a look at the measurements.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Look {
    /// The center.
    pub center: f64,
    /// Its interval, at the confidence asked for over all looks; `None` if there are too few values
    /// for this look's confidence.
    pub interval: Option<Interval>,
    /// Measurements.
    pub count: usize,
    /// Looks made, this one included.
    pub looks: u32,
}

impl Look {
    /// Half the interval's width for each unit of the center.
    pub fn relative(&self) -> Option<f64> {
        let half = (self.interval?.high - self.interval?.low) / 2.0;
        (self.center != 0.0).then(|| half / self.center.abs())
    }
}

/// Go on, or not.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Progress {
    /// Go on until there are so many measurements, then look again.
    More(usize),
    /// The goal is reached.
    Reached(Look),
    /// The most measurements are made and the goal is not reached: say so beside the result.
    NotReached(Look),
}

/// A series of looks.
#[derive(Debug, Clone, PartialEq)]
pub struct Stopping {
    goal: Goal,
    looks: u32,
    next: usize,
}

/// Even the coarsest interval needs some values.
const FEWEST: usize = 10;

impl Stopping {
    /// Nothing measured yet.
    pub fn new(goal: Goal) -> Stopping {
        let next = goal.least.max(FEWEST).min(goal.most.max(1));
        Stopping { goal, looks: 0, next }
    }

    /// Looks at all measurements so far, in order of time, if it is time to look. Values that came after
    /// the planned count are used as well: their number depends on nothing that was measured.
    pub fn look(&mut self, values: &[f64]) -> Progress {
        if values.len() < self.next {
            return Progress::More(self.next);
        }
        self.looks += 1;
        let known = self.known(values);
        if known.relative().is_some_and(|relative| relative <= self.goal.relative) {
            return Progress::Reached(known);
        }
        if values.len() >= self.goal.most {
            return Progress::NotReached(known);
        }
        self.next = (values.len() + values.len().div_ceil(2)).min(self.goal.most);
        Progress::More(self.next)
    }

    fn known(&self, values: &[f64]) -> Look {
        let confidence = 1.0 - self.spent();
        let batched = mean_interval(values, confidence);
        let memory = batched.map_or(1, |found| found.batch);
        let (center, interval) = match self.goal.center {
            Center::Median => {
                (quantile(values, 0.5), order_interval(values, 0.5, confidence, memory))
            }
            Center::Mean => (
                batched.map_or(f64::NAN, |found| found.mean),
                batched.filter(|found| found.trusted).map(|found| found.ends),
            ),
        };
        Look { center, interval, count: values.len(), looks: self.looks }
    }

    /// The error that this look may spend.
    fn spent(&self) -> f64 {
        let k = f64::from(self.looks);
        (1.0 - self.goal.confidence) / (k * (k + 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use trunkline_core::{Seed, Stream};

    fn delay(stream: &mut Stream) -> f64 {
        20.0 - 2.0 * libm::log(1.0 - stream.unit())
    }

    /// The median of [`delay`].
    const MEDIAN: f64 = 20.0 + 2.0 * std::f64::consts::LN_2;

    fn measure(goal: Goal, stream: &mut Stream) -> Progress {
        let mut values = Vec::new();
        let mut stopping = Stopping::new(goal);
        loop {
            match stopping.look(&values) {
                Progress::More(until) => values.resize_with(until, || delay(stream)),
                end => return end,
            }
        }
    }

    #[test]
    fn stopping_early_does_not_cost_coverage() {
        for (center, truth) in [(Center::Median, MEDIAN), (Center::Mean, 22.0)] {
            let goal = Goal { center, relative: 0.02, least: 10, ..Goal::default() };
            let mut stream = Seed(11).stream("stopping");
            let mut covered = 0;
            for _ in 0..200 {
                let Progress::Reached(known) = measure(goal, &mut stream) else {
                    panic!("reachable")
                };
                assert!(known.relative().unwrap() <= 0.02);
                covered += u32::from(known.interval.unwrap().contains(truth));
            }
            assert!(covered >= 188, "{covered} of 200 for {center:?}");
        }
    }

    #[test]
    fn what_cannot_be_reached_is_given_up() {
        let goal = Goal { relative: 1e-9, most: 300, ..Goal::default() };
        let Progress::NotReached(known) = measure(goal, &mut Seed(1).stream("stopping")) else {
            panic!("nothing is that exact")
        };
        assert_eq!((known.count, known.looks), (300, 7));
        assert!(known.interval.unwrap().contains(MEDIAN));
    }

    #[test]
    fn a_path_without_noise_is_known_at_the_first_look() {
        let mut stopping = Stopping::new(Goal::default());
        assert_eq!(stopping.look(&[5.0; 29]), Progress::More(30));
        assert!(matches!(stopping.look(&[5.0; 30]), Progress::Reached(known) if known.looks == 1));
    }

    proptest! {
        #[test]
        fn it_always_ends_within_the_most(least in 0usize..100, most in 0usize..500, seed: u64) {
            let goal = Goal { least, most, relative: 0.005, ..Goal::default() };
            let count = match measure(goal, &mut Seed(seed).stream("stopping")) {
                Progress::Reached(known) | Progress::NotReached(known) => known.count,
                Progress::More(_) => unreachable!("the loop goes on"),
            };
            prop_assert!(count <= most.max(1) && count >= least.min(most));
        }

        #[test]
        fn all_looks_together_spend_what_may_be_spent(looks in 1u32..200) {
            let spent = |looks| Stopping { goal: Goal::default(), looks, next: 0 }.spent();
            let sum: f64 = (1..=looks).map(spent).sum();
            prop_assert!(sum < 0.05 + 1e-12);
        }
    }
}
