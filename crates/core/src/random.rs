//! Seeded randomness: one stream for each component, found by name, so that adding a component does
//! not move the numbers of the others.

use crate::Span;
use crate::parse::{ParseError, number_and_unit};
use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The seed of a run. The same scenario with the same seed gives the same result to the last bit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Seed(pub u64);

impl Seed {
    /// The random stream of the component called `name`.
    pub fn stream(self, name: &str) -> Stream {
        // FNV-1a, 64 bits: the name only has to choose a different stream.
        let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325u64, |h, b| {
            (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3)
        });
        let mut key = [0u8; 32];
        key[..8].copy_from_slice(&self.0.to_le_bytes());
        key[8..16].copy_from_slice(&hash.to_le_bytes());
        Stream(ChaCha8Rng::from_seed(key))
    }
}

/// A reproducible stream of random numbers, the same on every machine.
#[derive(Debug, Clone)]
pub struct Stream(ChaCha8Rng);

impl Stream {
    /// 64 uniform bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Uniform in `0..bound`, without bias worth naming (below 2^-64); 0 if `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    /// Uniform from zero to `most`, both included, to the nanosecond.
    pub fn span_to(&mut self, most: Span) -> Span {
        Span::from_nanos(self.below(most.as_nanos().saturating_add(1)))
    }

    /// Uniform in `[0, 1)`, 53 bits.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// True with probability `p`.
    pub fn happens(&mut self, p: Probability) -> bool {
        p.0 != 0 && (p.0 == u64::MAX || self.bits() < p.0)
    }

    /// A standard normal deviate (Box–Muller, computed by a portable library so that every machine agrees).
    pub fn normal(&mut self) -> f64 {
        let radius = libm::sqrt(-2.0 * libm::log(1.0 - self.unit()));
        radius * libm::cos(2.0 * std::f64::consts::PI * self.unit())
    }

    /// The number of failures before the first success if each trial succeeds with probability `p`
    /// (geometric); `u64::MAX` if `p` is zero.
    pub fn failures_before(&mut self, p: Probability) -> u64 {
        match p.0 {
            0 => u64::MAX,
            u64::MAX => 0,
            _ => (libm::log(1.0 - self.unit()) / libm::log1p(-p.as_f64())) as u64,
        }
    }
}

/// A probability, held as a 64-bit threshold so that deciding needs no floating point.
///
/// Read as `1%`, `0.01` or `1e-6`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Probability(u64);

impl Probability {
    /// It never happens.
    pub const NEVER: Probability = Probability(0);
    /// It always happens.
    pub const ALWAYS: Probability = Probability(u64::MAX);

    /// The probability `p`, or `None` outside `0..=1`.
    pub fn new(p: f64) -> Option<Probability> {
        let threshold = libm::round(p * 18_446_744_073_709_551_616.0) as u64;
        (0.0..=1.0).contains(&p).then_some(Probability(threshold))
    }
    /// As a number between 0 and 1.
    pub fn as_f64(self) -> f64 {
        if self.0 == u64::MAX { 1.0 } else { self.0 as f64 / 18_446_744_073_709_551_616.0 }
    }
    /// Whether it never happens.
    pub fn is_never(self) -> bool {
        self.0 == 0
    }
    /// The probability that it does not happen.
    pub fn complement(self) -> Probability {
        Probability(u64::MAX - self.0)
    }
}

impl FromStr for Probability {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Probability, ParseError> {
        let text = text.trim();
        let number = match text.strip_suffix('%') {
            Some(percent) => fraction(percent.trim()),
            None => text.parse(),
        };
        let p = number.map_err(|_| match number_and_unit(text) {
            (digits, unit) if !digits.is_empty() && !unit.is_empty() => ParseError::Unit {
                what: "probability",
                found: text.into(),
                unit: unit.into(),
                allowed: "% or none",
                example: "0.5%",
            },
            _ => {
                ParseError::NotANumber { what: "probability", found: text.into(), example: "0.5%" }
            }
        })?;
        let of_hundred = || (1.0..=100.0).contains(&p) && !text.ends_with('%');
        Probability::new(p).ok_or_else(|| match of_hundred() {
            true => ParseError::Ambiguous {
                found: text.into(),
                why: "is more than 1",
                better: format!("{text}% for {text} in a hundred"),
            },
            false => ParseError::Range {
                what: "probability",
                found: text.into(),
                lowest: "0".into(),
                highest: "1 (100%)".into(),
            },
        })
    }
}

/// Reads a percentage. The percent sign serves as an exponent, so that 1% and 0.01 are the same to the
/// last bit; a number that has an exponent already is divided.
fn fraction(percent: &str) -> Result<f64, std::num::ParseFloatError> {
    format!("{percent}e-2").parse().or_else(|_| percent.parse::<f64>().map(|p| p / 100.0))
}

impl fmt::Display for Probability {
    /// The shortest decimal that reads back as the same probability: `1%`, or `1e-7` if it is small.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let p = self.as_f64();
        let text = |digits: usize| {
            let rounded: f64 = format!("{:.digits$e}", p * 100.0).parse().unwrap_or(0.0);
            if p == 0.0 || rounded >= 1e-4 {
                format!("{rounded}%")
            } else {
                format!("{p:.digits$e}")
            }
        };
        let exact = |text: &String| text.parse() == Ok(*self);
        f.pad(&(0..16).map(text).find(exact).unwrap_or_else(|| format!("{p:e}")))
    }
}

impl Serialize for Probability {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
impl<'de> Deserialize<'de> for Probability {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        crate::quantity::deserialize_text(deserializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn streams_are_named_and_reproducible() {
        let draw = |seed, name: &str| {
            let mut stream = Seed(seed).stream(name);
            [stream.bits(), stream.bits()]
        };
        assert_eq!(draw(7, "loss"), draw(7, "loss"));
        assert_ne!(draw(7, "loss"), draw(7, "jitter"));
        assert_ne!(draw(7, "loss"), draw(8, "loss"));
    }

    #[test]
    fn spans_reach_both_their_ends() {
        let mut stream = Seed(1).stream("test");
        let most = Span::from_nanos(3);
        let mut drawn: Vec<u64> = (0..200).map(|_| stream.span_to(most).as_nanos()).collect();
        drawn.sort();
        drawn.dedup();
        assert_eq!(drawn, [0, 1, 2, 3]);
        assert_eq!(stream.span_to(Span::ZERO), Span::ZERO);
    }

    #[test]
    fn probabilities_read_and_happen() {
        let one_percent: Probability = "1%".parse().unwrap();
        assert!((one_percent.as_f64() - 0.01).abs() < 1e-15);
        assert_eq!("100%".parse::<Probability>().unwrap(), Probability::ALWAYS);
        assert_eq!("1e-1%".parse::<Probability>().unwrap(), Probability::new(0.001).unwrap());
        assert_eq!("1e-6".parse::<Probability>().unwrap(), Probability::new(1e-6).unwrap());
        for bad in ["101%", "-1%", "nan", "often", "1.5", "3ms"] {
            assert!(bad.parse::<Probability>().is_err(), "{bad}");
        }
        let mut stream = Seed(1).stream("test");
        let hits = (0..100_000).filter(|_| stream.happens(one_percent)).count();
        assert!((800..1200).contains(&hits), "{hits}");
        assert!(!stream.happens(Probability::NEVER) && stream.happens(Probability::ALWAYS));
    }

    #[test]
    fn probabilities_print_short() {
        for text in ["0%", "1%", "0.5%", "12.345%", "100%", "0.0001%", "1e-7", "2.5e-12"] {
            assert_eq!(text.parse::<Probability>().unwrap().to_string(), text);
        }
    }

    proptest! {
        /// Probabilities of few digits, as people write them, survive printing exactly; any other one
        /// to the precision of floating point.
        #[test]
        fn printing_and_reading_agree(digits in 0u32..100_000, scale in 5i32..15, p in 0.0f64..1.0) {
            let read = |p: Probability| p.to_string().parse::<Probability>().unwrap();
            let plain = format!("{digits}e-{scale}").parse::<Probability>().unwrap();
            prop_assert_eq!(read(plain), plain);
            let any = Probability::new(p).unwrap();
            prop_assert!((read(any).as_f64() - p).abs() <= p * 1e-15, "{}", any);
        }
    }

    #[test]
    fn geometric_and_normal_have_the_right_mean() {
        let mut stream = Seed(3).stream("test");
        let p = Probability::new(0.02).unwrap();
        let mean = (0..20_000).map(|_| stream.failures_before(p) as f64).sum::<f64>() / 20_000.0;
        assert!((mean - 49.0).abs() < 1.5, "{mean}");
        let draws: Vec<f64> = (0..20_000).map(|_| stream.normal()).collect();
        let mean = draws.iter().sum::<f64>() / 20_000.0;
        let square = draws.iter().map(|x| x * x).sum::<f64>() / 20_000.0;
        assert!(mean.abs() < 0.03 && (square - 1.0).abs() < 0.05, "{mean} {square}");
    }

    #[test]
    fn the_numbers_of_a_stream_are_for_ever() {
        // A change here changes every simulation: FNV-1a of "a" (a published test value) is what chooses
        // the stream.
        let mut key = [0u8; 32];
        key[0] = 7;
        key[8..16].copy_from_slice(&0xaf63_dc4c_8601_ec8c_u64.to_le_bytes());
        let drawn = rand_core::Rng::next_u64(&mut ChaCha8Rng::from_seed(key));
        assert_eq!(Seed(7).stream("a").bits(), drawn);
    }

    #[test]
    fn probabilities_are_never_only_at_zero() {
        let of = |p| Probability::new(p).unwrap();
        assert!(of(0.0).is_never() && !of(1e-12).is_never() && !Probability::ALWAYS.is_never());
    }

    #[test]
    fn what_is_no_probability_is_told_why() {
        let kind = |text: &str| match text.parse::<Probability>() {
            Err(ParseError::Unit { unit, .. }) => format!("unit {unit}"),
            Err(ParseError::NotANumber { .. }) => "no number".into(),
            Err(ParseError::Range { .. }) => "range".into(),
            other => format!("{other:?}"),
        };
        let told = ["5kg", "kg", "", "%", "101%", "-0.1"].map(kind);
        assert_eq!(told, ["unit kg", "no number", "no number", "no number", "range", "range"]);
    }

    #[test]
    fn probabilities_are_read_from_text_in_files() {
        assert_eq!(
            serde_json::from_str::<Probability>("\"25%\"").unwrap(),
            "0.25".parse().unwrap()
        );
        assert!(serde_json::from_str::<Probability>("\"many\"").is_err());
    }
}
