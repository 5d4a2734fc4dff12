//! The TPACKET_V2 receive ring (Linux Documentation/networking/packet_mmap.rst).
//!
//! Not V3: its blocks are handed over by a timer of whole milliseconds, which ruins timing.
#![allow(unsafe_code)]

use crate::sys::{Mapping, Socket};
use std::sync::atomic::{AtomicU32, Ordering};

/// Blocks of 1 MiB: few enough, and the kernel still finds them in one piece.
const BLOCK: usize = 1 << 20;
/// Slots for ordinary MTUs.
const SLOTS: usize = 8192;
/// At least this much for larger ones.
const LEAST_BYTES: usize = 64 << 20;
/// Larger frames take the way of super-frames, through the socket's queue.
const LARGEST_SLOT: usize = 16 << 10;
/// Slot header, address, alignment, virtio header, link header with two tags; the kernel needs 94.
const OVERHEAD: usize = 128;

/// The measures of a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Bytes of a slot.
    slot: usize,
    /// Blocks in the ring.
    blocks: usize,
}

impl Shape {
    /// For frames of a device with this MTU.
    pub(crate) fn for_mtu(mtu: u32) -> Shape {
        let wanted = (mtu as usize + OVERHEAD).min(LARGEST_SLOT);
        // An odd number of cache lines, lest the headers of all slots share a few sets of the cache.
        let slot = if wanted <= 2048 { 2048 } else { (wanted.div_ceil(64) | 1) * 64 };
        let bytes = if slot == 2048 { SLOTS * slot } else { LEAST_BYTES };
        Shape { slot, blocks: bytes / BLOCK }
    }

    fn per_block(self) -> usize {
        BLOCK / self.slot
    }

    fn slots(self) -> usize {
        self.per_block() * self.blocks
    }

    /// The start of slot `index`; slots do not cross blocks.
    fn offset(self, index: usize) -> usize {
        index / self.per_block() * BLOCK + index % self.per_block() * self.slot
    }

    fn request(self) -> libc::tpacket_req {
        libc::tpacket_req {
            tp_block_size: BLOCK as u32,
            tp_block_nr: self.blocks as u32,
            tp_frame_size: self.slot as u32,
            tp_frame_nr: self.slots() as u32,
        }
    }
}

/// A mapped receive ring.
pub(crate) struct Ring {
    mapping: Mapping,
    shape: Shape,
    next: usize,
}

/// The kernel's entries at the head of a slot.
pub(crate) struct Slot<'a> {
    pub(crate) header: libc::tpacket2_hdr,
    /// The whole slot, header included.
    pub(crate) bytes: &'a mut [u8],
}

impl Slot<'_> {
    /// The start and the end of the frame in the slot, kept inside it.
    pub(crate) fn frame(&self) -> (usize, usize) {
        let start = usize::from(self.header.tp_mac).min(self.bytes.len());
        (start, (start + self.header.tp_snaplen as usize).min(self.bytes.len()))
    }

    /// Whether the slot has flag `bit` of its status.
    pub(crate) fn has(&self, bit: u32) -> bool {
        self.header.tp_status & bit != 0
    }
}

impl Ring {
    /// Sets the ring up on a socket that already speaks TPACKET_V2, and maps it.
    pub(crate) fn new(socket: &Socket, shape: Shape) -> Result<Ring, i32> {
        socket.set(libc::SOL_PACKET, libc::PACKET_RX_RING, &shape.request())?;
        let mapping = Mapping::new(socket, shape.blocks * BLOCK, 0)?;
        Ok(Ring { mapping, shape, next: 0 })
    }

    /// The oldest slot that holds a frame. It stays ours until [`Ring::release`].
    pub(crate) fn waiting(&mut self) -> Option<Slot<'_>> {
        // Acquire: what the kernel wrote before the status is seen after it.
        if self.status().load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
            return None;
        }
        let start = self.head();
        // SAFETY: the slot lies in the mapping (`head`), the kernel does not write to it while its
        // status is USER, and the borrow of `self` keeps `release` and other slots away meanwhile. The
        // header is a structure of integers at an address aligned to 64.
        unsafe {
            let header = start.cast::<libc::tpacket2_hdr>().read();
            let bytes = std::slice::from_raw_parts_mut(start, self.shape.slot);
            Some(Slot { header, bytes })
        }
    }

    /// Gives the oldest slot back to the kernel and goes on to the next.
    pub(crate) fn release(&mut self) {
        // Release: our reads and writes of the slot come before the kernel's next ones.
        self.status().store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.next = (self.next + 1) % self.shape.slots();
    }

    fn head(&self) -> *mut u8 {
        let offset = self.shape.offset(self.next);
        debug_assert!(offset + self.shape.slot <= self.mapping.len());
        // SAFETY: `next` is below the number of slots, all of which lie in the mapping.
        unsafe { self.mapping.start().add(offset) }
    }

    fn status(&self) -> &AtomicU32 {
        // SAFETY: `tp_status` is the first word of the slot, aligned, and lives as long as the mapping;
        // kernel and program access it only as a whole.
        unsafe { AtomicU32::from_ptr(self.head().cast()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_what_the_kernel_accepts() {
        for mtu in [68, 1280, 1500, 1900, 2000, 4000, 9000, 9216, 16000, 65535, 65536, u32::MAX / 2]
        {
            let shape = Shape::for_mtu(mtu);
            let request = shape.request();
            assert_eq!(request.tp_frame_size % 16, 0, "{mtu}");
            assert_eq!(request.tp_frame_nr, (BLOCK / shape.slot) as u32 * request.tp_block_nr);
            assert!(shape.slot >= (mtu as usize + OVERHEAD).min(LARGEST_SLOT));
            assert!(shape.blocks * BLOCK >= SLOTS * 2048);
            assert!(shape.offset(shape.slots() - 1) + shape.slot <= shape.blocks * BLOCK);
            assert!(shape.offset(shape.per_block()) == BLOCK);
        }
        assert_eq!(Shape::for_mtu(1500), Shape { slot: 2048, blocks: 16 });
        assert_eq!(Shape::for_mtu(1500).slots(), 8192);
    }
}
