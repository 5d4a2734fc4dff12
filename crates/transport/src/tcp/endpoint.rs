//! TCP as its host sees it.

use super::{Blocked, Tcp};
use crate::{Counters, Endpoint, Held, Payload};
use trunkline_core::Time;

impl<B: Payload> Endpoint for Tcp<B> {
    /// One: a request is a stretch of the stream, however it is cut into segments.
    fn units_of(&self, _bytes: u32, _end: bool) -> u64 {
        1
    }

    fn consumed(&mut self, now: Time, bytes: u64) {
        Tcp::consumed(self, now, bytes);
    }

    fn deadline(&self) -> Option<Time> {
        Tcp::deadline(self)
    }

    fn expire(&mut self, now: Time) {
        Tcp::expire(self, now);
    }

    fn unsent(&self) -> u64 {
        Tcp::unsent(self)
    }

    fn unanswered(&self) -> u64 {
        self.outstanding()
    }

    fn held(&self, now: Time) -> Option<Held> {
        if self.recovering() {
            return Some(Held::Recovery);
        }
        self.blocked(now).map(|blocked| match blocked {
            Blocked::Handshake => Held::Opening,
            Blocked::Congestion => Held::Congestion,
            Blocked::Pacing => Held::Pace,
            Blocked::Receiver | Blocked::SendBuffer | Blocked::Small => Held::Window,
        })
    }

    fn dead(&self) -> bool {
        Tcp::dead(self)
    }

    /// The host is done with a request when TCP has it in its buffer.
    fn answered(&self) -> u64 {
        self.requests
    }

    fn counters(&self) -> Counters {
        let sending = Tcp::counters(self).sending;
        Counters {
            units: sending.segments,
            answered: self.requests,
            resent: sending.retransmitted,
            timeouts: u64::from(sending.timeouts),
        }
    }
}
