//! Was the machine good enough for the measurement? If not, the result must not be used: Hawley repeated a
//! test when the load had changed meanwhile (1989, section 4.1), and so does [`run`](crate::run).

use trunkline_core::Span;
use trunkline_dataplane::accuracy::of_ends;
use trunkline_dataplane::{HopSums, LaneResult, Snapshot};
use trunkline_engine::{About, Note, NoteKind};
use trunkline_measure::{Accuracy, Conservation};

/// One frame in a hundred may leave later than this,
pub const LATENESS: Span = Span::from_micros(100);
/// or later than this share of its mean time on the path, in percent, where that is more.
pub const LATENESS_SHARE: u64 = 2;
/// The machine may keep the emulator from running for this share of the time, in percent.
pub const STALLED: u64 = 1;
/// Processors that were all busy for this share of the run were what was measured.
pub const SATURATED: f64 = 0.95;
/// Another system may have taken this share of the processors.
pub const STOLEN: f64 = 0.05;
/// Other programs may take this share of the processors before the run.
pub const FOREIGN: f64 = 0.25;

/// What the machine did during a run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Machine {
    /// Share of the processors that others took before, 0 to 1.
    pub foreign: f64,
    /// Share of the run in which each processor was busy.
    pub busy: Vec<f64>,
    /// Share of the processors that another system took.
    pub stolen: f64,
    /// From the start of time to its end.
    pub lasted: Span,
}

/// What the dataplane said before and after.
#[derive(Debug, Clone, Copy)]
pub struct Between<'a> {
    /// Before time began.
    pub before: &'a Snapshot,
    /// At the end.
    pub after: &'a Snapshot,
}

impl Between<'_> {
    fn stalled(&self) -> Span {
        self.after.stalled.saturating_sub(self.before.stalled)
    }
    /// The longest stall during the run, or at most how long it was: the emulator knows the longest since its
    /// start, which may have been before time began.
    pub fn longest_stall(&self) -> Span {
        self.after.longest_stall.min(self.stalled())
    }
    /// Stalls during the run.
    pub fn stalls(&self) -> u64 {
        self.after.stalls.saturating_sub(self.before.stalls)
    }
    /// Arrival stamps during the run that cannot be true.
    fn stamps_replaced(&self) -> u64 {
        self.after.stamps_replaced.saturating_sub(self.before.stamps_replaced)
    }
    /// Steps of the clock during the run.
    pub fn clock_steps(&self) -> u64 {
        self.after.clock_steps.saturating_sub(self.before.clock_steps)
    }
}

/// The last lane of a way, with what its frames waited for on the whole way.
#[derive(Debug, Clone, Copy)]
pub struct Exit<'a> {
    /// The lane's name.
    pub name: &'a str,
    /// What it did.
    pub lane: &'a LaneResult,
    /// The least mean time on the path of the ways that end with it.
    pub path: Span,
}

/// The mean time that frames spent on a way.
pub fn mean_path(hops: &[HopSums]) -> Span {
    let mean = |hop: &HopSums| {
        let sum = hop.queue + hop.transmit + hop.propagate;
        Span::from_nanos((sum / u128::from(hop.frames.max(1))) as u64)
    };
    hops.iter().map(mean).sum()
}

/// Why the result must not be used; empty where it may.
pub fn complaints(
    accuracy: &Accuracy,
    exits: &[Exit<'_>],
    between: Between<'_>,
    machine: &Machine,
) -> Vec<Note> {
    let lost = (accuracy.dropped_by_emulator > 0).then(|| {
        invalid(format!(
            "the emulator itself lost {} frames: its machine was too slow, or short of memory",
            accuracy.dropped_by_emulator
        ))
    });
    let late = exits.iter().filter_map(late);
    let rest = of_ends(between.after, LATENESS)
        .into_iter()
        .chain(of_clock(between, machine.lasted))
        .chain(of_machine(machine));
    lost.into_iter().chain(late).chain(rest.map(invalid)).collect()
}

/// A note of the whole run that the machine has spoilt it.
fn invalid(text: String) -> Note {
    Note::new(NoteKind::Invalid, text)
}

/// Of a run that no frame left nothing was measured but what the network dropped.
pub fn nothing_left(frames: &Conservation) -> Option<Note> {
    let Conservation { sent, delivered, in_flight, .. } = *frames;
    match (sent, delivered) {
        (0, 0) => Some(invalid("no frame was sent: there is nothing to judge".into())),
        (sent, 0) if in_flight > 0 => Some(invalid(format!(
            "of {sent} frames that were sent none left the network, and {in_flight} were still under way at the end"
        ))),
        _ => None,
    }
}

/// With fewer than 200 frames, one in a hundred is none or one: a single late frame is forgiven.
fn late(exit: &Exit<'_>) -> Option<Note> {
    let Exit { name, lane, path } = exit;
    let bound = LATENESS.max(path.scaled(LATENESS_SHARE, 100));
    let frames = lane.lateness.count();
    let late = lane.lateness.longer_than(bound);
    (late > (frames / 100).max(1)).then(|| {
        let Percent(p99, max) = percent(lane);
        let text = format!(
            "{late} of {frames} frames left more than {} late (p99 {p99}, max {max})",
            bound.rounded()
        );
        invalid(text).about(About::Link(name.to_string()))
    })
}

struct Percent(Span, Span);

fn percent(lane: &LaneResult) -> Percent {
    let figures = lane.lateness.percentiles();
    Percent(figures.p99.rounded(), figures.max.rounded())
}

fn of_clock(between: Between<'_>, lasted: Span) -> Vec<String> {
    let mut found = Vec::new();
    let stalled = between.stalled();
    if stalled > lasted.scaled(STALLED, 100) {
        found.push(format!(
            "the machine kept the emulator from running for {} of {}, in {} stalls",
            stalled.rounded(),
            lasted.rounded(),
            between.stalls()
        ));
    }
    if between.clock_steps() > 0 {
        found.push(format!("the clock was set {} times during the run", between.clock_steps()));
    }
    if between.stamps_replaced() > 0 {
        found.push(format!(
            "{} frames carried arrival stamps that cannot be true: when they came is not known",
            between.stamps_replaced()
        ));
    }
    found
}

fn of_machine(machine: &Machine) -> Vec<String> {
    let percent = |share: f64| (share * 100.0).round();
    let Machine { foreign, busy, stolen, .. } = machine;
    let mut found = Vec::new();
    if *foreign > FOREIGN {
        found.push(format!(
            "other programs took {} % of the processors just before the run",
            percent(*foreign)
        ));
    }
    let least = busy.iter().copied().reduce(f64::min).unwrap_or(0.0);
    if least > SATURATED {
        found.push(format!("all processors were busy for {} % of the run or more", percent(least)));
    }
    if *stolen > STOLEN {
        found.push(format!("another system took {} % of the processors", percent(*stolen)));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use trunkline_core::Counts;
    use trunkline_measure::Times;

    fn lane(frames: u64, late: u64) -> LaneResult {
        let mut lateness = Times::default();
        (0..frames - late).for_each(|_| lateness.record(Span::from_micros(5)));
        (0..late).for_each(|_| lateness.record(Span::from_micros(500)));
        LaneResult {
            counts: Counts::default(),
            busy: Span::ZERO,
            queueing: None,
            backlog: Vec::new(),
            lateness,
        }
    }

    fn judged(
        lane: &LaneResult,
        path: Span,
        change: impl Fn(&mut Accuracy, &mut Snapshot, &mut Machine),
    ) -> Vec<Note> {
        let (before, mut after) = (Snapshot::default(), Snapshot::default());
        let mut accuracy = Accuracy::default();
        let mut machine = Machine { lasted: Span::from_secs(10), ..Machine::default() };
        change(&mut accuracy, &mut after, &mut machine);
        let between = Between { before: &before, after: &after };
        complaints(&accuracy, &[Exit { name: "n>b", lane, path }], between, &machine)
    }

    #[test]
    fn what_counts_as_late_grows_with_the_path() {
        let none = |_: &mut Accuracy, _: &mut Snapshot, _: &mut Machine| {};
        assert_eq!(judged(&lane(1000, 10), Span::ZERO, none), []);
        assert_eq!(judged(&lane(5, 1), Span::ZERO, none), []);
        let late = judged(&lane(1000, 11), Span::from_millis(5), none);
        assert!(
            late[0].to_string().contains("n>b: 11 of 1000 frames left more than 100us late"),
            "{late:?}"
        );
        assert_eq!(judged(&lane(1000, 11), Span::from_millis(50), none), []);
    }

    #[test]
    fn a_stall_before_the_run_is_none_of_its_own() {
        let span = Span::from_millis;
        let stalled = |all, longest| Snapshot {
            stalled: span(all),
            longest_stall: span(longest),
            ..Snapshot::default()
        };
        let (before, after) = (stalled(30, 30), stalled(30, 30));
        assert!(Between { before: &before, after: &after }.longest_stall().is_zero());
        let after = stalled(34, 30);
        assert_eq!(Between { before: &before, after: &after }.longest_stall(), span(4));
    }

    #[test]
    fn a_run_that_no_frame_left_measured_nothing_but_losses() {
        let told = |sent, delivered, dropped, in_flight| {
            nothing_left(&Conservation { sent, delivered, dropped, in_flight, duplicated: 0 })
        };
        assert!(told(0, 0, 0, 0).unwrap().text.contains("no frame was sent"));
        assert!(told(9, 0, 2, 7).unwrap().text.contains("none left the network, and 7 were"));
        assert_eq!((told(9, 0, 9, 0), told(9, 1, 0, 8)), (None, None));
    }

    #[test]
    fn every_fault_of_the_machine_is_named() {
        let sound = lane(1000, 0);
        type Change = fn(&mut Accuracy, &mut Snapshot, &mut Machine);
        let faults: [(Change, &str); 8] = [
            (|accuracy, _, _| accuracy.dropped_by_emulator = 3, "lost 3 frames"),
            (|_, after, _| after.stalled = Span::from_millis(101), "101ms of 10s"),
            (|_, after, _| after.clock_steps = 1, "clock was set 1 times"),
            (
                |_, after, _| {
                    (after.ends.count, after.ends.p50) = (9, Span::from_millis(1));
                },
                "for want of a processor",
            ),
            (|_, after, _| after.stamps_replaced = 2, "2 frames carried arrival stamps"),
            (|_, _, machine| machine.foreign = 0.4, "40 % of the processors just before"),
            (|_, _, machine| machine.busy = vec![0.96, 1.0], "busy for 96 %"),
            (|_, _, machine| machine.stolen = 0.06, "took 6 %"),
        ];
        for (change, text) in faults {
            let found = judged(&sound, Span::ZERO, change);
            assert!(found.len() == 1 && found[0].text.contains(text), "{text}: {found:?}");
        }
        let bearable: Change = |_, after, machine| {
            (after.stalled, machine.busy) = (Span::from_millis(99), vec![1.0, 0.5]);
        };
        assert_eq!(judged(&sound, Span::ZERO, bearable), []);
    }
}
