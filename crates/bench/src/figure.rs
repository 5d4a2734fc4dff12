//! Repeated measurements, and what they come down to.

use serde::Serialize;
use std::fmt;

/// Repetitions of one measurement: the median, and how far they lie apart.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Figure {
    /// Half are no greater.
    pub median: f64,
    /// Least.
    pub min: f64,
    /// Greatest.
    pub max: f64,
}

impl Figure {
    /// The figure of `samples`; `None` if there are none.
    pub fn of(mut samples: Vec<f64>) -> Option<Figure> {
        samples.sort_unstable_by(f64::total_cmp);
        let (&min, &max) = (samples.first()?, samples.last()?);
        let middle = samples.len() / 2;
        let median = match samples.len() % 2 {
            0 => f64::midpoint(samples[middle - 1], samples[middle]),
            _ => samples[middle],
        };
        Some(Figure { median, min, max })
    }

    /// Of the ratios of `pairs`, each taken in one round, so that what disturbs the machine for longer
    /// than a round disturbs both parts of a pair. A pair with nothing to divide by is left out.
    pub fn of_ratios(pairs: impl Iterator<Item = (f64, f64)>) -> Option<Figure> {
        Figure::of(
            pairs.filter(|&(_, base)| base > 0.0).map(|(value, base)| value / base).collect(),
        )
    }

    /// The same in another unit.
    pub fn scaled(self, by: f64) -> Figure {
        Figure { median: self.median * by, min: self.min * by, max: self.max * by }
    }
}

/// `0.93 (0.91–0.95)`; the precision is that of the format, by default 2.
impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = f.precision().unwrap_or(2);
        let Figure { median, min, max } = self;
        write!(f, "{median:.digits$} ({min:.digits$}–{max:.digits$})")
    }
}

/// A figure for a table; a dash if it could not be had.
pub fn show(figure: Option<Figure>, digits: usize) -> String {
    figure.map_or_else(|| "–".into(), |figure| format!("{figure:.digits$}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_ratios_of_pairs() {
        let figure = Figure::of(vec![3.0, 1.0, 2.0]).unwrap();
        assert_eq!((figure.median, figure.min, figure.max), (2.0, 1.0, 3.0));
        assert_eq!(Figure::of(vec![1.0, 2.0]).unwrap().median, 1.5);
        assert_eq!(Figure::of(vec![]), None);
        let ratios = Figure::of_ratios([(1.0, 2.0), (3.0, 0.0), (9.0, 10.0)].into_iter()).unwrap();
        assert_eq!((ratios.min, ratios.max), (0.5, 0.9));
        assert_eq!(ratios.to_string(), "0.70 (0.50–0.90)");
    }
}
