//! All that a session says about delay, loss and order, in one structure.

use crate::{Clock, Exchange, Loss, Observations, OneWay, Reordering};
use crate::{delay_variation, interarrival_jitter};
use serde::Serialize;
use std::collections::BTreeMap;
use trunkline_measure::{Interval, deviation, mean, mean_interval, order_interval, quantile};

/// The confidence of all intervals here.
const CONFIDENCE: f64 = 0.95;

/// The spread of values, in their own unit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    /// The number of values.
    pub count: usize,
    /// The least.
    pub min: f64,
    /// 5 in 100 are no greater.
    pub p5: f64,
    /// The median.
    pub median: f64,
    /// 95 % confidence interval of the median, by the order of the values; wider if they resemble
    /// their neighbours; `None` for fewer than six.
    pub median_interval: Option<Interval>,
    /// The mean.
    pub mean: f64,
    /// 95 % confidence interval of the mean by batch means; `None` for fewer than two.
    pub mean_interval: Option<Interval>,
    /// Standard deviation.
    pub deviation: f64,
    /// 90 in 100 are no greater.
    pub p90: f64,
    /// 95 in 100.
    pub p95: f64,
    /// 99 in 100.
    pub p99: f64,
    /// 999 in 1000.
    pub p999: f64,
    /// The greatest.
    pub max: f64,
}

impl Spread {
    /// The spread of values in the order of time; `None` if there are none.
    pub fn of(values: &[f64]) -> Option<Spread> {
        if values.is_empty() {
            return None;
        }
        let share = |share: f64| quantile(values, share);
        let batched = mean_interval(values, CONFIDENCE);
        let memory = batched.map_or(1, |found| found.batch);
        Some(Spread {
            count: values.len(),
            min: share(0.0),
            p5: share(0.05),
            median: share(0.5),
            median_interval: order_interval(values, 0.5, CONFIDENCE, memory),
            mean: mean(values),
            mean_interval: batched.map(|found| found.ends),
            deviation: deviation(values),
            p90: share(0.9),
            p95: share(0.95),
            p99: share(0.99),
            p999: share(0.999),
            max: share(1.0),
        })
    }
}

/// One direction of the path. All times in milliseconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Direction {
    /// One-way delay; see `uncertainty`. `None` if no answer carries far time stamps.
    pub delay: Option<Spread>,
    /// Without assuming equal least delays out and back, all these delays may be more, or less, by this.
    pub uncertainty: Option<f64>,
    /// Delay variation from packet to packet (RFC 3393), absolute values. Knows no clock offset.
    pub variation: Option<Spread>,
    /// Interarrival jitter at the end of the session (RFC 3550 §6.4.1).
    pub jitter: Option<f64>,
    /// Packets that overtook one another.
    pub order: Reordering,
    /// Packets that arrived more than once.
    pub duplicates: u64,
}

/// A session in figures. All times in milliseconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// From sending to the answer.
    pub round_trip: Option<Spread>,
    /// From the intended sending to the answer: what a user who keeps to the schedule waits.
    pub response: Option<Spread>,
    /// The asker's own lateness: from the intended sending to the sending.
    pub lateness: Option<Spread>,
    /// The time that the far host took between arrival and answer.
    pub turnaround: Option<Spread>,
    /// Towards the far host.
    pub out: Direction,
    /// And back.
    pub back: Direction,
    /// Losses.
    pub loss: Loss,
    /// Round trips by message size.
    pub sizes: BTreeMap<u32, Spread>,
}

fn millis(nanos: f64) -> f64 {
    nanos / 1e6
}

impl Summary {
    /// Of a session and the clock that [`Clock::relate`] found for it; `None` for no clock.
    pub fn of(observed: &Observations, clock: Option<&Clock>) -> Summary {
        let sent = observed.in_order_of_sending();
        let times = |of: fn(&Exchange) -> i64| {
            Spread::of(&sent.iter().map(|one| millis(of(one) as f64)).collect::<Vec<_>>())
        };
        let turnaround: Vec<f64> =
            sent.iter().filter_map(|one| Some(millis(one.turnaround()? as f64))).collect();
        Summary {
            round_trip: times(Exchange::round_trip),
            response: times(Exchange::response),
            lateness: times(|one| one.sent.saturating_sub(one.intended)),
            turnaround: Spread::of(&turnaround),
            out: direction(observed, &sent, clock, true),
            back: direction(observed, &sent, clock, false),
            loss: Loss::of(observed),
            sizes: by_size(observed),
        }
    }
}

fn by_size(observed: &Observations) -> BTreeMap<u32, Spread> {
    let mut sizes: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for (size, millis) in observed.round_trips() {
        sizes.entry(size).or_default().push(millis);
    }
    sizes.into_iter().filter_map(|(size, times)| Some((size, Spread::of(&times)?))).collect()
}

/// One direction: `sent` in order of sending, out or back.
fn direction(
    observed: &Observations,
    sent: &[Exchange],
    clock: Option<&Clock>,
    out: bool,
) -> Direction {
    let delay = |one: &Exchange| {
        let found = clock?.one_way(one)?;
        Some(millis(if out { found.out } else { found.back }))
    };
    let arrived = if out { observed.in_order_of_arrival() } else { observed.exchanges.clone() };
    let delays: Vec<f64> = sent.iter().filter_map(delay).collect();
    let transits: Vec<f64> = arrived.iter().filter_map(delay).collect();
    let changes: Vec<f64> =
        delay_variation(&with_gaps(sent, delay)).iter().map(|change| change.abs()).collect();
    Direction {
        delay: Spread::of(&delays),
        uncertainty: clock.and_then(|clock| widest(sent, clock)),
        variation: Spread::of(&changes),
        jitter: (transits.len() > 1).then(|| interarrival_jitter(&transits)),
        order: Reordering::of(&arrived.iter().map(|one| one.sequence).collect::<Vec<_>>()),
        duplicates: if out { observed.duplicates_out } else { observed.duplicates_back },
    }
}

/// The delays in order of sending, with `None` wherever numbers are missing.
fn with_gaps(sent: &[Exchange], delay: impl Fn(&Exchange) -> Option<f64>) -> Vec<Option<f64>> {
    let mut delays = Vec::new();
    let mut expected = sent.first().map_or(0, |one| one.sequence);
    for one in sent {
        if one.sequence > expected {
            delays.push(None);
        }
        delays.push(delay(one));
        expected = one.sequence + 1;
    }
    delays
}

fn widest(sent: &[Exchange], clock: &Clock) -> Option<f64> {
    let uncertain = |found: OneWay| millis(found.uncertainty);
    sent.iter().filter_map(|one| clock.one_way(one)).map(uncertain).reduce(f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Far, Lost, Way};

    /// Out 4 ms and 1 ms more for odd numbers, back 2 ms; number 5 is lost on the way out.
    fn session() -> Observations {
        let exchange = |sequence: u64| {
            let sent = sequence as i64 * 20_000_000;
            let there = sent + 4_000_000 + (sequence % 2) as i64 * 1_000_000;
            let far = Far { received: there, sent: there + 500_000, order: sequence };
            Exchange {
                sequence,
                size: if sequence < 4 { 10 } else { 20 },
                reply: 10,
                intended: sent - 100_000,
                sent,
                far: Some(far),
                received: there + 2_500_000,
            }
        };
        Observations {
            exchanges: (0..12).filter(|&sequence| sequence != 5).map(exchange).collect(),
            lost: vec![Lost { sequence: 5, size: 20, sent: 0, way: Some(Way::Out) }],
            duplicates_out: 2,
            duplicates_back: 0,
        }
    }

    #[test]
    fn a_session_in_figures() {
        let found = Summary::of(&session(), Some(&Clock::shared()));
        let out = found.out.delay.unwrap();
        assert_eq!((out.count, out.min, out.max), (11, 4.0, 5.0));
        assert_eq!(found.back.delay.unwrap().max, 2.0);
        assert_eq!(found.turnaround.unwrap().mean, 0.5);
        assert_eq!(found.round_trip.unwrap().min, 6.5);
        assert_eq!(found.response.unwrap().min, 6.6);
        assert!((found.lateness.unwrap().max - 0.1).abs() < 1e-12);
        // Eleven pairs of neighbours, two of which the lost message breaks.
        let variation = found.out.variation.unwrap();
        assert_eq!((variation.count, variation.min, variation.max), (9, 1.0, 1.0));
        assert_eq!(found.back.jitter, Some(0.0));
        assert_eq!((found.out.duplicates, found.loss.out.least), (2, 1));
        assert_eq!(
            found.sizes.iter().map(|(&size, of)| (size, of.count)).collect::<Vec<_>>(),
            [(10, 4), (20, 7)]
        );
        assert_eq!((found.out.uncertainty, found.out.order.reordered), (Some(0.0), 0));
    }

    #[test]
    fn without_a_clock_one_way_delays_are_not_claimed() {
        let found = Summary::of(&session(), None);
        assert!(found.out.delay.is_none() && found.out.uncertainty.is_none());
        assert!(found.round_trip.is_some());
        assert!(Summary::of(&Observations::default(), None).round_trip.is_none());
    }
}
