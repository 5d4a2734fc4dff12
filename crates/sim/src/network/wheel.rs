//! The event queue: a timing wheel.

use trunkline_core::Time;

/// Bits of an instant that one level tells apart.
const BITS: u32 = 8;
const SLOTS: usize = 1 << BITS;
/// Levels that cover all 64 bits of an instant.
const LEVELS: usize = (u64::BITS / BITS) as usize;
/// Words of a level's map of slots in use.
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
#[derive(Debug)]
pub(super) struct Wheel<T> {
    /// The instant of the last entry taken out. Nothing due is earlier.
    present: u64,
    /// Bit `n` is set while level `n` holds anything.
    in_use: u32,
    levels: Box<[Level; LEVELS]>,
    entries: Vec<Entry<T>>,
    /// The first of the free entries, which are chained by `next`.
    free: u32,
    len: usize,
}

/// One level: a queue for each value of its byte.
#[derive(Debug, Clone, Copy)]
struct Level {
    occupied: [u64; WORDS],
    slots: [Slot; SLOTS],
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

/// An entry of a [`Wheel`], for as long as it has not been taken out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Handle(u32);

/// Where an entry waits.
#[derive(Debug, Clone, Copy)]
struct Place {
    level: usize,
    slot: usize,
}

const EMPTY: Slot = Slot { first: NONE, last: NONE };

impl Level {
    const NEW: Level = Level { occupied: [0; WORDS], slots: [EMPTY; SLOTS] };

    /// The first slot in use.
    fn first(&self) -> usize {
        let word = self.occupied.iter().position(|&word| word != 0).unwrap_or(0);
        word * 64 + self.occupied[word].trailing_zeros() as usize % 64
    }

    fn is_empty(&self) -> bool {
        self.occupied.iter().all(|&word| word == 0)
    }
}

impl<T: Copy> Wheel<T> {
    /// An empty wheel at the origin of time.
    pub(super) fn new() -> Wheel<T> {
        Wheel {
            present: 0,
            in_use: 0,
            levels: Box::new([Level::NEW; LEVELS]),
            entries: Vec::new(),
            free: NONE,
            len: 0,
        }
    }

    /// How many entries wait.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Bytes of memory held.
    pub(super) fn memory(&self) -> usize {
        size_of::<[Level; LEVELS]>() + self.entries.capacity() * size_of::<Entry<T>>()
    }

    /// Puts `due` in for `at`, or for the present where that is later.
    pub(super) fn insert(&mut self, at: Time, due: T) -> Handle {
        let at = at.as_nanos().max(self.present);
        let entry = Entry { at, due, next: NONE, previous: NONE };
        let index = self.free;
        let index = if let Some(place) = self.entries.get_mut(index as usize) {
            self.free = place.next;
            *place = entry;
            index
        } else {
            self.entries.push(entry);
            (self.entries.len() - 1) as u32
        };
        self.len += 1;
        self.append(index, at);
        Handle(index)
    }

    /// Takes an entry out before it is due.
    pub(super) fn remove(&mut self, Handle(index): Handle) {
        let Entry { at, next, previous, .. } = self.entries[index as usize];
        let place = self.place(at);
        let slot = &mut self.levels[place.level].slots[place.slot];
        match previous {
            NONE => slot.first = next,
            previous => self.entries[previous as usize].next = next,
        }
        match next {
            NONE => slot.last = previous,
            next => self.entries[next as usize].previous = previous,
        }
        if slot.first == NONE {
            self.vacate(place);
        }
        self.give_back(index);
    }

    /// Takes out what is due next, at the latest at `until`. The present moves to it.
    #[inline]
    pub(super) fn pop(&mut self, until: Time) -> Option<(Time, T)> {
        loop {
            if self.in_use == 0 {
                return None;
            }
            let level = self.in_use.trailing_zeros() as usize % LEVELS;
            let place = Place { level, slot: self.levels[level].first() };
            let Slot { first, last } = self.levels[place.level].slots[place.slot];
            if level > 0 && first != last {
                self.spread(place, until)?;
                continue;
            }
            let Entry { at, due, next, .. } = self.entries[first as usize];
            if at > until.as_nanos() {
                return None;
            }
            self.levels[place.level].slots[place.slot].first = next;
            match next {
                NONE => self.vacate(place),
                next => self.entries[next as usize].previous = NONE,
            }
            self.present = at;
            self.give_back(first);
            return Some((Time::from_nanos(at), due));
        }
    }

    /// Moves the entries of the earliest slot to lower levels, and the present to where that slot begins;
    /// `None` where all of them are later than `until`.
    fn spread(&mut self, place: Place, until: Time) -> Option<()> {
        let shift = BITS * place.level as u32;
        let above = self.present.checked_shr(shift + BITS).unwrap_or(0);
        let begins = (above << BITS | place.slot as u64) << shift;
        let ends = begins | ((1 << shift) - 1);
        if ends > until.as_nanos() && self.earliest(place) > until.as_nanos() {
            return None;
        }
        self.present = begins;
        let mut index = self.levels[place.level].slots[place.slot].first;
        self.vacate(place);
        while let Some(&Entry { at, next, .. }) = self.entries.get(index as usize) {
            self.append(index, at);
            index = next;
        }
        Some(())
    }

    /// The earliest instant in a slot.
    fn earliest(&self, place: Place) -> u64 {
        let first = self.levels[place.level].slots[place.slot].first;
        let chain = std::iter::successors(self.entries.get(first as usize), |entry| {
            self.entries.get(entry.next as usize)
        });
        chain.map(|entry| entry.at).min().unwrap_or(u64::MAX)
    }

    /// Where an entry for `at` waits as long as the present does not pass it: at the level of the highest
    /// byte in which it differs from the present.
    fn place(&self, at: u64) -> Place {
        let level = (63 - ((at ^ self.present) | 1).leading_zeros()) / BITS;
        let slot = at >> (level * BITS) & (SLOTS as u64 - 1);
        Place { level: level as usize, slot: slot as usize }
    }

    /// Puts an entry at the end of its slot.
    fn append(&mut self, index: u32, at: u64) {
        let place = self.place(at);
        let level = &mut self.levels[place.level];
        let slot = &mut level.slots[place.slot];
        let previous = std::mem::replace(&mut slot.last, index);
        if previous == NONE {
            slot.first = index;
            level.occupied[place.slot / 64] |= 1 << (place.slot % 64);
            self.in_use |= 1 << place.level;
        } else {
            self.entries[previous as usize].next = index;
        }
        let entry = &mut self.entries[index as usize];
        (entry.next, entry.previous) = (NONE, previous);
    }

    /// Marks a slot as empty.
    fn vacate(&mut self, place: Place) {
        let level = &mut self.levels[place.level];
        level.slots[place.slot] = EMPTY;
        level.occupied[place.slot / 64] &= !(1 << (place.slot % 64));
        if level.is_empty() {
            self.in_use &= !(1 << place.level);
        }
    }

    fn give_back(&mut self, index: u32) {
        self.entries[index as usize].next = self.free;
        self.free = index;
        self.len -= 1;
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

    fn agree(steps: Vec<Step>) -> Result<(), TestCaseError> {
        let (mut wheel, mut model) = (Wheel::new(), Model::default());
        for step in steps {
            match step {
                Step::Insert(ahead) => {
                    let at = model.now.saturating_add(ahead);
                    model.asked += 1;
                    let handle = wheel.insert(Time::from_nanos(at), model.asked);
                    model.heap.push(Reverse((at, model.asked)));
                    model.waiting.push((model.asked, handle));
                }
                Step::Remove(which) if !model.waiting.is_empty() => {
                    let index = which.index(model.waiting.len());
                    wheel.remove(model.waiting.swap_remove(index).1);
                }
                Step::Remove(_) => {}
                Step::Pop(within) => {
                    let until = model.now.saturating_add(within);
                    prop_assert_eq!(wheel.pop(Time::from_nanos(until)), model.pop(until));
                }
            }
            prop_assert_eq!(wheel.len(), model.waiting.len());
        }
        while let Some(expected) = model.pop(u64::MAX) {
            prop_assert_eq!(wheel.pop(Time::NEVER), Some(expected));
        }
        prop_assert_eq!(wheel.pop(Time::NEVER), None);
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
        let at = |nanos| Time::from_nanos(nanos);
        wheel.insert(at(70_000), 'b');
        wheel.insert(at(70_001), 'c');
        assert_eq!(wheel.pop(at(69_999)), None);
        wheel.insert(at(3), 'a');
        let order: Vec<char> =
            std::iter::from_fn(|| wheel.pop(Time::NEVER)).map(|it| it.1).collect();
        assert_eq!(order, ['a', 'b', 'c']);
    }

    #[test]
    fn it_is_small() {
        assert_eq!(size_of::<Entry<u64>>(), 24);
        assert_eq!(size_of::<[Level; LEVELS]>(), 16_640);
        let mut wheel = Wheel::new();
        for round in 0..1000u64 {
            wheel.insert(Time::from_nanos(round * 1_000_000_000_000), round);
            wheel.pop(Time::NEVER);
        }
        assert_eq!(wheel.entries.len(), 1, "entries are used again");
    }
}
