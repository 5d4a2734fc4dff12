//! The formulas that studies may name, with their parameters; values are in base units.

use std::collections::BTreeMap;
use thiserror::Error;
use trunkline_core::{Rate, Span};
use trunkline_model::Throughput;
use trunkline_model::formula::fairness::{self, Policy};
use trunkline_model::formula::{
    hawley1989 as h89, lambert1987 as l87, mosberger1994 as m94, tcp, vandewater1988 as v88,
};

/// Why a formula has no value.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FormulaError {
    /// No such formula.
    #[error("there is no formula {found}: the formulas are {known}")]
    Unknown {
        /// What was asked for.
        found: String,
        /// All names.
        known: String,
    },
    /// Other parameters than it takes.
    #[error("the formula {formula} takes {expected}, not {found}")]
    Parameters {
        /// The formula.
        formula: String,
        /// Its parameters.
        expected: String,
        /// The parameters given.
        found: String,
    },
}

/// A formula's name, its parameters in order, and the function.
type Formula = (&'static str, &'static [&'static str], fn(&[f64]) -> f64);

/// Every formula; the names say the report (H89, L87, M94, V88) and the functions' documentation the section.
const FORMULAS: &[Formula] = &[
    ("ratio", &["a", "b"], |v| v[0] / v[1]),
    ("difference", &["a", "b"], |v| v[0] - v[1]),
    ("sum", &["a", "b"], |v| v[0] + v[1]),
    ("product", &["a", "b"], |v| v[0] * v[1]),
    ("minimum", &["a", "b"], |v| v[0].min(v[1])),
    // The square-root model after Floyd 1991, as worked out in trunkline_model::formula::fairness.
    ("tcp-share-of-longer", &["ratio", "exponent"], |v| fairness::share_of_longer(v[0], v[1])),
    ("tcp-window-limit", &["window", "round_trip", "queue"], |v| {
        rate_of(tcp::window_limit(whole(v[0]), span(v[1]), span(v[2])))
    }),
    ("tcp-effective-ratio", &["long", "short", "queue"], |v| {
        fairness::effective_ratio(span(v[0]), span(v[1]), span(v[2]))
    }),
    // Both connections have windows of `window` bytes, and what a cap leaves goes to the other.
    ("tcp-goodput-of-longer", CAPPED, |v| capped(v, 0)),
    ("tcp-goodput-of-shorter", CAPPED, |v| capped(v, 1)),
    ("tcp-window-limited-share", &["window", "long", "short", "capacity"], |v| {
        window_limited_share(whole(v[0]), [span(v[1]), span(v[2])], v[3])
    }),
    // Both are 0 or 1.
    ("m94-cycles", &["careful", "sending"], |v| f64::from(m94::cycles(v[0] != 0.0, v[1] != 0.0))),
    ("m94-operations", &["careful"], |v| m94::operations(v[0] != 0.0).as_secs_f64()),
    ("h89-round-robin-throughput", &["quantum", "block"], |v| {
        rate_of(h89::round_robin_throughput(finite(v[0]), finite(v[1])))
    }),
    ("h89-in-memory-delay", &["channels", "quantum"], |v| {
        seconds(h89::in_memory_delay(whole(v[0]), whole(v[1])))
    }),
    ("h89-fifo-drain-rate", &["quantum"], |v| rate_of(h89::fifo_drain_rate(whole(v[0])))),
    ("h89-drain-time", &["envelopes", "rate"], |v| {
        seconds(h89::drain_time(whole(v[0]), throughput(v[1])))
    }),
    ("h89-round-robin-delay-bound", &["input_fifo", "output_fifo"], |v| {
        seconds(h89::round_robin_delay_bound(whole(v[0]), whole(v[1])))
    }),
    ("h89-unloaded-delay", &["bytes"], |v| seconds(h89::unloaded_delay(whole(v[0])))),
    ("h89-queued-ahead", &["delay", "full_delay", "fifo"], |v| {
        h89::queued_ahead(span(v[0]), span(v[1]), whole(v[2])) as f64
    }),
    ("l87-frame-bits", &["symbols"], |v| l87::bits(whole(v[0])) as f64),
    ("l87-bandwidth", &["bits", "interval"], |v| {
        l87::bandwidth(whole(v[0]), span(v[1])).bits_per_second() as f64 / 8.0
    }),
    ("l87-control-subframe", &["stations"], |v| l87::control_subframe(whole(v[0])) as f64),
    ("l87-data-subframe", &["stations"], |v| l87::data_subframe(whole(v[0])) as f64),
    ("l87-data-limit", &["stations"], |v| l87::data_limit(whole(v[0])) as f64),
    ("l87-data-after-headers", &["stations"], |v| l87::data_after_headers(whole(v[0])) as f64),
    ("l87-usable-bits", &["stations"], |v| l87::usable_bits(whole(v[0])) as f64),
    ("l87-usable-bytes", &["stations"], |v| l87::usable_bytes(whole(v[0])) as f64),
    ("l87-packets-per-frame", &["stations", "bytes"], |v| {
        l87::packets_per_frame(whole(v[0]), whole(v[1])) as f64
    }),
    ("l87-best-throughput", &["stations"], |v| {
        l87::best_throughput(whole(v[0])).bits_per_second() as f64 / 8.0
    }),
    ("v88-propagation", &["miles"], |v| seconds(v88::propagation(whole(v[0])))),
    ("v88-transmission", &["bytes", "rate"], |v| {
        seconds(v88::transmission(whole(v[0]), Rate::from_bits_per_second(whole(v[1]))))
    }),
    ("v88-round-trip", &["transmission", "response"], |v| {
        seconds(v88::round_trip(span(v[0]), span(v[1])))
    }),
    ("v88-round-trip-small-window", &["bytes", "window", "response"], |v| {
        seconds(v88::round_trip_small_window(whole(v[0]), whole(v[1]), span(v[2])))
    }),
    ("v88-round-trip-local", &["bytes", "response"], |v| {
        seconds(v88::round_trip_local(whole(v[0]), span(v[1])))
    }),
    ("v88-round-trip-one-window", &["bytes", "response"], |v| {
        seconds(v88::round_trip_one_window(whole(v[0]), span(v[1])))
    }),
    ("v88-measured-throughput", &["size", "large", "empty"], |v| {
        rate_of(v88::measured_throughput(whole(v[0]), span(v[1]), span(v[2])))
    }),
    ("v88-maximum-throughput", &["window", "round_trip"], |v| {
        rate_of(v88::maximum_throughput(whole(v[0]), span(v[1])))
    }),
    ("v88-effective-window", &["measured", "round_trip"], |v| {
        v88::effective_window_millibytes(throughput(v[0]), span(v[1])) as f64 / 1e3
    }),
    ("v88-correction", &["window", "measured", "round_trip"], |v| {
        seconds(v88::correction(whole(v[0]), throughput(v[1]), span(v[2])))
    }),
];

/// What [`capped`] takes, in order.
const CAPPED: &[&str] = &["exponent", "window", "long", "short", "queue", "capacity"];

/// What two connections get of a capacity in bytes a second by the square-root model, weights 1/r^α of their
/// round trips without the queue, none above its window in each round trip with the queue; the one with the
/// longer round trip is number 0.
fn capped(v: &[f64], which: usize) -> f64 {
    let (window, queue) = (whole(v[1]), span(v[4]));
    let trips = [span(v[2]), span(v[3])];
    let weights = fairness::shares(Policy::IncreaseByOne, &trips, v[0]);
    let caps = trips.map(|trip| tcp::window_limit(window, trip, queue));
    rate_of(fairness::capped(&weights, &caps, throughput(v[5]))[which])
}

/// The first one's part of what two connections get whose windows stand in a buffer that loses nothing.
fn window_limited_share(window: u64, trips: [Span; 2], capacity: f64) -> f64 {
    let rate = Rate::from_bits_per_second(whole(capacity * 8.0));
    let (_, each) = fairness::window_limited(&trips.map(|trip| (window, trip)), rate);
    rate_of(each[0]) / (rate_of(each[0]) + rate_of(each[1]))
}

fn seconds(span: Span) -> f64 {
    span.as_secs_f64()
}

fn rate_of(throughput: Throughput) -> f64 {
    throughput.millibytes_per_second() as f64 / 1e3
}

fn whole(number: f64) -> u64 {
    number.round() as u64
}

fn finite(number: f64) -> Option<u32> {
    number.is_finite().then_some(number.round() as u32)
}

fn span(seconds: f64) -> Span {
    Span::from_nanos((seconds * 1e9).round() as u64)
}

fn throughput(bytes_per_second: f64) -> Throughput {
    Throughput::from_millibytes_per_second((bytes_per_second * 1e3).round() as u64)
}

/// The value of the formula `name`, in base units.
///
/// # Errors
/// If there is no such formula, or the arguments are not exactly its parameters.
pub fn evaluate(name: &str, arguments: &BTreeMap<String, f64>) -> Result<f64, FormulaError> {
    let (_, parameters, function) = find(name)?;
    check(name, parameters, arguments.keys().map(String::as_str))?;
    let values: Vec<f64> = parameters.iter().map(|&parameter| arguments[parameter]).collect();
    Ok(function(&values))
}

/// Checks that there is a formula `name` that takes exactly these arguments.
///
/// # Errors
/// As [`evaluate`].
pub fn known<'a>(name: &str, given: impl Iterator<Item = &'a str>) -> Result<(), FormulaError> {
    check(name, find(name)?.1, given)
}

fn find(name: &str) -> Result<Formula, FormulaError> {
    FORMULAS.iter().find(|formula| formula.0 == name).copied().ok_or_else(|| {
        FormulaError::Unknown {
            found: name.into(),
            known: FORMULAS.iter().map(|formula| formula.0).collect::<Vec<_>>().join(", "),
        }
    })
}

fn check<'a>(
    formula: &str,
    parameters: &[&str],
    given: impl Iterator<Item = &'a str>,
) -> Result<(), FormulaError> {
    let mut given: Vec<&str> = given.collect();
    let mut expected = parameters.to_vec();
    given.sort_unstable();
    expected.sort_unstable();
    if given == expected {
        return Ok(());
    }
    let list = |words: &[&str]| match words.is_empty() {
        true => "nothing".to_string(),
        false => words.join(", "),
    };
    Err(FormulaError::Parameters {
        formula: formula.into(),
        expected: list(parameters),
        found: list(&given),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str, arguments: &[(&str, f64)]) -> Result<f64, FormulaError> {
        evaluate(name, &arguments.iter().map(|(key, value)| ((*key).into(), *value)).collect())
    }

    #[test]
    fn published_examples_come_out() {
        let near = |value: f64, printed: f64, half: f64| {
            assert!((value - printed).abs() <= half, "{value}")
        };
        near(
            of("h89-round-robin-throughput", &[("quantum", 64.0), ("block", 256.0)]).unwrap(),
            162_755.0,
            1.0,
        );
        let unlimited = &[("quantum", 64.0), ("block", f64::INFINITY)];
        near(of("h89-round-robin-throughput", unlimited).unwrap(), 170_667.0, 1.0);
        near(
            of("h89-in-memory-delay", &[("channels", 2.0), ("quantum", 64.0)]).unwrap(),
            158e-6,
            1e-6,
        );
        near(
            of("h89-round-robin-delay-bound", &[("input_fifo", 4e3), ("output_fifo", 1e3)])
                .unwrap(),
            11.3e-3,
            1e-4,
        );
        near(of("v88-propagation", &[("miles", 3000.0)]).unwrap(), 24.15e-3, 2e-5);
        near(
            of("v88-effective-window", &[("measured", 2066.9), ("round_trip", 0.04)]).unwrap(),
            82.68,
            0.01,
        );
    }

    #[test]
    fn wrong_names_and_parameters_are_told_with_the_right_ones() {
        assert!(of("h89", &[]).unwrap_err().to_string().contains("v88-correction"));
        let wrong = of("ratio", &[("a", 1.0)]).unwrap_err().to_string();
        assert_eq!(wrong, "the formula ratio takes a, b, not a");
    }
}
