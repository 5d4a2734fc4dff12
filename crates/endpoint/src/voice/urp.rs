//! URP, the sans-IO machine, with each network packet in a capsule.

use super::datagrams::add;
use super::envelopes::{decode, encode};
use super::octets;
use super::{Taken, WAITING_BYTES, Write, wire_notes};
use crate::EndpointError;
use crate::clock;
use crate::context::Context;
use crate::run::VoiceReport;
use crate::shared::{Carried, Flying};
use crate::wire::{Body, Wire};
use bytes::Bytes;
use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::Ordering;
use trunkline_core::{Cause, Time};
use trunkline_measure::{Step, Trail, Waiting, wrong_blocks};
use trunkline_scenario::{Echo, Interface, Split, UrpSettings};
use trunkline_transport::envelope::{self, Envelope, Reader};
use trunkline_transport::urp::{self, Block, Kind, Part, Profile, Segment, Settings};
use trunkline_transport::{Extent, Payload, Rounds};

/// Requests that may wait for the interface when a system write returns, as in the simulator.
const WAITING_REQUESTS: usize = 1;
/// Packets that are taken off the socket in one go.
const BATCH: usize = 64;

/// A piece of a system write.
#[derive(Debug)]
struct Request {
    bytes: u32,
    /// Does it end a message, and what does that bring to its reader?
    end: Option<Carried>,
}

/// A message whose end has been handed to the protocol.
#[derive(Debug)]
struct Message {
    /// The number of its last block.
    block: u64,
    carried: Carried,
}

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
    requests: usize,
    echo: Echo,
    queue: VecDeque<Request>,
    /// Where limited, requests that the interface has: the number of the last block of each.
    requested: VecDeque<u64>,
    /// Blocks of all requests handed over; blocks sent at least once.
    blocks: u64,
    blocks_sent: u64,
    /// Bytes written; offered to the protocol; sent at least once.
    bytes_written: u64,
    bytes_offered: u64,
    bytes_sent: u64,
    /// Accepted of what the other end has sent.
    bytes_accepted: u64,
    /// Blocks accepted that were not the next of the stream: losses and copies together can deceive URP.
    deceived: u64,
    /// Is nothing more to be sent?
    is_cut_off: bool,
    /// Have octets been left out for want of room?
    incomplete: bool,
    messages: VecDeque<Message>,
    outbox: VecDeque<Outgoing>,
    /// The records of the block that came last.
    completing: Option<Flying>,
    inbox: VecDeque<Arrival>,
    rounds: Rounds,
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
            requests: interface.requests.map_or(usize::MAX, |most| most as usize),
            echo: interface.echo,
            queue: VecDeque::new(),
            requested: VecDeque::new(),
            blocks: 0,
            blocks_sent: 0,
            bytes_written: 0,
            bytes_offered: 0,
            bytes_sent: 0,
            bytes_accepted: 0,
            deceived: 0,
            is_cut_off: false,
            incomplete: false,
            messages: VecDeque::new(),
            outbox: VecDeque::new(),
            completing: None,
            inbox: VecDeque::new(),
            rounds: Rounds::default(),
            steps: Vec::new(),
            step_count: 0,
            envelopes: Vec::new(),
            body: Vec::new(),
        })
    }

    pub fn write(&mut self, now: Time, write: Write, context: &Context) {
        let Write { bytes, end, carried } = write;
        self.rounds.begin(bytes, self.bytes_written);
        self.bytes_written += u64::from(bytes);
        for (bytes, last) in pieces(&self.split, bytes) {
            let end = (end && last).then(|| carried.clone());
            self.queue.push_back(Request { bytes, end });
        }
        self.say(now, context);
    }

    pub fn written(&self) -> bool {
        self.queue.len() <= WAITING_REQUESTS && self.urp.unsent() <= WAITING_BYTES
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
        (!self.queue.is_empty()).then_some(Waiting::Request)
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
        self.forget_answered();
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
        let answered = self.answered_blocks();
        while self.requested.front().is_some_and(|&last| last <= answered) {
            self.requested.pop_front();
        }
        while self.requested.len() < self.requests
            && let Some(Request { bytes, end }) = self.queue.pop_front()
        {
            self.urp.offer(now, octets::from(self.bytes_offered, bytes), end.is_some());
            self.bytes_offered += u64::from(bytes);
            self.blocks += match bytes {
                0 => u64::from(end.is_some()),
                _ => u64::from(bytes.div_ceil(self.urp.settings().block.into())),
            };
            if self.requests < usize::MAX {
                self.requested.push_back(self.blocks);
            }
            if let Some(mut carried) = end {
                carried.trail.mark(now, context.own.requests, Cause::Window);
                self.messages.push_back(Message { block: self.blocks, carried });
            }
        }
    }

    fn answered_blocks(&self) -> u64 {
        self.urp.counters().sending.blocks - self.urp.outstanding() as u64
    }

    /// Forgets messages that have been answered for.
    fn forget_answered(&mut self) {
        let answered = self.answered_blocks();
        while self.messages.front().is_some_and(|message| message.block <= answered) {
            self.messages.pop_front();
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
            let answered = self.bytes_offered - self.urp.unsent() - self.urp.unechoed();
            self.rounds.count(Extent::new(self.bytes_sent, Payload::len(&block.data)), answered);
            self.bytes_sent += u64::from(Payload::len(&block.data));
        }
        let message = self.message_ending_in(block).map(|message| {
            let trail = &mut message.carried.trail;
            match block.first_sent {
                Some(_) => trail.mark(now, place.transport, Cause::Recover),
                None => trail.mark(block.eligible, place.transport, Cause::Window),
            }
            message.carried.clone()
        });
        Flying { block: trail, message }
    }

    fn message_ending_in(&mut self, block: &Block<Bytes>) -> Option<&mut Message> {
        if block.kind == Kind::Botm {
            return None;
        }
        // Numbers start at 1 and go modulo 8, and at most 7 blocks are outstanding.
        let behind = self.blocks_sent.wrapping_sub(u64::from(block.seq.get())) % 8;
        let number = self.blocks_sent.checked_sub(behind)?;
        self.messages.iter_mut().find(|message| message.block == number)
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
            self.deceived += u64::from(!right);
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

    pub fn report(&self) -> VoiceReport {
        let sending = self.urp.counters().sending;
        let mut notes = wire_notes(&self.wire);
        if self.deceived > 0 {
            notes.push(format!("error: {}", wrong_blocks(self.deceived)));
        }
        VoiceReport {
            retransmissions: sending.resent,
            timeouts: sending.timeouts,
            packets_sent: self.wire.sent,
            packets_received: self.wire.received,
            blocks: self.steps.clone(),
            block_count: self.step_count,
            rounds: self.rounds.whole(),
            notes,
            ..VoiceReport::default()
        }
    }
}

impl AsFd for Urp {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wire.as_fd()
    }
}

fn urp_settings(settings: &UrpSettings, echo: Echo) -> Result<Settings, String> {
    let profile: Profile = settings.profile.parse().map_err(|error| format!("{error}"))?;
    let echo = match echo {
        Echo::Arrival => urp::Echo::Acceptance,
        Echo::Posted | Echo::Consumption => urp::Echo::Consumption,
    };
    Ok(Settings {
        block: settings.block,
        outstanding: settings.outstanding,
        timeout: settings.timeout,
        echo,
        ..Settings::of(profile)
    })
}

/// How a system write of `bytes` is cut: the size of each piece, and whether it is the last.
fn pieces(split: &[Split], bytes: u32) -> impl Iterator<Item = (u32, bool)> + use<> {
    let rule = split.iter().find(|rule| rule.below.is_none_or(|below| bytes < below));
    let piece = rule.map_or(bytes, |rule| rule.piece).max(1);
    let count = bytes.div_ceil(piece).max(1);
    (0..count).map(move |index| (piece.min(bytes - index * piece), index + 1 == count))
}
