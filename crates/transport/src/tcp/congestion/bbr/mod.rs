//! BBR, the first version.
//!
//! It keeps a model of the path, the largest delivery rate of ten round trips and the shortest round trip
//! of ten seconds, and sends at that rate with at most about twice their product in flight. Sources:
//! N. Cardwell, Y. Cheng, C. S. Gunn, S. H. Yeganeh, V. Jacobson, *BBR: Congestion-Based Congestion
//! Control*, CACM 60(2), 2017 (ACM Queue 14(5), 2016); draft-cardwell-iccrg-bbr-congestion-control-00,
//! called "draft" below.
//!
//! Not modelled: the long-term sampling that recognises a policer, and the allowance for aggregated ACKs,
//! both of which Linux has and the draft has not. Congestion marks are ignored, as by the published
//! version.

mod filter;
mod probe;

use super::settings::{MOST_WINDOW, Settings};
use super::{Ack, Algorithm, Congestion, Controller, Entry, Law, RateSample, Reason};
use filter::MaxFilter;
use probe::{Mode, PROBE_RTT_SEGMENTS};
use trunkline_core::{Rate, Span, Time};

impl Algorithm {
    /// `bbr`, the first version.
    pub const BBR: Algorithm = Algorithm::of(&Entry {
        law: Some(Law::Bbr),
        kernel: Some("bbr"),
        wants_rate_samples: true,
        draws: true,
        shrinks_by_acks: true,
        windows_in_buffer: 3,
        ..Entry::new(
            "bbr",
            "sends at the measured delivery rate, with at most twice the product of that rate and the shortest round trip in flight; version 1",
            "Cardwell et al. 2016; draft-cardwell-iccrg-bbr-congestion-control-00",
            |settings| Controller::Bbr(Box::new(Bbr::new(settings))),
        )
    });
}

/// A gain of one; gains are in thousandths.
const UNITY: u64 = 1_000;
/// 2/ln 2: the smallest gain with which the rate doubles each round trip (draft §4.3.2.1, BBRHighGain).
const HIGH_GAIN: u64 = 2_885;
/// The time for which the shortest round trip counts (draft §4.1.2.2, RTpropFilterLen).
const MIN_RTT_LIFE: Span = Span::from_secs(10);
/// The round trip assumed before there is one, for the first pacing rate (draft §4.2.1).
const ASSUMED_RTT: Span = Span::from_millis(1);
/// The rates below which segments go out one or two at a time, in bytes per second (draft §4.2.2).
const SLOW: (u64, u64) = (1_200_000 / 8, 24_000_000 / 8);
/// Thousandths of the modelled rate at which segments are paced, so that no queue builds up by rounding
/// (one per cent less, as Linux paces).
const PACING_MARGIN: u64 = 990;

/// Whether the pipe has been filled. It has when three rounds brought less than a quarter more bandwidth
/// (draft §4.3.2.2).
#[derive(Debug, Clone, Copy, Default)]
struct Full {
    bandwidth: u64,
    rounds: u8,
    reached: bool,
}

/// The kind of repair that the sender is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Repair {
    #[default]
    Nothing,
    Losses,
    TimeOut,
}

/// The model, the state and the window of BBR.
#[derive(Debug, Clone)]
pub struct Bbr {
    window: u64,
    mss: u64,
    initial: u64,
    /// BtlBw's filter, in bytes per second.
    bandwidth: MaxFilter,
    /// RTprop, once there is one, and when it was measured or confirmed.
    min_rtt: Option<(Span, Time)>,
    /// Bytes per second; 0 before the first ACK.
    pacing_rate: u64,
    mode: Mode,
    full: Full,
    /// Bytes delivered on the connection.
    delivered: u64,
    /// Packet-timed round trips so far, and what will have been delivered when the present one ends.
    round: u64,
    round_ends_at: u64,
    round_start: bool,
    /// The bytes delivered between which everything sent was held back by probing for the round
    /// trip, and says nothing of the bandwidth.
    held_back: (u64, u64),
    /// The first round of a recovery: what is sent equals what is delivered.
    conserving: bool,
    repair: Repair,
    /// The kind of repair after the last ACK (`prev_ca_state` of Linux). A recovery that ends and begins with the same
    /// ACK goes on: with a loss in every window it would else conserve for ever.
    repaired_before: Repair,
    saved_window: u64,
    restarting: bool,
    draws: u64,
}

impl Bbr {
    /// The state at the beginning of a connection.
    pub fn new(settings: &Settings) -> Bbr {
        Bbr {
            window: settings.first_window(),
            mss: settings.segment(),
            initial: settings.first_window(),
            bandwidth: MaxFilter::default(),
            min_rtt: None,
            pacing_rate: 0,
            mode: Mode::Startup,
            full: Full::default(),
            delivered: 0,
            round: 0,
            round_ends_at: 0,
            round_start: false,
            held_back: (0, 0),
            conserving: false,
            repair: Repair::Nothing,
            repaired_before: Repair::Nothing,
            saved_window: 0,
            restarting: false,
            draws: settings.seed,
        }
    }

    /// The largest delivery rate of the last ten round trips, in bytes per second.
    pub fn bandwidth(&self) -> u64 {
        self.bandwidth.largest()
    }

    /// The shortest round trip of the last ten seconds or so.
    pub fn min_rtt(&self) -> Option<Span> {
        self.min_rtt.map(|(rtt, _)| rtt)
    }

    /// `gain` × bandwidth × shortest round trip, in bytes; the initial window before there is a round trip
    /// (draft §4.2.3.2).
    fn pipe(&self, gain: u64) -> u64 {
        let Some((rtt, _)) = self.min_rtt else { return self.initial };
        let product = u128::from(self.bandwidth()) * u128::from(rtt.as_nanos());
        let bytes = product * u128::from(gain) / (1_000_000_000 * u128::from(UNITY));
        u64::try_from(bytes).unwrap_or(u64::MAX).min(MOST_WINDOW)
    }

    /// Room for what hosts and the path gather before they pass it on: three bursts of the sender; whole
    /// pairs of segments, for a receiver that acknowledges every other; and a pair more while probing for
    /// bandwidth, which with a small pipe the gain alone would not add (draft §4.2.3.2; Linux adds the
    /// same).
    fn in_flight_for(&self, gain: u64) -> u64 {
        let pair = 2 * self.mss;
        let wanted = self.pipe(gain) + 3 * self.burst();
        let more = if self.mode.probes_up() { pair } else { 0 };
        wanted.div_ceil(pair) * pair + more
    }

    /// The amount that the sender hands over at a time (draft §4.2.2).
    fn burst(&self) -> u64 {
        match self.pacing_rate {
            rate if rate < SLOW.0 => self.mss,
            rate if rate < SLOW.1 => 2 * self.mss,
            rate => (rate / 1_000).min(64 << 10),
        }
    }

    /// A new packet-timed round begins when something arrives that was sent after the last one began
    /// (draft §4.1.1.3).
    fn count_round(&mut self, sample: &RateSample) {
        self.delivered = sample.prior_delivered + sample.delivered;
        self.round_start = sample.prior_delivered >= self.round_ends_at;
        if self.round_start {
            self.begin_round();
            self.round += 1;
            self.conserving = false;
        }
        self.bandwidth.advance(self.round);
    }

    fn begin_round(&mut self) {
        self.round_ends_at = self.delivered;
    }

    /// A sample limited by the application, or by our own probing, counts only if it is larger than
    /// what is known (draft §4.1.1.5).
    fn learn_bandwidth(&mut self, sample: &RateSample) {
        let Some(rate) = sample.bytes_per_second() else { return };
        if rate >= self.bandwidth() || !self.limited(sample) {
            self.bandwidth.put(rate);
        }
    }

    fn limited(&self, sample: &RateSample) -> bool {
        let (from, until) = self.held_back;
        sample.app_limited || (from..until).contains(&sample.prior_delivered)
    }

    fn check_full(&mut self, sample: &RateSample) {
        if self.full.reached || !self.round_start || self.limited(sample) {
            return;
        }
        if self.bandwidth() * 4 >= self.full.bandwidth * 5 {
            self.full = Full { bandwidth: self.bandwidth(), ..Full::default() };
            return;
        }
        self.full.rounds += 1;
        self.full.reached = self.full.rounds >= 3;
    }

    /// Returns whether the old round trip had outlived itself. One as short does not confirm it, as in Linux: a path
    /// without variation would never be probed again (the draft's §4.1.2.3 has it confirm).
    fn learn_rtt(&mut self, ack: &Ack) -> bool {
        let expired = self.min_rtt.is_some_and(|(_, at)| ack.now > at + MIN_RTT_LIFE);
        let shorter = |rtt: &Span| expired || self.min_rtt.is_none_or(|(known, _)| *rtt < known);
        if let Some(rtt) = ack.rtt.filter(shorter) {
            self.min_rtt = Some((rtt, ack.now));
        }
        expired
    }

    /// Draft §4.2.1. In startup the rate does not come down.
    fn pace(&mut self, ack: &Ack) {
        if self.pacing_rate == 0 || self.bandwidth() == 0 {
            let rtt = self.min_rtt().unwrap_or(ack.smoothed_rtt);
            self.pacing_rate = self.first_rate(rtt);
            return;
        }
        let rate = scaled(scaled(self.bandwidth(), self.mode.pacing_gain()), PACING_MARGIN).max(1);
        if self.full.reached || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
    }

    /// The initial window in one round trip, times the gain of startup.
    fn first_rate(&self, rtt: Span) -> u64 {
        let rtt = if rtt.is_zero() { ASSUMED_RTT } else { rtt };
        let nominal = u128::from(self.initial) * 1_000_000_000 / u128::from(rtt.as_nanos());
        scaled(u64::try_from(nominal).unwrap_or(u64::MAX), HIGH_GAIN).max(1)
    }

    /// Draft §4.2.3.
    fn set_window(&mut self, ack: &Ack, sample: &RateSample) {
        self.mind_recovery(ack, sample);
        if !self.conserving {
            self.grow(ack.delivered);
        }
        let least = PROBE_RTT_SEGMENTS * self.mss;
        self.window = self.window.clamp(self.mss, MOST_WINDOW.max(least));
        if self.mode.probes_rtt() {
            self.window = self.window.min(least);
        }
    }

    /// The first round of a recovery sends as much as arrives; what is lost is taken off (draft §4.2.3.4).
    fn mind_recovery(&mut self, ack: &Ack, sample: &RateSample) {
        let before = std::mem::replace(&mut self.repaired_before, self.repair);
        self.window = self.window.saturating_sub(sample.lost).max(self.mss);
        if self.repair == Repair::Losses && before != Repair::Losses {
            self.conserving = true;
            self.begin_round();
            self.window = ack.in_flight + ack.delivered.max(self.mss);
        } else if self.repair == Repair::Nothing && before != Repair::Nothing {
            self.conserving = false;
            self.restore_window();
        }
        if self.conserving {
            self.window = self.window.max(ack.in_flight + ack.delivered);
        }
    }

    fn grow(&mut self, delivered: u64) {
        let target = self.in_flight_for(self.mode.window_gain());
        if self.full.reached {
            self.window = (self.window + delivered).min(target);
        } else if self.window < target || self.delivered < self.initial {
            self.window += delivered;
        }
        self.window = self.window.max(PROBE_RTT_SEGMENTS * self.mss);
    }

    /// Draft §4.2.3.4, BBRSaveCwnd.
    fn save_window(&mut self) {
        let keep = self.repaired_before != Repair::Nothing || self.mode.probes_rtt();
        self.saved_window = if keep { self.saved_window.max(self.window) } else { self.window };
    }

    fn restore_window(&mut self) {
        self.window = self.window.max(self.saved_window);
    }
}

/// `value` × `gain` thousandths.
fn scaled(value: u64, gain: u64) -> u64 {
    let wide = u128::from(value) * u128::from(gain) / u128::from(UNITY);
    u64::try_from(wide).unwrap_or(u64::MAX)
}

impl Congestion for Bbr {
    fn window(&self) -> u64 {
        self.window
    }

    /// BBR has none; it answers `u64::MAX`.
    fn slow_start_threshold(&self) -> u64 {
        u64::MAX
    }

    fn pacing(&self) -> Option<Rate> {
        let rate =
            if self.pacing_rate == 0 { self.first_rate(Span::ZERO) } else { self.pacing_rate };
        Some(Rate::from_bits_per_second(rate.saturating_mul(8)))
    }

    /// Something is sent into an empty pipe: the application had nothing (draft §4.3.4.4).
    fn sent(&mut self, now: Time, bytes: u64, in_flight: u64) {
        if in_flight <= bytes && self.delivered > 0 && self.repair == Repair::Nothing {
            self.restarted_after_idle(now, 1);
        }
    }

    fn acked(&mut self, ack: &Ack) {
        let Some(sample) = ack.rate_sample else { return };
        self.count_round(&sample);
        self.learn_bandwidth(&sample);
        self.advance_cycle(ack, &sample);
        self.check_full(&sample);
        self.check_drain(ack);
        let expired = self.learn_rtt(ack);
        self.check_probe_rtt(ack, expired);
        self.restarting &= sample.delivered == 0;
        self.pace(ack);
        self.set_window(ack, &sample);
    }

    fn congested(&mut self, _now: Time, _in_flight: u64, reason: Reason) {
        if reason != Reason::Loss {
            return;
        }
        self.save_window();
        self.repair = Repair::Losses;
    }

    /// The window comes back with the ACK that ends the recovery, unless another one begins with it.
    fn recovered(&mut self, _now: Time) {
        self.repair = Repair::Nothing;
    }

    /// One segment, growing by what is delivered; the whole window again at the end of the recovery
    /// (draft §4.2.3.4). What the pipe holds is found out anew (Linux `bbr_set_state`).
    fn timed_out(&mut self, _now: Time, _in_flight: u64) {
        self.save_window();
        (self.repair, self.repaired_before) = (Repair::TimeOut, Repair::TimeOut);
        self.conserving = false;
        self.full.bandwidth = 0;
        self.window = self.mss;
    }

    fn undone(&mut self, now: Time) {
        self.full = Full { reached: self.full.reached, ..Full::default() };
        self.conserving = false;
        self.recovered(now);
    }

    fn restarted_after_idle(&mut self, _now: Time, _timeouts: u64) {
        self.restarting = true;
        if self.mode.probes_bandwidth() {
            self.pacing_rate = scaled(self.bandwidth(), PACING_MARGIN).max(1);
        }
    }
}
