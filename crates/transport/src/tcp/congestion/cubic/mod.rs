//! CUBIC: RFC 9438.
//!
//! After a congestion the window is a cubic function of time. It is flat about the window at which the congestion
//! came, and independent of the round trip; if Reno would have more, it follows Reno. Windows are in bytes, so
//! what the RFC counts in segments is multiplied by the segment size.

pub(crate) mod curve;
mod hystart;
mod segments;

use super::idle::Idle;
use super::settings::{MOST_WINDOW, Settings};
use super::{Ack, Algorithm, Congestion, Controller, Entry, Law, Reason};
use hystart::{Advice, Watch};
use segments::{Segments, Step};
use trunkline_core::Time;

impl Algorithm {
    /// `cubic`.
    pub const CUBIC: Algorithm = Algorithm::of(&Entry {
        law: Some(Law::Cubic),
        kernel: Some("cubic"),
        ..Entry::new(
            "cubic",
            "a cubic function of the time since the last loss, or NewReno's window if that is larger",
            "RFC 9438",
            |settings| Controller::Cubic(Box::new(Cubic::new(settings))),
        )
    });
}

/// Fractions of a byte in which the Reno-friendly window is counted, as a power of two.
const FINE: u32 = 10;

/// A stage of congestion avoidance.
#[derive(Debug, Clone, Copy)]
struct Epoch {
    /// t_epoch, moved on by the time in which the window was not what limited (§5.8).
    began: Time,
    /// K in steps of the curve.
    k: u64,
    /// W_est, in 2⁻¹⁰ bytes.
    estimate: u64,
    /// The counts if windows are in segments.
    segments: Segments,
}

/// The values to be put back when a congestion was none (§4.9).
#[derive(Debug, Clone, Copy)]
struct Before {
    window: u64,
    threshold: u64,
    prior: u64,
    plateau: Option<u64>,
    epoch: Option<Epoch>,
}

/// The window of CUBIC.
#[derive(Debug, Clone)]
pub struct Cubic {
    window: u64,
    threshold: u64,
    /// W_max; `None` if the next epoch begins with K = 0 at its own window.
    plateau: Option<u64>,
    /// cwnd_prior: the window before the last congestion.
    prior: u64,
    epoch: Option<Epoch>,
    /// Bytes acknowledged × growth that have not yet become a byte of window.
    credit: u64,
    before: Option<Before>,
    watch: Watch,
    /// When the last ACK came.
    heard: Time,
    settings: Settings,
    recovering: bool,
    /// No ACK has come since the last time-out.
    backed_off: bool,
    /// In the slow start after a time-out.
    starting_again: bool,
}

impl Cubic {
    /// A window at the beginning of a connection.
    pub fn new(settings: &Settings) -> Cubic {
        Cubic {
            window: settings.first_window(),
            threshold: u64::MAX,
            plateau: None,
            prior: 0,
            epoch: None,
            credit: 0,
            before: None,
            watch: Watch::new(settings.start),
            heard: Time::ZERO,
            settings: *settings,
            recovering: false,
            backed_off: false,
            starting_again: false,
        }
    }

    fn mss(&self) -> u64 {
        self.settings.segment()
    }

    /// Slow start (§4.10), in the first one with an eye on the round trip. Answers what is left over for
    /// congestion avoidance.
    fn slow_start(&mut self, ack: &Ack) -> u64 {
        let (mss, first) = (self.mss(), self.threshold == u64::MAX);
        let (limit, advice) = if first {
            (self.watch.limit(&self.settings), self.watch.advise(ack, self.window, mss))
        } else {
            (self.limit_again(), Advice::Grow(1))
        };
        let Advice::Grow(divisor) = advice else {
            self.threshold = self.window;
            return ack.news();
        };
        let counted = ack.news().min(limit * mss);
        let step = (counted / divisor).min(self.threshold - self.window);
        self.window += step;
        if self.window < self.threshold { 0 } else { counted - step }
    }

    /// Segments that an ACK counts for in a slow start that is not the first: one after a time-out
    /// (RFC 3465 §2.3), not so in Linux.
    fn limit_again(&self) -> u64 {
        match self.starting_again && !self.settings.counts_segments {
            true => 1,
            false => u64::from(self.settings.slow_start_limit.max(1)),
        }
    }

    /// The beginning of a stage of congestion avoidance (§4.2). Without a plateau, after a time-out or a
    /// slow start that ended without loss, K is 0 and the plateau is here (§4.8, §4.10).
    fn begin_epoch(&mut self, now: Time) -> Epoch {
        let segments = Segments::new(self.plateau.is_none());
        let plateau = self.plateau.unwrap_or(0).max(self.window);
        self.plateau = Some(plateau);
        let k = curve::time_to_plateau(plateau - self.window, self.mss());
        let epoch = Epoch { began: now, k, estimate: self.window << FINE, segments };
        self.epoch = Some(epoch);
        self.credit = 0;
        epoch
    }

    /// One ACK's growth of the window that Reno would have (§4.3): α of a segment for each window
    /// acknowledged, α = 3(1 − β)/(1 + β) = 9/17 until the window before the congestion is reached, then 1.
    fn friendly_growth(&self, epoch: &Epoch, acked: u64) -> u64 {
        let (over, under) = if epoch.estimate >= self.prior << FINE { (1, 1) } else { (9, 17) };
        let acked = acked.min(MOST_WINDOW);
        let wide = u128::from(over * acked) * u128::from(self.mss() << FINE);
        (wide / u128::from(under * self.window)) as u64
    }

    /// Congestion avoidance (§4.2 to §4.5).
    fn avoid(&mut self, ack: &Ack, acked: u64) {
        let mut epoch = self.epoch.unwrap_or_else(|| self.begin_epoch(ack.now));
        if self.settings.counts_segments {
            return self.avoid_in_segments(epoch, ack, acked);
        }
        epoch.estimate += self.friendly_growth(&epoch, acked);
        epoch.estimate = epoch.estimate.min(MOST_WINDOW << FINE);
        self.epoch = Some(epoch);
        let (mss, plateau) = (self.mss(), self.plateau.unwrap_or(self.window));
        let curve = |time| curve::window(curve::steps(time), epoch.k, plateau, mss);
        let elapsed = ack.now.since(epoch.began);
        if curve(elapsed) < epoch.estimate >> FINE {
            self.window = self.window.max(epoch.estimate >> FINE);
        } else {
            self.approach(curve(elapsed + ack.smoothed_rtt), acked);
        }
    }

    /// The same as Linux does it: see [`segments`]. The curve is looked up the shortest round trip from now.
    fn avoid_in_segments(&mut self, mut epoch: Epoch, ack: &Ack, acked: u64) {
        let (mss, window) = (self.mss(), self.window);
        let step = Step { now: ack.now, acked: acked.min(MOST_WINDOW), window, mss };
        if epoch.segments.count(&step) {
            epoch.estimate += (epoch.segments.friendly(&step) * mss) << FINE;
            epoch.estimate = epoch.estimate.min(MOST_WINDOW << FINE);
            let time = curve::steps(ack.now.since(epoch.began) + ack.min_rtt);
            let curve = curve::window(time, epoch.k, self.plateau.unwrap_or(window), mss);
            epoch.segments.reprice(&step, curve, epoch.estimate >> FINE);
        }
        self.window += epoch.segments.grow(&step) * mss;
        self.epoch = Some(epoch);
    }

    /// Moves towards the value of the curve a round trip from now, by (target − window)/window of what
    /// was acknowledged; the target is at most half as much again as the window (§4.2, §4.4).
    fn approach(&mut self, target: u64, acked: u64) {
        let target = target.clamp(self.window, self.window + self.window / 2);
        self.credit += (target - self.window) * acked.min(self.window);
        let before = self.window;
        self.window += self.credit / before;
        self.credit %= before;
    }

    /// β of what is in flight, 0.7 (§4.6); 0.85 for a mark with [`Settings::alternative_backoff`]
    /// (RFC 8511 §3.1).
    fn reduced(&self, in_flight: u64, reason: Reason) -> u64 {
        let counts = self.settings.counts_segments;
        let from = if counts { self.window } else { in_flight.min(MOST_WINDOW) };
        let reduced = match reason {
            Reason::EcnEcho | Reason::Marked if self.settings.alternative_backoff => from * 17 / 20,
            _ => from * 7 / 10,
        };
        if counts { reduced - reduced % self.mss() } else { reduced }
    }

    fn remember(&mut self) {
        if !self.recovering && !self.backed_off {
            self.before = Some(Before {
                window: self.window,
                threshold: self.threshold,
                prior: self.prior,
                plateau: self.plateau,
                epoch: self.epoch,
            });
        }
    }

    /// W_max for the next epoch; lower if the last one was not reached, to make room for a newcomer
    /// (§4.7): window × (1 + β)/2.
    fn next_plateau(&self) -> u64 {
        let fell_short = self.plateau.is_some_and(|plateau| self.window < plateau);
        if fell_short && self.settings.fast_convergence {
            self.window * 17 / 20
        } else {
            self.window
        }
    }

    /// Takes the time since the last ACK out of the epoch (§5.8).
    fn pause(&mut self, now: Time) {
        if let Some(epoch) = &mut self.epoch {
            epoch.began += now.since(self.heard);
        }
        self.heard = now;
    }

    fn least_threshold(&self, reduced: u64) -> u64 {
        reduced.max(2 * self.mss())
    }
}

impl Congestion for Cubic {
    fn window(&self) -> u64 {
        self.window
    }

    fn slow_start_threshold(&self) -> u64 {
        self.threshold
    }

    fn acked(&mut self, ack: &Ack) {
        if ack.acked == 0 || ack.recovering {
            return;
        }
        self.backed_off = false;
        if self.threshold == u64::MAX {
            self.watch.see(ack);
        }
        if !ack.window_limited {
            return self.pause(ack.now);
        }
        self.heard = ack.now;
        let rest = if self.window < self.threshold { self.slow_start(ack) } else { ack.news() };
        if rest > 0 && self.window >= self.threshold {
            self.avoid(ack, rest);
        }
        self.window = self.window.min(MOST_WINDOW);
        self.starting_again &= self.window < self.threshold;
    }

    fn congested(&mut self, _now: Time, in_flight: u64, reason: Reason) {
        self.remember();
        self.plateau = Some(self.next_plateau());
        self.prior = self.window;
        let reduced = self.reduced(in_flight, reason);
        self.threshold = self.least_threshold(reduced);
        // A mark may bring the window down to one segment, a loss to two (§4.6).
        self.window = match reason {
            Reason::Loss => self.threshold,
            Reason::EcnEcho | Reason::Marked => reduced.max(self.mss()),
        };
        self.epoch = None;
        self.recovering |= reason == Reason::Loss;
    }

    fn recovered(&mut self, _now: Time) {
        self.recovering = false;
    }

    fn timed_out(&mut self, _now: Time, in_flight: u64) {
        self.remember();
        let reduced_already = self.recovering && self.settings.counts_segments;
        if !(self.backed_off || reduced_already) {
            self.prior = self.window;
            self.threshold = self.least_threshold(self.reduced(in_flight, Reason::Loss));
        }
        self.plateau = None;
        self.epoch = None;
        self.window = self.mss();
        self.recovering = false;
        self.backed_off = true;
        self.starting_again = true;
    }

    fn undone(&mut self, now: Time) {
        if let Some(before) = self.before.take().filter(|before| before.window >= self.window) {
            self.window = before.window;
            self.threshold = before.threshold;
            self.prior = before.prior;
            self.plateau = before.plateau;
            self.epoch = before.epoch;
            self.pause(now);
        }
        self.recovering = false;
        self.backed_off = false;
        self.starting_again = false;
    }

    fn restarted_after_idle(&mut self, now: Time, timeouts: u64) {
        let initial = self.settings.first_window();
        if self.settings.counts_segments {
            let idle = Idle { window: self.window, threshold: self.threshold, initial };
            (self.window, self.threshold) = idle.decayed(timeouts, self.mss());
        } else {
            self.window = self.window.min(initial);
        }
        self.pause(now);
    }
}
