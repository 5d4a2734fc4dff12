//! The simulator as a path of which nothing is known but its round trips.

use std::collections::BTreeMap;
use trunkline_core::{Seed, Stream};
use trunkline_fit::{Ask, Pattern, Sweep};
use trunkline_scenario::Scenario;

/// The truth about a path.
#[derive(Debug, Clone, Copy)]
pub struct Path {
    pub rate: u64,
    pub delay_us: u64,
    pub block: u32,
    pub outstanding: u32,
    /// The time that a host spends on each write, and each time it is woken to read.
    pub write_us: u64,
    pub read_us: u64,
    /// Bytes of each answer; the whole message if `None`.
    pub reply: Option<u32>,
}

impl Path {
    pub fn window(&self) -> u32 {
        self.block * self.outstanding
    }

    /// The time for which the line is idle for each window, one way, in milliseconds.
    pub fn jump_ms(&self) -> f64 {
        let byte = 8_000.0 / self.rate as f64;
        let carried = f64::from(self.outstanding - 1) * f64::from(self.block + 4) * byte;
        2.0 * self.delay_us as f64 / 1e3 + byte - carried
    }

    pub fn pattern(&self) -> Pattern {
        if self.reply.is_none() { Pattern::Echo } else { Pattern::Short }
    }

    fn ways(&self) -> f64 {
        if self.reply.is_none() { 2.0 } else { 1.0 }
    }

    /// The time that the line takes for the bytes of a window, in milliseconds.
    pub fn line_ms(&self) -> f64 {
        self.ways() * f64::from(self.window()) * 8_000.0 / self.rate as f64
    }

    /// Whether a reader's being woken more than once bends the curve by more than a part in fifty of the
    /// round trip.
    pub fn bent(&self) -> bool {
        self.read_us as f64 > 0.02 * 2.0 * self.delay_us as f64
    }

    /// Whether the window's jumps stand out from noise and readers by far.
    pub fn window_shows(&self) -> bool {
        self.jump_ms() > 0.5 + 5.0 * self.read_us as f64 / 1e3
            && self.jump_ms() > 0.01 * self.line_ms()
    }

    /// Whether the slope does.
    pub fn rate_shows(&self) -> bool {
        let line = if self.jump_ms() < 0.0 { f64::INFINITY } else { self.line_ms() };
        line > 0.5 && self.read_us as f64 / 1e3 < 0.01 * line
    }

    fn scenario(&self, sizes: &[u32]) -> String {
        let Path { rate, delay_us, block, outstanding, write_us, read_us, reply } = self;
        let reply = reply.map_or("echo".into(), |bytes| bytes.to_string());
        let reply = if reply == "echo" { "\"echo\"".into() } else { reply };
        format!(
            r#"
stop_after = "604800s"
[processor.cpu]
write = "{write_us}us"
read = "{read_us}us"
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
