//! A session's figures, with units in their names.

use serde::Serialize;
use std::collections::BTreeMap;
use trunkline_fit::{
    Clock, Direction, Exchange, Look, Loss, Observations, OutlierRule, Reordering, Spread, Summary,
    outliers,
};
use trunkline_measure::{Estimate, Estimator};

/// The figures of messages of one size, or of all.
#[derive(Debug, Clone, Serialize)]
pub struct Figures {
    /// From the intended sending to the answer: what a user who keeps to the schedule waits.
    pub response_ms: Option<Spread>,
    /// From the sending to the answer.
    pub round_trip_ms: Option<Spread>,
    /// The round trip without the server's own time.
    pub on_the_path_ms: Option<Spread>,
    /// The time that the server took.
    pub server_ms: Option<Spread>,
    /// The lateness of this program's sending.
    pub send_late_ms: Option<Spread>,
    /// To the server.
    pub up: OneDirection,
    /// From the server.
    pub down: OneDirection,
    /// Losses.
    pub loss: Loss,
}

/// The figures of one direction.
#[derive(Debug, Clone, Serialize)]
pub struct OneDirection {
    /// One-way delay, the least delays of both directions being taken as equal.
    pub delay_ms: Option<Spread>,
    /// Without that assumption all these delays may be more, or less, by this.
    pub delay_uncertainty_ms: Option<f64>,
    /// Change of the delay from message to message, absolute (RFC 3393).
    pub variation_ms: Option<Spread>,
    /// Interarrival jitter (RFC 3550).
    pub jitter_ms: Option<f64>,
    /// Order (RFC 4737).
    pub order: Reordering,
    /// Further copies.
    pub duplicates: u64,
}

impl From<Direction> for OneDirection {
    fn from(found: Direction) -> OneDirection {
        OneDirection {
            delay_ms: found.delay,
            delay_uncertainty_ms: found.uncertainty,
            variation_ms: found.variation,
            jitter_ms: found.jitter,
            order: found.order,
            duplicates: found.duplicates,
        }
    }
}

impl Figures {
    /// Of what was observed, with the clocks' relation, if one is known.
    pub fn of(observed: &Observations, clock: Option<&Clock>) -> Figures {
        let found = Summary::of(observed, clock);
        let sent = observed.in_order_of_sending();
        let path: Vec<f64> = sent.iter().map(|one| one.on_the_path() as f64 / 1e6).collect();
        Figures {
            response_ms: found.response,
            round_trip_ms: found.round_trip,
            on_the_path_ms: Spread::of(&path),
            server_ms: found.turnaround,
            send_late_ms: found.lateness,
            up: found.out.into(),
            down: found.back.into(),
            loss: found.loss,
        }
    }
}

/// Messages of one size.
#[derive(Debug, Clone, Serialize)]
pub struct SizeFigures {
    /// User octets.
    pub size_octets: u32,
    /// Octets of the IP packets, heads included, if a message is one packet.
    pub ip_octets: Option<u32>,
    /// Its figures.
    #[serde(flatten)]
    pub figures: Figures,
    /// The response times by the reports' rules and by sound ones, by the rule's name; see
    /// `trunkline_measure::Estimator`.
    pub estimates_ms: BTreeMap<String, Estimate>,
    /// The number of response times that stand out, by each rule.
    pub outliers: Outliers,
    /// The result of the repetition until a stated confidence.
    pub goal: Option<GoalFigures>,
}

/// The number of values that stand out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Outliers {
    /// By the median distance from the median.
    pub median_distance: usize,
    /// By Hawley's rule for the average.
    pub hawley_average: usize,
    /// By Hawley's rule for the minimum.
    pub hawley_minimum: usize,
}

/// The result of a goal.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct GoalFigures {
    /// Whether it was reached.
    pub reached: bool,
    /// The last look, in milliseconds.
    pub known_ms: Option<Look>,
}

const ESTIMATORS: [Estimator; 5] = [
    Estimator::Minimum,
    Estimator::Mean,
    Estimator::DropFirstLast,
    Estimator::HawleyMinimum,
    Estimator::HawleyAverage,
];

impl SizeFigures {
    /// Of the messages of this size among all that was observed.
    pub fn of(size: u32, observed: &Observations, clock: Option<&Clock>) -> SizeFigures {
        let mine = of_size(size, observed);
        let sent = mine.in_order_of_sending();
        let response: Vec<f64> = sent.iter().map(|one| one.response() as f64 / 1e6).collect();
        let estimate = |rule: Estimator| Some((rule.to_string(), rule.estimate(&response)?));
        let count = |rule| outliers(&response, rule).len();
        SizeFigures {
            size_octets: size,
            ip_octets: None,
            figures: Figures::of(&mine, clock),
            estimates_ms: ESTIMATORS.into_iter().filter_map(estimate).collect(),
            outliers: Outliers {
                median_distance: count(OutlierRule::MedianDistance),
                hawley_average: count(OutlierRule::HawleyAverage),
                hawley_minimum: count(OutlierRule::HawleyMinimum),
            },
            goal: None,
        }
    }
}

/// The observations of one size. Copies are not told apart by size and are left out.
fn of_size(size: u32, observed: &Observations) -> Observations {
    let is_mine = |one: &&Exchange| one.size == size;
    Observations {
        exchanges: observed.exchanges.iter().filter(is_mine).copied().collect(),
        lost: observed.lost.iter().filter(|lost| lost.size == size).copied().collect(),
        ..Observations::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trunkline_fit::{Far, Lost, Way};

    fn observed() -> Observations {
        let exchange = |sequence: u64| Exchange {
            sequence,
            size: if sequence.is_multiple_of(2) { 1 } else { 64 },
            reply: 1,
            intended: sequence as i64 * 1_000_000,
            sent: sequence as i64 * 1_000_000 + 10_000,
            far: Some(Far {
                received: sequence as i64 * 1_000_000 + 5_010_000,
                sent: sequence as i64 * 1_000_000 + 5_030_000,
                order: sequence,
            }),
            received: sequence as i64 * 1_000_000 + 10_030_000,
        };
        let lost = Lost { sequence: 60, size: 64, sent: 60_000_000, way: Some(Way::Out) };
        Observations {
            exchanges: (0..60).map(exchange).collect(),
            lost: vec![lost],
            ..Observations::default()
        }
    }

    #[test]
    fn figures_are_of_their_size() {
        let all = observed();
        let clock = Clock::relate(&all.exchanges).unwrap();
        let (one, other) =
            (SizeFigures::of(1, &all, Some(&clock)), SizeFigures::of(64, &all, Some(&clock)));
        assert_eq!((one.figures.loss.both.most, other.figures.loss.out.most), (0, 1));
        let response = one.figures.response_ms.unwrap();
        assert!((response.median - 10.03).abs() < 1e-9 && response.count == 30);
        assert!((one.figures.on_the_path_ms.unwrap().median - 10.0).abs() < 1e-9);
        assert!((one.figures.server_ms.unwrap().median - 0.02).abs() < 1e-9);
        assert!((one.figures.up.delay_ms.unwrap().median - 5.0).abs() < 0.001);
        assert!((one.estimates_ms["hawley-minimum"].value - 10.03).abs() < 1e-9);
        assert_eq!(one.outliers.median_distance, 0);
    }

    #[test]
    fn keys_carry_their_units() {
        let text = serde_json::to_string(&SizeFigures::of(1, &observed(), None)).unwrap();
        for key in ["size_octets", "response_ms", "round_trip_ms", "jitter_ms", "estimates_ms"] {
            assert!(text.contains(&format!("\"{key}\"")), "{key} in {text}");
        }
    }
}
