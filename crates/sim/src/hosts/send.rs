//! From the protocol to packets on the path.

use super::flying::{Carried, Departure, Flying};
use super::jobs::{EndId, Job};
use super::protocol::Outgoing;
use super::segments::Sent;
use super::serial::Done;
use super::tag;
use super::world::{World, times};
use crate::network::Parcel;
use trunkline_core::{Cause, Ecn, Span, Time};
use trunkline_host::Datagram;
use trunkline_measure::Trail;
use trunkline_scenario::ProtocolPlace;
use trunkline_transport::Extent;
use trunkline_transport::urp::{Block, Characters, Control, Part, Segment};

impl World<'_> {
    /// Moves everything of an end that can move.
    pub fn pump(&mut self, id: EndId) {
        if self.ends[id.index()].is_silent() {
            return self.settle(id);
        }
        self.start_request(id);
        // What the protocol answers to what has come goes before what the host does about it.
        self.transmit(id);
        if self.take_accepted(id) {
            self.transmit(id);
        }
        self.release_request(id);
        self.set_deadline(id);
        self.settle(id);
        self.return_write(id);
    }

    /// Lets the protocol say what it has to say.
    fn transmit(&mut self, id: EndId) {
        let now = self.net.now();
        if self.ends[id.index()].cut_off {
            return;
        }
        while let Some(out) = self.ends[id.index()].protocol.transmit(now, &mut self.segments) {
            let end = &mut self.ends[id.index()];
            end.in_hand += 1;
            if let Some(data) = out.first_time() {
                end.outward.blocks_sent += 1;
                let answered = end.answered();
                end.send_queue.first_sent(data, answered);
            }
            if let Outgoing::Segment(segment) = &out {
                self.book_messages(id, segment.data);
            }
            self.prepare(id, out);
        }
    }

    /// The protocol's work on a segment: by the processor, then the board, or by the board alone.
    fn prepare(&mut self, id: EndId, out: Outgoing) {
        let host = self.host_of(id);
        let (processor, interface) = (&host.processor, &host.interface);
        if interface.protocol == ProtocolPlace::Board {
            let done = self.sent_at(id, &out);
            return self.when(done, id, Job::Sent(out));
        }
        let envelopes = out.envelopes();
        let is_control = out.is_control();
        let work = match is_control {
            true => processor.control,
            false => processor.send_block.of(envelopes),
        };
        let moving = times(interface.programmed.unwrap_or(Span::ZERO), envelopes);
        // Without this two connections of one kind would run in step for ever.
        let work = work + if out.is_of_host() { self.disturbance(id) } else { Span::ZERO };
        let job = Job::Prepared(out);
        match is_control {
            true => self.interrupt(id, work + moving, job),
            false => self.on_processor(id, work + moving, job),
        }
    }

    /// A segment goes to the board.
    pub fn prepared(&mut self, id: EndId, out: Outgoing) {
        let done = self.sent_at(id, &out);
        self.then(done, id, Job::Sent(out));
    }

    /// When the board will have sent a segment that it gets now.
    fn sent_at(&mut self, id: EndId, out: &Outgoing) -> Done {
        let interface = &self.host_of(id).interface;
        let cost = match out.is_control() {
            true => interface.control,
            false => interface.send_block.of(out.envelopes()),
        };
        self.sent_off(id, cost)
    }

    /// A segment leaves the board.
    pub fn sent(&mut self, id: EndId, out: Outgoing) {
        self.ends[id.index()].in_hand -= 1;
        if let Some(deaf) = self.host_of(id).interface.deaf {
            let host = self.ends[id.index()].host;
            self.hosts[host].deaf_until = self.net.now() + deaf;
        }
        match out {
            Outgoing::Block(block) => self.send_block(id, block),
            Outgoing::Characters(characters) => self.send_characters(id, characters),
            Outgoing::Control(control) => self.send_control(id, control),
            Outgoing::Datagram(datagram) => self.send_datagram(id, datagram),
            Outgoing::Posted(size, posted) => self.send_posted(id, size, posted),
            Outgoing::Segment(segment) => self.send_segment(id, segment),
            Outgoing::Frame(out) => self.send_frame(id, out),
        }
        self.settle(id);
        self.return_write(id);
    }

    fn send_block(&mut self, id: EndId, block: Block<Extent>) {
        let sent = self.ends[id.index()].outward.blocks_sent;
        let number = block.ends_message().then(|| block.number_among(sent).wrapping_add(1));
        let flying = self.unit_records(id, number, (block.eligible, block.first_sent));
        let seq = block.seq;
        let end = &mut self.ends[id.index()];
        let transmission = end.in_flight.get_or_insert_default().block(seq, flying);
        let packet = end.packet;
        for part in Segment::Block(block).parts(packet) {
            let tag = tag::pack(&part);
            match part.trailer {
                Some(_) => self.inject(id, &part, tag::with_transmission(tag, transmission), true),
                None => self.inject(id, &part, tag, false),
            }
        }
    }

    /// The last packet that brings data of a request, or a message's end, has its records.
    fn send_characters(&mut self, id: EndId, characters: Characters<Extent>) {
        let Characters { eligible, request, .. } = characters;
        let number = request.map_or(0, |request| {
            let ending = characters.ends_message().then(|| request.wrapping_add(1));
            let flying = self.unit_records(id, ending, (eligible, None));
            let in_flight = &mut self.ends[id.index()].in_flight;
            in_flight.get_or_insert_default().characters(flying)
        });
        let packet = self.ends[id.index()].packet;
        let parts: Vec<_> = Segment::Characters(characters).parts(packet).collect();
        let last = parts.iter().rposition(Part::brings_data);
        for (index, part) in parts.iter().enumerate() {
            let number = if Some(index) == last { number } else { 0 };
            self.inject(id, part, tag::with_number(tag::pack(part), number), number > 0);
        }
    }

    fn send_control(&mut self, id: EndId, control: Control) {
        let part = Part::control(control);
        self.inject(id, &part, tag::pack(&part), false);
    }

    fn send_datagram(&mut self, id: EndId, datagram: Datagram<Carried>) {
        let now = self.net.now();
        let place = self.sending_place(id);
        let mut carried = datagram.carried;
        carried.iter_mut().for_each(|it| it.0.mark(now, place, Cause::Host));
        let since = datagram.ready;
        let departure = Departure { since, first: since, ready: since, left: now };
        let flying = self.spare.boxed(Flying::new(departure, carried));
        let place = self.segments.put(Sent::Datagram(None), Some(flying));
        let size = datagram.bytes + datagram.header;
        self.inject_packet(id, (size, 0), Ecn::NotEct, u64::from(place), true);
    }

    /// Puts one packet onto the path, with a record of its hops if that is wanted.
    fn inject(&mut self, id: EndId, part: &Part<Extent>, tag: u64, traced: bool) {
        let sizes = (part.envelopes(), part.controls() as u16);
        self.inject_packet(id, sizes, Ecn::NotEct, tag, traced);
    }

    /// Puts a packet of so many envelopes, with controls among them, onto the path.
    pub fn inject_packet(
        &mut self,
        id: EndId,
        (size, controls): (u32, u16),
        ecn: Ecn,
        tag: u64,
        traced: bool,
    ) {
        let route = self.ends[id.index()].route;
        let trace = traced.then(|| self.net.trace());
        self.net.inject(Parcel { route, size, controls, ecn, tag, trace });
    }

    /// The records of a block or unit that leaves now, which could be sent since `eligible` and may have been sent
    /// before; a message ends in block `number` of its sender.
    pub fn unit_records(
        &mut self,
        id: EndId,
        number: Option<u64>,
        (eligible, first_sent): (Time, Option<Time>),
    ) -> Box<Flying> {
        let now = self.net.now();
        let (sending, window) = (self.sending_place(id), self.places_of(id).window);
        let send_queue = &mut self.ends[id.index()].send_queue;
        let message = number.and_then(|number| send_queue.ending_with(number)).map(|carried| {
            leave(&mut carried.0, now, (eligible, first_sent), [sending, window]);
            Box::new((carried.0.clone(), None))
        });
        // Sent again it has waited since then for its loss to be noticed.
        let (first, ready) = first_sent.map_or((eligible, eligible), |first| (first, now));
        let departure = Departure { since: eligible, first, ready, left: now };
        self.spare.boxed(Flying::new(departure, message))
    }

    /// The place under which the time between the window's opening and the packets' leaving is booked.
    pub fn sending_place(&self, id: EndId) -> u32 {
        let places = self.places_of(id);
        match self.host_of(id).interface.protocol {
            ProtocolPlace::Host => places.processor,
            ProtocolPlace::Board => places.board,
        }
    }
}

/// Books what a message waited for until its last block leaves now.
fn leave(
    trail: &mut Trail,
    now: Time,
    (eligible, first_sent): (Time, Option<Time>),
    [sending, window]: [u32; 2],
) {
    if first_sent.is_some() {
        // It left before: since then its loss has been waited for.
        return trail.mark(now, window, Cause::Recover);
    }
    trail.mark(eligible, window, Cause::Window);
    trail.mark(now, sending, Cause::Host);
}
