//! The spread of values.

use serde::{Deserialize, Serialize};
use trunkline_core::Span;

/// The spread of a set of signed times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Spread {
    /// The number of values.
    pub count: u64,
    /// Their arithmetic mean in nanoseconds.
    pub mean_ns: i64,
    /// Their standard deviation (of the sample: divided by one less than their number).
    pub deviation: Span,
    /// From the first to the 99th percentile.
    pub range: Span,
}

impl Spread {
    /// The spread of `values`, in nanoseconds, which are sorted on the way.
    pub fn of(values: &mut [i64]) -> Spread {
        values.sort_unstable();
        let count = values.len() as u64;
        if values.is_empty() {
            return Spread::default();
        }
        let mean = values.iter().map(|&v| i128::from(v)).sum::<i128>() / i128::from(count);
        let squares: f64 = values.iter().map(|&v| ((i128::from(v) - mean) as f64).powi(2)).sum();
        let deviation = (squares / (count.max(2) - 1) as f64).sqrt();
        let range = ranked(values, 0.99) - ranked(values, 0.01);
        Spread {
            count,
            mean_ns: mean as i64,
            deviation: Span::from_nanos(deviation.round() as u64),
            range: Span::from_nanos(range.unsigned_abs()),
        }
    }
}

/// The value that `share` of all do not exceed, by nearest rank. `sorted` is ascending; 0 if empty.
pub fn ranked(sorted: &[i64], share: f64) -> i64 {
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.max(1) - 1).or(sorted.last()).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values() {
        let mut values: Vec<i64> = (1..=100).rev().collect();
        let spread = Spread::of(&mut values);
        assert_eq!((spread.count, spread.mean_ns), (100, 50));
        assert_eq!(spread.range, Span::from_nanos(98), "from 1 to 99");
        assert_eq!(spread.deviation, Span::from_nanos(29), "sqrt(101 * 100 / 12)");
        assert_eq!(ranked(&values, 0.5), 50);
    }

    #[test]
    fn few_values_do_not_divide_by_zero() {
        assert_eq!(Spread::of(&mut []), Spread::default());
        assert_eq!(Spread::of(&mut [-7]).deviation, Span::ZERO);
        assert_eq!(Spread::of(&mut [-3, 3]).deviation, Span::from_nanos(4), "sqrt 18");
        assert_eq!(ranked(&[], 0.5), 0);
    }
}
