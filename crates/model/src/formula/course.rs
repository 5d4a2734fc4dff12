//! The course of a congestion window from loss to loss, in rounds of a round trip each: what all laws of a mean
//! window are worked out from.
//!
//! A round sends a window; after a round without a loss the window has grown, after one with a loss it is a part of
//! what it was, for one round of repair without growth (J. Padhye, V. Firoiu, D. Towsley, J. Kurose, *Modeling TCP
//! Throughput*, SIGCOMM 1998, §2, with selective acknowledgements: however many segments of a round are lost, the
//! window falls once). Windows are in segments, times in seconds.

use super::tcp::{CUBIC_BETA, CUBIC_C};

/// The least window after a loss (RFC 5681 equation 4).
const LEAST: f64 = 2.0;
/// A step of the reckoning lets a window grow by a thirty-second at most, if that is more than a round.
const FINE: f64 = 32.0;

/// The growth of a window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Growth {
    /// So many segments in a round.
    Linear {
        /// Segments whatever the window.
        gain: f64,
        /// And this part of the window: 1/(8 b) where each acknowledgement, of b segments, adds an eighth of one
        /// (4.4BSD; RFC 2525 §2.6).
        share: f64,
    },
    /// RFC 9438: C(t − K)³ + W_max, or Reno-friendly growth if that gives more.
    Cubic {
        /// α of §4.3 when the window has reached what it was before the loss; before that 3(1 − β)/(1 + β).
        later: f64,
    },
}

/// The law of a window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Law {
    /// The growth between losses.
    pub growth: Growth,
    /// The part of the window that a loss leaves.
    pub beta: f64,
    /// Whether what is left is rounded down to whole segments, as in Linux.
    pub whole: bool,
}

/// α of the Reno-friendly region, 3(1 − β)/(1 + β) = 9/17 (RFC 9438 §4.3).
const FRIENDLY: f64 = 3.0 * (1.0 - CUBIC_BETA) / (1.0 + CUBIC_BETA);

impl Law {
    /// Reno: half of the window, and 1/b of a segment for each round if an ACK of b segments counts once.
    pub fn reno(acked: u32) -> Law {
        Law {
            growth: Growth::Linear { gain: 1.0 / f64::from(acked.max(1)), share: 0.0 },
            beta: 0.5,
            whole: false,
        }
    }

    /// CUBIC by RFC 9438, or as Linux has it, in whole segments and with one α throughout.
    pub fn cubic(linux: bool) -> Law {
        let later = if linux { FRIENDLY } else { 1.0 };
        Law { growth: Growth::Cubic { later }, beta: CUBIC_BETA, whole: linux }
    }

    /// The window after a loss at `window`.
    pub fn reduced(&self, window: f64) -> f64 {
        let left = self.beta * window;
        let left = if self.whole { libm::floor(left + 1e-9) } else { left };
        left.max(LEAST.min(window))
    }
}

/// A window on its way from one loss to the next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Course {
    law: Law,
    /// The window now.
    pub window: f64,
    /// Seconds since the loss.
    time: f64,
    /// The Reno-friendly window.
    friendly: f64,
    /// The window before the loss.
    prior: f64,
    /// W_max, and K.
    plateau: f64,
    flat_at: f64,
}

impl Course {
    /// After a loss at `prior` segments, with W_max at `plateau`.
    pub fn after(law: Law, prior: f64, plateau: f64) -> Course {
        Course::from(law, law.reduced(prior), prior, plateau)
    }

    /// From a window of `start` on.
    pub fn from(law: Law, start: f64, prior: f64, plateau: f64) -> Course {
        let plateau = plateau.max(start);
        let flat_at = libm::cbrt((plateau - start) / CUBIC_C);
        Course { law, window: start, time: 0.0, friendly: start, prior, plateau, flat_at }
    }

    /// Segments by which the window grows in a round of `round` seconds.
    pub fn gain(&self, round: f64) -> f64 {
        match self.law.growth {
            Growth::Linear { gain, share } => gain + share * self.window,
            Growth::Cubic { .. } => {
                let curve = self.curve(self.time + round).min(1.5 * self.window);
                (curve - self.window).max(self.friendly + self.alpha() - self.window).max(0.0)
            }
        }
    }

    /// Rounds that may be reckoned at once while the window grows by no more than a fine step.
    pub fn stride(&self, round: f64) -> f64 {
        (self.window / FINE / self.gain(round).max(1e-9)).clamp(1.0, 1e6)
    }

    fn curve(&self, time: f64) -> f64 {
        let after = time - self.flat_at;
        CUBIC_C * after * after * after + self.plateau
    }

    fn alpha(&self) -> f64 {
        match self.law.growth {
            Growth::Cubic { later } if self.friendly >= self.prior => later,
            _ => FRIENDLY,
        }
    }

    /// Goes on by `rounds` of `round` seconds each, up to a window of `most`.
    pub fn advance(&mut self, rounds: f64, round: f64, most: f64) {
        self.time += rounds * round;
        let grown = match self.law.growth {
            Growth::Linear { gain, share } => self.window + (gain + share * self.window) * rounds,
            Growth::Cubic { .. } => {
                self.friendly = (self.friendly + self.alpha() * rounds).min(most);
                let curve = self.curve(self.time).min(self.window * (1.0 + rounds / 2.0));
                curve.max(self.friendly).max(self.window)
            }
        };
        self.window = grown.min(most);
    }
}
