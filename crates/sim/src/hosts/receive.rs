//! From accepted data to a system read.

use super::end::{Arrival, Doing};
use super::flying::Carried;
use super::jobs::{EndId, Job, Timer};
use super::protocol::{Delivered, ProtocolEnd, ProtocolKind};
use super::world::World;
use std::collections::VecDeque;
use trunkline_core::{Cause, Span, Tight, Time};
use trunkline_measure::Trail;
use trunkline_scenario::{Echo, ProtocolPlace, Returns};
use trunkline_workload::Outcome;

/// After how long the KMC returns a receive buffer that no message has ended (its host asks it to return
/// on a block's boundary or after 50 ms).
const RETURN_AFTER: Span = Span::from_millis(50);
/// Arrivals that one system read takes at most; their bytes can be counted in 32 bits.
const MOST_READ: usize = 1 << 18;

impl World<'_> {
    /// Takes what the protocol has accepted towards the host. Returns whether there was anything: only then has the
    /// protocol something more to say.
    pub fn take_accepted(&mut self, id: EndId) -> bool {
        let before = self.ends[id.index()].inward.waiting.len();
        match self.ends[id.index()].protocol {
            ProtocolEnd::Tcp(_) => self.take_stream(id),
            ProtocolEnd::Listed(_) => self.take_units(id),
            ProtocolEnd::Urp(_) | ProtocolEnd::Datagrams(_) => self.take_blocks(id),
        }
        self.ends[id.index()].inward.waiting.len() > before
    }

    fn take_blocks(&mut self, id: EndId) {
        while let Some(delivered) = self.ends[id.index()].protocol.take() {
            self.check_place(id, &delivered);
            let (now, bytes) = (self.net.now(), u64::from(delivered.data.len));
            let end = &mut self.ends[id.index()];
            end.inward.accepted += bytes;
            end.app.arrived(now, now, bytes);
            self.accepted(id, delivered);
        }
    }

    /// Every byte is to come once and in order, so that data accepted are the next of the stream. URP knows
    /// a block by its count and number alone, which losses together with copies can deceive; if neither
    /// was there, anything else is a defect of this engine.
    pub fn check_place(&mut self, id: EndId, delivered: &Delivered) {
        let end = &mut self.ends[id.index()];
        if delivered.data.len == 0 || delivered.data.offset == end.inward.accepted {
            return;
        }
        // Without repair what is lost leaves a gap, of which the path's counts tell.
        if end.hears == ProtocolKind::Characters {
            end.inward.accepted = delivered.data.offset;
            return;
        }
        end.inward.wrong_data += 1;
        let counts = self.net.route_counts(self.ends[id.peer().index()].route);
        let spoilt =
            counts.dropped + counts.duplicated + self.hosts[self.ends[id.index()].host].overruns;
        debug_assert!(spoilt > 0 || self.reorders, "accepted data are not the next of the stream");
    }

    /// The interface has accepted data: they wait for a receive buffer of the host.
    pub fn accepted(&mut self, id: EndId, delivered: Delivered) {
        let now = self.net.now();
        let place = self.receiving_place(id);
        let end = &mut self.ends[id.index()];
        let mut carried = None;
        if let Some(mut flying) = end.inward.completing.take() {
            flying.hear(now, place);
            carried = flying.message.take();
            self.book(id, flying);
        }
        let end = &mut self.ends[id.index()];
        let held = std::mem::take(&mut end.inward.held);
        let (bytes, ends) = (delivered.data.len, delivered.end);
        let arrival = Arrival { bytes, end: ends, empty: false, held, echoed: false, carried };
        end.inward.waiting.push_tight(arrival);
        self.fill_buffer(id);
    }

    /// Fills the receive buffer that the host has posted with what waits, and interrupts the host. It posts
    /// the next one when it has taken this.
    pub fn fill_buffer(&mut self, id: EndId) {
        let now = self.net.now();
        let host = self.host_of(id);
        let interface = &host.interface;
        let interrupt = host.processor.interrupt;
        let end = &mut self.ends[id.index()];
        // What TCP accepts lies in the host's socket buffer, and its window opens when that is read.
        let (room, returns, echo) = match end.protocol.is_of_host() {
            true => (None, Returns::Block, Echo::Consumption),
            false => (interface.receive_buffer, interface.returns, interface.echo),
        };
        if end.inward.buffer.is_some() || end.inward.waiting.is_empty() {
            return;
        }
        let most = if returns == Returns::Block { 1 } else { usize::MAX };
        let filled = Filled::from(&end.inward.waiting, end.inward.front_taken, room, most);
        let ends = end.inward.waiting.iter().take(filled.blocks).any(|arrival| arrival.end);
        let full = room.is_some_and(|room| filled.bytes >= room);
        let returned = returns == Returns::Block || full || ends;
        if !returned && !in_time(end.inward.buffer_since, now) {
            return self.await_more(id);
        }
        end.inward.buffer_since = None;
        end.inward.buffer = Some(filled);
        if echo == Echo::Posted {
            for arrival in end.inward.waiting.iter_mut().take(filled.blocks).filter(|it| !it.echoed)
            {
                arrival.echoed = true;
                end.protocol.consumed(now, arrival.bytes);
            }
        }
        self.interrupt(id, interrupt.of(u64::from(filled.bytes)), Job::Interrupted);
    }

    /// A buffer that is neither full nor ends a message is returned when its timer has run out.
    fn await_more(&mut self, id: EndId) {
        let now = self.net.now();
        let end = &mut self.ends[id.index()];
        if end.inward.buffer_since.is_none() {
            end.inward.buffer_since = Some(now);
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
        for arrival in end.inward.waiting.iter_mut().filter(|arrival| !arrival.echoed) {
            arrival.echoed = true;
            end.protocol.consumed(now, arrival.bytes);
        }
    }

    /// The timer of a receive buffer.
    pub fn buffer_due(&mut self, id: EndId) {
        self.fill_buffer(id);
        self.pump(id);
    }

    /// The place under which the time between a packet's arrival and its acceptance is booked.
    pub fn receiving_place(&self, id: EndId) -> u32 {
        let places = self.places_of(id);
        match self.host_of(id).interface.protocol {
            ProtocolPlace::Host => places.processor,
            ProtocolPlace::Board => places.board,
        }
    }

    /// The host's processor has taken a receive buffer's data from the interface.
    pub fn interrupted(&mut self, id: EndId) {
        let now = self.net.now();
        let place = self.places_of(id).processor;
        let end = &mut self.ends[id.index()];
        let inward = &mut *end.inward;
        let Some(filled) = inward.buffer.take() else { return };
        inward.front_taken = filled.begun;
        for mut arrival in inward.waiting.drain(..filled.blocks) {
            if let Some(carried) = &mut arrival.carried {
                carried.0.mark(now, place, Cause::Host);
            }
            self.hosts[end.host].memory -= arrival.held;
            inward.inbox.push_tight(arrival);
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
        let to_end = end.inward.inbox.iter().position(|arrival| arrival.end);
        let count = to_end.map_or(end.inward.inbox.len(), |index| index + 1).min(MOST_READ);
        if count == 0 {
            end.doing = Doing::Reading;
            return;
        }
        end.doing = Doing::Busy;
        end.reading = count;
        let bytes: u64 =
            end.inward.inbox.iter().take(count).map(|arrival| u64::from(arrival.bytes)).sum();
        let cost = self.host_of(id).processor.read.of(bytes) + self.disturbance(id);
        self.on_processor(id, cost, Job::ReadDone);
    }

    /// The read returns.
    pub fn read_done(&mut self, id: EndId) {
        let now = self.net.now();
        let host = self.host_of(id);
        let places = self.places_of(id);
        let end = &mut self.ends[id.index()];
        let count = std::mem::take(&mut end.reading);
        let (mut bytes, mut octets, mut ends) = (0, 0, false);
        for arrival in end.inward.inbox.drain(..count) {
            bytes += arrival.bytes;
            octets += arrival.bytes + u32::from(arrival.empty);
            ends |= arrival.end;
            let carried = arrival.carried.filter(|carried| fits(id, &end.trail, carried, now));
            if let Some(mut carried) = carried {
                std::mem::swap(&mut end.trail, &mut carried.0);
                carried.1.into_iter().for_each(|stamp| end.app.stamped(stamp));
                self.brought.push(carried);
            } else if arrival.end && id.is_sender() {
                // A copy has brought the message whose own packet was lost: nobody knows where that was.
                end.trail.mark(now, places.window, Cause::Recover);
            }
        }
        end.trail.mark(now, places.processor, Cause::Host);
        if host.interface.echo == Echo::Consumption || end.protocol.is_of_host() {
            end.protocol.consumed(now, octets);
        }
        let (traffic, flow) = (end.traffic, end.flow);
        self.traffic[traffic].deliver(now, flow, id, bytes);
        self.start_due();
        self.step(id, Outcome::Read { bytes, end: ends });
        self.pump(id);
        self.drained(id.peer());
    }
}

/// Whether what a message brings belongs to the reader's measurement. The record of a sender's sample comes
/// back with the answer; if it was lost on the way, an answer brings an older one.
fn fits(id: EndId, own: &Trail, carried: &Carried, now: Time) -> bool {
    let (trail, _) = &**carried;
    trail.until() <= now && (!id.is_sender() || trail.origin() == own.origin())
}

/// Whether a buffer has waited long enough.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn receive_buffers_cut_and_gather_blocks() {
        let blocks = |bytes: &[u32]| {
            let arrival = |&bytes| Arrival {
                bytes,
                end: false,
                empty: false,
                held: 0,
                echoed: false,
                carried: None,
            };
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
