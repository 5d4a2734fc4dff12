//! The capacity of this machine: delay floor, timer lateness, highest loss-free rates.

use crate::VerifyError;
use crate::costs::{Costs, costs};
use crate::laboratory::Laboratory;
use crate::limits::{Bound, Highest, Search, bare, line_rate};
use crate::report::Thresholds;
use crate::run::{Baseline, Emulator, Trial};
use rustix::thread::{NanosleepRelativeResult, nanosleep, set_current_timer_slack};
use rustix::time::Timespec;
use serde::{Deserialize, Serialize};
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, Ordering};
use trunkline_core::Span;
use trunkline_dataplane::monotonic;
use trunkline_measure::{Percentiles, Times};
use trunkline_path::LinkSpec;
use trunkline_port::Backend;
use trunkline_scenario::{PRESETS, Settings};

/// Frames of 64 and 1414 bytes, less the Ethernet header: as in the dataplane reference.
pub const SIZES: [u32; 2] = [50, 1400];
/// The MTU of the devices.
const MTU: u32 = 1500;
/// The delay floor is measured at this many probes per second,
const FLOOR_RATE: f64 = 1_000.0;
/// for this long.
const FLOOR_TIME: Span = Span::from_millis(1_500);
/// Timer rounds and their length.
const ROUNDS: u32 = 300;
const ROUND: Span = Span::from_millis(1);
/// The emulator sleeps until this long before an instant and spins the rest.
const SPIN: Span = Span::from_micros(100);

/// The delay that the forwarder without a path adds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Floor {
    /// Whether it never slept.
    pub busy: bool,
    /// One way, less the baseline.
    pub added: Percentiles,
    /// Probes lost.
    pub lost: u64,
}

/// The highest loss-free rate of a backend.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ceiling {
    /// The backend.
    pub backend: String,
    /// Bytes of a frame with its Ethernet header.
    pub frame: u32,
    /// Directions at once.
    pub ways: usize,
    /// The rate each way, and what set it; or why there is none.
    pub highest: Result<Highest, String>,
}

/// Whether a preset can be held.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Holds {
    /// The preset.
    pub preset: String,
    /// Its line rate in full packets per second, the faster direction; `None` if it has no rate.
    pub full_packets: Option<f64>,
    /// The same in the smallest packets.
    pub small_packets: Option<f64>,
    /// With full packets both ways.
    pub full: bool,
    /// With the smallest packets both ways.
    pub small: bool,
}

/// The whole calibration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// [`crate::report::FORMAT`].
    pub format: u32,
    /// Direct veth: the measurement's own error.
    pub baseline_lead: Span,
    /// Its 99th percentile less the median.
    pub baseline_p99: Span,
    /// What reading the clock, looking at a ring, a system call and a wake-up cost.
    pub costs: Costs,
    /// The delays that the bare forwarder adds, sleeping and spinning.
    pub floors: Vec<Floor>,
    /// The lateness at the end of a plain sleep of a millisecond.
    pub sleep_late: Percentiles,
    /// The same if the last 100 us are spun.
    pub spin_late: Percentiles,
    /// Highest loss-free rates.
    pub ceilings: Vec<Ceiling>,
    /// The presets.
    pub presets: Vec<Holds>,
}

/// Calibrates this machine.
///
/// # Errors
/// If the laboratory cannot be built or a device fails, or `stop` was set.
pub fn calibrate(
    cpu: Option<usize>,
    stop: &AtomicBool,
    tell: &mut dyn FnMut(&str),
    note: &mut dyn FnMut(&Laboratory) -> Result<(), trunkline_netns::LabError>,
) -> Result<Calibration, VerifyError> {
    let mut laboratory = Laboratory::build(MTU, cpu)?;
    note(&laboratory)?;
    tell("timers");
    let (sleep_late, spin_late) = timers();
    let costs = costs().map_err(VerifyError::Thread)?;
    tell("delay floor");
    let baseline = Baseline::measure(&mut laboratory, SIZES[0], FLOOR_RATE, stop)?;
    let mut floors = Vec::new();
    for busy in [false, true] {
        floors.push(floor(&mut laboratory, &baseline, busy, stop)?);
    }
    let ceilings = ceilings(&mut laboratory, stop, tell)?;
    Ok(Calibration {
        format: crate::report::FORMAT,
        baseline_lead: baseline.lead,
        baseline_p99: baseline.own_p99,
        costs,
        floors,
        sleep_late,
        spin_late,
        presets: presets(&ceilings),
        ceilings,
    })
}

fn floor(
    laboratory: &mut Laboratory,
    baseline: &Baseline,
    busy: bool,
    stop: &AtomicBool,
) -> Result<Floor, VerifyError> {
    let trial = Trial {
        path: bare(MTU),
        size: SIZES[0],
        per_second: FLOOR_RATE,
        bound: Bound::Asked,
        duration: FLOOR_TIME,
        change: None,
        emulator: Emulator { backend: Backend::Packet, busy },
        thresholds: Thresholds::default(),
    };
    let row = trial.run(laboratory, baseline, stop)?;
    Ok(Floor { busy, added: row.delay_error, lost: row.lost.emulator })
}

fn ceilings(
    laboratory: &mut Laboratory,
    stop: &AtomicBool,
    tell: &mut dyn FnMut(&str),
) -> Result<Vec<Ceiling>, VerifyError> {
    let mut ceilings = Vec::new();
    for backend in Backend::ALL {
        for size in SIZES {
            for ways in [1, 2] {
                let frame = size + 14;
                tell(&format!("highest rate of {backend} at {frame} bytes, {ways} ways"));
                let emulator = Emulator { backend, busy: false };
                let mut search = Search { laboratory, emulator, mtu: MTU, size, ways, stop };
                let highest = search.run(None).map_err(|error| error.to_string());
                if stop.load(Ordering::Relaxed) {
                    return Err(VerifyError::Interrupted);
                }
                ceilings.push(Ceiling { backend: backend.to_string(), frame, ways, highest });
            }
        }
    }
    Ok(ceilings)
}

/// The presets that the default backend holds, both ways at line rate.
fn presets(ceilings: &[Ceiling]) -> Vec<Holds> {
    let held = |size: u32| {
        let of = |c: &&Ceiling| c.backend == "packet" && c.ways == 2 && c.frame == size + 14;
        let found = ceilings.iter().find(of).and_then(|c| c.highest.as_ref().ok());
        found.map_or(0.0, |highest| highest.per_second)
    };
    let [small, full] = SIZES.map(held);
    PRESETS.iter().filter_map(|preset| judge(preset.name, small, full)).collect()
}

fn judge(preset: &str, small: f64, full: f64) -> Option<Holds> {
    let mut settings = Settings::default();
    settings.start_from(preset).ok()?;
    let path = settings.resolve().ok()?;
    let faster = |size: u32| {
        let rate = |link: &LinkSpec| line_rate(link, size);
        [rate(&path.up), rate(&path.down)].into_iter().flatten().max_by(f64::total_cmp)
    };
    let (full_packets, small_packets) = (faster(path.mtu), faster(SIZES[0]));
    Some(Holds {
        preset: preset.into(),
        full_packets,
        small_packets,
        full: full_packets.is_none_or(|rate| rate <= full),
        small: small_packets.is_none_or(|rate| rate <= small),
    })
}

/// The lateness at the end of sleeps: all slept, and with the last part spun as the emulator does.
fn timers() -> (Percentiles, Percentiles) {
    let thread = std::thread::spawn(|| {
        if let Err(error) = set_current_timer_slack(NonZeroU64::new(1)) {
            tracing::debug!(%error, "timer slack stays at its default of 50 us");
        }
        (lateness(Span::ZERO), lateness(SPIN))
    });
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn lateness(spin: Span) -> Percentiles {
    let mut late = Times::default();
    for _ in 0..ROUNDS {
        let due = monotonic() + ROUND;
        sleep(ROUND.saturating_sub(spin));
        while !spin.is_zero() && monotonic() < due {
            std::hint::spin_loop();
        }
        late.record(monotonic().since(due));
    }
    late.percentiles()
}

fn sleep(span: Span) {
    let time = Timespec { tv_sec: 0, tv_nsec: span.as_nanos() as _ };
    // Cut short by a signal: the round is then early, which counts as no lateness.
    let _: NanosleepRelativeResult = nanosleep(&time);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_are_held_by_what_was_measured() {
        let ceiling = |frame, rate: Option<f64>| Ceiling {
            backend: "packet".into(),
            frame,
            ways: 2,
            highest: rate
                .map(|per_second| Highest { per_second, bound: Bound::BareForwarder })
                .ok_or("nothing".into()),
        };
        let find = |list: &[Holds], name: &str| {
            list.iter().find(|holds| holds.preset == name).unwrap().clone()
        };
        let slow = presets(&[ceiling(64, Some(20_000.0)), ceiling(1414, Some(50_000.0))]);
        assert_eq!(slow.len(), PRESETS.len());
        let t1 = find(&slow, "t1-1989");
        assert!(t1.full && t1.small);
        // 1 Gbit/s is 83,333 packets of 1500 bytes per second.
        let fast = find(&slow, "transatlantic");
        assert!(!fast.full && !fast.small && fast.full_packets.unwrap() > 83_000.0);
        assert!(!find(&presets(&[ceiling(64, None)]), "t1-1989").small);
    }
}
