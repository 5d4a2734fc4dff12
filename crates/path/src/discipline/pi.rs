//! What pie and dualpi2 have in common: a proportional integral controller in integers, so that every
//! machine draws the same, and its clock.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;
use trunkline_core::{ParseError, Probability, Span, Stream, Time, number_and_unit};

/// A controller's gain in hertz, to a millionth: how much each second of delay adds to a probability.
///
/// Read as `0.125` or `0.125Hz`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Gain(u64);

/// Parts of a hertz.
const PARTS: u64 = 1_000_000;
/// Digits behind the point.
const DIGITS: usize = 6;

impl Gain {
    /// No reaction.
    pub const ZERO: Gain = Gain(0);
    /// The highest that is accepted: 1000 Hz.
    pub const MAX: Gain = Gain(1000 * PARTS);

    /// A gain in millionths of a hertz.
    pub const fn from_micros(micros: u64) -> Gain {
        Gain(micros)
    }

    /// What a delay of `lead` more than wanted adds to a probability, in units of [`Odds`].
    fn step(self, lead: i128) -> i128 {
        // Millionths of a hertz times nanoseconds.
        const UNITS: i128 = 1_000_000_000_000_000;
        let (product, certain) = (i128::from(self.0) * lead, i128::from(CERTAIN));
        // In two parts, because a long delay times certainty does not fit.
        product / UNITS * certain + product % UNITS * certain / UNITS
    }
}

impl FromStr for Gain {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Gain, ParseError> {
        let (what, example, found) = ("gain", "0.125", text.trim().to_string());
        let (number, unit) = number_and_unit(text);
        if !unit.is_empty() && unit != "Hz" {
            let unit = unit.into();
            return Err(ParseError::Unit { what, found, unit, allowed: "Hz or none", example });
        }
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if fraction.len() > DIGITS {
            return Err(ParseError::TooFine { what, found, finest: "0.000001 Hz" });
        }
        let digits = format!("{whole}{fraction:0<DIGITS$}");
        let plain = !whole.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        let parts = digits.parse().ok().filter(|_| plain);
        parts.map(Gain).ok_or(ParseError::NotANumber { what, found, example })
    }
}

impl fmt::Display for Gain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{}.{:0DIGITS$}", self.0 / PARTS, self.0 % PARTS);
        f.pad(text.trim_end_matches('0').trim_end_matches('.'))
    }
}

impl Serialize for Gain {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
impl<'de> Deserialize<'de> for Gain {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Gain, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// The gains that are accepted.
pub(super) const GAINS: RangeInclusive<Gain> = Gain::ZERO..=Gain::MAX;
/// How often a controller may look.
pub(super) const UPDATES: RangeInclusive<Span> = Span::from_micros(1)..=Span::from_secs(10);
/// What a message calls a queue under such a controller.
pub(super) const CONTROLLED: &str = "a controlled queue (pie, dualpi2)";

/// A probability that is reckoned with, in units of 2^-60.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct Odds(u64);

/// The bits of [`Odds`].
const BITS: u32 = 60;
/// Certainty.
const CERTAIN: u64 = 1 << BITS;

impl Odds {
    pub const NEVER: Odds = Odds(0);
    pub const CERTAIN: Odds = Odds(CERTAIN);

    /// One in `many`.
    pub const fn one_in(many: u64) -> Odds {
        Odds(CERTAIN / many)
    }

    /// The nearest below or at `probability`.
    pub fn from(probability: Probability) -> Odds {
        Odds((probability.as_f64() * CERTAIN as f64) as u64)
    }

    /// The bare number, for sums that go beyond certainty.
    pub fn units(self) -> u64 {
        self.0
    }

    /// Changed by `units`, between never and certainty.
    pub fn plus(self, units: i128) -> Odds {
        Odds((i128::from(self.0) + units).clamp(0, i128::from(CERTAIN)) as u64)
    }

    /// `times` as much, up to certainty.
    pub fn times(self, times: u32) -> Odds {
        Odds((u128::from(self.0) * u128::from(times)).min(u128::from(CERTAIN)) as u64)
    }

    /// That it happens twice.
    #[cfg(test)]
    pub fn squared(self) -> Odds {
        Odds(((u128::from(self.0) * u128::from(self.0)) >> BITS) as u64)
    }

    /// Whether it happens this time.
    pub fn happens(self, stream: &mut Stream) -> bool {
        self.0 > 0 && stream.bits() >> (u64::BITS - BITS) < self.0
    }
}

/// By how much a delay that is `delay` now and was `before` at the last update changes the probability
/// (RFC 8033 §4.2, RFC 9332 appendix A.1), in units of [`Odds`].
pub(super) fn change(alpha: Gain, beta: Gain, target: Span, delay: Span, before: Span) -> i128 {
    let lead = |other: Span| i128::from(delay.as_nanos()) - i128::from(other.as_nanos());
    alpha.step(lead(target)) + beta.step(lead(before))
}

/// The instants of a periodic update: whole multiples of a period, from the beginning of time.
#[derive(Debug)]
pub(super) struct Ticker {
    every: Span,
    next: Time,
}

impl Ticker {
    /// Updates `every` so often.
    pub fn new(every: Span) -> Ticker {
        Ticker { every: every.max(Span::from_nanos(1)), next: Time::ZERO }
    }

    /// The next update's instant, if it has come by `now`; the one after it is next then.
    #[inline]
    pub fn pass(&mut self, now: Time) -> Option<Time> {
        let at = self.next;
        if at > now {
            return None;
        }
        self.next = at + self.every;
        Some(at)
    }

    /// Passes over all updates up to `now`; the last one's instant.
    pub fn skip(&mut self, now: Time) -> Time {
        let last = now.as_nanos() / self.every.as_nanos() * self.every.as_nanos();
        self.next = Time::from_nanos(last) + self.every;
        Time::from_nanos(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use trunkline_core::Seed;

    #[test]
    fn gains_are_exact_decimals() {
        for (text, parts, printed) in [
            ("0.125", 125_000, "0.125"),
            (" 3.2 Hz ", 3_200_000, "3.2"),
            ("1", 1_000_000, "1"),
            ("10.000001", 10_000_001, "10.000001"),
            ("0", 0, "0"),
        ] {
            let gain: Gain = text.parse().unwrap();
            assert_eq!((gain, gain.to_string().as_str()), (Gain(parts), printed));
        }
        for bad in ["", "x", "-1", "1ms", "0.0000001", ".5", "1e3", "1.2.3"] {
            assert!(bad.parse::<Gain>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_change_worked_by_hand() {
        // 10 ms above the target at 0.125 Hz, and 5 ms up at 1.25 Hz: 0.00125 + 0.00625 = 0.0075.
        let ms = Span::from_millis;
        let units = change(Gain(125_000), Gain(1_250_000), ms(15), ms(25), ms(20));
        assert!((units as f64 / CERTAIN as f64 - 0.0075).abs() < 1e-15);
        // 5 ms below it and 5 ms down: as much as that again, downwards: −0.000625 − 0.00625.
        let units = change(Gain(125_000), Gain(1_250_000), ms(15), ms(10), ms(15));
        assert!((units as f64 / CERTAIN as f64 + 0.006_875).abs() < 1e-15);
    }

    #[test]
    fn a_delay_of_hours_counts_in_full() {
        // 5000 s above the target at 0.125 Hz, and 200 s down at 1.25 Hz: 625 − 250 = 375.
        let seconds = Span::from_secs;
        let units =
            change(Gain(125_000), Gain(1_250_000), seconds(1), seconds(5001), seconds(5201));
        assert_eq!(units, 375 * i128::from(CERTAIN));
        // The longest at the highest gains: 1000 Hz · 2^64 ns, twice.
        let longest = Span::from_nanos(u64::MAX);
        let units = change(Gain::MAX, Gain::MAX, Span::ZERO, longest, Span::ZERO);
        assert_eq!(units / i128::from(CERTAIN), 36_893_488_147_419);
    }

    #[test]
    fn odds_happen_as_often_as_they_say() {
        let mut stream = Seed(1).stream("odds");
        let odds = Odds::from("3%".parse().unwrap());
        let hits = (0..100_000).filter(|_| odds.happens(&mut stream)).count();
        // 3000 expected, with a deviation of 54.
        assert!((2730..3270).contains(&hits), "{hits}");
        let extremes = [Odds::CERTAIN, Odds::NEVER].map(|it| it.happens(&mut stream));
        assert_eq!(extremes, [true, false]);
        assert_eq!(Odds::one_in(4), Odds::one_in(2).squared());
        assert_eq!(
            (Odds::one_in(2).times(2), Odds::one_in(2).times(3)),
            (Odds::CERTAIN, Odds::CERTAIN)
        );
    }

    #[test]
    fn ticks_are_multiples_of_the_period_however_they_are_asked_for() {
        let mut ticker = Ticker::new(Span::from_nanos(10));
        let at = Time::from_nanos;
        let mut passed = |now| std::iter::from_fn(|| ticker.pass(at(now))).collect::<Vec<_>>();
        assert_eq!(passed(25), [at(0), at(10), at(20)]);
        assert_eq!(passed(29), []);
        assert_eq!(ticker.skip(at(47)), at(40));
        assert_eq!((ticker.pass(at(49)), ticker.pass(at(50))), (None, Some(at(50))));
    }

    proptest! {
        #[test]
        fn what_is_printed_reads_back_and_nothing_overflows(
            parts in 0..=Gain::MAX.0, delay: u64, before: u64, odds in 0..=CERTAIN,
        ) {
            let gain = Gain(parts);
            prop_assert_eq!(gain.to_string().parse(), Ok(gain));
            let [delay, before] = [delay, before].map(Span::from_nanos);
            let units = change(gain, gain, Span::from_millis(15), delay, before);
            prop_assert!(Odds(odds).plus(units) <= Odds::CERTAIN);
        }
    }
}
