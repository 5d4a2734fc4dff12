//! The accuracy statement: what every real-time run says of itself at its end.

use crate::snapshot::{LaneSnapshot, Snapshot};
use std::fmt;
use trunkline_core::{Cause, Span};

/// How late a run's frames may be before it is called invalid, unless told otherwise.
pub const DEFAULT_BOUND: Span = Span::from_micros(100);

/// Was the machine good enough for what was asked of it?
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Every direction kept its schedule within the bound.
    Valid,
    /// Some did not, or the emulator lost frames; the reasons, one each.
    Invalid(Vec<String>),
}

/// The statement on a finished run.
#[derive(Debug)]
pub struct Accuracy<'a> {
    snapshot: &'a Snapshot,
    bound: Span,
}

impl<'a> Accuracy<'a> {
    /// The statement on `snapshot`, whose frames should not have been later than `bound` (99 in 100).
    pub fn of(snapshot: &'a Snapshot, bound: Span) -> Accuracy<'a> {
        Accuracy { snapshot, bound }
    }

    /// The verdict. With fewer than 200 frames one in a hundred is none or one: a single late frame is
    /// then forgiven, but shown.
    pub fn verdict(&self) -> Verdict {
        let mut reasons: Vec<String> =
            self.snapshot.lanes.iter().flat_map(|lane| self.complaints(lane)).collect();
        if !reasons.is_empty() && self.snapshot.interruptions + self.snapshot.stalls > 0 {
            reasons.push(format!(
                "the machine interrupted the emulator {} times for more than 20us ({} in all) and stalled it {} times for more than 1ms (longest {})",
                self.snapshot.interruptions,
                self.snapshot.interrupted.rounded(),
                self.snapshot.stalls,
                self.snapshot.longest_stall.rounded()
            ));
        }
        if reasons.is_empty() { Verdict::Valid } else { Verdict::Invalid(reasons) }
    }

    fn complaints(&self, lane: &LaneSnapshot) -> Vec<String> {
        let mut complaints = Vec::new();
        let allowed = (lane.lateness.count / 100).max(1);
        if lane.late > allowed {
            complaints.push(format!(
                "{}: {} of {} frames left more than {} late (p99 {}, max {})",
                lane.name,
                lane.late,
                lane.lateness.count,
                self.bound,
                lane.lateness.p99.rounded(),
                lane.lateness.max.rounded()
            ));
        }
        let lost = lane.dropped_by_emulator - lane.dropped.get("too-big").copied().unwrap_or(0);
        if lost > 0 {
            complaints.push(format!("{}: the emulator itself lost {lost} frames", lane.name));
        }
        complaints
    }
}

impl fmt::Display for Accuracy<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for lane in &self.snapshot.lanes {
            write_counts(f, lane)?;
            if lane.lateness.count > 0 {
                writeln!(f, "{:>6} late by    {}", "", lane.lateness)?;
            }
            if lane.spacing_error.count > 0 {
                writeln!(f, "{:>6} spacing off {}", "", lane.spacing_error)?;
            }
            write_delay(f, lane)?;
            for line in &lane.impairments {
                writeln!(f, "{:>6} {line}", "")?;
            }
        }
        self.write_machine(f)?;
        match self.verdict() {
            Verdict::Valid => {
                write!(f, "VALID: 99 in 100 frames left within {} of their time", self.bound)
            }
            Verdict::Invalid(reasons) => write!(f, "INVALID: {}", reasons.join("; ")),
        }
    }
}

impl Accuracy<'_> {
    fn write_machine(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Snapshot {
            stalls,
            longest_stall,
            clock_steps,
            stamps_replaced,
            interruptions,
            interrupted,
            ..
        } = self.snapshot;
        if *stalls > 0 {
            writeln!(
                f,
                "machine stalled {stalls} times for more than 1ms, longest {}",
                longest_stall.rounded()
            )?;
        }
        if *interruptions > 0 {
            writeln!(
                f,
                "machine interrupted the emulator {interruptions} times for more than 20us, {} in all",
                interrupted.rounded()
            )?;
        }
        if *clock_steps > 0 {
            writeln!(f, "the wall clock was stepped {clock_steps} times during the run")?;
        }
        if *stamps_replaced > 0 {
            writeln!(
                f,
                "{stamps_replaced} arrival stamps were not believable and were replaced by the time of reading"
            )?;
        }
        Ok(())
    }
}

fn write_counts(f: &mut fmt::Formatter<'_>, lane: &LaneSnapshot) -> fmt::Result {
    write!(f, "{:>6} in {} + copies {}", lane.name, lane.entered, lane.duplicated)?;
    write!(f, " = out {} + dropped {}", lane.delivered, lane.dropped.values().sum::<u64>())?;
    if !lane.dropped.is_empty() {
        let causes: Vec<String> =
            lane.dropped.iter().map(|(cause, count)| format!("{cause} {count}")).collect();
        write!(f, " ({})", causes.join(", "))?;
    }
    writeln!(f, " + in flight {}", lane.in_flight)
}

fn write_delay(f: &mut fmt::Formatter<'_>, lane: &LaneSnapshot) -> fmt::Result {
    let parts: Vec<String> = lane
        .mean_delay
        .iter()
        .map(|(cause, span)| {
            let name = match cause {
                Cause::Queue => "queue",
                Cause::Transmit => "transmit",
                Cause::Propagate => "propagate",
                Cause::Emulator => "emulator",
                _ => "other",
            };
            format!("{name} {:.3}ms", span.as_millis_f64())
        })
        .collect();
    if parts.is_empty() {
        return Ok(());
    }
    writeln!(f, "{:>6} mean delay {}", "", parts.join(" + "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use trunkline_measure::Percentiles;

    fn lane(frames: u64, late: u64) -> LaneSnapshot {
        let lateness = Percentiles { count: frames, ..Percentiles::default() };
        LaneSnapshot {
            name: "up".into(),
            entered: frames,
            delivered: frames,
            late,
            lateness,
            ..LaneSnapshot::default()
        }
    }

    fn verdict(lane: LaneSnapshot) -> Verdict {
        let snapshot = Snapshot { lanes: vec![lane], ..Snapshot::default() };
        Accuracy::of(&snapshot, DEFAULT_BOUND).verdict()
    }

    #[test]
    fn one_in_a_hundred_may_be_late() {
        assert_eq!(verdict(lane(10_000, 100)), Verdict::Valid);
        assert!(matches!(verdict(lane(10_000, 101)), Verdict::Invalid(_)));
        assert_eq!(verdict(lane(6, 1)), Verdict::Valid);
        assert!(matches!(verdict(lane(6, 2)), Verdict::Invalid(_)));
    }

    #[test]
    fn frames_lost_by_the_emulator_are_never_forgiven() {
        let mut lossy = lane(1000, 0);
        lossy.dropped.insert("ring-full".into(), 1);
        lossy.dropped_by_emulator = 1;
        assert!(matches!(verdict(lossy), Verdict::Invalid(_)));
        let mut too_big = lane(1000, 0);
        too_big.dropped.insert("too-big".into(), 1);
        too_big.dropped_by_emulator = 1;
        assert_eq!(
            verdict(too_big),
            Verdict::Valid,
            "the device's property, not the emulator's failing"
        );
    }
}
