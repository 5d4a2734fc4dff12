//! From packets off the path to a system read.

use super::end::{Arrival, Doing};
use super::jobs::{EndId, Flying, Job, Timer};
use super::speaker::{Delivered, Speaker};
use super::tag;
use super::world::World;
use crate::network::Parcel;
use std::collections::VecDeque;
use trunkline_core::{Cause, Span, Time};
use trunkline_measure::Step;
use trunkline_scenario::{Echo, ProtocolPlace, Returns};
use trunkline_transport::Extent;
use trunkline_transport::urp::Part;
use trunkline_workload::Outcome;

/// After how long the KMC returns a receive buffer that no message has ended (its host asks it to return
/// on a block's boundary or after 50 ms).
const RETURN_AFTER: Span = Span::from_millis(50);

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
        end.waiting.push_back(Arrival { bytes, end: ends, held, echoed: false, trail });
        self.fill_buffer(id);
    }

    /// Fills the receive buffer that the host has posted with what waits, and interrupts the host. It posts
    /// the next one when it has taken this.
    fn fill_buffer(&mut self, id: EndId) {
        let now = self.net.now();
        let host = self.host_of(id);
        let interface = &host.interface;
        let (room, returns, echo) = (interface.receive_buffer, interface.returns, interface.echo);
        let interrupt = host.processor.interrupt;
        let end = &mut self.ends[id.index()];
        if end.buffer.is_some() || end.waiting.is_empty() {
            return;
        }
        let most = if returns == Returns::Block { 1 } else { usize::MAX };
        let filled = Filled::from(&end.waiting, end.front_taken, room, most);
        let ends = end.waiting.iter().take(filled.blocks).any(|arrival| arrival.end);
        let full = room.is_some_and(|room| filled.bytes >= room);
        let returned = returns == Returns::Block || full || ends;
        if !returned && !in_time(end.buffer_since, now) {
            return self.await_more(id);
        }
        end.buffer_since = None;
        end.buffer = Some(filled);
        if echo == Echo::Posted {
            for arrival in end.waiting.iter_mut().take(filled.blocks).filter(|it| !it.echoed) {
                arrival.echoed = true;
                end.speaker.consumed(now, arrival.bytes);
            }
        }
        self.on_processor(id, interrupt.of(u64::from(filled.bytes)), Job::Interrupted);
    }

    /// A buffer that is neither full nor ends a message is returned when its timer has run out.
    fn await_more(&mut self, id: EndId) {
        let now = self.net.now();
        let end = &mut self.ends[id.index()];
        if end.buffer_since.is_none() {
            end.buffer_since = Some(now);
            self.net.set_timer(now + RETURN_AFTER, Timer::Buffer(id).number());
        }
        // It is posted, so what goes into it is echoed at once.
        if self.host_of(id).interface.echo == Echo::Posted {
            self.echo_buffered(id);
        }
    }

    /// Echoes the blocks in the posted buffer that have not been echoed.
    fn echo_buffered(&mut self, id: EndId) {
        let now = self.net.now();
        let end = &mut self.ends[id.index()];
        for arrival in end.waiting.iter_mut().filter(|arrival| !arrival.echoed) {
            arrival.echoed = true;
            end.speaker.consumed(now, arrival.bytes);
        }
    }

    /// The timer of a receive buffer.
    pub fn buffer_due(&mut self, id: EndId) {
        self.fill_buffer(id);
        self.pump(id);
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
        let Some(filled) = end.buffer.take() else { return };
        end.front_taken = filled.begun;
        for mut arrival in end.waiting.drain(..filled.blocks) {
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

/// Has a buffer waited long enough?
fn in_time(since: Option<Time>, now: Time) -> bool {
    since.is_some_and(|since| since + RETURN_AFTER <= now)
}

/// What a receive buffer holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Filled {
    /// Bytes.
    pub bytes: u32,
    /// Blocks whose last byte is in it.
    pub blocks: usize,
    /// Bytes of the block behind them that it or an earlier buffer holds.
    pub begun: u32,
}

impl Filled {
    /// A buffer of `room` bytes (`None`: as many as there are) filled with at most `most` blocks of what
    /// waits, of whose first `taken` bytes have gone before.
    fn from(waiting: &VecDeque<Arrival>, taken: u32, room: Option<u32>, most: usize) -> Filled {
        let room = room.unwrap_or(u32::MAX).max(1);
        let mut filled = Filled { bytes: 0, blocks: 0, begun: taken };
        for arrival in waiting.iter().take(most) {
            let left = arrival.bytes - filled.begun;
            let fits = left.min(room - filled.bytes);
            filled.bytes += fits;
            if fits < left {
                filled.begun += fits;
                break;
            }
            filled.blocks += 1;
            filled.begun = 0;
        }
        filled
    }
}

impl super::world::Measured {
    /// Adds the time of one block.
    fn book_block(&mut self, steps: &[Step]) {
        self.block_count += 1;
        for step in steps {
            let sum = self
                .blocks
                .entry((step.place, step.cause as u8))
                .or_insert(Step { span: Span::ZERO, ..*step });
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn receive_buffers_cut_and_gather_blocks() {
        let blocks = |bytes: &[u32]| {
            let arrival =
                |&bytes| Arrival { bytes, end: false, held: 0, echoed: false, trail: None };
            bytes.iter().map(arrival).collect::<VecDeque<_>>()
        };
        let filled = |bytes, blocks, begun| Filled { bytes, blocks, begun };
        let fill =
            |bytes: &[u32], taken, room, most| Filled::from(&blocks(bytes), taken, room, most);
        assert_eq!(fill(&[252], 0, Some(64), 9), filled(64, 0, 64));
        assert_eq!(fill(&[252], 192, Some(64), 9), filled(60, 1, 0));
        assert_eq!(fill(&[28, 28, 28], 0, Some(64), 9), filled(64, 2, 8));
        assert_eq!(fill(&[28, 0], 0, Some(28), 9), filled(28, 2, 0));
        assert_eq!(fill(&[252, 252], 0, None, 9), filled(504, 2, 0));
        assert_eq!(fill(&[252, 252], 0, None, 1), filled(252, 1, 0));
    }
}
