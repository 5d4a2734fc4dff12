//! Records of single packets, hop by hop.

use super::LinkId;
use super::parcel::MOST;
use std::collections::BTreeMap;
use trunkline_core::{Span, Tight};

/// A packet's record of its hops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TraceId(pub u32);

/// What a packet waited for on one link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HopShare {
    /// The link.
    pub link: LinkId,
    /// In queues.
    pub queue: Span,
    /// Its own bits.
    pub transmit: Span,
    /// Distance.
    pub propagate: Span,
}

/// The end of a list.
const NONE: u32 = u32::MAX;

/// One hop of a record, and where the next one is: 20 bytes, of which a run with many connections has very many.
#[derive(Debug, Clone, Copy)]
struct Hop {
    link: LinkId,
    next: u32,
    /// Nanoseconds; [`LONG`] if the share is kept in [`Traces::long`].
    queue: u32,
    transmit: u32,
    propagate: u32,
}

/// The time in queues of a hop of which a span is too long for 32 bits: 4.3 s or more.
const LONG: u32 = u32::MAX;

impl Hop {
    /// The last hop of a record.
    #[inline]
    fn of(share: &HopShare) -> Hop {
        let HopShare { link, queue, transmit, propagate } = *share;
        let [queue, transmit, propagate] = [queue, transmit, propagate].map(Span::as_nanos);
        let next = NONE;
        if queue | transmit | propagate >= u64::from(LONG) {
            return Hop { link, next, queue: LONG, transmit: LONG, propagate: LONG };
        }
        let (queue, transmit, propagate) = (queue as u32, transmit as u32, propagate as u32);
        Hop { link, next, queue, transmit, propagate }
    }
}

/// All records. The hops of all of them lie in one place, those given back in a list of their own, so that records under
/// way take no more than the hops that they have.
#[derive(Debug)]
pub(super) struct Traces {
    /// Of each record the first and the last hop.
    records: Vec<(u32, u32)>,
    free: Vec<TraceId>,
    hops: Vec<Hop>,
    free_hops: u32,
    /// The shares of hops that are too long, by their places.
    long: BTreeMap<u32, HopShare>,
}

impl Default for Traces {
    fn default() -> Traces {
        let (records, free, hops, long) = Default::default();
        Traces { records, free, hops, free_hops: NONE, long }
    }
}

impl Traces {
    /// An empty record.
    ///
    /// # Panics
    /// If too many are kept at one time to be numbered in a packet.
    pub(super) fn start(&mut self) -> TraceId {
        self.free.pop().unwrap_or_else(|| {
            let number = self.records.len() as u32;
            assert!(number < MOST, "at most 2^24 records of hops are kept at one time");
            self.records.push_tight((NONE, NONE));
            TraceId(number)
        })
    }

    /// A record with the same hops as `trace`.
    pub(super) fn copy(&mut self, trace: TraceId) -> TraceId {
        let copy = self.start();
        let mut next = self.records[trace.0 as usize].0;
        while let Some((share, after)) = self.hop(next) {
            self.push(copy, share);
            next = after;
        }
        copy
    }

    /// The hops recorded, in order.
    pub(super) fn hops(&self, trace: TraceId) -> impl Iterator<Item = HopShare> {
        let mut next = self.records[trace.0 as usize].0;
        std::iter::from_fn(move || {
            let (share, after) = self.hop(next)?;
            next = after;
            Some(share)
        })
    }

    /// The hop at a place, and the place of the next one.
    #[inline]
    fn hop(&self, place: u32) -> Option<(HopShare, u32)> {
        let &Hop { link, next, queue, transmit, propagate } = self.hops.get(place as usize)?;
        if queue == LONG {
            return Some((self.long[&place], next));
        }
        let nanos = |nanos: u32| Span::from_nanos(nanos.into());
        let (queue, transmit, propagate) = (nanos(queue), nanos(transmit), nanos(propagate));
        Some((HopShare { link, queue, transmit, propagate }, next))
    }

    /// Adds a hop.
    pub(super) fn push(&mut self, trace: TraceId, share: HopShare) {
        let hop = Hop::of(&share);
        let at = self.free_hops;
        let place = match self.hops.get_mut(at as usize) {
            Some(free) => {
                self.free_hops = free.next;
                *free = hop;
                at
            }
            None => {
                self.hops.push_tight(hop);
                (self.hops.len() - 1) as u32
            }
        };
        if hop.queue == LONG {
            self.long.insert(place, share);
        }
        let (first, last) = &mut self.records[trace.0 as usize];
        match self.hops.get_mut(*last as usize) {
            Some(before) => before.next = place,
            None => *first = place,
        }
        *last = place;
    }

    /// Empties a record for others.
    pub(super) fn release(&mut self, trace: TraceId) {
        let (first, last) = std::mem::replace(&mut self.records[trace.0 as usize], (NONE, NONE));
        if !self.long.is_empty() {
            self.forget_long(first);
        }
        if let Some(last) = self.hops.get_mut(last as usize) {
            last.next = self.free_hops;
            self.free_hops = first;
        }
        self.free.push(trace);
    }

    /// Forgets what is kept elsewhere of the hops from `place` on.
    #[cold]
    #[inline(never)]
    fn forget_long(&mut self, mut place: u32) {
        while let Some(hop) = self.hops.get(place as usize) {
            self.long.remove(&place);
            place = hop.next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against records that are vectors of their own.
        #[test]
        fn hops_come_back_in_order_whatever_is_given_back(
            steps in prop::collection::vec((0u8..4, 0usize..6, any::<u32>()), 1..200),
            scale in 0u32..4,
        ) {
            let mut traces = Traces::default();
            let mut kept: Vec<(TraceId, Vec<HopShare>)> = Vec::new();
            let mut most = 0;
            for (what, which, number) in steps {
                let which = which % kept.len().max(1);
                match what {
                    0 => kept.push((traces.start(), Vec::new())),
                    1 if !kept.is_empty() => traces.release(kept.swap_remove(which).0),
                    2 if !kept.is_empty() => {
                        let hops = kept[which].1.clone();
                        kept.push((traces.copy(kept[which].0), hops));
                    }
                    _ if !kept.is_empty() => {
                        let [queue, transmit, propagate] =
                            [0, 1, 2].map(|it| Span::from_nanos(u64::from(number) << (it * scale)));
                        let share = HopShare { link: LinkId(number), queue, transmit, propagate };
                        traces.push(kept[which].0, share);
                        kept[which].1.push(share);
                    }
                    _ => {}
                }
                for (trace, hops) in &kept {
                    prop_assert_eq!(&traces.hops(*trace).collect::<Vec<_>>(), hops);
                }
                most = most.max(kept.iter().map(|(_, hops)| hops.len()).sum());
            }
            prop_assert_eq!(traces.hops.len(), most, "hops given back are used again");
            kept.iter().for_each(|(trace, _)| traces.release(*trace));
            prop_assert!(traces.long.is_empty(), "what was long is forgotten");
        }
    }

    #[test]
    fn hops_are_small_whatever_they_tell() {
        assert_eq!(size_of::<Hop>(), 20);
        let mut traces = Traces::default();
        let trace = traces.start();
        for nanos in [u64::from(u32::MAX), u64::from(u32::MAX) + 1, u64::MAX, 7] {
            let [queue, transmit, propagate] = [nanos; 3].map(Span::from_nanos);
            traces.push(trace, HopShare { link: LinkId(1), queue, transmit, propagate });
        }
        let told: Vec<u64> = traces.hops(trace).map(|hop| hop.propagate.as_nanos()).collect();
        assert_eq!(told, [u64::from(u32::MAX), u64::from(u32::MAX) + 1, u64::MAX, 7]);
        assert_eq!(traces.long.len(), 3);
    }
}
