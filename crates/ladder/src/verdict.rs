//! Whether two engines agree on a figure.

use crate::figure::{Figure, What};
use serde::Serialize;

/// How far two engines may be apart and still agree.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Tolerances {
    /// Share of a delay.
    pub delay_share: f64,
    /// Or so many milliseconds, whichever is more.
    pub delay_ms: f64,
    /// Share of a goodput.
    pub goodput_share: f64,
}

impl Default for Tolerances {
    /// 2 % or 100 us of a delay, 2 % of a goodput.
    fn default() -> Tolerances {
        Tolerances { delay_share: 0.02, delay_ms: 0.1, goodput_share: 0.02 }
    }
}

impl Tolerances {
    /// How far from `reference` a figure may be, in its unit. Of losses the intervals tell.
    pub(crate) fn allowed(&self, what: What, reference: f64) -> f64 {
        match what {
            What::RoundTrip { .. } | What::Interval { .. } | What::OneWay => {
                (self.delay_share * reference).max(self.delay_ms)
            }
            What::Goodput => self.goodput_share * reference,
            What::Loss => 0.0,
        }
    }
}

/// The outcome of one comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Within the tolerance; of losses, with overlapping intervals.
    Agree,
    /// Beyond the tolerance, but the confidence intervals overlap: more samples would have to tell.
    Undecided,
    /// Beyond the tolerance, but within what the simulator itself gives in other [phases](Range).
    Phase,
    /// Beyond what tolerance, chance and phase allow.
    Differ,
    /// One of the engines has no such figure.
    Missing,
    /// The run is not to be used.
    Invalid,
}

/// What the simulator gives for one figure when the scenario runs in several phases: started a little earlier
/// or later, with hosts that vary.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Range {
    /// The least value, in the figure's unit.
    pub low: f64,
    /// The greatest.
    pub high: f64,
    /// Over so many simulations, the one in the table among them.
    pub runs: usize,
    /// The probability that one more of their kind would lie between: `(n - 1) / (n + 1)` for `n` independent draws
    /// of any continuous distribution, for each of `n + 1` is as likely as the others to be the least or the greatest.
    pub probability: f64,
}

impl Range {
    /// A figure whose range is a greater share of it than this hangs on phase more than on what is described.
    pub const WIDE: f64 = 0.2;

    /// Of the values of several simulations; `None` of less than two.
    pub fn of(values: &[f64]) -> Option<Range> {
        let low = values.iter().copied().reduce(f64::min)?;
        let high = values.iter().copied().reduce(f64::max)?;
        let runs = values.len();
        let probability = (runs as f64 - 1.0) / (runs as f64 + 1.0);
        (runs > 1).then_some(Range { low, high, runs, probability })
    }

    /// Its width as a share of its middle.
    pub fn width(&self) -> f64 {
        let middle = (self.low + self.high) / 2.0;
        if middle > 0.0 { (self.high - self.low) / middle } else { 0.0 }
    }

    /// The outcome for a figure that is beyond the tolerance of `reference`, the simulator's. Here the range takes
    /// the place of the simulator's interval, which knows one phase only: a figure outside it differs, unless
    /// its own interval reaches it. If the range is wider than the tolerance, that counts at its ends as well.
    pub fn judge(
        &self,
        what: What,
        figure: &Figure,
        reference: f64,
        tolerances: &Tolerances,
    ) -> Verdict {
        let allowed = |end: f64| tolerances.allowed(what, end);
        let farthest = (self.high - reference).max(reference - self.low);
        let (low, high) = match farthest > allowed(reference) {
            true => (self.low - allowed(self.low), self.high + allowed(self.high)),
            false => (self.low, self.high),
        };
        let (low_end, high_end) = (Some(low), Some(high));
        let simulated =
            Figure { value: low, low: low_end, high: high_end, count: 1, invalid: false };
        match ((low..=high).contains(&figure.value), figure.overlaps(&simulated)) {
            (true, _) => Verdict::Phase,
            (false, true) => Verdict::Undecided,
            (false, false) => Verdict::Differ,
        }
    }
}

/// One engine held against another.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Judgement {
    /// The outcome.
    pub verdict: Verdict,
    /// How much greater the figure is than the one it is held against, as a share of that; of a loss the
    /// difference of the shares. `None` if there is none.
    pub difference: Option<f64>,
    /// The same in the figure's own unit.
    pub apart: Option<f64>,
    /// The reasons, if they do not agree: the greatest cause first.
    pub because: Vec<String>,
}

impl Judgement {
    /// Whether the figure is farther away than the tolerance.
    pub(crate) fn is_apart(&self) -> bool {
        matches!(self.verdict, Verdict::Differ | Verdict::Undecided)
    }
}

/// Holds `figure` against `reference`: the outcome, how far they are apart as a share, if that has one, and in
/// their unit.
pub fn judge(
    what: What,
    figure: &Figure,
    reference: &Figure,
    tolerances: &Tolerances,
) -> (Verdict, Option<f64>, f64) {
    let apart = figure.value - reference.value;
    // Beside nothing, no share says how far.
    let share = match (reference.value == 0.0, apart == 0.0) {
        (true, false) => None,
        (true, true) => Some(0.0),
        (false, _) => Some(apart / reference.value),
    };
    let allowed = tolerances.allowed(what, reference.value);
    let difference = if what == What::Loss { Some(apart) } else { share };
    let verdict = match (apart.abs() <= allowed, figure.overlaps(reference)) {
        (true, _) => Verdict::Agree,
        (false, true) if what == What::Loss => Verdict::Agree,
        (false, true) => Verdict::Undecided,
        (false, false) => Verdict::Differ,
    };
    (verdict, difference, apart)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(value: f64) -> Figure {
        Figure { value, low: None, high: None, count: 1, invalid: false }
    }

    fn verdict(what: What, value: f64, reference: f64) -> Verdict {
        judge(what, &point(value), &point(reference), &Tolerances::default()).0
    }

    #[test]
    fn a_delay_has_two_per_cent_or_a_hundred_microseconds() {
        let delay = What::RoundTrip { size: 1 };
        assert_eq!(verdict(delay, 1.09, 1.0), Verdict::Agree);
        assert_eq!(verdict(delay, 1.11, 1.0), Verdict::Differ);
        assert_eq!(verdict(delay, 101.9, 100.0), Verdict::Agree);
        assert_eq!(verdict(delay, 97.9, 100.0), Verdict::Differ);
    }

    #[test]
    fn goodput_has_two_per_cent() {
        assert_eq!(verdict(What::Goodput, 99.0, 100.0), Verdict::Agree);
        assert_eq!(verdict(What::Goodput, 97.0, 100.0), Verdict::Differ);
        let wide = Figure { low: Some(90.0), high: Some(104.0), ..point(97.0) };
        let found = judge(What::Goodput, &wide, &point(100.0), &Tolerances::default());
        assert_eq!(found.0, Verdict::Undecided);
    }

    #[test]
    fn what_phase_decides_is_told_from_what_it_does_not() {
        let range = Range::of(&[100.0, 90.0, 110.0]).unwrap();
        assert_eq!((range.low, range.high, range.runs), (90.0, 110.0, 3));
        assert!((range.width() - 0.2).abs() < 1e-9);
        let of = |range: Range, figure: &Figure| {
            range.judge(What::Goodput, figure, 100.0, &Tolerances::default())
        };
        assert_eq!(of(range, &point(109.0)), Verdict::Phase);
        assert_eq!(of(range, &point(112.0)), Verdict::Phase, "2 % beyond an end that phase moves");
        assert_eq!(of(range, &point(113.0)), Verdict::Differ);
        let wide = Figure { low: Some(112.0), high: Some(116.0), ..point(114.0) };
        assert_eq!(of(range, &wide), Verdict::Undecided);
        let apart = Figure { low: Some(112.5), ..wide };
        assert_eq!(of(range, &apart), Verdict::Differ);
        // If phase moves nothing much, it excuses nothing.
        let narrow = Range { low: 99.0, high: 101.9, ..range };
        assert_eq!(of(narrow, &point(102.5)), Verdict::Differ);
        assert_eq!(Range::of(&[1.0]), None);
        let probability = |runs: usize| Range::of(&vec![1.0; runs]).unwrap().probability;
        assert!(
            (probability(39) - 0.95).abs() < 1e-12 && (probability(8) - 7.0 / 9.0).abs() < 1e-12
        );
    }

    #[test]
    fn beside_nothing_there_is_no_share() {
        let of = |value| judge(What::OneWay, &point(value), &point(0.0), &Tolerances::default());
        assert_eq!(of(5.0), (Verdict::Differ, None, 5.0));
        assert_eq!(of(0.0), (Verdict::Agree, Some(0.0), 0.0));
    }

    #[test]
    fn losses_agree_within_their_intervals() {
        let share = |value, half| Figure {
            low: Some(value - half),
            high: Some(value + half),
            ..point(value)
        };
        let of = |a: Figure, b: Figure| judge(What::Loss, &a, &b, &Tolerances::default()).0;
        assert_eq!(of(share(0.010, 0.002), share(0.012, 0.001)), Verdict::Agree);
        assert_eq!(of(share(0.010, 0.002), share(0.020, 0.001)), Verdict::Differ);
    }
}
