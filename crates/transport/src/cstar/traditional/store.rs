//! What a node has sent and may have to repeat.

use crate::cstar::{Destination, EventId, Flags, Fragment, NodeId};
use bytes::Bytes;
use std::collections::{BTreeSet, VecDeque};

/// A fragment's event, its destination (`None` for all), and its number under both.
pub(super) type Label = (EventId, Option<NodeId>, u32);

/// Places of fragments that are gone, beside as many as there are fragments, until all are given up (a choice).
const MOST_GONE: usize = 32;

/// A fragment that not all of its receivers have acknowledged.
#[derive(Debug, Clone)]
pub(super) struct Descriptor {
    pub flags: Flags,
    pub data: Bytes,
    /// Who has not acknowledged it, if it is for all: else it is awaited of its receiver.
    awaited: BTreeSet<NodeId>,
    /// Whether it lies on the adapter, else in memory.
    on_board: bool,
}

/// Fragments in the order of their events: mostly the last is new, and the first is done with.
#[derive(Debug, Clone, Default)]
pub(super) struct Store {
    sent: VecDeque<(Label, Descriptor)>,
    /// Those on the adapter, the oldest first; some may be gone.
    board: VecDeque<Label>,
    on_board: u32,
}

impl Store {
    pub fn len(&self) -> u32 {
        self.sent.len() as u32
    }

    /// The place of a label, or where it would be.
    fn place(&self, label: &Label) -> Result<usize, usize> {
        match self.sent.back() {
            Some((last, _)) if last >= label => self.sent.binary_search_by(|it| it.0.cmp(label)),
            _ => Err(self.sent.len()),
        }
    }

    /// Keeps a fragment that is sent to one node or to all `others`, on the adapter, which has room for so many. Returns the bytes that had
    /// to be copied to memory for it.
    pub fn keep(
        &mut self,
        number: u32,
        fragment: &Fragment,
        others: impl Iterator<Item = NodeId>,
        room: u32,
    ) -> u64 {
        let (to, awaited) = match fragment.to {
            Destination::Node(node) => (Some(node), BTreeSet::new()),
            Destination::All => (None, others.collect()),
        };
        let label = (fragment.event, to, number);
        let (flags, data) = (fragment.flags, fragment.data.clone());
        let descriptor = Descriptor { flags, data, awaited, on_board: true };
        match self.place(&label) {
            Ok(place) => self.sent[place].1 = descriptor,
            Err(place) => self.sent.insert(place, (label, descriptor)),
        }
        self.board.push_back(label);
        self.on_board += 1;
        if self.on_board > room { self.copy_oldest() } else { 0 }
    }

    fn copy_oldest(&mut self) -> u64 {
        while let Some(label) = self.board.pop_front() {
            if let Ok(place) = self.place(&label) {
                let descriptor = &mut self.sent[place].1;
                descriptor.on_board = false;
                self.on_board -= 1;
                return descriptor.data.len() as u64;
            }
        }
        0
    }

    /// `node` has all fragments of events from `from` on and before `until`. Answers how many of them are done with.
    pub fn acknowledge(&mut self, node: NodeId, from: EventId, until: EventId) -> u32 {
        let (Ok(mut at) | Err(mut at)) = self.place(&(from, None, 0));
        let mut done = 0;
        while self.sent.get(at).is_some_and(|(label, _)| label.0 < until) {
            let gone = self.had(node, at);
            done += u32::from(gone);
            at += usize::from(!gone);
        }
        done
    }

    /// `node` has this fragment. Whether it is done with.
    pub fn has(&mut self, node: NodeId, label: &Label) -> bool {
        self.place(label).is_ok_and(|at| self.had(node, at))
    }

    /// `node` has the fragment at this place. Whether it is done with: then it is gone.
    fn had(&mut self, node: NodeId, at: usize) -> bool {
        let Some((label, descriptor)) = self.sent.get_mut(at) else { return false };
        let done = match label.1 {
            Some(receiver) => receiver == node,
            None => {
                descriptor.awaited.remove(&node);
                descriptor.awaited.is_empty()
            }
        };
        if !done {
            return false;
        }
        if let Some((label, descriptor)) = self.sent.remove(at) {
            self.on_board -= u32::from(descriptor.on_board);
            self.forget(&label);
        }
        true
    }

    /// What is gone from the front needs no place any more; behind one that stays it has places until they are as many again
    /// as fragments.
    fn forget(&mut self, label: &Label) {
        let mut board = std::mem::take(&mut self.board);
        let is_gone = |it: &Label| it == label || self.place(it).is_err();
        let gone = board.iter().take_while(|&it| is_gone(it)).count();
        board.drain(..gone);
        if board.len() > 2 * self.sent.len() + MOST_GONE {
            board.retain(|it| !is_gone(it));
        }
        self.board = board;
    }

    /// The label of a fragment for `node`, if it is kept: of one for it alone, else of one for all.
    pub fn find(&self, node: NodeId, event: EventId, number: u32) -> Option<Label> {
        let labels = [(event, Some(node), number), (event, None, number)];
        labels.into_iter().find(|label| self.place(label).is_ok())
    }

    pub fn get(&self, label: &Label) -> Option<&Descriptor> {
        self.place(label).ok().map(|at| &self.sent[at].1)
    }

    /// The oldest, and one who has not acknowledged it.
    pub fn oldest(&self) -> Option<(Label, NodeId)> {
        let (label, descriptor) = self.sent.front()?;
        Some((*label, label.1.or_else(|| descriptor.awaited.first().copied())?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fragment(to: u16, event: u32) -> Fragment {
        let (to, flags) = (Destination::Node(NodeId(to)), Flags { last: true, ..Flags::default() });
        Fragment {
            to,
            event: EventId(event),
            flags,
            following: 0,
            data: Bytes::from_static(b"word"),
        }
    }

    /// What a peer that never answers has not acknowledged stays on the adapter, and nothing of what others have since.
    #[test]
    fn a_silent_peer_costs_no_memory_for_what_others_acknowledge() {
        let mut store = Store::default();
        store.keep(0, &fragment(1, 0), std::iter::empty(), 16);
        for event in 1..10_000 {
            assert_eq!(store.keep(0, &fragment(2, event), std::iter::empty(), 16), 0);
            store.acknowledge(NodeId(2), EventId(event), EventId(event + 1));
        }
        assert_eq!((store.len(), store.on_board), (1, 1));
        assert!(store.board.len() < 100, "{}", store.board.len());
        // The one that stays is the oldest, and the first to be copied.
        assert_eq!(store.keep(0, &fragment(2, 10_000), std::iter::empty(), 1), 4);
        assert!(!store.get(&(EventId(0), Some(NodeId(1)), 0)).unwrap().on_board);
    }
}
