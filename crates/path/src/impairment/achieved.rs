//! The achievements of impairments so far, beside what was asked of them.

use serde::Serialize;
use std::fmt;

/// The achievements of the impairments of one direction so far. An impairment that was never on is absent.
///
/// Each is counted over the packets that met it while it was on. "Asked" is the mean over the
/// same packets, so that the comparison holds when a setting has changed on the way.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Achieved {
    /// Packets judged.
    pub packets: u64,
    /// Packets lost, of those judged.
    pub loss: Option<LossAchieved>,
    /// Packets damaged by bit errors, of those not lost.
    pub bit_errors: Option<BitErrorsAchieved>,
    /// Packets duplicated, of those that arrived.
    pub duplicated: Option<Share>,
    /// Packets held back so that others may overtake them, of those that arrived.
    pub held_back: Option<Share>,
    /// Packets released before one that had left the line earlier, for whatever reason.
    pub overtakes: u64,
    /// The jitter.
    pub jitter: Option<JitterAchieved>,
}

/// A share of packets, asked and achieved.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Share {
    /// The probability asked for.
    pub asked: f64,
    /// The share that it came to.
    pub achieved: f64,
    /// The number of packets that it happened to.
    pub count: u64,
    /// Out of how many.
    pub of: u64,
}

/// Loss, asked and achieved.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct LossAchieved {
    /// The number of packets.
    #[serde(flatten)]
    pub share: Share,
    /// Packets lost in a row, in the mean.
    pub mean_burst: f64,
}

/// Bit errors, asked and achieved.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct BitErrorsAchieved {
    /// The error rate asked for.
    pub asked: f64,
    /// The error rate that it came to, over the bits up to the first error of each packet.
    pub achieved: f64,
    /// The number of packets that were damaged.
    pub count: u64,
    /// Out of how many.
    pub of: u64,
}

/// Extra delay in nanoseconds, asked and achieved. Waiting caused by a change of the delay itself is
/// not part of it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct JitterAchieved {
    /// The number of packets that had it.
    pub packets: u64,
    /// The mean asked for.
    pub asked_mean: f64,
    /// The mean achieved.
    pub mean: f64,
    /// The standard deviation asked for.
    pub asked_deviation: f64,
    /// The standard deviation achieved.
    pub deviation: f64,
    /// The least.
    pub least: i64,
    /// The most.
    pub most: i64,
}

/// Counts how often something happened that was asked for with some probability.
#[derive(Debug, Default)]
pub(super) struct Tally {
    of: u64,
    hits: u64,
    asked: f64,
}

impl Tally {
    pub(super) fn count(&mut self, asked: f64, hit: bool) {
        self.of += 1;
        self.hits += u64::from(hit);
        self.asked += asked;
    }

    pub(super) fn share(&self) -> Option<Share> {
        let of = self.of as f64;
        (self.of > 0).then(|| Share {
            asked: self.asked / of,
            achieved: self.hits as f64 / of,
            count: self.hits,
            of: self.of,
        })
    }

    pub(super) fn loss(&self, bursts: u64) -> Option<LossAchieved> {
        let mean_burst = self.hits as f64 / bursts.max(1) as f64;
        self.share().map(|share| LossAchieved { share, mean_burst })
    }
}

/// Counts bit errors. Each bit that was looked at is one trial, and a packet is looked at up to its
/// first error, so that errors over bits estimates the error rate without bias worth naming.
#[derive(Debug, Default)]
pub(super) struct BitTally {
    packets: u64,
    damaged: u64,
    bits: u128,
    asked: f64,
}

impl BitTally {
    pub(super) fn count(&mut self, rate: f64, bits: u64, damaged: bool) {
        self.packets += 1;
        self.damaged += u64::from(damaged);
        self.bits += u128::from(bits);
        self.asked += rate * bits as f64;
    }

    pub(super) fn achieved(&self) -> Option<BitErrorsAchieved> {
        let bits = self.bits as f64;
        (self.packets > 0).then(|| BitErrorsAchieved {
            asked: self.asked / bits,
            achieved: self.damaged as f64 / bits,
            count: self.damaged,
            of: self.packets,
        })
    }
}

/// Mean and deviation of jitter, summed exactly.
#[derive(Debug, Default)]
pub(super) struct Spread {
    count: u64,
    sum: i128,
    squares: u128,
    least: i64,
    most: i64,
    asked_sum: f64,
    asked_squares: f64,
}

impl Spread {
    pub(super) fn count(&mut self, nanos: i64, asked_mean: f64, asked_deviation: f64) {
        let first = self.count == 0;
        self.least = if first { nanos } else { self.least.min(nanos) };
        self.most = if first { nanos } else { self.most.max(nanos) };
        self.count += 1;
        self.sum += i128::from(nanos);
        self.squares += u128::from(nanos.unsigned_abs()).pow(2);
        self.asked_sum += asked_mean;
        self.asked_squares += asked_mean * asked_mean + asked_deviation * asked_deviation;
    }

    pub(super) fn achieved(&self) -> Option<JitterAchieved> {
        let count = self.count as f64;
        let deviation = |mean: f64, squares: f64| (squares / count - mean * mean).max(0.0).sqrt();
        let (mean, asked_mean) = (self.sum as f64 / count, self.asked_sum / count);
        (self.count > 0).then(|| JitterAchieved {
            packets: self.count,
            asked_mean,
            mean,
            asked_deviation: deviation(asked_mean, self.asked_squares),
            deviation: deviation(mean, self.squares as f64),
            least: self.least,
            most: self.most,
        })
    }
}

/// One line for each impairment that was on, none at the end of the last.
impl fmt::Display for Achieved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bursts = |loss: &LossAchieved| match loss.share.count {
            0 => format!("loss {}", loss.share),
            _ => format!("loss {}, {:.2} in a row", loss.share, loss.mean_burst),
        };
        let held = |share: &Share| format!("reordering {share}, {} overtook", self.overtakes);
        let jitter = |jitter: &JitterAchieved| match self.overtakes {
            0 => format!("jitter {jitter}, order kept"),
            count => format!("jitter {jitter}, {count} overtook"),
        };
        let lines = [
            self.loss.as_ref().map(bursts),
            self.bit_errors.as_ref().map(|errors| format!("bit errors {errors}")),
            self.duplicated.as_ref().map(|share| format!("duplication {share}")),
            self.held_back.as_ref().map(held),
            self.jitter.as_ref().map(jitter),
        ];
        f.write_str(&lines.into_iter().flatten().collect::<Vec<_>>().join("\n"))
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (asked, achieved) = (percent(self.asked), percent(self.achieved));
        write!(f, "asked {asked}, achieved {achieved} of {}", self.of)
    }
}

impl fmt::Display for BitErrorsAchieved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BitErrorsAchieved { asked, achieved, count, of } = self;
        write!(f, "asked {asked:.3e}, achieved {achieved:.3e} ({count} of {of} packets damaged)")
    }
}

impl fmt::Display for JitterAchieved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |nanos: f64| format!("{:+.4}ms", nanos / 1e6);
        write!(
            f,
            "asked mean {} deviation {:.4}ms, achieved mean {} deviation {:.4}ms, {} to {}, of {}",
            ms(self.asked_mean),
            self.asked_deviation / 1e6,
            ms(self.mean),
            self.deviation / 1e6,
            ms(self.least as f64),
            ms(self.most as f64),
            self.packets
        )
    }
}

/// A share as a percentage with three significant digits or a little more.
fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent != 0.0 && percent < 0.01 {
        return format!("{percent:.2e}%");
    }
    let text = if percent < 1.0 { format!("{percent:.4}") } else { format!("{percent:.2}") };
    format!("{}%", text.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_are_short() {
        for (share, text) in
            [(0.01, "1%"), (0.0098, "0.98%"), (1.0, "100%"), (0.0, "0%"), (1.234e-6, "1.23e-4%")]
        {
            assert_eq!(percent(share), text);
        }
    }

    #[test]
    fn asked_is_the_mean_over_a_change() {
        let mut tally = Tally::default();
        (0..10).for_each(|index| tally.count(0.1, index == 0));
        (0..30).for_each(|_| tally.count(0.5, true));
        let share = tally.share().unwrap();
        assert!((share.asked - 0.4).abs() < 1e-12);
        assert_eq!(share.to_string(), "asked 40%, achieved 77.5% of 40");
    }

    #[test]
    fn spread_by_hand() {
        let mut spread = Spread::default();
        [-2, 4].into_iter().for_each(|nanos| spread.count(nanos, 0.0, 1.0));
        let achieved = spread.achieved().unwrap();
        assert_eq!((achieved.mean, achieved.deviation), (1.0, 3.0));
        assert_eq!((achieved.least, achieved.most, achieved.asked_deviation), (-2, 4, 1.0));
    }
}
