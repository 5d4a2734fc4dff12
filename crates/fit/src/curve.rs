//! The shape of delay against message size: a line, and combs of steps on it.

use crate::level::{Level, level};
use crate::regress::{Solution, regress};
use serde::Serialize;
use trunkline_core::Stream;

/// Steps at all multiples of a period: what a window or a packet boundary does to delay.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Comb {
    /// The first step is between messages of so many bytes and of one more, the next at twice as many.
    pub period: u32,
    /// How high each is, in milliseconds.
    pub height: f64,
}

/// `milliseconds = base + slope * size + sum of heights * (ceil(size / period) - 1)`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Curve {
    /// At size 0, in milliseconds.
    pub base: f64,
    /// Milliseconds for each byte.
    pub slope: f64,
    /// Steps, by period, ascending.
    pub combs: Vec<Comb>,
}

/// How many steps of a period lie below `size`.
pub(crate) fn steps(size: u32, period: u32) -> f64 {
    f64::from(size.saturating_sub(1) / period)
}

impl Curve {
    /// Milliseconds at `size` bytes.
    pub fn at(&self, size: u32) -> f64 {
        let combs = self.combs.iter().map(|comb| comb.height * steps(size, comb.period));
        self.base + self.slope * f64::from(size) + combs.sum::<f64>()
    }
}

/// A regression of levels on a line and combs.
pub(crate) struct Regression {
    periods: Vec<u32>,
    solution: Solution,
}

fn row(size: u32, periods: &[u32]) -> Vec<f64> {
    let ends = [1.0, f64::from(size)];
    ends.into_iter().chain(periods.iter().map(|&period| steps(size, period))).collect()
}

impl Regression {
    /// Of levels on the combs of some periods. `None` where the levels do not determine it.
    pub fn of(levels: &[Level], periods: &[u32]) -> Option<Regression> {
        let millis: Vec<f64> = levels.iter().map(|one| one.millis).collect();
        Regression::with(levels, &millis, periods)
    }

    fn with(levels: &[Level], millis: &[f64], periods: &[u32]) -> Option<Regression> {
        let rows: Vec<Vec<f64>> = levels.iter().map(|one| row(one.size, periods)).collect();
        let errors: Vec<f64> = levels.iter().map(|one| one.error).collect();
        let solution = regress(&rows, millis, &errors)?;
        Some(Regression { periods: periods.to_vec(), solution })
    }

    /// Milliseconds at `size`, and the standard error of that.
    pub fn predict(&self, size: u32) -> (f64, f64) {
        let row = row(size, &self.periods);
        (self.solution.at(&row), self.solution.error_at(&row))
    }

    /// The height of the comb of this index over its standard error.
    pub fn clearness(&self, comb: usize) -> f64 {
        let mut unit = vec![0.0; self.periods.len() + 2];
        unit[comb + 2] = 1.0;
        self.solution.at(&unit) / self.solution.error_at(&unit)
    }

    /// The slope's standard error in units of the slope; `None` where it is not positive.
    pub fn slope_error(&self) -> Option<f64> {
        let slope = self.solution.coefficients[1];
        let mut unit = vec![0.0; self.periods.len() + 2];
        unit[1] = 1.0;
        (slope > 0.0).then(|| self.solution.error_at(&unit) / slope)
    }

    /// The curve.
    pub fn curve(&self) -> Curve {
        let [base, slope, heights @ ..] = &self.solution.coefficients[..] else {
            unreachable!("a regression has a base and a slope")
        };
        let comb = |(&period, &height)| Comb { period, height };
        let combs = self.periods.iter().zip(heights).map(comb).collect();
        Curve { base: *base, slope: *slope, combs }
    }
}

/// How many curves a bootstrap draws.
const DRAWS: usize = 400;

/// Curves through levels drawn anew from the values of each size (a bootstrap within sizes), for the
/// same periods. Where nothing was repeated, levels are drawn from their standard errors.
pub(crate) fn redrawn(levels: &[Level], periods: &[u32], stream: &mut Stream) -> Vec<Curve> {
    (0..DRAWS)
        .filter_map(|_| {
            let millis: Vec<f64> = levels.iter().map(|one| draw(one, stream)).collect();
            Some(Regression::with(levels, &millis, periods)?.curve())
        })
        .collect()
}

fn draw(one: &Level, stream: &mut Stream) -> f64 {
    if one.values.len() < 4 {
        return one.millis + one.error * stream.normal();
    }
    let count = one.values.len() as u64;
    let mut drawn = vec![0.0; one.values.len()];
    drawn.fill_with(|| one.values[stream.below(count) as usize]);
    level(&mut drawn)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::level::levels;
    use proptest::prelude::*;
    use trunkline_core::Seed;

    #[test]
    fn a_step_is_behind_a_multiple() {
        let at = |size| steps(size, 84);
        assert_eq!([1, 84, 85, 168, 169].map(at), [0.0, 0.0, 1.0, 1.0, 2.0]);
        assert_eq!(at(0), 0.0);
    }

    proptest! {
        #[test]
        fn a_curve_without_noise_is_found_again(
            base in 0.5..100.0f64,
            slope in 0.0001..0.01f64,
            height in 1.0..100.0f64,
            period in 20u32..500,
        ) {
            let truth = Curve { base, slope, combs: vec![Comb { period, height }] };
            let sizes = (1..40).map(|step| step * period / 7 + 1).chain([1, 2]);
            let samples: Vec<(u32, f64)> = sizes.map(|size| (size, truth.at(size))).collect();
            let levels = levels(&samples);
            let regression = Regression::of(&levels, &[period]).unwrap();
            let found = regression.curve();
            prop_assert!((found.base - base).abs() < 1e-6 * base);
            prop_assert!((found.combs[0].height - height).abs() < 1e-6 * height);
            prop_assert!(regression.clearness(0) > 0.0 && regression.predict(1).1 > 0.0);
            let draws = redrawn(&levels, &[period], &mut Seed(1).stream("test"));
            prop_assert!(draws.iter().any(|draw| draw.base < base) && draws.iter().any(|draw| draw.base > base));
        }
    }
}
