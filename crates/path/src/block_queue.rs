//! A first-in-first-out queue that grows without ever moving what it holds.

use std::collections::VecDeque;

/// Items of a block. Growing a plain ring copies all of it, and for a real-time run a copy of a
/// hundred thousand packets is a stall of milliseconds; here growth costs one block.
const BLOCK: usize = 256;

/// A queue made of blocks. Emptied blocks are kept for later.
#[derive(Debug)]
pub struct BlockQueue<T> {
    blocks: VecDeque<VecDeque<T>>,
    spare: Vec<VecDeque<T>>,
    len: usize,
}

impl<T> Default for BlockQueue<T> {
    fn default() -> Self {
        BlockQueue { blocks: VecDeque::new(), spare: Vec::new(), len: 0 }
    }
}

impl<T> BlockQueue<T> {
    /// Puts `item` at the end.
    pub fn push_back(&mut self, item: T) {
        if self.blocks.back().is_none_or(|block| block.len() == BLOCK) {
            let block = self.spare.pop();
            self.blocks.push_back(block.unwrap_or_else(|| VecDeque::with_capacity(BLOCK)));
        }
        if let Some(block) = self.blocks.back_mut() {
            block.push_back(item);
            self.len += 1;
        }
    }

    /// Takes the first item.
    pub fn pop_front(&mut self) -> Option<T> {
        let block = self.blocks.front_mut()?;
        let item = block.pop_front()?;
        self.len -= 1;
        if block.is_empty() && self.blocks.len() > 1 {
            self.spare.extend(self.blocks.pop_front());
        }
        Some(item)
    }

    /// The first item.
    pub fn front(&self) -> Option<&T> {
        self.blocks.front()?.front()
    }

    /// The last item.
    pub fn back(&self) -> Option<&T> {
        self.blocks.back()?.back()
    }

    /// All items, first to last.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.blocks.iter().flatten()
    }

    /// How many items there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Is there none?
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_a_queue(steps in prop::collection::vec((0usize..600, 0usize..600), 0..20)) {
            let (mut queue, mut model, mut next) = (BlockQueue::default(), VecDeque::new(), 0);
            for (pushes, pops) in steps {
                for _ in 0..pushes {
                    queue.push_back(next);
                    model.push_back(next);
                    next += 1;
                }
                for _ in 0..pops {
                    prop_assert_eq!(queue.pop_front(), model.pop_front());
                }
                prop_assert_eq!((queue.front(), queue.back()), (model.front(), model.back()));
                prop_assert_eq!((queue.len(), queue.is_empty()), (model.len(), model.is_empty()));
                prop_assert!(queue.iter().eq(model.iter()));
            }
        }
    }
}
