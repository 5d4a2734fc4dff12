//! What a receiver knows and says before data come.

use super::super::habits::RateLaw;
use super::super::timers::ControlTimer;
use super::super::wire::Terms;
use super::{Receiver, apart};
use crate::netblt::law::{Arrival, on_path};
use trunkline_core::{Span, Time};

/// Octets of a GO.
const GO: u64 = 8;

/// The timer of the first GOs. A fixed burst tells the least rate of the line: over one that is no faster, data answer GOs after as long as
/// a packet takes, and the GOs themselves may be as long as several.
pub(super) fn first_timer(terms: &Terms, rate: RateLaw, keepalive: Span) -> ControlTimer {
    let mut control = ControlTimer::new(keepalive);
    if rate == RateLaw::Fixed {
        let packet = u64::from(terms.packet).max(1);
        let octets = packet + u64::from(terms.outstanding) * GO;
        control.guess(apart(terms.burst).scaled(octets, packet));
    }
    control
}

impl Receiver {
    /// A round trip takes so long at most, as far as is known before one is measured.
    pub fn expect(&mut self, round: Span) {
        self.control.expect(round);
    }

    /// The same, and what has been said is waited for from now on.
    pub fn met(&mut self, now: Time, round: Span) {
        self.expect(round);
        self.control_due = self.control_due.map(|_| now + self.control.value());
    }

    /// Says all again that has not been acknowledged, if an offer is part of it. Answers whether one is.
    pub fn repeat(&mut self) -> bool {
        let has_offered = self.offered.is_some();
        if has_offered {
            self.log.repeat();
        }
        has_offered
    }

    /// A copy of the OPEN has come, as long as a data packet of so many user bytes.
    pub fn knocked(&mut self, at: Time, packet: u16) {
        self.law.arrived(&Arrival { at, bytes: on_path(packet, self.dialect), place: None });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netblt::wire::{Burst, Dialect};

    /// When a receiver with so many buffers says its GOs again, if a packet of 1440 octets goes in each interval.
    fn repeats(outstanding: u16, interval: u16, rate: RateLaw) -> Span {
        let burst = Burst { size: 1, interval };
        let terms = Terms { buffer: 1440, packet: 1440, burst, outstanding, ..Terms::default() };
        let mut receiver = Receiver::new(Dialect::Classic, &terms, rate, Span::from_secs(80));
        receiver.provide(outstanding.into());
        while receiver.transmit(Time::ZERO).is_some() {}
        receiver.deadline().unwrap().since(Time::ZERO)
    }

    /// Over 1 kbit/s 512 GOs take 34 s, and a packet 12 s; they were said again after one.
    #[test]
    fn gos_are_not_said_again_before_a_slow_line_has_carried_them() {
        let second = Span::from_secs(1);
        assert!(repeats(512, 12_000, RateLaw::Fixed) > Span::from_secs(46));
        assert_eq!(repeats(1, 12_000, RateLaw::Fixed), Span::from_nanos(12_066_666_666));
        assert_eq!(repeats(512, 10, RateLaw::Fixed), second);
        assert_eq!(repeats(512, 12_000, RateLaw::Adaptive), second);
    }
}
