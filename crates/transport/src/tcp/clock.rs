//! A clock that ticks, or one that does not.

use trunkline_core::{Span, Time};

/// When a timer set on a host's clock runs out.
///
/// 4.4BSD has no timers of its own for a connection: a counter goes down at every tick of one clock that
/// runs whatever happens, so that a time of n ticks lasts between n − 1 and n of them (Wright and Stevens
/// vol. 2 §25.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clock {
    /// The time between ticks, or `None` for a clock as fine as [`Time`].
    pub tick: Option<Span>,
    /// One of its ticks. Others come before and behind it, from [`Time::ZERO`] on.
    pub phase: Span,
}

impl Clock {
    /// Its first tick.
    fn first(self, tick: Span) -> Time {
        Time::ZERO + Span::from_nanos(self.phase.as_nanos() % tick.as_nanos().max(1))
    }

    /// Counts the ticks by `now`.
    fn count(self, tick: Span, now: Time) -> u64 {
        let first = self.first(tick);
        now.since(first).as_nanos() / tick.as_nanos().max(1) + u64::from(now >= first)
    }

    /// When a timer of `span` set at `now` runs out: at the tick that its count, rounded up, reaches.
    pub fn due(self, now: Time, span: Span) -> Time {
        let Some(tick) = self.tick else { return now + span };
        let ticks = span.as_nanos().div_ceil(tick.as_nanos().max(1)).max(1);
        let nth = self.count(tick, now) + ticks - 1;
        let nanos = nth.saturating_mul(tick.as_nanos());
        self.first(tick) + Span::from_nanos(nanos)
    }

    /// The time from `earlier` to `later` on this clock, in whole ticks that passed.
    pub fn measured(self, earlier: Time, later: Time) -> Span {
        let Some(tick) = self.tick else { return later.since(earlier) };
        let ticks = self.count(tick, later) - self.count(tick, earlier);
        Span::from_nanos(ticks.saturating_mul(tick.as_nanos()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    #[test]
    fn a_count_of_two_lasts_between_one_and_two_ticks() {
        let clock = Clock { tick: Some(Span::from_millis(500)), phase: Span::ZERO };
        let due = |now, span| clock.due(at(now), Span::from_millis(span));
        assert_eq!(due(0, 1000), at(1000));
        assert_eq!(due(1, 1000), at(1000));
        assert_eq!(due(499, 1000), at(1000));
        assert_eq!(due(500, 1000), at(1500));
        assert_eq!(due(499, 1), at(500));
        assert_eq!(due(0, 501), at(1000));
    }

    #[test]
    fn a_phase_moves_every_tick() {
        let clock = Clock { tick: Some(Span::from_millis(200)), phase: Span::from_millis(70) };
        assert_eq!(clock.due(at(0), Span::from_millis(200)), at(70));
        assert_eq!(clock.due(at(70), Span::from_millis(200)), at(270));
        assert_eq!(clock.due(at(269), Span::from_millis(200)), at(270));
        assert_eq!(clock.measured(at(0), at(69)), Span::ZERO);
        assert_eq!(clock.measured(at(69), at(271)), Span::from_millis(400));
    }

    #[test]
    fn a_clock_without_ticks_is_exact() {
        let clock = Clock { tick: None, phase: Span::from_secs(1) };
        assert_eq!(clock.due(at(3), Span::from_millis(7)), at(10));
        assert_eq!(clock.measured(at(3), at(10)), Span::from_millis(7));
    }
}
