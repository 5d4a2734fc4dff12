//! The timers that a receiver measures: its control timer, and the pace at which packets come.
//!
//! RFC 998 asks for a smoothed round trip with a variance and leaves the rest open; RFC 1030 §7 found that a fixed
//! variance fails on a path whose delays come in steps, and measured the time from packet to packet. The gains are
//! those of draft-white-protocol-stack-00.

use super::serial::ahead;
use trunkline_core::{Span, Time};

/// The first value of the control timer (RFC 998: arbitrary).
const FIRST: Span = Span::from_secs(1);
/// The longest that a control message waits to be sent again (a choice: after an outage a transfer goes on that soon).
const LONGEST: Span = Span::from_secs(2);
/// The least.
const SHORTEST: Span = Span::from_millis(2);

/// A smoothed value and its mean deviation, in nanoseconds.
#[derive(Debug, Clone, Copy)]
struct Smoothed {
    mean: u64,
    deviation: u64,
}

impl Smoothed {
    fn take(&mut self, sample: u64) {
        let off = sample.abs_diff(self.mean);
        self.mean = self.mean - self.mean / 8 + sample / 8;
        self.deviation = self.deviation - self.deviation / 4 + off / 4;
    }
}

/// The control timer, and the round trips that it is made from.
#[derive(Debug, Clone)]
pub struct ControlTimer {
    round: Smoothed,
    measured: bool,
    /// Whether anything is known of a round trip.
    is_known: bool,
    /// The newest message when the measurement began, and when that was.
    asked: Option<(u16, Time)>,
    /// Whether anything has been sent again since then.
    repeated: bool,
    /// The shortest that was measured.
    least: Option<Span>,
    /// By what the value is multiplied after messages that nothing answered.
    stretch: u32,
    ceiling: Span,
}

impl ControlTimer {
    /// A timer of an end that says something at least every `keepalive`.
    pub fn new(keepalive: Span) -> ControlTimer {
        let first = FIRST.min(keepalive).as_nanos();
        let round = Smoothed { mean: first, deviation: 0 };
        ControlTimer {
            round,
            measured: false,
            is_known: false,
            asked: None,
            repeated: false,
            least: None,
            stretch: 1,
            ceiling: keepalive,
        }
    }

    /// Sets the first value, if that is longer than it is without anything known. It is a guess, and no round trip that is known.
    pub fn guess(&mut self, first: Span) {
        self.round.mean = self.round.mean.max(first.min(self.ceiling).as_nanos());
    }

    /// Sets what a round trip takes before one is measured.
    pub fn expect(&mut self, round: Span) {
        self.is_known = true;
        self.round = Smoothed { mean: round.as_nanos(), deviation: round.as_nanos() / 4 };
    }

    /// Messages up to `newest` are sent for the first time.
    pub fn sent(&mut self, now: Time, newest: u16) {
        if self.asked.is_none() {
            (self.asked, self.repeated) = (Some((newest, now)), false);
        }
    }

    /// The other end says that it has heard nothing. If no round trip is known that tells of one, and what had been sent is to be sent
    /// again. Answers whether it is.
    pub fn missed(&mut self, now: Time) -> bool {
        let Some((_, since)) = self.asked.filter(|_| !self.is_known) else { return false };
        self.expect(now.since(since));
        self.repeated(now);
        true
    }

    /// What had been sent is sent again.
    fn repeated(&mut self, now: Time) {
        if let Some((_, since)) = &mut self.asked {
            (*since, self.repeated) = (now, true);
        }
    }

    /// What had been sent is sent again, because nothing answered.
    pub fn expired(&mut self, now: Time) {
        self.repeated(now);
        self.stretch = (self.stretch * 3).div_ceil(2).min(64);
    }

    /// All messages up to `high` have come there, more than before. Answers the round trip, if one was measured that
    /// nothing disturbed.
    ///
    /// The answer to what was sent more than once may be to any of them. Counted from the last it is too short or right, so
    /// that it may make the value longer and never shorter, and if it is much too short it shows that the timer is; and what the timer was stretched by stays until an answer comes in
    /// time. So a longer path is found, and losses do not make the timer slow.
    pub fn answered(&mut self, now: Time, high: u16) -> Option<Span> {
        let (newest, since) = self.asked?;
        if ahead(high, newest) >= 1 << 15 {
            return None;
        }
        self.asked = None;
        let round = now.since(since);
        match (self.measured, self.repeated) {
            (true, true) if round.scaled(2, 1) <= self.round() => {
                // So soon that it answers an earlier one.
                self.round.take(self.round.mean * 2);
            }
            (true, true) if round <= self.round() => {}
            (true, _) => self.round.take(round.as_nanos()),
            (false, _) => {
                self.round = Smoothed { mean: round.as_nanos(), deviation: round.as_nanos() / 4 };
                (self.measured, self.is_known) = (true, true);
            }
        }
        if self.repeated {
            return None;
        }
        self.stretch = 1;
        self.least = Some(self.least.map_or(round, |it| it.min(round)));
        Some(round)
    }

    /// When messages would be sent again that nothing has answered, if the timer had not been stretched for that.
    pub fn unstretched(&self) -> Option<Time> {
        let (_, since) = self.asked.filter(|_| self.stretch > 1)?;
        Some(since + self.stretched(1))
    }

    /// After how long messages are sent again.
    pub fn value(&self) -> Span {
        self.stretched(self.stretch)
    }

    fn stretched(&self, stretch: u32) -> Span {
        let value = Span::from_nanos(self.round.mean + 2 * self.round.deviation);
        let value = value.scaled(stretch.into(), 1);
        let longest = LONGEST.max(Span::from_nanos(2 * self.round.mean));
        value.max(SHORTEST).min(longest.min(self.ceiling))
    }

    /// The smoothed round trip, if one has been measured.
    pub fn measured(&self) -> Option<Span> {
        self.measured.then(|| self.round())
    }

    /// The smoothed round trip.
    pub fn round(&self) -> Span {
        Span::from_nanos(self.round.mean)
    }

    /// The shortest round trip; the smoothed one before any is measured.
    pub fn least(&self) -> Span {
        self.least.unwrap_or(self.round())
    }

    /// The mean deviation of round trips.
    pub fn deviation(&self) -> Span {
        Span::from_nanos(self.round.deviation)
    }
}

/// The pace at which packets come, and how long those that are missing may still take.
#[derive(Debug, Clone)]
pub struct Arrivals {
    pace: Smoothed,
    /// The first packet of a run through one buffer, and the latest: place, and time.
    run: Option<[(u32, u32, Time); 2]>,
}

impl Arrivals {
    /// Packets that are sent so far apart.
    pub fn new(spacing: Span) -> Arrivals {
        let mean = spacing.as_nanos();
        Arrivals { pace: Smoothed { mean, deviation: mean / 2 }, run: None }
    }

    /// A packet of a buffer has come.
    pub fn came(&mut self, now: Time, buffer: u32, packet: u32) {
        match &mut self.run {
            Some([(of, _, _), latest]) if *of == buffer && packet > latest.1 => {
                *latest = (buffer, packet, now);
            }
            _ => {
                self.interrupted();
                self.run = Some([(buffer, packet, now); 2]);
            }
        }
    }

    /// The run of packets ends: something else intervenes.
    pub fn interrupted(&mut self) {
        let Some([(_, first, since), (_, last, until)]) = self.run.take() else { return };
        if last > first {
            self.pace.take(until.since(since).as_nanos() / u64::from(last - first));
        }
    }

    /// How long `packets` more may take that are sent `spacing` apart.
    pub fn patience(&self, packets: u32, spacing: Span) -> Span {
        let count = u64::from(packets.max(1));
        let seen = self.pace.mean.saturating_mul(count) / 4 * 5 + 2 * self.pace.deviation;
        Span::from_nanos(seen).max(spacing.scaled(3 * count, 2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn the_control_timer_follows_the_round_trip() {
        let mut timer = ControlTimer::new(Span::from_secs(8));
        assert_eq!(timer.value(), FIRST);
        for round in 0..60 {
            timer.sent(at(round * 1000), round as u16 + 1);
            timer.sent(at(round * 1000 + 50), round as u16 + 5);
            assert_eq!(timer.answered(at(round * 1000 + 50), round as u16), None);
            let found = timer.answered(at(round * 1000 + 100), round as u16 + 1);
            assert_eq!(found, Some(Span::from_millis(100)));
        }
        let off = timer.value().abs_diff(Span::from_millis(100));
        assert!(off < Span::from_millis(2), "{:?}", timer.value());
        (0..30).for_each(|_| timer.expired(at(0)));
        assert_eq!(timer.value(), LONGEST);
    }

    /// The timer of a path that has become longer than it waits is found to be too short.
    #[test]
    fn a_longer_path_is_found() {
        let mut timer = ControlTimer::new(Span::from_secs(20));
        let mut now = at(0);
        for number in 0..40 {
            timer.sent(now, number);
            let (sent, back) = (now, now + Span::from_secs(5));
            while now + timer.value() < back {
                now += timer.value();
                timer.expired(now);
            }
            now = back;
            let found = timer.answered(now, number);
            assert!(found.is_none_or(|it| it == now.since(sent)));
        }
        assert!(timer.value() >= Span::from_secs(5), "{:?}", timer.value());
    }

    /// Half of all answers lost leave the timer near the round trip.
    #[test]
    fn losses_do_not_make_the_timer_slow() {
        let mut timer = ControlTimer::new(Span::from_secs(8));
        let mut now = at(0);
        for number in 0..100u16 {
            timer.sent(now, number);
            for _ in 0..number % 3 {
                now += timer.value();
                timer.expired(now);
            }
            now += Span::from_millis(100);
            timer.answered(now, number);
        }
        assert!(timer.round() < Span::from_millis(150), "{:?}", timer.round());
    }

    #[test]
    fn patience_follows_the_pace() {
        let mut arrivals = Arrivals::new(Span::from_millis(1));
        for buffer in 0..40 {
            for packet in 0..10 {
                arrivals.came(at(u64::from(buffer * 10 + packet) * 4), buffer, packet);
            }
        }
        let patience = arrivals.patience(8, Span::from_millis(1));
        let off = patience.abs_diff(Span::from_millis(40));
        assert!(off < Span::from_millis(2), "{patience:?}");
        assert_eq!(arrivals.patience(8, Span::from_millis(10)), Span::from_millis(120));
    }
}
