//! The event queue: a timing wheel.

use trunkline_core::{Tight, Time};

/// Bits of an instant that one level tells apart.
const BITS: u32 = 8;
/// Slots of a level.
const WIDTH: usize = 1 << BITS;
/// Levels that cover all 64 bits of an instant.
const LEVELS: usize = (u64::BITS / BITS) as usize;
/// Slots of all levels, the lowest level's first.
const SLOTS: usize = LEVELS * WIDTH;
/// Words of the map of slots in use.
const WORDS: usize = SLOTS / 64;
/// No entry.
const NONE: u32 = u32::MAX;

/// What is due, earliest first; at one instant in the order in which it was asked for.
///
/// A radix wheel: level `n` sorts by byte `n` of the instant what agrees with the present in all higher
/// bytes. An entry moves down a level at most once for each byte that it lies ahead, so the cost does not
/// grow with the number of entries. The lower levels are the wheel proper, 4.3 s in nanoseconds; the upper
/// ones are its overflow tier, so that no instant is too far. The slots of all levels take 16 KiB, an
/// entry 32 bytes.
///
/// Ties need no number of their own: an entry goes directly into a lower slot only once the present has
/// come to the slot above it, and that is when all that waited there has been moved down before it, in order.
///
/// Whoever waits again and again keeps its [`Handle`]; it is in the wheel at most once.
#[derive(Debug)]
pub(crate) struct Wheel<T> {
    /// The instant of the last entry taken out. Nothing due is earlier.
    present: u64,
    /// Bit `n` is set while word `n` of the map is not zero.
    words: u32,
    /// The map: a bit for each slot, set while it holds anything.
    occupied: [u64; WORDS],
    slots: Box<[Slot; SLOTS]>,
    entries: Vec<Entry<T>>,
    /// The first of the free entries, which are chained by `next`.
    free: u32,
    len: usize,
}

/// A doubly linked queue of entries.
#[derive(Debug, Clone, Copy)]
struct Slot {
    first: u32,
    last: u32,
}

#[derive(Debug, Clone, Copy)]
struct Entry<T> {
    at: u64,
    due: T,
    next: u32,
    previous: u32,
}

/// An entry of a [`Wheel`], until it is given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Handle(u32);

const EMPTY: Slot = Slot { first: NONE, last: NONE };

impl<T: Copy> Wheel<T> {
    /// An empty wheel at the origin of time.
    pub(crate) fn new() -> Wheel<T> {
        Wheel {
            present: 0,
            words: 0,
            occupied: [0; WORDS],
            slots: Box::new([EMPTY; SLOTS]),
            entries: Vec::new(),
            free: NONE,
            len: 0,
        }
    }

    /// How many entries wait.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Bytes of memory held.
    pub(crate) fn memory(&self) -> usize {
        size_of::<[Slot; SLOTS]>() + self.entries.capacity() * size_of::<Entry<T>>()
    }

    /// An entry for `due`, which does not wait yet.
    #[inline]
    pub(crate) fn enlist(&mut self, due: T) -> Handle {
        let index = self.free;
        let entry = Entry { at: 0, due, next: NONE, previous: NONE };
        if let Some(place) = self.entries.get_mut(index as usize) {
            self.free = place.next;
            *place = entry;
            return Handle(index);
        }
        self.entries.push_tight(entry);
        Handle((self.entries.len() - 1) as u32)
    }

    /// Gives back an entry that does not wait.
    #[inline]
    pub(crate) fn give_back(&mut self, Handle(index): Handle) {
        self.entries[index as usize].next = self.free;
        self.free = index;
    }

    /// Lets an entry that does not wait be due at `at`, or at the present if that is later.
    #[inline]
    pub(crate) fn insert(&mut self, Handle(index): Handle, at: Time) {
        let at = at.as_nanos().max(self.present);
        self.len += 1;
        self.append(index, at);
    }

    /// Takes an entry that waits out before it is due.
    pub(crate) fn remove(&mut self, Handle(index): Handle) {
        let Entry { at, next, previous, .. } = self.entries[index as usize];
        let slot = self.slot(at);
        match previous {
            NONE => self.slots[slot].first = next,
            previous => self.entries[previous as usize].next = next,
        }
        match next {
            NONE => self.slots[slot].last = previous,
            next => self.entries[next as usize].previous = previous,
        }
        if self.slots[slot].first == NONE {
            self.vacate(slot);
        }
        self.len -= 1;
    }

    /// Takes out what is due next, at the latest at `until`. The present moves to it. Its entry is the
    /// caller's again.
    #[inline]
    pub(crate) fn pop(&mut self, until: Time) -> Option<(Time, T, Handle)> {
        while self.words != 0 {
            let word = self.words.trailing_zeros() as usize % WORDS;
            let slot = word * 64 + self.occupied[word].trailing_zeros() as usize % 64;
            let Slot { first, last } = self.slots[slot];
            if slot >= WIDTH && first != last {
                self.spread(slot, until)?;
                continue;
            }
            let Entry { at, due, next, .. } = self.entries[first as usize];
            if at > until.as_nanos() {
                return None;
            }
            if first == last {
                self.vacate(slot);
            } else {
                self.slots[slot].first = next;
                self.entries[next as usize].previous = NONE;
            }
            self.present = at;
            self.len -= 1;
            return Some((Time::from_nanos(at), due, Handle(first)));
        }
        None
    }

    /// Moves the entries of the earliest slot to lower levels, and the present to the beginning of that slot;
    /// `None` if all of them are later than `until`.
    fn spread(&mut self, slot: usize, until: Time) -> Option<()> {
        let shift = BITS * (slot / WIDTH) as u32;
        let above = self.present.checked_shr(shift + BITS).unwrap_or(0);
        let begins = (above << BITS | (slot % WIDTH) as u64) << shift;
        let ends = begins | ((1 << shift) - 1);
        if ends > until.as_nanos() && self.earliest(slot) > until.as_nanos() {
            return None;
        }
        self.present = begins;
        let mut index = self.slots[slot].first;
        self.vacate(slot);
        while let Some(&Entry { at, next, .. }) = self.entries.get(index as usize) {
            self.append(index, at);
            index = next;
        }
        Some(())
    }

    /// The earliest instant in a slot.
    fn earliest(&self, slot: usize) -> u64 {
        let first = self.slots[slot].first;
        let chain = std::iter::successors(self.entries.get(first as usize), |entry| {
            self.entries.get(entry.next as usize)
        });
        chain.map(|entry| entry.at).min().unwrap_or(u64::MAX)
    }

    /// The slot in which an entry for `at` waits as long as the present does not pass it: at the level of the
    /// highest byte in which it differs from the present.
    #[inline(always)]
    fn slot(&self, at: u64) -> usize {
        // The lowest bit of that byte: the level times eight.
        let shift = ((at ^ self.present) | 1).ilog2() & !(BITS - 1);
        let byte = (at >> shift) as usize % WIDTH;
        (shift as usize * (WIDTH / BITS as usize) + byte) % SLOTS
    }

    /// Puts an entry at the end of its slot.
    #[inline]
    fn append(&mut self, index: u32, at: u64) {
        let slot = self.slot(at);
        let previous = std::mem::replace(&mut self.slots[slot].last, index);
        if previous == NONE {
            self.slots[slot].first = index;
            self.occupied[slot / 64] |= 1 << (slot % 64);
            self.words |= 1 << (slot / 64);
        } else {
            self.entries[previous as usize].next = index;
        }
        let entry = &mut self.entries[index as usize];
        (entry.at, entry.next, entry.previous) = (at, NONE, previous);
    }

    /// Empties a slot.
    #[inline]
    fn vacate(&mut self, slot: usize) {
        let word = slot / 64 % WORDS;
        self.slots[slot % SLOTS] = EMPTY;
        self.occupied[word] &= !(1 << (slot % 64));
        if self.occupied[word] == 0 {
            self.words &= !(1 << word);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;

    /// What is done to a wheel and to its model.
    #[derive(Debug, Clone)]
    enum Step {
        /// Ask for something so far ahead.
        Insert(u64),
        /// Take back one of what waits.
        Remove(prop::sample::Index),
        /// Take out what is due within a time.
        Pop(u64),
    }

    /// From the same nanosecond to hours, and to the end of time.
    fn ahead() -> impl Strategy<Value = u64> {
        prop_oneof![
            4 => 0u64..4,
            4 => 0u64..1000,
            4 => 0u64..3_000_000,
            2 => 0u64..20_000_000_000,
            1 => 0u64..50_000_000_000_000,
            1 => any::<u64>(),
        ]
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            6 => ahead().prop_map(Step::Insert),
            1 => any::<prop::sample::Index>().prop_map(Step::Remove),
            5 => ahead().prop_map(Step::Pop),
        ]
    }

    /// The plainest queue: a heap with numbers, in which what was removed is crossed out.
    #[derive(Default)]
    struct Model {
        heap: BinaryHeap<Reverse<(u64, u64)>>,
        waiting: Vec<(u64, Handle)>,
        now: u64,
        asked: u64,
    }

    impl Model {
        fn pop(&mut self, until: u64) -> Option<(Time, u64)> {
            loop {
                let &Reverse((at, number)) = self.heap.peek()?;
                let known = self.waiting.iter().position(|&(it, _)| it == number);
                if known.is_some() && at > until {
                    return None;
                }
                self.heap.pop();
                if let Some(index) = known {
                    self.waiting.remove(index);
                    self.now = at;
                    return Some((Time::from_nanos(at), number));
                }
            }
        }
    }

    fn take<T: Copy>(wheel: &mut Wheel<T>, until: u64) -> Option<(Time, T)> {
        let (at, due, handle) = wheel.pop(Time::from_nanos(until))?;
        wheel.give_back(handle);
        Some((at, due))
    }

    fn put<T: Copy>(wheel: &mut Wheel<T>, at: u64, due: T) {
        let handle = wheel.enlist(due);
        wheel.insert(handle, Time::from_nanos(at));
    }

    fn agree(steps: Vec<Step>) -> Result<(), TestCaseError> {
        let (mut wheel, mut model) = (Wheel::new(), Model::default());
        for step in steps {
            match step {
                Step::Insert(ahead) => {
                    let at = model.now.saturating_add(ahead);
                    model.asked += 1;
                    let handle = wheel.enlist(model.asked);
                    wheel.insert(handle, Time::from_nanos(at));
                    model.heap.push(Reverse((at, model.asked)));
                    model.waiting.push((model.asked, handle));
                }
                Step::Remove(which) if !model.waiting.is_empty() => {
                    let index = which.index(model.waiting.len());
                    let handle = model.waiting.swap_remove(index).1;
                    wheel.remove(handle);
                    wheel.give_back(handle);
                }
                Step::Remove(_) => {}
                Step::Pop(within) => {
                    let until = model.now.saturating_add(within);
                    prop_assert_eq!(take(&mut wheel, until), model.pop(until));
                }
            }
            prop_assert_eq!(wheel.len(), model.waiting.len());
        }
        while let Some(expected) = model.pop(u64::MAX) {
            prop_assert_eq!(take(&mut wheel, u64::MAX), Some(expected));
        }
        prop_assert_eq!(take(&mut wheel, u64::MAX), None);
        Ok(())
    }

    proptest! {
        /// The wheel is a priority queue that keeps the order of asking, wherever the present is and
        /// however far ahead things lie.
        #[test]
        fn it_agrees_with_a_heap(steps in prop::collection::vec(step(), 0..400)) {
            agree(steps)?;
        }
    }

    #[test]
    fn what_is_not_due_yet_leaves_room_before_it() {
        let mut wheel = Wheel::new();
        put(&mut wheel, 70_000, 'b');
        put(&mut wheel, 70_001, 'c');
        assert_eq!(take(&mut wheel, 69_999), None);
        put(&mut wheel, 3, 'a');
        let order: Vec<char> =
            std::iter::from_fn(|| take(&mut wheel, u64::MAX)).map(|it| it.1).collect();
        assert_eq!(order, ['a', 'b', 'c']);
    }

    #[test]
    fn it_is_small() {
        assert_eq!(size_of::<Entry<u64>>(), 24);
        assert_eq!(size_of::<[Slot; SLOTS]>(), 16_384);
        let mut wheel = Wheel::new();
        for round in 0..1000u64 {
            put(&mut wheel, round * 1_000_000_000_000, round);
            take(&mut wheel, u64::MAX);
        }
        assert_eq!(wheel.entries.len(), 1, "entries are used again");
    }
}
