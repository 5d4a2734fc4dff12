//! Protocols of the list between hosts: their frames' records, and what comes of their units.
//!
//! They stand on the host's processor, as TCP does: a frame with data costs it what a block does and an answer what
//! a control does, and what they have accepted lies in the host's socket buffer.

use super::early::Early;
use super::end::Arrival;
use super::flying::Flying;
use super::jobs::EndId;
use super::protocol::Delivered;
use super::segments::Sent;
use super::world::World;
use trunkline_core::{Cause, Ecn, Tight};
use trunkline_transport::protocol::{Frame, Outgoing};

impl World<'_> {
    /// Puts a frame onto the path.
    pub fn send_frame(&mut self, id: EndId, out: Outgoing) {
        let Outgoing { frame, unit } = out;
        let flying = unit.map(|unit| {
            let ending = unit.end.then_some(unit.number + 1);
            self.unit_records(id, ending, (unit.eligible, unit.first_sent))
        });
        let traced = flying.is_some();
        let size = frame.size();
        let sent = Sent::Frame(Box::new((frame, unit.map(|unit| unit.number))));
        let place = self.segments.put(sent, flying);
        self.inject_packet(id, (size, 0), Ecn::NotEct, u64::from(place), traced);
    }

    /// The protocol gets a frame.
    pub fn hear_frame(
        &mut self,
        id: EndId,
        frame: &Frame,
        envelopes: u32,
        flying: Option<Box<Flying>>,
    ) {
        let now = self.net.now();
        let at = self.receiving_place(id);
        let end = &mut self.ends[id.index()];
        self.hosts[end.host].memory -= u64::from(envelopes);
        let kept = end.protocol.take_in(now, frame);
        if kept.is_some() {
            end.app.arrived(now, now, u64::from(frame.data.len));
        }
        match (kept, flying) {
            (Some(number), Some(mut flying)) => {
                flying.hear(now, at);
                let early = Early { place: number, end: number + 1, flying };
                self.spare.give_back(&mut self.net, end.inward.early.insert(early));
            }
            (_, flying) => self.spare.give_back(&mut self.net, flying),
        }
        self.pump(id);
    }

    /// Takes the units that are next in order towards the host.
    pub fn take_units(&mut self, id: EndId) {
        let (now, window) = (self.net.now(), self.places_of(id).window);
        while let Some(unit) = self.ends[id.index()].protocol.take_unit() {
            self.check_place(id, &Delivered { data: unit.data, end: unit.end });
            let bytes = unit.data.len;
            let end = &mut self.ends[id.index()];
            end.inward.accepted += u64::from(bytes);
            // A copy has brought it whose original, with the records, is lost or comes later.
            let carried = end.inward.early.remove(unit.number).and_then(|early| {
                let mut flying = early.flying;
                let mut carried = flying.message.take();
                carried.iter_mut().for_each(|it| it.0.mark(now, window, Cause::Recover));
                self.book(id, flying);
                carried
            });
            self.ends[id.index()].inward.waiting.push_tight(Arrival {
                bytes,
                end: unit.end,
                empty: false,
                held: 0,
                echoed: true,
                carried,
            });
            self.fill_buffer(id);
        }
    }
}
