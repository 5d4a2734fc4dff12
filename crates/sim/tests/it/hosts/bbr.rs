//! BBR on lines that lose by chance.

use crate::hosts::support::{run, traffic};
use trunkline_engine::Run;
use trunkline_measure::TrafficRun;

/// Payload of a segment with time stamps in a packet of 1500 bytes.
const PAYLOAD: f64 = 1448.0 / 1500.0;

/// A line and its random loss in thousandths.
#[derive(Debug, Clone, Copy)]
struct Line {
    megabits: u64,
    /// One way.
    millis: u64,
    loss: u64,
}

/// A greedy connection over `line`, measured for 300 round trips and 10 s at least, so that it looks for the round trip
/// as often as it does in the long run.
fn greedy(line: Line, profile: &str, seed: u64) -> Run {
    let Line { megabits, millis, loss } = line;
    let (warm_up, seconds) = (5 + 40 * millis / 1000, 20 + 400 * millis / 1000);
    let duration = warm_up + seconds;
    run(&format!(
        "seed = {seed}\n[[host]]\nname = \"a\"\n[[host]]\nname = \"b\"\n\
         [[link]]\nbetween = [\"a\", \"b\"]\nrate = \"{megabits}Mbit/s\"\ndelay = \"{millis}ms\"\n\
         forward = {{ loss = \"{}\" }}\n\
         [[traffic]]\nname = \"t\"\nkind = \"greedy\"\nfrom = \"a\"\nto = \"b\"\nwrite = 65536\n\
         duration = \"{duration}s\"\nwarm_up = \"{warm_up}s\"\ninterval = \"1s\"\n\
         transport = {{ kind = \"tcp\", profile = \"{profile}\", congestion = \"bbr\" }}\n",
        loss as f64 / 1e3,
    ))
}

fn goodput(tcp: &TrafficRun) -> f64 {
    tcp.samples.iter().map(|sample| sample.rate()).sum::<f64>() / tcp.samples.len() as f64
}

/// The share that arrives of what the line carries and does not lose.
fn share(line: Line, tcp: &TrafficRun) -> f64 {
    let left = line.megabits as f64 * 1e6 / 8.0 * (1.0 - line.loss as f64 / 1e3);
    goodput(tcp) / (left * PAYLOAD)
}

/// What the kernel's BBR got of the same share with 10 % of loss (Linux 6.18 over the emulator, one VALID run each).
const KERNEL: [(Line, f64); 3] = [
    (Line { megabits: 20, millis: 50, loss: 100 }, 0.892),
    (Line { megabits: 50, millis: 25, loss: 100 }, 0.900),
    (Line { megabits: 8, millis: 120, loss: 100 }, 0.892),
];

/// The share of a run of `line`.
fn shared(line: Line, profile: &str, seed: u64) -> f64 {
    share(line, traffic(&greedy(line, profile, seed), "t"))
}

/// Loss by chance says nothing of the line's rate: BBR keeps it (Cardwell et al. 2017, figure 8), but for what it takes
/// to look for the round trip and what it has to send again.
#[test]
fn bbr_keeps_a_line_that_loses_by_chance() {
    for (megabits, millis) in [(20, 50), (5, 10), (50, 25), (8, 120)] {
        for loss in [10, 50] {
            let line = Line { megabits, millis, loss };
            let share = shared(line, "linux", 1);
            assert!((0.9..1.001).contains(&share), "{line:?}: {share:.3}");
        }
    }
    let line = Line { megabits: 5, millis: 10, loss: 100 };
    for profile in ["linux", "trunkline"] {
        let share = shared(line, profile, 1);
        assert!((0.9..1.001).contains(&share), "{line:?}, {profile}: {share:.3}");
    }
}

/// With a loss in every round trip it keeps what the kernel's keeps.
#[test]
fn bbr_keeps_what_the_kernel_keeps_under_heavy_loss() {
    for (line, kernel) in KERNEL {
        for seed in 1..=2 {
            let share = shared(line, "linux", seed);
            assert!((share / kernel - 1.0).abs() < 0.05, "{line:?}, seed {seed}: {share:.3}");
        }
    }
}
