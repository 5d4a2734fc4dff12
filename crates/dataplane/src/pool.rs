//! The memory of waiting frames: a slab allocator over one arena, sized before the first frame.

/// Bytes of a chunk, which at any time holds slots of one size. Also the largest slot.
const CHUNK: usize = 128 * 1024;
/// Slot sizes. Frames of the usual sizes fill theirs well: 64-byte minimum, 1514, 9018, super-jumbo.
const SLOTS: [usize; 10] = [64, 128, 256, 512, 1088, 1600, 4608, 9344, 32 * 1024, CHUNK];
/// Offsets are counted in units of the smallest alignment of a slot.
const UNIT: usize = 64;
/// No chunk, or no slot.
const NONE: u32 = u32::MAX;

/// A frame in the pool: a handle, to be given back with [`FramePool::free`].
#[derive(Debug, PartialEq, Eq)]
pub struct Frame {
    at: u32,
    len: u32,
}

impl Frame {
    /// Bytes of the frame.
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// A fixed amount of memory for frames. Chunks move freely between slot sizes as traffic changes, so
/// that no pattern of sizes wears it out. Nothing is allocated after [`FramePool::new`]; the operating
/// system provides pages when they are first written.
#[derive(Debug)]
pub struct FramePool {
    arena: Vec<u8>,
    chunks: Vec<Chunk>,
    free_chunks: Vec<u32>,
    /// For each slot size, the chunks that have room: heads of doubly linked lists.
    with_room: [u32; SLOTS.len()],
    held: u64,
}

#[derive(Debug, Clone, Copy)]
struct Chunk {
    class: u8,
    used: u16,
    /// Slots never used so far start here; below, freed ones are linked through their first bytes, by
    /// their places in the arena, so that nothing has to be divided by a slot's size.
    fresh: u16,
    freed: u32,
    before: u32,
    after: u32,
}

const UNUSED: Chunk = Chunk { class: 0, used: 0, fresh: 0, freed: NONE, before: NONE, after: NONE };

fn class_of(len: usize) -> Option<usize> {
    SLOTS.iter().position(|&slot| len <= slot)
}

/// The chunks of a pool of at least `bytes`.
fn chunks_for(bytes: u64) -> usize {
    let chunks = usize::try_from(bytes.div_ceil(CHUNK as u64)).unwrap_or(usize::MAX / CHUNK);
    chunks.clamp(SLOTS.len(), u32::MAX as usize / (CHUNK / UNIT))
}

fn slots_in(class: usize) -> u16 {
    (CHUNK / SLOTS[class]) as u16
}

impl FramePool {
    /// A pool of at least `bytes` of slots, or `None` if the system does not give that much.
    pub fn try_new(bytes: u64) -> Option<FramePool> {
        let size = chunks_for(bytes).checked_mul(CHUNK)?;
        // Zeroed memory costs nothing before it is written, but asking for it cannot be refused without the end of the
        // process. So as much is asked for first, and given back.
        Vec::<u8>::new().try_reserve_exact(size).ok()?;
        Some(FramePool::new(bytes))
    }

    /// A pool of at least `bytes` of slots.
    ///
    /// # Panics
    /// Aborts if the system does not give that much.
    pub fn new(bytes: u64) -> FramePool {
        let chunks = chunks_for(bytes);
        FramePool {
            arena: vec![0; chunks * CHUNK],
            chunks: vec![UNUSED; chunks],
            free_chunks: (0..chunks as u32).rev().collect(),
            with_room: [NONE; SLOTS.len()],
            held: 0,
        }
    }

    /// The largest frame that fits at all.
    pub const LARGEST: usize = CHUNK;

    /// The memory that one frame of `len` bytes takes up.
    pub fn footprint(len: usize) -> usize {
        SLOTS[class_of(len).unwrap_or(SLOTS.len() - 1)]
    }

    /// Copies `bytes` in, or answers `None` when there is no room.
    pub fn store(&mut self, bytes: &[u8]) -> Option<Frame> {
        let chunk = self.place_for(bytes.len())?;
        let at = self.take_slot(chunk);
        let start = at as usize * UNIT;
        self.arena[start..start + bytes.len()].copy_from_slice(bytes);
        self.held += 1;
        Some(Frame { at, len: bytes.len() as u32 })
    }

    /// The bytes of `frame`.
    pub fn bytes(&self, frame: &Frame) -> &[u8] {
        let start = frame.at as usize * UNIT;
        &self.arena[start..start + frame.len as usize]
    }

    /// The bytes of `frame`, to be changed in place.
    pub fn bytes_mut(&mut self, frame: &Frame) -> &mut [u8] {
        let start = frame.at as usize * UNIT;
        &mut self.arena[start..start + frame.len as usize]
    }

    /// A second frame with the same bytes, or `None` if there is no room.
    pub fn duplicate(&mut self, frame: &Frame) -> Option<Frame> {
        let chunk = self.place_for(frame.len())?;
        let at = self.take_slot(chunk);
        let from = frame.at as usize * UNIT;
        self.arena.copy_within(from..from + frame.len(), at as usize * UNIT);
        self.held += 1;
        Some(Frame { at, len: frame.len })
    }

    /// A chunk with room for a frame of `len` bytes.
    #[inline]
    fn place_for(&mut self, len: usize) -> Option<u32> {
        let class = class_of(len)?;
        match self.with_room[class] {
            NONE => self.open(class),
            chunk => Some(chunk),
        }
    }

    /// Gives the room of `frame` back.
    #[expect(clippy::needless_pass_by_value, reason = "the handle must not be used again")]
    pub fn free(&mut self, frame: Frame) {
        let start = frame.at as usize * UNIT;
        let chunk = start / CHUNK;
        let class = usize::from(self.chunks[chunk].class);
        let was_full = self.chunks[chunk].used == slots_in(class);
        let state = &mut self.chunks[chunk];
        self.arena[start..start + 4].copy_from_slice(&state.freed.to_le_bytes());
        state.freed = frame.at;
        state.used -= 1;
        self.held -= 1;
        if state.used == 0 {
            if !was_full {
                self.unlink(chunk as u32);
            }
            self.chunks[chunk] = UNUSED;
            self.free_chunks.push(chunk as u32);
        } else if was_full {
            self.link(chunk as u32);
        }
    }

    /// Forgets all frames: whoever holds one must not use it again.
    pub fn clear(&mut self) {
        let chunks = self.chunks.len();
        self.chunks.fill(UNUSED);
        self.free_chunks.clear();
        self.free_chunks.extend((0..chunks as u32).rev());
        self.with_room = [NONE; SLOTS.len()];
        self.held = 0;
    }

    /// The number of frames in the pool.
    pub fn held(&self) -> u64 {
        self.held
    }

    /// Gives a free chunk to `class`.
    fn open(&mut self, class: usize) -> Option<u32> {
        let chunk = self.free_chunks.pop()?;
        self.chunks[chunk as usize] = Chunk { class: class as u8, ..UNUSED };
        self.link(chunk);
        Some(chunk)
    }

    /// The place of a slot of a chunk that has room, in units.
    fn take_slot(&mut self, chunk: u32) -> u32 {
        let state = &mut self.chunks[chunk as usize];
        let class = usize::from(state.class);
        let at = if state.freed == NONE {
            let start = chunk as usize * CHUNK + usize::from(state.fresh) * SLOTS[class];
            state.fresh += 1;
            (start / UNIT) as u32
        } else {
            let at = state.freed;
            let start = at as usize * UNIT;
            let next = self.arena[start..start + 4].try_into().unwrap_or([0xff; 4]);
            state.freed = u32::from_le_bytes(next);
            at
        };
        state.used += 1;
        if state.used == slots_in(class) {
            self.unlink(chunk);
        }
        at
    }

    fn link(&mut self, chunk: u32) {
        let class = usize::from(self.chunks[chunk as usize].class);
        let head = self.with_room[class];
        self.chunks[chunk as usize].before = NONE;
        self.chunks[chunk as usize].after = head;
        if head != NONE {
            self.chunks[head as usize].before = chunk;
        }
        self.with_room[class] = chunk;
    }

    fn unlink(&mut self, chunk: u32) {
        let Chunk { class, before, after, .. } = self.chunks[chunk as usize];
        match before {
            NONE => self.with_room[usize::from(class)] = after,
            before => self.chunks[before as usize].after = after,
        }
        if after != NONE {
            self.chunks[after as usize].before = before;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    #[test]
    fn all_room_comes_back_whatever_the_sizes_were() {
        let mut pool = FramePool::new(2 << 20);
        for size in [60, 1514, 9000, 60, 65_549, 300] {
            let frames: Vec<Frame> = std::iter::from_fn(|| pool.store(&vec![7; size])).collect();
            let expected = (2 << 20) / CHUNK * (CHUNK / FramePool::footprint(size));
            assert_eq!(frames.len(), expected, "size {size}");
            match size % 2 {
                0 => frames.into_iter().for_each(|frame| pool.free(frame)),
                _ => pool.clear(),
            }
            assert_eq!(pool.held(), 0);
        }
        assert!(pool.store(&vec![0; CHUNK + 1]).is_none());
    }

    proptest! {
        #[test]
        fn frames_keep_their_bytes(
            steps in prop::collection::vec((0usize..3000, any::<u8>(), any::<bool>()), 1..400),
        ) {
            let mut pool = FramePool::new(1 << 20);
            let mut model: VecDeque<(Frame, Vec<u8>)> = VecDeque::new();
            for (size, fill, free_last) in steps {
                if size % 3 == 0 {
                    let taken = if free_last { model.pop_back() } else { model.pop_front() };
                    if let Some((frame, bytes)) = taken {
                        prop_assert_eq!(pool.bytes(&frame), &bytes[..]);
                        pool.free(frame);
                    }
                } else if let Some(frame) = pool.store(&vec![fill; size]) {
                    let copy = if free_last { pool.duplicate(&frame) } else { None };
                    model.extend(copy.into_iter().map(|copy| (copy, vec![fill; size])));
                    model.push_back((frame, vec![fill; size]));
                }
                prop_assert_eq!(pool.held(), model.len() as u64);
            }
            for (frame, bytes) in &model {
                prop_assert_eq!(pool.bytes(frame), &bytes[..]);
            }
        }
    }
}
