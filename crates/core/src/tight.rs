//! Growth by a quarter, for what a run has very many of.

use std::collections::VecDeque;

/// A vector or queue that grows by a quarter of what it holds, not to its double: while it grows, a fifth of its memory
/// is unused at most, instead of half. Each item is still moved a bounded number of times, five on average.
pub trait Tight<T> {
    /// Puts `item` at the end.
    fn push_tight(&mut self, item: T);
}

/// The places that are added to `held`.
fn more(held: usize) -> usize {
    (held / 4).max(1)
}

impl<T> Tight<T> for Vec<T> {
    #[inline]
    fn push_tight(&mut self, item: T) {
        if self.len() == self.capacity() {
            self.reserve_exact(more(self.len()));
        }
        self.push(item);
    }
}

impl<T> Tight<T> for VecDeque<T> {
    #[inline]
    fn push_tight(&mut self, item: T) {
        if self.len() == self.capacity() {
            self.reserve_exact(more(self.len()));
        }
        self.push_back(item);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_than_a_fifth_is_unused() {
        let (mut vector, mut queue) = (Vec::new(), VecDeque::new());
        for count in 1..=1000usize {
            vector.push_tight(count);
            queue.push_tight(count);
            let most = (count + count / 4).max(count + 1);
            assert!(vector.capacity() <= most, "{} for {count}", vector.capacity());
            assert!(queue.capacity() <= most, "{} for {count}", queue.capacity());
        }
        assert!(queue.iter().eq(&vector) && vector.into_iter().eq(1..=1000));
    }

    #[test]
    fn moves_are_few() {
        let (mut vector, mut moved) = (Vec::new(), 0);
        for count in 0..100_000usize {
            moved += if vector.len() == vector.capacity() { count } else { 0 };
            vector.push_tight(count);
        }
        assert!(moved < 5 * vector.len(), "{moved}");
    }
}
