//! Relating two clocks that nobody has synchronised, from the four time stamps of each exchange.
//!
//! Let `θ(t)` be what the far clock shows more than the near one. A message sent at `t1` and received at
//! far `t2`, answered at far `t3` and back at `t4` gives, since no delay is negative,
//! `t3 - t4 <= θ <= t2 - t1` (RFC 5905 §8 in other words). All exchanges together confine `θ` to a band
//! whose height is the least round trip: **no measurement between the two hosts can say more**, for a
//! path that is longer one way looks just like an offset. So two things are reported: the band, which
//! holds without any assumption, and its middle, which is `θ` if the least delays out and back are equal.

use crate::hull::{lower_hull, skew};
use crate::outlier::spread;
use crate::{Exchange, Far, Stamp};
use serde::Serialize;
use trunkline_measure::quantile;

/// Clocks drift apart by at most this much: `MAXFREQ` of RFC 5905 (appendix A.5.5.6).
pub const FASTEST_DRIFT: f64 = 500e-6;
/// Exchanges of which the quickest is taken, as in the clock filter of RFC 5905 §10.
const WINDOW: usize = 8;
/// A step must stand out from the scatter of the filtered offsets by this factor.
const CLEAR: f64 = 8.0;
/// And be no smaller than this, in nanoseconds: below it lie interrupts and schedulers.
const LEAST_STEP: f64 = 10_000.0;

/// The relation of the far clock to the near one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Clock {
    /// One for each stretch between two steps of either clock, in order of time; never empty.
    pub stretches: Vec<Stretch>,
}

/// A stretch of time over which the clocks drift apart evenly.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Stretch {
    /// First time of sending in it; the near clock.
    pub from: Stamp,
    /// Exchanges in it.
    pub exchanges: usize,
    /// The instant for which `offset` holds; the near clock.
    pub at: Stamp,
    /// The far clock's reading less the near one's at `at`, in nanoseconds, if the least delays out and
    /// back are equal.
    pub offset: i64,
    /// Half the height of the band that contains the offset without any assumption, in nanoseconds: half
    /// the least round trip, or 0 if both stamps come from one clock.
    pub uncertainty: f64,
    /// The excess of the far clock's speed: seconds for each second.
    pub drift: f64,
    /// The median distance of the filtered offsets from the line, in nanoseconds: how well the line fits.
    pub scatter: f64,
}

/// The delays of one exchange in each direction.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct OneWay {
    /// From the asker to the far host, in nanoseconds, the least delays out and back being taken as equal.
    pub out: f64,
    /// From the far host back, in nanoseconds.
    pub back: f64,
    /// Without that assumption `out` may be more by this, and `back` less, or the other way round; ns.
    pub uncertainty: f64,
}

/// The reason why two clocks could not be related.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ClockError {
    /// No exchange has far time stamps.
    #[error(
        "no answer carries the far host's time stamps; ask a trunkline server, which sends them, or use round trips only"
    )]
    NoFarStamps,
}

/// An exchange as far as clocks go; all in nanoseconds, times as seen from the first exchange.
#[derive(Debug, Clone, Copy)]
struct Reading {
    sent: Stamp,
    /// Time of sending and of receiving, near clock, from the first exchange on.
    left: f64,
    came: f64,
    /// `t2 - t1`, no less than the offset, less the first exchange's.
    above: f64,
    /// `t3 - t4`, no more than the offset, less the first exchange's `t2 - t1`.
    below: f64,
}

impl Reading {
    fn middle(&self) -> f64 {
        (self.above + self.below) / 2.0
    }
    fn round_trip(&self) -> f64 {
        self.above - self.below
    }
}

impl Clock {
    /// Relates the clocks from exchanges that carry far time stamps, in any order. Steps of either clock
    /// are found, and each stretch between them has its own line: the drift is that of the two parallel
    /// lines below all `t2 - t1` and above all `t3 - t4` that are nearest to them in sum (Moon, Skelly
    /// and Towsley, "Estimation and Removal of Clock Skew from Network Delay Measurements", INFOCOM
    /// 1999, §IV, for both directions at once). A clock that is slewed at changing rates within a stretch
    /// shows in `scatter`.
    ///
    /// # Errors
    /// If no exchange has far time stamps.
    pub fn relate(exchanges: &[Exchange]) -> Result<Clock, ClockError> {
        let mut stamped: Vec<(Exchange, Far)> =
            exchanges.iter().filter_map(|one| Some((*one, one.far?))).collect();
        stamped.sort_by_key(|(one, _)| (one.sent, one.sequence));
        let &(first, far) = stamped.first().ok_or(ClockError::NoFarStamps)?;
        let base = i128::from(far.received) - i128::from(first.sent);
        let readings: Vec<Reading> =
            stamped.iter().map(|(one, far)| reading(one, *far, first.sent, base)).collect();
        let mut starts = vec![0];
        split(&readings, 0, &mut starts);
        starts.push(readings.len());
        let stretch = |two: &[usize]| fit(&readings[two[0]..two[1]], first.sent, base);
        Ok(Clock { stretches: starts.windows(2).map(stretch).collect() })
    }

    /// One clock for both hosts, as with two namespaces of one machine: nothing is uncertain.
    pub fn shared() -> Clock {
        let stretch = Stretch {
            from: Stamp::MIN,
            exchanges: 0,
            at: 0,
            offset: 0,
            uncertainty: 0.0,
            drift: 0.0,
            scatter: 0.0,
        };
        Clock { stretches: vec![stretch] }
    }

    /// The stretch to which a time of sending belongs.
    pub fn stretch(&self, sent: Stamp) -> &Stretch {
        let later = self.stretches.partition_point(|stretch| stretch.from <= sent);
        &self.stretches[later.saturating_sub(1)]
    }

    /// The number of times that either clock was set while the session ran.
    pub fn steps(&self) -> usize {
        self.stretches.len() - 1
    }

    /// The delays of an exchange in each direction; `None` if it carries no far time stamps.
    pub fn one_way(&self, exchange: &Exchange) -> Option<OneWay> {
        let far = exchange.far?;
        let stretch = self.stretch(exchange.sent);
        let apart = |far: Stamp, near: Stamp| {
            let since = (i128::from(near) - i128::from(stretch.at)) as f64;
            let apart = i128::from(far) - i128::from(near) - i128::from(stretch.offset);
            apart as f64 - stretch.drift * since
        };
        Some(OneWay {
            out: apart(far.received, exchange.sent),
            back: -apart(far.sent, exchange.received),
            uncertainty: stretch.uncertainty,
        })
    }
}

fn reading(one: &Exchange, far: Far, epoch: Stamp, base: i128) -> Reading {
    let apart = |far: Stamp, near: Stamp| (i128::from(far) - i128::from(near) - base) as f64;
    let since = |near: Stamp| (i128::from(near) - i128::from(epoch)) as f64;
    Reading {
        sent: one.sent,
        left: since(one.sent),
        came: since(one.received),
        above: apart(far.received, one.sent),
        below: apart(far.sent, one.received),
    }
}

/// The line of one stretch.
fn fit(readings: &[Reading], epoch: Stamp, base: i128) -> Stretch {
    let above: Vec<(f64, f64)> = readings.iter().map(|one| (one.left, one.above)).collect();
    let below: Vec<(f64, f64)> = readings.iter().map(|one| (one.came, -one.below)).collect();
    let drift = skew(&above, &below, FASTEST_DRIFT);
    let middle = (readings[0].left + readings[readings.len() - 1].left) / 2.0;
    let least = |points: &[(f64, f64)], slope: f64| {
        let hull = lower_hull(points);
        hull.iter().map(|(t, y)| y - slope * (t - middle)).fold(f64::INFINITY, f64::min)
    };
    let (high, low) = (least(&above, drift), -least(&below, -drift));
    let offset = (high + low) / 2.0;
    let off = |one: &Reading| (one.middle() - offset - drift * (one.left - middle)).abs();
    let off: Vec<f64> = readings.chunks(WINDOW).map(|chunk| off(quickest(chunk))).collect();
    Stretch {
        from: readings[0].sent,
        exchanges: readings.len(),
        at: epoch.saturating_add(middle as Stamp),
        offset: clamped(base + (offset + drift * (middle.trunc() - middle)).round() as i128),
        uncertainty: ((high - low) / 2.0).max(0.0),
        drift,
        scatter: quantile(&off, 0.5),
    }
}

fn clamped(wide: i128) -> i64 {
    i64::try_from(wide).unwrap_or(if wide < 0 { i64::MIN } else { i64::MAX })
}

/// The exchange that waited least: its offset is the most trustworthy (RFC 5905 §10).
fn quickest(readings: &[Reading]) -> &Reading {
    readings
        .iter()
        .min_by(|a, b| a.round_trip().total_cmp(&b.round_trip()))
        .expect("a window holds at least one exchange")
}

/// Finds the clearest step in `readings`, whose first has the index `start` of all, and those before and
/// after it; adds their beginnings, in order.
fn split(readings: &[Reading], start: usize, starts: &mut Vec<usize>) {
    let Some(at) = step_in(readings) else { return };
    split(&readings[..at], start, starts);
    starts.push(start + at);
    split(&readings[at..], start + at, starts);
}

/// The place of a step, if there is one. A clock that is set moves the least `t2 - t1` and the least
/// `t4 - t3` by the same amount in opposite directions; a path that changes moves their sum.
fn step_in(readings: &[Reading]) -> Option<usize> {
    if readings.len() < 2 * WINDOW {
        return None;
    }
    let (slope, doubt) = trend(readings);
    let shifts: Vec<(f64, f64)> = (WINDOW..=readings.len() - WINDOW)
        .map(|at| shift(&readings[at - WINDOW..at], &readings[at..at + WINDOW], slope))
        .collect();
    let sizes: Vec<f64> = shifts.iter().map(|(out, back)| (out - back).abs() / 2.0).collect();
    let best = (0..sizes.len()).max_by(|&a, &b| sizes[a].total_cmp(&sizes[b]))?;
    let (out, back) = shifts[best];
    let opposite = (out + back).abs() < 0.5 * sizes[best];
    let scatter = quantile(&sizes, 0.5);
    let clear = opposite && sizes[best] > LEAST_STEP.max(CLEAR * scatter);
    (clear && beyond_queues(readings, best + WINDOW, slope, doubt)).then_some(best + WINDOW)
}

/// Whether the offset moves by more than queues explain. An offset taken from one exchange is wrong by no more
/// than half of what its round trip exceeds the least by, as long as the path stays what it is, and the
/// drift is in doubt.
fn beyond_queues(readings: &[Reading], at: usize, slope: f64, doubt: f64) -> bool {
    let least = quickest(readings).round_trip();
    let (before, after) =
        (quickest(&readings[at - WINDOW..at]), quickest(&readings[at..at + WINDOW]));
    let offset = |one: &Reading| one.middle() - slope * one.left;
    let waited = before.round_trip() + after.round_trip() - 2.0 * least;
    let drifted = doubt * (after.left - before.left);
    (offset(after) - offset(before)).abs() > waited / 2.0 + drifted + LEAST_STEP
}

/// The move of the least `t2 - t1` and of the least `t4 - t3` from one window to the next.
fn shift(before: &[Reading], after: &[Reading], slope: f64) -> (f64, f64) {
    let least = |window: &[Reading], of: fn(&Reading, f64) -> f64| {
        window.iter().map(|one| of(one, slope)).fold(f64::INFINITY, f64::min)
    };
    let out = |one: &Reading, slope: f64| one.above - slope * one.left;
    let back = |one: &Reading, slope: f64| slope * one.came - one.below;
    (least(after, out) - least(before, out), least(after, back) - least(before, back))
}

/// The drift as the median slope between filtered offsets a window apart, of which a step disturbs few, and
/// how far that may be wrong.
fn trend(readings: &[Reading]) -> (f64, f64) {
    let filtered: Vec<&Reading> = readings.chunks(WINDOW).map(quickest).collect();
    let slopes: Vec<f64> = filtered
        .windows(2)
        .filter(|two| two[1].left > two[0].left)
        .map(|two| (two[1].middle() - two[0].middle()) / (two[1].left - two[0].left))
        .collect();
    if slopes.is_empty() {
        return (0.0, FASTEST_DRIFT);
    }
    let slope = quantile(&slopes, 0.5).clamp(-FASTEST_DRIFT, FASTEST_DRIFT);
    let doubt = 4.0 * spread(&slopes) / (slopes.len() as f64).sqrt();
    (slope, doubt.min(2.0 * FASTEST_DRIFT))
}
