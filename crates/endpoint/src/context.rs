//! An end's knowledge of its flow.

use crate::plan::{EndPlaces, Places};
use crate::shared::{Flying, Shared, Way};
use std::sync::Arc;
use trunkline_capsule::Record;
use trunkline_core::{Cause, Time};
use trunkline_measure::Trail;

/// The end: source or destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// The one that starts.
    Source,
    /// Its peer.
    Destination,
}

/// An end's knowledge of its flow.
#[derive(Debug)]
pub(crate) struct Context {
    pub side: Side,
    pub shared: Arc<Shared>,
    pub places: Arc<Places>,
    pub own: EndPlaces,
    pub peer: EndPlaces,
}

impl Context {
    /// The direction in which it sends.
    pub fn outward(&self) -> &Way {
        &self.shared.ways[self.side as usize]
    }

    /// The direction from which it hears.
    pub fn inward(&self) -> &Way {
        &self.shared.ways[1 - self.side as usize]
    }

    /// The records of the packet `number` that has come with `record` and is read at `now`; what is left
    /// after its path is for this host to mark.
    pub fn landed(&self, number: u64, record: &Record, now: Time) -> Option<Flying> {
        let mut flying = self.inward().fetch(number)?;
        flying.each(|trail| self.travelled(trail, record, now));
        Some(flying)
    }

    /// Books what the path did, as far as there is time up to `now`.
    fn travelled(&self, trail: &mut Trail, record: &Record, now: Time) {
        let Some(arrival) = record.arrival else { return };
        trail.mark(arrival.min(now), self.peer.host, Cause::Host);
        for hop in record.hops() {
            let place = self.places.link(hop.link);
            trail.add_within(now, hop.queue, place, Cause::Queue);
            trail.add_within(now, hop.transmit, place, Cause::Transmit);
            trail.add_within(now, hop.propagate, place, Cause::Propagate);
        }
        trail.add_within(now, record.lateness, self.places.emulator, Cause::Emulator);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use trunkline_capsule::{Capsule, HEADER, Header, Hop, Ledger};
    use trunkline_core::Span;

    fn context() -> Context {
        let places = Places { links: vec![10, 11, 12], emulator: 20, path: 21 };
        let place = |host| EndPlaces { host, ..EndPlaces::default() };
        Context {
            side: Side::Destination,
            shared: Arc::new(Shared::new(trunkline_core::Span::ZERO)),
            places: Arc::new(places),
            own: place(1),
            peer: place(2),
        }
    }

    /// The record of a capsule that came to the emulator at `arrival` and crossed links 0, 1, 2 …
    fn record(arrival: u64, hops: &[[u64; 3]], late: u64) -> Record {
        let mut payload = vec![0; HEADER];
        Header::default().write(&mut payload);
        let mut ledger = Ledger::of(&mut payload).unwrap();
        ledger.arrive(Time::from_nanos(arrival));
        for (link, hop) in hops.iter().enumerate() {
            let [queue, transmit, propagate] = hop.map(Span::from_nanos);
            ledger.add_hop(&Hop { link: link as u16, queue, transmit, propagate });
        }
        ledger.set_lateness(Span::from_nanos(late));
        Capsule::parse(&payload).unwrap().record
    }

    #[test]
    fn each_links_share_is_booked_to_its_place() {
        let mut trail = Trail::new(Time::from_nanos(100));
        let record = record(110, &[[1, 20, 300], [0, 0, 50], [7, 0, 0], [4, 0, 0]], 9);
        context().travelled(&mut trail, &record, Time::from_nanos(1000));
        trail.mark(Time::from_nanos(1000), 1, Cause::Host);
        let booked = |place, cause| {
            let mut steps = trail.steps().iter();
            steps
                .find(|step| (step.place, step.cause) == (place, cause))
                .map(|it| it.span.as_nanos())
        };
        assert_eq!(booked(2, Cause::Host), Some(10));
        assert_eq!(
            [Cause::Queue, Cause::Transmit, Cause::Propagate].map(|it| booked(10, it)),
            [Some(1), Some(20), Some(300)]
        );
        assert_eq!([booked(11, Cause::Propagate), booked(12, Cause::Queue)], [Some(50), Some(7)]);
        // The fourth link has no place of its own.
        assert_eq!([booked(21, Cause::Queue), booked(20, Cause::Emulator)], [Some(4), Some(9)]);
        assert_eq!(booked(1, Cause::Host), Some(1000 - 100 - 10 - 320 - 1 - 50 - 7 - 4 - 9));
    }

    proptest! {
        #[test]
        fn whatever_a_capsule_says_no_time_is_made_or_lost(
            sent in 0u64..1000, arrival in 1u64..3000, late in 0u64..900, read in 0u64..3000,
            hops in prop::collection::vec(prop::array::uniform3(0u64..400), 0..12),
        ) {
            let (start, now) = (Time::from_nanos(sent), Time::from_nanos(sent + read));
            let mut trail = Trail::new(start);
            context().travelled(&mut trail, &record(arrival, &hops, late), now);
            prop_assert!(trail.until() <= now);
            trail.mark(now, 1, Cause::Host);
            let sum: Span = trail.steps().iter().map(|step| step.span).sum();
            prop_assert_eq!(sum, now - start);
        }
    }
}
