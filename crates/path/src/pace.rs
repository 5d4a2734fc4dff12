//! The paces at which bits leave: a rate, exactly; a slot clock; a trace of delivery opportunities.

use crate::Framing;
use crate::catch_up::Gap;
use crate::opportunities::OPPORTUNITY_BYTES;
use trunkline_core::{Rate, Span, Time};

/// Nanoseconds of a second.
const SECOND: u64 = 1_000_000_000;

/// The pace at which bits leave.
#[derive(Debug, Clone)]
pub(crate) enum Pace {
    /// At once.
    Unlimited,
    /// One after the other.
    Constant(Speed),
    /// On a slot clock.
    Slotted(Box<Slots>),
    /// As a trace says.
    Trace(Box<Trace>),
}

impl Pace {
    /// The pace of a line of `rate`, whose slot clock, if it has one, starts at `origin`.
    pub fn constant(framing: Framing, rate: Option<Rate>, origin: Time) -> Pace {
        let Some(rate) = rate else { return Pace::Unlimited };
        let speed = Speed::new(framing, rate);
        match framing.slot_bits() {
            Some(cell) => Pace::Slotted(Box::new(Slots { speed, cell, origin })),
            None => Pace::Constant(speed),
        }
    }

    /// Its rate, if it has one.
    pub fn speed(&self) -> Option<&Speed> {
        match self {
            Pace::Constant(speed) => Some(speed),
            Pace::Slotted(slots) => Some(&slots.speed),
            Pace::Unlimited | Pace::Trace(_) => None,
        }
    }

    /// The least part of `gap` that has to stay between two packets, lest the second come out faster than
    /// the line carries: the time for which it was at work, with a trace the packet's time at its mean rate.
    pub fn spacing(&self, gap: Gap) -> Span {
        match self {
            Pace::Constant(_) | Pace::Slotted(_) => gap.whole.saturating_sub(gap.idle),
            Pace::Trace(trace) => gap.whole.min(trace.mean(gap.bytes)),
            Pace::Unlimited => gap.whole.scaled(LEFT.0, LEFT.1),
        }
    }

    /// When `bits` that start at `at` have left, and the part of a nanosecond after that. `remainder` is
    /// the part by which what was sent before, back to back, ended late.
    #[inline]
    pub fn ends(&mut self, at: Time, bits: u64, remainder: u64) -> (Time, u64) {
        match self {
            Pace::Unlimited => (at, remainder),
            Pace::Constant(speed) => {
                let (nanos, remainder) = add(speed.split(bits), remainder, speed.per);
                (at + Span::from_nanos(nanos), remainder)
            }
            Pace::Slotted(slots) => (slots.ends(at, bits), remainder),
            Pace::Trace(trace) => (trace.ends(at, bits.div_ceil(8)), remainder),
        }
    }
}

/// The part of a gap that a line without a rate leaves between two packets that catch up: three quarters, so
/// that they come out at most a third faster than they came.
const LEFT: (u64, u64) = (3, 4);

/// The time that bits take at a rate, exactly: whole nanoseconds and a remainder in units of `1 / per`
/// nanoseconds. Found without dividing, by a reciprocal and a correction.
#[derive(Debug, Clone)]
pub(crate) struct Speed {
    rate: Rate,
    /// A bit takes `nanos / per` nanoseconds.
    nanos: u64,
    per: u64,
    /// `nanos / per`, rounded down, with so many binary places.
    reciprocal: u64,
    places: u32,
}

/// Binary places of the reciprocal: fewest, so that the integer part of the slowest rate fits (1 bit/s with
/// SONET's overhead is below 2^30 ns a bit), and most, so that the numerator does not overflow 128 bits.
const PLACES: (u32, u32) = (34, 88);
/// The fastest rate that is told from infinity, 9 Pbit/s: faster ones count as this one.
const FASTEST: u64 = 1 << 53;

impl Speed {
    /// The speed of user bits in `framing` on a line of `rate`.
    pub fn new(framing: Framing, rate: Rate) -> Speed {
        let (carrying, whole) = framing.line_share();
        let (nanos, per) = (SECOND * whole, rate.bits_per_second().min(FASTEST) * carrying);
        let fixed = |places: u32| (u128::from(nanos) << places) / u128::from(per);
        let fits = |&places: &u32| fixed(places) <= u128::from(u64::MAX);
        let places = (PLACES.0..=PLACES.1).rev().find(fits).unwrap_or(PLACES.0);
        let reciprocal = u64::try_from(fixed(places)).unwrap_or(u64::MAX);
        Speed { rate, nanos, per, reciprocal, places }
    }

    /// The rate of the line.
    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// The time of `bits`. It saturates at 584 years.
    #[inline]
    pub fn split(&self, bits: u64) -> (u64, u64) {
        let estimate = (u128::from(bits) * u128::from(self.reciprocal)) >> self.places;
        let Ok(mut nanos) = u64::try_from(estimate) else { return (u64::MAX, 0) };
        // The estimate is short by less than 10 for fewer than 2^37 bits, and `per` is below 2^62 by
        // a wide margin when it can be short by more than 2. So the rest is right modulo 2^64.
        let exact = bits.wrapping_mul(self.nanos);
        let mut rest = exact.wrapping_sub(nanos.wrapping_mul(self.per));
        while rest >= self.per {
            rest -= self.per;
            nanos += 1;
        }
        (nanos, rest)
    }

    /// The unit of a remainder: one nanosecond is so many.
    pub fn per(&self) -> u64 {
        self.per
    }

    /// The remainder before `bits` that left one of `remainder`.
    pub fn remainder_before(&self, bits: u64, remainder: u64) -> u64 {
        let (_, rest) = self.split(bits);
        if remainder >= rest { remainder - rest } else { remainder + self.per - rest }
    }
}

/// A time of bits with its rest, and a remainder from before, in units of which a nanosecond has `per`.
#[inline]
pub(crate) fn add((nanos, rest): (u64, u64), remainder: u64, per: u64) -> (u64, u64) {
    let sum = rest + remainder;
    if sum >= per { (nanos.saturating_add(1), sum - per) } else { (nanos, sum) }
}

/// A slot clock: a cell leaves only on a cell boundary.
#[derive(Debug, Clone)]
pub(crate) struct Slots {
    speed: Speed,
    /// Line bits of a cell.
    cell: u64,
    origin: Time,
}

impl Slots {
    fn ends(&self, at: Time, bits: u64) -> Time {
        let (slot, per) = (u128::from(self.speed.nanos * self.cell), u128::from(self.speed.per));
        let elapsed = u128::from(at.since(self.origin).as_nanos());
        let first = (elapsed * per).div_ceil(slot);
        let last = first + u128::from(bits.div_ceil(self.cell));
        let nanos = u64::try_from(last * slot / per).unwrap_or(u64::MAX);
        self.origin + Span::from_nanos(nanos)
    }
}

/// Delivery opportunities after mahimahi: at each stated millisecond 1500 bytes may leave; what is
/// not used is gone; after the last line the trace starts over.
#[derive(Debug, Clone)]
pub(crate) struct Trace {
    nanos: Vec<u64>,
    period: u64,
    origin: Time,
    /// The opportunity in use and the bytes left in it.
    index: u64,
    left: u64,
}

impl Trace {
    /// A trace that starts at `origin`.
    pub fn new(milliseconds: &[u64], origin: Time) -> Trace {
        let nanos: Vec<u64> = milliseconds.iter().map(|ms| ms * 1_000_000).collect();
        let period = nanos.last().copied().unwrap_or(0).max(1);
        Trace { nanos, period, origin, index: 0, left: OPPORTUNITY_BYTES }
    }

    /// The time of `bytes` at the mean rate.
    fn mean(&self, bytes: u32) -> Span {
        let offered = self.nanos.len() as u64 * OPPORTUNITY_BYTES;
        Span::from_nanos(self.period).scaled(u64::from(bytes), offered)
    }

    /// The instant of opportunity `index`, counted through all repetitions.
    fn instant(&self, index: u64) -> Time {
        let count = self.nanos.len() as u64;
        let within = self.nanos[(index % count) as usize];
        self.origin + Span::from_nanos((index / count) * self.period + within)
    }

    /// The first opportunity at or after `at`.
    fn seek(&self, at: Time) -> u64 {
        let elapsed = at.since(self.origin).as_nanos();
        // An instant on the boundary belongs to the last line of the round before it.
        let round = elapsed.saturating_sub(1) / self.period;
        let within = elapsed - round * self.period;
        let skipped = self.nanos.partition_point(|&nanos| nanos < within) as u64;
        round * self.nanos.len() as u64 + skipped
    }

    fn ends(&mut self, at: Time, bytes: u64) -> Time {
        let first = self.seek(at);
        if first > self.index || self.instant(self.index) < at {
            self.index = first.max(self.index + u64::from(self.instant(self.index) < at));
            self.left = OPPORTUNITY_BYTES;
        }
        let mut bytes = bytes;
        while bytes > self.left {
            bytes -= self.left;
            self.index += 1;
            self.left = OPPORTUNITY_BYTES;
        }
        self.left -= bytes;
        self.instant(self.index).max(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FRAMINGS: [Framing; 3] = [Framing::None, Framing::T1_LAPD, Framing::AtmAal5];

    fn exact(framing: Framing, rate: u64, bits: u64) -> (u128, u128) {
        let (carrying, whole) = framing.line_share();
        let per = u128::from(rate) * u128::from(carrying);
        let nanos = u128::from(bits) * u128::from(SECOND) * u128::from(whole);
        (nanos / per, nanos % per)
    }

    proptest! {
        #[test]
        fn the_reciprocal_divides_exactly(
            rate in prop_oneof![1u64..1000, 1u64..20_000_000_000, 1u64..10_000_000_000_000],
            bits in prop_oneof![0u64..100_000, 0u64..1 << 37],
            framing in prop::sample::select(FRAMINGS.to_vec()),
        ) {
            let speed = Speed::new(framing, Rate::from_bits_per_second(rate));
            let (nanos, rest) = exact(framing, rate, bits);
            if let Ok(nanos) = u64::try_from(nanos) {
                let split = speed.split(bits);
                prop_assert_eq!((split.0, u128::from(split.1)), (nanos, rest));
                let (_, after) = add(split, speed.per / 3, speed.per);
                prop_assert_eq!(speed.remainder_before(bits, after), speed.per / 3);
            }
        }
    }

    #[test]
    fn extreme_rates_do_not_overflow() {
        for rate in [1, u64::MAX] {
            let speed = Speed::new(Framing::AtmAal5, Rate::from_bits_per_second(rate));
            let (nanos, _) = speed.split(1 << 37);
            assert!(if rate == 1 { nanos == u64::MAX } else { nanos <= 20_000 });
        }
    }
}
