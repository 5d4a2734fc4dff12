//! Whole messages: cut into fragments, and put together.

use bytes::{Bytes, BytesMut};
use std::collections::BTreeMap;
use trunkline_transport::cstar::{Delivery, Destination, EventId, Flags, Fragment, NodeId, Status};

/// All fragments of one node under one event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The node that sent it.
    pub from: NodeId,
    /// The event.
    pub event: EventId,
    /// Its bytes.
    pub data: Bytes,
}

/// The fragments of a message, in order, with at most `frame` bytes each: one if the message has no bytes. Every other node
/// sends under this event too if it is a `crowd`.
pub fn fragments(
    to: Destination,
    event: EventId,
    crowd: bool,
    data: Bytes,
    frame: u32,
) -> impl Iterator<Item = Fragment> {
    let frame = frame.max(1) as usize;
    let count = data.len().div_ceil(frame).max(1);
    (0..count).map(move |number| {
        let (from, until) = (number * frame, data.len().min((number + 1) * frame));
        let flags = Flags { last: number + 1 == count, crowd, large: count > 1 };
        let following = (count - number - 1) as u32;
        Fragment { to, event, flags, following, data: data.slice(from..until) }
    })
}

/// Messages of which some fragments have come, by the fragments' numbers.
#[derive(Debug, Default)]
pub struct Parts(BTreeMap<(EventId, NodeId), BTreeMap<u32, Bytes>>);

impl Parts {
    /// Takes what was received. Returns the message of which it was the last that had not come. A message of a single fragment
    /// is not copied.
    pub fn take(&mut self, delivery: Delivery) -> Option<Message> {
        let Delivery { from, event, fragment, status, data, .. } = delivery;
        let name = (event, from);
        if status == Status::More {
            self.0.entry(name).or_default().insert(fragment, data);
            return None;
        }
        let Some(mut parts) = self.0.remove(&name) else {
            return Some(Message { from, event, data });
        };
        parts.insert(fragment, data);
        let mut whole = BytesMut::with_capacity(parts.values().map(Bytes::len).sum());
        parts.values().for_each(|part| whole.extend_from_slice(part));
        Some(Message { from, event, data: whole.freeze() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Full pieces and a rest, the last one marked; more than one is a large event. A message of no bytes is one piece.
    #[test]
    fn a_message_is_cut_into_what_frames_hold() {
        let cut = |bytes: usize| {
            let data = Bytes::from(vec![7; bytes]);
            fragments(Destination::All, EventId(3), true, data, 4)
                .map(|it| {
                    assert_eq!(
                        (it.to, it.event, it.flags.crowd),
                        (Destination::All, EventId(3), true)
                    );
                    (it.data.len(), it.following, it.flags.last, it.flags.large)
                })
                .collect::<Vec<_>>()
        };
        assert_eq!(cut(0), [(0, 0, true, false)]);
        assert_eq!(cut(4), [(4, 0, true, false)]);
        assert_eq!(cut(5), [(4, 1, false, true), (1, 0, true, true)]);
        assert_eq!(cut(8), [(4, 1, false, true), (4, 0, true, true)]);
        assert_eq!(cut(9), [(4, 2, false, true), (4, 1, false, true), (1, 0, true, true)]);
    }

    proptest! {
        /// Whatever the order in which fragments of several nodes come, each message is whole once its last one is there.
        #[test]
        fn what_was_cut_is_put_together(
            sizes in prop::collection::vec(0_usize..40, 1..4),
            frame in 1_u32..10,
            order in prop::collection::vec(any::<u32>(), 200),
        ) {
            let said = |node: usize| Bytes::from(vec![node as u8; sizes[node]]);
            let mut all: Vec<_> = (0..sizes.len())
                .flat_map(|node| {
                    let cut = fragments(Destination::All, EventId(1), true, said(node), frame);
                    cut.enumerate().map(move |(number, it)| (node, number, it.data))
                })
                .zip(order)
                .collect();
            all.sort_by_key(|it| it.1);
            let mut left: Vec<usize> =
                sizes.iter().map(|bytes| bytes.div_ceil(frame as usize).max(1)).collect();
            let mut parts = Parts::default();
            for ((node, number, data), _) in all {
                left[node] -= 1;
                let status = if left[node] == 0 { Status::NodeDone } else { Status::More };
                let (from, event, fragment) = (NodeId(node as u16), EventId(1), number as u32);
                let whole = parts.take(Delivery { from, event, fragment, status, data, buffer: None });
                let expected = (left[node] == 0).then(|| Message { from, event, data: said(node) });
                prop_assert_eq!(whole, expected);
            }
            prop_assert!(parts.0.is_empty());
        }
    }
}
