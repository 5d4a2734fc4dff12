//! URP, the sans-IO machine, with each network packet in a capsule.

use super::datagrams::add;
use super::envelopes::{decode, encode};
use super::octets;
use super::{Taken, WAITING_BYTES, Write, wire_notes};
use crate::EndpointError;
use crate::clock;
use crate::context::Context;
use crate::run::ProtocolReport;
use crate::shared::{Carried, Flying};
use crate::wire::{Body, Wire};
use bytes::Bytes;
use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::Ordering;
use trunkline_core::{Cause, Time};
use trunkline_engine::wrong_blocks;
use trunkline_host::{self as host, Request, SendQueue, urp_settings};
use trunkline_measure::{Step, Trail, Waiting};
use trunkline_scenario::{Echo, Interface, Split, UrpSettings};
use trunkline_transport::envelope::{self, Envelope, Reader};
use trunkline_transport::urp::{self, Block, Kind, Part, Segment};
use trunkline_transport::{Extent, Payload};

/// Packets that are taken off the socket in one go.
const BATCH: usize = 64;

/// A packet that waits for the socket.
#[derive(Debug)]
struct Outgoing {
    part: Part<Bytes>,
    /// The records of the block that it ends.
    flying: Option<Flying>,
}

/// Accepted data.
#[derive(Debug)]
struct Arrival {
    bytes: u32,
    end: bool,
    carried: Option<Carried>,
}

/// An end that speaks URP.
#[derive(Debug)]
pub(crate) struct Urp {
    wire: Wire,
    urp: urp::Urp<Bytes>,
    reader: Reader,
    /// Envelopes of a network packet; 0 for whole blocks.
    packet: u32,
    split: Vec<Split>,
    /// Most requests outstanding.
    requests: Option<u32>,
    echo: Echo,
    send_queue: SendQueue<Carried>,
    /// Blocks and bytes sent at least once.
    blocks_sent: u64,
    bytes_sent: u64,
    /// Accepted of what the other end has sent.
    bytes_accepted: u64,
    /// Blocks accepted that were not the next of the stream: losses and copies together can deceive URP.
    wrong_data: u64,
    /// Whether nothing more is to be sent.
    is_cut_off: bool,
    /// Whether octets have been left out for want of room.
    incomplete: bool,
    outbox: VecDeque<Outgoing>,
    /// The records of the block that came last.
    completing: Option<Flying>,
    inbox: VecDeque<Arrival>,
    steps: Vec<Step>,
    step_count: u64,
    envelopes: Vec<Envelope>,
    body: Vec<u8>,
}

impl Urp {
    pub fn new(
        wire: Wire,
        settings: &UrpSettings,
        interface: &Interface,
    ) -> Result<Urp, EndpointError> {
        let checked = urp_settings(settings, interface.echo).map_err(EndpointError::Transport)?;
        let urp = urp::Urp::connected(clock::now(), checked)
            .map_err(|error| EndpointError::Transport(error.to_string()))?;
        Ok(Urp {
            wire,
            reader: Reader::new(checked.check),
            urp,
            packet: settings.packet,
            split: interface.split.clone(),
            requests: interface.requests,
            echo: interface.echo,
            send_queue: SendQueue::default(),
            blocks_sent: 0,
            bytes_sent: 0,
            bytes_accepted: 0,
            wrong_data: 0,
            is_cut_off: false,
            incomplete: false,
            outbox: VecDeque::new(),
            completing: None,
            inbox: VecDeque::new(),
            steps: Vec::new(),
            step_count: 0,
            envelopes: Vec::new(),
            body: Vec::new(),
        })
    }

    pub fn write(&mut self, now: Time, write: Write, context: &Context) {
        let Write { bytes, end, carried } = write;
        let rounds = Some(bytes);
        let write = host::Write { bytes, end, empty: false, rounds };
        self.send_queue.write(&self.split, write, || carried.clone());
        self.say(now, context);
    }

    pub fn written(&self) -> bool {
        self.send_queue.has_room() && self.urp.unsent() <= WAITING_BYTES
    }

    pub fn blocked(&self) -> bool {
        !self.outbox.is_empty()
    }

    pub fn dead(&self) -> bool {
        self.urp.dead()
    }

    /// Sends nothing more, whatever is left.
    pub fn cut_off(&mut self) {
        self.is_cut_off = true;
        self.outbox.clear();
    }

    pub fn deadline(&self) -> Option<Time> {
        self.urp.deadline().filter(|_| !self.is_cut_off)
    }

    pub fn waiting(&self) -> Option<Waiting> {
        if self.urp.recovering() {
            return Some(Waiting::Recover);
        }
        if self.urp.blocked() {
            return Some(Waiting::Window);
        }
        if self.urp.unsent() > 0 || self.blocked() {
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
        if self.urp.deadline().is_some_and(|deadline| deadline <= now) {
            self.urp.expire(now);
        }
        self.say(now, context);
    }

    /// Says everything that can be said.
    fn say(&mut self, now: Time, context: &Context) {
        if self.is_cut_off {
            return;
        }
        self.start_requests(now, context);
        while let Some(segment) = self.urp.transmit(now) {
            let flying = match &segment {
                Segment::Block(block) => Some(self.leave(now, block, context)),
                Segment::Control(_) | Segment::Characters(_) => None,
            };
            self.send_later(segment, flying);
        }
        self.flush(context);
    }

    /// Hands requests to the protocol, as many as the interface takes.
    fn start_requests(&mut self, now: Time, context: &Context) {
        let answered = self.urp.counters().sending.blocks - self.urp.outstanding() as u64;
        self.send_queue.forget(answered);
        while self.send_queue.is_done(answered) {
            self.send_queue.release();
        }
        while let Some(Request { bytes, end, carried, .. }) = self.send_queue.next(self.requests, 0)
        {
            let units = match bytes {
                0 => u64::from(end),
                _ => u64::from(bytes.div_ceil(self.urp.settings().block.into())),
            };
            let data = self.send_queue.hand_over(bytes, units, self.requests.is_some());
            self.urp.offer(now, octets::from(data.offset, bytes), end);
            if let Some(mut carried) = carried {
                carried.trail.mark(now, context.own.requests, Cause::Window);
                self.send_queue.keep(carried);
            }
        }
    }

    /// Books what a block that leaves now has waited for, and the message that it completes.
    fn leave(&mut self, now: Time, block: &Block<Bytes>, context: &Context) -> Flying {
        let place = context.own;
        let mut trail = Trail::new(block.eligible.min(now));
        if let Some(first) = block.first_sent {
            trail.mark(first, place.host, Cause::Host);
            trail.mark(now, place.transport, Cause::Recover);
        } else {
            self.blocks_sent += 1;
            let answered = self.send_queue.offered() - self.urp.unsent() - self.urp.unechoed();
            let data = Extent::new(self.bytes_sent, Payload::len(&block.data));
            self.send_queue.first_sent(data, answered);
            self.bytes_sent += u64::from(Payload::len(&block.data));
        }
        let ending = self.message_ending_in(block);
        let message = ending.and_then(|units| self.send_queue.ending_with(units)).map(|carried| {
            match block.first_sent {
                Some(_) => carried.trail.mark(now, place.transport, Cause::Recover),
                None => carried.trail.mark(block.eligible, place.transport, Cause::Window),
            }
            carried.clone()
        });
        Flying { block: trail, message }
    }

    /// The number of `block` among all that were sent, if a message ends in it.
    fn message_ending_in(&self, block: &Block<Bytes>) -> Option<u64> {
        if block.kind == Kind::Botm {
            return None;
        }
        // Numbers start at 1 and go modulo 8, and at most 7 blocks are outstanding.
        let behind = self.blocks_sent.wrapping_sub(u64::from(block.seq.get())) % 8;
        self.blocks_sent.checked_sub(behind)
    }

    fn send_later(&mut self, segment: Segment<Bytes>, mut flying: Option<Flying>) {
        for part in segment.parts(self.packet) {
            let flying = if part.trailer.is_some() { flying.take() } else { None };
            self.outbox.push_back(Outgoing { part, flying });
        }
    }

    fn flush(&mut self, context: &Context) {
        while let Some(mut out) = self.outbox.pop_front() {
            let (now, number) = (clock::now(), self.wire.next());
            if let Some(flying) = &mut out.flying {
                flying.each(|trail| trail.mark(now, context.own.host, Cause::Host));
                // Before the packet: the reader may be faster than this thread.
                context.outward().keep(number, flying.clone());
            }
            if !self.put(now, &out.part) {
                context.outward().fetch(number);
                return self.outbox.push_front(out);
            }
        }
    }

    /// Sends one packet.
    fn put(&mut self, now: Time, part: &Part<Bytes>) -> bool {
        self.envelopes.clear();
        envelope::write(part, &mut self.envelopes);
        let left_out = encode(&self.envelopes, self.wire.room(), &mut self.body);
        let (size, controls) = (part.envelopes(), part.controls() as u16);
        let sent = self.wire.send(now, size, controls, Body::Octets(&self.body));
        self.wire.cut += u64::from(sent && left_out > 0);
        sent
    }

    /// Takes in one packet, if one has come. Answers when that was.
    fn hear(&mut self, context: &Context) -> Option<Time> {
        let view = self.wire.receive()?;
        let now = clock::now();
        let flying = context.landed(view.header.number, &view.record, now);
        match decode(view.body, &mut self.envelopes) {
            None => return Some(now),
            Some(left_out) => self.incomplete |= left_out > 0,
        }
        for part in self.reader.read(&self.envelopes) {
            let Part { data, control, trailer } = part;
            if trailer.is_some() {
                self.completing = flying.clone();
            }
            self.urp.receive(now, Part { data: data.into(), control, trailer });
            self.accept(now, context);
        }
        Some(now)
    }

    /// Keeps what the protocol has accepted for the application.
    fn accept(&mut self, now: Time, context: &Context) {
        while let Some(delivery) = self.urp.take() {
            let carried = self.completing.take().and_then(|mut flying| {
                flying.each(|trail| trail.mark(now, context.own.host, Cause::Host));
                self.step_count += 1;
                add(&mut self.steps, flying.block.steps());
                flying.message
            });
            let bytes = Payload::len(&delivery.data);
            // Octets that did not fit into a capsule cannot be told.
            let right = self.incomplete || octets::are(&delivery.data, self.bytes_accepted);
            self.wrong_data += u64::from(!right);
            self.bytes_accepted += u64::from(bytes);
            self.inbox.push_back(Arrival { bytes, end: delivery.end, carried });
            // The host of a real interface has a buffer posted whenever it is asked for one.
            if self.echo == Echo::Posted {
                self.urp.consumed(now, u64::from(bytes));
            }
        }
        // Records of a block that was not accepted.
        self.completing = None;
    }

    pub fn take(&mut self, now: Time, context: &Context) -> Option<Taken> {
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
        if self.echo == Echo::Consumption {
            self.urp.consumed(now, u64::from(taken.bytes));
            self.say(now, context);
        }
        context.inward().taken.fetch_add(u64::from(taken.bytes), Ordering::AcqRel);
        Some(taken)
    }

    pub fn report(&self) -> ProtocolReport {
        let sending = self.urp.counters().sending;
        let mut notes = wire_notes(&self.wire);
        if self.wrong_data > 0 {
            notes.push(wrong_blocks(self.wrong_data));
        }
        ProtocolReport {
            retransmissions: sending.resent,
            timeouts: sending.timeouts,
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

impl AsFd for Urp {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wire.as_fd()
    }
}
