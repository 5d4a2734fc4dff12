//! The scoreboard: one record for each segment that has been sent and not been acknowledged.
//!
//! A segment is in flight, known to have arrived (SACKed), or lost and waiting to be sent again. *In
//! flight* is RFC 6675's pipe: everything outstanding but the latter two.
//!
//! What windows are compared with has the window's measure: octets, or segments, each of which counts as a full one
//! however short it is, as in Linux (`tcp_packets_in_flight`).

use super::congestion::{RateSample, RateSampler, Stamp};
use super::reassembly::Range;
use super::usage::Usage;
use std::collections::VecDeque;
use std::num::NonZeroU32;
use trunkline_core::{Span, Tight, Time};

/// The state of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    InFlight,
    Arrived,
    Lost,
}

/// A segment sent: 32 octets.
#[derive(Debug, Clone, Copy)]
pub struct Record {
    /// When it was sent last.
    pub sent: Time,
    /// When it was sent first.
    pub first: Time,
    /// When it could have been.
    pub eligible: Time,
    /// The low half of its position.
    start: u32,
    /// Sequence numbers, a SYN or FIN counting.
    pub len: u16,
    /// The number of times it was sent.
    pub times: u8,
    pub fate: Fate,
}

/// The records that an acknowledgement took out.
#[derive(Debug, Clone, Copy, Default)]
pub struct Taken {
    /// Octets acknowledged cumulatively.
    pub acked: u64,
    /// Octets newly known to have arrived.
    pub delivered: u64,
    /// The segments that are through with the former, and those of the latter.
    pub segments: (u32, u32),
    /// When the oldest segment among them that was sent once was sent.
    pub oldest: Option<Time>,
    /// When the newest was.
    pub newest: Option<Time>,
    /// The segment sent last of all those, by time and then by position (RFC 8985 §6.2 step 2).
    pub latest: Option<Latest>,
    /// A round trip shorter than any before: what was sent again and seems to have arrived sooner had
    /// arrived the first time (RFC 8985 §6.2 step 2).
    pub shortest: Span,
    /// Whether a segment sent once arrived after one above it.
    pub reordered: bool,
    /// Whether a segment among them was sent again.
    pub repaired: bool,
    /// When the last of those was sent for the last time.
    pub again: Option<Time>,
    /// The position after the first of those sent once.
    pub original: Option<u64>,
}

/// A segment that arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Latest {
    pub sent: Time,
    pub end: u64,
}

/// Stamps beside the records, for controllers that want to know the rate of delivery.
#[derive(Debug, Clone, Default)]
struct Sampling {
    sampler: RateSampler,
    stamps: VecDeque<Stamp>,
    /// What was found lost since the last sample.
    lost: u64,
}

/// What few senders need.
#[derive(Debug, Clone)]
struct Extras {
    sampling: Option<Box<Sampling>>,
    counted: Option<Counted>,
}

/// A window that counts segments: what each counts as, and how much of the window was used.
#[derive(Debug, Clone, Copy)]
struct Counted {
    unit: NonZeroU32,
    usage: Usage,
}

/// The records, in order of position.
#[derive(Debug, Clone)]
pub struct Scoreboard {
    records: VecDeque<Record>,
    una: u64,
    next: u64,
    /// In the window's measure.
    arrived: u64,
    lost: u64,
    /// The position after the last octet known to have arrived.
    highest: u64,
    /// Before this position nothing is lost and waits.
    search: u64,
    extras: Option<Box<Extras>>,
}

/// Duplicate acknowledgements, or segments above, that tell of a loss (RFC 5681 §3.2, RFC 6675 §2).
pub const DUP_THRESH: u64 = 3;

impl Scoreboard {
    /// Nothing sent; the next position is `start`. Each segment counts as `unit` octets, if that is given.
    pub fn new(start: u64, samples: bool, unit: Option<NonZeroU32>) -> Scoreboard {
        Scoreboard {
            records: VecDeque::new(),
            una: start,
            next: start,
            arrived: 0,
            lost: 0,
            highest: start,
            search: start,
            extras: (samples || unit.is_some()).then(|| {
                let counted = unit.map(|unit| Counted { unit, usage: Usage::default() });
                Box::new(Extras { sampling: samples.then(Box::default), counted })
            }),
        }
    }

    #[inline]
    fn counted(&self) -> Option<&Counted> {
        self.extras.as_ref()?.counted.as_ref()
    }
    #[inline]
    fn sampling(&mut self) -> Option<&mut Sampling> {
        self.extras.as_mut()?.sampling.as_deref_mut()
    }

    /// The first position not acknowledged.
    pub const fn una(&self) -> u64 {
        self.una
    }
    /// The first position not sent.
    pub const fn next(&self) -> u64 {
        self.next
    }
    /// Octets sent and not acknowledged cumulatively.
    pub const fn outstanding(&self) -> u64 {
        self.next - self.una
    }
    /// The same in the window's measure: FlightSize of RFC 5681.
    #[inline]
    pub fn flight_size(&self) -> u64 {
        self.measured(self.outstanding(), self.records.len() as u64)
    }
    /// Pipe of RFC 6675, in the window's measure.
    #[inline]
    pub fn in_flight(&self) -> u64 {
        self.flight_size() - self.arrived - self.lost
    }
    /// So many octets in so many segments, in the window's measure.
    #[inline]
    pub fn measured(&self, octets: u64, segments: u64) -> u64 {
        self.counted().map_or(octets, |counted| segments * u64::from(counted.unit.get()))
    }
    /// Puts what an acknowledgement took out in the window's measure. Part of a segment is nothing where segments count.
    #[inline]
    pub fn convert(&self, taken: &mut Taken) {
        let (acked, delivered) = taken.segments;
        taken.acked = self.measured(taken.acked, acked.into());
        taken.delivered = self.measured(taken.delivered, delivered.into());
    }
    /// What waits to be sent again, in the window's measure.
    pub const fn lost(&self) -> u64 {
        self.lost
    }
    /// Octets that were sent again and have not arrived.
    pub fn repairs(&self) -> u64 {
        let repaired = |record: &&Record| record.times > 1 && record.fate == Fate::InFlight;
        self.records.iter().filter(repaired).map(|record| u64::from(record.len)).sum()
    }
    /// What arrived beyond something missing, in the window's measure.
    pub const fn arrived(&self) -> u64 {
        self.arrived
    }
    pub fn first(&self) -> Option<&Record> {
        self.records.front()
    }
    /// The number of outstanding segments.
    pub fn segments(&self) -> usize {
        self.records.len()
    }

    fn offset(&self, record: &Record) -> u64 {
        u64::from(record.start.wrapping_sub(self.una as u32))
    }
    /// The position at which `record` starts.
    pub fn start(&self, record: &Record) -> u64 {
        self.una + self.offset(record)
    }
    /// The position after its last octet.
    pub fn end(&self, record: &Record) -> u64 {
        self.start(record) + u64::from(record.len)
    }
    /// The index of the record that ends after `position`.
    pub fn index_of(&self, position: u64) -> usize {
        self.records.partition_point(|record| self.end(record) <= position)
    }
    pub fn get(&self, index: usize) -> Option<&Record> {
        self.records.get(index)
    }

    /// The number of records sent for the first time before `latest` was sent.
    pub fn sent_before(&self, latest: &Latest) -> usize {
        let before = |record: &Record| (record.first, self.end(record)) < (latest.sent, latest.end);
        self.records.partition_point(before)
    }

    /// A new segment goes out.
    #[inline]
    pub fn push(&mut self, now: Time, eligible: Time, len: u16) {
        let in_flight = self.in_flight();
        if let Some(sampling) = self.sampling() {
            sampling.stamps.push_tight(sampling.sampler.stamp(now, in_flight));
        }
        let start = self.next as u32;
        let fate = Fate::InFlight;
        self.records.push_tight(Record {
            sent: now,
            first: now,
            eligible,
            start,
            len,
            times: 1,
            fate,
        });
        self.next += u64::from(len);
    }

    /// The record at `index` goes out again.
    pub fn resend(&mut self, now: Time, index: usize) {
        let in_flight = self.in_flight();
        if let Some(sampling) = self.sampling() {
            sampling.stamps[index] = sampling.sampler.stamp(now, in_flight);
        }
        let measured = self.measured(self.records[index].len.into(), 1);
        let record = &mut self.records[index];
        if record.fate == Fate::Lost {
            record.fate = Fate::InFlight;
            self.lost -= measured;
        }
        record.sent = now;
        record.times = record.times.saturating_add(1);
    }

    /// Everything before `ack` has arrived.
    #[inline]
    pub fn advance(&mut self, now: Time, ack: u64, taken: &mut Taken) {
        debug_assert!(ack <= self.next);
        taken.acked += ack.saturating_sub(self.una);
        while let Some(record) = self.records.front().copied() {
            let end = self.end(&record);
            if self.start(&record) >= ack {
                break;
            }
            let len = end.min(ack) - self.start(&record);
            self.account(now, 0, record, len, taken);
            if end > ack {
                self.trim(len as u16);
                break;
            }
            self.records.pop_front();
            taken.segments.0 += 1;
            if let Some(sampling) = self.sampling() {
                sampling.stamps.pop_front();
            }
            self.una = end;
        }
        self.una = self.una.max(ack);
        self.highest = self.highest.max(ack);
        self.search = self.search.max(ack);
    }

    /// Cuts off the front of the first record.
    fn trim(&mut self, len: u16) {
        if let Some(record) = self.records.front_mut() {
            record.start = record.start.wrapping_add(u32::from(len));
            record.len -= len;
        }
    }

    /// `len` octets of `record`, which is at `index`, are out of the books as whatever they were.
    #[inline]
    fn account(&mut self, now: Time, index: usize, record: Record, len: u64, taken: &mut Taken) {
        let whole = u32::from(len == u64::from(record.len));
        let measured = self.measured(len, whole.into());
        match record.fate {
            Fate::Arrived => {
                self.arrived -= measured;
                return;
            }
            Fate::Lost => self.lost -= measured,
            Fate::InFlight => {}
        }
        taken.delivered += len;
        taken.segments.1 += whole;
        if record.times > 1 {
            taken.repaired = true;
            taken.again = taken.again.max(Some(record.sent));
        }
        if record.times == 1 {
            taken.oldest = Some(taken.oldest.map_or(record.sent, |sent| sent.min(record.sent)));
            taken.newest = taken.newest.max(Some(record.sent));
            let end = self.end(&record);
            taken.original = Some(taken.original.map_or(end, |first| first.min(end)));
            taken.reordered |= self.end(&record) < self.highest;
        }
        if record.times == 1 || now.since(record.sent) >= taken.shortest {
            let latest = Latest { sent: record.sent, end: self.end(&record) };
            taken.latest = taken.latest.max(Some(latest));
        }
        if let Some(sampling) = self.sampling() {
            sampling.sampler.delivered(now, &sampling.stamps[index], record.sent, measured);
        }
    }

    /// Everything in `run` has arrived, though something before it may not have. Records that it does not
    /// cover whole stay as they are.
    pub fn sack(&mut self, now: Time, run: Range, taken: &mut Taken) {
        if run.start >= run.end || run.start < self.una || run.end > self.next {
            return;
        }
        for index in self.index_of(run.start).. {
            let Some(record) = self.records.get(index).copied() else { break };
            if self.end(&record) > run.end {
                break;
            }
            if self.start(&record) < run.start || record.fate == Fate::Arrived {
                continue;
            }
            let len = u64::from(record.len);
            self.account(now, index, record, len, taken);
            self.records[index].fate = Fate::Arrived;
            self.arrived += self.measured(len, 1);
            self.highest = self.highest.max(self.end(&record));
        }
    }

    /// The record at `index` is lost.
    pub fn lose(&mut self, index: usize) {
        let Some(record) = self.records.get_mut(index) else { return };
        if record.fate == Fate::InFlight {
            record.fate = Fate::Lost;
            let record = *record;
            self.search = self.search.min(self.start(&record));
            let measured = self.measured(record.len.into(), 1);
            self.lost += measured;
            if let Some(sampling) = self.sampling() {
                sampling.lost += measured;
            }
        }
    }

    /// Everything not known to have arrived is lost (RFC 6298 §5.4, RFC 6675 §5.1).
    pub fn lose_all(&mut self) {
        (0..self.records.len()).for_each(|index| self.lose(index));
    }

    /// Nothing is lost after all: what waits was in flight.
    pub fn forgive(&mut self) {
        for record in self.records.iter_mut().filter(|record| record.fate == Fate::Lost) {
            record.fate = Fate::InFlight;
        }
        self.lost = 0;
    }

    /// The first record that waits to be sent again.
    #[inline]
    pub fn next_lost(&mut self) -> Option<usize> {
        if self.lost == 0 { None } else { self.search_lost() }
    }

    fn search_lost(&mut self) -> Option<usize> {
        let from = self.index_of(self.search);
        let found = self.records.range(from..).position(|record| record.fate == Fate::Lost);
        let index = from + found?;
        self.search = self.start(&self.records[index]);
        Some(index)
    }

    /// The position before which everything that has not arrived and was sent once counts as lost:
    /// [`DUP_THRESH`] segments above it have arrived, or more octets than `DUP_THRESH` − 1 full ones
    /// (IsLost of RFC 6675 §4).
    pub fn lost_below(&self, mss: u32) -> u64 {
        let (mut segments, mut octets) = (0, 0);
        let top = self.index_of(self.highest.saturating_sub(1));
        for index in (0..=top).rev() {
            let Some(record) = self.records.get(index) else { continue };
            if record.fate == Fate::Arrived {
                segments += 1;
                octets += u64::from(record.len);
                if segments >= DUP_THRESH || octets > (DUP_THRESH - 1) * u64::from(mss) {
                    return self.start(record);
                }
            }
        }
        self.una
    }

    /// Counts as lost what was sent once and has not arrived between `from` and `to`.
    pub fn lose_between(&mut self, from: u64, to: u64) {
        for index in self.index_of(from).. {
            match self.records.get(index) {
                Some(record) if self.start(record) < to => {
                    if record.times == 1 {
                        self.lose(index);
                    }
                }
                _ => break,
            }
        }
    }

    /// The application has nothing to send while the window would allow it.
    pub fn app_limited(&mut self) {
        let in_flight = self.in_flight();
        if let Some(sampling) = self.sampling() {
            sampling.sampler.app_limited(in_flight);
        }
    }

    /// Something new was sent, or the window, being `full`, has kept it back.
    #[inline]
    pub fn note_usage(&mut self, full: bool) {
        let (outstanding, between) = (self.flight_size(), (self.una, self.next));
        if let Some(counted) = self.extras.as_mut().and_then(|extras| extras.counted.as_mut()) {
            counted.usage.note(full, outstanding, between);
        }
    }

    /// Whether the window is used enough to grow, if it counts segments.
    pub fn uses(&self, window: u64, slow_start: bool) -> Option<bool> {
        Some(self.counted()?.usage.is_enough(window, slow_start))
    }

    /// The sample of the acknowledgement worked through last.
    pub fn rate_sample(&mut self, min_rtt: Span, before: u64) -> Option<RateSample> {
        let sampling = self.sampling()?;
        let sample = sampling.sampler.sample(min_rtt, sampling.lost, before)?;
        sampling.lost = 0;
        Some(sample)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    const MSS: u16 = 1000;

    fn at(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    /// Segments of 1000 octets, one each millisecond, from a position on whose low half wraps.
    fn sent(segments: u64) -> (Scoreboard, u64) {
        let start = (1 << 32) - 2500;
        let mut board = Scoreboard::new(start, false, None);
        (0..segments).for_each(|number| board.push(at(number), at(number), MSS));
        (board, start)
    }

    fn run(start: u64, from: u64, to: u64) -> Range {
        Range { start: start + from, end: start + to }
    }

    #[test]
    fn a_record_is_as_small_as_it_was_meant_to_be() {
        assert_eq!(size_of::<Record>(), 32);
    }

    #[test]
    fn the_pipe_leaves_out_what_arrived_and_what_is_lost() {
        let (mut board, start) = sent(10);
        let mut taken = Taken::default();
        board.sack(at(20), run(start, 3000, 6000), &mut taken);
        assert_eq!((taken.delivered, taken.oldest, taken.newest), (3000, Some(at(3)), Some(at(5))));
        let below = board.lost_below(u32::from(MSS));
        assert_eq!(below, start + 3000);
        board.lose_between(start, below);
        assert_eq!((board.lost(), board.in_flight(), board.outstanding()), (3000, 4000, 10_000));
        assert_eq!(board.next_lost(), Some(0));
        board.resend(at(21), 0);
        assert_eq!((board.next_lost(), board.in_flight()), (Some(1), 5000));
        board.lose_between(start, below);
        assert_eq!(board.lost(), 2000, "what was sent again is not lost by the same evidence");
    }

    proptest! {
        /// Whatever becomes of segments, those in flight and those arrived count as full ones, each once.
        #[test]
        fn each_segment_counts_as_a_full_one(
            steps in vec((0..7u8, 0..16u16, 0..16u16), 0..80),
        ) {
            let unit = u32::from(MSS);
            let mut board = Scoreboard::new(1, false, NonZeroU32::new(unit));
            let (mut now, mut acked) = (0, 0);
            for (what, one, other) in steps {
                now += 1;
                let mut taken = Taken::default();
                let (una, next) = (board.una(), board.next());
                let place = |part: u16| una + (next - una) * u64::from(part) / 15;
                let index = usize::from(one) % board.segments().max(1);
                let before = board.segments();
                match what {
                    0 | 1 => board.push(at(now), at(now), 1 + (one * 16 + other) * 4 % MSS),
                    2 => board.advance(at(now), place(one), &mut taken),
                    3 => {
                        board.sack(at(now), Range { start: place(one), end: place(other) }, &mut taken);
                    }
                    4 => board.lose(index),
                    5 if before > 0 => board.resend(at(now), index),
                    _ => board.forgive(),
                }
                board.convert(&mut taken);
                let gone = before.saturating_sub(board.segments()) as u64;
                prop_assert_eq!(taken.acked, gone * u64::from(unit));
                acked += taken.acked;
                let of = |fate| board.records.iter().filter(|it| it.fate == fate).count() as u64;
                prop_assert_eq!(board.in_flight(), of(Fate::InFlight) * u64::from(unit));
                prop_assert_eq!(board.arrived(), of(Fate::Arrived) * u64::from(unit));
                prop_assert_eq!(board.flight_size(), board.segments() as u64 * u64::from(unit));
            }
            prop_assert!(acked % u64::from(unit) == 0);
        }
    }

    #[test]
    fn what_begins_where_the_loss_ends_is_not_lost() {
        let (mut board, start) = sent(4);
        board.lose_between(start, start + 2000);
        assert_eq!((board.lost(), board.in_flight()), (2000, 2000));
    }

    #[test]
    fn an_acknowledgement_takes_everything_out_of_the_books() {
        let (mut board, start) = sent(10);
        let mut taken = Taken::default();
        board.sack(at(20), run(start, 3000, 6000), &mut taken);
        board.lose_between(start, start + 3000);
        let mut taken = Taken::default();
        board.advance(at(30), start + 4500, &mut taken);
        assert_eq!(taken.delivered, 3000);
        assert_eq!((board.una(), board.arrived(), board.lost()), (start + 4500, 1500, 0));
        assert_eq!(board.start(board.first().unwrap()), start + 4500);
        board.advance(at(31), start + 10_000, &mut taken);
        assert_eq!((taken.acked, taken.delivered, board.in_flight()), (10_000, 7000, 0));
        assert_eq!((board.segments(), board.arrived()), (0, 0));
    }

    #[test]
    fn two_segments_above_are_no_loss_and_three_are() {
        let (mut board, start) = sent(10);
        let mut taken = Taken::default();
        board.sack(at(20), run(start, 2000, 3000), &mut taken);
        board.sack(at(20), run(start, 5000, 6000), &mut taken);
        assert_eq!(board.lost_below(u32::from(MSS)), start);
        board.sack(at(20), run(start, 8000, 9000), &mut taken);
        assert_eq!(board.lost_below(u32::from(MSS)), start + 2000);
        board.sack(at(20), run(start, 7500, 9500), &mut taken);
        assert_eq!(board.arrived(), 3000, "a run that covers no other segment whole");
    }

    #[test]
    fn all_is_lost_and_all_is_forgiven() {
        let (mut board, start) = sent(4);
        board.sack(at(9), run(start, 1000, 2000), &mut Taken::default());
        board.lose_all();
        assert_eq!((board.lost(), board.in_flight()), (3000, 0));
        board.forgive();
        assert_eq!((board.lost(), board.in_flight(), board.next_lost()), (0, 3000, None));
    }
}
