//! What a receiver knows and says before data come.

use super::Receiver;
use crate::netblt::law::{Arrival, on_path};
use trunkline_core::{Span, Time};

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
