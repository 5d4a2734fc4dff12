//! The states of BBR: startup, drain, probing for bandwidth in eight phases, probing for the round trip.

use super::super::{Ack, RateSample};
use super::{Bbr, HIGH_GAIN, UNITY};
use trunkline_core::{Span, Time};

/// Pacing gains of the eight phases, in thousandths (draft §4.3.4.1).
const CYCLE: [u64; 8] = [1_250, 750, UNITY, UNITY, UNITY, UNITY, UNITY, UNITY];
/// The most in flight while probing for bandwidth, in pipes: two, because ACKs come late and
/// together (draft §4.3.4.1).
const WINDOW_GAIN: u64 = 2_000;
/// Segments in flight while probing for the round trip, and the least window (draft §4.2.3.3,
/// BBRMinPipeCwnd).
pub(super) const PROBE_RTT_SEGMENTS: u64 = 4;
/// The least time for which it probes for the round trip (draft §4.3.5, ProbeRTTDuration).
const PROBE_RTT_TIME: Span = Span::from_millis(200);

/// The mode that BBR is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// Doubling the rate each round trip until it brings no more.
    Startup,
    /// Letting the queue of the startup drain.
    Drain,
    /// Cruising, with a little more and a little less once in eight phases.
    ProbeBandwidth { phase: u8, since: Time },
    /// Nearly nothing is in flight, to see the path without a queue. `until` is set once few enough are in
    /// flight; `round_passed` says whether a round has passed since.
    ProbeRtt { until: Option<Time>, round_passed: bool },
}

impl Mode {
    pub(super) fn pacing_gain(self) -> u64 {
        match self {
            Mode::Startup => HIGH_GAIN,
            Mode::Drain => UNITY * UNITY / HIGH_GAIN,
            Mode::ProbeBandwidth { phase, .. } => CYCLE[usize::from(phase)],
            Mode::ProbeRtt { .. } => UNITY,
        }
    }

    pub(super) fn window_gain(self) -> u64 {
        match self {
            Mode::Startup | Mode::Drain => HIGH_GAIN,
            Mode::ProbeBandwidth { .. } => WINDOW_GAIN,
            Mode::ProbeRtt { .. } => UNITY,
        }
    }

    pub(super) fn probes_rtt(self) -> bool {
        matches!(self, Mode::ProbeRtt { .. })
    }

    pub(super) fn probes_bandwidth(self) -> bool {
        matches!(self, Mode::ProbeBandwidth { .. })
    }

    /// Whether it is the phase that asks for more bandwidth.
    pub(super) fn probes_up(self) -> bool {
        matches!(self, Mode::ProbeBandwidth { phase: 0, .. })
    }
}

impl Bbr {
    /// Begins to probe for bandwidth, in any phase but the one that drains (draft §4.3.4.2). Which, is drawn,
    /// so that flows do not probe together.
    fn probe_bandwidth(&mut self, now: Time) {
        let drawn = (self.draw() % 7) as u8;
        let phase = if drawn == 0 { 0 } else { drawn + 1 };
        self.mode = Mode::ProbeBandwidth { phase, since: now };
    }

    /// Steele's SplitMix64: a draw is all that is asked of it.
    fn draw(&mut self) -> u64 {
        self.draws = self.draws.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.draws ^ (self.draws >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A phase lasts a round trip; the one with more until the queue shows it or something is lost, the
    /// one with less until the queue is gone (draft §4.3.4.3).
    pub(super) fn advance_cycle(&mut self, ack: &Ack, sample: &RateSample) {
        let Mode::ProbeBandwidth { phase, since } = self.mode else { return };
        let passed = self.min_rtt().is_some_and(|rtt| ack.now.since(since) > rtt);
        let over = match CYCLE[usize::from(phase)] {
            UNITY => passed,
            gain if gain > UNITY => {
                let reached = sample.prior_in_flight >= self.in_flight_for(gain);
                passed && (sample.lost > 0 || reached)
            }
            _ => passed || sample.prior_in_flight <= self.in_flight_for(UNITY),
        };
        if over {
            let phase = (phase + 1) % CYCLE.len() as u8;
            self.mode = Mode::ProbeBandwidth { phase, since: ack.now };
        }
    }

    /// Draft §4.3.3.
    pub(super) fn check_drain(&mut self, ack: &Ack) {
        if self.mode == Mode::Startup && self.full.reached {
            self.mode = Mode::Drain;
        }
        if self.mode == Mode::Drain && ack.in_flight <= self.in_flight_for(UNITY) {
            self.probe_bandwidth(ack.now);
        }
    }

    /// Draft §4.3.5.
    pub(super) fn check_probe_rtt(&mut self, ack: &Ack, expired: bool) {
        if expired && !self.restarting && !self.mode.probes_rtt() {
            self.save_window();
            self.mode = Mode::ProbeRtt { until: None, round_passed: false };
            self.held_back = (self.delivered, self.delivered);
        }
        if let Mode::ProbeRtt { until, round_passed } = self.mode {
            self.held_back.1 = self.delivered + ack.in_flight;
            self.probe_rtt(ack, until, round_passed);
        }
    }

    fn probe_rtt(&mut self, ack: &Ack, until: Option<Time>, round_passed: bool) {
        let Some(end) = until else {
            if ack.in_flight <= PROBE_RTT_SEGMENTS * self.mss {
                let until = Some(ack.now + PROBE_RTT_TIME);
                self.mode = Mode::ProbeRtt { until, round_passed: false };
                self.begin_round();
            }
            return;
        };
        let round_passed = round_passed || self.round_start;
        self.mode = Mode::ProbeRtt { until, round_passed };
        if round_passed && ack.now > end {
            self.leave_probe_rtt(ack.now);
        }
    }

    fn leave_probe_rtt(&mut self, now: Time) {
        if let Some((_, at)) = &mut self.min_rtt {
            *at = now;
        }
        self.restore_window();
        if self.full.reached {
            self.probe_bandwidth(now);
        } else {
            self.mode = Mode::Startup;
        }
    }
}
