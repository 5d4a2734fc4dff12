//! What an experiment reads from a run: one value for each size, or one for the run.

use crate::format::{Measure, Share, Statistic};
use std::collections::BTreeMap;
use trunkline_core::Cause;
use trunkline_engine::Run;
use trunkline_measure::{Estimate, Estimator, Sample, TrafficRun};

/// A value of a run in base units, with the message size to which it belongs if the experiment has one
/// for each size; or why there is none.
pub type Reading = (Option<u64>, Result<f64, String>);

/// Reads what `measure` asks for from the traffic called `traffic`.
///
/// # Errors
/// If the run has no such traffic, or the measure is a formula, which no run has.
pub fn extract(
    run: &Run,
    traffic: &str,
    measure: &Measure,
    by_size: bool,
) -> Result<Vec<Reading>, String> {
    let found = run.traffic.iter().find(|found| found.name == traffic);
    let found = found.ok_or_else(|| format!("the run has no traffic {traffic}"))?;
    if !found.samples.is_whole() {
        return Err(format!(
            "{traffic} has {} measurements of which {} are kept, and the study's rules want all: give the scenario samples = \"all\"",
            found.samples.count(),
            found.samples.len()
        ));
    }
    match measure {
        Measure::Formula { formula, .. } => Err(format!("{formula} is a formula: it has no runs")),
        Measure::Verify { .. } => Err("a verification is no run".into()),
        Measure::PathDelay => Ok(vec![(None, path_delay(found))]),
        Measure::Retransmissions => Ok(vec![(None, Ok(found.retransmissions as f64))]),
        Measure::Lost => Ok(vec![(None, found.packets.lost().ok_or("no packet was sent".into()))]),
        Measure::Distribution { size, range_us } => distribution(found, *size, range_us.get()),
        _ if by_size => Ok(each_size(found, |samples| read(samples, measure))),
        _ => Ok(vec![(None, read(&found.samples.iter().collect::<Vec<_>>(), measure))]),
    }
}

fn each_size(
    traffic: &TrafficRun,
    read: impl Fn(&[&Sample]) -> Result<f64, String>,
) -> Vec<Reading> {
    let mut sizes: BTreeMap<u64, Vec<&Sample>> = BTreeMap::new();
    for sample in &traffic.samples {
        sizes.entry(sample.size).or_default().push(sample);
    }
    sizes.into_iter().map(|(size, samples)| (Some(size), read(&samples))).collect()
}

/// How many messages of a size took how long, for each range of times that occurs.
fn distribution(traffic: &TrafficRun, size: u64, range_us: u64) -> Result<Vec<Reading>, String> {
    let mut counts: BTreeMap<u64, u32> = BTreeMap::new();
    for sample in traffic.samples.iter().filter(|sample| sample.size == size) {
        let micros = sample.delay().as_nanos() / 1000;
        *counts.entry(micros / range_us * range_us).or_default() += 1;
    }
    match counts.is_empty() {
        true => Err(format!("no message of {size} bytes was measured")),
        false => {
            Ok(counts.into_iter().map(|(from, count)| (Some(from), Ok(count.into()))).collect())
        }
    }
}

fn read(samples: &[&Sample], measure: &Measure) -> Result<f64, String> {
    match measure {
        Measure::Delay { estimator, statistic } => {
            let delays: Vec<f64> =
                samples.iter().map(|sample| sample.delay().as_secs_f64()).collect();
            estimate(estimator, &delays).and_then(|found| of(&found, *statistic))
        }
        Measure::Throughput { of: share, estimator, statistic } => {
            throughput(samples, *share, estimator, *statistic)
        }
        Measure::Interval => rate(samples).map(|rate| 1.0 / rate),
        Measure::MessageRate => rate(samples),
        Measure::MessageThroughput => {
            let size = samples.first().map_or(0, |sample| sample.size);
            rate(samples).map(|rate| rate * size as f64)
        }
        Measure::Formula { .. }
        | Measure::Retransmissions
        | Measure::Lost
        | Measure::PathDelay
        | Measure::Distribution { .. }
        | Measure::Verify { .. } => Err("not read from samples".into()),
    }
}

/// Mean of what all blocks together waited for between the hosts.
fn path_delay(traffic: &TrafficRun) -> Result<f64, String> {
    let on_the_way = [Cause::Queue, Cause::Transmit, Cause::Propagate];
    let steps = traffic.blocks.iter().filter(|step| on_the_way.contains(&step.cause));
    let total: f64 = steps.map(|step| step.span.as_secs_f64()).sum();
    match traffic.block_count {
        0 => Err("no block was delivered".into()),
        count => Ok(total / count as f64),
    }
}

fn estimate(estimator: &str, values: &[f64]) -> Result<Estimate, String> {
    let rule: Estimator = estimator.parse().map_err(|error| format!("{error}"))?;
    let none = || format!("{estimator} leaves none of {} measurements", values.len());
    rule.point(values).ok_or_else(none)
}

fn of(found: &Estimate, statistic: Statistic) -> Result<f64, String> {
    Ok(match statistic {
        Statistic::Mean => found.value,
        Statistic::StdDev => found.deviation,
        Statistic::MeanOverStdDev if found.deviation == 0.0 => {
            return Err(format!(
                "all {} values are equal: nothing is spread to divide by",
                found.good
            ));
        }
        Statistic::MeanOverStdDev => found.ratio(),
        Statistic::Eliminated => found.bad as f64,
    })
}

/// Each flow's figure, then their sum or mean. The estimator is applied to the rates of the transfers; for
/// `minimum` to their times, so that it names the fastest transfer (Vande Water 1988, section 3.5.1).
fn throughput(
    samples: &[&Sample],
    share: Share,
    estimator: &str,
    statistic: Statistic,
) -> Result<f64, String> {
    let flows = by_flow(samples);
    let fastest = estimator.parse() == Ok(Estimator::Minimum);
    let figure = |samples: &Vec<&Sample>| {
        let rates: Vec<f64> = samples.iter().map(|sample| sample.rate()).collect();
        match fastest {
            true => Ok(rates.iter().copied().fold(f64::NEG_INFINITY, f64::max)),
            false => estimate(estimator, &rates).and_then(|found| of(&found, statistic)),
        }
    };
    let figures = flows.values().map(figure).collect::<Result<Vec<f64>, String>>()?;
    let sum: f64 = figures.iter().sum();
    match (share, figures.len()) {
        (_, 0) => Err("no transfer was completed".into()),
        (Share::Total, _) => Ok(sum),
        (Share::Flow, count) => Ok(sum / count as f64),
    }
}

fn by_flow<'a>(samples: &[&'a Sample]) -> BTreeMap<u32, Vec<&'a Sample>> {
    let mut flows: BTreeMap<u32, Vec<&Sample>> = BTreeMap::new();
    for sample in samples {
        flows.entry(sample.flow).or_default().push(sample);
    }
    flows
}

/// Samples a second from the first's start to the last's end, all flows together.
fn rate(samples: &[&Sample]) -> Result<f64, String> {
    let start = samples.iter().map(|sample| sample.start).min();
    let end = samples.iter().map(|sample| sample.end).max();
    let (Some(start), Some(end)) = (start, end) else { return Err("nothing was measured".into()) };
    let seconds = end.since(start).as_secs_f64();
    match seconds > 0.0 {
        true => Ok(samples.len() as f64 / seconds),
        false => Err("the measurements took no time".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trunkline_core::Time;

    fn sample(flow: u32, size: u64, start: u64, end: u64) -> Sample {
        let at = |millis: u64| Time::from_nanos(millis * 1_000_000);
        Sample {
            flow,
            index: 0,
            size,
            intended: at(start),
            start: at(start),
            end: at(end),
            steps: Default::default(),
        }
    }

    fn reading(samples: Vec<Sample>, measure: &str, by_size: bool) -> Vec<Reading> {
        let measure: Measure = toml::from_str(measure).unwrap();
        let traffic =
            TrafficRun { name: "x".into(), samples: samples.into(), ..TrafficRun::default() };
        extract(&crate::testing::run(vec![traffic]), "x", &measure, by_size).unwrap()
    }

    #[test]
    fn delays_are_read_for_each_size() {
        let samples = vec![sample(0, 64, 0, 5), sample(0, 1, 10, 13), sample(0, 64, 20, 27)];
        let found = reading(samples, "kind = 'delay'\nestimator = 'mean'", true);
        assert_eq!(found, [(Some(1), Ok(0.003)), (Some(64), Ok(0.006))]);
    }

    #[test]
    fn a_distribution_counts_the_messages_of_one_size_in_ranges() {
        let samples = || {
            let took = [(0, 5), (10, 15), (20, 27), (40, 51)];
            let of = |size| move |&(start, end): &(u64, u64)| sample(0, size, start, end);
            [took.iter().map(of(64)).collect::<Vec<_>>(), took[..1].iter().map(of(1)).collect()]
                .concat()
        };
        let measure = |size: u32| format!("kind = 'distribution'\nsize = {size}\nrange_us = 2000");
        let found = reading(samples(), &measure(64), false);
        let expected = [(4000, 2.0), (6000, 1.0), (10_000, 1.0)];
        assert_eq!(found, expected.map(|(from, count)| (Some(from), Ok(count))));
        let traffic =
            TrafficRun { name: "x".into(), samples: samples().into(), ..TrafficRun::default() };
        let none = toml::from_str(&measure(2)).unwrap();
        let run = crate::testing::run(vec![traffic]);
        assert!(extract(&run, "x", &none, false).unwrap_err().contains("no message of 2 bytes"));
    }

    #[test]
    fn throughput_is_that_of_the_flows_together_or_of_one() {
        let samples =
            || vec![sample(0, 1000, 0, 100), sample(1, 1000, 0, 200), sample(1, 1000, 200, 400)];
        let total = reading(samples(), "kind = 'throughput'\nestimator = 'mean'", false);
        assert_eq!(total, [(None, Ok(15_000.0))]);
        let flow =
            reading(samples(), "kind = 'throughput'\nof = 'flow'\nestimator = 'mean'", false);
        assert_eq!(flow, [(None, Ok(7_500.0))]);
        let fastest =
            reading(samples(), "kind = 'throughput'\nof = 'flow'\nestimator = 'minimum'", false);
        assert_eq!(fastest, [(None, Ok(7_500.0))]);
    }

    #[test]
    fn intervals_are_from_start_to_start() {
        let samples = || vec![sample(0, 100, 0, 40), sample(0, 100, 50, 100)];
        assert_eq!(reading(samples(), "kind = 'interval'", true), [(Some(100), Ok(0.05))]);
        assert_eq!(reading(samples(), "kind = 'message-rate'", true), [(Some(100), Ok(20.0))]);
        assert_eq!(
            reading(samples(), "kind = 'message-throughput'", true),
            [(Some(100), Ok(2000.0))]
        );
    }

    #[test]
    fn nothing_is_divided_by_a_spread_of_rounding() {
        // 13 ms eleven times: the sum of such numbers is no exact multiple of one.
        let each = |index: u64| sample(0, 1, index * 100, index * 100 + 13);
        let samples = || (0..11).map(each).collect::<Vec<Sample>>();
        let ratio = "kind = 'delay'\nestimator = 'mean'\nstatistic = 'mean-over-std-dev'";
        let found = reading(samples(), ratio, true);
        assert!(found[0].1.as_ref().unwrap_err().contains("all 11 values are equal"), "{found:?}");
        let other = [samples(), vec![sample(0, 1, 9000, 9026)]].concat();
        assert!(
            reading(other, ratio, true)[0]
                .1
                .as_ref()
                .is_ok_and(|ratio| (1.0..10.0).contains(ratio))
        );
    }

    #[test]
    fn what_cannot_be_read_says_why() {
        let found = reading(vec![], "kind = 'throughput'\nestimator = 'mean'", false);
        assert!(found[0].1.as_ref().unwrap_err().contains("no transfer"));
        let few =
            reading(vec![sample(0, 1, 0, 1)], "kind = 'delay'\nestimator = 'hawley-average'", true);
        assert!(few[0].1.as_ref().unwrap_err().contains("leaves none of 1"));
    }
}
