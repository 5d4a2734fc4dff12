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

/// All records, those given back included, which are used again.
#[derive(Debug, Default)]
pub(super) struct Traces {
    records: Vec<Vec<HopShare>>,
    free: Vec<TraceId>,
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
            self.records.push(Vec::new());
            TraceId(number)
        })
    }

    /// A record with the same hops as `trace`.
    pub(super) fn copy(&mut self, trace: TraceId) -> TraceId {
        let copy = self.start();
        let mut hops = std::mem::take(&mut self.records[copy.0 as usize]);
        hops.extend_from_slice(self.hops(trace));
        self.records[copy.0 as usize] = hops;
        copy
    }

    /// The hops recorded.
    pub(super) fn hops(&self, trace: TraceId) -> &[HopShare] {
        &self.records[trace.0 as usize]
    }

    /// Adds a hop.
    pub(super) fn push(&mut self, trace: TraceId, share: HopShare) {
        self.records[trace.0 as usize].push(share);
    }

    /// Empties a record for others.
    pub(super) fn release(&mut self, trace: TraceId) {
        self.records[trace.0 as usize].clear();
        self.free.push(trace);
    }
}
