//! Records of single packets, hop by hop.

use super::LinkId;
use super::parcel::MOST;
use trunkline_core::Span;

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

/// One hop of a record, and where the next one is: 32 bytes.
#[derive(Debug, Clone, Copy)]
struct Hop {
    link: LinkId,
    next: u32,
    queue: Span,
    transmit: Span,
    propagate: Span,
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
}

impl Default for Traces {
    fn default() -> Traces {
        Traces { records: Vec::new(), free: Vec::new(), hops: Vec::new(), free_hops: NONE }
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
            self.records.push((NONE, NONE));
            TraceId(number)
        })
    }

    /// A record with the same hops as `trace`.
    pub(super) fn copy(&mut self, trace: TraceId) -> TraceId {
        let copy = self.start();
        let mut next = self.records[trace.0 as usize].0;
        while let Some(&hop) = self.hops.get(next as usize) {
            self.append(copy, hop);
            next = hop.next;
        }
        copy
    }

    /// The hops recorded, in order.
    pub(super) fn hops(&self, trace: TraceId) -> impl Iterator<Item = HopShare> {
        let mut next = self.records[trace.0 as usize].0;
        std::iter::from_fn(move || {
            let &Hop { link, next: after, queue, transmit, propagate } =
                self.hops.get(next as usize)?;
            next = after;
            Some(HopShare { link, queue, transmit, propagate })
        })
    }

    /// Adds a hop.
    pub(super) fn push(&mut self, trace: TraceId, share: HopShare) {
        let HopShare { link, queue, transmit, propagate } = share;
        self.append(trace, Hop { link, next: NONE, queue, transmit, propagate });
    }

    fn append(&mut self, trace: TraceId, hop: Hop) {
        let hop = Hop { next: NONE, ..hop };
        let at = self.free_hops;
        let place = match self.hops.get_mut(at as usize) {
            Some(free) => {
                self.free_hops = free.next;
                *free = hop;
                at
            }
            None => {
                self.hops.push(hop);
                (self.hops.len() - 1) as u32
            }
        };
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
        if let Some(last) = self.hops.get_mut(last as usize) {
            last.next = self.free_hops;
            self.free_hops = first;
        }
        self.free.push(trace);
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
                            [0, 1, 2].map(|it| Span::from_nanos(u64::from(number) << it));
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
        }
    }
}
