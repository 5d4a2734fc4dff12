//! What a frame takes of a socket's receive memory, and where it lies behind that.

use bytes::{Bytes, BytesMut};
use trunkline_transport::cstar::Frame;

/// Memory that the kernel adds to a received datagram before it rounds up to a power of two, and behind that, at most
/// (measured on Linux 6.18: a datagram of 8,032 octets counts 17,152, a frame of a packet socket less).
const ADDED: usize = 512;
const BOOKKEEPING: usize = 1280;

/// Bytes of a socket's receive buffer that a frame of `payload` bytes takes at most.
pub fn frame_memory(payload: u32) -> usize {
    (payload as usize + Frame::HEADER as usize + ADDED).next_power_of_two() + BOOKKEEPING
}

/// A block holds so many frames of the size of its first, within these octets; what is longer than half of the most has
/// memory of its own (choices: who keeps a frame keeps its block).
const FRAMES: usize = 8;
const LEAST: usize = 8 << 10;
const MOST: usize = 64 << 10;

/// Memory for what has come. Frames lie behind each other in a block, which is used again when nobody keeps any of them:
/// then a message allocates nothing.
#[derive(Debug, Default)]
pub(crate) struct Blocks(BytesMut);

impl Blocks {
    /// A copy of these octets.
    #[inline]
    pub fn copy(&mut self, octets: &[u8]) -> Bytes {
        if octets.len() > MOST / 2 {
            return Bytes::copy_from_slice(octets);
        }
        if self.0.capacity() < octets.len() {
            self.turn(octets.len());
        }
        self.0.extend_from_slice(octets);
        self.0.split().freeze()
    }

    /// Turns to the next block, or to the beginning of this one.
    #[cold]
    fn turn(&mut self, octets: usize) {
        self.0.reserve((FRAMES * octets).clamp(LEAST, MOST));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frames of all sizes are copied, whether or not earlier ones are kept, and those that are kept stay as they are.
    #[test]
    fn copies_are_right_whoever_keeps_them() {
        let mut blocks = Blocks::default();
        let frame = |number: usize| vec![number as u8; number * 37 % MOST];
        let mut kept = Vec::new();
        for number in 0..2000 {
            let copy = blocks.copy(&frame(number));
            assert_eq!(copy, frame(number));
            if number % 7 == 0 {
                kept.push((number, copy));
            }
        }
        assert!(kept.iter().all(|(number, copy)| *copy == frame(*number)));
    }

    /// As long as nobody keeps a frame all lie in one block.
    #[test]
    fn a_block_is_used_again() {
        let mut blocks = Blocks::default();
        let mut places: Vec<usize> =
            (0..5000).map(|_| blocks.copy(&[1; 36]).as_ptr() as usize).collect();
        places.sort_unstable();
        assert!(places[4999] - places[0] < LEAST);
    }
}
