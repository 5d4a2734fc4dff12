//! Paths drawn by chance, simulated, measured with noise, and found again.

mod lab;
mod tcp;

use lab::{Path, measure, noise};
use tcp::TcpPath;
use trunkline_core::{Seed, Stream};
use trunkline_fit::{CannotTell, Fitted, Known, Opens, PathFit, Pattern, Sweep};

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

/// Is it told, and right? Told and wrong is an error.
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
        println!("{index} {path:?} {} {} {rate} {delay}", path.line_ms(), path.window_shows());
        assert!(rate || !path.rate_shows(), "{:?} {path:?}", fit.rate);
        assert!(delay || !path.window_shows() || path.bent(), "{:?} {path:?}", fit.delay);
        for (count, it) in told.iter_mut().zip([window, rate, delay]) {
            *count += u32::from(it);
        }
    }
    println!("{told:?}");
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
        let user = path.rate as f64 * f64::from(path.block) / f64::from(path.block + 4);
        let combs = &fit.curve.as_ref().unwrap().combs;
        let seen = path.outstanding > 1 && combs.iter().any(|comb| comb.teeth.first == path.block);
        let rate = right("rate", &fit.rate, if seen { path.rate as f64 } else { user }, &path);
        let delay = right("delay", &fit.delay, path.delay_us as f64 / 1e3, &path);
        for (count, it) in told.iter_mut().zip([window, rate, delay]) {
            *count += u32::from(it);
        }
    }
    println!("{told:?}");
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
        println!("{index} {path:?} {:?} {:?}", fit.window, fit.curve);
        let window = fit.window.as_ref().is_ok_and(|&found| found == path.window);
        assert!(window || fit.window.is_err(), "{:?} {path:?}", fit.window);
        let rate = right("rate", &fit.rate, path.rate, &path);
        let delay = right("delay", &fit.delay, path.delay, &path);
        for (count, it) in told.iter_mut().zip([window, rate, delay]) {
            *count += u32::from(it);
        }
    }
    println!("{told:?}");
    assert!(told[0] >= 15 && told[1] >= 20 && told[2] >= 15, "{told:?}");
}
