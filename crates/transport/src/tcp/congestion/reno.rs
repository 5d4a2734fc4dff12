//! The window of Reno and NewReno: RFC 5681, counting by RFC 3465, and the policies of increase that were
//! proposed for long paths.

use super::idle::Idle;
use super::settings::{Counting, MOST_WINDOW, Settings};
use super::{Ack, Algorithm, Congestion, Controller, Entry, Law, Reason};
use trunkline_core::Time;

impl Algorithm {
    /// `reno`. Its machine leaves recovery at the first ACK of new data, as 4.4BSD did, so that several losses in
    /// one window halve the window several times.
    pub const RENO: Algorithm = Algorithm::of(&Entry {
        law: Some(Law::Reno),
        kernel: Some("reno"),
        stays_through_partial_acks: false,
        ..Entry::new(
            "reno",
            "halves the window at a loss, grows by a segment per round trip; the first new ACK ends recovery",
            "RFC 5681",
            build,
        )
    });

    /// `newreno`: the same window, and recovery lasts until all that was outstanding is acknowledged.
    pub const NEW_RENO: Algorithm = Algorithm::of(&Entry {
        law: Some(Law::Reno),
        kernel: Some("reno"),
        ..Entry::new(
            "newreno",
            "the same; recovery lasts until all that was outstanding is acknowledged",
            "RFC 6582",
            build,
        )
    });

    /// `constant-rate`: NewReno whose window grows by c·r² segments in a round trip of r, so that the *rate* gains
    /// the same each second whatever the round trip.
    pub const CONSTANT_RATE: Algorithm = Algorithm::of(&Entry {
        law: Some(Law::ConstantRate),
        ..Entry::new(
            "constant-rate",
            "NewReno whose rate grows by the same amount per second, whatever the round trip",
            "Floyd 1991; Henderson and Katz 1998; RFC 2760 §3.4",
            build,
        )
    });
}

fn build(settings: &Settings) -> Controller {
    Controller::Reno(Reno::new(settings))
}

/// Additive increase, multiplicative decrease.
#[derive(Debug, Clone)]
pub struct Reno {
    window: u64,
    threshold: u64,
    /// Congestion avoidance: bytes acknowledged × gain that have not yet become a segment.
    credit: u64,
    /// The bytes that the window shall grow by in a round trip.
    gain: u64,
    /// Window and threshold before the last congestion.
    before: (u64, u64),
    initial: u32,
    mss: u32,
    /// c in thousandths of a segment per second squared; 0 if the increase is not by rate.
    constant_rate_milli: u32,
    counting: Counting,
    slow_start_limit: u8,
    whole_segments: bool,
    counts_segments: bool,
    alternative_backoff: bool,
    /// In fast recovery, as the calls of `congested` and `recovered` have it.
    recovering: bool,
    /// No ACK has come since the last time-out.
    backed_off: bool,
    /// In the slow start after a time-out.
    starting_again: bool,
}

impl Reno {
    /// A window at the beginning of a connection.
    pub fn new(settings: &Settings) -> Reno {
        let by_rate = settings.kind == Algorithm::CONSTANT_RATE;
        let mss = settings.segment();
        Reno {
            window: settings.first_window(),
            threshold: u64::MAX,
            credit: 0,
            gain: if by_rate { mss } else { mss * u64::from(settings.increase.max(1)) },
            before: (0, 0),
            initial: settings.first_window() as u32,
            mss: mss as u32,
            constant_rate_milli: if by_rate { settings.constant_rate_milli.max(1) } else { 0 },
            counting: settings.counting,
            slow_start_limit: settings.slow_start_limit.max(1),
            whole_segments: settings.whole_segments || settings.counts_segments,
            counts_segments: settings.counts_segments,
            alternative_backoff: settings.alternative_backoff,
            recovering: false,
            backed_off: false,
            starting_again: false,
        }
    }

    fn mss(&self) -> u64 {
        u64::from(self.mss)
    }

    /// Slow start: adds what was acknowledged, L segments for an ACK at most, and answers what of it is
    /// left over for congestion avoidance (RFC 3465 §2.2). After a time-out L is 1 (§2.3), not so in Linux.
    fn slow_start(&mut self, acked: u64) -> u64 {
        let limit = match self.counting {
            Counting::Bytes if !self.starting_again || self.counts_segments => {
                u64::from(self.slow_start_limit)
            }
            _ => 1,
        };
        let counted = acked.min(limit * self.mss());
        let step = counted.min(self.threshold - self.window);
        self.window += step;
        counted - step
    }

    /// Congestion avoidance, by whole windows acknowledged: `gain` bytes for each, in whole segments
    /// (RFC 3465 §2.1).
    fn by_bytes(&mut self, acked: u64) {
        self.credit += acked.min(MOST_WINDOW) * self.gain;
        let price = self.window * self.mss();
        if self.credit >= price {
            self.window += self.credit / price * self.mss();
            self.credit %= price;
        }
    }

    /// Congestion avoidance, by ACKs (RFC 5681 equation 3), at least a byte.
    fn by_acks(&mut self) {
        let eighth = if self.counting == Counting::AcksAndEighth { self.mss() / 8 } else { 0 };
        self.window += (self.mss() * self.gain / self.window).max(1) + eighth;
    }

    /// The gain of the constant-rate policy: c·r² segments (Floyd 1991), r in nanoseconds, at most a
    /// window, which is what slow start would add.
    fn gain_by_rate(&self, ack: &Ack) -> u64 {
        let rtt = u128::from(ack.smoothed_rtt.as_nanos());
        let bytes = u128::from(self.constant_rate_milli) * u128::from(self.mss);
        let per_square_second = 1_000 * 1_000_000_000u128 * 1_000_000_000;
        let gain = bytes.saturating_mul(rtt * rtt) / per_square_second;
        u64::try_from(gain).unwrap_or(u64::MAX).clamp(1, self.window)
    }

    fn avoid(&mut self, ack: &Ack, acked: u64) {
        if self.constant_rate_milli != 0 {
            self.gain = self.gain_by_rate(ack);
        }
        match self.counting {
            Counting::Bytes => self.by_bytes(acked),
            Counting::Acks | Counting::AcksAndEighth => self.by_acks(),
        }
    }

    /// Half of what is in flight, or 0.8 of it for a mark with [`Settings::alternative_backoff`]
    /// (RFC 8511 §3.1); at least two segments (RFC 5681 equation 4).
    fn reduced(&self, in_flight: u64, reason: Reason) -> u64 {
        let in_flight = if self.counts_segments { self.window } else { in_flight };
        let reduced = match reason {
            Reason::EcnEcho | Reason::Marked if self.alternative_backoff => in_flight / 5 * 4,
            _ => in_flight / 2,
        };
        let whole = if self.whole_segments { reduced - reduced % self.mss() } else { reduced };
        whole.clamp(2 * self.mss(), MOST_WINDOW.max(2 * self.mss()))
    }

    /// As much of `bytes` as a window of whole segments can lose; all of it if the window is counted in bytes.
    pub(super) fn in_its_units(&self, bytes: u64) -> u64 {
        if self.whole_segments { bytes - bytes % self.mss() } else { bytes }
    }

    /// Takes `bytes` off the window because of marks; at least two segments are left.
    pub(super) fn take_off(&mut self, bytes: u64) {
        self.remember();
        let least = (2 * self.mss()).min(self.window);
        self.window = self.window.saturating_sub(bytes).max(least);
        self.threshold = self.window.max(2 * self.mss());
        self.credit = 0;
    }

    /// Adds `bytes` to the window.
    pub(super) fn grow(&mut self, bytes: u64) {
        self.window = (self.window + bytes).min(MOST_WINDOW);
    }

    fn remember(&mut self) {
        if !self.recovering && !self.backed_off {
            self.before = (self.window, self.threshold);
        }
    }
}

impl Congestion for Reno {
    fn window(&self) -> u64 {
        self.window
    }

    fn slow_start_threshold(&self) -> u64 {
        self.threshold
    }

    fn acked(&mut self, ack: &Ack) {
        self.backed_off &= ack.acked == 0;
        if ack.acked == 0 || ack.recovering || !ack.window_limited {
            return;
        }
        let rest =
            if self.window < self.threshold { self.slow_start(ack.news()) } else { ack.news() };
        if rest > 0 && self.window >= self.threshold {
            self.avoid(ack, rest);
        }
        self.window = self.window.min(MOST_WINDOW);
        self.starting_again &= self.window < self.threshold;
    }

    fn congested(&mut self, _now: Time, in_flight: u64, reason: Reason) {
        self.remember();
        self.threshold = self.reduced(in_flight, reason);
        self.window = self.threshold;
        self.credit = 0;
        self.recovering |= reason == Reason::Loss;
    }

    fn recovered(&mut self, _now: Time) {
        if std::mem::take(&mut self.recovering) {
            self.window = self.threshold;
        }
    }

    fn timed_out(&mut self, _now: Time, in_flight: u64) {
        self.remember();
        let reduced_already = self.recovering && self.counts_segments;
        if !(self.backed_off || reduced_already) {
            self.threshold = self.reduced(in_flight, Reason::Loss);
        }
        self.window = self.mss();
        self.credit = 0;
        self.recovering = false;
        self.backed_off = true;
        self.starting_again = true;
    }

    fn undone(&mut self, _now: Time) {
        let (window, threshold) = self.before;
        if window != 0 {
            self.window = self.window.max(window);
            self.threshold = self.threshold.max(threshold);
            self.before = (0, 0);
        }
        self.recovering = false;
        self.backed_off = false;
        self.starting_again = false;
    }

    fn restarted_after_idle(&mut self, _now: Time, timeouts: u64) {
        let initial = u64::from(self.initial);
        if self.counts_segments {
            let idle = Idle { window: self.window, threshold: self.threshold, initial };
            (self.window, self.threshold) = idle.decayed(timeouts, self.mss());
        } else {
            self.window = self.window.min(initial);
        }
        self.credit = 0;
    }
}
