//! Datagrams between ideal hosts, on which nothing takes time and nothing is limited.
//!
//! There the ten steps of a datagram at its two hosts happen at the instant of the first, each with nothing to wait
//! for, and leave nothing behind but what the path has cost. So they are done as two, and what a datagram brings with
//! it is the instant at which it left. Everything else goes the long way, which comes to the same.

use super::end::Doing;
use super::flying::{Departure, Flying};
use super::jobs::{EndId, Job};
use super::protocol::{Outgoing, ProtocolEnd, ProtocolKind};
use super::segments::{Posted, Sent};
use super::serial::Done;
use super::world::World;
use crate::network::{Parcel, TraceId};
use trunkline_core::{Ecn, Time};
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
            && self.net.now() > Time::ZERO
            && end.has_sent_all()
    }

    /// A write of such an end, which begins and ends a message. It returns before the datagram leaves.
    pub fn post(&mut self, id: EndId, bytes: u32) {
        // An application takes its steps in events of its own, and its earlier jobs are done.
        debug_assert!(self.soon.is_empty(), "a job is to be done before this");
        let left = self.net.now();
        let end = &mut self.ends[id.index()];
        let ProtocolEnd::Datagrams(datagrams) = &mut end.protocol else { return };
        let size = bytes + datagrams.pass();
        end.send_queue.pass(bytes);
        end.in_hand += 1;
        end.doing = Doing::Writing;
        let posted = Posted { left, stamp: end.app.stamp() };
        self.step(id, Outcome::Written);
        match self.soon.is_empty() {
            true => self.leave(id, size, posted),
            false => self.when(Done::Now, id, Job::Sent(Outgoing::Posted(size, posted))),
        }
    }

    /// Such a datagram leaves the board.
    fn leave(&mut self, id: EndId, size: u32, posted: Posted) {
        self.ends[id.index()].in_hand -= 1;
        self.send_posted(id, size, posted);
    }

    /// Puts such a datagram onto the path.
    pub fn send_posted(&mut self, id: EndId, size: u32, posted: Posted) {
        let place = self.segments.put(Sent::Datagram(Some(posted)), None);
        self.inject_packet(id, (size, 0), Ecn::NotEct, u64::from(place), true);
    }

    /// Lets the application of an ideal host read a datagram that has just come, if it waits for one. Returns whether it
    /// did.
    pub fn read_at_once(&mut self, id: EndId, parcel: &Parcel) -> bool {
        let (end, now) = (&self.ends[id.index()], self.net.now());
        let place = parcel.tag as u32;
        let waits = end.described.ideal
            && end.hears == ProtocolKind::Datagrams
            && end.doing == Doing::Reading
            && !id.is_sender()
            && matches!(end.protocol, ProtocolEnd::Datagrams(_));
        let (true, Some(trace)) = (waits, parcel.trace) else { return false };
        let Some(Posted { left, stamp }) = self.segments.posted(place).and_then(Option::take)
        else {
            return false;
        };
        // What came before has been read in its own event.
        debug_assert!(end.has_read_all(), "something is to be read before this");
        self.segments.take(place);
        self.travel_at_once(left, trace);
        let bytes = self.bytes_of_datagram(id, parcel.size);
        let end = &mut self.ends[id.index()];
        let traffic = &mut self.traffic[end.traffic];
        let mut booking = traffic.blocks.book(left);
        self.at_once.steps().iter().for_each(|step| booking.add(*step));
        traffic.deliver(now, end.flow, id, bytes);
        stamp.into_iter().for_each(|stamp| end.app.stamped(stamp));
        self.net.release(trace);
        self.start_due();
        // The record of the read is the reader's as long as it measures.
        std::mem::swap(&mut self.ends[id.index()].trail, &mut self.at_once);
        self.step(id, Outcome::Read { bytes, end: true });
        std::mem::swap(&mut self.ends[id.index()].trail, &mut self.at_once);
        self.drained(id.peer());
        true
    }

    /// Makes the record of a datagram that has left at `left` and has come now. It is made in one place for all, which
    /// stays at hand.
    fn travel_at_once(&mut self, left: Time, trace: TraceId) {
        self.at_once.restart(left);
        for share in self.net.hops(trace) {
            for Step { place, cause, span } in self.lines.steps(&share) {
                self.at_once.add(span, place, cause);
            }
        }
        debug_assert_eq!(self.at_once.until(), self.net.now(), "these are hops of another packet");
    }

    /// Whether the protocol of an end gets a packet that comes now with no time taken and nothing before it, as it does on
    /// an ideal host.
    pub fn hears_at_once(&self, id: EndId) -> bool {
        let end = &self.ends[id.index()];
        end.described.ideal && !end.hears.is_urp() && self.net.now() > Time::ZERO
    }

    /// The records that such a datagram would have on the long way.
    pub fn records_of_posted(&mut self, Posted { left, stamp }: Posted) -> Box<Flying> {
        let departure = Departure { since: left, first: left, ready: left, left };
        let message = Box::new((Trail::new(left), stamp));
        self.spare.boxed(Flying::new(departure, Some(message)))
    }
}
