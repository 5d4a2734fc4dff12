//! The rate of all flows of a traffic together.

use crate::TrafficRun;
use serde::{Deserialize, Serialize};
use trunkline_core::{Span, Time};

/// The amount that a flow has moved from its sender to its receiver, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Course {
    /// The flow, from 0.
    pub flow: u32,
    /// Its application's first action, when its connection was set up.
    pub from: Time,
    /// Its sender's last action or its receiver's last delivery, whichever came later; the run's end if it
    /// went on.
    pub to: Time,
    /// User bytes that the receiving application has been handed, those of unfinished transfers included.
    pub bytes: u64,
}

impl Course {
    /// Its flow, if that was under way and got nothing.
    pub(crate) fn starved(&self) -> Option<u32> {
        (self.bytes == 0 && self.to > self.from).then_some(self.flow)
    }
}

impl TrafficRun {
    /// User bytes that all flows together deliver in a second: what came in, over the time in which at least one
    /// of them was under way. So it never exceeds what the line carries, whether the flows go on at the same time or
    /// one after the other, and whether or not a transfer was completed; copies of datagrams that the path makes behind the
    /// line count.
    ///
    /// Of [`amounts`](TrafficRun::amounts) it is what came in the measured intervals. If several sizes were measured
    /// one after the other, or the flows' [`courses`](TrafficRun::courses) are not known (most formulas, outside programs),
    /// it is made of the measurements of `size`; but not of [`writes`](TrafficRun::writes) of several sizes, of which nobody knows
    /// when they arrived. `None` if nothing was measured, or it took no time.
    pub fn total_rate(&self, size: u64) -> Option<f64> {
        let is_one = self.sizes().len() == 1;
        match self.course_rate().filter(|_| is_one && !self.amounts) {
            Some(rate) => Some(rate),
            None if self.writes && !is_one => None,
            None => {
                let (bytes, times) = self.measured(size);
                rate(bytes, times)
            }
        }
    }

    /// The bytes of all measurements of one size, and when they were under way: if not all are kept, from each
    /// flow's first to its last.
    fn measured(&self, size: u64) -> (u64, Vec<(Time, Time)>) {
        if let Some(group) = self.samples.groups().and_then(|groups| groups.get(&size)) {
            return (group.bytes, group.reach.values().copied().collect());
        }
        let times = self.of_size(size).map(|sample| (sample.start, sample.end)).collect();
        (self.of_size(size).map(|sample| sample.size).sum(), times)
    }

    /// The same of the flows' whole courses, whatever was measured; `None` if they are not known.
    pub fn course_rate(&self) -> Option<f64> {
        let times = self.courses.iter().map(|course| (course.from, course.to)).collect();
        rate(self.courses.iter().map(|course| course.bytes).sum(), times)
    }
}

fn rate(bytes: u64, times: Vec<(Time, Time)>) -> Option<f64> {
    let covered = covered(times);
    (!covered.is_zero()).then(|| bytes as f64 * 1e9 / covered.as_nanos() as f64)
}

/// The time for which at least one of the stretches lasts.
fn covered(mut stretches: Vec<(Time, Time)>) -> Span {
    stretches.sort_unstable();
    let (mut sum, mut reached) = (Span::ZERO, Time::ZERO);
    for (from, to) in stretches {
        sum += to.max(reached).since(from.max(reached));
        reached = reached.max(to);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Keep, Sample, Samples};
    use proptest::prelude::*;
    use trunkline_core::Seed;

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    fn sample(flow: u32, size: u64, from: u64, to: u64) -> Sample {
        let (start, end) = (at(from), at(to));
        Sample { flow, index: 0, size, intended: start, start, end, steps: Default::default() }
    }

    fn course(bytes: u64, from: u64, to: u64) -> Course {
        Course { flow: 0, from: at(from), to: at(to), bytes }
    }

    #[test]
    fn flows_one_after_the_other_do_not_add_up() {
        let samples = vec![sample(0, 1000, 0, 100), sample(1, 1000, 100, 200)];
        let run = TrafficRun { samples: samples.into(), ..TrafficRun::default() };
        assert_eq!(run.total_rate(1000), Some(10_000.0), "each alone has ten thousand");
        // Half of the line each, then the second alone: never more than the line.
        let samples = vec![sample(0, 500, 0, 100), sample(1, 1000, 0, 150)];
        let run = TrafficRun { samples: samples.into(), amounts: true, ..TrafficRun::default() };
        assert_eq!(run.total_rate(0), Some(10_000.0));
    }

    #[test]
    fn a_gap_in_which_nobody_sends_does_not_count() {
        let samples = vec![sample(0, 1000, 50, 100), sample(0, 1000, 300, 350)];
        let run = TrafficRun { samples: samples.into(), ..TrafficRun::default() };
        assert_eq!(run.total_rate(1000), Some(20_000.0));
    }

    #[test]
    fn what_was_delivered_counts_without_a_transfer_completed() {
        let courses = vec![course(219_000, 0, 1000), course(1000, 500, 1100)];
        let run = TrafficRun { courses, ..TrafficRun::default() };
        assert_eq!(run.course_rate(), Some(200_000.0));
        assert_eq!(run.total_rate(7), None, "nothing of this size was measured");
        let samples = vec![sample(0, 100, 0, 900)];
        let run = TrafficRun { samples: samples.into(), ..run };
        assert_eq!(run.total_rate(100), Some(200_000.0));
        let run = TrafficRun { amounts: true, ..run };
        assert!((run.total_rate(0).unwrap() - 100.0 / 0.9).abs() < 1e-9, "intervals only");
    }

    /// Ten writes of a kilobyte fill a buffer in no time, and arrive while those of another size are made.
    #[test]
    fn writes_of_several_sizes_have_no_total_of_their_own() {
        let samples = vec![sample(0, 10_000, 0, 1), sample(0, 500, 1, 1001)];
        let courses = vec![course(10_500, 0, 1001)];
        let run = TrafficRun { samples: samples.into(), courses, ..TrafficRun::default() };
        assert_eq!(run.total_rate(10_000), Some(1e7), "messages");
        let run = TrafficRun { writes: true, ..run };
        assert_eq!([10_000, 500].map(|size| run.total_rate(size)), [None, None]);
        let alone = TrafficRun { samples: vec![sample(0, 500, 1, 1001)].into(), ..run };
        assert_eq!(alone.total_rate(500), alone.course_rate());
    }

    #[test]
    fn most_intervals_may_be_empty() {
        let samples =
            vec![sample(0, 0, 0, 1000), sample(0, 0, 1000, 2000), sample(0, 219_000, 2000, 3000)];
        let run = TrafficRun { samples: samples.into(), amounts: true, ..TrafficRun::default() };
        assert_eq!(run.total_rate(0), Some(73_000.0));
    }

    #[test]
    fn it_is_the_same_where_not_all_are_kept() {
        let mut samples = Samples::new(Keep::AtMost(3), Seed(1), true);
        for flow in 0..2 {
            (0..50).for_each(|at| samples.push(sample(flow, 100 * at, 10 * at, 10 * at + 10)));
        }
        samples.rebase(|at| at + Span::from_millis(5));
        samples.finish();
        assert!(!samples.is_whole());
        let run = TrafficRun { samples, amounts: true, ..TrafficRun::default() };
        assert_eq!(run.total_rate(0), Some(2.0 * 122_500.0 / 0.5));
    }

    #[test]
    fn no_time_has_no_rate() {
        let run = TrafficRun { samples: vec![sample(0, 5, 3, 3)].into(), ..TrafficRun::default() };
        assert_eq!((run.total_rate(5), TrafficRun::default().course_rate()), (None, None));
    }

    proptest! {
        #[test]
        fn the_stretches_cover_what_a_clock_of_milliseconds_counts(
            ends in prop::collection::vec((0u64..60, 0u64..30), 0..12)
        ) {
            let stretches: Vec<(Time, Time)> =
                ends.iter().map(|&(from, lasts)| (at(from), at(from + lasts))).collect();
            let inside = |tick: u64| ends.iter().any(|&(from, lasts)| (from..from + lasts).contains(&tick));
            let counted = (0..100).filter(|&tick| inside(tick)).count() as u64;
            prop_assert_eq!(covered(stretches), Span::from_millis(counted));
        }
    }
}
