//! When Linux holds an acknowledgement back: quickly at the start and after trouble, later with the answer.
//!
//! A connection whose application answers what comes is *interactive* (`pingpong` in Linux): its
//! acknowledgements wait for the answer, up to a time that follows the gaps between segments. One that only
//! receives acknowledges the first segments at once, and from then on what a program has read up to the end of
//! a short segment (`net/ipv4/tcp_input.c`, `tcp_output.c`, `tcp_timer.c` and `tcp.c`, Linux 6).

use super::settings::Settings;
use trunkline_core::{Span, Time};

/// The shortest hold, and the first (TCP_ATO_MIN).
const LEAST: Span = Span::from_millis(40);
/// The longest, if the application answers or the segment was short (TCP_DELACK_MAX).
const MOST: Span = Span::from_millis(200);
/// The longest otherwise (`tcp_send_delayed_ack`).
const MOST_IN_BULK: Span = Span::from_millis(500);
/// The assumed full segment before one has come (TCP_MSS_DEFAULT; TCP_MIN_MSS).
const FULL: (u32, u32) = (536, 88);

/// This end's knowledge of the round trip, as the holding of acknowledgements sees it.
#[derive(Debug, Clone, Copy)]
pub struct Pulse {
    /// Smoothed; zero before the first sample.
    pub smoothed: Span,
    /// The time-out of retransmission.
    pub timeout: Span,
}

/// The news of a segment that came in order.
#[derive(Debug, Clone, Copy)]
pub struct Arrival {
    /// Octets of data.
    pub len: u32,
    /// Whether it was pushed.
    pub pushed: bool,
    /// The window that was offered last, in octets.
    pub window: u64,
}

/// The state of it.
#[derive(Debug, Clone)]
pub struct Interactive {
    /// Acknowledgements still to be sent at once.
    quick: u8,
    /// Whether the application has answered in time.
    answers: bool,
    /// The time to hold one back; zero before the first data.
    hold: Span,
    /// When data came last.
    last: Time,
    /// The size of a full segment, and the short one that came last.
    full: u32,
    short: u32,
    /// Short or pushed segments since the last acknowledgement, two at most.
    ends: u8,
}

impl Interactive {
    /// Before any data.
    pub fn new(settings: &Settings) -> Interactive {
        Interactive {
            quick: 0,
            answers: false,
            hold: Span::ZERO,
            last: Time::ZERO,
            full: settings.mss.min(FULL.0),
            short: 0,
            ends: 0,
        }
    }

    /// More than this unacknowledged is acknowledged at once, in octets.
    pub fn full(&self) -> u32 {
        self.full
    }
    /// Whether what has come is to be acknowledged at once.
    pub fn quick(&self) -> bool {
        self.quick > 0 && !self.answers
    }
    /// Whether an acknowledgement is due when the application has read everything. One short segment waits for the
    /// answer if answers are usual; two do not (`tcp_cleanup_rbuf`).
    pub fn read(&self) -> bool {
        self.ends >= 2 || (self.ends == 1 && !self.answers)
    }

    /// Data came in order (`tcp_event_data_recv`).
    pub fn arrived(&mut self, now: Time, arrival: Arrival, pulse: Pulse, settings: &Settings) {
        self.measure(arrival);
        let gap = now.since(self.last);
        if self.hold.is_zero() {
            self.hurry(arrival.window, settings);
            self.hold = LEAST;
        } else if gap <= LEAST.scaled(1, 2) {
            self.hold = self.hold.scaled(1, 2) + LEAST.scaled(1, 2);
        } else if gap < self.hold {
            self.hold = (self.hold.scaled(1, 2) + gap).min(pulse.timeout);
        } else if gap > pulse.timeout {
            // The sender starts again, perhaps with a small window.
            self.hurry(arrival.window, settings);
        }
        self.last = now;
    }

    /// Measures a full segment: the largest, or one that came twice running (`tcp_measure_rcv_mss`). Others
    /// end what the application wrote.
    fn measure(&mut self, Arrival { len, pushed, .. }: Arrival) {
        let before = std::mem::take(&mut self.short);
        if len >= self.full {
            self.full = len;
            self.ends = self.ends.max(u8::from(pushed));
            return;
        }
        // Options may have taken 12 octets of the smallest full segment.
        if len + 12 >= FULL.0 || (len >= FULL.1 && !pushed) {
            self.short = len;
            if len == before {
                self.full = len;
                return;
            }
        }
        self.ends = (self.ends + 1).min(2);
    }

    /// The next acknowledgements go out at once, for half the window at most (`tcp_incr_quickack`).
    fn hurry(&mut self, window: u64, settings: &Settings) {
        let half = (window / (2 * u64::from(self.full.max(1)))).max(2);
        let quick = half.min(u64::from(settings.quick_acks)) as u8;
        self.quick = self.quick.max(quick);
    }

    /// Something came twice (`tcp_enter_quickack_mode`).
    pub fn disturbed(&mut self, window: u64, settings: &Settings) {
        self.hurry(window, settings);
        self.answers = false;
        self.hold = LEAST;
    }

    /// Data are sent: an answer, if something came within the time of a hold (`tcp_event_data_sent`).
    pub fn sent(&mut self, now: Time) {
        self.answers |= now.since(self.last) < self.hold;
    }

    /// What has come is acknowledged (`tcp_event_ack_sent`).
    pub fn acknowledged(&mut self) {
        self.ends = 0;
        if self.quick == 1 {
            self.hold = LEAST;
        }
        self.quick = self.quick.saturating_sub(1);
    }

    /// The time for which the acknowledgement of what has just come is held back, `most` at most
    /// (`tcp_send_delayed_ack`).
    pub fn hold(&self, pulse: Pulse, most: Span) -> Span {
        if self.hold <= LEAST {
            return self.hold.min(most);
        }
        let bound = if self.answers || self.ends > 0 { MOST } else { MOST_IN_BULK };
        let rtt = if pulse.smoothed.is_zero() { bound } else { pulse.smoothed.max(LEAST) };
        self.hold.min(bound).min(rtt).min(most)
    }

    /// One was held back in vain: no answer came (`tcp_delack_timer_handler`).
    pub fn missed(&mut self, pulse: Pulse) {
        self.hold = match std::mem::take(&mut self.answers) {
            true => LEAST,
            false => self.hold.scaled(2, 1).min(pulse.timeout),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::Profile;

    const PULSE: Pulse = Pulse { smoothed: Span::ZERO, timeout: Span::from_millis(300) };

    /// A flow that has had the segments, each pushed, at these milliseconds, in a window of 64 KiB.
    fn after(segments: &[(u64, u32)]) -> Interactive {
        let settings = Settings::of(Profile::Linux);
        let mut flow = Interactive::new(&settings);
        for &(ms, len) in segments {
            let arrival = Arrival { len, pushed: true, window: 65_536 };
            flow.arrived(Time::ZERO + Span::from_millis(ms), arrival, PULSE, &settings);
        }
        flow
    }

    fn hold(flow: &Interactive) -> u64 {
        flow.hold(PULSE, MOST_IN_BULK).as_nanos() / 1_000_000
    }

    #[test]
    fn the_hold_follows_the_gaps_and_the_misses() {
        assert_eq!(hold(&after(&[(1, 100)])), 40);
        assert_eq!(hold(&after(&[(1, 100), (5, 100)])), 40);
        assert_eq!(hold(&after(&[(1, 100), (31, 100)])), 50);
        assert_eq!(hold(&after(&[(1, 100), (201, 100)])), 40, "too rare to tell");
        let mut flow = after(&[(1, 100)]);
        for expected in [80, 160, 200, 200] {
            flow.missed(PULSE);
            assert_eq!(hold(&flow), expected);
        }
        flow.acknowledged();
        assert_eq!(hold(&flow), 300, "in bulk the time-out bounds it");
        assert_eq!(
            flow.hold(Pulse { smoothed: LEAST, ..PULSE }, MOST),
            LEAST,
            "and the round trip"
        );
        flow.disturbed(65_536, &Settings::of(Profile::Linux));
        assert_eq!(hold(&flow), 40);
    }

    #[test]
    fn quick_acknowledgements_are_half_a_window_and_sixteen_at_most() {
        let quick = |window| {
            let settings = Settings::of(Profile::Linux);
            let mut flow = Interactive::new(&settings);
            flow.hurry(window, &settings);
            flow.quick
        };
        assert_eq!([quick(0), quick(5360), quick(1 << 20)], [2, 5, 16]);
    }

    #[test]
    fn an_answer_within_the_hold_ends_the_haste() {
        let mut flow = after(&[(1, 100)]);
        assert!(flow.quick() && flow.read());
        flow.sent(Time::ZERO + Span::from_millis(41));
        assert!(flow.quick(), "40 ms is not within 40 ms");
        flow.sent(Time::ZERO + Span::from_millis(40));
        assert!(!flow.quick() && !flow.read());
        let mut flow = after(&[(1, 100), (2, 100)]);
        flow.sent(Time::ZERO + Span::from_millis(3));
        assert!(flow.read(), "two short ones do not wait");
    }

    #[test]
    fn a_full_segment_is_learnt() {
        assert_eq!(after(&[]).full(), 536);
        assert_eq!(after(&[(1, 1448)]).full(), 1448);
        assert_eq!(after(&[(1, 1448), (2, 900), (3, 901)]).full(), 1448);
        assert_eq!(after(&[(1, 1448), (2, 900), (3, 900)]).full(), 900);
    }
}
