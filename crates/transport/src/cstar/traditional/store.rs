//! What a node has sent and may have to repeat.

use crate::cstar::{Destination, EventId, Flags, Fragment, NodeId};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound::{Excluded, Included};

/// A fragment's event, its destination (`None` for all), and its number under both.
pub(super) type Label = (EventId, Option<NodeId>, u32);

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

/// Fragments in the order of their events.
#[derive(Debug, Clone, Default)]
pub(super) struct Store {
    sent: BTreeMap<Label, Descriptor>,
    /// Those on the adapter, the oldest first; some may be gone.
    board: VecDeque<Label>,
    on_board: u32,
}

impl Store {
    pub fn len(&self) -> u32 {
        self.sent.len() as u32
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
        let copied = if self.on_board >= room { self.copy_oldest() } else { 0 };
        let (to, awaited) = match fragment.to {
            Destination::Node(node) => (Some(node), BTreeSet::new()),
            Destination::All => (None, others.collect()),
        };
        let label = (fragment.event, to, number);
        let (flags, data) = (fragment.flags, fragment.data.clone());
        let descriptor = Descriptor { flags, data, awaited, on_board: true };
        self.sent.insert(label, descriptor);
        self.board.push_back(label);
        self.on_board += 1;
        copied
    }

    fn copy_oldest(&mut self) -> u64 {
        while let Some(label) = self.board.pop_front() {
            if let Some(descriptor) = self.sent.get_mut(&label) {
                descriptor.on_board = false;
                self.on_board -= 1;
                return descriptor.data.len() as u64;
            }
        }
        0
    }

    /// `node` has all fragments of events from `from` on and before `until`. Answers how many of them are done with.
    pub fn acknowledge(&mut self, node: NodeId, from: EventId, until: EventId) -> u32 {
        let (mut next, end) = (Included((from, None, 0)), Excluded((until, None, 0)));
        let mut done = 0;
        while let Some((&label, _)) = self.sent.range((next, end)).next() {
            done += u32::from(self.has(node, &label));
            next = Excluded(label);
        }
        done
    }

    /// `node` has this fragment. Whether it is done with.
    pub fn has(&mut self, node: NodeId, label: &Label) -> bool {
        let Some(descriptor) = self.sent.get_mut(label) else { return false };
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
        if let Some(descriptor) = self.sent.remove(label)
            && descriptor.on_board
        {
            self.on_board -= 1;
        }
        // What is gone from the front needs no place any more.
        while self.board.front().is_some_and(|label| !self.sent.contains_key(label)) {
            self.board.pop_front();
        }
        true
    }

    /// The label of a fragment for `node`, if it is kept: of one for it alone, else of one for all.
    pub fn find(&self, node: NodeId, event: EventId, number: u32) -> Option<Label> {
        let labels = [(event, Some(node), number), (event, None, number)];
        labels.into_iter().find(|label| self.sent.contains_key(label))
    }

    pub fn get(&self, label: &Label) -> Option<&Descriptor> {
        self.sent.get(label)
    }

    /// The oldest, and one who has not acknowledged it.
    pub fn oldest(&self) -> Option<(Label, NodeId)> {
        let (label, descriptor) = self.sent.first_key_value()?;
        Some((*label, label.1.or_else(|| descriptor.awaited.first().copied())?))
    }
}
