//! A scalable controller for the low-latency service: what RFC 9331 asks of one.
//!
//! It sends ECT(1) and has marks counted ([`Marks::Counted`]; RFC 9331 §4.1, §4.2). It takes half of the marked share
//! off its window as DCTCP does, grows by what comes unmarked, and reacts to a loss as NewReno (§4.3, appendix A.1.3);
//! so it does to the echo of RFC 3168 if the other end knows no better. Growth, the estimate and
//! reductions go by a virtual round trip of 25 ms at least, so that below that flows of different round trips share a
//! queue evenly (appendix A.1.5; B. Briscoe, *The Prague Congestion Control*,
//! draft-briscoe-iccrg-prague-congestion-control, §2.4.4). Segments are paced (appendix A.1.7 asks for limited bursts).
//!
//! Left out: detecting a queue that marks as RFC 3168 has it (appendix A.1.4 asks a sender to fall back there), windows
//! below two segments (A.1.6) and adapting the reordering window (A.1.8, which [`rack`](super::super) has for all
//! controllers).

use super::dctcp::Share;
use super::{
    Ack, Algorithm, Congestion, Controller, Entry, MOST_WINDOW, Marks, Reason, Reno, Settings,
};
use trunkline_core::{Rate, Span, Time};

impl Algorithm {
    /// `prague`.
    pub const PRAGUE: Algorithm = Algorithm::of(&Entry {
        marks: Marks::Counted,
        ..Entry::new(
            "prague",
            "sends ECT(1) and counts marks: reduces the window by half of the marked share, and grows evenly whatever the round trip; \
             for the low-latency queue of dualpi2",
            "RFC 9331 §4 and appendix A; RFC 9768",
            |settings| Controller::other(Prague::new(settings)),
        )
    });
}

/// The shortest round trip that growth, estimate and reductions go by.
const VIRTUAL: Span = Span::from_millis(25);
/// Fractions of a byte in which growth is counted, as a power of two.
const FINE: u32 = 10;
/// Hundredths of the window that are paced out in a round trip, in slow start and after (Linux's `tcp_pacing_ss_ratio`
/// and `tcp_pacing_ca_ratio`).
const PACING: (u64, u64) = (200, 120);

/// The window of Prague.
#[derive(Debug, Clone)]
pub struct Prague {
    window: Reno,
    mss: u64,
    share: Share,
    /// Whether a mark has come. Until then alpha stays 1, so that the first one ends slow start with half the window.
    marked: bool,
    /// When the observation is over.
    observed_until: Time,
    /// When the window may be reduced again.
    reduced_until: Time,
    /// Growth that has not yet become a byte, in 2⁻¹⁰ bytes × window.
    credit: u64,
    smoothed_rtt: Span,
    recovering: bool,
}

impl Prague {
    /// The state at the beginning of a connection.
    pub fn new(settings: &Settings) -> Prague {
        Prague {
            window: Reno::new(settings),
            mss: settings.segment(),
            share: Share::UNKNOWN,
            marked: false,
            observed_until: Time::ZERO,
            reduced_until: Time::ZERO,
            credit: 0,
            smoothed_rtt: Span::ZERO,
            recovering: false,
        }
    }

    fn virtual_round(&self) -> Span {
        self.smoothed_rtt.max(VIRTUAL)
    }

    fn starting(&self) -> bool {
        self.window() < self.slow_start_threshold()
    }

    /// Counts the marks, and ends the observation once in a virtual round trip.
    fn observe(&mut self, ack: &Ack) {
        self.share.count(ack.delivered, ack.marked);
        if ack.now >= self.observed_until {
            self.observed_until = ack.now + self.virtual_round();
            if self.marked {
                self.share.observe();
            }
        }
    }

    /// Marks reduce the window once in a virtual round trip.
    fn heed_marks(&mut self, now: Time) {
        self.marked = true;
        if now >= self.reduced_until {
            self.reduced_until = now + self.virtual_round();
            self.window.take_off(self.share.of(self.window()));
        }
    }

    /// A segment in a virtual round trip for a flow of that round trip, and for a shorter one what gains the same rate
    /// in the same time: (r/v)² segments in a round trip of r. Only octets that came unmarked count.
    fn grow(&mut self, ack: &Ack) {
        let unmarked = ack.news().saturating_sub(ack.marked).min(MOST_WINDOW);
        let (round, most) = (self.smoothed_rtt.as_nanos(), self.virtual_round().as_nanos());
        let (round, most) = (u128::from(round), u128::from(most));
        let gain = (u128::from(self.mss) << FINE) * round * round / (most * most);
        self.credit += unmarked * gain as u64;
        let price = self.window() << FINE;
        self.window.grow(self.credit / price);
        self.credit %= price;
    }
}

impl Congestion for Prague {
    fn window(&self) -> u64 {
        self.window.window()
    }

    fn slow_start_threshold(&self) -> u64 {
        self.window.slow_start_threshold()
    }

    fn pacing(&self) -> Option<Rate> {
        let round = u128::from(self.smoothed_rtt.as_nanos());
        let percent = if self.starting() { PACING.0 } else { PACING.1 };
        let bits = u128::from(self.window()) * u128::from(8 * percent) * 10_000_000;
        let rate = u64::try_from(bits.checked_div(round)?).unwrap_or(u64::MAX);
        Some(Rate::from_bits_per_second(rate.max(1)))
    }

    fn acked(&mut self, ack: &Ack) {
        self.smoothed_rtt = ack.smoothed_rtt;
        self.observe(ack);
        if ack.marked > 0 && !self.recovering {
            self.heed_marks(ack.now);
        }
        let starting = self.starting();
        // Beyond slow start NewReno only takes note that something has come.
        self.window.acked(&Ack { window_limited: ack.window_limited && starting, ..*ack });
        if !starting && !self.recovering && ack.window_limited {
            self.grow(ack);
        }
    }

    /// The response to marks does not wait for the end of a window of data, for virtual round trips may end before.
    fn congested(&mut self, now: Time, in_flight: u64, reason: Reason) {
        if reason != Reason::Marked {
            self.recovering |= reason == Reason::Loss;
            return self.window.congested(now, in_flight, reason);
        }
        self.heed_marks(now);
    }

    fn recovered(&mut self, now: Time) {
        self.recovering = false;
        self.window.recovered(now);
    }

    fn timed_out(&mut self, now: Time, in_flight: u64) {
        self.recovering = false;
        self.window.timed_out(now, in_flight);
    }

    fn undone(&mut self, now: Time) {
        self.recovering = false;
        self.window.undone(now);
    }

    fn restarted_after_idle(&mut self, now: Time, timeouts: u64) {
        self.window.restarted_after_idle(now, timeouts);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trunkline_core::{Probability, Seed};

    const MSS: u64 = 1000;

    /// A flow beyond slow start, with a window of `segments`.
    fn flow(segments: u64) -> Prague {
        let settings = Settings::new(Algorithm::PRAGUE, MSS as u32);
        let mut flow =
            Prague::new(&Settings { initial_window: Some(2 * segments * MSS), ..settings });
        flow.congested(Time::ZERO, 2 * segments * MSS, Reason::Marked);
        assert_eq!(flow.window(), segments * MSS);
        flow
    }

    /// Windows acknowledged one after the other, round trips of `round` long, for `span`.
    fn grown(flow: &mut Prague, round: Span, span: Span) -> u64 {
        let (before, mut now) = (flow.window(), Time::ZERO);
        while now.since(Time::ZERO) < span {
            now += round;
            for _ in 0..flow.window() / MSS {
                flow.acked(&Ack { smoothed_rtt: round, ..Ack::of(now, MSS) });
            }
        }
        flow.window() - before
    }

    /// In a second a flow of 25 ms or more gains one segment in each round trip; the rate of a shorter one, its window
    /// by its round trip, gains as much as that of 25 ms: the window gains 40·(r/25 ms) segments.
    #[test]
    fn below_the_virtual_round_trip_rates_grow_alike() {
        let second = Span::from_secs(1);
        for (millis, segments) in [(100, 10.0), (25, 40.0), (10, 16.0), (5, 8.0), (1, 1.6)] {
            let grown =
                grown(&mut flow(100), Span::from_millis(millis), second) as f64 / MSS as f64;
            assert!((grown / segments - 1.0).abs() < 0.03, "{millis} ms: {grown} for {segments}");
        }
    }

    #[test]
    fn marks_reduce_once_in_a_virtual_round_trip_and_losses_halve() {
        let mut flow = flow(100);
        flow.congested(Time::ZERO + Span::from_millis(24), 100 * MSS, Reason::Marked);
        assert_eq!(flow.window(), 100 * MSS);
        flow.congested(Time::ZERO + Span::from_millis(25), 100 * MSS, Reason::Marked);
        assert_eq!(flow.window(), 50 * MSS, "nothing is known of the share yet");
        flow.congested(Time::ZERO + Span::from_millis(26), 50 * MSS, Reason::Loss);
        assert_eq!(flow.window(), 25 * MSS);
    }

    /// Marks that come by chance leave a window of more than 2/p. Between reductions pass a virtual round trip and then
    /// what comes until the next mark, 1/(p·W) of one; if it gains 1 − p meanwhile and loses p·W/2, then
    /// p·W = (1 − p) + √((1 − p)² + 2·(1 − p)): 2.62 at 5 %, near 1 + √3 below. That takes alpha for p; 8 % is for its
    /// wandering, which is more with windows of few segments.
    #[test]
    fn marks_by_chance_leave_two_and_a_half_windows_between_them() {
        for (percent, seed) in [(2, 1), (5, 2), (10, 3)] {
            let p = f64::from(percent) / 100.0;
            let found = mean_window(p, seed) * p;
            let own = (1.0 - p) + ((1.0 - p).powi(2) + 2.0 * (1.0 - p)).sqrt();
            assert!((found / own - 1.0).abs() < 0.08, "{percent} %: {found:.2} for {own:.2}");
        }
    }

    /// The mean over 4,000 virtual round trips of the window in segments, each marked with chance `p`.
    fn mean_window(p: f64, seed: u64) -> f64 {
        let mut flow = flow((2.0 / p) as u64);
        let (mut stream, chance) = (Seed(seed).stream("marks"), Probability::new(p).unwrap());
        let (mut now, mut sum) = (Time::ZERO, 0);
        for _ in 0..4_000 {
            let segments = flow.window() / MSS;
            sum += segments;
            for _ in 0..segments {
                now += VIRTUAL.scaled(1, segments);
                let marked = if stream.happens(chance) { MSS } else { 0 };
                flow.acked(&Ack { marked, smoothed_rtt: VIRTUAL, ..Ack::of(now, MSS) });
            }
        }
        f64::from(sum as u32) / 4_000.0
    }

    #[test]
    fn what_came_marked_makes_nothing_grow() {
        let mut flow = flow(10);
        let ack = Ack { marked: MSS, smoothed_rtt: VIRTUAL, ..Ack::of(Time::ZERO, MSS) };
        (0..1000).for_each(|_| flow.acked(&ack));
        assert_eq!(flow.window(), 10 * MSS);
    }
}
