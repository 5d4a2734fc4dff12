//! From a system write to requests of the interface, and the write's return.

use super::end::{Doing, End};
use super::endings::Ending;
use super::flying::Carried;
use super::jobs::{EndId, Job};
use super::protocol::ProtocolEnd;
use super::world::World;
use trunkline_core::{Cause, Time};
use trunkline_host::Write;
use trunkline_scenario::Processor;
use trunkline_workload::Outcome;

impl World<'_> {
    /// The processor has copied a system write: it becomes requests.
    pub fn wrote(&mut self, id: EndId, bytes: u32, ends: bool) {
        let now = self.net.now();
        let place = self.places_of(id).processor;
        let split = &self.host_of(id).interface.split;
        let end = &mut self.ends[id.index()];
        end.trail.mark(now, place, Cause::Host);
        // TCP cannot carry nothing.
        let empty = bytes == 0 && end.protocol.is_tcp();
        let rounds = end.protocol.is_connected().then_some(bytes);
        let write = Write { bytes: bytes.max(u32::from(empty)), end: ends, empty, rounds };
        let brought = &mut self.brought;
        let (trail, stamp) = (&end.trail, end.app.stamp());
        end.send_queue.write(split, write, || match brought.pop() {
            None => Box::new((trail.clone(), stamp)),
            Some(mut carried) => {
                carried.0.copy_from(trail);
                carried.1 = stamp;
                carried
            }
        });
        end.outward.waiting_since = end.clock.spent_by(now);
        end.outward.untaken = bytes;
        if end.doing != Doing::Ended {
            end.doing = Doing::Writing;
        }
        self.pump(id);
    }

    /// The processor starts to hand the next request to the interface, if that takes one.
    pub fn start_request(&mut self, id: EndId) {
        let now = self.net.now();
        let place = self.places_of(id).requests;
        let host = self.host_of(id);
        let end = &mut self.ends[id.index()];
        if end.outward.starting.is_some() {
            return;
        }
        let limit = host.interface.requests.filter(|_| !end.protocol.gathers());
        let Some(mut request) = end.send_queue.next(limit, 0) else { return };
        if let Some(carried) = &mut request.carried {
            carried.0.mark(now, place, Cause::Window);
        }
        let cost = host.processor.request.of(u64::from(request.bytes));
        end.outward.starting = Some(request);
        self.on_processor(id, cost, Job::Requested);
    }

    /// The interface has a request.
    pub fn requested(&mut self, id: EndId) {
        let now = self.net.now();
        let place = self.places_of(id).processor;
        let limited = self.host_of(id).interface.requests.is_some();
        let end = &mut self.ends[id.index()];
        let limited = limited && !end.protocol.gathers();
        let Some(mut request) = end.outward.starting.take() else { return };
        end.send_queue.forget(end.protocol.answered());
        let units = end.protocol.units_of(request.bytes, request.end);
        let data = end.send_queue.hand_over(request.bytes, units, limited);
        if let Some(carried) = &mut request.carried {
            carried.0.mark(now, place, Cause::Host);
        }
        let kept = end.protocol.offer(now, data, request.end, request.carried);
        if let Some(carried) = kept {
            match end.protocol.is_tcp() {
                true => end.hand_over(now, data.end(), request.empty, carried),
                false => end.send_queue.keep(carried),
            }
        }
        self.pump(id);
    }

    /// Tells the processor when all of a request has been answered for: of one at a time, each with an
    /// interrupt.
    pub fn release_request(&mut self, id: EndId) {
        let cost = self.host_of(id).processor.interrupt.of(0);
        let end = &mut self.ends[id.index()];
        if end.releasing || !end.send_queue.is_done(end.protocol.answered()) {
            return;
        }
        end.releasing = true;
        self.interrupt(id, cost, Job::Released);
    }

    /// The processor knows that a request is done.
    pub fn released(&mut self, id: EndId) {
        let end = &mut self.ends[id.index()];
        end.releasing = false;
        end.send_queue.release();
        self.pump(id);
    }

    /// Lets a system write return when little enough waits.
    pub fn return_write(&mut self, id: EndId) {
        let waits = self.ends[id.index()].doing == Doing::Writing && !self.takes_at_once(id);
        let end = &mut self.ends[id.index()];
        if waits && end.send_queue.has_room() && end.has_taken() {
            self.book_waiting(id);
            self.step(id, Outcome::Written);
        }
    }
}

impl World<'_> {
    /// Whether a request is just being taken that nothing holds up: on a host that is not described, as on a real end's, what
    /// a write hands over is with the protocol before it returns. The processor of a described one takes it meanwhile.
    fn takes_at_once(&self, id: EndId) -> bool {
        let (host, end) = (self.host_of(id), &self.ends[id.index()]);
        end.outward.starting.is_some()
            && host.interface.requests.is_none()
            && *host.processor == Processor::default()
    }
}

impl End<'_> {
    /// Lets TCP's send buffer take what it has room for of the last write; whether it has all of it by now. A writer that finds
    /// it full sleeps, in Linux until a third is free (`sk_stream_write_space`).
    fn has_taken(&mut self) -> bool {
        let ProtocolEnd::Tcp(tcp) = &mut self.protocol else { return self.protocol.has_room() };
        let outward = &mut self.outward;
        if outward.sleeps {
            tcp.provide_room();
        }
        let most = tcp.send_buffer();
        // The end of the write may not have come to TCP yet.
        let untaken = u64::from(outward.untaken).saturating_sub(self.send_queue.behind());
        let held = (tcp.unsent() + tcp.outstanding()).saturating_sub(untaken);
        let wakes = if tcp.settings().buffer_grows { most / 3 * 2 } else { most };
        outward.sleeps &= held > wakes;
        if !outward.sleeps {
            let room = u32::try_from(most.saturating_sub(held)).unwrap_or(u32::MAX);
            outward.untaken = outward.untaken.saturating_sub(room);
            outward.sleeps = outward.untaken > 0;
        }
        !outward.sleeps
    }

    /// Place in the stream up to which everything has been answered for.
    pub fn answered(&self) -> u64 {
        self.send_queue.offered() - self.protocol.unsent() - self.protocol.unanswered()
    }

    /// A message has been handed to TCP, with its last octet before `place`.
    fn hand_over(&mut self, now: Time, place: u64, empty: bool, carried: Carried) {
        let since = self.clock.spent_by(now);
        self.outward.endings.push(Ending {
            place,
            empty,
            carried,
            since,
            sent: false,
            left: false,
        });
    }
}
