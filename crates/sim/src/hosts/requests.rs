//! From a system write to requests of the interface, and the write's return.

use super::end::{Doing, End, Message, Request};
use super::endings::Ending;
use super::flying::Carried;
use super::jobs::{EndId, Job};
use super::world::World;
use trunkline_core::{Cause, Time};
use trunkline_scenario::Split;
use trunkline_transport::Extent;
use trunkline_workload::Outcome;

/// Requests that may wait for the interface when a system write returns: the next one is ready when the
/// interface is (a choice; none of the reports states the drivers' limits).
const WAITING_REQUESTS: usize = 1;

impl World<'_> {
    /// The processor has copied a system write: it becomes requests.
    pub fn wrote(&mut self, id: EndId, bytes: u32, ends: bool) {
        let now = self.net.now();
        let place = self.places_of(id).processor;
        let split = &self.host_of(id).interface.split;
        let end = &mut self.ends[id.index()];
        end.trail.mark(now, place, Cause::Host);
        if end.speaker.is_connected() {
            end.rounds.begin(bytes, end.written);
        }
        // TCP cannot carry nothing.
        let empty = bytes == 0 && end.speaker.is_tcp();
        let bytes = bytes.max(u32::from(empty));
        for (bytes, last) in pieces(split, bytes) {
            let ends = ends && last;
            let carried = ends.then(|| (end.trail.clone(), end.app.stamp()));
            end.queue.push_back(Request { bytes, end: ends, empty, carried });
        }
        end.written += u64::from(bytes);
        end.waiting_since = end.clock.spent_by(now);
        if end.doing != Doing::Ended {
            end.doing = Doing::Writing;
        }
        self.pump(id);
    }

    /// The processor starts to hand the next request to the interface, if that takes one.
    pub fn start_request(&mut self, id: EndId) {
        let now = self.net.now();
        let place = self.places_of(id).requests;
        let host = self.host_of(id);
        let end = &mut self.ends[id.index()];
        let limit = host.interface.requests.map_or(usize::MAX, |limit| limit as usize);
        if end.starting.is_some() || end.outstanding() >= limit {
            return;
        }
        let Some(mut request) = end.queue.pop_front() else { return };
        if let Some((trail, _)) = &mut request.carried {
            trail.mark(now, place, Cause::Window);
        }
        let cost = host.processor.request.of(u64::from(request.bytes));
        end.starting = Some(request);
        self.on_processor(id, cost, Job::Requested);
    }

    /// The interface has a request.
    pub fn requested(&mut self, id: EndId) {
        let now = self.net.now();
        let place = self.places_of(id).processor;
        let limited = self.host_of(id).interface.requests.is_some();
        let end = &mut self.ends[id.index()];
        let Some(mut request) = end.starting.take() else { return };
        end.forget_answered();
        let data = Extent { offset: end.offered, len: request.bytes };
        end.offered += u64::from(request.bytes);
        end.blocks += end.speaker.blocks_of(request.bytes, request.end);
        if limited {
            end.taken.push_back(end.blocks);
        }
        if let Some((trail, _)) = &mut request.carried {
            trail.mark(now, place, Cause::Host);
        }
        let kept = end.speaker.offer(now, data, request.end, request.carried);
        if let Some(carried) = kept {
            match end.speaker.is_tcp() {
                true => end.hand_over(now, data.end(), request.empty, carried),
                false => end.messages.push_back(Message { block: end.blocks, trail: carried.0 }),
            }
        }
        self.pump(id);
    }

    /// Tells the processor when all of a request has been answered for: of one at a time, each with an
    /// interrupt.
    pub fn release_request(&mut self, id: EndId) {
        let cost = self.host_of(id).processor.interrupt.of(0);
        let end = &mut self.ends[id.index()];
        let Some(&last) = end.taken.front() else { return };
        if end.releasing || end.speaker.answered_blocks() < last {
            return;
        }
        end.releasing = true;
        self.interrupt(id, cost, Job::Released);
    }

    /// The processor knows that a request is done.
    pub fn released(&mut self, id: EndId) {
        let end = &mut self.ends[id.index()];
        end.releasing = false;
        end.taken.pop_front();
        self.pump(id);
    }

    /// Lets a system write return when little enough waits.
    pub fn return_write(&mut self, id: EndId) {
        let end = &self.ends[id.index()];
        if end.doing == Doing::Writing
            && end.queue.len() <= WAITING_REQUESTS
            && end.speaker.has_room()
        {
            self.book_waiting(id);
            self.step(id, Outcome::Written);
        }
    }
}

impl End {
    /// Place in the stream up to which everything has been answered for.
    pub fn answered(&self) -> u64 {
        self.offered - self.speaker.unsent() - self.speaker.unechoed()
    }

    /// A message has been handed to TCP, with its last octet before `place`.
    fn hand_over(&mut self, now: Time, place: u64, empty: bool, carried: Carried) {
        let since = self.clock.spent_by(now);
        self.endings.push(Ending { place, empty, carried, since, sent: false, left: false });
    }

    /// Forgets the messages that have been answered for.
    fn forget_answered(&mut self) {
        let answered = self.speaker.answered_blocks();
        while self.messages.front().is_some_and(|message| message.block <= answered) {
            self.messages.pop_front();
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
