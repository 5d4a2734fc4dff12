//! The path's record of a packet, written into it on its way.

use crate::bytes::{put, u16_at, u64_at};
use crate::header::{ECN, is_capsule};
use trunkline_core::{Span, Time};

/// Hops that a capsule has room for; of more, the last place holds the sum of the rest.
pub const HOPS: usize = 8;
/// The link of a place that holds the sum of several hops.
pub const MERGED: u16 = u16::MAX;

const ARRIVAL: usize = 44;
const LATENESS: usize = 52;
const COUNT: usize = 60;
const FIRST: usize = 64;
/// Bytes of a hop: link, queue, transmit, propagate.
const HOP: usize = 2 + 3 * 8;
/// The end of the ledger.
pub(crate) const END: usize = FIRST + HOPS * HOP;
/// ECN code point "congestion experienced" (RFC 3168, section 5).
const CONGESTED: u8 = 3;

/// The waiting times of a packet at one link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Hop {
    /// The link's number, the emulator's own; [`MERGED`] for several.
    pub link: u16,
    /// In its queue.
    pub queue: Span,
    /// For its bits to go onto the line.
    pub transmit: Span,
    /// For the distance.
    pub propagate: Span,
}

impl Hop {
    /// All three.
    pub fn total(&self) -> Span {
        self.queue + self.transmit + self.propagate
    }

    fn read(bytes: &[u8]) -> Hop {
        let span = |at| Span::from_nanos(u64_at(bytes, at));
        Hop { link: u16_at(bytes, 0), queue: span(2), transmit: span(10), propagate: span(18) }
    }

    fn write(&self, bytes: &mut [u8]) {
        put(bytes, 0, &self.link.to_be_bytes());
        for (at, span) in [(2, self.queue), (10, self.transmit), (18, self.propagate)] {
            put(bytes, at, &span.as_nanos().to_be_bytes());
        }
    }

    /// Both as one; sums saturate.
    fn merged(&self, other: &Hop) -> Hop {
        Hop {
            link: if self.link == other.link { self.link } else { MERGED },
            queue: self.queue + other.queue,
            transmit: self.transmit + other.transmit,
            propagate: self.propagate + other.propagate,
        }
    }
}

/// The ledger of a capsule, read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Record {
    /// When it came to the emulator; `None` if none has touched it.
    pub arrival: Option<Time>,
    /// The time beyond its due time at which the emulator sent it.
    pub lateness: Span,
    /// Hops crossed; more than [`HOPS`] if some were merged.
    pub crossed: u16,
    hops: [Hop; HOPS],
}

impl Record {
    /// The ledger of a payload with a whole header.
    pub(crate) fn read(payload: &[u8]) -> Record {
        let arrival = u64_at(payload, ARRIVAL);
        let mut hops = [Hop::default(); HOPS];
        let crossed = u16_at(payload, COUNT);
        let kept = usize::from(crossed).min(HOPS);
        for (hop, bytes) in hops.iter_mut().zip(payload[FIRST..END].chunks_exact(HOP)).take(kept) {
            *hop = Hop::read(bytes);
        }
        Record {
            arrival: (arrival != 0).then(|| Time::from_nanos(arrival)),
            lateness: Span::from_nanos(u64_at(payload, LATENESS)),
            crossed,
            hops,
        }
    }

    /// The hops in the order in which they were crossed.
    pub fn hops(&self) -> &[Hop] {
        &self.hops[..usize::from(self.crossed).min(HOPS)]
    }

    /// The time that the hops account for.
    pub fn path(&self) -> Span {
        self.hops().iter().map(Hop::total).sum()
    }
}

/// The ledger of a capsule, to be written in place by the emulator.
#[derive(Debug)]
pub struct Ledger<'a>(&'a mut [u8]);

impl<'a> Ledger<'a> {
    /// The ledger of the capsule in a UDP payload, if it is one.
    pub fn of(payload: &'a mut [u8]) -> Option<Ledger<'a>> {
        is_capsule(payload).then_some(Ledger(payload))
    }

    /// Notes when it came to the emulator; what was in the ledger before is cleared.
    pub fn arrive(&mut self, at: Time) {
        self.0[ARRIVAL..END].fill(0);
        put(self.0, ARRIVAL, &at.as_nanos().to_be_bytes());
    }

    /// Adds a hop that it has crossed.
    pub fn add_hop(&mut self, hop: &Hop) {
        let crossed = u16_at(self.0, COUNT);
        put(self.0, COUNT, &crossed.saturating_add(1).to_be_bytes());
        let place = usize::from(crossed).min(HOPS - 1);
        let bytes = &mut self.0[FIRST + place * HOP..][..HOP];
        match usize::from(crossed) < HOPS {
            true => hop.write(bytes),
            false => Hop::read(bytes).merged(hop).write(bytes),
        }
    }

    /// Notes how much later than due the emulator sends it.
    pub fn set_lateness(&mut self, lateness: Span) {
        put(self.0, LATENESS, &lateness.as_nanos().to_be_bytes());
    }

    /// Marks congestion if the packet's sender said that it understands that (ECT, RFC 3168 section 5).
    /// Returns whether the packet is now marked.
    pub fn mark(&mut self) -> bool {
        if self.0[ECN] != 0 {
            self.0[ECN] = CONGESTED;
        }
        self.0[ECN] == CONGESTED
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Capsule, HEADER, Header};
    use proptest::prelude::*;

    fn hops() -> impl Strategy<Value = Vec<Hop>> {
        let span = || (0u64..1 << 40).prop_map(Span::from_nanos);
        let hop = (0..MERGED, span(), span(), span());
        let hop = hop.prop_map(|(link, queue, transmit, propagate)| Hop {
            link,
            queue,
            transmit,
            propagate,
        });
        prop::collection::vec(hop, 0..20)
    }

    fn payload() -> Vec<u8> {
        let mut payload = vec![7; HEADER + 3];
        Header { ecn: 2, ..Header::default() }.write(&mut payload);
        payload
    }

    proptest! {
        #[test]
        fn hops_are_kept_and_no_time_is_lost(hops in hops(), at in 1u64.., late: u64) {
            let mut payload = payload();
            let mut ledger = Ledger::of(&mut payload).unwrap();
            ledger.arrive(Time::from_nanos(at));
            hops.iter().for_each(|hop| ledger.add_hop(hop));
            ledger.set_lateness(Span::from_nanos(late));
            let view = Capsule::parse(&payload).unwrap();
            let record = view.record;
            prop_assert_eq!(record.arrival, Some(Time::from_nanos(at)));
            prop_assert_eq!(record.lateness, Span::from_nanos(late));
            prop_assert_eq!(usize::from(record.crossed), hops.len());
            let whole = hops.len().min(if hops.len() > HOPS { HOPS - 1 } else { HOPS });
            prop_assert_eq!(&record.hops()[..whole], &hops[..whole]);
            prop_assert_eq!(record.path(), hops.iter().map(Hop::total).sum::<Span>());
            prop_assert_eq!(view.body, [7; 3]);
        }
    }

    #[test]
    fn an_arrival_clears_what_was_there() {
        let mut payload = payload();
        let mut ledger = Ledger::of(&mut payload).unwrap();
        let hop = Hop { link: 3, queue: Span::from_nanos(1), ..Hop::default() };
        ledger.add_hop(&hop);
        ledger.set_lateness(Span::from_nanos(4));
        ledger.arrive(Time::from_nanos(9));
        let record = Capsule::parse(&payload).unwrap().record;
        let clean = Record { arrival: Some(Time::from_nanos(9)), ..Record::default() };
        assert_eq!(record, clean);
    }

    #[test]
    fn only_what_understands_ecn_is_marked() {
        let mut payload = payload();
        assert!(Ledger::of(&mut payload).unwrap().mark());
        assert_eq!(Header::read(&payload).unwrap().ecn, CONGESTED);
        Header::default().write(&mut payload);
        assert!(!Ledger::of(&mut payload).unwrap().mark());
        assert_eq!(Header::read(&payload).unwrap().ecn, 0);
    }
}
