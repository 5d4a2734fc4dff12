//! Laws by which a receiver tells the sender how fast to send.
//!
//! RFC 998 lets each OK offer a burst and says nothing of how to choose it; RFC 1030 §8 asks for a rule that needs
//! nothing but what the two ends see. A law is told of every packet that comes and of round trips, and offers bursts. It is
//! told too when the sender has taken an offer up: from the packet that acknowledges it on, packets come at that pace.

mod adaptive;
mod contest;
mod fixed;
mod full;
mod jitter;
mod order;
mod rates;
mod window;

pub use adaptive::Adaptive;
pub use fixed::Fixed;

use super::wire::{Burst, Dialect};
use std::fmt;
use trunkline_core::{Span, Time};

/// A data packet that has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// When.
    pub at: Time,
    /// Bytes of it that the path carries, as far as NETBLT knows.
    pub bytes: u32,
    /// Its place among all packets of the transfer if it comes for the first time by itself; `None` if it was asked
    /// for again, or is a copy.
    pub place: Option<u64>,
}

/// Bytes that a packet with so many of data takes on the path, with NETBLT's header, and IPv4's and UDP's of 28.
pub(super) fn on_path(data: u16, dialect: Dialect) -> u32 {
    u32::from(data) + dialect.data_header() as u32 + 28
}

/// A law that says how fast the other end is to send.
pub trait Law: fmt::Debug + Send {
    /// A data packet has come.
    fn arrived(&mut self, _arrival: &Arrival) {}
    /// Packets are missing that no packet can be waited for any more.
    fn ended(&mut self, _now: Time) {}
    /// A round trip has been measured.
    fn round(&mut self, _round: Span) {}
    /// The sender has taken up an offer that was new: from now on its packets come at that pace, or in the burst that it tells, which is
    /// slower if it keeps to a cap of its own. Not all packets tell it.
    fn taken_up(&mut self, _told: Option<Burst>) {}
    /// The sender tells another burst although nothing was offered: the cap of its own has become another one.
    fn capped_anew(&mut self, _told: Burst) {}
    /// The offer that every OK and RESEND is to carry.
    fn offer(&self) -> Burst;
    /// The time within which the next packet comes if the sender has one.
    fn quantum(&self) -> Span;
    /// How late packets come that others have overtaken.
    fn late(&self) -> Span {
        Span::ZERO
    }
    /// Whether the offer is new since the last call, so that a message is to carry it now.
    fn is_new(&mut self) -> bool {
        false
    }
}
