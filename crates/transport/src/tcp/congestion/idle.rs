//! Linux's reduction of a window after an idle time.

/// A sender's windows before it was idle, and the window that a connection begins with.
#[derive(Debug, Clone, Copy)]
pub(super) struct Idle {
    pub window: u64,
    pub threshold: u64,
    pub initial: u64,
}

impl Idle {
    /// Window and threshold after so many time-outs without sending: the window is halved for each, in whole segments,
    /// down to the initial one (`tcp_cwnd_restart`; RFC 2861 §2), and the threshold remembers three quarters of
    /// it (`tcp_current_ssthresh`).
    pub fn decayed(self, timeouts: u64, mss: u64) -> (u64, u64) {
        let (window, least) = (self.window / mss, self.initial.min(self.window) / mss);
        let threshold = self.threshold.max((window / 2 + window / 4) * mss);
        let halved = window >> timeouts.min(63);
        (halved.max(least).max(1) * mss, threshold)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_halved_down_to_the_initial_one() {
        let idle = Idle { window: 47_000, threshold: 20_000, initial: 10_000 };
        let decayed = |timeouts| idle.decayed(timeouts, 1000);
        assert_eq!(decayed(1), (23_000, 34_000));
        assert_eq!(decayed(2), (11_000, 34_000));
        assert_eq!(decayed(3), (10_000, 34_000));
        assert_eq!(decayed(u64::MAX), (10_000, 34_000));
        let small = Idle { window: 3000, threshold: u64::MAX, ..idle };
        assert_eq!(small.decayed(5, 1000), (3000, u64::MAX));
    }
}
