//! The accuracy statement: what every real-time run says of itself at its end.

use crate::snapshot::{LaneSnapshot, Snapshot};
use std::fmt;
use trunkline_core::{Cause, Span};

/// The lateness of a run's frames from which it is called invalid, unless told otherwise.
pub const DEFAULT_BOUND: Span = Span::from_micros(100);
/// A stall this long makes a run invalid, however few frames it met: programs notice it by themselves (the
/// least retransmission time-out of Linux's TCP is twice as long).
pub const LONG_STALL: Span = Span::from_millis(100);
/// And so do stalls of this share of the run, in percent, once they are more than a moment.
const STALLED: u64 = 1;
const MOMENT: Span = Span::from_millis(10);
/// Programs may have to wait this long for a processor 1 time in 100: they compete with each other for the
/// processors that there are, a scheduler's slice being 3 ms.
pub const LONG_WAIT: Span = Span::from_millis(10);

/// The verdict on the machine: whether it was good enough for the path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Validity {
    /// Every direction kept its schedule within the bound.
    Valid,
    /// No frame was to leave, so that there is nothing to judge.
    Nothing,
    /// Some did not, or the emulator lost frames; the reasons, one each.
    Invalid(Vec<String>),
}

impl Validity {
    /// The verdict in a word, for programs.
    pub fn name(&self) -> &'static str {
        match self {
            Validity::Valid => "valid",
            Validity::Nothing => "nothing",
            Validity::Invalid(_) => "invalid",
        }
    }
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
    pub fn verdict(&self) -> Validity {
        let mut reasons: Vec<String> =
            self.snapshot.lanes.iter().flat_map(|lane| self.complaints(lane)).collect();
        reasons.extend(self.of_stamps());
        reasons.extend(self.of_stalls());
        reasons.extend(of_ends(self.snapshot, self.bound));
        if !reasons.is_empty() && self.snapshot.interruptions + self.snapshot.stalls > 0 {
            reasons.push(format!(
                "the machine interrupted the emulator {} times for more than 20us ({} in all) and stalled it {} times for more than 1ms (longest {})",
                self.snapshot.interruptions,
                self.snapshot.interrupted.rounded(),
                self.snapshot.stalls,
                self.snapshot.longest_stall.rounded()
            ));
        }
        match (reasons.is_empty(), self.left()) {
            (false, _) => Validity::Invalid(reasons),
            (true, 0) => Validity::Nothing,
            (true, _) => Validity::Valid,
        }
    }

    /// Frames that left.
    fn left(&self) -> u64 {
        self.snapshot.lanes.iter().map(|lane| lane.lateness.count).sum()
    }

    /// Arrivals that are not known well enough: lateness is counted from them.
    fn of_stamps(&self) -> Vec<String> {
        let Snapshot { stamps_uncertain, stamp_uncertainty, stamps_replaced, .. } = self.snapshot;
        let mut found = Vec::new();
        if *stamps_uncertain > 0 && *stamp_uncertainty > self.bound {
            found.push(format!(
                "the wall clock was stepped, and whether {stamps_uncertain} frames came before or after is not known: their arrival is uncertain by up to {}",
                stamp_uncertainty.rounded()
            ));
        }
        if *stamps_replaced > 0 {
            found.push(format!(
                "{stamps_replaced} frames carried arrival stamps that cannot be true: when they came is not known"
            ));
        }
        found
    }

    fn of_stalls(&self) -> Option<String> {
        let Snapshot { uptime, stalls, stalled, longest_stall, .. } = self.snapshot;
        let much = *stalled > uptime.scaled(STALLED, 100).max(MOMENT);
        (much || *longest_stall >= LONG_STALL).then(|| {
            format!(
                "the emulator did not run for {} of {}, in {stalls} stalls, the longest of {}",
                stalled.rounded(),
                uptime.rounded(),
                longest_stall.rounded()
            )
        })
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

/// The reason why frames that were handed over in time were late all the same: the programs that waited for them did
/// not get a processor. A single wait is forgiven. If the emulator has a processor to itself, it cannot keep them
/// from theirs: the time that they wait for each other is stated and not judged.
pub fn of_ends(snapshot: &Snapshot, bound: Span) -> Option<String> {
    let Snapshot { ends, ends_late, own_processor, .. } = snapshot;
    let usual = ends.count > 1 && ends.p50 > bound;
    let often = *ends_late > (ends.count / 100).max(1) && ends.p99 > bound;
    (!own_processor && (usual || often)).then(|| {
        format!(
            "programs at the ends got their frames late, for want of a processor: a witness waited {} as a rule, and {ends_late} of {} times more than {LONG_WAIT} (max {})",
            ends.p50.rounded(),
            ends.count,
            ends.max.rounded()
        )
    })
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
            Validity::Valid => {
                write!(f, "VALID: 99 in 100 frames left within {} of their time", self.bound)
            }
            Validity::Nothing => write!(f, "{}", self.nothing()),
            Validity::Invalid(reasons) => write!(f, "INVALID: {}", reasons.join("; ")),
        }
    }
}

impl Accuracy<'_> {
    /// The reason why there is nothing to judge.
    pub fn nothing(&self) -> String {
        let sum =
            |field: fn(&LaneSnapshot) -> u64| self.snapshot.lanes.iter().map(field).sum::<u64>();
        match sum(|lane| lane.entered) {
            0 => "nothing to judge: no frame was offered to the path".into(),
            entered => format!(
                "nothing to judge: of {entered} frames that entered none was to leave: the path dropped {}, and {} were still under way",
                sum(|lane| lane.dropped.values().sum()),
                sum(|lane| lane.in_flight)
            ),
        }
    }

    fn write_machine(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Snapshot {
            stalls,
            longest_stall,
            ends,
            clock_steps,
            stamps_corrected,
            stamps_uncertain,
            stamp_uncertainty,
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
        if ends.count > 0 {
            writeln!(f, "waiting programs ran {ends} after their frames were handed over")?;
        }
        if *clock_steps > 0 {
            writeln!(
                f,
                "the wall clock was stepped {clock_steps} times during the run; arrival stamps put right: {stamps_corrected}"
            )?;
        }
        if *stamps_uncertain > 0 {
            writeln!(
                f,
                "{stamps_uncertain} arrivals close to a step of the wall clock are uncertain by up to {}",
                stamp_uncertainty.rounded()
            )?;
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

    fn verdict(lane: LaneSnapshot) -> Validity {
        let snapshot = Snapshot { lanes: vec![lane], ..Snapshot::default() };
        Accuracy::of(&snapshot, DEFAULT_BOUND).verdict()
    }

    #[test]
    fn one_in_a_hundred_may_be_late() {
        assert_eq!(verdict(lane(10_000, 100)), Validity::Valid);
        assert!(matches!(verdict(lane(10_000, 101)), Validity::Invalid(_)));
        assert_eq!(verdict(lane(6, 1)), Validity::Valid);
        assert!(matches!(verdict(lane(6, 2)), Validity::Invalid(_)));
    }

    fn changed(change: impl Fn(&mut Snapshot)) -> Validity {
        let mut snapshot = Snapshot {
            lanes: vec![lane(10_000, 0)],
            uptime: Span::from_secs(60),
            ..Snapshot::default()
        };
        change(&mut snapshot);
        Accuracy::of(&snapshot, DEFAULT_BOUND).verdict()
    }

    fn stalled(uptime: u64, stalled: u64, longest: u64) -> Validity {
        changed(|snapshot| {
            snapshot.uptime = Span::from_millis(uptime);
            snapshot.stalls = 3;
            snapshot.stalled = Span::from_millis(stalled);
            snapshot.longest_stall = Span::from_millis(longest);
        })
    }

    #[test]
    fn a_long_stall_and_many_short_ones_make_a_run_invalid_though_no_frame_was_late() {
        assert_eq!(stalled(3_600_000, 99, 99), Validity::Valid);
        assert!(matches!(stalled(3_600_000, 100, 100), Validity::Invalid(_)));
        assert_eq!(stalled(5_000, 50, 9), Validity::Valid);
        assert!(matches!(stalled(5_000, 51, 9), Validity::Invalid(_)));
        assert_eq!(stalled(100, 9, 9), Validity::Valid, "one moment of a short run");
    }

    #[test]
    fn arrivals_that_are_not_known_make_a_run_invalid() {
        assert_eq!(changed(|it| (it.clock_steps, it.stamps_corrected) = (1, 40)), Validity::Valid);
        let uncertain = |micros| {
            changed(|it| {
                it.stamps_uncertain = 1;
                it.stamp_uncertainty = Span::from_micros(micros);
            })
        };
        assert_eq!(uncertain(100), Validity::Valid);
        assert!(matches!(uncertain(101), Validity::Invalid(_)));
        let Validity::Invalid(reasons) = changed(|it| it.stamps_replaced = 2) else { panic!() };
        assert!(reasons[0].contains("2 frames carried"), "{reasons:?}");
    }

    #[test]
    fn a_run_that_no_frame_left_is_not_valid() {
        let told = |lanes: Vec<LaneSnapshot>| {
            let snapshot = Snapshot { lanes, ..Snapshot::default() };
            let accuracy = Accuracy::of(&snapshot, DEFAULT_BOUND);
            assert_eq!(accuracy.verdict(), Validity::Nothing);
            accuracy.to_string()
        };
        assert!(told(vec![LaneSnapshot::default()]).contains("no frame was offered to the path"));
        let mut lost = LaneSnapshot { entered: 7, in_flight: 2, ..LaneSnapshot::default() };
        lost.dropped.insert("loss".into(), 5);
        let told = told(vec![lost]);
        assert!(told.contains("of 7 frames") && told.contains("dropped 5, and 2 were"), "{told}");
    }

    #[test]
    fn what_the_ends_saw_is_judged_by_its_own_bounds() {
        let waits = |count, p50, ends_late| {
            let p50 = Span::from_micros(p50);
            let ends =
                Percentiles { count, p50, p99: LONG_WAIT.max(p50), ..Percentiles::default() };
            of_ends(&Snapshot { ends, ends_late, ..Snapshot::default() }, DEFAULT_BOUND)
        };
        assert_eq!((waits(500, 100, 5), waits(9, 5, 1)), (None, None));
        assert!(waits(500, 101, 0).unwrap().contains("101us as a rule"));
        assert!(waits(500, 5, 6).unwrap().contains("6 of 500 times more than 10ms"));
        assert_eq!(waits(1, 1_000_000, 1), None, "a single late one is forgiven");
        let late = |own_processor| {
            changed(|it| {
                it.own_processor = own_processor;
                (it.ends.count, it.ends.p50) = (9, Span::from_millis(1));
            })
        };
        assert!(matches!(late(false), Validity::Invalid(_)));
        assert_eq!(late(true), Validity::Valid, "they wait for each other");
    }

    #[test]
    fn frames_lost_by_the_emulator_are_never_forgiven() {
        let mut lossy = lane(1000, 0);
        lossy.dropped.insert("ring-full".into(), 1);
        lossy.dropped_by_emulator = 1;
        assert!(matches!(verdict(lossy), Validity::Invalid(_)));
        let mut too_big = lane(1000, 0);
        too_big.dropped.insert("too-big".into(), 1);
        too_big.dropped_by_emulator = 1;
        assert_eq!(
            verdict(too_big),
            Validity::Valid,
            "the device's property, not the emulator's failing"
        );
    }
}
