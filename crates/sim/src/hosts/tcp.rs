//! TCP between hosts: its segments' records, and the cutting of its stream into messages.
//!
//! TCP stands on the host's processor: a segment costs it what a block does and an acknowledgement without data
//! what a control does. The interface's memory is free again when TCP has a segment; from then on the data lie
//! in the socket's buffer, of which the receive window tells.
//!
//! # In step
//!
//! Real hosts never take the same time twice. Simulated ones do, so that two equal connections keep their
//! places in a queue, and one may lose all packets that are lost (Floyd and Jacobson, *On Traffic Phase
//! Effects in Packet-Switched Gateways*, 1992). A processor's `disturbance` therefore also comes over the
//! sending of single segments; a traffic's `stagger` sets its flows apart at the start, and the coarse clocks
//! of 4.4BSD tick at each host at an instant of its own.

use super::early::Early;
use super::end::{Arrival, Doing};
use super::flying::{Carried, Departure, EndsIn, Flying};
use super::jobs::{EndId, Timer};
use super::protocol::{Delivered, Leaving};
use super::segments::{Sent, Wire};
use super::world::World;
use trunkline_core::{Cause, Span, Tight, Time};
use trunkline_measure::WindowSample;
use trunkline_scenario::Workload;
use trunkline_transport::Extent;
use trunkline_transport::tcp::Segment;

impl World<'_> {
    /// Books what the messages have waited for that end in data which TCP sends now for the first time.
    pub fn book_messages(&mut self, id: EndId, data: Extent) {
        let now = self.net.now();
        let places = self.places_of(id);
        let end = &mut self.ends[id.index()];
        let spent = end.clock.spent_by(now);
        for ending in end.outward.endings.within(data.offset, data.end()) {
            if std::mem::replace(&mut ending.sent, true) {
                continue;
            }
            for (waiting, span) in spent.since(&ending.since) {
                ending.carried.0.add(span, places.of_write(waiting), waiting.cause());
            }
        }
    }

    /// Puts a segment onto the path that TCP has let go.
    pub fn send_segment(&mut self, id: EndId, leaving: Leaving) {
        let Leaving { place, size, data, eligible, first, ready } = leaving;
        let Some(Sent::Segment(Wire { ecn, .. })) = self.segments.get(place) else { return };
        let (ecn, traced) = (*ecn, data.len > 0);
        if traced {
            let flying = self.segment_records(id, data, [eligible, first.unwrap_or(ready), ready]);
            self.segments.attach(place, flying);
        }
        self.inject_packet(id, (size, 0), ecn, u64::from(place), traced);
    }

    /// The records of a segment with `data` that leaves now, and of the messages that end in it. It could be sent since
    /// `eligible`, was sent `first` then, and TCP has let it go at `ready`.
    fn segment_records(
        &mut self,
        id: EndId,
        data: Extent,
        [eligible, first, ready]: [Time; 3],
    ) -> Box<Flying> {
        let now = self.net.now();
        let (sending, places) = (self.sending_place(id), self.places_of(id));
        let end = &mut self.ends[id.index()];
        let endings = end.outward.endings.within(data.offset, data.end()).map(|ending| -> EndsIn {
            let (trail, _) = &mut *ending.carried;
            if std::mem::replace(&mut ending.left, true) {
                trail.mark(ready, places.window, Cause::Recover);
            }
            trail.mark(now, sending, Cause::Host);
            (ending.place, Some(ending.carried.clone()))
        });
        let endings = endings.collect();
        let departure = Departure { since: eligible, first, ready, left: now };
        self.spare.boxed(Flying { endings, ..Flying::new(departure, None) })
    }

    /// Samples a sender's congestion window, and asks for the next time, if the scenario wants samples.
    pub fn sample_window(&mut self, id: EndId) {
        let at = self.net.now();
        let end = &self.ends[id.index()];
        let Some(every) = self.scenario.sample_backlog else { return };
        let Some(tcp) = end.protocol.tcp().filter(|_| id.is_sender()) else { return };
        let ended = end.doing == Doing::Ended;
        if ended || !moves_much(&self.scenario.traffic[end.traffic].workload) {
            return;
        }
        let (window, threshold) = (tcp.window(), tcp.slow_start_threshold());
        let threshold = Some(threshold).filter(|&threshold| threshold != u64::MAX);
        let (flow, round_trip) = (end.flow, tcp.smoothed_rtt());
        let sample = WindowSample { flow, at, window, threshold, round_trip };
        self.traffic[end.traffic].windows.push(sample);
        let next = at + every.max(Span::from_nanos(1));
        self.net.set_timer(next, Timer::Sample(id).number());
    }

    /// TCP gets a segment, with the congestion bits that its packet came with.
    pub fn hear_segment(
        &mut self,
        id: EndId,
        segment: Segment<Extent>,
        envelopes: u32,
        flying: Option<Box<Flying>>,
    ) {
        let now = self.net.now();
        let at = self.receiving_place(id);
        let end = &mut self.ends[id.index()];
        self.hosts[end.host].memory -= u64::from(envelopes);
        if let Some(mut flying) = flying {
            flying.hear(now, at);
            let (start, behind) = (segment.data.offset, segment.data.end());
            let refused = match behind > end.inward.accepted {
                true => end.inward.early.insert(Early { place: start, end: behind, flying }),
                false => Some(flying),
            };
            self.spare.give_back(&mut self.net, refused);
        }
        let before = end.protocol.arrived();
        end.protocol.hear(now, segment);
        let fresh = end.protocol.arrived() - before;
        end.app.arrived(now, now, fresh);
        self.pump(id);
        self.begin_if_opened(id);
    }

    /// Takes what has come in order towards the host, cut at the ends of messages.
    pub fn take_stream(&mut self, id: EndId) {
        while let Some(data) = self.ends[id.index()].protocol.take_stream() {
            self.check_place(id, &Delivered { data, end: false });
            let mut left = data.len;
            while left > 0 {
                let from = self.ends[id.index()].inward.accepted;
                let endings = &mut self.ends[id.peer().index()].outward.endings;
                let piece = endings.next_piece(from, left);
                left -= piece.octets;
                let carried = self.accept_octets(id, piece.octets, piece.end);
                let bytes = if piece.empty { 0 } else { piece.octets };
                self.ends[id.index()].inward.waiting.push_tight(Arrival {
                    bytes,
                    end: piece.end.is_some(),
                    empty: piece.empty,
                    held: 0,
                    echoed: true,
                    carried,
                });
                self.fill_buffer(id);
            }
        }
    }

    /// So many octets are accepted: the records of segments that end in them are complete. Returns those of
    /// the message that ends there.
    fn accept_octets(&mut self, id: EndId, octets: u32, ending: Option<u64>) -> Option<Carried> {
        let now = self.net.now();
        let window = self.places_of(id).window;
        let end = &mut self.ends[id.index()];
        end.inward.accepted += u64::from(octets);
        let carried = ending.and_then(|place| {
            let mut carried =
                end.inward.early.before(place).find_map(|it| take_ending(it, place))?;
            carried.0.mark(now, window, Cause::Recover);
            Some(carried)
        });
        let accepted = end.inward.accepted;
        while let Some(early) = self.ends[id.index()].inward.early.pop_up_to(accepted) {
            self.book(id, early.flying);
        }
        carried
    }
}

/// Whether a sender moves as much as it can for some time.
fn moves_much(workload: &Workload) -> bool {
    match workload {
        Workload::Bulk { .. }
        | Workload::Push { .. }
        | Workload::TimedTransfer { .. }
        | Workload::Greedy { .. } => true,
        Workload::Interactive { .. } | Workload::TimedEcho { .. } | Workload::Paced { .. } => false,
    }
}

/// Takes from a segment's records those of the message that ends at `place`.
fn take_ending(early: &mut Early, place: u64) -> Option<Carried> {
    let mut endings = early.flying.endings.iter_mut().filter(|(end, _)| *end == place);
    endings.find_map(|(_, carried)| carried.take())
}
