//! The numbers of the fragments that a node sends: for each event and destination from 0.

use super::{Destination, EventId, Fragment, NodeId};
use std::collections::BTreeMap;

/// The next number under each event for each destination whose last fragment has not been sent.
#[derive(Debug, Clone, Default)]
pub(super) struct Numbers(BTreeMap<(EventId, Option<NodeId>), u32>);

impl Numbers {
    /// The number of the next fragment, and counts it as sent.
    #[inline]
    pub fn next(&mut self, fragment: &Fragment) -> u32 {
        // Most messages are one fragment.
        if fragment.flags.last && self.0.is_empty() { 0 } else { self.counted(fragment) }
    }

    #[inline(never)]
    fn counted(&mut self, fragment: &Fragment) -> u32 {
        let to = match fragment.to {
            Destination::Node(node) => Some(node),
            Destination::All => None,
        };
        let next = self.0.entry((fragment.event, to)).or_default();
        let number = *next;
        *next += 1;
        if fragment.flags.last {
            self.0.remove(&(fragment.event, to));
        }
        number
    }
}
