//! A protocol without I/O on a socket, each of its packets in a capsule.

use super::{Taken, Write};
use crate::clock;
use crate::context::Context;
use crate::run::ProtocolReport;
use crate::shared::{Carried, Flying};
use crate::wire::Wire;
use std::collections::{BTreeMap, VecDeque};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::Ordering;
use trunkline_core::{Cause, Time};
use trunkline_engine::{Note, NoteKind, wrong_blocks};
use trunkline_host::wire::{Delivered, Departure, Wired};
use trunkline_host::{self as host, Request, SendQueue};
use trunkline_measure::{Step, Trail, Waiting};
use trunkline_scenario::{Echo, Interface};
use trunkline_transport::protocol::Unit;

/// Packets that are taken off the socket in one go.
const BATCH: usize = 64;

/// A packet that the socket has not taken; its octets are the end's.
#[derive(Debug)]
struct Outgoing {
    departure: Departure,
    /// The records of the unit that it ends.
    flying: Option<Flying>,
}

/// Accepted data.
#[derive(Debug)]
struct Arrival {
    bytes: u32,
    end: bool,
    carried: Option<Carried>,
}

/// An end whose protocol is this laboratory's own.
#[derive(Debug)]
pub(crate) struct Capsules {
    wire: Wire,
    protocol: Box<dyn Wired>,
    /// Its rules for cutting writes, its limit of requests, and when it answers for what has come.
    interface: Interface,
    send_queue: SendQueue<Carried>,
    /// The packet that the socket has not taken, and its octets.
    pending: Option<Outgoing>,
    octets: Vec<u8>,
    /// The records of units that have come and are not taken, by number.
    early: BTreeMap<u64, Flying>,
    inbox: VecDeque<Arrival>,
    /// Units accepted that are not what was sent, in its order: losses and copies together can deceive URP.
    wrong_data: u64,
    /// Whether nothing more is to be sent.
    is_cut_off: bool,
    steps: Vec<Step>,
    step_count: u64,
}

impl Capsules {
    /// An end on `wire`. An interface neither cuts a datagram nor counts it as a request.
    pub fn new(wire: Wire, protocol: Box<dyn Wired>, interface: &Interface) -> Capsules {
        let mut interface = interface.clone();
        if protocol.is_datagram() {
            (interface.split, interface.requests) = (Vec::new(), None);
        }
        if protocol.end().gathers() {
            interface.requests = None;
        }
        if protocol.is_of_host() {
            interface.echo = Echo::Consumption;
        }
        Capsules {
            wire,
            protocol,
            interface,
            send_queue: SendQueue::default(),
            pending: None,
            octets: Vec::new(),
            early: BTreeMap::new(),
            inbox: VecDeque::new(),
            wrong_data: 0,
            is_cut_off: false,
            steps: Vec::new(),
            step_count: 0,
        }
    }

    pub fn write(&mut self, now: Time, write: Write, context: &Context) {
        let Write { bytes, end, carried } = write;
        let rounds = (!self.protocol.is_datagram()).then_some(bytes);
        let write = host::Write { bytes, end, empty: false, rounds };
        // Before the packets: the reader may be faster than this thread.
        context.outward().sent.fetch_add(amount(bytes, end), Ordering::AcqRel);
        self.send_queue.write(&self.interface.split, write, || carried.clone());
        self.say(now, context);
    }

    pub fn written(&self) -> bool {
        let end = self.protocol.end();
        self.send_queue.has_room() && end.unsent() <= end.room()
    }

    pub fn blocked(&self) -> bool {
        self.pending.is_some()
    }

    pub fn dead(&self) -> bool {
        self.protocol.end().dead()
    }

    /// Sends nothing more, whatever is left.
    pub fn cut_off(&mut self) {
        self.is_cut_off = true;
        self.pending = None;
    }

    pub fn deadline(&self) -> Option<Time> {
        self.protocol.end().deadline().filter(|_| !self.is_cut_off)
    }

    pub fn waiting(&self, now: Time) -> Option<Waiting> {
        let end = self.protocol.end();
        if let Some(held) = end.held(now) {
            return Some(host::waiting(held));
        }
        if end.unsent() > 0 || self.blocked() {
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
        if self.protocol.end().deadline().is_some_and(|deadline| deadline <= now) {
            self.protocol.end_mut().expire(now);
        }
        self.say(now, context);
    }

    /// Says everything that can be said.
    fn say(&mut self, now: Time, context: &Context) {
        if self.is_cut_off {
            return;
        }
        self.start_requests(now, context);
        while self.send_pending(context) {
            self.octets.clear();
            let room = self.wire.room();
            let Some(departure) = self.protocol.depart(now, room, &mut self.octets) else { return };
            if departure.data.len > 0 {
                let end = self.protocol.end();
                let answered = self.send_queue.offered() - end.unsent() - end.unanswered();
                self.send_queue.first_sent(departure.data, answered);
            }
            let flying = departure.unit.map(|unit| self.leave(now, &unit, context));
            self.pending = Some(Outgoing { departure, flying });
        }
    }

    /// Hands requests to the protocol, as many as the interface takes.
    fn start_requests(&mut self, now: Time, context: &Context) {
        let answered = self.protocol.end().answered();
        self.send_queue.forget(answered);
        while self.send_queue.is_done(answered) {
            self.send_queue.release();
        }
        let limit = self.interface.requests;
        while let Some(Request { bytes, end, carried, .. }) = self.send_queue.next(limit, 0) {
            let units = self.protocol.end().units_of(bytes, end);
            let data = self.send_queue.hand_over(bytes, units, limit.is_some());
            self.protocol.offer(now, data, end);
            if let Some(mut carried) = carried {
                carried.trail.mark(now, context.own.requests, Cause::Window);
                self.send_queue.keep(carried);
            }
        }
    }

    /// Books what a unit that leaves now has waited for, and the message that it completes.
    fn leave(&mut self, now: Time, unit: &Unit, context: &Context) -> Flying {
        let place = context.own;
        let mut trail = Trail::new(unit.eligible.min(now));
        if let Some(first) = unit.first_sent {
            trail.mark(first, place.host, Cause::Host);
            trail.mark(now, place.transport, Cause::Recover);
        }
        let ending = unit.end.then(|| unit.number.wrapping_add(1));
        let carried = ending.and_then(|units| self.send_queue.ending_with(units));
        let message = carried.map(|carried| {
            match unit.first_sent {
                Some(_) => carried.trail.mark(now, place.transport, Cause::Recover),
                None => carried.trail.mark(unit.eligible, place.transport, Cause::Window),
            }
            carried.clone()
        });
        Flying { block: trail, message }
    }

    /// Sends what is pending. Answers whether nothing is any more.
    fn send_pending(&mut self, context: &Context) -> bool {
        let Some(Outgoing { departure, flying }) = &mut self.pending else { return true };
        let (now, number) = (clock::now(), self.wire.next());
        if let Some(flying) = flying {
            flying.each(|trail| trail.mark(now, context.own.host, Cause::Host));
            // Before the packet: the reader may be faster than this thread.
            context.outward().keep(number, flying.clone());
        }
        let Departure { size, controls, filler, cut, .. } = *departure;
        if !self.wire.send(now, (size, controls), &self.octets, filler) {
            context.outward().fetch(number);
            return false;
        }
        self.wire.cut += u64::from(cut);
        self.pending = None;
        true
    }

    /// Takes in one packet, if one has come. Answers when that was.
    fn hear(&mut self, context: &Context) -> Option<Time> {
        let view = self.wire.receive()?;
        let now = clock::now();
        let flying = context.landed(view.header.number, &view.record, now);
        let completed = self.protocol.arrive(now, view.body, view.header.path_size);
        if let (Some(number), Some(mut flying)) = (completed, flying) {
            flying.each(|trail| trail.mark(now, context.own.host, Cause::Host));
            self.early.insert(number, flying);
        }
        self.accept(now, context);
        Some(now)
    }

    /// Keeps what the protocol has accepted for the application.
    fn accept(&mut self, now: Time, context: &Context) {
        while let Some(Delivered { number, bytes, end, right }) = self.protocol.take() {
            let carried = self.early.remove(&number).and_then(|mut flying| {
                flying.each(|trail| trail.mark(now, context.own.transport, Cause::Recover));
                self.step_count += 1;
                add(&mut self.steps, flying.block.steps());
                flying.message
            });
            self.wrong_data += u64::from(!right);
            self.inbox.push_back(Arrival { bytes, end, carried });
            // The host of a real interface has a buffer posted whenever it is asked for one.
            if self.interface.echo == Echo::Posted {
                self.protocol.end_mut().consumed(now, u64::from(bytes));
            }
        }
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
        if self.interface.echo == Echo::Consumption {
            self.protocol.end_mut().consumed(now, u64::from(taken.bytes));
            self.say(now, context);
        }
        // A copy of a datagram is not one of those that were sent.
        if !self.protocol.is_datagram() || taken.carried.is_some() {
            let amount = amount(taken.bytes, taken.end);
            context.inward().taken.fetch_add(amount, Ordering::AcqRel);
        }
        Some(taken)
    }

    pub fn report(&self) -> ProtocolReport {
        let counters = self.protocol.end().counters();
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

impl AsFd for Capsules {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wire.as_fd()
    }
}

/// What counts as sent and as taken with so many bytes, if a message ends behind them or not: an empty one counts too.
fn amount(bytes: u32, end: bool) -> u64 {
    u64::from(bytes) + u64::from(end)
}

/// Adds steps to sums by place and cause.
fn add(sums: &mut Vec<Step>, steps: &[Step]) {
    for step in steps {
        let same = |sum: &&mut Step| sum.place == step.place && sum.cause == step.cause;
        match sums.iter_mut().find(same) {
            Some(sum) => sum.span += step.span,
            None => sums.push(*step),
        }
    }
}

/// Notes of a wire that had to do something that the path does not see.
fn wire_notes(wire: &Wire) -> Vec<Note> {
    let mut notes = Vec::new();
    if wire.cut > 0 {
        let room = wire.room();
        let text = format!(
            "of each packet {room} bytes travel at most, as the hosts' MTU allows; the path counts all"
        );
        notes.push(Note::new(NoteKind::NotEmulated, text));
    }
    if let Some(error) = wire.refusal {
        let error = std::io::Error::from(error);
        let text = format!("a host's system refused packets that were to be sent: {error}");
        notes.push(Note::new(NoteKind::Lost, text));
    }
    notes
}
