//! A protocol of the list, the sans-IO machine, with each frame in a capsule.
//!
//! A capsule's body is the frame as it stands on the wire behind nine octets of ours: one that tells how long the
//! protocol's header is, and eight with the place of the data in the stream, by which what comes is checked. Octets
//! of data that the hosts' MTU leaves no room for are left out; the path counts them.

use super::datagrams::add;
use super::octets;
use super::{Taken, WAITING_BYTES, Write, wire_notes};
use crate::EndpointError;
use crate::clock;
use crate::context::Context;
use crate::run::ProtocolReport;
use crate::shared::{Carried, Flying};
use crate::wire::{Body, Wire};
use std::collections::{BTreeMap, VecDeque};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::Ordering;
use trunkline_core::{Cause, Time};
use trunkline_engine::wrong_blocks;
use trunkline_host::{self as host, Request, SendQueue};
use trunkline_measure::{Step, Trail, Waiting};
use trunkline_scenario::{Interface, Split};
use trunkline_transport::protocol::{Frame, Header, Held, Outgoing, Unit};
use trunkline_transport::{Extent, Protocol};

/// Octets of ours in front of a frame.
pub const PREFIX: u32 = 9;
/// Packets that are taken off the socket in one go.
const BATCH: usize = 64;

/// Accepted data.
#[derive(Debug)]
struct Arrival {
    bytes: u32,
    end: bool,
    carried: Option<Carried>,
}

/// An end that speaks a protocol of the list.
#[derive(Debug)]
pub(crate) struct Listed {
    wire: Wire,
    protocol: Box<dyn Protocol>,
    split: Vec<Split>,
    /// Most requests outstanding.
    requests: Option<u32>,
    send_queue: SendQueue<Carried>,
    /// Frames that wait for the socket, those of units with their records.
    outbox: VecDeque<(Frame, Option<Flying>)>,
    /// The records of units that have come and are not next in order, by number.
    early: BTreeMap<u64, Flying>,
    inbox: VecDeque<Arrival>,
    /// Bytes accepted of what the other end has sent, and units that were not the next of the stream.
    accepted: u64,
    wrong_data: u64,
    /// Whether nothing more is to be sent.
    is_cut_off: bool,
    steps: Vec<Step>,
    step_count: u64,
    body: Vec<u8>,
}

impl Listed {
    pub fn new(
        wire: Wire,
        listed: &trunkline_scenario::Listed,
        interface: &Interface,
    ) -> Result<Listed, EndpointError> {
        let protocol = (listed.entry.build)(&listed.values).map_err(EndpointError::Transport)?;
        Ok(Listed {
            wire,
            protocol,
            split: interface.split.clone(),
            requests: interface.requests,
            send_queue: SendQueue::default(),
            outbox: VecDeque::new(),
            early: BTreeMap::new(),
            inbox: VecDeque::new(),
            accepted: 0,
            wrong_data: 0,
            is_cut_off: false,
            steps: Vec::new(),
            step_count: 0,
            body: Vec::new(),
        })
    }

    pub fn write(&mut self, now: Time, write: Write, context: &Context) {
        let Write { bytes, end, carried } = write;
        let write = host::Write { bytes, end, empty: false, rounds: Some(bytes) };
        self.send_queue.write(&self.split, write, || carried.clone());
        self.say(now, context);
    }

    pub fn written(&self) -> bool {
        self.send_queue.has_room() && self.protocol.unsent() <= WAITING_BYTES
    }

    pub fn blocked(&self) -> bool {
        !self.outbox.is_empty()
    }

    pub fn dead(&self) -> bool {
        self.protocol.dead()
    }

    /// Sends nothing more, whatever is left.
    pub fn cut_off(&mut self) {
        self.is_cut_off = true;
        self.outbox.clear();
    }

    pub fn deadline(&self) -> Option<Time> {
        self.protocol.deadline().filter(|_| !self.is_cut_off)
    }

    pub fn waiting(&self) -> Option<Waiting> {
        match self.protocol.held() {
            Some(Held::Recovery) => return Some(Waiting::Recover),
            Some(Held::Window) => return Some(Waiting::Window),
            Some(Held::Pace) => return Some(Waiting::Paced),
            None => {}
        }
        if self.protocol.unsent() > 0 || self.blocked() {
            return Some(Waiting::Host);
        }
        (self.send_queue.queued() > 0).then_some(Waiting::Request)
    }

    pub fn pump(&mut self, mut now: Time, context: &Context) {
        for _ in 0..BATCH {
            let Some(at) = self.hear(context) else { break };
            now = at;
            self.say(now, context);
        }
        if self.protocol.deadline().is_some_and(|deadline| deadline <= now) {
            self.protocol.expire(now);
        }
        self.say(now, context);
    }

    /// Says everything that can be said.
    fn say(&mut self, now: Time, context: &Context) {
        if self.is_cut_off {
            return;
        }
        self.start_requests(now, context);
        while let Some(Outgoing { frame, unit }) = self.protocol.transmit(now) {
            let flying = unit.map(|unit| self.leave(now, frame.data, &unit, context));
            self.outbox.push_back((frame, flying));
        }
        self.flush(context);
    }

    /// Hands requests to the protocol, as many as the interface takes.
    fn start_requests(&mut self, now: Time, context: &Context) {
        let answered = self.protocol.counters().answered;
        self.send_queue.forget(answered);
        while self.send_queue.is_done(answered) {
            self.send_queue.release();
        }
        while let Some(Request { bytes, end, carried, .. }) = self.send_queue.next(self.requests, 0)
        {
            let units = self.protocol.units_of(bytes, end);
            let data = self.send_queue.hand_over(bytes, units, self.requests.is_some());
            self.protocol.offer(now, data, end);
            if let Some(mut carried) = carried {
                carried.trail.mark(now, context.own.requests, Cause::Window);
                self.send_queue.keep(carried);
            }
        }
    }

    /// Books what a unit that leaves now has waited for, and the message that it completes.
    fn leave(&mut self, now: Time, data: Extent, unit: &Unit, context: &Context) -> Flying {
        let place = context.own;
        let mut trail = Trail::new(unit.eligible.min(now));
        if let Some(first) = unit.first_sent {
            trail.mark(first, place.host, Cause::Host);
            trail.mark(now, place.transport, Cause::Recover);
        } else {
            let (unsent, open) = (self.protocol.unsent(), self.protocol.unanswered());
            self.send_queue.first_sent(data, self.send_queue.offered() - unsent - open);
        }
        let carried = if unit.end { self.send_queue.ending_with(unit.number + 1) } else { None };
        let message = carried.map(|carried| {
            match unit.first_sent {
                Some(_) => carried.trail.mark(now, place.transport, Cause::Recover),
                None => carried.trail.mark(unit.eligible, place.transport, Cause::Window),
            }
            carried.clone()
        });
        Flying { block: trail, message }
    }

    fn flush(&mut self, context: &Context) {
        while let Some((frame, mut flying)) = self.outbox.pop_front() {
            let (now, number) = (clock::now(), self.wire.next());
            if let Some(flying) = &mut flying {
                flying.each(|trail| trail.mark(now, context.own.host, Cause::Host));
                // Before the packet: the reader may be faster than this thread.
                context.outward().keep(number, flying.clone());
            }
            let left_out = encode(&frame, self.wire.room(), &mut self.body);
            if !self.wire.send(now, frame.size(), 0, Body::Octets(&self.body)) {
                context.outward().fetch(number);
                return self.outbox.push_front((frame, flying));
            }
            self.wire.cut += u64::from(left_out > 0);
        }
    }

    /// Takes in one packet, if one has come. Answers when that was.
    fn hear(&mut self, context: &Context) -> Option<Time> {
        let view = self.wire.receive()?;
        let now = clock::now();
        let flying = context.landed(view.header.number, &view.record, now);
        let Some((frame, right)) = decode(view.body, view.header.path_size) else {
            return Some(now);
        };
        self.wrong_data += u64::from(!right);
        let kept = self.protocol.receive(now, &frame);
        if let (Some(number), Some(mut flying)) = (kept, flying) {
            flying.each(|trail| trail.mark(now, context.own.host, Cause::Host));
            self.early.insert(number, flying);
        }
        self.accept(now, context);
        Some(now)
    }

    /// Keeps what the protocol has accepted for the application.
    fn accept(&mut self, now: Time, context: &Context) {
        while let Some(unit) = self.protocol.take() {
            let carried = self.early.remove(&unit.number).and_then(|mut flying| {
                flying.each(|trail| trail.mark(now, context.own.transport, Cause::Recover));
                self.step_count += 1;
                add(&mut self.steps, flying.block.steps());
                flying.message
            });
            self.wrong_data += u64::from(unit.data.offset != self.accepted);
            self.accepted += u64::from(unit.data.len);
            self.inbox.push_back(Arrival { bytes: unit.data.len, end: unit.end, carried });
        }
    }

    pub fn take(&mut self, _now: Time, context: &Context) -> Option<Taken> {
        let to_end = self.inbox.iter().position(|arrival| arrival.end);
        let count = to_end.map_or(self.inbox.len(), |index| index + 1);
        if count == 0 {
            return None;
        }
        let mut taken = Taken { bytes: 0, end: to_end.is_some(), since: None, carried: None };
        for arrival in self.inbox.drain(..count) {
            taken.bytes += arrival.bytes;
            taken.carried = arrival.carried;
        }
        context.inward().taken.fetch_add(u64::from(taken.bytes), Ordering::AcqRel);
        Some(taken)
    }

    pub fn report(&self) -> ProtocolReport {
        let counters = self.protocol.counters();
        let mut notes = wire_notes(&self.wire);
        if self.wrong_data > 0 {
            notes.push(wrong_blocks(self.wrong_data));
        }
        ProtocolReport {
            retransmissions: counters.resent,
            timeouts: counters.timeouts,
            packets_sent: self.wire.sent,
            packets_received: self.wire.received,
            blocks: self.steps.clone(),
            block_count: self.step_count,
            rounds: self.send_queue.rounds(),
            notes,
            ..ProtocolReport::default()
        }
    }
}

impl AsFd for Listed {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wire.as_fd()
    }
}

/// Writes a frame to `out`, which is cleared first, in at most `room` octets. Answers how many of its data are left
/// out.
fn encode(frame: &Frame, room: usize, out: &mut Vec<u8>) -> u32 {
    let header = frame.header.octets();
    out.clear();
    out.push(header.len() as u8);
    out.extend(frame.data.offset.to_be_bytes());
    out.extend(header);
    let most = u32::try_from(room.saturating_sub(out.len())).unwrap_or(u32::MAX);
    let carried = frame.data.len.min(most);
    out.extend(&octets::from(frame.data.offset, carried)[..]);
    frame.data.len - carried
}

/// Reads what [`encode`] wrote, of a frame that counts `size` bytes; and whether the octets of its data are those of
/// their place.
fn decode(body: &[u8], size: u32) -> Option<(Frame, bool)> {
    let (&length, rest) = body.split_first()?;
    let (place, rest) = rest.split_first_chunk::<8>()?;
    let (header, data) = rest.split_at_checked(usize::from(length))?;
    let len = size.checked_sub(u32::from(length))?;
    if data.len() > len as usize {
        return None;
    }
    let offset = u64::from_be_bytes(*place);
    let frame = Frame { header: Header::new(header), data: Extent::new(offset, len) };
    (frame.header.octets() == header).then(|| (frame, octets::are(data, offset)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_frame_comes_out_as_it_went_in(
            header in prop::collection::vec(any::<u8>(), 0..32), offset in 0u64..1 << 40,
            len in 0u32..3000, room in 60usize..4000,
        ) {
            let frame = Frame { header: Header::new(&header), data: Extent::new(offset, len) };
            let mut body = Vec::new();
            let left_out = encode(&frame, room, &mut body);
            prop_assert!(body.len() <= room);
            prop_assert_eq!(body.len() as u32 + left_out, PREFIX + frame.size());
            prop_assert_eq!(decode(&body, frame.size()), Some((frame, true)));
        }

        #[test]
        fn anything_is_read_or_refused(body in prop::collection::vec(any::<u8>(), 0..80), size: u32) {
            if let Some((frame, _)) = decode(&body, size) {
                prop_assert_eq!(frame.size(), size);
            }
        }
    }

    #[test]
    fn octets_of_another_place_are_seen() {
        let mut body = Vec::new();
        let frame = Frame { header: Header::new(&[1, 2, 3]), data: Extent::new(1000, 100) };
        encode(&frame, 500, &mut body);
        *body.last_mut().expect("data") ^= 1;
        assert_eq!(decode(&body, 103), Some((frame, false)));
    }
}
