//! From a system write to units of a protocol: the sending side of an end.

use std::collections::{BTreeMap, VecDeque};
use trunkline_core::{Seldom, Untouched};
use trunkline_scenario::Split;
use trunkline_transport::{Extent, Rounds};

/// Requests that may wait for the interface when a system write returns: the next one is ready when the
/// interface is (a choice; none of the reports states the drivers' limits).
const WAITING_REQUESTS: usize = 1;

/// A system write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Write {
    /// Bytes for the protocol.
    pub bytes: u32,
    /// Whether a message ends behind them.
    pub end: bool,
    /// Whether the message is empty, and the byte only there because a stream cannot carry nothing.
    pub empty: bool,
    /// Whether it may be counted by [rounds](Rounds): not that of a datagram.
    pub rounds: Option<u32>,
}

/// A piece of a system write, as the interface takes it.
#[derive(Debug)]
pub struct Request<C> {
    /// Bytes for the protocol.
    pub bytes: u32,
    /// Whether a message ends behind them.
    pub end: bool,
    /// Whether the message is empty, and the byte a filler.
    pub empty: bool,
    /// The companions of the message for its reader, with its last request.
    pub carried: Option<C>,
}

/// A message whose end has been handed to the protocol.
#[derive(Debug)]
struct Message<C> {
    /// The number of units that have been handed over with it.
    units: u64,
    carried: C,
}

/// The writes of an end that the other one has not answered for. A message brings a `C` to its reader.
#[derive(Debug)]
pub struct SendQueue<C> {
    under_way: Seldom<UnderWay<C>>,
    /// Units of all requests handed over, and places in the stream: written, and handed over.
    units: u64,
    written: u64,
    offered: u64,
}

/// What is kept of writes that do not [pass](SendQueue::pass).
#[derive(Debug)]
struct UnderWay<C> {
    /// Requests that the interface has not taken.
    queue: VecDeque<Request<C>>,
    /// The requests that a limited interface has: the number of units handed over with each.
    taken: VecDeque<u64>,
    messages: VecDeque<Message<C>>,
    rounds: Rounds,
}

impl<C> UnderWay<C> {
    const NONE: UnderWay<C> = UnderWay {
        queue: VecDeque::new(),
        taken: VecDeque::new(),
        messages: VecDeque::new(),
        rounds: Rounds::NONE,
    };
}

impl<C> Default for UnderWay<C> {
    fn default() -> UnderWay<C> {
        UnderWay::NONE
    }
}

impl<C: 'static> Untouched for UnderWay<C> {
    const UNTOUCHED: &'static UnderWay<C> = &UnderWay::NONE;
}

impl<C> Default for SendQueue<C> {
    fn default() -> SendQueue<C> {
        SendQueue { under_way: Seldom::default(), units: 0, written: 0, offered: 0 }
    }
}

impl<C: 'static> SendQueue<C> {
    /// Takes a system write, and cuts it by the interface's rules. `carried` is what a message that ends there
    /// brings to its reader.
    pub fn write(&mut self, split: &[Split], write: Write, mut carried: impl FnMut() -> C) {
        if let Some(bytes) = write.rounds {
            self.under_way.rounds.begin(bytes, self.written);
        }
        for (bytes, last) in pieces(split, write.bytes) {
            let end = write.end && last;
            let carried = end.then(&mut carried);
            self.under_way.queue.push_back(Request { bytes, end, empty: write.empty, carried });
        }
        self.written += u64::from(write.bytes);
    }

    /// Counts a write that goes to the protocol at once, as one unit.
    pub fn pass(&mut self, bytes: u32) {
        self.written += u64::from(bytes);
        self.offered += u64::from(bytes);
        self.units += 1;
    }

    /// Requests that the interface has not taken.
    pub fn queued(&self) -> usize {
        self.under_way.queue.len()
    }

    /// Whether so little waits for the interface that a system write may return.
    pub fn has_room(&self) -> bool {
        self.under_way.queue.len() <= WAITING_REQUESTS
    }

    /// Requests that a limited interface has.
    pub fn outstanding(&self) -> usize {
        self.under_way.taken.len()
    }

    /// The next request for an interface that takes `limit` of them and has been given `starting` more than it
    /// knows of.
    pub fn next(&mut self, limit: Option<u32>, starting: usize) -> Option<Request<C>> {
        let most = limit.map_or(usize::MAX, |limit| limit as usize);
        // To look at what is empty does not touch it.
        if self.under_way.taken.len() + starting >= most || self.under_way.queue.is_empty() {
            return None;
        }
        self.under_way.queue.pop_front()
    }

    /// A request of so many bytes goes to the protocol, which cuts it into `units`: its stretch of the stream.
    pub fn hand_over(&mut self, bytes: u32, units: u64, limited: bool) -> Extent {
        let data = Extent::new(self.offered, bytes);
        self.offered += u64::from(bytes);
        self.units += units;
        if limited {
            self.under_way.taken.push_back(self.units);
        }
        data
    }

    /// Keeps what the message brings that ends with the request handed over last.
    pub fn keep(&mut self, carried: C) {
        self.under_way.messages.push_back(Message { units: self.units, carried });
    }

    /// The companions of the message that ends with the unit which makes it `units` in all.
    pub fn ending_with(&mut self, units: u64) -> Option<&mut C> {
        let at = self.under_way.messages.partition_point(|message| message.units < units);
        let found = self.under_way.messages.get_mut(at).filter(|message| message.units == units);
        found.map(|message| &mut message.carried)
    }

    /// Forgets the messages of which all units are answered for.
    pub fn forget(&mut self, answered: u64) {
        while self.under_way.messages.front().is_some_and(|message| message.units <= answered) {
            self.under_way.messages.pop_front();
        }
    }

    /// Whether all units of the oldest request that the interface has are answered for.
    pub fn is_done(&self, answered: u64) -> bool {
        self.under_way.taken.front().is_some_and(|&units| units <= answered)
    }

    /// The interface is done with the oldest request.
    pub fn release(&mut self) {
        self.under_way.taken.pop_front();
    }

    /// The place in the stream up to which requests have been handed over.
    pub fn offered(&self) -> u64 {
        self.offered
    }

    /// Bytes that were written and have not been handed over.
    pub fn behind(&self) -> u64 {
        self.written - self.offered
    }

    /// Data go out for the first time, when everything up to `answered` has been answered for.
    pub fn first_sent(&mut self, data: Extent, answered: u64) {
        self.under_way.rounds.count(data, answered);
    }

    /// The rounds of each size of write.
    pub fn rounds(&self) -> BTreeMap<u32, Vec<u32>> {
        self.under_way.rounds.whole()
    }
}

/// The pieces of a system write of `bytes`: the size of each, and whether it is the last.
pub fn pieces(split: &[Split], bytes: u32) -> impl Iterator<Item = (u32, bool)> + use<> {
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

    #[test]
    fn an_interface_takes_as_many_requests_as_it_may_have() {
        let mut send_queue = SendQueue::default();
        let split = [Split { below: None, piece: 100 }];
        let write = Write { bytes: 350, end: true, empty: false, rounds: None };
        send_queue.write(&split, write, || 'a');
        assert!(!send_queue.has_room());
        let mut given = Vec::new();
        while let Some(request) = send_queue.next(Some(2), 0) {
            given.push((request.bytes, request.end));
            assert_eq!(send_queue.hand_over(request.bytes, 2, true).len, request.bytes);
        }
        assert_eq!(given, [(100, false), (100, false)]);
        assert!(send_queue.next(Some(3), 1).is_none(), "one more is on its way");
        assert!(!send_queue.is_done(1) && send_queue.is_done(2));
        send_queue.release();
        assert!(
            !send_queue.is_done(3)
                && send_queue.next(Some(2), 0).is_some()
                && send_queue.has_room()
        );
        assert_eq!(send_queue.offered(), 200);
    }

    #[test]
    fn a_message_is_found_by_its_last_unit_until_that_is_answered_for() {
        let mut send_queue = SendQueue::default();
        for (units, carried) in [(3, 'a'), (1, 'b'), (2, 'c')] {
            send_queue.hand_over(10, units, false);
            send_queue.keep(carried);
        }
        assert_eq!(send_queue.ending_with(4), Some(&mut 'b'));
        assert_eq!(send_queue.ending_with(5), None);
        send_queue.forget(5);
        assert_eq!(send_queue.ending_with(4), None);
        assert_eq!(send_queue.ending_with(6), Some(&mut 'c'));
    }
}
