//! The records of what is under way.
//!
//! A packet that ends a block has a trace, from which its hops are known when it arrives. A copy that the
//! path makes has a trace of its own, so that records are not looked up by the trace but by what the
//! packet says: a block's number and how often it has been sent, or a datagram's number.

use std::collections::BTreeMap;
use trunkline_core::{Cause, Time};
use trunkline_measure::Trail;
use trunkline_transport::urp::Seq;
use trunkline_workload::Stamp;

/// What a message brings to the application that reads it: its record, and a datagram's stamp. It is boxed once and
/// moves on in its box.
pub(crate) type Carried = Box<(Trail, Option<Stamp>)>;

/// The records of a block on its way: its own since the window allowed it, and those of the messages
/// which it completes, at most one with URP.
#[derive(Debug)]
pub(crate) struct Flying {
    /// When it was put onto the path.
    pub left: Time,
    /// The block's.
    pub block: Trail,
    /// The message's.
    pub message: Option<Carried>,
    /// The messages that end in a segment of TCP, each with its place in the stream.
    pub endings: Vec<(u64, Carried)>,
}

impl Flying {
    /// Records that start at `since` of what is put onto the path at `left`.
    pub fn new(left: Time, since: Time) -> Flying {
        Flying { left, block: Trail::new(since), message: None, endings: Vec::new() }
    }

    /// The same records, used again.
    pub fn restart(&mut self, left: Time, since: Time) {
        self.block.restart(since);
        (self.left, self.message) = (left, None);
        self.endings.clear();
    }

    /// Marks all records.
    pub fn mark(&mut self, now: Time, place: u32, cause: Cause) {
        self.each(|trail| trail.mark(now, place, cause));
    }

    /// Does something to all records.
    pub fn each(&mut self, mut change: impl FnMut(&mut Trail)) {
        change(&mut self.block);
        self.message.iter_mut().for_each(|carried| change(&mut carried.0));
        self.endings.iter_mut().for_each(|(_, carried)| change(&mut carried.0));
    }
}

/// Sequence numbers, and transmissions of one number that are told apart.
const NUMBERS: usize = 8;
const TRANSMISSIONS: usize = 4;

/// The blocks and characters that an end has sent and its peer has not got.
#[derive(Debug, Default)]
pub(crate) struct InFlight {
    /// By number and transmission; empty until the first block.
    blocks: Vec<Option<Box<Flying>>>,
    /// How often each number has been used, modulo [`TRANSMISSIONS`].
    used: [u8; NUMBERS],
    characters: BTreeMap<u16, Box<Flying>>,
    last_characters: u16,
}

impl InFlight {
    /// Keeps the records of a block; which transmission of its number it is.
    pub fn block(&mut self, seq: Seq, flying: Box<Flying>) -> u8 {
        self.blocks.resize_with(NUMBERS * TRANSMISSIONS, || None);
        let used = &mut self.used[usize::from(seq.get())];
        *used = (*used + 1) % TRANSMISSIONS as u8;
        let transmission = *used;
        self.blocks[place(seq, transmission)] = Some(flying);
        transmission
    }

    /// The records of a block, once. What is found may be of a later block with the same number.
    pub fn take_block(&mut self, seq: Seq, transmission: u8) -> Option<Box<Flying>> {
        self.blocks.get_mut(place(seq, transmission))?.take()
    }

    /// Keeps the records of characters; their number, which is not 0.
    pub fn characters(&mut self, flying: Box<Flying>) -> u16 {
        let number = self.last_characters.checked_add(1).unwrap_or(1);
        self.last_characters = number;
        self.characters.insert(number, flying);
        number
    }

    /// The records of characters, once.
    pub fn take_characters(&mut self, number: u16) -> Option<Box<Flying>> {
        self.characters.remove(&number)
    }
}

fn place(seq: Seq, transmission: u8) -> usize {
    usize::from(seq.get()) * TRANSMISSIONS + usize::from(transmission) % TRANSMISSIONS
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flying(left: u64) -> Box<Flying> {
        let left = Time::from_nanos(left);
        Box::new(Flying::new(left, left))
    }

    #[test]
    fn transmissions_of_one_block_are_told_apart() {
        let mut in_flight = InFlight::default();
        assert!(in_flight.take_block(Seq::new(3), 1).is_none());
        let first = in_flight.block(Seq::new(3), flying(1));
        let again = in_flight.block(Seq::new(3), flying(2));
        let other = in_flight.block(Seq::new(4), flying(3));
        let left = |found: Option<Box<Flying>>| found.map(|found| found.left.as_nanos());
        assert_eq!(left(in_flight.take_block(Seq::new(3), again)), Some(2));
        assert_eq!(left(in_flight.take_block(Seq::new(3), first)), Some(1));
        assert_eq!(left(in_flight.take_block(Seq::new(3), first)), None, "a copy finds nothing");
        assert_eq!(left(in_flight.take_block(Seq::new(4), other)), Some(3));
    }
}
