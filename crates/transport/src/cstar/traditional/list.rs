//! Lists of fragments, as acknowledgements and requests name them.

use crate::cstar::{Entry, EventId};

/// Fragments of one list as its entries.
pub(super) fn entries(missing: &[(EventId, u32)]) -> Vec<Entry> {
    let mut list: Vec<Entry> = Vec::new();
    for &(event, number) in missing {
        let bit = list.last().and_then(|last| {
            let behind = number.checked_sub(last.first + 1)?;
            (last.event == event && behind < 32).then_some(behind)
        });
        match (bit, list.last_mut()) {
            (Some(bit), Some(last)) => last.following |= 1 << bit,
            _ => list.push(Entry { event, first: number, following: 0 }),
        }
    }
    list
}

/// The fragments of an entry.
pub(super) fn fragments(entry: &Entry) -> impl Iterator<Item = (EventId, u32)> + use<> {
    let &Entry { event, first, following } = entry;
    let more = (0..32).filter(move |bit| following >> bit & 1 == 1);
    let more = more.filter_map(move |bit| first.checked_add(1 + bit));
    std::iter::once(first).chain(more).map(move |number| (event, number))
}
