//! Paths drawn by chance, simulated, measured with noise, and found again.

mod lab;

use lab::{Path, measure, noise};
use trunkline_core::{Seed, Stream};
use trunkline_fit::{Known, Opens, PathFit, Pattern, Sweep};

/// Log-uniform.
fn between(stream: &mut Stream, low: f64, high: f64) -> f64 {
    low * libm::exp(stream.unit() * libm::log(high / low))
}

fn drawn(stream: &mut Stream) -> Path {
    let outstanding = 1 + stream.below(7) as u32;
    let least = 64u32.div_ceil(outstanding);
    Path {
        rate: between(stream, 56e3, 1e9) as u64,
        delay_us: between(stream, 500.0, 300_000.0) as u64,
        block: between(stream, f64::from(least), 4096.0) as u32,
        outstanding,
        host_us: stream.below(300),
        reply: if stream.below(2) == 0 { None } else { Some(1) },
    }
}

fn known(path: &Path, told: bool) -> Known {
    let pattern = if path.reply.is_none() { Pattern::Echo } else { Pattern::Short };
    if !told {
        return Known::only(pattern);
    }
    Known {
        block: Some(path.block),
        overhead: Some(4),
        answer: Some(1),
        opens: Some(Opens::ByBlock),
        ..Known::only(pattern)
    }
}

#[test]
fn paths_drawn_by_chance_are_found_again() {
    let mut stream = Seed(2024).stream("paths");
    for index in 0..40 {
        let path = drawn(&mut stream);
        let mut noise = noise(index);
        let samples = measure(&path, &Sweep::default(), &mut noise);
        let fit = PathFit::of(&samples, known(&path, true), Seed(index));
        let sizes: std::collections::BTreeSet<u32> = samples.iter().map(|one| one.0).collect();
        println!(
            "{index} {path:?} J {:.3} sizes {} n {}",
            path.jump_ms(),
            sizes.len(),
            samples.len()
        );
        println!("   misfit {} e", fit.misfit);
        println!("   W {:?} ({})", fit.window, path.window());
        println!(
            "   R {:?}",
            fit.rate
                .as_ref()
                .map(|it| (it.value / path.rate as f64, it.relative()))
                .map_err(|e| e.to_string())
        );
        println!(
            "   D {:?}",
            fit.delay
                .as_ref()
                .map(|it| (it.value / path.delay_us as f64 * 1e3, it.relative()))
                .map_err(|e| e.to_string())
        );
    }
}
