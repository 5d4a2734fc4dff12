//! From the instants and hops of a block to the time of all blocks, by place and cause.

use super::flying::{Departure, Flying};
use super::jobs::EndId;
use super::world::World;
use crate::network::HopShare;
use trunkline_core::Cause;
use trunkline_measure::Step;

/// The places under which time on the path is booked.
#[derive(Debug, Default)]
pub(crate) struct LinePlaces {
    /// Of each link of the network, by its [`LinkId`](crate::LinkId).
    pub links: Vec<u32>,
    /// Of each lane over a medium, by [`LinkId::lane`](crate::LinkId::lane).
    pub lanes: Vec<u32>,
}

impl LinePlaces {
    /// The steps of a packet on one link.
    pub fn steps(&self, share: &HopShare) -> [Step; 3] {
        let place = match share.link.lane() {
            None => self.links[share.link.0 as usize],
            Some(lane) => self.lanes[lane as usize],
        };
        [
            Step { place, cause: Cause::Queue, span: share.queue },
            Step { place, cause: Cause::Transmit, span: share.transmit },
            Step { place, cause: Cause::Propagate, span: share.propagate },
        ]
    }
}

impl World<'_> {
    /// End `id` accepts a block now: its time goes into its traffic's sums.
    pub fn book(&mut self, id: EndId, flying: Box<Flying>) {
        let now = self.net.now();
        let sender = id.peer();
        let (from, sending) = (self.places_of(sender), self.sending_place(sender));
        let (at, receiving) = (self.places_of(id), self.receiving_place(id));
        let end = &self.ends[sender.index()];
        // What TCP may send it may still pace.
        let (held, cause) = match end.protocol.is_tcp() {
            true => (from.paced, Cause::Window),
            false => (sending, Cause::Host),
        };
        let Departure { since, first, ready, left } = flying.departure;
        let mut booking = self.traffic[end.traffic].blocks.book(since);
        booking.mark(first, held, cause);
        booking.mark(ready, from.window, Cause::Recover);
        booking.mark(left, sending, Cause::Host);
        if let Some(trace) = flying.trace {
            for share in self.net.hops(trace) {
                self.lines.steps(&share).into_iter().for_each(|step| booking.add(step));
            }
        }
        booking.mark(flying.heard, receiving, Cause::Host);
        booking.mark(now, at.window, Cause::Recover);
        self.spare.give_back(&mut self.net, Some(flying));
    }
}
