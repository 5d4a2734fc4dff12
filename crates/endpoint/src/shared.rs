//! The state that the two ends of a flow share, beside the packets: both live in this process.

use crate::run::EndReport;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use trunkline_core::{Span, Time};
use trunkline_measure::Trail;
use trunkline_workload::Stamp;

/// Records of packets under way that are kept in each direction however old they are. Those of lost packets are
/// never fetched.
const FEW_IN_FLIGHT: usize = 1 << 16;
/// Records that are kept in each direction at most, some 200 bytes each; the oldest go first.
const MOST_IN_FLIGHT: usize = 1 << 20;

/// The companions of a message for the application that reads it: its record, and a datagram's stamp.
#[derive(Debug, Clone)]
pub(crate) struct Carried {
    pub trail: Trail,
    pub stamp: Option<Stamp>,
}

/// The records of a packet under way.
#[derive(Debug, Clone)]
pub(crate) struct Flying {
    /// Of the block that it ends, since the window allowed it; of a datagram, since it could be sent.
    pub block: Trail,
    /// Of the message that it completes.
    pub message: Option<Carried>,
}

impl Flying {
    /// Changes both records.
    pub fn each(&mut self, mut change: impl FnMut(&mut Trail)) {
        change(&mut self.block);
        self.message.iter_mut().for_each(|carried| change(&mut carried.trail));
    }
}

/// The end of a message in a TCP stream.
#[derive(Debug)]
pub(crate) struct MessageEnd {
    /// Bytes of the stream up to it.
    pub at: u64,
    /// Whether the last of them is none of the user's.
    pub filler: bool,
    pub carried: Carried,
}

/// One direction of a flow.
#[derive(Debug, Default)]
pub(crate) struct Way {
    in_flight: Mutex<InFlight>,
    ends: Mutex<VecDeque<MessageEnd>>,
    /// Units handed to the network: packets, or bytes of a stream.
    pub sent: AtomicU64,
    /// Units taken by the reader.
    pub taken: AtomicU64,
}

impl Way {
    /// Keeps the records of packet `number`.
    pub fn keep(&self, number: u64, flying: Flying) {
        lock(&self.in_flight).keep(number, flying);
    }

    /// The records of packet `number`, once: a copy finds none.
    pub fn fetch(&self, number: u64) -> Option<Flying> {
        lock(&self.in_flight).fetch(number)
    }

    /// The number of packets that came after their records had been given up.
    pub fn unrecorded(&self) -> u64 {
        lock(&self.in_flight).unrecorded
    }

    /// The ends of messages that the reader has not come to.
    pub fn ends(&self) -> MutexGuard<'_, VecDeque<MessageEnd>> {
        lock(&self.ends)
    }

    /// Whether everything has been taken that was sent.
    pub fn drained(&self) -> bool {
        self.taken.load(Ordering::Acquire) >= self.sent.load(Ordering::Acquire)
    }
}

/// The records of packets under way.
#[derive(Debug, Default)]
struct InFlight {
    records: BTreeMap<u64, Flying>,
    /// After so long a packet that has not come is lost, but for what it waits in queues.
    horizon: Span,
    /// Numbers of packets whose records were given up, the latest [`MOST_IN_FLIGHT`] of them.
    given_up: BTreeSet<u64>,
    unrecorded: u64,
}

impl InFlight {
    fn keep(&mut self, number: u64, flying: Flying) {
        let now = flying.block.until();
        self.records.insert(number, flying);
        // Two for each that comes, so that the old ones go away as fast as new ones come.
        for _ in 0..2 {
            let Some(oldest) = self.records.first_entry() else { return };
            let old = now.since(oldest.get().block.until()) > self.horizon;
            let number = *oldest.key();
            let kept = self.records.len();
            if kept <= FEW_IN_FLIGHT || kept <= MOST_IN_FLIGHT && !old {
                return;
            }
            self.records.pop_first();
            self.given_up.insert(number);
            if self.given_up.len() > MOST_IN_FLIGHT {
                self.given_up.pop_first();
            }
        }
    }

    fn fetch(&mut self, number: u64) -> Option<Flying> {
        let found = self.records.remove(&number);
        if found.is_none() && self.given_up.remove(&number) {
            self.unrecorded += 1;
        }
        found
    }
}

/// The state that the two ends of a flow share.
#[derive(Debug)]
pub(crate) struct Shared {
    /// When it starts; [`Time::NEVER`] before that is known.
    start: AtomicU64,
    stop: AtomicBool,
    /// When its sender ended; 0 before.
    done: AtomicU64,
    /// Whether it has left the rest of what it had to send.
    cut: AtomicBool,
    /// Bytes read at the destination.
    pub delivered: AtomicU64,
    /// Forward and backward.
    pub ways: [Way; 2],
    reports: Mutex<[Option<EndReport>; 2]>,
    reported: Condvar,
    /// An end has gone without a report: the thread of its host has ended.
    lost: AtomicBool,
}

impl Shared {
    /// `linger` is how long a packet can be under way, without its queues.
    pub fn new(linger: Span) -> Shared {
        let way = || Way {
            in_flight: Mutex::new(InFlight { horizon: linger.scaled(4, 1), ..InFlight::default() }),
            ..Way::default()
        };
        Shared {
            start: AtomicU64::new(Time::NEVER.as_nanos()),
            stop: AtomicBool::new(false),
            done: AtomicU64::new(0),
            cut: AtomicBool::new(false),
            delivered: AtomicU64::new(0),
            ways: [way(), way()],
            reports: Mutex::new([None, None]),
            reported: Condvar::new(),
            lost: AtomicBool::new(false),
        }
    }

    pub fn start(&self) -> Time {
        Time::from_nanos(self.start.load(Ordering::Acquire))
    }

    pub fn set_start(&self, at: Time) {
        self.start.store(at.as_nanos(), Ordering::Release);
    }

    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    pub fn stop(&self) {
        self.stop.store(true, Ordering::Release);
    }

    pub fn set_done(&self, at: Time) {
        self.done.store(at.as_nanos().max(1), Ordering::Release);
    }

    /// The sender leaves the rest of what it had to send: nobody is to wait for it.
    pub fn cut_off(&self) {
        self.cut.store(true, Ordering::Release);
    }

    /// An end goes without a report: nobody needs to wait for it.
    pub fn lose(&self) {
        // Under the lock, so that nobody looks before and waits after.
        let _reports = lock(&self.reports);
        self.lost.store(true, Ordering::Release);
        self.reported.notify_all();
    }

    fn lost(&self) -> bool {
        self.lost.load(Ordering::Acquire)
    }

    /// Whether the sender has ended, and what it sent has been read, or been waited for long enough; or an end is
    /// lost.
    pub fn ended(&self, now: Time, linger: Span) -> bool {
        if self.lost() {
            return true;
        }
        let done = self.done.load(Ordering::Acquire);
        let late = now > Time::from_nanos(done) + linger;
        let nothing_comes = self.cut.load(Ordering::Acquire) || self.ways[0].drained();
        done != 0 && (late || nothing_comes)
    }

    pub fn report(&self, side: usize, report: EndReport) {
        lock(&self.reports)[side] = Some(report);
        self.reported.notify_all();
    }

    /// Waits for both ends' reports.
    pub fn reports(&self, patience: Duration) -> Option<[EndReport; 2]> {
        let reports = lock(&self.reports);
        let missing = |reports: &mut [Option<EndReport>; 2]| {
            !self.lost() && reports.iter().any(Option::is_none)
        };
        let waited = self.reported.wait_timeout_while(reports, patience, missing);
        let (mut reports, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let [source, destination] = &mut *reports;
        Some([source.take()?, destination.take()?])
    }
}

/// A thread that panicked has said so; what it left is still good to read.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    /// The records of a packet sent at `at`.
    fn flying(at: Time) -> Flying {
        Flying { block: Trail::new(at), message: None }
    }

    #[test]
    fn records_of_packets_under_way_are_kept_however_many_they_are() {
        let shared = Shared::new(Span::from_secs(1));
        let way = &shared.ways[0];
        let many = 3 * FEW_IN_FLIGHT as u64;
        (0..many).for_each(|number| way.keep(number, flying(Time::from_nanos(number))));
        assert!((0..many).all(|number| way.fetch(number).is_some()));
        assert_eq!(way.unrecorded(), 0);
    }

    #[test]
    fn a_packet_that_comes_after_its_record_was_given_up_is_counted() {
        let shared = Shared::new(Span::from_secs(1));
        let way = &shared.ways[0];
        way.keep(0, flying(Time::ZERO));
        let later = Time::ZERO + Span::from_secs(60);
        (1..=FEW_IN_FLIGHT as u64).for_each(|number| way.keep(number, flying(later)));
        assert!(way.fetch(0).is_none() && way.fetch(1).is_some());
        assert_eq!(way.unrecorded(), 1);
        // Copies find nothing and are no loss of records.
        assert!(way.fetch(0).is_none() && way.fetch(1).is_none());
        assert_eq!(way.unrecorded(), 1);
    }

    #[test]
    fn who_waits_for_an_end_that_is_lost_waits_no_more() {
        let shared = Shared::new(Span::ZERO);
        shared.report(0, EndReport::default());
        assert!(!shared.ended(Time::from_nanos(1), Span::ZERO));
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| {
                let begun = Instant::now();
                let reports = shared.reports(Duration::from_secs(3600));
                (reports.is_none(), begun.elapsed() < Duration::from_secs(1800))
            });
            shared.lose();
            assert_eq!(waits.join().unwrap(), (true, true));
        });
        assert!(shared.ended(Time::from_nanos(1), Span::ZERO));
    }
}
