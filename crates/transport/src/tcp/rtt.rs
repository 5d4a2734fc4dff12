//! The round trip and the time-out made of it (RFC 6298).

use super::clock::Clock;
use super::settings::Settings;
use trunkline_core::{Span, Time};

/// The estimator of Jacobson 1988, in nanoseconds; on a clock that ticks its samples are whole ticks.
#[derive(Debug, Clone)]
pub struct Rtt {
    smoothed: Span,
    deviation: Span,
    /// The shortest sample, on no ticking clock.
    shortest: Span,
    measured: bool,
    /// Doublings of the time-out since the last sample (RFC 6298 §5.5, §5.7).
    backoff: u8,
    /// Time-outs since the last acknowledgement of something new.
    in_vain: u8,
}

/// `average` moved by 1/2^`shift` of the way to `sample`.
fn moved(average: Span, sample: Span, shift: u32) -> Span {
    let (average, sample) = (average.as_nanos(), sample.as_nanos());
    Span::from_nanos(average - (average >> shift) + (sample >> shift))
}

/// `factor` times as long. [`Span::scaled`] would divide 128 bits, for every acknowledgement.
pub fn times(span: Span, factor: u64) -> Span {
    Span::from_nanos(span.as_nanos().saturating_mul(factor))
}

/// The first time-out of data after a SYN that had to be sent again (RFC 6298 §5.7).
const AFTER_LOST_SYN: Span = Span::from_secs(3);

impl Rtt {
    pub const fn new() -> Rtt {
        Rtt {
            smoothed: Span::ZERO,
            deviation: Span::ZERO,
            shortest: Span::ZERO,
            measured: false,
            backoff: 0,
            in_vain: 0,
        }
    }

    /// The smoothed round trip; zero before the first sample.
    pub const fn smoothed(&self) -> Span {
        self.smoothed
    }
    /// The shortest sample; zero before the first.
    pub const fn shortest(&self) -> Span {
        self.shortest
    }
    /// Time-outs in a row.
    pub const fn in_vain(&self) -> u8 {
        self.in_vain
    }

    /// A round trip of `sample` (RFC 6298 §2.2, §2.3). It alone takes the back-off away (§5): what was sent again and
    /// acknowledged may have been on its way for longer than the time-out says (Karn and Partridge 1987).
    pub fn sample(&mut self, sample: Span) {
        self.backoff = 0;
        if self.measured {
            let error = self.smoothed.abs_diff(sample);
            self.deviation = moved(self.deviation, error, 2);
            self.smoothed = moved(self.smoothed, sample, 3);
        } else {
            (self.smoothed, self.deviation) = (sample, Span::from_nanos(sample.as_nanos() / 2));
            self.measured = true;
        }
    }

    /// The true time of a round trip, however coarse the clock.
    pub fn saw(&mut self, exact: Span) {
        let shorter = self.shortest.is_zero() || exact < self.shortest;
        if shorter && !exact.is_zero() {
            self.shortest = exact;
        }
    }

    /// The time-out without back-off.
    fn base(&self, settings: &Settings) -> Span {
        if !self.measured {
            return settings.initial_rto;
        }
        let spread = times(self.deviation, 4);
        if settings.min_rto_above_srtt {
            return self.smoothed + spread.max(settings.min_rto);
        }
        (self.smoothed + spread.max(settings.granularity())).max(settings.min_rto)
    }

    /// The time-out in force.
    pub fn timeout(&self, settings: &Settings) -> Span {
        let base = self.base(settings);
        let doubled = 1u64 << self.backoff.min(32);
        // The longest (RFC 6298 §2.5) bounds the back-off: below what was measured, all would be sent twice.
        times(base, doubled).min(settings.max_rto.max(base))
    }

    /// When a timer started `now` runs out.
    pub fn due(&self, now: Time, settings: &Settings) -> Time {
        settings.slow_clock().due(now, self.timeout(settings))
    }

    pub fn back_off(&mut self) {
        self.backoff = self.backoff.saturating_add(1);
        self.in_vain = self.in_vain.saturating_add(1);
    }
    /// Something new has been acknowledged.
    pub fn progress(&mut self) {
        self.in_vain = 0;
    }

    /// The handshake is over, its SYN having been sent `again` times more than once.
    pub fn opened(&mut self, again: u8) {
        (self.backoff, self.in_vain) = (0, 0);
        if again > 0 && !self.measured {
            // Half of the first sample counts as its deviation: three times it in all.
            self.sample(Span::from_nanos(AFTER_LOST_SYN.as_nanos() / 3));
        }
    }
}

/// The one segment that a BSD times at a time (Wright and Stevens vol. 2 §25.10).
#[derive(Debug, Clone, Copy, Default)]
pub struct Timed {
    /// The position after it; 0 for none.
    end: u64,
    sent: Time,
}

impl Timed {
    /// A new segment goes out; it is timed unless another one is.
    pub fn sent(&mut self, now: Time, end: u64) {
        if self.end == 0 {
            *self = Timed { end, sent: now };
        }
    }
    /// Something is sent again: nothing that comes now can be told apart (Karn and Partridge 1987).
    pub fn abandon(&mut self) {
        self.end = 0;
    }
    /// Everything before `position` is acknowledged: what the clock says, if that was timed.
    pub fn acked(&mut self, now: Time, position: u64, clock: Clock) -> Option<Span> {
        let timed = self.end != 0 && position >= self.end;
        timed.then(|| {
            self.end = 0;
            clock.measured(self.sent, now)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::Profile;

    #[test]
    fn the_first_sample_and_the_next_are_weighed_as_rfc_6298_has_it() {
        let settings = Settings { min_rto: Span::from_millis(1), ..Settings::default() };
        let mut rtt = Rtt::new();
        assert_eq!(rtt.timeout(&settings), Span::from_secs(1));
        rtt.sample(Span::from_millis(80));
        assert_eq!(rtt.timeout(&settings), Span::from_millis(80 + 4 * 40));
        rtt.sample(Span::from_millis(160));
        assert_eq!(rtt.smoothed(), Span::from_millis(90));
        assert_eq!(rtt.timeout(&settings), Span::from_millis(90 + 4 * 50));
    }

    #[test]
    fn time_outs_double_up_to_the_longest() {
        let settings = Settings::default();
        let mut rtt = Rtt::new();
        let mut seconds = Vec::new();
        for _ in 0..8 {
            seconds.push(rtt.timeout(&settings).as_nanos() / 1_000_000_000);
            rtt.back_off();
        }
        assert_eq!(seconds, [1, 2, 4, 8, 16, 32, 60, 60]);
    }

    #[test]
    fn linux_adds_its_shortest_time_out_to_the_round_trip() {
        let settings = Settings::of(Profile::Linux);
        let mut rtt = Rtt::new();
        (0..60).for_each(|_| rtt.sample(Span::from_millis(100)));
        let timeout = rtt.timeout(&settings).as_millis_f64();
        assert!((300.0 - timeout).abs() < 0.1, "{timeout}");
    }

    #[test]
    fn the_longest_bounds_the_back_off_and_not_what_was_measured() {
        let settings = Settings::default();
        let mut rtt = Rtt::new();
        rtt.sample(Span::from_secs(360));
        assert_eq!(rtt.timeout(&settings), Span::from_secs(3 * 360));
        rtt.back_off();
        assert_eq!(rtt.timeout(&settings), Span::from_secs(3 * 360));
    }
}
