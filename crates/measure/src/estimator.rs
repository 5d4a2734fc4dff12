//! The rules by which lists of measurements become one figure: those of the reports, by name, and sound
//! ones.

use crate::confidence::{
    CONFIDENCE, Interval, binomial_quantile, bootstrap_quantile, mean_interval,
};
use crate::stats::{deviation, mean, quantile};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use trunkline_core::{Seed, Span};

/// Measurements that Hawley drops at each end, "because of possible start-up and ending transients".
pub(crate) const ENDS: usize = 10;

/// A rule by which measurements, in order of time, become one figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Estimator {
    /// `hawley-minimum`, the mean of the lowest peak (Hawley 1989, section 4.2.1). Without the first and
    /// the last ten: mean `x1` and deviation `s1`; without what is above `x1 + s1`: `x2`, `s2`; without
    /// what is then above `x2 + s2`: `x3`, `s3`. The figure is `x3`, the threshold `x2 + s2`.
    HawleyMinimum,
    /// `hawley-average`, the mean without outliers (Hawley 1989, section 4.3.1). Without the first and
    /// the last ten: `x1`, `s1`; without what is above `x1 + 8 s1`: `x2`, `s2`. The figure is `x2`, the
    /// threshold `x1 + 8 s1`.
    HawleyAverage,
    /// `minimum`, the least of all (Vande Water 1988, sections 2.5 and 3.5.1).
    Minimum,
    /// `mean` of all (Vande Water 1988, section 2.7), with an interval by batch means.
    Mean,
    /// `drop-first-last`, the mean without the first and the last (Hawley 1989, section 4.1.1).
    DropFirstLast,
    /// `median`, `p90`, `p99`, `p99.9`: the share of all, in ten-thousandths, that do not exceed the
    /// figure; interpolated (see [`quantile`]), with a bootstrap interval.
    Percentile(u16),
}

/// The result of an [`Estimator`] for measurements, in their unit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Estimate {
    /// The figure.
    pub value: f64,
    /// Standard deviation, divisor n, of the measurements kept (see [`deviation`]).
    pub deviation: f64,
    /// The number of measurements that were kept.
    pub good: usize,
    /// The number that the rule's threshold eliminated. Those dropped at the ends count neither here nor there.
    pub bad: usize,
    /// The threshold above which measurements were eliminated.
    pub threshold: Option<f64>,
    /// Lower end of the 95 % confidence interval of the figure, if the rule has one.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
}

impl Estimate {
    /// Mean to deviation ratio, the reports' measure of spread; infinite if nothing is spread.
    pub fn ratio(&self) -> f64 {
        self.value / self.deviation
    }

    /// The same figure in a unit of which so many make one of the present.
    pub fn scaled(self, many: f64) -> Estimate {
        let scale = |value: Option<f64>| value.map(|value| value * many);
        Estimate {
            value: self.value * many,
            deviation: self.deviation * many,
            threshold: scale(self.threshold),
            low: scale(self.low),
            high: scale(self.high),
            ..self
        }
    }

    fn of_kept(value: f64, kept: &[f64]) -> Estimate {
        Estimate {
            value,
            deviation: deviation(kept),
            good: kept.len(),
            bad: 0,
            threshold: None,
            low: None,
            high: None,
        }
    }

    /// The ends of its confidence interval, if it has one.
    pub fn interval(self) -> Option<Interval> {
        self.low.zip(self.high).map(|(low, high)| Interval { low, high })
    }

    /// The same without an interval.
    pub(crate) fn without_interval(self) -> Estimate {
        Estimate { low: None, high: None, ..self }
    }

    fn within(self, interval: Option<Interval>) -> Estimate {
        let (low, high) = interval.map(|ends| (ends.low, ends.high)).unzip();
        Estimate { low, high, ..self }
    }
}

impl Estimator {
    /// The median.
    pub const MEDIAN: Estimator = Estimator::Percentile(5_000);
    /// The value that nine in ten do not exceed.
    pub const P90: Estimator = Estimator::Percentile(9_000);
    /// The value that 99 in 100 do not exceed.
    pub const P99: Estimator = Estimator::Percentile(9_900);

    /// Applies the rule to measurements in order of time; `None` if it leaves none of them: because
    /// there are none, or for the rules that drop the ends no more than those.
    pub fn estimate(self, values: &[f64]) -> Option<Estimate> {
        let kept = self.without_ends(values)?;
        (!kept.is_empty()).then(|| self.of_kept(kept))
    }

    /// The point estimate: the same without an interval, which may cost a bootstrap.
    pub fn point(self, values: &[f64]) -> Option<Estimate> {
        let kept = self.without_ends(values)?;
        (!kept.is_empty()).then(|| self.point_of(kept))
    }

    /// Applies the rule to several flows together: the ends are dropped from each flow, and what is left
    /// of all is one list. `None` if a flow has no more than the ends, or nothing is left.
    pub fn estimate_flows(self, flows: &[Vec<f64>]) -> Option<Estimate> {
        self.kept_of(flows).map(|kept| self.of_kept(&kept))
    }

    /// The point estimate of several flows together.
    pub(crate) fn point_flows(self, flows: &[Vec<f64>]) -> Option<Estimate> {
        self.kept_of(flows).map(|kept| self.point_of(&kept))
    }

    fn kept_of(self, flows: &[Vec<f64>]) -> Option<Vec<f64>> {
        let kept: Option<Vec<&[f64]>> = flows.iter().map(|flow| self.without_ends(flow)).collect();
        Some(kept?.concat()).filter(|kept| !kept.is_empty())
    }

    fn of_kept(self, kept: &[f64]) -> Estimate {
        self.point_of(kept).within(self.interval_of(kept))
    }

    fn point_of(self, kept: &[f64]) -> Estimate {
        match self {
            Estimator::HawleyMinimum => lowest_peak(kept),
            Estimator::HawleyAverage => without_outliers(kept),
            Estimator::Minimum => Estimate::of_kept(quantile(kept, 0.0), kept),
            Estimator::Mean | Estimator::DropFirstLast => Estimate::of_kept(mean(kept), kept),
            Estimator::Percentile(share) => {
                Estimate::of_kept(quantile(kept, f64::from(share) / 1e4), kept)
            }
        }
    }

    fn interval_of(self, kept: &[f64]) -> Option<Interval> {
        let around_mean = |values: &[f64]| Some(mean_interval(values, CONFIDENCE)?.ends);
        match self {
            Estimator::HawleyMinimum | Estimator::Minimum => None,
            Estimator::HawleyAverage => around_mean(&up_to(kept, threshold(kept, 8.0))),
            Estimator::Mean | Estimator::DropFirstLast => around_mean(kept),
            Estimator::Percentile(share) => around_quantile(kept, f64::from(share) / 1e4),
        }
    }

    /// How far the confidence interval of one flow's figure reaches below and above it; of a quantile without
    /// resampling if there are `many` measurements in all. `None` for fewer than two, of which nothing is known.
    pub(crate) fn reach(self, values: &[f64], many: bool) -> Option<(f64, f64)> {
        let kept = self.without_ends(values).filter(|kept| kept.len() > 1)?;
        let interval = match self {
            Estimator::Percentile(share) if many => {
                binomial_quantile(kept, f64::from(share) / 1e4, CONFIDENCE)
            }
            _ => self.interval_of(kept)?,
        };
        let value = self.point_of(kept).value;
        Some(((value - interval.low).max(0.0), (interval.high - value).max(0.0)))
    }

    /// Applies the rule to times; the figures are milliseconds.
    pub fn of_spans(self, spans: &[Span]) -> Option<Estimate> {
        let millis: Vec<f64> = spans.iter().map(|span| span.as_millis_f64()).collect();
        self.estimate(&millis)
    }

    /// Measurements that it drops at each end of a flow.
    pub(crate) fn ends(self) -> usize {
        match self {
            Estimator::HawleyMinimum | Estimator::HawleyAverage => ENDS,
            Estimator::DropFirstLast => 1,
            _ => 0,
        }
    }

    fn without_ends(self, values: &[f64]) -> Option<&[f64]> {
        let ends = self.ends();
        values.get(ends..values.len().checked_sub(ends)?)
    }
}

fn up_to(values: &[f64], threshold: f64) -> Vec<f64> {
    values.iter().copied().filter(|&value| value <= threshold).collect()
}

/// At least the smallest value is never above the mean, except by the rounding of the mean itself.
fn threshold(values: &[f64], deviations: f64) -> f64 {
    (mean(values) + deviations * deviation(values)).max(quantile(values, 0.0))
}

fn lowest_peak(values: &[f64]) -> Estimate {
    let once = up_to(values, threshold(values, 1.0));
    let limit = threshold(&once, 1.0);
    let twice = up_to(&once, limit);
    eliminated(values, &twice, limit)
}

fn without_outliers(values: &[f64]) -> Estimate {
    let limit = threshold(values, 8.0);
    let kept = up_to(values, limit);
    eliminated(values, &kept, limit)
}

fn eliminated(values: &[f64], kept: &[f64], limit: f64) -> Estimate {
    let bad = values.len() - kept.len();
    Estimate { bad, threshold: Some(limit), ..Estimate::of_kept(mean(kept), kept) }
}

fn around_quantile(values: &[f64], share: f64) -> Option<Interval> {
    // A stream of its own for each call: the same measurements have the same interval wherever they are.
    bootstrap_quantile(values, share, CONFIDENCE, &mut Seed(0).stream("bootstrap"))
}

/// A name that is no estimator's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown estimator '{found}'; use hawley-minimum, hawley-average, minimum, mean, drop-first-last, median or a percentile such as p90 or p99.9"
)]
pub struct EstimatorError {
    /// The text that was found.
    pub found: String,
}

const NAMES: [(&str, Estimator); 6] = [
    ("hawley-minimum", Estimator::HawleyMinimum),
    ("hawley-average", Estimator::HawleyAverage),
    ("minimum", Estimator::Minimum),
    ("mean", Estimator::Mean),
    ("drop-first-last", Estimator::DropFirstLast),
    ("median", Estimator::MEDIAN),
];

impl FromStr for Estimator {
    type Err = EstimatorError;

    /// Reads a name; percentiles with up to two decimals, `p0` to `p100`.
    fn from_str(text: &str) -> Result<Estimator, EstimatorError> {
        let named = NAMES.iter().find(|(name, _)| *name == text).map(|&(_, estimator)| estimator);
        let percentile = || Some(Estimator::Percentile(ten_thousandths(text.strip_prefix('p')?)?));
        named.or_else(percentile).ok_or_else(|| EstimatorError { found: text.into() })
    }
}

/// `99.9` is 9990.
fn ten_thousandths(text: &str) -> Option<u16> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let fits = (1..=3).contains(&whole.len()) && decimals.len() <= 2 && !text.ends_with('.');
    if !fits || !digits(whole) || !digits(decimals) {
        return None;
    }
    format!("{whole}{decimals:0<2}").parse().ok().filter(|&share: &u16| share <= 10_000)
}

impl fmt::Display for Estimator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (NAMES.iter().find(|(_, named)| named == self), self) {
            (Some((name, _)), _) => f.pad(name),
            (None, Estimator::Percentile(share)) => {
                let percent = format!("{}.{:02}", share / 100, share % 100);
                f.pad(&format!("p{}", percent.trim_end_matches('0').trim_end_matches('.')))
            }
            (None, _) => unreachable!("every other estimator is in the list of names"),
        }
    }
}

impl TryFrom<String> for Estimator {
    type Error = EstimatorError;
    fn try_from(text: String) -> Result<Estimator, EstimatorError> {
        text.parse()
    }
}

impl From<Estimator> for String {
    fn from(estimator: Estimator) -> String {
        estimator.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn naive_moments(values: &[f64]) -> (f64, f64) {
        let n = values.len() as f64;
        let x = values.iter().sum::<f64>() / n;
        (x, (values.iter().map(|v| (v - x).powi(2)).sum::<f64>() / n).sqrt())
    }

    /// Delays with a peak and a tail, long enough for the rules that drop ten at each end.
    fn delays() -> impl Strategy<Value = Vec<f64>> {
        let one = prop_oneof![9 => 4.0..4.5f64, 3 => 4.5..9.0f64, 1 => 50.0..300.0f64];
        prop::collection::vec(one, 30..200)
    }

    #[test]
    fn names_are_read_and_printed() {
        let names = ["hawley-minimum", "hawley-average", "minimum", "mean", "drop-first-last"];
        for name in names.into_iter().chain(["median", "p90", "p99", "p99.9", "p2.5", "p100", "p0"])
        {
            assert_eq!(name.parse::<Estimator>().unwrap().to_string(), name);
        }
        assert_eq!("p50".parse(), Ok(Estimator::MEDIAN));
        assert_eq!("p99".parse(), Ok(Estimator::P99));
        for wrong in ["", "p", "p101", "p1.234", "p5.", "p-1", "p+5", "average", "Median", "p１"] {
            let complaint = wrong.parse::<Estimator>().unwrap_err().to_string();
            assert!(complaint.contains(wrong) && complaint.contains("hawley-minimum"));
        }
    }

    #[test]
    fn the_minimum_is_the_lowest_peak() {
        // A start-up transient, then 80 points: sixty at 4, fifteen at 5, five at 50.
        let mut values = vec![1000.0; 10];
        values.extend([4.0; 60].iter().chain(&[5.0; 15]).chain(&[50.0; 5]));
        values.extend([1000.0; 10]);
        let found = Estimator::HawleyMinimum.estimate(&values).unwrap();
        // x1 + s1 leaves the peaks at 4 and 5; x2 + s2 = 4.2 + 0.4 leaves the one at 4.
        assert_eq!((found.value, found.deviation, found.good, found.bad), (4.0, 0.0, 60, 20));
        assert!((found.threshold.unwrap() - 4.6).abs() < 1e-12);
        assert_eq!(found.ratio(), f64::INFINITY);
    }

    #[test]
    fn the_average_drops_only_what_is_far_out() {
        let mut values: Vec<f64> = (0..300).map(|i| 10.0 + f64::from(i % 5)).collect();
        values[100] = 5_000.0;
        let found = Estimator::HawleyAverage.estimate(&values).unwrap();
        assert_eq!((found.good, found.bad), (279, 1));
        assert!((found.value - 12.0).abs() < 0.01 && found.low.unwrap() < found.value);
    }

    #[test]
    fn of_ten_transfers_eight_are_kept() {
        let values = [0.0, 2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0, 1e9];
        let found = Estimator::DropFirstLast.estimate(&values).unwrap();
        assert_eq!((found.value, found.deviation, found.good), (5.0, 2.0, 8));
        assert!(found.low.unwrap() < 5.0 && found.high.unwrap() > 5.0);
    }

    #[test]
    fn too_few_measurements_give_no_figure() {
        for (name, least) in
            [("hawley-minimum", 21), ("hawley-average", 21), ("drop-first-last", 3)]
                .into_iter()
                .chain(["minimum", "mean", "median", "p99"].map(|name| (name, 1)))
        {
            let estimator: Estimator = name.parse().unwrap();
            assert_eq!(estimator.estimate(&vec![7.0; least - 1]), None, "{name}");
            let found = estimator.estimate(&vec![7.0; least]).unwrap();
            assert_eq!((found.value, found.deviation, found.good), (7.0, 0.0, 1), "{name}");
        }
    }

    #[test]
    fn each_flow_loses_its_own_ends() {
        let flow = |middle: f64| vec![1e6, middle, middle, 1e6];
        let found = Estimator::DropFirstLast.estimate_flows(&[flow(1.0), flow(3.0)]).unwrap();
        assert_eq!((found.value, found.deviation, found.good), (2.0, 1.0, 4));
        assert_eq!(Estimator::DropFirstLast.estimate_flows(&[flow(1.0), vec![1.0]]), None);
        assert_eq!(Estimator::Mean.estimate_flows(&[]), None);
    }

    #[test]
    fn times_are_milliseconds() {
        let spans = [Span::from_micros(1500), Span::from_micros(2500)];
        assert_eq!(Estimator::Mean.of_spans(&spans).unwrap().value, 2.0);
        assert_eq!(Estimator::MEDIAN.of_spans(&spans).unwrap().value, 2.0);
        assert_eq!(Estimator::Minimum.of_spans(&spans).unwrap().value, 1.5);
    }

    proptest! {
        #[test]
        fn hawleys_minimum_is_as_he_describes_it(values in delays()) {
            let mut kept = values[10..values.len() - 10].to_vec();
            let all = kept.len();
            let (x1, s1) = naive_moments(&kept);
            kept.retain(|&value| value <= x1 + s1);
            let (x2, s2) = naive_moments(&kept);
            kept.retain(|&value| value <= x2 + s2);
            let (x3, s3) = naive_moments(&kept);
            let found = Estimator::HawleyMinimum.estimate(&values).unwrap();
            prop_assert!((found.value - x3).abs() < 1e-9 && (found.deviation - s3).abs() < 1e-9);
            prop_assert!((found.threshold.unwrap() - (x2 + s2)).abs() < 1e-9);
            prop_assert_eq!((found.good, found.bad), (kept.len(), all - kept.len()));
        }

        #[test]
        fn hawleys_average_is_as_he_describes_it(values in delays()) {
            let mut kept = values[10..values.len() - 10].to_vec();
            let all = kept.len();
            let (x1, s1) = naive_moments(&kept);
            kept.retain(|&value| value <= x1 + 8.0 * s1);
            let (x2, s2) = naive_moments(&kept);
            let found = Estimator::HawleyAverage.estimate(&values).unwrap();
            prop_assert!((found.value - x2).abs() < 1e-9 && (found.deviation - s2).abs() < 1e-9);
            prop_assert_eq!((found.good, found.bad), (kept.len(), all - kept.len()));
        }

        #[test]
        fn figures_lie_between_the_extremes(values in delays(), which in 0usize..8) {
            let estimator = NAMES.get(which).map_or(Estimator::P99, |&(_, named)| named);
            let found = estimator.estimate(&values).unwrap();
            let (least, most) = (quantile(&values, 0.0), quantile(&values, 1.0));
            prop_assert!((least - 1e-9..=most + 1e-9).contains(&found.value));
            if let (Some(low), Some(high)) = (found.low, found.high) {
                prop_assert!(low <= high);
            }
            prop_assert_eq!(estimator.estimate(&values), Some(found), "same values, same bits");
            prop_assert_eq!(estimator.point(&values), Some(found.without_interval()));
        }
    }

    #[test]
    fn another_unit_scales_what_has_a_unit() {
        let estimate = Estimate {
            value: 1.0,
            deviation: 2.0,
            good: 3,
            bad: 4,
            threshold: Some(5.0),
            low: Some(6.0),
            high: Some(7.0),
        };
        let right = Estimate {
            value: 10.0,
            deviation: 20.0,
            good: 3,
            bad: 4,
            threshold: Some(50.0),
            low: Some(60.0),
            high: Some(70.0),
        };
        assert_eq!(estimate.scaled(10.0), right);
    }
}
