//! Datagrams between ideal hosts, on which nothing takes time and nothing is limited.
//!
//! There the ten steps of a datagram at its two hosts happen at the instant of the first, each with nothing to wait
//! for, and leave nothing behind but what the path has cost. So they are done as two, and what a datagram brings with
//! it is the instant at which it left. Everything else goes the long way, which comes to the same.

use super::end::Doing;
use super::flying::{Departure, Flying};
use super::jobs::{EndId, Job};
use super::protocol::{Outgoing, ProtocolEnd, ProtocolKind};
use super::segments::Posted;
use super::serial::Done;
use super::world::World;
use crate::network::Parcel;
use trunkline_core::Time;
use trunkline_measure::{Step, Trail};
use trunkline_workload::Outcome;

impl World<'_> {
    /// Whether an end's write becomes a datagram, and leaves, with no time taken and nothing before it. At the origin of
    /// time a processor cannot tell whether earlier work ends at this instant.
    pub fn posts(&self, id: EndId) -> bool {
        let end = &self.ends[id.index()];
        end.described.ideal
            && matches!(end.protocol, ProtocolEnd::Datagrams(_))
            && id.is_sender()
            && self.soon.is_empty()
            && self.net.now() > Time::ZERO
            && end.has_sent_all()
    }

    /// A write of such an end, which begins and ends a message. It returns before the datagram leaves.
    pub fn post(&mut self, id: EndId, bytes: u32) {
        let left = self.net.now();
        let end = &mut self.ends[id.index()];
        let ProtocolEnd::Datagrams(datagrams) = &mut end.protocol else { return };
        let size = bytes + datagrams.pass();
        end.send_queue.pass(bytes);
        end.in_hand += 1;
        end.doing = Doing::Writing;
        let posted = Posted { left, stamp: end.app.stamp() };
        self.step(id, Outcome::Written);
        self.then(Done::Now, id, Job::Sent(Outgoing::Posted(size, posted)));
    }

    /// Lets the application of an ideal host read a datagram that has just come, if it waits for one and nothing else has
    /// come before. Returns whether it did.
    pub fn read_at_once(&mut self, id: EndId, parcel: &Parcel) -> bool {
        let end = &self.ends[id.index()];
        let place = parcel.tag as u32;
        let waits = end.described.ideal
            && end.hears == ProtocolKind::Datagrams
            && end.doing == Doing::Reading
            && !id.is_sender()
            && matches!(end.protocol, ProtocolEnd::Datagrams(_))
            && end.has_read_all();
        let (true, Some(trace)) = (waits, parcel.trace) else { return false };
        let Some(Some(Posted { left, stamp })) = self.segments.posted(place).copied() else {
            return false;
        };
        let now = self.net.now();
        let end = &mut self.ends[id.index()];
        end.trail.restart(left);
        for share in self.net.hops(trace) {
            for Step { place, cause, span } in self.lines.steps(&share) {
                end.trail.add(span, place, cause);
            }
        }
        // The hops of another packet do not make up its time.
        if end.trail.until() != now || now == Time::ZERO {
            return false;
        }
        self.segments.posted(place).map(Option::take);
        self.segments.take(place);
        let traffic = &mut self.traffic[end.traffic];
        let mut booking = traffic.blocks.book(left);
        end.trail.steps().iter().for_each(|step| booking.add(*step));
        traffic.deliver(now, end.flow, id, parcel.size);
        stamp.into_iter().for_each(|stamp| end.app.stamped(stamp));
        self.net.release(trace);
        self.start_due();
        self.step(id, Outcome::Read { bytes: parcel.size, end: true });
        self.pump(id);
        self.drained(id.peer());
        true
    }

    /// The records that such a datagram would have on the long way.
    pub fn records_of_posted(&mut self, Posted { left, stamp }: Posted) -> Box<Flying> {
        let departure = Departure { since: left, first: left, ready: left, left };
        let message = Box::new((Trail::new(left), stamp));
        self.spare.boxed(Flying::new(departure, Some(message)))
    }
}
