//! A buffer on its way in: which of its packets have come, and what it waits for.

use super::wire::{Data, Parity};
use trunkline_core::Time;

/// What a buffer waits for (RFC 998 §5.2.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// For the acknowledgement of the GO or RESEND with this number.
    AckWait(u16),
    /// For its first packet, or the first that was asked for again.
    Acked,
    /// For the others.
    Receiving,
    /// All packets have come.
    Received,
}

/// A packet that contradicts the terms, or what came before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Contradiction;

/// A buffer that may be sent.
#[derive(Debug, Clone)]
pub struct Incoming {
    /// What it waits for.
    pub phase: Phase,
    /// When its data timer runs out.
    pub timer: Option<Time>,
    /// Packets asked for again that have not come.
    pub requested: u32,
    /// The numbers of all of them are below this one.
    pub asked: u32,
    /// Whether nothing more of it comes by itself: its end, or a later buffer, has been seen.
    pub is_passed: bool,
    have: Vec<u64>,
    count: u32,
    /// Packets that make it whole; of the last buffer of a transfer known with its LDATA.
    expected: u32,
    /// Whether that is certain.
    is_sized: bool,
    /// Packets up to the highest that has come.
    reach: u32,
    /// Bytes of its last packet.
    tail: u16,
}

impl Incoming {
    /// A buffer of so many packets, of which the last has `tail` bytes, whose GO has this number.
    pub fn new(packets: u32, tail: u16, go: u16) -> Incoming {
        Incoming {
            phase: Phase::AckWait(go),
            timer: None,
            requested: 0,
            asked: 0,
            is_passed: false,
            have: vec![0; packets.div_ceil(64) as usize],
            count: 0,
            expected: packets,
            is_sized: false,
            reach: 0,
            tail,
        }
    }

    /// Takes in a packet; all but the last have `packet` bytes. Answers whether it is new.
    pub fn take(&mut self, data: &Data, packet: u16) -> Result<bool, Contradiction> {
        let number = u32::from(data.packet);
        let is_end = number + 1 == self.expected;
        let right = match (data.ends_buffer, data.last) {
            (false, _) => data.bytes == packet && !is_end,
            (true, false) => is_end && data.bytes == self.tail,
            (true, true) if self.is_sized => is_end && data.bytes == self.tail,
            (true, true) => number + 1 >= self.reach && data.bytes <= packet,
        };
        if !right || number >= self.expected {
            return Err(Contradiction);
        }
        if data.ends_buffer {
            (self.expected, self.is_sized, self.tail) = (number + 1, true, data.bytes);
            self.is_passed = true;
        }
        let (word, bit) = ((number / 64) as usize, 1 << (number % 64));
        let is_new = self.have[word] & bit == 0;
        if is_new {
            self.have[word] |= bit;
            self.count += 1;
            self.reach = self.reach.max(number + 1);
        }
        Ok(is_new)
    }

    /// Takes in what parity tells: all of it has been sent, and where it ends. All packets but the last have `packet` bytes.
    pub fn learn(&mut self, parity: &Parity, packet: u16) -> Result<(), Contradiction> {
        let count = u32::from(parity.packets);
        let is_short = parity.last && !self.is_sized;
        let right = match is_short {
            true => count <= self.expected && count >= self.reach.max(1) && parity.tail <= packet,
            false => count == self.expected && parity.tail == self.tail,
        };
        // The packet that is then the last would have said so itself.
        let has_last = count > 0 && self.reach == count && !self.is_sized;
        if !right || has_last || parity.bytes != packet {
            return Err(Contradiction);
        }
        (self.expected, self.is_sized, self.tail) = (count, true, parity.tail);
        self.is_passed = true;
        Ok(())
    }

    /// All packets that have not come are known. Answers how many they were.
    pub fn fill_in(&mut self) -> u32 {
        let missing = self.missing();
        // One that comes yet is a copy.
        self.have.fill(u64::MAX);
        (self.count, self.reach) = (self.expected, self.expected);
        missing
    }

    /// Whether all packets have come.
    pub fn is_whole(&self) -> bool {
        self.is_sized && self.count == self.expected
    }

    /// Whether it is known where it ends.
    pub fn is_sized(&self) -> bool {
        self.is_sized
    }

    /// Whether any packet has come.
    pub fn is_touched(&self) -> bool {
        self.reach > 0
    }

    /// The number of its last packet, as far as is known.
    pub fn end(&self) -> u16 {
        (self.expected - 1) as u16
    }

    /// Packets that have not come.
    pub fn missing(&self) -> u32 {
        self.expected - self.count
    }

    /// Whether a packet that comes may have been asked for again.
    pub fn was_asked(&self, packet: u16) -> bool {
        self.requested > 0 && u32::from(packet) < self.asked
    }

    /// Whether a packet is known to have been sent: one behind it has come.
    pub fn is_behind(&self, packet: u16) -> bool {
        self.is_passed || u32::from(packet) < self.reach
    }

    /// Packets that are still to come by themselves.
    pub fn ahead(&self) -> u32 {
        if self.is_passed { 0 } else { self.expected - self.reach }
    }

    /// The numbers of the packets that have not come.
    pub fn absent(&self) -> impl Iterator<Item = u16> + '_ {
        let has = |number: &u32| self.have[(number / 64) as usize] >> (number % 64) & 1 == 0;
        (0..self.expected).filter(has).map(|number| number as u16)
    }

    /// Bytes of the whole buffer, whose other packets have `packet` each.
    pub fn bytes(&self, packet: u16) -> u32 {
        (self.expected - 1) * u32::from(packet) + u32::from(self.tail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(packet: u16, bytes: u16, ends_buffer: bool, last: bool) -> Data {
        Data { packet, bytes, ends_buffer, last, ..Data::default() }
    }

    #[test]
    fn a_full_buffer_is_whole_with_its_last_hole() {
        let mut buffer = Incoming::new(70, 10, 1);
        assert_eq!(buffer.take(&data(69, 10, true, false), 100), Ok(true));
        for number in (0..69).rev() {
            assert!(!buffer.is_whole());
            assert_eq!(buffer.absent().next(), Some(0));
            assert_eq!(buffer.take(&data(number, 100, false, false), 100), Ok(true));
            assert_eq!(buffer.take(&data(number, 100, false, false), 100), Ok(false));
        }
        assert!(buffer.is_whole());
        assert_eq!((buffer.missing(), buffer.bytes(100)), (0, 6910));
    }

    #[test]
    fn the_last_buffer_ends_where_its_last_packet_says() {
        let mut buffer = Incoming::new(10, 100, 1);
        assert_eq!(buffer.take(&data(1, 100, false, true), 100), Ok(true));
        assert_eq!(buffer.take(&data(3, 7, true, true), 100), Ok(true));
        assert_eq!(buffer.absent().collect::<Vec<_>>(), [0, 2]);
        assert_eq!(buffer.take(&data(4, 7, true, true), 100), Err(Contradiction));
        assert_eq!(buffer.take(&data(2, 100, false, true), 100), Ok(true));
        assert_eq!(buffer.take(&data(0, 100, false, true), 100), Ok(true));
        assert!(buffer.is_whole());
        assert_eq!(buffer.bytes(100), 307);
        // A transfer of nothing is one empty packet.
        let mut empty = Incoming::new(10, 100, 1);
        assert_eq!(empty.take(&data(0, 0, true, true), 100), Ok(true));
        assert_eq!((empty.is_whole(), empty.bytes(100)), (true, 0));
    }

    #[test]
    fn what_parity_gave_back_is_a_copy_when_it_comes() {
        let mut buffer = Incoming::new(10, 100, 1);
        assert_eq!(buffer.take(&data(1, 100, false, true), 100), Ok(true));
        let parity = Parity { packets: 4, tail: 7, last: true, bytes: 100, ..Parity::default() };
        assert_eq!(buffer.learn(&Parity { bytes: 99, ..parity }, 100), Err(Contradiction));
        assert_eq!(buffer.learn(&Parity { packets: 2, ..parity }, 100), Err(Contradiction));
        assert_eq!(buffer.learn(&parity, 100), Ok(()));
        assert_eq!(buffer.learn(&Parity { packets: 5, ..parity }, 100), Err(Contradiction));
        assert_eq!((buffer.absent().collect::<Vec<_>>(), buffer.fill_in()), (vec![0, 2, 3], 3));
        assert!(buffer.is_whole() && buffer.bytes(100) == 307);
        assert_eq!(buffer.take(&data(2, 100, false, true), 100), Ok(false));
        assert_eq!(buffer.take(&data(3, 7, true, true), 100), Ok(false));
    }

    #[test]
    fn contradictions_are_refused() {
        let wrong = [
            data(10, 100, false, false),
            data(9, 100, false, false),
            data(3, 99, false, false),
            data(8, 10, true, false),
            data(9, 11, true, false),
        ];
        let mut buffer = Incoming::new(10, 10, 1);
        for data in wrong {
            assert_eq!(buffer.take(&data, 100), Err(Contradiction), "{data:?}");
        }
        assert_eq!(buffer.take(&data(5, 100, false, true), 100), Ok(true));
        assert_eq!(buffer.take(&data(3, 5, true, true), 100), Err(Contradiction), "behind its end");
    }
}
