//! The highest rate that generator and bare forwarder hold without loss, by a bounded search.

use crate::VerifyError;
use crate::generator::{Course, Half, Recording, realtime};
use crate::laboratory::{Arrangement, Laboratory};
use crate::run::Emulator;
use crate::spread::ranked;
use crate::trace::Matched;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::atomic::AtomicBool;
use trunkline_core::Span;
use trunkline_path::LinkSpec;
use trunkline_scenario::{MTUS, PathSpec, Settings};

/// The time for which one rate is tried.
const TRY: Span = Span::from_millis(250);
/// From the emulator's start to the first probe.
const LEAD_IN: Span = Span::from_millis(40);
/// No probe of a bare forwarder takes longer than this unless it is lost.
const TAIL: Span = Span::from_millis(100);
/// The number of times that the interval of rates is halved.
const STEPS: u32 = 4;
/// A rate at which half of the probes of the second half of a try wait longer than this builds a
/// queue and is not held. Not a higher percentile: stalls of the machine would decide.
const SLOW: Span = Span::from_millis(2);
/// The part of the highest rate found that is used for a longer run.
const SAFE: f64 = 0.85;
/// The part of the line rate that counts as line rate: so a burst behind a stall can drain.
const LINE_SHARE: f64 = 0.995;
/// The lowest rate worth trying.
const LEAST: f64 = 1_000.0;

/// The bound that sets the rate of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// The user, or the sweep.
    Asked,
    /// The line of the path.
    LineRate,
    /// The measuring thread.
    Generator,
    /// The forwarder without a path.
    BareForwarder,
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Bound::Asked => "as asked",
            Bound::LineRate => "line rate",
            Bound::Generator => "generator",
            Bound::BareForwarder => "bare forwarder",
        })
    }
}

/// A rate and what set it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Highest {
    /// Probes per second each way.
    pub per_second: f64,
    /// The bound that set it.
    pub bound: Bound,
}

/// Finds the highest rate between `low` and `high` that holds, to `(high - low) / 2^steps`: tries
/// `high` first and then halves. `None` if not even `low` holds.
///
/// # Errors
/// That of `holds`.
pub fn highest<E>(
    low: f64,
    high: f64,
    steps: u32,
    mut holds: impl FnMut(f64) -> Result<bool, E>,
) -> Result<Option<f64>, E> {
    if holds(high)? {
        return Ok(Some(high));
    }
    let (mut good, mut bad) = (None, high);
    for _ in 0..steps {
        let middle = (good.unwrap_or(low) + bad) / 2.0;
        match holds(middle)? {
            true => good = Some(middle),
            false => bad = middle,
        }
    }
    match good {
        Some(good) => Ok(Some(good)),
        None => Ok(holds(low)?.then_some(low)),
    }
}

/// Packets of `size` bytes per second that `link` carries back to back; `None` without a rate.
pub fn line_rate(link: &LinkSpec, size: u32) -> Option<f64> {
    let bits = link.rate?.bits_per_second() as f64 * link.framing.efficiency(size);
    Some(bits / 8.0 / f64::from(size.max(1)))
}

/// The line rate of the slower direction.
pub fn slower_line_rate(path: &PathSpec, size: u32) -> Option<f64> {
    let rates = [line_rate(&path.up, size), line_rate(&path.down, size)];
    rates.into_iter().flatten().min_by(f64::total_cmp)
}

/// A path that does nothing: the bare forwarder.
///
/// # Panics
/// Never: the settings are constants.
pub fn bare(mtu: u32) -> PathSpec {
    let mut settings = Settings::default();
    settings.add("mtu", &mtu.clamp(*MTUS.start(), *MTUS.end()).to_string());
    settings.resolve().expect("constant settings")
}

/// A search on a laboratory.
pub struct Search<'a> {
    /// The laboratory of the search.
    pub laboratory: &'a mut Laboratory,
    /// The settings of the emulator.
    pub emulator: Emulator,
    /// Largest packet of the devices.
    pub mtu: u32,
    /// Bytes of a probe, as an IPv4 packet.
    pub size: u32,
    /// Directions in use: 1 or 2.
    pub ways: usize,
    /// Set to end early.
    pub stop: &'a AtomicBool,
}

impl Search<'_> {
    /// The highest rate, up to the line rate if there is one, that generator and bare forwarder hold.
    ///
    /// # Errors
    /// If a device fails, `stop` was set, or the machine holds no rate at all.
    pub fn run(&mut self, line: Option<f64>) -> Result<Highest, VerifyError> {
        let line = line.map(|rate| rate * LINE_SHARE);
        if let Some(line) = line
            && self.holds(line)?
        {
            return Ok(Highest { per_second: line, bound: Bound::LineRate });
        }
        let generator = self.generator_alone()?;
        let high = line.map_or(generator, |line| generator.min(line));
        let low = LEAST.min(high / 4.0);
        let found = highest(low, high, STEPS, |rate| self.holds(rate))?;
        let found = found.ok_or(VerifyError::TooBusy { size: self.size, per_second: low })?;
        let at_top = found >= high * 0.99 && line.is_none_or(|line| generator < line);
        let bound = if at_top { Bound::Generator } else { Bound::BareForwarder };
        Ok(Highest { per_second: found, bound })
    }

    /// The part of the highest rate that a longer run may use. The line rate is used in full.
    pub fn safe(highest: Highest) -> f64 {
        match highest.bound {
            Bound::LineRate | Bound::Asked => highest.per_second,
            Bound::Generator | Bound::BareForwarder => highest.per_second * SAFE,
        }
    }

    /// Probes per second each way that the generator sends and receives over direct veth.
    fn generator_alone(&mut self) -> Result<f64, VerifyError> {
        let course = self.course(f64::INFINITY);
        let recording = self.laboratory.run(Arrangement::Direct, &course, self.stop)?;
        let sent = (recording.up.sent.len() + recording.down.sent.len()) as f64;
        let rate = sent / self.ways as f64 / recording.sending.as_secs_f64().max(1e-9);
        Ok(rate.max(LEAST))
    }

    fn course(&self, rate: f64) -> Course {
        Course {
            size: self.size,
            per_second: [rate, if self.ways > 1 { rate } else { 0.0 }],
            pings_per_second: 0.0,
            start: realtime() + LEAD_IN.as_nanos(),
            duration: TRY,
            tail: TAIL,
        }
    }

    /// Whether the rate is held. One failure may be a stall of the machine: it is tried once more.
    fn holds(&mut self, rate: f64) -> Result<bool, VerifyError> {
        Ok(self.holds_once(rate)? || self.holds_once(rate)?)
    }

    fn holds_once(&mut self, rate: f64) -> Result<bool, VerifyError> {
        let (session, thread) = self.laboratory.start(&bare(self.mtu), &self.emulator, None)?;
        let course = self.course(rate);
        let recording = self.laboratory.run(Arrangement::Emulated, &course, self.stop);
        session.stop();
        let ended = thread.join();
        let recording = recording?;
        ended.result?;
        Ok(held(&recording))
    }
}

/// Whether everything arrived, without a queue building up.
fn held(recording: &Recording) -> bool {
    recording.complete && lossless(&recording.up) && lossless(&recording.down)
}

fn lossless(half: &Half) -> bool {
    let matched = Matched::of(half.sent.len(), &half.arrivals);
    let pairs = half.sent.before.iter().zip(&matched.arrived).skip(half.sent.len() / 2);
    let mut took: Vec<i64> =
        pairs.filter_map(|(&before, arrived)| Some((*arrived)? as i64 - before as i64)).collect();
    took.sort_unstable();
    let slow = ranked(&took, 0.5) > SLOW.as_nanos() as i64;
    matched.lost() == 0 && half.refused == 0 && !slow
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::Arrival;
    use std::convert::Infallible;

    fn search(limit: f64) -> (Option<f64>, u32) {
        let mut tries = 0;
        let found = highest(1_000.0, 17_000.0, 4, |rate| {
            tries += 1;
            Ok::<bool, Infallible>(rate <= limit)
        });
        (found.unwrap(), tries)
    }

    #[test]
    fn the_search_is_bounded_and_close() {
        assert_eq!(search(20_000.0), (Some(17_000.0), 1));
        assert_eq!(search(500.0), (None, 6));
        for limit in [3_000.0, 5_500.0, 11_111.0, 16_500.0] {
            let (found, tries) = search(limit);
            assert!(tries <= 6);
            assert!(found.is_some_and(|rate| rate <= limit && limit - rate < 1_001.0), "{limit}");
        }
        assert_eq!(search(1_200.0).0, Some(1_000.0));
    }

    #[test]
    fn line_rates_count_cells() {
        let mut settings = Settings::default();
        settings.start_from("lds").unwrap();
        settings.add("down-rate", "2.4gbit");
        let path = settings.resolve().unwrap();
        // 149.76 Mbit/s in cells of 424 bits; 40 bytes take two, 9180 take 192.
        for (size, cells) in [(40, 2.0), (9180, 192.0)] {
            let rate = slower_line_rate(&path, size).unwrap();
            assert!((rate - 149.76e6 / 424.0 / cells).abs() < 0.01, "{size}: {rate}");
        }
        assert_eq!(slower_line_rate(&bare(1500), 1500), None);
    }

    #[test]
    fn a_rate_is_held_if_all_arrive_and_no_queue_builds_up() {
        let mut recording = Recording { complete: true, ..Recording::default() };
        for number in 0..200u32 {
            let before = u64::from(number) * 1_000;
            recording.up.sent.push(before, before + 10);
            recording.up.arrivals.push(Arrival { number, stamp: before + 500 });
        }
        assert!(held(&recording));
        for arrival in &mut recording.up.arrivals[100..149] {
            arrival.stamp += 3_000_000;
        }
        assert!(held(&recording), "a stall");
        for arrival in &mut recording.up.arrivals[149..151] {
            arrival.stamp += 3_000_000;
        }
        assert!(!held(&recording), "more than half of the second half");
        recording.up.arrivals.truncate(99);
        assert!(!held(&recording), "lost");
    }
}
