//! Packets that were sent so lately that no word of the receiver can be about their loss.
//!
//! A receiver whose patience is too short asks for packets that are not sent yet. If they are sent before its word comes, they look lost.
//! No request for a lost packet comes sooner than a round trip after it was sent; one that comes within a quarter is no sign of a loss.

use trunkline_core::{Span, Time};

/// The number of a buffer, and of a packet of it.
type Packet = (u32, u16);

/// The newest packet that was sent for the first time, and what it was at two instants before, a quarter of a round trip apart.
#[derive(Debug, Clone)]
pub(super) struct Young {
    round: Span,
    newest: Option<Packet>,
    marks: [Option<Packet>; 2],
    marked: Time,
}

impl Young {
    /// Nothing has been sent, and a round trip takes so long as far as is known.
    pub fn new(round: Span) -> Young {
        Young { round, newest: None, marks: [None; 2], marked: Time::ZERO }
    }

    /// A round trip takes so long.
    pub fn learn(&mut self, round: Span) {
        self.round = round;
    }

    /// Time has passed.
    pub fn turn(&mut self, now: Time) {
        let quarter = self.round.scaled(1, 4);
        if now >= self.marked + quarter {
            let is_long = now >= self.marked + quarter.scaled(2, 1);
            self.marks = [if is_long { self.newest } else { self.marks[1] }, self.newest];
            self.marked = now;
        }
    }

    /// A packet is sent for the first time. They go in order.
    pub fn sent(&mut self, now: Time, packet: Packet) {
        self.turn(now);
        self.newest = Some(packet);
    }

    /// Whether a packet that has been sent may be asked for because it is lost.
    pub fn may_be_lost(&self, packet: Packet) -> bool {
        Some(packet) <= self.marks[0]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of packets that go every millisecond all may be lost that went half of a round trip of 40 ms ago, and none that went within a
    /// quarter. After a pause all may be.
    #[test]
    fn what_was_sent_within_a_quarter_of_a_round_trip_is_young() {
        let at = |millis: u64| Time::ZERO + Span::from_millis(millis);
        let mut young = Young::new(Span::from_millis(40));
        for millis in 0..200u16 {
            young.sent(at(millis.into()), (7, millis));
            let lost = (0..=millis).filter(|&it| young.may_be_lost((7, it)));
            let since = millis + 1 - lost.count() as u16;
            assert!((11..=20).contains(&since) || millis < 20, "{millis}: {since}");
        }
        young.turn(at(230));
        assert!(young.may_be_lost((7, 199)));
    }
}
