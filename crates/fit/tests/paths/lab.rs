//! The simulator as a path of which nothing is known but its round trips.

use std::collections::BTreeMap;
use trunkline_core::{Seed, Stream};
use trunkline_fit::{Ask, Sweep};
use trunkline_scenario::Scenario;

/// What is true of a path.
#[derive(Debug, Clone, Copy)]
pub struct Path {
    pub rate: u64,
    pub delay_us: u64,
    pub block: u32,
    pub outstanding: u32,
    /// What a host spends on each write and each read.
    pub host_us: u64,
    /// Bytes of each answer; the whole message where `None`.
    pub reply: Option<u32>,
}

impl Path {
    pub fn window(&self) -> u32 {
        self.block * self.outstanding
    }

    /// How long the line is idle for each window, one way, in milliseconds.
    pub fn jump_ms(&self) -> f64 {
        let byte = 8_000.0 / self.rate as f64;
        let carried = f64::from(self.outstanding - 1) * f64::from(self.block + 4) * byte;
        2.0 * self.delay_us as f64 / 1e3 + byte - carried
    }

    fn scenario(&self, sizes: &[u32]) -> String {
        let Path { rate, delay_us, block, outstanding, host_us, reply } = self;
        let reply = reply.map_or("echo".into(), |bytes| bytes.to_string());
        let reply = if reply == "echo" { "\"echo\"".into() } else { reply };
        format!(
            r#"
stop_after = "604800s"
[processor.cpu]
write = "{host_us}us"
read = "{host_us}us"
[[host]]
name = "a"
processor = "cpu"
[[host]]
name = "b"
processor = "cpu"
[[link]]
between = ["a", "b"]
rate = "{rate}bit/s"
delay = "{delay_us}us"
[[traffic]]
name = "echo"
kind = "interactive"
from = "a"
to = "b"
sizes = {sizes:?}
reply = {reply}
repeat = 1
transport = {{ kind = "urp", block = {block}, outstanding = {outstanding}, packet = 0, timeout = "100s" }}
"#
        )
    }

    /// Round trips without noise, by size, in milliseconds.
    pub fn round_trips(&self, sizes: &[u32]) -> BTreeMap<u32, f64> {
        simulated(&self.scenario(sizes))
    }
}

/// The round trips of a scenario's first traffic, by size, in milliseconds.
pub fn simulated(text: &str) -> BTreeMap<u32, f64> {
    let cells = Scenario::parse(text, "path.toml").unwrap();
    let run = trunkline_sim::run(&cells[0]).unwrap();
    let samples = run.traffic[0].samples.iter();
    samples.map(|one| (one.size as u32, one.delay().as_millis_f64())).collect()
}

/// A stream for the noise of one measurement.
pub fn noise(index: u64) -> Stream {
    Seed(index).stream("noise")
}

/// Some 25 microseconds of scheduling always, some milliseconds now and then.
pub fn disturbed(millis: f64, noise: &mut Stream) -> f64 {
    let late = -0.025 * libm::log(1.0 - noise.unit());
    let wild = if noise.below(40) == 0 { -3.0 * libm::log(1.0 - noise.unit()) } else { 0.0 };
    millis + late + wild + 0.005 * noise.normal()
}

/// Lets a sweep measure a path.
pub fn measure(path: &Path, sweep: &Sweep, noise: &mut Stream) -> Vec<(u32, f64)> {
    let mut known: BTreeMap<u32, f64> = BTreeMap::new();
    let mut samples = Vec::new();
    for round in 0.. {
        assert!(round < 200, "the sweep does not end: {path:?}");
        let asks: Vec<Ask> = sweep.next(&samples);
        if asks.is_empty() {
            return samples;
        }
        let fresh: Vec<u32> =
            asks.iter().map(|ask| ask.size).filter(|size| !known.contains_key(size)).collect();
        if !fresh.is_empty() {
            known.append(&mut path.round_trips(&fresh));
        }
        for ask in asks {
            let again = std::iter::repeat_n(known[&ask.size], ask.repeat as usize);
            samples.extend(again.map(|millis| (ask.size, disturbed(millis, noise))));
        }
    }
    unreachable!("the loop returns")
}
