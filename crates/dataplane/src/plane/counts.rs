//! Counts of the frames of each way.

use super::plan::{Takes, WayPlan};
use std::sync::atomic::{AtomicU64, Ordering};
use trunkline_core::{Cause, Ledger, Span, Time};
use trunkline_measure::Conservation;
use trunkline_path::medium::StationId;

/// A way at work.
#[derive(Debug)]
pub(super) struct Way {
    pub entry: usize,
    pub exit: usize,
    pub lanes: Box<[usize]>,
    /// The station that hears a frame at each hop, if that is over a medium.
    pub heard_by: Box<[Option<StationId>]>,
    pub takes: Takes,
    /// The waits of addressed frames. The lanes know as much of the others.
    pub hops: Box<[HopSums]>,
}

impl Way {
    pub fn new(plan: WayPlan) -> Way {
        let WayPlan { entry, exit, lanes, heard_by, takes } = plan;
        let hops = match takes {
            Takes::All(_) => Box::default(),
            Takes::Addressed(_) => vec![HopSums::default(); lanes.len()].into_boxed_slice(),
        };
        let (lanes, heard_by) = (lanes.into_boxed_slice(), heard_by.into_boxed_slice());
        Way { entry, exit, lanes, heard_by, takes, hops }
    }

    /// Books what a frame waited for on a hop.
    #[inline]
    pub fn book(&mut self, hop: usize, ledger: &Ledger) {
        if let Some(sums) = self.hops.get_mut(hop) {
            sums.add(ledger);
        }
    }

    /// Books how late a frame left.
    #[inline]
    pub fn book_lateness(&mut self, hop: usize, lateness: Span) {
        if let Some(sums) = self.hops.get_mut(hop) {
            sums.late += u128::from(lateness.as_nanos());
        }
    }
}

/// The waits of a way's frames on one hop, summed, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HopSums {
    /// Frames that have passed.
    pub frames: u64,
    /// In queues.
    pub queue: u128,
    /// For their own bits.
    pub transmit: u128,
    /// For the distance.
    pub propagate: u128,
    /// The emulator's lateness, if frames leave here.
    pub late: u128,
}

impl HopSums {
    #[inline]
    fn add(&mut self, ledger: &Ledger) {
        let nanos = |cause| u128::from(ledger.get(cause).as_nanos());
        self.frames += 1;
        self.queue += nanos(Cause::Queue);
        self.transmit += nanos(Cause::Transmit);
        self.propagate += nanos(Cause::Propagate);
    }
}

/// Counts of every way, written by the dataplane and read by whoever wants to know, and the other way round
/// the wish to begin anew.
#[derive(Debug)]
pub struct Live {
    ways: Box<[WayCounts]>,
    /// When the network is to begin anew, in nanoseconds; 0 if it is not.
    restart: AtomicU64,
    /// When it last began anew, or is to, in nanoseconds; 0 if never.
    begun: AtomicU64,
}

/// Counts of one way's frames. Only the dataplane writes them, so that adding is no more than a store.
#[derive(Debug, Default)]
pub struct WayCounts {
    sent: AtomicU64,
    duplicated: AtomicU64,
    delivered: AtomicU64,
    dropped: AtomicU64,
}

impl Live {
    pub(super) fn new(ways: usize) -> Live {
        let ways = (0..ways).map(|_| WayCounts::default()).collect();
        Live { ways, restart: AtomicU64::new(0), begun: AtomicU64::new(0) }
    }

    /// The counts of way `index`.
    ///
    /// # Panics
    /// If there is no such way.
    #[inline]
    pub fn way(&self, index: usize) -> &WayCounts {
        &self.ways[index]
    }

    /// Asks the network to forget all frames and counts, and to begin anew at `origin`, like one just made.
    /// It does so within a tenth of a second; see [`has_restarted`](Live::has_restarted).
    pub fn restart(&self, origin: Time) {
        self.begun.store(origin.as_nanos(), Ordering::Release);
        self.restart.store(origin.as_nanos().max(1), Ordering::Release);
    }

    /// When the network began anew, or is to, if it was ever asked to.
    pub fn begun(&self) -> Option<Time> {
        let at = self.begun.load(Ordering::Acquire);
        (at != 0).then(|| Time::from_nanos(at))
    }

    /// Whether the network has done what [`restart`](Live::restart) asked for.
    pub fn has_restarted(&self) -> bool {
        self.restart.load(Ordering::Acquire) == 0
    }

    /// When the network is to begin anew.
    #[inline]
    pub(super) fn wanted_restart(&self) -> Option<Time> {
        let at = self.restart.load(Ordering::Acquire);
        (at != 0).then(|| Time::from_nanos(at))
    }

    /// The network has begun anew: nothing has been counted.
    pub(super) fn restarted(&self) {
        self.ways.iter().for_each(WayCounts::clear);
        self.restart.store(0, Ordering::Release);
    }

    /// Frames under way in all.
    pub fn in_flight(&self) -> u64 {
        self.ways.iter().map(|way| way.conservation().in_flight).sum()
    }
}

#[inline]
fn one_more(counter: &AtomicU64) {
    counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Release);
}

impl WayCounts {
    fn clear(&self) {
        let WayCounts { sent, duplicated, delivered, dropped } = self;
        for one in [sent, duplicated, delivered, dropped] {
            one.store(0, Ordering::Relaxed);
        }
    }
    #[inline]
    pub(super) fn send(&self) {
        one_more(&self.sent);
    }
    pub(super) fn duplicate(&self) {
        one_more(&self.duplicated);
    }
    #[inline]
    pub(super) fn deliver(&self) {
        one_more(&self.delivered);
    }
    pub(super) fn drop_one(&self) {
        one_more(&self.dropped);
    }

    /// Counts of the way's frames. While the dataplane works on one, it counts as in flight.
    pub fn conservation(&self) -> Conservation {
        // What has gone is read first: a frame is never seen to go before it came.
        let delivered = self.delivered.load(Ordering::Acquire);
        let dropped = self.dropped.load(Ordering::Acquire);
        let duplicated = self.duplicated.load(Ordering::Acquire);
        let sent = self.sent.load(Ordering::Acquire);
        let in_flight = (sent + duplicated).saturating_sub(delivered + dropped);
        Conservation { sent, duplicated, delivered, dropped, in_flight }
    }
}
