//! One flow's values of one quantity, added up as they come: memory does not grow with their number.

use crate::estimator::ENDS;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Batch means kept of one flow. When there are as many, neighbours are joined.
const MOST: usize = 256;

/// Count, mean, and sum of squares about the mean.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct Moments {
    /// The number of values.
    pub count: u64,
    /// Their mean.
    pub mean: f64,
    squares: f64,
}

impl Moments {
    /// Adds a value (Welford 1962).
    fn add(&mut self, value: f64) {
        self.count += 1;
        let off = value - self.mean;
        self.mean += off / self.count as f64;
        self.squares += off * (value - self.mean);
    }

    /// Of both together (Chan, Golub and LeVeque 1979).
    pub(crate) fn joined(self, other: Moments) -> Moments {
        if self.count == 0 || other.count == 0 {
            return if self.count == 0 { other } else { self };
        }
        let count = self.count + other.count;
        let (off, share) = (other.mean - self.mean, other.count as f64 / count as f64);
        let squares = self.squares + other.squares + off * off * self.count as f64 * share;
        Moments { count, mean: self.mean + off * share, squares }
    }

    /// The standard deviation, divisor n.
    pub(crate) fn deviation(self) -> f64 {
        (self.squares / self.count as f64).sqrt()
    }
}

/// The kept part of a flow's values: those at both ends, and the moments of what lies between. Moments of a whole
/// from which ends are taken away again would lose their digits if the ends are far greater.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Series {
    min: f64,
    max: f64,
    first: Vec<f64>,
    middle: Moments,
    last: VecDeque<f64>,
    batches: Batches,
}

impl Default for Series {
    fn default() -> Series {
        Series {
            min: f64::INFINITY,
            max: f64::NEG_INFINITY,
            first: Vec::new(),
            middle: Moments::default(),
            last: VecDeque::new(),
            batches: Batches::default(),
        }
    }
}

impl Series {
    /// Adds the flow's next value.
    pub(crate) fn push(&mut self, value: f64) {
        (self.min, self.max) = (self.min.min(value), self.max.max(value));
        self.place(value);
        self.batches.push(value);
    }

    fn place(&mut self, value: f64) {
        if self.first.len() < ENDS {
            self.first.push(value);
            return;
        }
        self.last.push_back(value);
        if self.last.len() > ENDS {
            self.last.pop_front().into_iter().for_each(|value| self.middle.add(value));
        }
    }

    /// Adds what another series saw, which counts as coming after.
    pub(crate) fn absorb(&mut self, later: &Series) {
        (self.min, self.max) = (self.min.min(later.min), self.max.max(later.max));
        later.first.iter().for_each(|&value| self.place(value));
        if later.middle.count > 0 {
            self.last.drain(..).for_each(|value| self.middle.add(value));
            self.middle = self.middle.joined(later.middle);
        }
        later.last.iter().for_each(|&value| self.place(value));
        self.batches.absorb(&later.batches);
    }

    /// The least value; infinite if there is none.
    pub(crate) fn min(&self) -> f64 {
        self.min
    }

    /// The greatest value; minus infinity if there is none.
    pub(crate) fn max(&self) -> f64 {
        self.max
    }

    /// The values that are kept one by one. If there is a middle, it has [`ENDS`] on either side.
    fn outer(&self) -> Vec<f64> {
        self.first.iter().chain(&self.last).copied().collect()
    }

    /// The first and the last `ends` values, at most [`ENDS`] of each; `None` if there are fewer than both.
    pub(crate) fn ends(&self, ends: usize) -> Option<Vec<f64>> {
        let mut outer = self.outer();
        let until = outer.len().checked_sub(ends).filter(|until| *until >= ends)?;
        outer.drain(ends..until);
        Some(outer)
    }

    /// The moments of what is left without `ends` values at each end; `None` as for [`Series::ends`].
    pub(crate) fn without_ends(&self, ends: usize) -> Option<Moments> {
        let outer = self.outer();
        let left = outer.get(ends..outer.len().checked_sub(ends)?)?;
        let mut moments = self.middle;
        left.iter().for_each(|&value| moments.add(value));
        Some(moments)
    }
}

/// Means of equal batches of successive values. What does not fill one is left out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Batches {
    /// Values in each, a power of two.
    size: u64,
    means: Vec<f64>,
    sum: f64,
    filled: u64,
}

impl Default for Batches {
    fn default() -> Batches {
        Batches { size: 1, means: Vec::new(), sum: 0.0, filled: 0 }
    }
}

impl Batches {
    fn push(&mut self, value: f64) {
        self.sum += value;
        self.filled += 1;
        if self.filled == self.size {
            self.means.push(self.sum / self.size as f64);
            (self.sum, self.filled) = (0.0, 0);
        }
        if self.means.len() == MOST {
            self.means = self.at(2 * self.size);
            self.size *= 2;
        }
    }

    /// The means of batches of `size`, a multiple of the present one.
    fn at(&self, size: u64) -> Vec<f64> {
        let each = (size / self.size) as usize;
        self.means.chunks_exact(each).map(crate::stats::mean).collect()
    }

    fn absorb(&mut self, later: &Batches) {
        let size = self.size.max(later.size);
        let mut means = self.at(size);
        means.extend(later.at(size));
        *self = Batches { size, means, ..Batches::default() };
        while self.means.len() >= MOST {
            (self.means, self.size) = (self.at(2 * self.size), 2 * self.size);
        }
    }
}

/// The batch means of several flows, one after the other, all of the largest batch.
pub(crate) fn batch_means<'a>(flows: impl Iterator<Item = &'a Series> + Clone) -> Vec<f64> {
    let size = flows.clone().map(|flow| flow.batches.size).max().unwrap_or(1);
    flows.flat_map(|flow| flow.batches.at(size)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::{deviation, mean};
    use proptest::prelude::*;

    fn of(values: &[f64]) -> Series {
        let mut series = Series::default();
        values.iter().for_each(|&value| series.push(value));
        series
    }

    fn near(found: f64, right: f64) -> bool {
        (found - right).abs() <= 1e-9 * right.abs().max(1.0)
    }

    proptest! {
        #[test]
        fn moments_are_those_of_the_list(
            values in prop::collection::vec(1e-3..1e3f64, 1..700),
            ends in 0usize..=ENDS,
            cut in 0.0..1.0f64,
        ) {
            let cut = (values.len() as f64 * cut) as usize;
            let mut joined = of(&values[..cut]);
            joined.absorb(&of(&values[cut..]));
            for series in [of(&values), joined] {
                let Some(kept) = values.get(ends..values.len().saturating_sub(ends)) else {
                    prop_assert!(series.without_ends(ends).is_none());
                    continue;
                };
                let moments = series.without_ends(ends).unwrap();
                prop_assert_eq!(moments.count, kept.len() as u64);
                if !kept.is_empty() {
                    prop_assert!(near(moments.mean, mean(kept)));
                    prop_assert!((moments.deviation() - deviation(kept)).abs() < 1e-6);
                }
                let least = values.iter().copied().fold(f64::INFINITY, f64::min);
                prop_assert_eq!(series.min(), least);
            }
        }

        #[test]
        fn batches_are_means_of_what_came_one_after_the_other(
            values in prop::collection::vec(-1e3..1e3f64, 1..3000),
        ) {
            let series = of(&values);
            let batches = &series.batches;
            prop_assert!(batches.means.len() < MOST && batches.size.is_power_of_two());
            let right: Vec<f64> = values.chunks_exact(batches.size as usize).map(mean).collect();
            prop_assert_eq!(batches.means.len(), right.len());
            prop_assert!(std::iter::zip(&batches.means, &right).all(|(a, b)| (a - b).abs() < 1e-6));
        }
    }

    #[test]
    fn joined_batches_are_those_of_the_parts_at_the_larger_size() {
        let part = |from: u32, to: u32| of(&(from..to).map(f64::from).collect::<Vec<_>>());
        let mut joined = part(0, 10);
        joined.absorb(&part(10, 1010));
        // A thousand values come in batches of four; of ten, two such are full.
        assert_eq!(joined.batches.size, part(10, 1010).batches.size);
        let size = joined.batches.size as u32;
        let halves = |from: u32, to: u32| {
            let firsts = (from..to).step_by(size as usize).filter(move |at| at + size <= to);
            firsts.map(|at| f64::from(at) + f64::from(size - 1) / 2.0)
        };
        let right: Vec<f64> = halves(0, 10).chain(halves(10, 1010)).collect();
        assert!(right.len() < MOST && joined.batches.means == right, "{:?}", joined.batches);
        joined.absorb(&part(0, 100_000));
        assert!(joined.batches.means.len() < MOST && joined.batches.size.is_power_of_two());
        assert_eq!(joined.batches.size, part(0, 100_000).batches.size);
    }
}
