//! A window that grows and shrinks as that of CUBIC does (RFC 9438), for a path on which somebody else keeps a queue.

use crate::tcp::congestion::cubic::curve;
use trunkline_core::Time;

/// The window, in bytes.
#[derive(Debug, Clone)]
pub struct Contest {
    window: u64,
    /// The window when something was lost last, and when that was.
    most: u64,
    since: Time,
    /// What Reno's window would be since then.
    reno: u64,
    /// Bytes of a packet.
    packet: u64,
}

impl Contest {
    /// A window to begin with.
    pub fn new(now: Time, window: u64, packet: u64) -> Contest {
        Contest { window, most: window, since: now, reno: window, packet }
    }

    /// Grows for a round trip without losses.
    pub fn grow(&mut self, now: Time) -> u64 {
        // K: from seven tenths of W_max back to it (§4.2).
        let knee = curve::time_to_plateau(self.most * 3 / 10, self.packet);
        let time = curve::steps(now.since(self.since));
        let cubic = curve::window(time, knee, self.most, self.packet);
        // 3 (1 − β) / (1 + β) packets in each round trip (§4.3).
        self.reno += self.packet * 9 / 17;
        let target = cubic.max(self.reno);
        self.window = self.window.max(target.min(self.window * 3 / 2));
        self.window
    }

    /// Shrinks to seven tenths, because something was lost.
    pub fn shrink(&mut self, now: Time) -> u64 {
        // Who has less than before leaves more to others (fast convergence, §4.7).
        self.most = if self.window < self.most { self.window * 17 / 20 } else { self.window };
        self.window = (self.window * 7 / 10).max(2 * self.packet);
        (self.since, self.reno) = (now, self.window);
        self.window
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trunkline_core::Span;

    /// RFC 9438 §4.2: after K seconds the window is where it was when something was lost.
    #[test]
    fn the_window_comes_back_after_its_time() {
        let mut contest = Contest::new(Time::ZERO, 100_000_000, 1000);
        assert_eq!(contest.shrink(Time::ZERO), 70_000_000);
        // K³ = 100 000 × 0.3 / 0.4 = 75 000.
        let after = |millis| Time::ZERO + Span::from_millis(millis);
        let early = contest.grow(after(20_000));
        assert!(early < 97_000_000, "{early}");
        let back = contest.grow(after(42_172));
        assert!(back.abs_diff(100_000_000) < 10_000, "{back}");
        let later = contest.grow(after(60_000));
        assert!(later > 102_000_000, "{later}");
    }
}
