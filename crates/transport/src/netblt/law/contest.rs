//! A window that grows and shrinks as that of CUBIC does (RFC 9438), for a path on which somebody else keeps a queue.

use crate::tcp::congestion::cubic::curve;
use trunkline_core::{Span, Time};

/// Round trips and stretches without a loss after which the next loss is another event (choices; TCP's recovery takes one or
/// two round trips).
const APART: u64 = 4;
const CLEAN: u32 = 2;
/// Percent of the packets that may be lost beside somebody who does not yield (a choice): BBR of version 1 and an equal rate beside
/// it lose a tenth and more, because it sends a quarter more than came through whenever it looks for more.
const BORNE: u64 = 15;
/// Percent of the window that are left if more is lost than that (a choice): the other takes what is given up.
const LEFT: u64 = 85;
/// Packets from which that is known.
const KNOWN: u64 = 100;

/// The window, in bytes.
#[derive(Debug, Clone)]
pub struct Contest {
    window: u64,
    /// The window when something was lost last, what it shrank to, and when that was.
    most: u64,
    from: u64,
    since: Time,
    /// What Reno's window would be since then.
    reno: u64,
    /// When it has grown last.
    grown: Time,
    /// Bytes of a packet.
    packet: u64,
    /// The latest loss, and packets sent and lost since the window shrank for the first of its event.
    lost: Option<Time>,
    event: (u64, u64),
    /// The window that is to be regained, and whether it has shrunk again since it was lost.
    peak: u64,
    has_yielded: bool,
    /// Stretches without a loss since then.
    clean: u32,
}

impl Contest {
    /// A window to begin with.
    pub fn new(now: Time, window: u64, packet: u64) -> Contest {
        Contest {
            window,
            most: window,
            from: window,
            since: now,
            reno: window,
            grown: now,
            packet,
            lost: None,
            event: (0, 0),
            clean: 0,
            peak: window,
            has_yielded: false,
        }
    }

    /// The window.
    pub fn window(&self) -> u64 {
        self.window
    }

    /// Grows for a time without losses in which round trips took `round`.
    pub fn grow(&mut self, now: Time, round: Span) {
        // K: from where it was shrunk to back to W_max (§4.2).
        let knee = curve::time_to_plateau(self.most.saturating_sub(self.from), self.packet);
        let time = curve::steps(now.since(self.since));
        let cubic = curve::window(time, knee, self.most, self.packet);
        // 3 (1 − β) / (1 + β) packets in each round trip (§4.3).
        let passed = u128::from(now.since(self.grown).as_nanos());
        let more = u128::from(self.packet * 9) * passed / u128::from(17 * round.as_nanos().max(1));
        self.reno += (more as u64).min(self.window / 2);
        self.grown = now;
        let target = cubic.max(self.reno);
        self.window = self.window.max(target.min(self.window * 3 / 2));
    }

    /// Whether the window is to shrink: so many packets were lost of those sent since it was asked last. It shrinks once for
    /// losses that follow each other, and once more before it has come back to where it was. If it still loses packets then,
    /// the other does not yield, and it bears them as long as they are few.
    pub fn is_to_shrink(&mut self, now: Time, round: Span, (sent, lost): (u64, u64)) -> bool {
        let is_near = |at: Time| now.since(at) <= round.scaled(APART, 1);
        let goes_on = self.lost.is_some_and(|at| is_near(at) || self.clean < CLEAN);
        self.event = (self.event.0 + sent, self.event.1 + lost);
        if lost == 0 {
            self.clean += 1;
            return false;
        }
        (self.lost, self.clean) = (Some(now), 0);
        if self.loses_much() || self.window >= self.peak && !goes_on {
            (self.peak, self.has_yielded) = (self.window, false);
            return true;
        }
        let yields = !goes_on && !self.has_yielded;
        self.has_yielded |= yields;
        yields
    }

    /// Whether more is lost than is borne.
    fn loses_much(&self) -> bool {
        self.event.0 >= KNOWN && self.event.1 * 100 > self.event.0 * BORNE
    }

    /// Shrinks to seven tenths, because something was lost; by less if it is much, beside somebody who does not yield.
    pub fn shrink(&mut self, now: Time) {
        let is_less = self.window < self.most;
        let (most, left) = match self.loses_much() {
            true => (self.window, self.window * LEFT / 100),
            // Who has less than before leaves more to others (fast convergence, §4.7).
            false if is_less => (self.window * 17 / 20, self.window * 7 / 10),
            false => (self.window, self.window * 7 / 10),
        };
        (self.most, self.window) = (most, left.max(2 * self.packet));
        (self.since, self.grown) = (now, now);
        (self.from, self.reno) = (self.window, self.window);
        self.event = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 9438 §4.2: after K seconds the window is where it was when something was lost.
    #[test]
    fn the_window_comes_back_after_its_time() {
        let mut contest = Contest::new(Time::ZERO, 100_000_000, 1000);
        contest.shrink(Time::ZERO);
        assert_eq!(contest.window(), 70_000_000);
        // K³ = 100 000 × 0.3 / 0.4 = 75 000.
        let mut after = |millis| {
            contest.grow(Time::ZERO + Span::from_millis(millis), Span::from_secs(1));
            contest.window()
        };
        let early = after(20_000);
        assert!(early < 97_000_000, "{early}");
        let back = after(42_172);
        assert!(back.abs_diff(100_000_000) < 10_000, "{back}");
        let later = after(60_000);
        assert!(later > 102_000_000, "{later}");
    }
}
