//! Packets on their way: what the hosts hand over, and the plain values that links carry.

use super::{LinkId, RouteId, TraceId};
use trunkline_core::{Carried, Cause, Channel, DropCause, Ecn, Metered, Span, Time};

/// A packet on its way along a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parcel {
    /// Its route.
    pub route: RouteId,
    /// User bytes.
    pub size: u32,
    /// Control envelopes among them, below 2^11.
    pub controls: u16,
    /// The congestion bits: as the sender sets them, and on arrival as links on the way have marked them.
    pub ecn: Ecn,
    /// The sender's own: what the packet means.
    pub tag: u64,
    /// Its record of hops, if one is kept.
    pub trace: Option<TraceId>,
}

/// What happens next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A packet has come to the end of its route.
    Arrived(Parcel),
    /// A packet was lost on a link.
    Lost(Parcel, LinkId, DropCause),
    /// A timer has run out, with the number given to it.
    Timer(u64),
}

/// Most hops of all routes together, and most records of hops at one time.
pub(super) const MOST: u32 = (1 << 24) - 1;

/// The places of the congestion bits of a [`Label`], its priority band, and its number of control envelopes.
const ECN: u32 = 48;
const BAND: u32 = 50;
const CONTROLS: u32 = 53;

/// The least urgent band.
pub(super) const LAST_BAND: u8 = 7;

/// More control envelopes than any packet can have.
pub(super) const MOST_CONTROLS: u16 = 1 << (u64::BITS - CONTROLS);

/// A packet on one link: 32 bytes, so that two share a cache line.
///
/// A link whose delay and rate never change needs to note nothing in it: what the packet waited for
/// follows from when it entered and when it comes out (see [`station`](super::station)).
#[derive(Debug, Clone, Copy)]
pub(super) struct Leg {
    /// The sender's own.
    pub(super) tag: u64,
    /// When it entered this link.
    pub(super) entered: Time,
    pub(super) label: Label,
    /// User bytes.
    pub(super) size: u32,
    /// The channel, as its route has it.
    pub(super) channel: u32,
}

/// Hop, trace, congestion bits, band and number of control envelopes, 24 + 24 + 2 + 3 + 11 bits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Label(u64);

impl Leg {
    /// `parcel` on the hop with number `hop` among those of all routes; channel and band are its route's.
    pub(super) fn new(parcel: &Parcel, hop: u32, (channel, band): (u32, u8), entered: Time) -> Leg {
        let trace = parcel.trace.map_or(MOST, |trace| trace.0);
        let bits = u64::from(parcel.ecn.bits()) << ECN | u64::from(band & LAST_BAND) << BAND;
        let last = u64::from(parcel.controls) << CONTROLS | bits;
        let label = Label(u64::from(hop) | u64::from(trace) << 24 | last);
        Leg { tag: parcel.tag, entered, label, size: parcel.size, channel }
    }

    /// Its hop's number among those of all routes.
    pub(super) fn hop(&self) -> u32 {
        self.label.0 as u32 & MOST
    }

    /// Its record of hops.
    pub(super) fn trace(&self) -> Option<TraceId> {
        let trace = (self.label.0 >> 24) as u32 & MOST;
        (trace != MOST).then_some(TraceId(trace))
    }

    /// Control envelopes.
    pub(super) fn controls(&self) -> u16 {
        (self.label.0 >> CONTROLS) as u16
    }

    /// The congestion bits.
    pub(super) fn ecn(&self) -> Ecn {
        Ecn::from_bits((self.label.0 >> ECN) as u8)
    }

    fn mark(&mut self) {
        self.label.0 |= u64::from(self.ecn().marked().bits()) << ECN;
    }

    /// The same packet on the next hop of its route.
    #[inline]
    pub(super) fn onward(&self, now: Time) -> Leg {
        let Leg { tag, label, size, channel, .. } = *self;
        Leg { tag, entered: now, label: Label(label.0 + 1), size, channel }
    }

    /// The same packet with another record of hops.
    pub(super) fn with_trace(mut self, trace: Option<TraceId>) -> Leg {
        let trace = trace.map_or(MOST, |trace| trace.0);
        self.label.0 = self.label.0 & !(u64::from(MOST) << 24) | u64::from(trace) << 24;
        self
    }

    /// What the hosts see of it; its route is `route`.
    pub(super) fn parcel(&self, route: RouteId) -> Parcel {
        let Leg { tag, size, .. } = *self;
        Parcel { route, size, controls: self.controls(), ecn: self.ecn(), tag, trace: self.trace() }
    }
}

impl Metered for Leg {
    fn size(&self) -> u32 {
        self.size
    }
    fn controls(&self) -> u32 {
        u32::from(self.controls())
    }
    fn channel(&self) -> Channel {
        Channel(u64::from(self.channel))
    }
    fn band(&self) -> u8 {
        (self.label.0 >> BAND) as u8 & LAST_BAND
    }
    fn ecn(&self) -> Ecn {
        Leg::ecn(self)
    }
    fn mark(&mut self) {
        Leg::mark(self);
    }
}

impl Carried for Leg {
    const BOOKS: bool = false;

    fn entered(&self) -> Time {
        self.entered
    }
    fn book(&mut self, _cause: Cause, _span: Span) {}
    fn copies(&self) -> u8 {
        1
    }
    fn set_copies(&mut self, copies: u8) {
        debug_assert!(copies == 1, "only a link with impairments duplicates");
    }
}

/// A packet on a link that can change or impair: it carries what it waited for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Laden {
    pub(super) leg: Leg,
    pub(super) queue: Span,
    pub(super) transmit: Span,
    pub(super) copies: u8,
}

impl Laden {
    /// A packet that has waited for nothing yet.
    pub(super) fn new(leg: Leg) -> Laden {
        Laden { leg, queue: Span::ZERO, transmit: Span::ZERO, copies: 1 }
    }
}

impl Metered for Laden {
    fn size(&self) -> u32 {
        self.leg.size
    }
    fn controls(&self) -> u32 {
        Metered::controls(&self.leg)
    }
    fn channel(&self) -> Channel {
        self.leg.channel()
    }
    fn band(&self) -> u8 {
        self.leg.band()
    }
    fn ecn(&self) -> Ecn {
        self.leg.ecn()
    }
    fn mark(&mut self) {
        self.leg.mark();
    }
}

impl Carried for Laden {
    fn entered(&self) -> Time {
        self.leg.entered
    }
    fn book(&mut self, cause: Cause, span: Span) {
        match cause {
            Cause::Queue => self.queue += span,
            Cause::Transmit => self.transmit += span,
            // Distance is what remains of the whole.
            _ => {}
        }
    }
    fn copies(&self) -> u8 {
        self.copies
    }
    fn set_copies(&mut self, copies: u8) {
        self.copies = copies;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn nothing_is_lost_in_packing(
            size: u32, controls in 0..MOST_CONTROLS, bits in 0u8..4, tag: u64,
            trace in prop::option::of(0..MOST), hop in 0..MOST, band in 0..=LAST_BAND,
        ) {
            let (trace, ecn) = (trace.map(TraceId), Ecn::from_bits(bits));
            let parcel = Parcel { route: RouteId(7), size, controls, ecn, tag, trace };
            let mut leg = Leg::new(&parcel, hop, (9, band), Time::ZERO);
            prop_assert_eq!(leg.band(), band);
            let laden = Laden::new(leg);
            prop_assert_eq!((laden.band(), laden.channel()), (band, leg.channel()));
            prop_assert_eq!((leg.hop(), leg.parcel(RouteId(7))), (hop, parcel));
            let next = leg.onward(Time::from_nanos(3));
            prop_assert_eq!((next.hop(), next.parcel(RouteId(7))), (hop + 1, parcel));
            let bare = leg.with_trace(None).with_trace(Some(TraceId(5)));
            prop_assert_eq!(bare.parcel(RouteId(7)), Parcel { trace: Some(TraceId(5)), ..parcel });
            Metered::mark(&mut leg);
            prop_assert_eq!(leg.parcel(RouteId(7)), Parcel { ecn: ecn.marked(), ..parcel });
        }
    }

    #[test]
    fn packets_in_flight_are_small() {
        assert_eq!((size_of::<Leg>(), size_of::<Laden>(), size_of::<Parcel>()), (32, 56, 32));
    }
}
