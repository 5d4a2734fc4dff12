//! What an end knows of its flow.

use crate::plan::{EndPlaces, Places};
use crate::shared::{Flying, Shared, Way};
use std::sync::Arc;
use trunkline_capsule::Record;
use trunkline_core::{Cause, Time};
use trunkline_measure::Trail;

/// Which end it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// The one that starts.
    Source,
    /// Its peer.
    Destination,
}

/// What an end knows of its flow.
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
