//! Paths drawn by chance, simulated, measured with noise, and found again.

mod lab;
mod tcp;

use lab::{Path, measure, noise};
use std::collections::BTreeMap;
use tcp::TcpPath;
use trunkline_core::{Seed, Stream};
use trunkline_fit::{CannotTell, Fitted, Known, Opens, Over, PathFit, Pattern, Sweep, Wanted};
use trunkline_measure::Interval;

/// Log-uniform.
fn between(stream: &mut Stream, low: f64, high: f64) -> f64 {
    low * libm::exp(stream.unit() * libm::log(high / low))
}

fn drawn(stream: &mut Stream) -> Path {
    let outstanding = 1 + stream.below(7) as u32;
    let least = f64::from(64u32.div_ceil(outstanding));
    Path {
        rate: between(stream, 56e3, 1e9) as u64,
        delay_us: between(stream, 500.0, 300_000.0) as u64,
        block: between(stream, least, 4096.0) as u32,
        outstanding,
        write_us: stream.below(500),
        // Every other reader costs something each time it is woken, which bends the curve.
        read_us: if stream.below(2) == 0 { 0 } else { stream.below(200) },
        reply: if stream.below(2) == 0 { None } else { Some(1) },
    }
}

fn known(path: &Path) -> Known {
    Known {
        block: Some(path.block),
        overhead: Some(4),
        answer: Some(1),
        opens: Some(Opens::ByBlock),
        ..Known::only(path.pattern())
    }
}

/// Whether it is told, and right. Told and wrong is an error.
fn right(
    what: &str,
    found: &Result<Fitted, CannotTell>,
    truth: f64,
    of: &impl std::fmt::Debug,
) -> bool {
    let Ok(found) = found else { return false };
    let off = found.value / truth - 1.0;
    assert!(off.abs() < 0.05, "{what} {} is not {truth}: {of:?}", found.value);
    true
}

#[test]
fn paths_drawn_by_chance_are_found_again() {
    let mut stream = Seed(2024).stream("paths");
    let mut told = [0; 3];
    for index in 0..60 {
        let path = drawn(&mut stream);
        let samples = measure(&path, &Sweep::default(), &mut noise(index));
        let fit = PathFit::of(&samples, known(&path), Seed(index));
        let window = fit.window.as_ref().is_ok_and(|&found| found == path.window());
        assert!(window || fit.window.is_err(), "{:?} {path:?}", fit.window);
        let rate = right("rate", &fit.rate, path.rate as f64, &path);
        let delay = right("delay", &fit.delay, path.delay_us as f64 / 1e3, &path);
        assert!(window || !path.window_shows(), "{:?} {path:?}", fit.window);
        assert!(rate || !path.rate_shows(), "{:?} {path:?}", fit.rate);
        assert!(delay || !path.window_shows() || path.bent(), "{:?} {path:?}", fit.delay);
        for (count, it) in told.iter_mut().zip([window, rate, delay]) {
            *count += u32::from(it);
        }
    }
    assert!(told[0] >= 40 && told[1] >= 30 && told[2] >= 35, "{told:?}");
}

#[test]
fn nothing_known_is_no_reason_to_guess() {
    let mut stream = Seed(2025).stream("paths");
    let mut told = [0; 3];
    for index in 0..40 {
        let path = drawn(&mut stream);
        let samples = measure(&path, &Sweep::default(), &mut noise(index));
        let fit = PathFit::of(&samples, Known::only(path.pattern()), Seed(index));
        let window = fit.window.as_ref().is_ok_and(|&found| found == path.window());
        assert!(window || fit.window.is_err(), "{:?} {path:?}", fit.window);
        // Headers that nobody told of and that do not show are part of what a user byte costs.
        let header_share = 4.0 / f64::from(path.block + 4);
        let rate = fit.rate.as_ref().is_ok_and(|found| {
            let share = found.value / path.rate as f64;
            assert!((0.95 - header_share..1.05).contains(&share), "{share} {path:?}");
            true
        });
        let delay = right("delay", &fit.delay, path.delay_us as f64 / 1e3, &path);
        for (count, it) in told.iter_mut().zip([window, rate, delay]) {
            *count += u32::from(it);
        }
    }
    assert!(told[0] >= 20 && told[1] >= 15 && told[2] >= 15, "{told:?}");
}

#[test]
fn a_receive_window_that_segments_do_not_fill_is_found() {
    let mut stream = Seed(2026).stream("tcp");
    let mut told = [0; 3];
    for index in 0..30 {
        let path = TcpPath {
            rate: between(&mut stream, 56e3, 1e9),
            delay: between(&mut stream, 0.5, 300.0),
            window: between(&mut stream, 2_000.0, 65_535.0) as u32,
            host: between(&mut stream, 0.01, 1.0),
            echo: stream.below(2) == 0,
        };
        let samples = tcp::measure(&path, &Sweep::default(), &mut noise(index));
        let known = Known {
            block: Some(tcp::SEGMENT),
            overhead: Some(tcp::HEADERS),
            answer: Some(tcp::HEADERS),
            opens: Some(Opens::ByBlock),
            ..Known::only(if path.echo { Pattern::Echo } else { Pattern::Short })
        };
        let fit = PathFit::of(&samples, known, Seed(index));
        let window = fit.window.as_ref().is_ok_and(|&found| found == path.window);
        assert!(window || fit.window.is_err(), "{:?} {path:?}", fit.window);
        let rate = right("rate", &fit.rate, path.rate, &path);
        let delay = right("delay", &fit.delay, path.delay, &path);
        for (count, it) in told.iter_mut().zip([window, rate, delay]) {
            *count += u32::from(it);
        }
    }
    assert!(told[0] >= 15 && told[1] >= 20 && told[2] >= 15, "{told:?}");
}

/// The level that the fit uses for a size: the mean of the lower half.
fn levels(samples: &[(u32, f64)]) -> BTreeMap<u32, f64> {
    let mut sizes: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for &(size, millis) in samples {
        sizes.entry(size).or_default().push(millis);
    }
    let lower = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        trunkline_measure::mean(&values[..values.len().div_ceil(2)])
    };
    sizes.into_iter().map(|(size, values)| (size, lower(values))).collect()
}

fn wanted(samples: &[(u32, f64)]) -> Wanted {
    let sizes = levels(samples).into_keys().collect();
    Wanted {
        name: "a \"path\"".into(),
        about: "drawn\nby chance".into(),
        sizes,
        repeat: 1,
        reply: 1,
        over: Over::Urp,
    }
}

/// Simulates what was written and compares it with what was measured.
fn reproduces(fit: &PathFit, samples: &[(u32, f64)], of: &impl std::fmt::Debug) -> bool {
    let Ok(written) = fit.scenario(&wanted(samples)) else { return false };
    let simulated = lab::simulated(&written.text);
    for (size, millis) in levels(samples) {
        let off = (simulated[&size] - millis).abs();
        assert!(
            off <= written.error + 0.001,
            "{size} {off} {} {of:?}\n{}",
            written.error,
            written.text
        );
    }
    true
}

#[test]
fn a_scenario_written_from_a_fit_reproduces_the_measurement() {
    let mut stream = Seed(2027).stream("paths");
    let mut written = 0;
    for index in 0..30 {
        let path = drawn(&mut stream);
        let samples = measure(&path, &Sweep::default(), &mut noise(index));
        for known in [known(&path), Known::only(path.pattern())] {
            let fit = PathFit::of(&samples, known, Seed(index));
            written += u32::from(reproduces(&fit, &samples, &path));
        }
    }
    assert!(written >= 55, "{written}");
}

/// A line that is never idle has no jumps. What the hosts spend, measured apart, then tells the distance.
#[test]
fn without_jumps_the_hosts_cost_tells_the_distance() {
    let path = Path {
        rate: 200_000,
        delay_us: 5_000,
        block: 512,
        outstanding: 7,
        write_us: 200,
        read_us: 0,
        reply: None,
    };
    let samples = measure(&path, &Sweep::default(), &mut noise(1));
    let without = PathFit::of(&samples, known(&path), Seed(1));
    assert!(matches!(without.window, Err(CannotTell::NoJump { largest, .. }) if largest > 8_000));
    let Err(CannotTell::TooWide { low, high, .. }) = without.delay else { panic!("{without:?}") };
    assert!(low == 0.0 && (5.0..5.5).contains(&high), "{low} {high}");
    let measured = Interval { low: 0.35, high: 0.45 };
    let with =
        PathFit::of(&samples, Known { per_message: Some(measured), ..known(&path) }, Seed(1));
    assert!(right("delay", &with.delay, 5.0, &path), "{:?}", with.delay);
}
