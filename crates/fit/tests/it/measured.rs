//! Round trips measured with `trunkline probe` over emulated paths, on a busy machine.

use std::path::Path;
use trunkline_core::Seed;
use trunkline_fit::{Fitted, Known, Line, Opens, PathFit, Pattern};
use trunkline_measure::Interval;

fn samples(name: &str) -> Vec<(u32, f64)> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/measured").join(name);
    let text = std::fs::read_to_string(file).unwrap();
    let row = |line: &str| {
        let (size, nanos) = line.split_once(',').unwrap();
        (size.parse().unwrap(), nanos.parse::<f64>().unwrap() / 1e6)
    };
    text.lines().skip(1).map(row).collect()
}

/// URP in datagrams over IPv4: 28 octets of headers, 40 of ours, and 19 or 7 of envelopes' frames.
fn urp(block: u32) -> Known {
    Known {
        block: Some(block),
        overhead: Some(87),
        answer: Some(75),
        opens: Some(Opens::ByBlock),
        ..Known::only(Pattern::Echo)
    }
}

/// 1 Mbit/s, 5 ms each way, three blocks of 200 octets. Behind the first jump the hosts, which others
/// used as well, were late by milliseconds, for seconds at a time: sizes measured then lie apart from those
/// beside them.
#[test]
fn hosts_that_are_late_for_seconds_do_not_hide_the_window() {
    let fit = PathFit::of(&samples("urp-600-1mbit-5ms.csv"), urp(200), Seed(1));
    assert_eq!(fit.window, Ok(600));
    let rate = fit.rate.unwrap().value;
    assert!((rate / 1e6 - 1.0).abs() < 0.05, "{rate}");
}

/// 20 Mbit/s, 2 ms each way, one block of 64 octets: its jumps show, but the 26 microseconds that the line
/// takes for it are less than the hosts' noise. Then the rate is not told, or it is right.
#[test]
fn a_window_too_small_to_tell_the_rate_is_found() {
    let samples = samples("urp-64-20mbit-2ms.csv");
    let fit = PathFit::of(&samples, urp(64), Seed(1));
    assert_eq!(fit.window, Ok(64));
    assert!(
        fit.rate.as_ref().is_ok_and(|rate| (rate.value / 20e6 - 1.0).abs() < 0.05)
            || fit.rate.is_err()
    );
    let line = Line { byte: fitted(4e-4, 0.01), trip: fitted(4.02, 0.01), ways: None };
    let with = PathFit::of(&samples, Known { line: Some(line), ..urp(64) }, Seed(1));
    let (rate, delay) = (with.rate.unwrap().value, with.delay.unwrap().value);
    assert!((rate / 20e6 - 1.0).abs() < 0.05 && (delay / 2.0 - 1.0).abs() < 0.05, "{rate} {delay}");
}

fn fitted(value: f64, share: f64) -> Fitted {
    Fitted { value, interval: Interval { low: value * (1.0 - share), high: value * (1.0 + share) } }
}
