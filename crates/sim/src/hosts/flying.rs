//! The records of what is under way.
//!
//! A packet that ends a block has a trace, from which its hops are known when it arrives. A copy that the
//! path makes has a trace of its own, so that records are not looked up by the trace but by what the
//! packet says: a block's number and how often it has been sent, or a datagram's number.
//!
//! Nobody reads the time of a single block: it is added to its traffic's sums when its data are accepted. Until then
//! its record is the few instants from which that time follows, and from its arrival on the trace.

use crate::network::{Network, TraceId};
use std::collections::BTreeMap;
use trunkline_core::{Cause, Time};
use trunkline_measure::Trail;
use trunkline_transport::urp::Seq;
use trunkline_workload::Stamp;

/// What a message brings to the application that reads it: its record, and a datagram's stamp. It is boxed once and
/// moves on in its box.
pub(crate) type Carried = Box<(Trail, Option<Stamp>)>;

/// The instants of a block at its sender, in order.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Departure {
    /// Since when it could be sent.
    pub since: Time,
    /// When it was let go for the first time.
    pub first: Time,
    /// When it was let go this time.
    pub ready: Time,
    /// When it was put onto the path.
    pub left: Time,
}

/// A message that ends in a segment of TCP: its place in the stream, and what it brings until that is taken.
pub(crate) type EndsIn = (u64, Option<Carried>);

/// The records of a block on its way, and those of the messages which it completes, at most one with URP.
#[derive(Debug)]
pub(crate) struct Flying {
    pub departure: Departure,
    /// When the protocol of the peer got it.
    pub heard: Time,
    /// Its hops, once it has come.
    pub trace: Option<TraceId>,
    /// The message's.
    pub message: Option<Carried>,
    /// The messages that end in a segment of TCP.
    pub endings: Box<[EndsIn]>,
}

impl Flying {
    pub fn new(departure: Departure, message: Option<Carried>) -> Flying {
        let (heard, trace) = (departure.left, None);
        Flying { departure, heard, trace, message, endings: Box::default() }
    }

    /// The protocol has it now, after time in its host at `place`.
    pub fn hear(&mut self, now: Time, place: u32) {
        self.heard = now;
        self.each_message(|trail| trail.mark(now, place, Cause::Host));
    }

    /// Does something to the records of its messages.
    pub fn each_message(&mut self, mut change: impl FnMut(&mut Trail)) {
        self.message.iter_mut().for_each(|carried| change(&mut carried.0));
        let endings = self.endings.iter_mut().filter_map(|(_, carried)| carried.as_mut());
        endings.for_each(|carried| change(&mut carried.0));
    }
}

/// Boxes of records that are to be used again.
#[derive(Debug, Default)]
#[expect(clippy::vec_box, reason = "records move on in their boxes")]
pub(crate) struct Spare(Vec<Box<Flying>>);

impl Spare {
    /// Records, in a box that has held others if there is one.
    pub fn boxed(&mut self, flying: Flying) -> Box<Flying> {
        match self.0.pop() {
            None => Box::new(flying),
            Some(mut spare) => {
                *spare = flying;
                spare
            }
        }
    }

    /// These records are not needed any more, nor are their hops.
    pub fn give_back(&mut self, net: &mut Network, flying: Option<Box<Flying>>) {
        let Some(mut flying) = flying else { return };
        flying.trace.take().into_iter().for_each(|trace| net.release(trace));
        self.0.push(flying);
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
        Box::new(Flying::new(Departure { since: left, first: left, ready: left, left }, None))
    }

    #[test]
    fn transmissions_of_one_block_are_told_apart() {
        let mut in_flight = InFlight::default();
        assert!(in_flight.take_block(Seq::new(3), 1).is_none());
        let first = in_flight.block(Seq::new(3), flying(1));
        let again = in_flight.block(Seq::new(3), flying(2));
        let other = in_flight.block(Seq::new(4), flying(3));
        let left = |found: Option<Box<Flying>>| found.map(|found| found.departure.left.as_nanos());
        assert_eq!(left(in_flight.take_block(Seq::new(3), again)), Some(2));
        assert_eq!(left(in_flight.take_block(Seq::new(3), first)), Some(1));
        assert_eq!(left(in_flight.take_block(Seq::new(3), first)), None, "a copy finds nothing");
        assert_eq!(left(in_flight.take_block(Seq::new(4), other)), Some(3));
    }
}
