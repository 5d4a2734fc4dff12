//! What a frame takes of a socket's receive memory.

use trunkline_transport::cstar::Frame;

/// Memory that the kernel adds to a received datagram before it rounds up to a power of two, and behind that, at most
/// (measured on Linux 6.18: a datagram of 8,032 octets counts 17,152, a frame of a packet socket less).
const ADDED: usize = 512;
const BOOKKEEPING: usize = 1280;

/// Bytes of a socket's receive buffer that a frame of `payload` bytes takes at most.
pub fn frame_memory(payload: u32) -> usize {
    (payload as usize + Frame::HEADER as usize + ADDED).next_power_of_two() + BOOKKEEPING
}
