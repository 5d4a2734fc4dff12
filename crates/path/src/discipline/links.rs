//! Doubly linked lists of numbered things, without a box or an allocation for each.

/// No thing at all.
const NONE: u32 = u32::MAX;

/// A list: its two ends. The links between them are in a [`Links`].
#[derive(Debug, Clone, Copy)]
pub(super) struct List {
    head: u32,
    tail: u32,
}

/// The links of things numbered from zero, each of which is in at most one list at a time.
#[derive(Debug, Default)]
pub(super) struct Links(Vec<Link>);

#[derive(Debug, Clone, Copy)]
struct Link {
    before: u32,
    after: u32,
}

impl List {
    /// A list of nothing.
    pub const EMPTY: List = List { head: NONE, tail: NONE };

    /// The first thing.
    #[inline]
    pub fn first(self) -> Option<u32> {
        (self.head != NONE).then_some(self.head)
    }

    /// The last thing.
    pub fn last(self) -> Option<u32> {
        (self.tail != NONE).then_some(self.tail)
    }

    /// Whether nothing is in it.
    pub fn is_empty(self) -> bool {
        self.head == NONE
    }

    /// Whether exactly one thing is in it.
    pub fn is_single(self) -> bool {
        self.head != NONE && self.head == self.tail
    }
}

impl Links {
    /// Appends `id`, which is in no list, to `list`.
    #[inline]
    pub fn push_back(&mut self, list: &mut List, id: u32) {
        let link = Link { before: list.tail, after: NONE };
        match self.0.get_mut(id as usize) {
            Some(place) => *place = link,
            None => {
                self.0.resize(id as usize, Link { before: NONE, after: NONE });
                self.0.push(link);
            }
        }
        match list.last() {
            Some(last) => self.0[last as usize].after = id,
            None => list.head = id,
        }
        list.tail = id;
    }

    /// Takes `id` out of `list`, which it is in.
    #[inline]
    pub fn remove(&mut self, list: &mut List, id: u32) {
        let Link { before, after } = self.0[id as usize];
        match before {
            NONE => list.head = after,
            before => self.0[before as usize].after = after,
        }
        match after {
            NONE => list.tail = before,
            after => self.0[after as usize].before = before,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forward(links: &Links, list: List) -> Vec<u32> {
        std::iter::successors(list.first(), |&id| {
            Some(links.0[id as usize].after).filter(|&after| after != NONE)
        })
        .collect()
    }

    #[test]
    fn lists_keep_their_order() {
        let (mut links, mut list) = (Links::default(), List::EMPTY);
        assert!(list.is_empty() && !list.is_single());
        for id in [3, 0, 7] {
            links.push_back(&mut list, id);
        }
        assert_eq!(forward(&links, list), [3, 0, 7]);
        links.remove(&mut list, 0);
        assert_eq!((list.first(), list.last()), (Some(3), Some(7)));
        links.remove(&mut list, 3);
        assert!(list.is_single());
        links.push_back(&mut list, 3);
        assert_eq!(forward(&links, list), [7, 3]);
        links.remove(&mut list, 3);
        links.remove(&mut list, 7);
        assert!(list.is_empty() && list.last().is_none());
    }
}
