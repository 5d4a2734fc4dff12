//! DCTCP: RFC 8257.
//!
//! The receiver tells which octets came marked ([`Marks::Each`]); the sender estimates the share of marked octets,
//! alpha, and takes half of that share off the window once in a window of data. All else is NewReno's: growth (§3.4)
//! and the reaction to losses (§3.5).

use super::{Ack, Algorithm, Congestion, Controller, Entry, Marks, Reason, Reno, Settings};
use trunkline_core::Time;

impl Algorithm {
    /// `dctcp`.
    pub const DCTCP: Algorithm = Algorithm::of(&Entry {
        marks: Marks::Each,
        kernel: Some("dctcp"),
        ..Entry::new(
            "dctcp",
            "reduces the window by half of the share of marked octets, otherwise as NewReno; for a data centre's own queues",
            "RFC 8257",
            |settings| Controller::other(Dctcp::new(settings)),
        )
    });
}

/// The estimate of the share of marked octets: an average that forgets a sixteenth with each observation
/// (§3.3 step 6 and §4.1: g = 1/16).
#[derive(Debug, Clone, Copy)]
pub(super) struct Share {
    alpha: u64,
    octets: u64,
    marked: u64,
}

impl Share {
    /// An alpha of 1.
    const ONE: u64 = 1 << 20;
    /// g, as a power of two.
    const GAIN: u32 = 4;

    /// Before anything is known it is 1, so that the first mark halves the window (§3.3).
    pub const UNKNOWN: Share = Share { alpha: Share::ONE, octets: 0, marked: 0 };

    /// Counts `octets`, of which `marked` were marked (steps 1 to 3).
    pub fn count(&mut self, octets: u64, marked: u64) {
        self.octets += octets;
        self.marked += marked.min(octets);
    }

    /// The observation is over (steps 5 to 7). One of nothing says nothing.
    pub fn observe(&mut self) {
        if let Some(share) = (self.marked * Share::ONE).checked_div(self.octets) {
            self.alpha = self.alpha - (self.alpha >> Share::GAIN) + (share >> Share::GAIN);
        }
        (self.octets, self.marked) = (0, 0);
    }

    /// Half of alpha, of `window` (step 9).
    pub fn of(&self, window: u64) -> u64 {
        let part = u128::from(window) * u128::from(self.alpha) / u128::from(2 * Share::ONE);
        part as u64
    }
}

/// The window of DCTCP.
#[derive(Debug, Clone)]
pub struct Dctcp {
    window: Reno,
    share: Share,
}

impl Dctcp {
    /// The state at the beginning of a connection.
    pub fn new(settings: &Settings) -> Dctcp {
        Dctcp { window: Reno::new(settings), share: Share::UNKNOWN }
    }
}

impl Congestion for Dctcp {
    fn window(&self) -> u64 {
        self.window.window()
    }

    fn slow_start_threshold(&self) -> u64 {
        self.window.slow_start_threshold()
    }

    /// The end of a round is the end of the observation: DCTCP.WindowEnd has been acknowledged (step 4).
    fn acked(&mut self, ack: &Ack) {
        self.share.count(ack.acked, ack.marked);
        if ack.round_start {
            self.share.observe();
        }
        self.window.acked(ack);
    }

    /// Marks take half of alpha off the window (step 9), losses do what they do to NewReno (§3.5).
    fn congested(&mut self, now: Time, in_flight: u64, reason: Reason) {
        match reason {
            Reason::Marked => {
                let bytes = self.share.of(self.window());
                self.window.take_off(self.window.in_its_units(bytes));
            }
            Reason::Loss | Reason::EcnEcho => self.window.congested(now, in_flight, reason),
        }
    }

    fn recovered(&mut self, now: Time) {
        self.window.recovered(now);
    }

    fn timed_out(&mut self, now: Time, in_flight: u64) {
        self.window.timed_out(now, in_flight);
    }

    fn undone(&mut self, now: Time) {
        self.window.undone(now);
    }

    fn restarted_after_idle(&mut self, now: Time, timeouts: u64) {
        self.window.restarted_after_idle(now, timeouts);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1000;

    /// Windows of ten segments of which `marked` are marked.
    fn observed(share: &mut Share, marked: u64, windows: u32) -> f64 {
        for _ in 0..windows {
            share.count(10 * MSS, marked * MSS);
            share.observe();
        }
        share.alpha as f64 / Share::ONE as f64
    }

    /// α ← (1 − g)·α + g·F: after n windows the distance to F is (15/16)ⁿ of what it was.
    #[test]
    fn alpha_comes_near_the_share_by_a_sixteenth_each_window() {
        let mut share = Share::UNKNOWN;
        for windows in [1, 7, 32, 160] {
            let before = share.alpha as f64 / Share::ONE as f64;
            let expected = 0.3 + (before - 0.3) * (15.0f64 / 16.0).powi(windows);
            let found = observed(&mut share, 3, windows as u32);
            assert!((found - expected).abs() < 1e-4, "{windows}: {found}, {expected}");
        }
        assert!((observed(&mut share, 0, 300)) < 1e-4);
    }

    #[test]
    fn the_first_mark_halves_and_a_rare_one_hardly_moves() {
        let settings = Settings::new(Algorithm::DCTCP, MSS as u32);
        let mut flow = Dctcp::new(&Settings { initial_window: Some(64 * MSS), ..settings });
        flow.congested(Time::ZERO, 64 * MSS, Reason::Marked);
        assert_eq!((flow.window(), flow.slow_start_threshold()), (32 * MSS, 32 * MSS));
        observed(&mut flow.share, 0, 300);
        flow.congested(Time::ZERO, 32 * MSS, Reason::Marked);
        assert!(flow.window() > 31_990, "{}", flow.window());
        flow.congested(Time::ZERO, 32 * MSS, Reason::Loss);
        assert_eq!(flow.window(), 16 * MSS);
    }
}
