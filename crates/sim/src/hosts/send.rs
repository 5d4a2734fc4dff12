//! From a system write to packets on the path.

use super::end::{Doing, End, Request};
use super::jobs::{EndId, Flying, Job};
use super::speaker::Outgoing;
use super::tag;
use super::trail::Trail;
use super::world::World;
use crate::network::{Parcel, RouteId};
use trunkline_core::{Cause, Span};
use trunkline_scenario::{ProtocolPlace, Split};
use trunkline_transport::Extent;
use trunkline_transport::urp::{Block, Control, Kind, Part, Segment};
use trunkline_workload::Outcome;

/// Requests that may wait for the interface when a system write returns: the next one is ready when the
/// interface is (a choice; none of the reports states the drivers' limits).
const WAITING_REQUESTS: usize = 1;
/// Bytes that may wait at a protocol on the host when a system write returns (a choice).
const WAITING_BYTES: u64 = 4096;

impl World<'_> {
    /// The processor has copied a system write: it becomes requests.
    pub fn wrote(&mut self, id: EndId, bytes: u32, ends: bool) {
        let now = self.net.now();
        let place = self.places_of(id).processor;
        let split = self.host_of(id).interface.split.clone();
        let stamp = self.ends[id.index()].app.stamp();
        let end = &mut self.ends[id.index()];
        end.trail.mark(now, place, Cause::Host);
        end.count_rounds_of(bytes);
        for (piece, last) in pieces(&split, bytes) {
            let end_of_message = ends && last;
            let trail = end_of_message.then(|| end.trail.clone());
            end.queued += u64::from(piece);
            end.queue.push_back(Request { bytes: piece, end: end_of_message, trail, stamp });
        }
        end.written += u64::from(bytes);
        end.waiting_since = end.clock.spent_by(now);
        end.doing = Doing::Writing;
        self.pump(id);
    }

    /// Moves everything of an end that can move.
    pub fn pump(&mut self, id: EndId) {
        self.start_request(id);
        self.take_accepted(id);
        self.transmit(id);
        self.release_request(id);
        self.set_deadline(id);
        self.settle(id);
        self.return_write(id);
    }

    /// The processor starts to hand the next request to the interface, if that takes one.
    fn start_request(&mut self, id: EndId) {
        let now = self.net.now();
        let (limit, cost) = {
            let host = self.host_of(id);
            (host.interface.requests, host.processor.request)
        };
        let place = self.places_of(id).requests;
        let end = &mut self.ends[id.index()];
        if end.starting.is_some() || limit.is_some_and(|limit| end.outstanding >= limit) {
            return;
        }
        let Some(mut request) = end.queue.pop_front() else { return };
        if let Some(trail) = &mut request.trail {
            trail.mark(now, place, Cause::Window);
        }
        end.outstanding += u32::from(limit.is_some());
        let cost = cost.of(u64::from(request.bytes));
        end.starting = Some(request);
        self.on_processor(id, cost, Job::Requested);
    }

    /// The interface has a request.
    pub fn requested(&mut self, id: EndId) {
        let now = self.net.now();
        let place = self.places_of(id).processor;
        let end = &mut self.ends[id.index()];
        let Some(request) = end.starting.take() else { return };
        end.queued -= u64::from(request.bytes);
        let data = Extent { offset: end.offered, len: request.bytes };
        end.offered += u64::from(request.bytes);
        if let Some(mut trail) = request.trail {
            trail.mark(now, place, Cause::Host);
            end.forget_answered();
            end.messages.push_back(Message {
                at: end.offered,
                empty: request.bytes == 0,
                trail,
                stamp: request.stamp,
            });
        }
        end.speaker.offer(now, data, request.end);
        self.pump(id);
    }

    /// Lets the protocol say what it has to say.
    fn transmit(&mut self, id: EndId) {
        let now = self.net.now();
        while let Some(out) = self.ends[id.index()].speaker.transmit(now) {
            let end = &mut self.ends[id.index()];
            end.in_hand += 1;
            if let Outgoing::Block(block) = &out {
                end.count_block(block);
            }
            self.prepare(id, out);
        }
    }

    /// The protocol's work on a segment: by the processor, then the board, or by the board alone.
    fn prepare(&mut self, id: EndId, out: Outgoing) {
        let host = self.host_of(id);
        let (processor, interface) = (&host.processor, &host.interface);
        if interface.protocol == ProtocolPlace::Board {
            return self.prepared(id, out);
        }
        let envelopes = out.envelopes();
        let work = match out {
            Outgoing::Control(_) => processor.control,
            _ => processor.send_block.of(envelopes),
        };
        let moving = interface.programmed.unwrap_or(Span::ZERO).scaled(envelopes, 1);
        let is_control = matches!(out, Outgoing::Control(_));
        let job = Job::Prepared(out);
        match is_control {
            true => self.interrupt(id, work + moving, job),
            false => self.on_processor(id, work + moving, job),
        }
    }

    /// A segment goes to the board.
    pub fn prepared(&mut self, id: EndId, out: Outgoing) {
        let interface = &self.host_of(id).interface;
        let cost = match out {
            Outgoing::Control(_) => interface.control,
            _ => interface.send_block.of(out.envelopes()),
        };
        self.on_board(id, false, cost, Job::Sent(out));
    }

    /// A segment leaves the board.
    pub fn sent(&mut self, id: EndId, out: Outgoing) {
        self.ends[id.index()].in_hand -= 1;
        match out {
            Outgoing::Block(block) => self.send_block(id, block),
            Outgoing::Control(control) => self.send_control(id, control),
            Outgoing::Datagram { bytes, ready } => self.send_datagram(id, bytes, ready),
        }
        self.settle(id);
        self.return_write(id);
    }

    fn send_block(&mut self, id: EndId, block: Block<Extent>) {
        let flying = self.fly(id, &block);
        let packet = self.ends[id.index()].packet;
        let parts: Vec<Part<Extent>> = Segment::Block(block).parts(packet).collect();
        let last = parts.len().saturating_sub(1);
        let mut flying = Some(flying);
        for (index, part) in parts.iter().enumerate() {
            let flying = if index == last { flying.take() } else { None };
            self.inject(id, part.envelopes(), part.controls(), tag::pack(part), flying);
        }
    }

    fn send_control(&mut self, id: EndId, control: Control) {
        let part = Part::control(control);
        self.inject(id, part.envelopes(), part.controls(), tag::pack(&part), None);
    }

    fn send_datagram(&mut self, id: EndId, bytes: u32, ready: trunkline_core::Time) {
        let now = self.net.now();
        let place = self.sending_place(id);
        let end = &mut self.ends[id.index()];
        end.sent += u64::from(bytes);
        let message = end.messages.pop_front();
        let stamp = message.as_ref().and_then(|message| message.stamp);
        let mut flying = Flying {
            block: Trail::new(ready),
            message: message.map(|message| message.trail),
            stamp,
        };
        flying.mark(now, place, Cause::Host);
        self.inject(id, bytes, 0, u64::from(bytes), Some(flying));
    }

    /// Puts one packet onto the path.
    fn inject(&mut self, id: EndId, size: u32, controls: u32, tag: u64, flying: Option<Flying>) {
        let route: RouteId = self.ends[id.index()].route;
        let trace = flying.map(|flying| {
            let trace = self.net.trace();
            self.ends[id.peer().index()].flying.insert(trace, Box::new(flying));
            trace
        });
        self.net.inject(Parcel { route, size, controls: controls as u16, tag, trace });
    }

    /// The records of a block that leaves now.
    fn fly(&mut self, id: EndId, block: &Block<Extent>) -> Flying {
        let now = self.net.now();
        let (sending, window) = (self.sending_place(id), self.places_of(id).window);
        let end = &mut self.ends[id.index()];
        let mut own = Trail::new(block.eligible);
        if let Some(first) = block.first_sent {
            own.mark(first, sending, Cause::Host);
            own.mark(now, window, Cause::Recover);
        }
        own.mark(now, sending, Cause::Host);
        let message = end.message_ending_in(block).map(|message| {
            if block.first_sent.is_some() {
                // It left before: since then its loss has been waited for.
                let mut again = message.trail.clone();
                again.mark(now, window, Cause::Recover);
                return again;
            }
            message.trail.mark(block.eligible, window, Cause::Window);
            message.trail.mark(now, sending, Cause::Host);
            message.trail.clone()
        });
        Flying { block: own, message, stamp: None }
    }

    /// Where the time between the window's opening and the packets' leaving is booked.
    fn sending_place(&self, id: EndId) -> u16 {
        let places = self.places_of(id);
        match self.host_of(id).interface.protocol {
            ProtocolPlace::Host => places.processor,
            ProtocolPlace::Board => places.board,
        }
    }

    /// Tells the processor when all of a request has been answered for.
    fn release_request(&mut self, id: EndId) {
        let host = self.host_of(id);
        let (limit, cost) = (host.interface.requests, host.processor.interrupt.of(0));
        let end = &mut self.ends[id.index()];
        let answered = end.starting.is_none() && end.speaker.idle();
        if limit.is_none() || end.outstanding == 0 || end.releasing || !answered {
            return;
        }
        end.releasing = true;
        self.interrupt(id, cost, Job::Released);
    }

    /// The processor knows that a request is done.
    pub fn released(&mut self, id: EndId) {
        let end = &mut self.ends[id.index()];
        end.releasing = false;
        end.outstanding = 0;
        self.pump(id);
    }

    /// Lets a system write return when little enough waits.
    fn return_write(&mut self, id: EndId) {
        let end = &self.ends[id.index()];
        let few = end.queue.len() <= WAITING_REQUESTS && end.speaker.unsent() <= WAITING_BYTES;
        if end.doing == Doing::Writing && few {
            self.book_waiting(id);
            self.step(id, Outcome::Written);
        }
    }
}

/// A message whose end has been handed to the protocol.
#[derive(Debug)]
pub(crate) struct Message {
    /// Where in the stream it ends.
    pub at: u64,
    /// Has its last request no data?
    pub empty: bool,
    pub trail: Trail,
    pub stamp: Option<trunkline_workload::Stamp>,
}

impl End {
    /// The message that `block` completes.
    fn message_ending_in(&mut self, block: &Block<Extent>) -> Option<&mut Message> {
        if block.kind == Kind::Botm {
            return None;
        }
        let (at, empty) = (block.data.offset + u64::from(block.data.len), block.data.len == 0);
        self.messages.iter_mut().find(|message| message.at == at && message.empty == empty)
    }

    /// Place in the stream up to which everything has been answered for.
    fn answered(&self) -> u64 {
        self.offered - self.speaker.unsent() - self.speaker.unechoed()
    }

    /// Forgets the messages that have been answered for.
    fn forget_answered(&mut self) {
        let answered = self.answered();
        while self.messages.front().is_some_and(|message| message.at < answered)
            || self.messages.len() > 1 && self.speaker.idle()
        {
            self.messages.pop_front();
        }
    }

    /// A write of `bytes` begins: its rounds are counted if it is the first of its size.
    fn count_rounds_of(&mut self, bytes: u32) {
        if bytes > 0 && self.rounds.counting.is_none() && !self.rounds.of.contains_key(&bytes) {
            self.rounds.of.insert(bytes, Vec::new());
            self.rounds.counting = Some((bytes, self.written));
        }
    }

    /// A block goes out. A round ends when the answer to its first block has come.
    fn count_block(&mut self, block: &Block<Extent>) {
        let (from, len) = (block.data.offset, block.data.len);
        let answered = self.answered();
        if block.first_sent.is_none()
            && let Some((size, begin)) = self.rounds.counting
            && from >= begin
            && let Some(rounds) = self.rounds.of.get_mut(&size)
        {
            if rounds.is_empty() || answered > self.rounds.from {
                self.rounds.from = from;
                rounds.push(0);
            }
            if let Some(round) = rounds.last_mut() {
                *round += len;
            }
            if from + u64::from(len) >= begin + u64::from(size) {
                self.rounds.counting = None;
            }
        }
        self.sent = self.sent.max(from + u64::from(len));
    }
}

impl Outgoing {
    /// How many envelopes it takes.
    fn envelopes(&self) -> u64 {
        match self {
            Outgoing::Block(block) => u64::from(block.data.len) + 4,
            Outgoing::Control(_) => 1,
            Outgoing::Datagram { bytes, .. } => u64::from(*bytes),
        }
    }
}

/// How a system write of `bytes` is cut: the size of each piece, and whether it is the last.
fn pieces(split: &[Split], bytes: u32) -> impl Iterator<Item = (u32, bool)> + use<> {
    let rule = split.iter().find(|rule| rule.below.is_none_or(|below| bytes < below));
    let piece = rule.map_or(bytes, |rule| rule.piece).max(1);
    let count = bytes.div_ceil(piece).max(1);
    (0..count).map(move |index| (piece.min(bytes - index * piece), index + 1 == count))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hawley 1989 §4.2.1: Version 9 puts a write of up to 511 bytes into stream blocks of 64, from 512
    /// bytes on into blocks of 1024.
    #[test]
    fn writes_are_cut_into_stream_blocks() {
        let v9 = [Split { below: Some(512), piece: 64 }, Split { below: None, piece: 1024 }];
        let cut = |bytes| pieces(&v9, bytes).collect::<Vec<_>>();
        assert_eq!(cut(0), [(0, true)]);
        assert_eq!(cut(64), [(64, true)]);
        assert_eq!(cut(65), [(64, false), (1, true)]);
        assert_eq!(cut(511).len(), 8);
        assert_eq!(cut(512), [(512, true)]);
        assert_eq!(cut(1025), [(1024, false), (1, true)]);
        assert_eq!(pieces(&[], 9000).collect::<Vec<_>>(), [(9000, true)]);
    }
}
