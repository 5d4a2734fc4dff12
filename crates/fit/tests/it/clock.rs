//! Two clocks that disagree, drift and are set, over paths that queue.

use proptest::prelude::*;
use trunkline_core::{Seed, Stream};
use trunkline_fit::{Clock, ClockError, Exchange, Far, Stamp};

/// The truth about the clocks.
#[derive(Debug, Clone, Copy)]
struct Truth {
    offset: i64,
    /// Parts in 10^9.
    drift: i64,
    /// Least delays, ns.
    out: i64,
    back: i64,
    /// Mean queueing delay, ns.
    queue: f64,
    /// From this exchange on the far clock is ahead by so many ns more.
    step: Option<(u64, i64)>,
}

const EVERY: i64 = 20_000_000;

fn wait(stream: &mut Stream, mean: f64) -> i64 {
    (-libm::log(1.0 - stream.unit()) * mean) as i64
}

fn far(truth: Truth, sequence: u64, near: Stamp) -> Stamp {
    let set = truth.step.filter(|&(from, _)| sequence >= from).map_or(0, |(_, by)| by);
    near + truth.offset + (i128::from(near) * i128::from(truth.drift) / 1_000_000_000) as i64 + set
}

fn session(truth: Truth, count: u64, stream: &mut Stream) -> Vec<Exchange> {
    (0..count)
        .map(|sequence| {
            let sent = sequence as i64 * EVERY;
            let there = sent + truth.out + wait(stream, truth.queue);
            let leaves = there + 15_000;
            let received = leaves + truth.back + wait(stream, truth.queue);
            let far = Far {
                received: far(truth, sequence, there),
                sent: far(truth, sequence, leaves),
                order: sequence,
            };
            let (size, reply) = (64, 64);
            Exchange { sequence, size, reply, intended: sent, sent, far: Some(far), received }
        })
        .collect()
}

const STEADY: Truth = Truth {
    offset: 3_600_000_000_000,
    drift: 40_000,
    out: 10_000_000,
    back: 10_000_000,
    queue: 200_000.0,
    step: None,
};

#[test]
fn the_drift_is_found_below_the_queues() {
    let exchanges = session(STEADY, 3_000, &mut Seed(1).stream("clock"));
    let clock = Clock::relate(&exchanges).unwrap();
    let [only] = clock.stretches[..] else { panic!("{clock:?}") };
    assert!((only.drift - 40e-6).abs() < 0.3e-6, "{}", only.drift);
    let right = far(STEADY, 0, only.at) - only.at;
    assert!((only.offset - right).abs() < 10_000, "{} for {right}", only.offset);
    assert!((only.uncertainty - 10_000_000.0).abs() < 100_000.0, "{}", only.uncertainty);
    assert!(only.scatter < 100_000.0);
}

#[test]
fn a_step_is_found_where_it_is_and_a_longer_path_is_none() {
    for by in [5_000_000, -1_000_000_000] {
        let truth = Truth { step: Some((400, by)), ..STEADY };
        let clock = Clock::relate(&session(truth, 1_000, &mut Seed(2).stream("clock"))).unwrap();
        let starts: Vec<i64> = clock.stretches.iter().map(|one| one.from / EVERY).collect();
        assert_eq!(starts, [0, 400], "{by}");
    }
    let mut exchanges = session(STEADY, 1_000, &mut Seed(3).stream("clock"));
    for exchange in &mut exchanges[400..] {
        let far = exchange.far.as_mut().unwrap();
        (far.received, far.sent) = (far.received + 5_000_000, far.sent + 5_000_000);
        exchange.received += 5_000_000;
    }
    assert_eq!(Clock::relate(&exchanges).unwrap().steps(), 0, "a longer way out is no step");
}

#[test]
fn an_asymmetric_path_is_within_what_is_uncertain() {
    let truth = Truth { out: 35_000_000, back: 5_000_000, ..STEADY };
    let exchanges = session(truth, 500, &mut Seed(4).stream("clock"));
    let clock = Clock::relate(&exchanges).unwrap();
    let least = exchanges.iter().filter_map(|one| clock.one_way(one)).map(|one| one.out);
    let least = least.fold(f64::INFINITY, f64::min);
    let uncertainty = clock.stretches[0].uncertainty;
    assert!((least - 20e6).abs() < 0.3e6, "half of both: {least}");
    assert!((uncertainty - 20e6).abs() < 0.3e6 && (least - 35e6).abs() < uncertainty);
}

#[test]
fn without_far_stamps_nothing_is_claimed() {
    let mut exchanges = session(STEADY, 3, &mut Seed(5).stream("clock"));
    exchanges.iter_mut().for_each(|one| one.far = None);
    assert_eq!(Clock::relate(&exchanges), Err(ClockError::NoFarStamps));
    assert_eq!(Clock::shared().one_way(&exchanges[0]), None);
    assert_eq!(Clock::relate(&[]), Err(ClockError::NoFarStamps));
}

#[test]
fn one_clock_needs_no_estimate() {
    let truth = Truth { offset: 0, drift: 0, queue: 0.0, out: 7_000_000, ..STEADY };
    let exchanges = session(truth, 3, &mut Seed(5).stream("clock"));
    let found = Clock::shared().one_way(&exchanges[2]).unwrap();
    assert_eq!((found.out, found.back, found.uncertainty), (7e6, 10e6, 0.0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn the_truth_is_within_the_band(
        offset in -1_000_000_000_000_000_000i64..1_000_000_000_000_000_000,
        drift in -200_000i64..200_000,
        (out, back) in (100_000i64..200_000_000, 100_000i64..200_000_000),
        (queue, seed) in (0.0..2e6f64, 0u64..1000),
    ) {
        let truth = Truth { offset, drift, out, back, queue, step: None };
        let exchanges = session(truth, 200, &mut Seed(seed).stream("clock"));
        let clock = Clock::relate(&exchanges).unwrap();
        prop_assert_eq!(clock.steps(), 0);
        for exchange in &exchanges {
            let found = clock.one_way(exchange).unwrap();
            let far_there = exchange.far.unwrap().received;
            // The far clock's reading, taken back to the near clock.
            let truth_there = (i128::from(far_there) - i128::from(offset)) * 1_000_000_000
                / (1_000_000_000 + i128::from(drift));
            let right = (truth_there - i128::from(exchange.sent)) as f64;
            // The line's own error over the session, in addition: the queues hide the drift.
            let allowed = found.uncertainty + 2.0 * queue + 1_000.0;
            prop_assert!((found.out - right).abs() <= allowed, "{} for {right}", found.out);
            prop_assert!(found.out >= -1_000.0 && found.back >= -1_000.0);
            let sum = found.out + found.back - exchange.on_the_path() as f64;
            prop_assert!(sum.abs() < 1e-3 * exchange.round_trip() as f64 + 1_000.0);
        }
    }
}
