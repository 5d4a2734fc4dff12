//! The packets under way on a plain link, with the departures that are known beforehand.

use super::{Delivered, book_departure};
use crate::BlockQueue;
use crate::line::Wire;
use trunkline_core::{Carried, Cause, Span, Time};

/// Packets whose departures are known, in order, and the wire that told them.
#[derive(Debug)]
pub(super) struct Rides<P> {
    pub ring: BlockQueue<Ride<P>>,
    pub wire: Wire,
    pub delay: Span,
}

/// A packet with its departure.
#[derive(Debug)]
pub(super) struct Ride<P> {
    pub departed: Time,
    pub packet: P,
}

impl<P: Carried> Rides<P> {
    /// When the first packet is due.
    #[inline(always)]
    pub fn next_release(&self) -> Option<Time> {
        self.ring.front().map(|ride| ride.departed + self.delay)
    }

    /// Takes the first packet if it is due by `now`, its share booked; also tells when it departed.
    #[inline(always)]
    pub fn take(&mut self, now: Time) -> Option<(Time, Delivered<P>)> {
        let departed = self.ring.front()?.departed;
        let release = departed + self.delay;
        if release > now {
            return None;
        }
        let mut packet = self.ring.pop_front()?.packet;
        if P::BOOKS {
            let nominal = self.wire.nominal(packet.size(), packet.controls());
            book_departure(&mut packet, departed, nominal);
            packet.book(Cause::Propagate, release.since(departed));
        }
        Some((departed, Delivered { release, packet }))
    }

    /// The number of packets.
    #[inline]
    pub fn len(&self) -> usize {
        self.ring.len()
    }
}
