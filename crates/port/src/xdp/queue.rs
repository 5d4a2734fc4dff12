//! The rings that AF_XDP shares with the kernel, and the frame memory
//! (Linux Documentation/networking/af_xdp.rst).
#![allow(unsafe_code)]

use crate::sys::{Mapping, Plain, Socket};
use std::marker::PhantomData;
use std::mem::size_of;
use std::sync::atomic::{AtomicU32, Ordering};

/// One ring: of us to the kernel (fill, send) or of the kernel to us (receive, completion).
/// Indices run free over 32 bits; the entry is the index modulo the ring's power-of-two size.
pub(crate) struct Queue<T> {
    mapping: Mapping,
    offsets: libc::xdp_ring_offset,
    mask: u32,
    /// Our own end: what we produced, or consumed.
    ours: u32,
    /// The producer index as the kernel sees it.
    shown: u32,
    entry: PhantomData<T>,
}

impl<T: Plain> Queue<T> {
    /// Creates the ring `option` with `size` entries (a power of two) and maps it from `page` on.
    pub(crate) fn new(
        socket: &Socket,
        option: i32,
        size: u32,
        page: i64,
        offsets: libc::xdp_ring_offset,
    ) -> Result<Queue<T>, i32> {
        debug_assert!(size.is_power_of_two());
        socket.set(libc::SOL_XDP, option, &(size as i32))?;
        let length = offsets.desc as usize + size as usize * size_of::<T>();
        let mapping = Mapping::new(socket, length, page)?;
        Ok(Queue { mapping, offsets, mask: size - 1, ours: 0, shown: 0, entry: PhantomData })
    }

    fn word(&self, offset: u64) -> &AtomicU32 {
        // SAFETY: the kernel gave the offset of an aligned word inside this mapping, which both sides
        // access only as a whole.
        unsafe { AtomicU32::from_ptr(self.mapping.start().add(offset as usize).cast()) }
    }

    fn slot(&self, index: u32) -> *mut T {
        let entry = (index & self.mask) as usize;
        // SAFETY: the mapping reaches over `mask + 1` entries behind `desc`.
        unsafe { self.mapping.start().add(self.offsets.desc as usize).cast::<T>().add(entry) }
    }

    /// Our own index: that of the next entry to be written, or read.
    pub(crate) fn index(&self) -> u32 {
        self.ours
    }

    /// On a ring to the kernel: how many entries are free.
    pub(crate) fn free(&self) -> u32 {
        self.mask + 1 - self.ours.wrapping_sub(self.consumed())
    }

    /// On a ring to the kernel: the index up to which it has taken entries.
    pub(crate) fn consumed(&self) -> u32 {
        self.word(self.offsets.consumer).load(Ordering::Acquire)
    }

    /// On a ring to the kernel: writes the next entry, which must be free, but does not show it yet. It
    /// may be free before [`free`](Self::free) counts it: the kernel tells late of what it has taken.
    pub(crate) fn write(&mut self, entry: T) {
        self.overwrite(self.ours, entry);
        self.ours = self.ours.wrapping_add(1);
    }

    /// On a ring to the kernel: replaces an entry that it has not taken. For the send ring only, which
    /// the kernel reads in copy mode only during our own system calls.
    pub(crate) fn overwrite(&mut self, index: u32, entry: T) {
        // SAFETY: in the mapping (`slot`), aligned, and not the kernel's: it reads entries only below
        // the producer index, or, while they are replaced, not at this time.
        unsafe { self.slot(index).write_volatile(entry) }
    }

    /// On the send ring: the next entry to be written is the one at `index`. The kernel keeps the
    /// producer index it has seen, so entries behind `index` stay shown until they are overwritten.
    pub(crate) fn move_to(&mut self, index: u32) {
        self.ours = index;
    }

    /// On a ring to the kernel: what was written at `index`.
    pub(crate) fn entry(&self, index: u32) -> T {
        // SAFETY: in the mapping, aligned, written by us and never by the kernel.
        unsafe { self.slot(index).read_volatile() }
    }

    /// On a ring to the kernel: shows what was written.
    pub(crate) fn publish(&mut self) {
        if is_ahead(self.ours, self.shown) {
            self.shown = self.ours;
            self.word(self.offsets.producer).store(self.ours, Ordering::Release);
        }
    }

    /// On a ring to us: the oldest entry, if any.
    pub(crate) fn read(&mut self) -> Option<T> {
        let produced = self.word(self.offsets.producer).load(Ordering::Acquire);
        if produced == self.ours {
            return None;
        }
        // SAFETY: in the mapping, aligned, written by the kernel before the producer index moved.
        let entry = unsafe { self.slot(self.ours).read_volatile() };
        self.ours = self.ours.wrapping_add(1);
        Some(entry)
    }

    /// On a ring to us: gives the entries read back to the kernel.
    pub(crate) fn release(&self) {
        self.word(self.offsets.consumer).store(self.ours, Ordering::Release);
    }
}

/// Whether `index` comes after `other` in the order of the ring, whose indices wrap.
pub(crate) fn is_ahead(index: u32, other: u32) -> bool {
    (index.wrapping_sub(other) as i32) > 0
}

/// The frame memory that program and kernel share.
pub(crate) struct Frames(Mapping);

impl Frames {
    /// Bytes of one frame's chunk.
    pub(crate) const CHUNK: usize = 4096;

    /// Memory for `count` frames, registered with the socket.
    pub(crate) fn new(socket: &Socket, count: usize) -> Result<Frames, i32> {
        let memory = Mapping::anonymous(count * Frames::CHUNK)?;
        let region = libc::xdp_umem_reg {
            addr: memory.start() as u64,
            len: memory.len() as u64,
            chunk_size: Frames::CHUNK as u32,
            headroom: 0,
            flags: 0,
            tx_metadata_len: 0,
        };
        socket.set(libc::SOL_XDP, libc::XDP_UMEM_REG, &region)?;
        Ok(Frames(memory))
    }

    /// A frame that we own: one read from the receive ring, or one taken from the free list. `None`
    /// if it is not inside the memory.
    pub(crate) fn frame(&mut self, address: u64, length: usize) -> Option<&mut [u8]> {
        let start = usize::try_from(address).ok()?;
        let end = start.checked_add(length)?;
        // SAFETY: inside the mapping; the kernel does not touch frames that it has handed over or not
        // yet been given, and the borrow of `self` keeps other frames away.
        (end <= self.0.len())
            .then(|| unsafe { std::slice::from_raw_parts_mut(self.0.start().add(start), length) })
    }
}
