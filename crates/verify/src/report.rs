//! The figures of a run and the verdict on them.
//!
//! In JSON (`format` [`FORMAT`]) every field stands under its own name; times are texts with a unit
//! (`"1.5us"`), signed times numbers of nanoseconds (`_ns`).

use crate::generator::Recording;
use crate::limits::Bound;
use crate::spread::Spread;
use serde::{Deserialize, Serialize};
use trunkline_core::Span;
use trunkline_dataplane::Snapshot;
use trunkline_dataplane::accuracy::LONG_STALL;
use trunkline_measure::Percentiles;

/// The format of the JSON output; it changes when a field changes its meaning or goes.
pub const FORMAT: u32 = 1;

/// The thresholds of good enough: 99 in 100 must be no larger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thresholds {
    /// Of the delay error.
    pub delay: Span,
    /// Of the spacing error.
    pub spacing: Span,
}

impl Default for Thresholds {
    fn default() -> Thresholds {
        Thresholds { delay: Span::from_micros(50), spacing: Span::from_micros(20) }
    }
}

/// Probes that never arrived, by who lost them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Lost {
    /// By the emulator, or on its way between the devices.
    pub emulator: u64,
    /// By the modelled queue, as it should.
    pub queue: u64,
    /// By the receiving socket of the measurement, which was not read in time.
    pub receiver: u64,
    /// By nobody: still under way in the modelled path when the run ended.
    #[serde(default)]
    pub under_way: u64,
}

impl Lost {
    /// Attributes `missing` probes. What neither the queue nor the receiver lost, nor the path still holds, is the
    /// emulator's.
    pub fn of(missing: u64, receiver: u64, snapshot: &Snapshot) -> Lost {
        let lanes = &snapshot.lanes;
        let dropped: u64 = lanes.iter().flat_map(|lane| lane.dropped.values()).sum();
        let queue = (dropped - snapshot.dropped_by_emulator().min(dropped)).min(missing);
        let under_way = lanes.iter().map(|lane| lane.in_flight).sum::<u64>().min(missing - queue);
        let receiver = receiver.min(missing - queue - under_way);
        Lost { emulator: missing - queue - under_way - receiver, queue, receiver, under_way }
    }
}

/// When the machine did not let emulator or generator run: stalls of more than a millisecond, and
/// interruptions of more than 20 us.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Stalls {
    /// The number of times that the emulator did not run.
    pub emulator: u64,
    /// The longest time.
    pub emulator_longest: Span,
    /// The number of times that the emulator lost more than 20 us while it was spinning or working.
    pub interruptions: u64,
    /// The time so lost in all.
    pub interrupted: Span,
    /// The number of times that the generator did not run.
    pub generator: u64,
    /// The longest time.
    pub generator_longest: Span,
}

impl Stalls {
    /// As the emulator and the generator saw them.
    pub fn of(recording: &Recording, snapshot: &Snapshot) -> Stalls {
        Stalls {
            emulator: snapshot.stalls,
            emulator_longest: snapshot.longest_stall,
            interruptions: snapshot.interruptions,
            interrupted: snapshot.interrupted,
            generator: recording.stalls,
            generator_longest: recording.longest_stall,
        }
    }

    /// Whether there was any.
    pub fn any(&self) -> bool {
        self.emulator + self.generator > 0
    }
}

/// One run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The delay from near to far, before changes.
    pub delay_up: Span,
    /// The delay from far to near.
    pub delay_down: Span,
    /// Bytes of a probe, as an IPv4 packet.
    pub size: u32,
    /// Probes per second each way that were to be sent.
    pub offered_per_second: f64,
    /// Probes per second each way that were sent, reflections included.
    pub sent_per_second: f64,
    /// Whether the generator sent all that it was to send.
    pub complete: bool,
    /// The bound that set the rate.
    pub bound: Bound,
    /// The number of times that the delay was changed during the run.
    pub delay_changes: u64,
    /// Probes sent, both ways, reflections included.
    pub sent: u64,
    /// Probes that the sending device refused; not counted as sent.
    pub refused: u64,
    /// Probes that never arrived.
    pub lost: Lost,
    /// Probes behind one with a higher number (RFC 4737).
    pub reordered: u64,
    /// Second arrivals.
    pub duplicated: u64,
    /// Probes whose delay error exceeds the threshold.
    pub late: u64,
    /// Gaps whose spacing error exceeds the threshold.
    pub uneven: u64,
    /// Measured one-way time, less the baseline's median, less the time that the path prescribes: its
    /// absolute value.
    pub delay_error: Percentiles,
    /// The mean of the same with its sign, in nanoseconds.
    pub mean_error_ns: i64,
    /// Gap between successive arrivals against the gap prescribed: the absolute difference.
    pub spacing_error: Percentiles,
    /// Left out of the errors: the call that sent the probe took over 50 us.
    pub interrupted: u64,
    /// Left out: left the line within 20 us of a change of the delay.
    pub near_change: u64,
    /// Left out: lost though the path delivers it, or delivered though the path drops it.
    pub other_fate: u64,
    /// Counted with the nearer of two slots, because the stamps do not tell which it was.
    pub slot_open: u64,
    /// Round trips over the path, less the time that it prescribes.
    pub rtt_with: Spread,
    /// Round trips over direct veth.
    pub rtt_without: Spread,
    /// One way over direct veth, from the sender's clock to the arrival stamp: the median taken off.
    pub baseline_lead: Span,
    /// The 99th percentile of that, less the median: the measurement's own error.
    pub baseline_p99: Span,
    /// The lateness of probes sent, against their intended time. The path is judged from when they were.
    pub sender_late: Percentiles,
    /// The emulator's own statement, for comparison: the lateness of frames against its schedule,
    /// the worse direction.
    pub own_statement: Percentiles,
    /// Stalls of the machine.
    pub stalls: Stalls,
    /// Whether the clock of the stamps was stepped.
    pub clock_stepped: bool,
    /// The reasons why the machine did not hold the setting; empty if it did.
    pub problems: Vec<String>,
}

impl Row {
    /// The same row with its problems.
    pub fn judged(mut self, thresholds: &Thresholds) -> Row {
        self.problems = self.find_problems(thresholds);
        self
    }

    /// Whether the machine held the setting.
    pub fn holds(&self) -> bool {
        self.problems.is_empty()
    }

    /// Of fewer than 200 probes one in a hundred is none or one: a single one is then forgiven.
    fn find_problems(&self, thresholds: &Thresholds) -> Vec<String> {
        let mut problems = Vec::new();
        let mut add = |wrong: bool, text: String| {
            if wrong {
                problems.push(text);
            }
        };
        add(self.lost.emulator > 0, format!("the emulator lost {}", self.lost.emulator));
        add(self.reordered > 0, format!("{} reordered", self.reordered));
        add(self.duplicated > 0, format!("{} duplicated", self.duplicated));
        add(
            self.late > (self.delay_error.count / 100).max(1),
            format!(
                "delay error p99 {} above {}",
                self.delay_error.p99.rounded(),
                thresholds.delay
            ),
        );
        add(
            self.uneven > (self.spacing_error.count / 100).max(1),
            format!(
                "spacing error p99 {} above {}",
                self.spacing_error.p99.rounded(),
                thresholds.spacing
            ),
        );
        add(self.is_displaced(), self.displaced());
        add(self.lost.receiver > 0, format!("the receiver lost {}", self.lost.receiver));
        add(!self.complete, "the generator did not keep up".into());
        add(self.refused > 0, format!("the device refused {}", self.refused));
        add(self.clock_stepped, "the wall clock was stepped".into());
        add(
            self.stalls.emulator_longest >= LONG_STALL,
            format!("the emulator did not run for {}", self.stalls.emulator_longest.rounded()),
        );
        add(self.delay_error.count == 0, self.nothing());
        problems
    }

    /// Whether errors may be the reference's: one packet that a queue drops more or less displaces all behind it.
    fn is_displaced(&self) -> bool {
        let compared = self.delay_error.count;
        let wrong = self.late > compared / 100 || self.uneven > self.spacing_error.count / 100;
        wrong && self.other_fate > compared / 100
    }

    fn displaced(&self) -> String {
        format!(
            "{} probes met another fate than prescribed, which displaces those behind them: what a queue drops at random hangs on \
             nanoseconds and cannot be verified packet by packet; give a lower load, at which it drops nothing, or another --queue",
            self.other_fate
        )
    }

    /// Why nothing was compared.
    fn nothing(&self) -> String {
        match self.lost.under_way {
            0 => "nothing to compare".into(),
            probes => format!(
                "nothing to compare: {probes} of {} probes were still under way when the run ended, as the path is so slow; give a higher --rate, smaller probes or a longer --duration",
                self.sent
            ),
        }
    }

    /// By how much the emulator widens round trips: the difference of the standard deviations.
    pub fn rtt_widening(&self) -> Span {
        self.rtt_with.deviation.saturating_sub(self.rtt_without.deviation)
    }
}

/// All runs of one call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// [`FORMAT`].
    pub format: u32,
    /// Whether the machine held every setting.
    pub holds: bool,
    /// The thresholds.
    pub thresholds: Thresholds,
    /// The backend.
    pub backend: String,
    /// Whether the emulator never slept.
    pub busy: bool,
    /// The runs.
    pub runs: Vec<Row>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use trunkline_dataplane::LaneSnapshot;

    /// A row without a fault.
    pub(crate) fn row() -> Row {
        Row {
            delay_up: Span::from_millis(10),
            delay_down: Span::from_millis(10),
            size: 576,
            offered_per_second: 100.0,
            sent_per_second: 100.0,
            complete: true,
            bound: Bound::Asked,
            delay_changes: 2,
            sent: 400,
            refused: 0,
            lost: Lost::default(),
            reordered: 0,
            duplicated: 0,
            late: 0,
            uneven: 0,
            delay_error: Percentiles { count: 400, ..Percentiles::default() },
            mean_error_ns: 900,
            spacing_error: Percentiles { count: 398, ..Percentiles::default() },
            interrupted: 0,
            near_change: 0,
            other_fate: 0,
            slot_open: 0,
            rtt_with: Spread::default(),
            rtt_without: Spread::default(),
            baseline_lead: Span::from_nanos(700),
            baseline_p99: Span::from_nanos(300),
            sender_late: Percentiles::default(),
            own_statement: Percentiles::default(),
            stalls: Stalls::default(),
            clock_stepped: false,
            problems: Vec::new(),
        }
    }

    #[test]
    fn each_failing_is_named_alone() {
        let judge = |change: fn(&mut Row)| {
            let mut row = row();
            change(&mut row);
            row.judged(&Thresholds::default()).problems.join("; ")
        };
        assert_eq!(judge(|_| {}), "");
        assert_eq!(judge(|row| row.late = 4), "", "one in a hundred may be late");
        assert_eq!(judge(|row| row.lost.queue = 7), "", "the path's own loss is as asked");
        for (change, named) in [
            ((|row| row.late = 5) as fn(&mut Row), "delay error"),
            (|row| row.uneven = 4, "spacing error"),
            (|row| row.lost.emulator = 1, "emulator lost 1"),
            (|row| row.lost.receiver = 2, "receiver lost 2"),
            (|row| row.reordered = 1, "1 reordered"),
            (|row| row.duplicated = 1, "1 duplicated"),
            (|row| row.complete = false, "keep up"),
            (|row| row.refused = 1, "refused"),
            (|row| row.clock_stepped = true, "stepped"),
            (|row| row.delay_error.count = 0, "nothing to compare"),
            (|row| row.stalls.emulator_longest = LONG_STALL, "did not run for 100ms"),
        ] {
            let told = judge(change);
            assert!(told.contains(named) && !told.contains(';'), "{told}");
        }
    }

    #[test]
    fn losses_go_to_whom_they_belong() {
        let mut lane = LaneSnapshot { dropped_by_emulator: 3, ..LaneSnapshot::default() };
        lane.dropped.insert("ring-full".into(), 3);
        lane.dropped.insert("queue-limit".into(), 5);
        let snapshot = Snapshot { lanes: vec![lane], ..Snapshot::default() };
        let of = |emulator, receiver| Lost { emulator, queue: 5, receiver, under_way: 0 };
        assert_eq!(Lost::of(10, 2, &snapshot), of(3, 2));
        assert_eq!(Lost::of(12, 2, &snapshot), of(5, 2));
        assert_eq!(Lost::of(0, 2, &snapshot), Lost::default(), "nothing of ours is missing");
    }

    /// A probe that a slow line has not yet delivered is nobody's loss.
    #[test]
    fn what_is_still_under_way_is_not_lost() {
        let lane = LaneSnapshot { in_flight: 4, ..LaneSnapshot::default() };
        let snapshot = Snapshot { lanes: vec![lane], ..Snapshot::default() };
        let of = |emulator, under_way| Lost { emulator, under_way, ..Lost::default() };
        assert_eq!([3, 4, 6].map(|n| Lost::of(n, 0, &snapshot)), [of(0, 3), of(0, 4), of(2, 4)]);
        let mut row = Row { lost: of(0, 4), ..row() };
        assert!(row.clone().judged(&Thresholds::default()).problems.is_empty());
        row.delay_error.count = 0;
        let problems = row.judged(&Thresholds::default()).problems.join("; ");
        assert!(problems.contains("4 of 400") && problems.contains("--rate"), "{problems}");
    }

    #[test]
    fn reports_are_read_back() {
        let report = Report {
            format: FORMAT,
            holds: true,
            thresholds: Thresholds::default(),
            backend: "packet".into(),
            busy: false,
            runs: vec![row()],
        };
        let text = serde_json::to_string(&report).unwrap();
        assert!(text.contains("\"delay_up\":\"10ms\"") && text.contains("\"format\":1"));
        assert_eq!(serde_json::from_str::<Report>(&text).unwrap(), report);
    }

    /// A queue that drops at random drops others than the reference; that is no fault of the machine.
    #[test]
    fn a_queue_that_drops_at_random_is_named() {
        let told = |other_fate| {
            let row = Row { late: 300, other_fate, ..row() };
            row.judged(&Thresholds::default()).problems.join("; ")
        };
        assert!(
            told(99).contains("99 probes met another fate") && told(99).contains("--queue"),
            "{}",
            told(99)
        );
        assert!(!told(1).contains("fate"), "{}", told(1));
        assert!(Row { other_fate: 99, ..row() }.judged(&Thresholds::default()).holds());
    }
}
