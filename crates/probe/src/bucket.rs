//! Keeping to a rate.

use crate::wire::record::HEAD;
use trunkline_core::{Rate, Span, Time};

/// The amount that may go at once after a pause, in time at the rate.
const BURST: Span = Span::from_millis(50);

/// The lead of a sender over its rate. Without a rate there is none.
#[derive(Debug, Clone, Copy)]
pub struct Bucket {
    rate: Option<Rate>,
    /// When all that has gone would have gone at the rate.
    spent: Time,
}

impl Bucket {
    /// A bucket for this rate; `None` for no limit.
    pub fn new(rate: Option<Rate>) -> Bucket {
        Bucket { rate, spent: Time::ZERO }
    }

    /// A bucket that lets records of `octets` each through, of whose user octets `rate` is the rate.
    pub fn of_records(rate: Option<Rate>, octets: usize) -> Bucket {
        let user = octets.saturating_sub(HEAD).max(1) as u128;
        Bucket::new(rate.map(|rate| {
            let bits = u128::from(rate.bits_per_second()) * octets as u128 / user;
            Rate::from_bits_per_second(u64::try_from(bits).unwrap_or(u64::MAX))
        }))
    }

    fn cost(&self, octets: u64) -> Span {
        self.rate.map_or(Span::ZERO, |rate| {
            let nanos = u128::from(octets) * 8_000_000_000 / u128::from(rate.bits_per_second());
            Span::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
        })
    }

    /// Takes `octets` if they are within the rate.
    pub fn admit(&mut self, now: Time, octets: u64) -> bool {
        let from = self.spent.max(now.before(BURST));
        let admitted = from <= now;
        if admitted {
            self.spent = from + self.cost(octets);
        }
        admitted
    }

    /// Until when nothing more is within the rate, if that is later than now.
    pub fn full_until(&self, now: Time) -> Option<Time> {
        Some(self.spent).filter(|&spent| spent > now)
    }

    /// Takes `octets` in any case and tells how long to wait until they are within the rate.
    pub fn take(&mut self, now: Time, octets: u64) -> Span {
        self.spent = self.spent.max(now.before(BURST)) + self.cost(octets);
        self.spent.since(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_more_goes_than_rate_and_burst(
            gaps in prop::collection::vec(0u64..3_000_000, 1..200), size in 1u64..2000,
        ) {
            let rate = Rate::from_bits_per_second(8_000_000);
            let mut bucket = Bucket::new(Some(rate));
            let (start, mut now, mut gone) = (Time::from_nanos(1 << 40), Time::from_nanos(1 << 40), 0);
            for gap in gaps {
                now += Span::from_nanos(gap);
                gone += if bucket.admit(now, size) { size } else { 0 };
                prop_assert!(gone <= rate.bytes_in(now.since(start) + BURST) + size);
            }
        }
    }

    /// A thousand octets in each record of 1040: the rate is that of the user octets.
    #[test]
    fn the_heads_of_records_do_not_count() {
        let rate = Rate::from_bits_per_second(8_000_000);
        let mut bucket = Bucket::of_records(Some(rate), 1000 + HEAD);
        let start = Time::from_nanos(1 << 40);
        let end = (0..1000).fold(start, |now, _| now + bucket.take(now, 1000 + HEAD as u64));
        let gone = end.since(start) + BURST;
        assert!(gone >= Span::from_millis(999) && gone <= Span::from_millis(1001), "{gone}");
    }

    #[test]
    fn who_waits_as_told_keeps_the_rate() {
        let mut bucket = Bucket::new(Some(Rate::from_bits_per_second(8_000_000)));
        let start = Time::from_nanos(1 << 40);
        let mut now = start;
        for _ in 0..1000 {
            now += bucket.take(now, 1000);
        }
        // 1000 octets a millisecond, 50 of which were free.
        assert_eq!(now.since(start), Span::from_millis(950));
        let mut free = Bucket::new(None);
        assert!(free.take(now, u64::MAX).is_zero() && free.admit(now, u64::MAX));
    }
}
