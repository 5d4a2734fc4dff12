//! The control messages of a receiver that have not been acknowledged.
//!
//! They are a queue: new ones go in behind, acknowledged ones out in front, and every packet repeats as many unacknowledged
//! ones as fit, the newest first of all (RFC 1030 §7), so that a lost packet costs nothing as long as another follows. If data
//! pay for repetitions ([`Credit`]), it repeats what they have paid for: half of that the newest, half all others in turn, so that a message that
//! was lost with all packets near it does not have to wait for the timer. When
//! the control timer runs out all are sent, in as many packets as that takes. If it runs out again, the oldest go alone until something
//! is acknowledged: what nobody hears, or what fills the path itself, is not to cost much.

use super::credit::Credit;
use super::serial::{WINDOW, ahead};
use super::wire::{Dialect, Message, Said};
use std::collections::VecDeque;
use std::ops::Range;
use trunkline_core::Span;

/// Messages that may wait for an acknowledgement; the other end keeps account of [`WINDOW`] of them.
const MOST: usize = WINDOW as usize - 64;

/// Octets of the messages of a packet that is sent to see whether the other end hears (a choice).
const ENQUIRY: usize = 32;

/// The messages without an acknowledgement.
#[derive(Debug, Clone)]
pub struct Log {
    dialect: Dialect,
    /// The octets that the messages of one packet may take.
    room: usize,
    messages: VecDeque<Message>,
    /// The number of the next message.
    next: u16,
    /// Messages at the end that have never been sent.
    fresh: usize,
    /// Messages in front that are still to be sent again, because the timer ran out.
    again: usize,
    /// Whether the oldest are to be sent alone.
    enquires: bool,
    /// Whether all have been sent again since something was acknowledged.
    is_repeated: bool,
    /// What pays for repetitions; without it they are free.
    credit: Option<Credit>,
    /// The number of the message that is the next to be repeated in turn.
    turn: u16,
}

impl Log {
    /// An empty log whose packets have room for so many octets of messages, in which repetitions are free.
    pub fn new(dialect: Dialect, room: usize) -> Log {
        let room = room.max(32);
        Log {
            dialect,
            room,
            messages: VecDeque::new(),
            next: 1,
            fresh: 0,
            again: 0,
            enquires: false,
            is_repeated: false,
            credit: None,
            turn: 1,
        }
    }

    /// The same, in which data pay for repetitions, in buffers of so many octets.
    pub fn with_credit(dialect: Dialect, room: usize, buffer: u32) -> Log {
        let log = Log::new(dialect, room);
        Log { credit: Some(Credit::new(log.room, buffer)), ..log }
    }

    /// Octets of data have come while a round trip takes `round`, which took `least` once.
    pub fn paid(&mut self, octets: u16, least: Span, round: Span) {
        self.credit.as_mut().into_iter().for_each(|it| it.earn(octets, least, round));
    }

    /// Whether another message may be added.
    pub fn has_room(&self) -> bool {
        self.messages.len() < MOST
    }

    /// Adds a message. Answers its number.
    pub fn add(&mut self, buffer: u32, said: Said) -> u16 {
        let sequence = self.next;
        self.next = sequence.wrapping_add(1);
        self.messages.push_back(Message { sequence, buffer, said });
        self.fresh += 1;
        sequence
    }

    /// Packets' numbers that one RESEND may name so that it fits into a packet.
    pub fn most_missing(&self) -> usize {
        ((self.room - super::wire::resend_head(self.dialect)) / 2) & !1
    }

    /// All up to `high` have come. Answers how many were in the log.
    pub fn acknowledge(&mut self, high: u16) -> usize {
        let Some(first) = self.messages.front() else { return 0 };
        let count = usize::from(ahead(high.wrapping_add(1), first.sequence));
        // What has not been sent cannot have come.
        if count > self.messages.len() - self.fresh {
            return 0;
        }
        self.messages.drain(..count);
        self.again = self.again.saturating_sub(count);
        self.is_repeated &= count == 0;
        count
    }

    /// Whether a message waits for an acknowledgement.
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Whether a packet is to be sent.
    pub fn is_due(&self) -> bool {
        self.fresh > 0 || self.again > 0 || self.enquires
    }

    /// Whether a packet would carry something that none has carried.
    pub fn is_fresh(&self) -> bool {
        self.fresh > 0
    }

    /// The number of the newest message.
    pub fn newest(&self) -> u16 {
        self.next.wrapping_sub(1)
    }

    /// All messages are to be sent again.
    pub fn repeat(&mut self) {
        self.again = self.messages.len() - self.fresh;
    }

    /// The control timer has run out.
    pub fn expired(&mut self) {
        if self.is_repeated {
            (self.again, self.enquires) = (0, self.messages.len() > self.fresh);
        } else {
            self.repeat();
            self.is_repeated = true;
        }
    }

    /// The messages of the next packet.
    pub fn compose(&mut self) -> Vec<Message> {
        let said = self.messages.len() - self.fresh;
        if std::mem::take(&mut self.enquires) {
            let count = self.fitting(0..said, ENQUIRY).max(1).min(said);
            return self.messages.range(..count).cloned().collect();
        }
        if self.again > 0 {
            let from = said - self.again;
            let count = self.fitting(from..self.messages.len(), self.room).max(1);
            self.again -= count.min(self.again);
            self.fresh = self.fresh.min(self.messages.len() - from - count);
            return self.messages.range(from..from + count).cloned().collect();
        }
        // As many of the new ones as fit; if all do, older ones in front of them.
        let count = self.fitting(said..self.messages.len(), self.room).max(1);
        self.fresh -= count;
        let (in_turn, newest) = self.repetitions(said, self.size(said..said + count));
        let both =
            self.messages.range(in_turn).chain(self.messages.range(newest.start..said + count));
        both.cloned().collect()
    }

    /// The messages in front of `said` that a packet repeats in which so many octets are taken: those whose turn it is, and the newest.
    fn repetitions(&mut self, said: usize, taken: usize) -> (Range<usize>, Range<usize>) {
        let free = self.room.saturating_sub(taken);
        let Some(octets) = self.credit.as_ref().map(Credit::octets) else {
            return (0..0, said - self.fitting_behind(said, free)..said);
        };
        let octets = octets.min(free);
        let newest = said - self.fitting_behind(said, octets / 2)..said;
        let first = self.messages.front().map_or(self.turn, |it| it.sequence);
        let from = usize::from(self.turn.wrapping_sub(first));
        let from = if from < newest.start { from } else { 0 };
        let left = octets - self.size(newest.clone());
        let in_turn = from..from + self.fitting(from..newest.start, left);
        self.turn = first.wrapping_add(in_turn.end as u16);
        let spent = self.size(newest.clone()) + self.size(in_turn.clone());
        self.credit.as_mut().into_iter().for_each(|it| it.spend(spent));
        (in_turn, newest)
    }

    fn sizes(&self, of: Range<usize>) -> impl DoubleEndedIterator<Item = usize> {
        self.messages.range(of).map(|message| message.size(self.dialect))
    }

    /// Octets that these messages take.
    fn size(&self, of: Range<usize>) -> usize {
        self.sizes(of).sum()
    }

    /// How many of these messages fit into `room`, from the first on.
    fn fitting(&self, of: Range<usize>, room: usize) -> usize {
        fitting(self.sizes(of), room)
    }

    /// How many of the messages before `end` fit into `room`, from the last back.
    fn fitting_behind(&self, end: usize, room: usize) -> usize {
        fitting(self.sizes(0..end).rev(), room)
    }
}

/// How many of these sizes fit into `room`.
fn fitting(sizes: impl Iterator<Item = usize>, mut room: usize) -> usize {
    let fits = |size| {
        room = room.checked_sub(size)?;
        Some(())
    };
    sizes.map_while(fits).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(log: &mut Log) -> Vec<u16> {
        log.compose().iter().map(|message| message.sequence).collect()
    }

    #[test]
    fn every_packet_repeats_what_is_not_acknowledged() {
        let mut log = Log::new(Dialect::Classic, 40);
        assert_eq!((log.add(0, Said::Go), log.add(1, Said::Go)), (1, 2));
        assert!(log.is_due() && log.is_fresh());
        assert_eq!(numbers(&mut log), [1, 2]);
        assert!(!log.is_due());
        log.add(2, Said::Go);
        assert_eq!(numbers(&mut log), [1, 2, 3]);
        assert_eq!(log.acknowledge(1), 1);
        assert_eq!(log.acknowledge(9), 0, "what was never sent");
        (3..9).for_each(|buffer| _ = log.add(buffer, Said::Go));
        assert_eq!(numbers(&mut log), [4, 5, 6, 7, 8]);
        assert_eq!(numbers(&mut log), [5, 6, 7, 8, 9], "the newest and what fits before it");
        assert!(!log.is_due());
        log.repeat();
        assert_eq!(numbers(&mut log), [2, 3, 4, 5, 6]);
        assert_eq!(numbers(&mut log), [7, 8, 9]);
        assert!(!log.is_due());
        assert_eq!(log.acknowledge(9), 8);
        assert!(log.is_empty());
    }

    #[test]
    fn what_is_not_heard_twice_goes_alone_until_it_is() {
        let mut log = Log::new(Dialect::Classic, 80);
        (0..20).for_each(|buffer| _ = log.add(buffer, Said::Go));
        assert_eq!((numbers(&mut log).len(), numbers(&mut log).len()), (10, 10));
        log.expired();
        assert_eq!((numbers(&mut log).len(), numbers(&mut log).len()), (10, 10));
        log.expired();
        assert_eq!(numbers(&mut log), [1, 2, 3, 4]);
        assert!(!log.is_due());
        log.expired();
        assert_eq!(numbers(&mut log), [1, 2, 3, 4]);
        assert_eq!(log.acknowledge(4), 4);
        assert!(!log.is_due(), "the others may have come");
        log.expired();
        assert_eq!(numbers(&mut log), (5..15).collect::<Vec<_>>());
        assert_eq!(numbers(&mut log), (15..21).collect::<Vec<_>>());
        assert!(!log.is_due());
        assert_eq!(log.acknowledge(18), 14);
        log.expired();
        assert_eq!(numbers(&mut log), [19, 20]);
        log.add(20, Said::Go);
        log.expired();
        assert_eq!(numbers(&mut log), [19, 20], "what was never said is no part of it");
        assert_eq!(numbers(&mut log), [19, 20, 21]);
    }

    #[test]
    fn an_enquiry_ends_what_was_being_repeated() {
        let mut log = Log::new(Dialect::Classic, 80);
        (0..20).for_each(|buffer| _ = log.add(buffer, Said::Go));
        assert_eq!((numbers(&mut log).len(), numbers(&mut log).len()), (10, 10));
        log.expired();
        assert_eq!(numbers(&mut log).len(), 10);
        log.expired();
        assert_eq!(numbers(&mut log), [1, 2, 3, 4]);
        assert!(!log.is_due());
    }

    #[test]
    fn a_full_log_takes_no_more() {
        let mut log = Log::new(Dialect::V5, 1000);
        while log.has_room() {
            log.add(0, Said::Go);
        }
        while log.is_due() {
            assert!(!log.compose().is_empty());
        }
        assert_eq!(log.acknowledge(MOST as u16), MOST);
    }

    /// Sixty messages are under way, and each packet has one that is new, behind data that pay for four repetitions.
    #[test]
    fn what_data_pay_for_is_repeated_half_of_it_newest_and_half_in_turn() {
        let mut log = Log::with_credit(Dialect::V5, 80, 100_000);
        (0..60).for_each(|buffer| _ = log.add(buffer, Said::Go));
        (0..6).for_each(|_| assert_eq!(numbers(&mut log).len(), 10));
        let second = Span::from_secs(1);
        let mut next = |octets: u16, round: Span| {
            log.paid(octets, second, round);
            log.add(60, Said::Go);
            numbers(&mut log)
        };
        let price = 4 * 8 * 256;
        assert_eq!(
            next(0, second),
            [1, 2, 3, 4, 5, 57, 58, 59, 60, 61],
            "a packet's worth is saved"
        );
        assert_eq!(next(0, second), [6, 62], "of which this is left");
        assert_eq!(next(price, second), [7, 8, 61, 62, 63], "half newest, half in turn");
        assert_eq!(next(0, second), [64], "nothing is paid for");
        assert_eq!(next(price, second.scaled(2, 1)), [9, 64, 65], "twice as dear");
        assert_eq!(next(price, second.scaled(9, 1)), [10, 66], "four times at most");
        let all: Vec<u16> = (0..30).flat_map(|_| next(price, second)).collect();
        let unseen = (11..66).find(|it| !all.contains(it));
        assert_eq!(unseen, None, "the turn comes to each");
    }
}
