//! A first-in-first-out queue that grows without ever moving many of its items.

use std::collections::VecDeque;
use trunkline_core::Tight;

/// Most items of a block. Growing a plain ring copies all of it, and for a real-time run a copy of a
/// hundred thousand packets is a stall of milliseconds; here growth costs one block.
const BLOCK: usize = 1024;

/// A queue made of blocks. While it holds no more than a block it is one small ring, which costs nothing
/// until something is put in. Emptied blocks are kept for later.
#[derive(Debug)]
pub struct BlockQueue<T> {
    /// The first items. Empty only when the whole queue is.
    head: VecDeque<T>,
    beyond: Option<Box<Beyond<T>>>,
}

/// The items that did not fit into the head: blocks of [`BLOCK`] items, of which the last may hold fewer.
#[derive(Debug)]
struct Beyond<T> {
    blocks: VecDeque<VecDeque<T>>,
    spare: Vec<VecDeque<T>>,
}

impl<T> Default for BlockQueue<T> {
    fn default() -> Self {
        BlockQueue { head: VecDeque::new(), beyond: None }
    }
}

impl<T> Default for Beyond<T> {
    fn default() -> Self {
        Beyond { blocks: VecDeque::new(), spare: Vec::new() }
    }
}

impl<T> Beyond<T> {
    fn push_back(&mut self, item: T) {
        match self.blocks.back_mut() {
            Some(block) if block.len() < BLOCK => block.push_back(item),
            _ => {
                let spare = self.spare.pop();
                let mut block = spare.unwrap_or_else(|| VecDeque::with_capacity(BLOCK));
                block.push_back(item);
                self.blocks.push_back(block);
            }
        }
    }
}

impl<T> BlockQueue<T> {
    /// Whether it is one ring with room for another item.
    #[inline(always)]
    pub(crate) fn is_short(&self) -> bool {
        self.beyond.is_none() && self.head.len() < BLOCK
    }

    /// Puts `item` at the end of a queue that [is short](BlockQueue::is_short).
    #[inline(always)]
    pub(crate) fn push_short(&mut self, item: T) {
        debug_assert!(self.is_short());
        self.head.push_tight(item);
    }

    /// Puts `item` at the end.
    #[inline(always)]
    pub fn push_back(&mut self, item: T) {
        match self.is_short() {
            true => self.push_short(item),
            false => self.push_beyond(item),
        }
    }

    #[cold]
    #[inline(never)]
    fn push_beyond(&mut self, item: T) {
        let beyond = self.beyond.get_or_insert_default();
        if beyond.blocks.is_empty() && self.head.len() < BLOCK {
            return self.head.push_back(item);
        }
        beyond.push_back(item);
    }

    /// Takes the first item.
    #[inline(always)]
    pub fn pop_front(&mut self) -> Option<T> {
        let item = self.head.pop_front()?;
        if self.beyond.is_some() {
            self.refill();
        }
        Some(item)
    }

    #[inline(never)]
    fn refill(&mut self) {
        let Some(beyond) = &mut self.beyond else { return };
        if !self.head.is_empty() {
            return;
        }
        if let Some(next) = beyond.blocks.pop_front() {
            beyond.spare.push(std::mem::replace(&mut self.head, next));
        }
    }

    /// Whether there is one item only. May be false if more have been there.
    #[inline(always)]
    pub(crate) fn is_single(&self) -> bool {
        self.head.len() == 1 && self.beyond.is_none()
    }

    /// Takes the last item.
    pub fn pop_back(&mut self) -> Option<T> {
        let Some(beyond) = &mut self.beyond else { return self.head.pop_back() };
        let Some(block) = beyond.blocks.back_mut() else { return self.head.pop_back() };
        let item = block.pop_back();
        if block.is_empty() {
            beyond.spare.extend(beyond.blocks.pop_back());
        }
        item
    }

    /// The first item.
    #[inline(always)]
    pub fn front(&self) -> Option<&T> {
        self.head.front()
    }

    /// The last item.
    pub fn back(&self) -> Option<&T> {
        let beyond = self.beyond.as_ref().and_then(|beyond| beyond.blocks.back()?.back());
        beyond.or_else(|| self.head.back())
    }

    /// The item with `index` others before it.
    #[inline]
    pub fn get(&self, index: usize) -> Option<&T> {
        match index.checked_sub(self.head.len()) {
            None => self.head.get(index),
            Some(over) => self.beyond.as_ref()?.blocks.get(over / BLOCK)?.get(over % BLOCK),
        }
    }

    /// All items, first to last.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        let beyond = self.beyond.iter().flat_map(|beyond| beyond.blocks.iter().flatten());
        self.head.iter().chain(beyond)
    }

    /// The number of items.
    #[inline]
    pub fn len(&self) -> usize {
        let beyond = self.beyond.as_ref().and_then(|beyond| {
            let last = beyond.blocks.back()?.len();
            Some((beyond.blocks.len() - 1) * BLOCK + last)
        });
        self.head.len() + beyond.unwrap_or(0)
    }

    /// Whether there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.head.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_a_queue(
            steps in prop::collection::vec((0usize..2500, 0usize..2500, 0usize..1100), 0..12),
        ) {
            let (mut queue, mut model, mut next) = (BlockQueue::default(), VecDeque::new(), 0);
            for (pushes, pops, back) in steps {
                for _ in 0..pushes {
                    queue.push_back(next);
                    model.push_back(next);
                    next += 1;
                }
                for _ in 0..pops {
                    prop_assert_eq!(queue.pop_front(), model.pop_front());
                }
                for _ in 0..back {
                    prop_assert_eq!(queue.pop_back(), model.pop_back());
                }
                prop_assert_eq!((queue.front(), queue.back()), (model.front(), model.back()));
                prop_assert_eq!((queue.len(), queue.is_empty()), (model.len(), model.is_empty()));
                prop_assert!(queue.iter().eq(model.iter()));
                prop_assert!((0..model.len() + 2).all(|at| queue.get(at) == model.get(at)));
            }
        }
    }
}
