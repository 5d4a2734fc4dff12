//! How much of the congestion window was used, as Linux keeps track of it (`tcp_cwnd_validate`, `tcp_is_cwnd_limited`): a
//! window that was full once counts as used until all that was sent by then is acknowledged.

/// The use of the window in the round trip that is under way.
#[derive(Debug, Clone, Copy, Default)]
pub struct Usage {
    /// Whether it was full.
    full: bool,
    /// The most that was outstanding, in the window's measure, if it was not.
    most: u64,
    /// The position whose acknowledgement ends the round trip.
    until: u64,
}

impl Usage {
    /// Something was sent, or the window has kept it back. All before position `una` is acknowledged, all before `next` sent,
    /// and `outstanding` what lies between.
    pub fn note(&mut self, full: bool, outstanding: u64, (una, next): (u64, u64)) {
        if una >= self.until || full || !self.full && outstanding > self.most {
            *self = Usage { full, most: outstanding, until: next };
        }
    }

    /// Whether the window may grow: it was full, or in slow start half full.
    pub fn is_enough(&self, window: u64, slow_start: bool) -> bool {
        self.full || slow_start && window < self.most.saturating_mul(2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_window_counts_until_what_was_sent_by_then_is_acknowledged() {
        let mut usage = Usage::default();
        usage.note(true, 10, (1, 11));
        usage.note(false, 4, (10, 14));
        assert!(usage.is_enough(100, false));
        usage.note(false, 4, (11, 15));
        assert!(!usage.is_enough(4, false));
        assert_eq!([7, 8].map(|window| usage.is_enough(window, true)), [true, false]);
        usage.note(false, 6, (12, 18));
        assert!(usage.is_enough(11, true));
    }
}
