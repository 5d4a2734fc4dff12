//! Integer time: [`Time`] is an instant, [`Span`] a length of time, both in whole nanoseconds.

use crate::parse::{ParseError, Reading, print_exact};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub, SubAssign};
use std::str::FromStr;

/// An instant, in nanoseconds since the origin of a run. What the origin is belongs to the engine.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Time(u64);

/// A length of time in nanoseconds, never negative.
///
/// Written and read as `1.5ms`, `250us`, `2s`, `40ns`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span(u64);

impl Time {
    /// The origin.
    pub const ZERO: Time = Time(0);
    /// Later than every instant that a run reaches.
    pub const NEVER: Time = Time(u64::MAX);

    /// The instant `nanos` after the origin.
    pub const fn from_nanos(nanos: u64) -> Time {
        Time(nanos)
    }

    /// Nanoseconds since the origin.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The time since `earlier`, or zero if `earlier` is later.
    pub const fn since(self, earlier: Time) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }

    /// This instant moved back by `span`, at the earliest to the origin.
    pub const fn before(self, span: Span) -> Time {
        Time(self.0.saturating_sub(span.0))
    }
}

impl Span {
    /// No time at all.
    pub const ZERO: Span = Span(0);
    /// The longest span, about 584 years.
    pub const MAX: Span = Span(u64::MAX);

    /// A span of whole nanoseconds.
    pub const fn from_nanos(nanos: u64) -> Span {
        Span(nanos)
    }
    /// A span of whole microseconds, saturating.
    pub const fn from_micros(micros: u64) -> Span {
        Span(micros.saturating_mul(1_000))
    }
    /// A span of whole milliseconds, saturating.
    pub const fn from_millis(millis: u64) -> Span {
        Span(millis.saturating_mul(1_000_000))
    }
    /// A span of whole seconds, saturating.
    pub const fn from_secs(secs: u64) -> Span {
        Span(secs.saturating_mul(1_000_000_000))
    }

    /// Whole nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }
    /// Microseconds, for summaries only.
    pub fn as_micros_f64(self) -> f64 {
        self.0 as f64 / 1e3
    }
    /// Milliseconds, for summaries only.
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }
    /// Seconds, for summaries only.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
    /// The same span as the standard library's.
    pub const fn to_duration(self) -> std::time::Duration {
        std::time::Duration::from_nanos(self.0)
    }
    /// This span less `other`, or zero.
    pub const fn saturating_sub(self, other: Span) -> Span {
        Span(self.0.saturating_sub(other.0))
    }
    /// The difference of two spans, whichever is longer.
    pub const fn abs_diff(self, other: Span) -> Span {
        Span(self.0.abs_diff(other.0))
    }
    /// This span times `numerator / denominator`, rounded down, saturating.
    #[inline]
    pub fn scaled(self, numerator: u64, denominator: u64) -> Span {
        let denominator = denominator.max(1);
        if let Some(product) = self.0.checked_mul(numerator) {
            return Span(product / denominator);
        }
        let wide = u128::from(self.0) * u128::from(numerator) / u128::from(denominator);
        Span(u64::try_from(wide).unwrap_or(u64::MAX))
    }
    /// This span rounded to three significant digits, for tables: `1.53ms`.
    pub const fn rounded(self) -> Span {
        if self.0 < 1000 {
            return self;
        }
        let step = 10u64.pow(self.0.ilog10() - 2);
        Span((self.0 + step / 2) / step * step)
    }
    /// Whether this is no time at all.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
}

impl Add<Span> for Time {
    type Output = Time;
    fn add(self, span: Span) -> Time {
        Time(self.0.saturating_add(span.0))
    }
}
impl AddAssign<Span> for Time {
    fn add_assign(&mut self, span: Span) {
        *self = *self + span;
    }
}
impl Sub for Time {
    type Output = Span;
    fn sub(self, earlier: Time) -> Span {
        debug_assert!(self >= earlier, "{self} is before {earlier}");
        self.since(earlier)
    }
}
impl Add for Span {
    type Output = Span;
    fn add(self, other: Span) -> Span {
        Span(self.0.saturating_add(other.0))
    }
}
impl AddAssign for Span {
    fn add_assign(&mut self, other: Span) {
        *self = *self + other;
    }
}
impl Sub for Span {
    type Output = Span;
    fn sub(self, other: Span) -> Span {
        debug_assert!(self >= other, "{self} is shorter than {other}");
        self.saturating_sub(other)
    }
}
impl SubAssign for Span {
    fn sub_assign(&mut self, other: Span) {
        *self = *self - other;
    }
}
impl Sum for Span {
    fn sum<I: Iterator<Item = Span>>(spans: I) -> Span {
        spans.fold(Span::ZERO, Add::add)
    }
}

const UNITS: [(u64, &str); 4] = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us"), (1, "ns")];

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&print_exact(self.0, &UNITS))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09}s", self.0 / 1_000_000_000, self.0 % 1_000_000_000)
    }
}

impl FromStr for Span {
    type Err = ParseError;

    /// Reads `1.5ms`. Units: `ns`, `us` (or `µs`), `ms`, `s`, `min`, `h`. A bare `0` needs no unit.
    fn from_str(text: &str) -> Result<Span, ParseError> {
        let reading = Reading {
            what: "time",
            allowed: "ns, us, ms, s, min, h",
            example: "250ms",
            finest: "1ns",
        };
        reading
            .exact(text, |unit| match unit {
                "ns" => Some(1),
                "us" | "µs" | "μs" => Some(1_000),
                "ms" => Some(1_000_000),
                "s" | "sec" => Some(1_000_000_000),
                "min" => Some(60_000_000_000),
                "h" => Some(3_600_000_000_000),
                _ => None,
            })
            .map(Span)
    }
}

impl Serialize for Span {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Span, D::Error> {
        crate::quantity::deserialize_text(deserializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_what_people_write() {
        for (text, nanos) in [
            ("1.5ms", 1_500_000),
            ("250ms", 250_000_000),
            (" 40 ns ", 40),
            ("2s", 2_000_000_000),
            ("0", 0),
            ("0.000000001s", 1),
            ("12µs", 12_000),
            ("1min", 60_000_000_000),
            ("1h", 3_600_000_000_000),
            ("1.000001ms", 1_000_001),
        ] {
            assert_eq!(text.parse::<Span>().unwrap().as_nanos(), nanos, "{text}");
        }
    }

    #[test]
    fn refuses_with_cause_and_remedy() {
        let complaint = |text: &str| text.parse::<Span>().unwrap_err().to_string();
        assert!(complaint("12").contains("no unit") && complaint("12").contains("ms"));
        assert!(complaint("12lightyears").contains("'lightyears'"));
        assert!(complaint("-3ms").contains("negative"));
        assert!(complaint("ms").contains("expected a number"));
        assert!(complaint("").contains("expected a number"));
        assert!(complaint("1.2.3s").contains("expected a number"));
        assert!(complaint("0.5ns").contains("finer"));
        assert!(complaint("99999999999999s").contains("out of range"));
        assert!(complaint("nan").contains("expected a number"));
    }

    #[test]
    fn rounding_keeps_three_digits() {
        for (nanos, text) in [(1_534_567, "1.53ms"), (7, "7ns"), (99_960, "100us"), (999, "999ns")]
        {
            assert_eq!(Span::from_nanos(nanos).rounded().to_string(), text);
        }
    }

    proptest! {
        #[test]
        fn printing_and_reading_agree(nanos in 0..i64::MAX as u64) {
            let span = Span::from_nanos(nanos);
            prop_assert_eq!(span.to_string().parse::<Span>().unwrap(), span);
        }
    }

    #[test]
    fn summaries_are_in_their_units() {
        let span = Span::from_nanos(1_500_000);
        assert_eq!(span.as_micros_f64(), 1500.0);
        assert_eq!(span.as_millis_f64(), 1.5);
        assert_eq!(span.as_secs_f64(), 0.0015);
        assert_eq!(span.to_duration(), std::time::Duration::from_micros(1500));
        let mut time = Time::from_nanos(5);
        time += Span::from_nanos(2);
        assert_eq!(time, Time::from_nanos(7));
    }
}
