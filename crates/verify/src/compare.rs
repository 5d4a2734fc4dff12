//! Measured against prescribed: delay error, spacing error, round trips. No clock, no socket.

use crate::reference::Prescribed;
use crate::spread::{Spread, ranked};
use crate::trace::{Matched, Sent};
use trunkline_core::{Span, Time};
use trunkline_measure::Times;

/// A call that sent a probe and took longer than this was interrupted: when the probe left is not known.
pub const PROMPT: Span = Span::from_micros(50);
/// A probe that leaves the line this near to a change of the delay may be on either side of it.
pub const GUARD: Span = Span::from_micros(20);

/// One direction of a run.
#[derive(Debug)]
pub struct Direction<'a> {
    /// The probes sent.
    pub sent: &'a Sent,
    /// The probes that arrived.
    pub matched: &'a Matched,
    /// The times that the path prescribes. If the line has slots: also for probes sent a little earlier and a
    /// little later, within what the stamps leave open, because a slot missed by a nanosecond is a
    /// whole slot. Of these the one nearest to the usual error counts.
    pub prescribed: &'a [Vec<Option<Prescribed>>],
    /// CLOCK_REALTIME less the clock of the prescriptions, in nanoseconds.
    pub offset: i64,
    /// When the delay was changed.
    pub changes: &'a [Time],
}

/// The outcome of a comparison.
#[derive(Debug, Default)]
pub struct Comparison {
    /// Measured less prescribed arrival of each probe that can be compared, in nanoseconds.
    pub errors: Vec<Option<i64>>,
    /// Their absolute values.
    pub delay: Times,
    /// Their sum, with sign.
    pub sum: i128,
    /// The difference between the gap of two successive probes and the gap prescribed.
    pub spacing: Times,
    /// Probes left out because the call that sent them was interrupted.
    pub interrupted: u64,
    /// Probes left out because they left the line next to a change of the delay.
    pub near_change: u64,
    /// Probes whose slot the stamps leave open.
    pub slot_open: u64,
    /// Probes that the path drops by its rule though they arrived, or the other way about.
    pub other_fate: u64,
}

impl Direction<'_> {
    /// Compares every probe.
    pub fn compare(&self) -> Comparison {
        let mut comparison = Comparison::default();
        let usual = self.usual_error();
        for number in 0..self.sent.len() {
            let error = self.error(number, usual, &mut comparison);
            comparison.errors.push(error);
        }
        comparison.summarise();
        comparison
    }

    /// The median error against the first prescription.
    fn usual_error(&self) -> i64 {
        let numbers = 0..self.sent.len();
        let mut errors: Vec<i64> =
            numbers.filter_map(|number| self.difference(number, &self.prescribed[0])).collect();
        errors.sort_unstable();
        ranked(&errors, 0.5)
    }

    /// Measured less prescribed arrival.
    fn difference(&self, number: usize, prescribed: &[Option<Prescribed>]) -> Option<i64> {
        let stamp = self.matched.arrived[number]? as i64 - self.offset;
        Some(stamp - prescribed[number]?.release.as_nanos() as i64)
    }

    /// The error of a probe, or nothing and a count of the reason.
    fn error(&self, number: usize, usual: i64, counts: &mut Comparison) -> Option<i64> {
        let first = self.prescribed[0][number];
        if first.is_some() != self.matched.arrived[number].is_some() {
            counts.other_fate += 1;
            return None;
        }
        if self.is_near_change(first?.off_line) {
            counts.near_change += 1;
            return None;
        }
        if Span::from_nanos(self.sent.took[number].into()) > PROMPT {
            counts.interrupted += 1;
            return None;
        }
        let candidates = || self.prescribed.iter().filter_map(|p| self.difference(number, p));
        let (least, most) = (candidates().min()?, candidates().max()?);
        counts.slot_open += u64::from(least != most);
        candidates().min_by_key(|error| error.abs_diff(usual))
    }

    fn is_near_change(&self, off_line: Time) -> bool {
        let apart = |at: &Time| off_line.since(*at) + at.since(off_line);
        self.changes.iter().any(|at| apart(at) < GUARD)
    }
}

impl Comparison {
    fn summarise(&mut self) {
        let mut last = None;
        for &error in self.errors.iter().flatten() {
            self.delay.record(Span::from_nanos(error.unsigned_abs()));
            self.sum += i128::from(error);
            if let Some(last) = last.replace(error) {
                self.spacing.record(Span::from_nanos(error.abs_diff(last)));
            }
        }
    }
}

/// Adding up both directions.
pub fn mean_error(directions: &[Comparison]) -> i64 {
    let count: u64 = directions.iter().map(|direction| direction.delay.count()).sum();
    let sum: i128 = directions.iter().map(|direction| direction.sum).sum();
    (sum / i128::from(count.max(1))) as i64
}

/// A ping by its number upwards and its reflection by its number downwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reflection {
    /// The ping.
    pub ping: u32,
    /// Its reflection.
    pub pong: u32,
}

/// The spread of round trips, each less the time that the path prescribes for it both ways: what the
/// hosts and the emulator add. `lead` is what one way takes without a path; only the mean depends on it.
pub fn round_trips(
    reflections: &[Reflection],
    up: (&Matched, &Comparison),
    down: (&Sent, &Comparison),
    lead: i64,
) -> Spread {
    let one = |reflection: &Reflection| {
        let (ping, pong) = (reflection.ping as usize, reflection.pong as usize);
        let arrived = (*up.0.arrived.get(ping)?)?;
        let turned = (*down.0.before.get(pong)?) as i64 - arrived as i64;
        let errors = (*up.1.errors.get(ping)?)? + (*down.1.errors.get(pong)?)?;
        Some(errors + turned + 2 * lead)
    };
    let mut trips: Vec<i64> = reflections.iter().filter_map(one).collect();
    Spread::of(&mut trips)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::Arrival;

    const OFFSET: i64 = 1_000_000;

    fn sent(before: &[u64]) -> Sent {
        Sent { before: before.to_vec(), took: vec![900; before.len()] }
    }

    /// Everything is prescribed 100 ns after it was sent.
    fn prescribed(before: &[u64], shift: u64) -> Vec<Option<Prescribed>> {
        let one = |&at: &u64| {
            let off_line = Time::from_nanos(at - OFFSET as u64 + shift);
            Some(Prescribed { off_line, release: off_line + Span::from_nanos(100) })
        };
        before.iter().map(one).collect()
    }

    fn arrivals(stamps: &[(u32, u64)]) -> Vec<Arrival> {
        stamps.iter().map(|&(number, stamp)| Arrival { number, stamp }).collect()
    }

    const BEFORE: [u64; 5] = [2_000_000, 3_000_000, 4_000_000, 5_000_000, 6_000_000];

    fn compare(took: &[(usize, u32)], stamps: &[(u32, u64)], changes: &[u64]) -> Comparison {
        let mut sent = sent(&BEFORE);
        took.iter().for_each(|&(number, took)| sent.took[number] = took);
        let matched = Matched::of(5, &arrivals(stamps));
        let prescribed = [prescribed(&BEFORE, 0)];
        let changes: Vec<Time> = changes.iter().map(|&at| Time::from_nanos(at)).collect();
        let direction = Direction {
            sent: &sent,
            matched: &matched,
            prescribed: &prescribed,
            offset: OFFSET,
            changes: &changes,
        };
        direction.compare()
    }

    #[test]
    fn delay_and_spacing_errors_of_a_hand_made_trace() {
        // Errors +5, +5, lost, -10, +7 (3 and 4 arrive in the wrong order, which changes no stamp).
        let stamps = [(0, 2_000_105), (1, 3_000_105), (4, 6_000_107), (3, 5_000_090)];
        let got = compare(&[], &stamps, &[]);
        assert_eq!(got.errors, [Some(5), Some(5), None, Some(-10), Some(7)]);
        assert_eq!((got.delay.count(), got.sum, got.other_fate), (4, 7, 1));
        assert_eq!(got.delay.percentiles().max, Span::from_nanos(10));
        // Between neighbours that both arrived: 0, 15, 17.
        let spacing = got.spacing.percentiles();
        assert_eq!((spacing.count, spacing.min, spacing.max.as_nanos()), (3, Span::ZERO, 17));
    }

    #[test]
    fn what_cannot_be_known_is_left_out_and_counted() {
        let stamps: Vec<(u32, u64)> =
            (0..5).map(|n| (n, BEFORE[n as usize] + 100 + u64::from(n))).collect();
        let change = BEFORE[3] - OFFSET as u64 + 7_000;
        let got = compare(&[(1, 90_000)], &stamps, &[change]);
        assert_eq!(got.errors, [Some(0), None, Some(2), None, Some(4)]);
        assert_eq!((got.interrupted, got.near_change), (1, 1));
    }

    #[test]
    fn an_open_slot_counts_with_the_nearer_one() {
        // The second prescription is a slot (2831 ns) later for all; probe 1 took that slot.
        let sent = sent(&BEFORE);
        let late = |n: u32| if n == 1 { 2_831 } else { 0 };
        let stamps: Vec<(u32, u64)> =
            (0..5).map(|n| (n, BEFORE[n as usize] + 130 + late(n))).collect();
        let matched = Matched::of(5, &arrivals(&stamps));
        let both = [prescribed(&BEFORE, 0), prescribed(&BEFORE, 2_831)];
        let direction = |prescribed| Direction {
            sent: &sent,
            matched: &matched,
            prescribed,
            offset: OFFSET,
            changes: &[],
        };
        let got = direction(&both[..]).compare();
        assert_eq!(got.errors, [Some(30); 5]);
        assert_eq!(got.slot_open, 5);
        let alone = direction(&both[..1]).compare();
        assert_eq!((alone.errors[1], alone.slot_open), (Some(2_861), 0));
    }

    #[test]
    fn round_trips_are_freed_of_the_prescribed_time() {
        let up = Matched { arrived: vec![Some(1_000), None, Some(9_000)], ..Matched::default() };
        let errors = |list: &[i64]| Comparison {
            errors: list.iter().map(|&e| Some(e)).collect(),
            ..Comparison::default()
        };
        let down = sent(&[1_300, 0, 9_500]);
        let pairs = [(0, 0), (1, 1), (2, 2), (7, 7)];
        let reflections = pairs.map(|(ping, pong)| Reflection { ping, pong });
        let spread = round_trips(
            &reflections,
            (&up, &errors(&[10, 0, 20])),
            (&down, &errors(&[1, 2, 3])),
            40,
        );
        // 10 + 1 + 300 + 80 and 20 + 3 + 500 + 80.
        assert_eq!((spread.count, spread.mean_ns, spread.range.as_nanos()), (2, 497, 212));
    }
}
