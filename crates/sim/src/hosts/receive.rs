//! From packets off the path to a system read.

use super::end::{Arrival, Doing};
use super::jobs::{EndId, Flying, Job};
use super::speaker::{Delivered, Speaker};
use super::tag;
use super::world::World;
use crate::network::Parcel;
use trunkline_core::{Cause, Span};
use trunkline_measure::Step;
use trunkline_scenario::{Echo, ProtocolPlace};
use trunkline_transport::Extent;
use trunkline_transport::urp::Part;
use trunkline_workload::Outcome;

impl World<'_> {
    /// A packet has come to the end of its way: the interface takes it in, if it has room.
    pub fn arrived(&mut self, parcel: Parcel) {
        let id = self.arrives_at[parcel.route.0 as usize];
        let flying = self.landed(id, &parcel);
        let host = self.ends[id.index()].host;
        let interface = &self.scenario.hosts[host].interface;
        let held = self.hosts[host].memory + u64::from(parcel.size);
        if interface.memory.is_some_and(|memory| held > memory.bytes()) {
            self.hosts[host].overruns += 1;
            let traffic = self.ends[id.index()].traffic;
            self.traffic[traffic].overruns += 1;
            return;
        }
        self.hosts[host].memory = held;
        let cost = self.board_cost(id, &parcel);
        let (tag, envelopes) = (parcel.tag, parcel.size);
        self.on_board(id, true, cost, Job::TakenIn { tag, envelopes, trail: flying });
    }

    /// The records of the block that a packet completes, with its hops.
    fn landed(&mut self, id: EndId, parcel: &Parcel) -> Option<Box<Flying>> {
        let trace = parcel.trace?;
        let mut flying = self.ends[id.index()].flying.remove(&trace)?;
        for share in self.net.hops(trace) {
            let place = self.link_places[share.link.0 as usize];
            flying.each(|trail| {
                trail.add(share.queue, place, Cause::Queue);
                trail.add(share.transmit, place, Cause::Transmit);
                trail.add(share.propagate, place, Cause::Propagate);
            });
        }
        self.net.release(trace);
        Some(flying)
    }

    /// What the board spends on a packet that comes in: for each envelope, and for each block with the
    /// packet that ends it.
    fn board_cost(&self, id: EndId, parcel: &Parcel) -> Span {
        let interface = &self.host_of(id).interface;
        let per_envelope = interface.receive_block.per_byte.scaled(u64::from(parcel.size), 1);
        if !self.is_urp(id) {
            return per_envelope + interface.receive_block.fixed;
        }
        let part = tag::unpack(parcel.tag, 0);
        match (part.control, part.trailer) {
            (Some(_), _) => interface.control,
            (None, Some(_)) => per_envelope + interface.receive_block.fixed,
            (None, None) => per_envelope,
        }
    }

    fn is_urp(&self, id: EndId) -> bool {
        matches!(self.ends[id.index()].speaker, Speaker::Urp { .. })
    }

    /// The board has a packet: the protocol gets it there, or from the host's processor when the block
    /// is complete.
    pub fn taken_in(&mut self, id: EndId, tag: u64, envelopes: u32, flying: Option<Box<Flying>>) {
        self.ends[id.index()].held += u64::from(envelopes);
        if !self.is_urp(id) {
            return self.datagram(id, tag as u32, flying);
        }
        let part = tag::unpack(tag, self.ends[id.index()].accepted);
        if self.host_of(id).interface.protocol == ProtocolPlace::Board {
            return self.understand(id, part, flying);
        }
        let (ends, is_control) = (part.trailer.is_some(), part.control.is_some());
        let end = &mut self.ends[id.index()];
        end.raw.push_back((part, flying));
        end.raw_envelopes += envelopes;
        if ends || is_control {
            self.digest(id, is_control);
        }
    }

    /// The host's processor works through what has come in up to a trailer or control.
    fn digest(&mut self, id: EndId, is_control: bool) {
        let end = &mut self.ends[id.index()];
        let packets = end.raw.len() as u32 - end.claimed;
        end.claimed += packets;
        let envelopes = u64::from(std::mem::take(&mut end.raw_envelopes));
        let host = self.host_of(id);
        let moving = host.interface.programmed.unwrap_or(Span::ZERO).scaled(envelopes, 1);
        let work = match is_control {
            true => host.processor.control,
            false => host.processor.receive_block.of(envelopes),
        };
        self.on_processor(id, work + moving, Job::Digested { packets });
    }

    /// The host's processor has done so.
    pub fn digested(&mut self, id: EndId, packets: u32) {
        self.ends[id.index()].claimed -= packets;
        for _ in 0..packets {
            let Some((part, flying)) = self.ends[id.index()].raw.pop_front() else { return };
            self.understand(id, part, flying);
        }
    }

    /// The protocol gets a packet.
    fn understand(&mut self, id: EndId, part: Part<Extent>, flying: Option<Box<Flying>>) {
        let now = self.net.now();
        let decides = part.trailer.is_some() || part.control.is_some();
        let end = &mut self.ends[id.index()];
        end.completing = flying.or(end.completing.take());
        end.speaker.receive(now, part);
        if decides {
            self.pump(id);
            // What was not accepted has been thrown away.
            self.ends[id.index()].completing = None;
            self.free(id);
        }
    }

    /// Takes what the protocol has accepted towards the host.
    pub fn take_accepted(&mut self, id: EndId) {
        while let Some(delivered) = self.ends[id.index()].speaker.take() {
            self.ends[id.index()].accepted += u64::from(delivered.bytes);
            self.accepted(id, delivered);
        }
    }

    /// The interface has accepted data: they wait for a receive buffer of the host.
    fn accepted(&mut self, id: EndId, delivered: Delivered) {
        let now = self.net.now();
        let place = self.receiving_place(id);
        let end = &mut self.ends[id.index()];
        let (traffic, flying) = (end.traffic, end.completing.take());
        let trail = flying.and_then(|mut flying| {
            flying.mark(now, place, Cause::Host);
            self.traffic[traffic].book_block(flying.block.steps());
            flying.message.map(|trail| Box::new((trail, flying.stamp)))
        });
        let held = std::mem::take(&mut end.held);
        let Delivered { bytes, end: ends } = delivered;
        end.waiting.push_back(Arrival { bytes, end: ends, held, trail });
        self.fill_buffer(id);
    }

    /// Fills the receive buffer that the host has posted with what waits, and interrupts the host. It posts
    /// the next one when it has taken this.
    fn fill_buffer(&mut self, id: EndId) {
        let now = self.net.now();
        let host = self.host_of(id);
        let (room, echo, interrupt) =
            (host.interface.receive_buffer, host.interface.echo, host.processor.interrupt);
        let end = &mut self.ends[id.index()];
        if end.in_buffer > 0 || end.waiting.is_empty() {
            return;
        }
        let mut bytes = 0;
        let fits = |bytes: u32| room.is_none_or(|room| bytes <= room);
        while let Some(next) = end.waiting.get(end.in_buffer)
            && (end.in_buffer == 0 || fits(bytes + next.bytes))
        {
            bytes += next.bytes;
            end.in_buffer += 1;
        }
        if echo == Echo::Posted {
            end.speaker.consumed(now, bytes);
        }
        self.on_processor(id, interrupt.of(u64::from(bytes)), Job::Interrupted);
    }

    fn receiving_place(&self, id: EndId) -> u16 {
        let places = self.places_of(id);
        match self.host_of(id).interface.protocol {
            ProtocolPlace::Host => places.processor,
            ProtocolPlace::Board => places.board,
        }
    }

    /// A datagram needs no protocol.
    fn datagram(&mut self, id: EndId, bytes: u32, flying: Option<Box<Flying>>) {
        self.ends[id.index()].completing = flying;
        self.accepted(id, Delivered { bytes, end: true });
    }

    /// Gives the interface's memory back that held what was thrown away.
    fn free(&mut self, id: EndId) {
        let end = &mut self.ends[id.index()];
        let (host, held) = (end.host, std::mem::take(&mut end.held));
        self.hosts[host].memory -= held;
    }

    /// The host's processor has taken a receive buffer's data from the interface.
    pub fn interrupted(&mut self, id: EndId) {
        let now = self.net.now();
        let place = self.places_of(id).processor;
        let end = &mut self.ends[id.index()];
        let count = std::mem::take(&mut end.in_buffer);
        for mut arrival in end.waiting.drain(..count) {
            if let Some(carried) = &mut arrival.trail {
                carried.0.mark(now, place, Cause::Host);
            }
            self.hosts[end.host].memory -= arrival.held;
            end.inbox.push_back(arrival);
        }
        self.fill_buffer(id);
        if self.ends[id.index()].doing == Doing::Reading {
            self.start_read(id);
        }
        self.pump(id);
    }

    /// The application reads what is there, at most to the end of a message.
    pub fn start_read(&mut self, id: EndId) {
        let end = &mut self.ends[id.index()];
        let to_end = end.inbox.iter().position(|arrival| arrival.end);
        let count = to_end.map_or(end.inbox.len(), |index| index + 1);
        if count == 0 {
            end.doing = Doing::Reading;
            return;
        }
        end.doing = Doing::Busy;
        end.reading = count;
        let bytes: u64 = end.inbox.iter().take(count).map(|arrival| u64::from(arrival.bytes)).sum();
        let cost = self.host_of(id).processor.read.of(bytes) + self.disturbance(id);
        self.on_processor(id, cost, Job::ReadDone);
    }

    /// The read returns.
    pub fn read_done(&mut self, id: EndId) {
        let now = self.net.now();
        let place = self.places_of(id).processor;
        let echo = self.host_of(id).interface.echo;
        let end = &mut self.ends[id.index()];
        let count = std::mem::take(&mut end.reading);
        let (mut bytes, mut ends) = (0, false);
        for arrival in end.inbox.drain(..count) {
            bytes += arrival.bytes;
            ends |= arrival.end;
            if let Some(carried) = arrival.trail {
                let (trail, stamp) = *carried;
                end.trail = trail;
                stamp.into_iter().for_each(|stamp| end.app.stamped(stamp));
            }
        }
        end.trail.mark(now, place, Cause::Host);
        if echo == Echo::Consumption {
            end.speaker.consumed(now, bytes);
        }
        let (traffic, flow) = (end.traffic, end.flow_in_traffic);
        self.traffic[traffic].deliver(flow, id, bytes);
        self.start_due();
        self.step(id, Outcome::Read { bytes, end: ends });
        self.pump(id);
    }
}

impl super::world::Measured {
    /// Adds the time of one block.
    fn book_block(&mut self, steps: &[Step]) {
        self.block_count += 1;
        for step in steps {
            let sum = self.blocks.entry((step.place, step.cause as u8)).or_insert(Step {
                span: Span::ZERO,
                ..*step
            });
            sum.span += step.span;
        }
    }

    /// An application has read `bytes`; those at the peer's end count for the flow's progress.
    fn deliver(&mut self, flow: u32, id: EndId, bytes: u32) {
        self.delivered += u64::from(bytes);
        if id.index() % 2 == 1 {
            self.delivered_by[flow as usize] += u64::from(bytes);
        }
    }
}
