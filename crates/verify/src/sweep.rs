//! Several runs: delays × sizes × loads, with what they have in common measured once.

use crate::VerifyError;
use crate::laboratory::Laboratory;
use crate::limits::{Bound, Highest, Search, slower_line_rate};
use crate::report::{Row, Thresholds};
use crate::run::{Baseline, Emulator, Trial};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::atomic::AtomicBool;
use trunkline_core::Span;
use trunkline_scenario::PathSpec;

/// The number of probes to send each way.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Load {
    /// Per second.
    PerSecond(f64),
    /// Part of the line rate; without a line rate, of the highest rate that the machine holds.
    Share(f64),
    /// The line rate, or the highest rate that generator and bare forwarder hold.
    Most,
}

impl FromStr for Load {
    type Err = String;

    /// Reads `1000` (per second), `10%` or `max`.
    fn from_str(text: &str) -> Result<Load, String> {
        let wrong = || {
            format!("'{text}' is no load: give probes per second (1000), a share (10%) or 'max'")
        };
        if text == "max" {
            return Ok(Load::Most);
        }
        let (number, share) = match text.strip_suffix('%') {
            Some(number) => (number, true),
            None => (text, false),
        };
        let value: f64 = number.parse().map_err(|_| wrong())?;
        match share {
            true if value > 0.0 && value <= 200.0 => Ok(Load::Share(value / 100.0)),
            false if (0.1..=1.5e6).contains(&value) => Ok(Load::PerSecond(value)),
            _ => Err(wrong()),
        }
    }
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Load::PerSecond(rate) => write!(f, "{rate}/s"),
            Load::Share(share) => write!(f, "{}%", share * 100.0),
            Load::Most => f.write_str("max"),
        }
    }
}

/// The delays of the LDS report §3.8: the least, two between, and the longest tested.
pub const LDS_DELAYS: [Span; 4] = [
    Span::from_micros(1_500),
    Span::from_millis(10),
    Span::from_millis(100),
    Span::from_millis(500),
];
/// Packets from the smallest to ATM's MTU (LDS report §3.10.1).
pub const LDS_SIZES: [u32; 4] = [40, 576, 1500, 9180];
/// From a packet now and then to the link rate (LDS report §3.9).
pub const LDS_LOADS: [Load; 4] =
    [Load::PerSecond(1.0), Load::PerSecond(100.0), Load::Share(0.1), Load::Most];
/// The steps in which the LDS changes its delay (LDS report §3.3).
pub const LDS_STEP: Span = Span::from_micros(500);

/// A whole sweep.
#[derive(Debug, Clone)]
pub struct Sweep {
    /// The path; each delay of `delays` in turn takes the place of its own.
    pub path: PathSpec,
    /// Delays for both directions; if there are none, the path's own.
    pub delays: Vec<Span>,
    /// Bytes of a probe, as an IPv4 packet.
    pub sizes: Vec<u32>,
    /// Loads.
    pub loads: Vec<Load>,
    /// Duration of each run; without one each load has its own.
    pub duration: Option<Span>,
    /// The number of times that each run is made.
    pub repeat: u32,
    /// By how much the delay is changed during each run.
    pub change: Option<Span>,
    /// The settings of the emulator.
    pub emulator: Emulator,
    /// The thresholds.
    pub thresholds: Thresholds,
}

/// Durations of a run in a long sweep: 64 runs within four minutes, with three probes at 1 per second.
const SELDOM: Span = Span::from_millis(2_200);
const BRIEF: Span = Span::from_millis(1_500);

impl Sweep {
    /// The number of runs that it makes.
    pub fn runs(&self) -> usize {
        let delays = self.delays.len().max(1);
        delays * self.sizes.len() * self.loads.len() * self.repeat as usize
    }

    fn duration_of(&self, per_second: f64) -> Span {
        let brief = if per_second < 10.0 { SELDOM } else { BRIEF };
        self.duration.unwrap_or(brief)
    }

    fn paths(&self) -> Vec<PathSpec> {
        let with = |delay: &Span| {
            let mut path = self.path.clone();
            (path.up.delay, path.down.delay) = (*delay, *delay);
            path
        };
        if self.delays.is_empty() {
            return vec![self.path.clone()];
        }
        self.delays.iter().map(with).collect()
    }

    /// Makes all runs and hands over each row as it comes. `tell` hears what is being done.
    ///
    /// # Errors
    /// If the emulator or a device fails, or `stop` was set.
    pub fn run(
        &self,
        laboratory: &mut Laboratory,
        stop: &AtomicBool,
        tell: &mut dyn FnMut(&str),
        done: &mut dyn FnMut(Row),
    ) -> Result<(), VerifyError> {
        let mut known = Known::default();
        for (path, size, load) in self.cells() {
            let rate = known.rate(self, laboratory, size, load, stop, tell)?;
            let baseline = known.baseline(laboratory, size, rate.per_second, stop)?;
            let trial = self.trial(path, size, rate);
            for _ in 0..self.repeat {
                tell(&format!("delay {}, {size} bytes, {load}", trial.path.up.delay));
                done(trial.run(laboratory, &baseline, stop)?);
            }
        }
        Ok(())
    }

    fn cells(&self) -> Vec<(PathSpec, u32, Load)> {
        let mut cells = Vec::new();
        for path in self.paths() {
            for &size in &self.sizes {
                cells.extend(self.loads.iter().map(|&load| (path.clone(), size, load)));
            }
        }
        cells
    }

    fn trial(&self, path: PathSpec, size: u32, rate: Highest) -> Trial {
        Trial {
            path,
            size,
            per_second: rate.per_second,
            bound: rate.bound,
            duration: self.duration_of(rate.per_second),
            change: self.change,
            emulator: self.emulator,
            thresholds: self.thresholds,
        }
    }
}

/// The results found already: they depend on size and load, not on the delay.
#[derive(Default)]
struct Known {
    highest: BTreeMap<u32, Highest>,
    baselines: BTreeMap<(u32, u64), Baseline>,
}

impl Known {
    fn rate(
        &mut self,
        sweep: &Sweep,
        laboratory: &mut Laboratory,
        size: u32,
        load: Load,
        stop: &AtomicBool,
        tell: &mut dyn FnMut(&str),
    ) -> Result<Highest, VerifyError> {
        let line = slower_line_rate(&sweep.path, size);
        let asked = |per_second| Highest { per_second, bound: Bound::Asked };
        match (load, line) {
            (Load::PerSecond(rate), _) => return Ok(asked(rate)),
            (Load::Share(share), Some(line)) => return Ok(asked(share * line)),
            _ => {}
        }
        let highest = match self.highest.get(&size) {
            Some(known) => *known,
            None => {
                tell(&format!("highest rate at {size} bytes"));
                let (emulator, mtu) = (sweep.emulator, sweep.path.mtu);
                let mut search = Search { laboratory, emulator, mtu, size, ways: 2, stop };
                // A machine that holds nothing is shown to fail by the run that follows.
                let found = match search.run(line) {
                    Err(VerifyError::TooBusy { per_second, .. }) => {
                        Highest { per_second, bound: Bound::BareForwarder }
                    }
                    found => found?,
                };
                *self.highest.entry(size).or_insert(found)
            }
        };
        let share = if let Load::Share(share) = load { share } else { 1.0 };
        Ok(Highest { per_second: share * Search::safe(highest), bound: highest.bound })
    }

    /// Low loads share one baseline.
    fn baseline(
        &mut self,
        laboratory: &mut Laboratory,
        size: u32,
        per_second: f64,
        stop: &AtomicBool,
    ) -> Result<Baseline, VerifyError> {
        let class = per_second.max(500.0).round() as u64;
        if let Some(known) = self.baselines.get(&(size, class)) {
            return Ok(*known);
        }
        let measured = Baseline::measure(laboratory, size, per_second, stop)?;
        Ok(*self.baselines.entry((size, class)).or_insert(measured))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trunkline_scenario::Settings;

    #[test]
    fn loads() {
        for (text, load) in [
            ("1", Load::PerSecond(1.0)),
            ("0.5", Load::PerSecond(0.5)),
            ("10%", Load::Share(0.1)),
            ("max", Load::Most),
        ] {
            assert_eq!(text.parse::<Load>(), Ok(load), "{text}");
        }
        for text in ["", "0", "-3", "fast", "1000%", "nan", "1e9", "%", "inf"] {
            let told = text.parse::<Load>().unwrap_err();
            assert!(told.contains("max") && told.contains("10%"), "{told}");
        }
        assert_eq!(Load::Share(0.1).to_string(), "10%");
    }

    fn lds() -> Sweep {
        let mut settings = Settings::default();
        settings.start_from("lds").unwrap();
        Sweep {
            path: settings.resolve().unwrap(),
            delays: LDS_DELAYS.to_vec(),
            sizes: LDS_SIZES.to_vec(),
            loads: LDS_LOADS.to_vec(),
            duration: None,
            repeat: 1,
            change: Some(LDS_STEP),
            emulator: Emulator::default(),
            thresholds: Thresholds::default(),
        }
    }

    #[test]
    fn the_reports_sweep_fits_into_four_minutes() {
        let sweep = lds();
        assert_eq!((sweep.runs(), sweep.cells().len()), (64, 64));
        // Sending, the delay both ways for the last reflection, start and stop.
        let one = |(path, _, load): &(PathSpec, u32, Load)| {
            let rate = if let Load::PerSecond(rate) = load { *rate } else { 10_000.0 };
            sweep.duration_of(rate).as_secs_f64() + 2.0 * path.up.delay.as_secs_f64() + 0.3
        };
        let total: f64 = sweep.cells().iter().map(one).sum();
        assert!(total < 190.0, "{total} s, and searches and baselines come on top");
    }

    #[test]
    fn each_delay_takes_the_place_of_the_paths_own() {
        let mut sweep = lds();
        let delays: Vec<Span> = sweep.paths().iter().map(|path| path.down.delay).collect();
        assert_eq!(delays, LDS_DELAYS);
        sweep.delays.clear();
        assert_eq!(sweep.paths(), [sweep.path.clone()]);
    }
}
