//! CUBIC's growth in Linux, which counts windows in segments (`net/ipv4/tcp_cubic.c`, `tcp_cong_avoid_ai`).
//!
//! The window that the curve or Reno's law asks for is a whole number of segments above the present one; the
//! quotient of the two says after how many segments one more is added. So the window follows Reno's law a
//! round trip late, while RFC 9438 §4.3 sets it at once. And that law's gain stays below a segment for
//! each window above the former one too, while §4.3 lets it be one.

use trunkline_core::{Span, Time};

/// Eighths of a window for which Reno's law gains a segment (`beta_scale` of β = 717/1024).
const FRIENDLY: u64 = 15;
/// Segments acknowledged for one more, at least: half as much again in a round trip.
const LEAST: u64 = 2;
/// As many at most in an epoch that no loss began.
const MOST_WITHOUT_LOSS: u64 = 20;
/// Windows acknowledged for one segment more if neither the curve nor Reno's law asks for any.
const AT_REST: u64 = 100;
/// For how long a quotient holds while the window stands (`HZ / 32`).
const FRESH: Span = Span::from_micros(31_250);

/// An ACK in congestion avoidance.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step {
    /// When it came.
    pub now: Time,
    /// Bytes that it acknowledges.
    pub acked: u64,
    /// The window before it, in bytes.
    pub window: u64,
    /// Bytes of a segment.
    pub mss: u64,
}

/// The counts of an epoch, in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Segments {
    /// Whether the epoch began without a loss (`last_max_cwnd` of 0).
    lossless: bool,
    /// Acknowledged, and not yet counted for Reno's window (`ack_cnt`).
    friendly: u64,
    /// Acknowledged, and not yet turned into window (`snd_cwnd_cnt`).
    credit: u64,
    /// The price of a segment more (`cnt`), with what window it was found, and when.
    price: u64,
    found: (u64, Time),
}

impl Segments {
    /// At the beginning of an epoch.
    pub(super) const fn new(lossless: bool) -> Segments {
        Segments { lossless, friendly: 0, credit: 0, price: 0, found: (0, Time::ZERO) }
    }

    /// Counts what was acknowledged for Reno's window. Returns whether the price of a segment is to be found anew.
    pub(super) fn count(&mut self, step: &Step) -> bool {
        self.friendly += step.acked;
        let (window, at) = self.found;
        window != step.window || step.now.since(at) > FRESH
    }

    /// The whole segments that Reno's window has grown by since the last call.
    pub(super) fn friendly(&mut self, step: &Step) -> u64 {
        let price = (step.window / step.mss * FRIENDLY / 8).max(1) * step.mss;
        // A segment is counted when more than its price is acknowledged.
        let grown = self.friendly.saturating_sub(1) / price;
        self.friendly -= grown * price;
        grown
    }

    /// Finds the price of a segment on the way to what the curve and Reno's law ask for, in bytes.
    pub(super) fn reprice(&mut self, step: &Step, curve: u64, friendly: u64) {
        let segments = step.window / step.mss;
        let after = |target: u64| match (target / step.mss).saturating_sub(segments) {
            0 => AT_REST * segments,
            more => segments / more,
        };
        let most = if self.lossless { MOST_WITHOUT_LOSS } else { u64::MAX };
        self.price = after(curve).min(most).min(after(friendly)).max(LEAST) * step.mss;
        self.found = (step.window, step.now);
    }

    /// The whole segments that the window grows by.
    pub(super) fn grow(&mut self, step: &Step) -> u64 {
        // The price has fallen below what was saved: one segment for all of it.
        let saved = self.credit >= self.price;
        self.credit = if saved { 0 } else { self.credit } + step.acked;
        let grown = self.credit / self.price;
        self.credit %= self.price;
        u64::from(saved) + grown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1000;

    fn step(millis: u64, segments: u64, window: u64) -> Step {
        let now = Time::ZERO + Span::from_millis(millis);
        Step { now, acked: segments * MSS, window: window * MSS, mss: MSS }
    }

    #[test]
    fn reno_gains_a_segment_in_fifteen_eighths_of_a_window() {
        let mut flow = Segments::new(false);
        let gained: Vec<u64> = (0..38)
            .map(|_| {
                flow.count(&step(0, 1, 10));
                flow.friendly(&step(0, 1, 10))
            })
            .collect();
        assert_eq!(gained.iter().sum::<u64>(), 2);
        assert_eq!((gained[18], gained[36]), (1, 1), "18.75 comes down to 18");
    }

    #[test]
    fn a_segment_is_dearer_the_nearer_the_goal_is() {
        let mut flow = Segments::new(false);
        let mut price = |curve, friendly| {
            flow.reprice(&step(0, 1, 13), curve * MSS, friendly * MSS);
            flow.price / MSS
        };
        assert_eq!(price(15, 13), 6, "13 / 2, whole");
        assert_eq!(price(13, 14), 13);
        assert_eq!(price(12, 12), 1300, "nothing to gain");
        assert_eq!(price(100, 12), 2);
        let mut flow = Segments::new(true);
        flow.reprice(&step(0, 1, 13), 0, 0);
        assert_eq!(flow.price, 20 * MSS);
    }

    #[test]
    fn a_price_holds_while_the_window_stands_for_a_thirty_second_of_a_second() {
        let mut flow = Segments::new(false);
        assert!(flow.count(&step(100, 1, 10)));
        flow.reprice(&step(100, 1, 10), 12 * MSS, 0);
        assert!(!flow.count(&step(131, 1, 10)));
        assert!(flow.count(&step(132, 1, 10)) && flow.count(&step(101, 1, 11)));
        let grown: Vec<u64> = (0..6).map(|_| flow.grow(&step(101, 1, 10))).collect();
        assert_eq!(grown, [0, 0, 0, 0, 1, 0]);
        flow.reprice(&step(102, 1, 10), 15 * MSS, 0);
        assert_eq!(flow.grow(&step(102, 3, 10)), 2, "one saved for and one of three for two");
    }
}
