//! When messages are meant to be sent.

use std::fmt;
use trunkline_core::{Rate, Seed, Span, Stream, Time};

/// The lag beyond which messages are dropped, not made up for in a burst.
pub const MOST_BEHIND: Span = Span::from_millis(100);

/// The way in which messages follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// Each when the answer to the one before has come, or is given up.
    OneOutstanding,
    /// One each so long.
    Every(Span),
    /// At instants without memory, so long apart on average.
    Poisson(Span),
}

impl fmt::Display for Pace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Pace::OneOutstanding => f.write_str("one outstanding"),
            Pace::Every(span) => write!(f, "one each {span}"),
            Pace::Poisson(span) => write!(f, "Poisson, one each {span} on average"),
        }
    }
}

/// Gives the intended instants, one after the other.
#[derive(Debug)]
pub struct Pacer {
    next: Time,
    gap: Gap,
}

#[derive(Debug)]
enum Gap {
    /// Whole nanoseconds, and a remainder in `1 / rate` of a nanosecond, so that the long-run rate is
    /// exact.
    Rate {
        bits: u128,
        rate: u128,
        remainder: u128,
    },
    Every(Span),
    Poisson(Span, Box<Stream>),
    None,
}

impl Pacer {
    /// Instants from `start` on as `pace` has them, with this seed; for one outstanding there is none
    /// after the first, each being asked for when it is due.
    pub fn new(start: Time, pace: Pace, seed: Seed) -> Pacer {
        let gap = match pace {
            Pace::OneOutstanding => Gap::None,
            Pace::Every(span) => Gap::Every(span),
            Pace::Poisson(mean) => Gap::Poisson(mean, Box::new(seed.stream("arrivals"))),
        };
        Pacer { next: start, gap }
    }

    /// Instants from `start` on at which datagrams of `octets` keep to a rate; all at once without one.
    pub fn at_rate(start: Time, rate: Option<Rate>, octets: usize) -> Pacer {
        let gap = rate.map_or(Gap::None, |rate| Gap::Rate {
            bits: octets as u128 * 8_000_000_000,
            rate: u128::from(rate.bits_per_second()),
            remainder: 0,
        });
        Pacer { next: start, gap }
    }

    /// The next intended instant.
    pub fn next(&mut self) -> Time {
        let instant = self.next;
        self.next = instant + self.gap();
        instant
    }

    /// Lets go of what is too far behind `now`, and tells how many instants that is.
    pub fn skip_to(&mut self, now: Time) -> u64 {
        let mut skipped = 0;
        while !matches!(self.gap, Gap::None) && now.since(self.next) > MOST_BEHIND {
            self.next();
            skipped += 1;
        }
        skipped
    }

    fn gap(&mut self) -> Span {
        match &mut self.gap {
            Gap::Rate { bits, rate, remainder } => {
                let all = *bits + *remainder;
                *remainder = all % *rate;
                Span::from_nanos(u64::try_from(all / *rate).unwrap_or(u64::MAX))
            }
            // No gap at all would never end.
            Gap::Every(span) => Span::from_nanos(span.as_nanos().max(1)),
            Gap::Poisson(mean, stream) => {
                let waits = -libm::log(1.0 - stream.unit());
                Span::from_nanos(((mean.as_nanos() as f64 * waits) as u64).max(1))
            }
            Gap::None => Span::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Time = Time::from_nanos(1 << 40);

    #[test]
    fn a_rate_is_kept_exactly_in_the_long_run() {
        let rate = Rate::from_bits_per_second(3_000_000);
        let mut pacer = Pacer::at_rate(START, Some(rate), 1000);
        let last = (0..=3_000).map(|_| pacer.next()).last().unwrap();
        // 3000 times 8000 bits at 3 Mbit/s.
        assert_eq!(last.since(START), Span::from_secs(8));
    }

    #[test]
    fn arrivals_without_memory_have_their_mean_and_come_again() {
        let mean = Span::from_millis(20);
        let instants = |seed| {
            let mut pacer = Pacer::new(START, Pace::Poisson(mean), Seed(seed));
            (0..20_000).map(|_| pacer.next()).collect::<Vec<_>>()
        };
        let list = instants(3);
        let found = list[19_999].since(START).as_millis_f64() / 19_999.0;
        assert!((found - 20.0).abs() < 0.5, "{found}");
        let gaps = list.windows(2).map(|two| two[1].since(two[0]));
        let short = gaps.filter(|gap| *gap < mean).count() as f64 / 19_999.0;
        assert!((short - 0.632).abs() < 0.02, "{short}");
        assert_eq!(instants(3), list);
        assert_ne!(instants(4), list);
    }

    #[test]
    fn what_is_far_behind_is_let_go() {
        let mut pacer = Pacer::new(START, Pace::Every(Span::from_millis(10)), Seed(1));
        let late = START + Span::from_millis(500);
        assert_eq!(pacer.skip_to(late), 40);
        assert_eq!(late.since(pacer.next()), MOST_BEHIND);
        assert_eq!(pacer.skip_to(late), 0);
    }
}
